"""Grammars as llguidance's documentation writes them (docs/syntax.md, docs/parametric.md), one and more a feature."""

from __future__ import annotations

LINES = r"[a-zA-Z \n]*"

GRAMMARS: dict[str, str] = {
    # --- minor syntax changes ---
    "repeat_range": 'start: "a"{2,3} "b"',
    "repeat_at_least": 'start: "ab"{2,} "c"',
    "repeat_exactly": 'start: x{2}\nx: "a" | "b" "c"',
    "repeat_up_to": 'start: "<" A{,2} ">"\nA: "a" "b"{1,2}',
    "repeat_tilde": 'start: "a"~1..3 ("b" "c")~2',
    "repeat_many": 'start: ("a" | "b"){20,40} "."',
    "repeat_of_lists": 'start: "[" (row ","){0,3} "]"\nrow: "(" "x"{1,2} ")"',
    "comments": 'start: "a" // one\n  | "b" # two\n// three\n',
    "hyphens": 'start: my-rule MY-TERMINAL\nmy-rule: "a"\nMY-TERMINAL: "b"+',
    "groups": 'start: ("a" | "b" ("c" | "d"))+ ["e"]',
    "strings": r'start: "\u00e9\n" | "\"\\\/" | "\x41" "b"i',
    "ranges": 'start: "a".."f" DIGIT+ "."\nDIGIT: "0".."9"',
    "empty": 'start: "" | "a" start "b"',
    "aliases": 'start: "a" -> one\n  | "b" x -> two\n?x: "c"\n',
    # --- terminals ---
    "int": 'start: INT\nINT: "-"? UINT\nUINT: DIGIT+\nDIGIT: /[0-9]/',
    "identifier": 'start: IDENTIFIER ("." IDENTIFIER)*\nID_START: /[a-z_]/\nID_CHAR: /[a-z0-9_]/\n'
    "IDENTIFIER: ID_START ID_CHAR*",
    "nullable": 'start: SIGN DIGITS "!"\nSIGN: /[+-]?/\nDIGITS: /[0-9]*/',
    "nullable_middle": 'start: "(" BLANK "x" BLANK ")"\nBLANK: " "*',
    "arithmetic": 'start: expr\nexpr: expr "+" term | term\nterm: term "*" factor | factor\n'
    'factor: "(" expr ")" | NUMBER\n'
    "NUMBER: /[0-9]+/",
    "right_recursion": 'start: "a" start | "b"',
    "import": "start: INT WS_INLINE CNAME (WS_INLINE? ESCAPED_STRING)?\n"
    "%import common.INT\n%import common (CNAME, WS_INLINE, ESCAPED_STRING)",
    "import_alias": 'start: num ("," num)*\nnum: N\n%import common.SIGNED_NUMBER -> N',
    "comment_terminals": "start: (C_COMMENT | CPP_COMMENT NEWLINE | SQL_COMMENT LF)+\n"
    "%import common (C_COMMENT, CPP_COMMENT, SQL_COMMENT, NEWLINE, LF)",
    # --- regular expressions ---
    "regex_classes": r'start: /[a-z&&[^aeiou]]+[[:digit:]]{1,2}\x41[\d--5]/ "."',
    "regex_unicode": r'start: /\p{Greek}+\pN\P{L}/ "é"',
    "regex_flags": 'start: /ab.c/is /d e # f\n/x "g"',
    "regex_groups": r'start: /(?i:x)(?P<name>y|z)+(?:w)?/ ";"',
    "regex_anchors": r"start: /^a+$/ /\A;\z/",
    "regex_dots": 'start: /(?s:.)a/ /.b/ "\\n"',
    # --- ignoring ---
    "ignore": 'start: "a" "b"+ ";"\n%ignore " "\n%ignore /#[0-9]+#/',
    "ignore_import": 'start: "[" (INT ("," INT)*)? "]"\n%import common (INT, WS)\n%ignore WS',
    "ignore_group": 'start: pair+ "."\npair: NAME "=" (INT | "(" pair ")")\nNAME: /[a-z]+/\n'
    "%import common.INT\n%ignore /[ \\t]+/",
    # --- lazy ---
    "lazy": 'start: line+ "."\nline[lazy]: /[a-z ]*\\n/',
    "lazy_digit": 'start: foo "x"\nfoo[lazy]: /[0-9]+/',
    "suffix": 'start: with_suffix "b"\nwith_suffix[capture, suffix="<end>"]: /[a-z<]*/',
    "suffix_regex": 'start: x "z"\nx[suffix=/[0-9]+/]: /[a-z]*/',
    "suffix_terminal": 'start: x ";"\nx[suffix=END, capture="value", stop_capture="end"]: /[a-z ]+/\nEND: "!" | "?"',
    "stop": 'start: mygen "b"\nmygen[stop="\\n"]: /.*/',
    "lazy_beside": 'start: a "c" | b "d"\na[lazy]: "ab"\nb: /abx?|ac+/',
    "lazy_beside_lazy": 'start: a "c" | b "d"\na[lazy]: "ab"\nb[lazy]: /abx|ac/',
    "lazy_terminals": 'start: x "."\nx[lazy]: [A] B+ "c"? "!"\nA: "a"\nB: "b"',
    "tool_calls": "start: ( f_foo | f_bar )* f_end\nf_end: TEXT\nTEXT: /(.|\\n)*/\n"
    'f_foo_hd[lazy]: TEXT "<f"\nf_foo: f_foo_hd "=foo>" /[0-9]+/ "</f>"\n'
    'f_bar_hd[lazy]: TEXT "<f"\nf_bar: f_bar_hd "=bar>" /[a-z]+/ "</f>"',
    "tool_calls_required": "start: call+ rest\nrest: /[a-c<]*/\n"
    'head[lazy]: /[a-c<]*/ "<f>"\ncall: head %json {"type": "boolean"} ";"',
    # --- and, not ---
    "and_not": f"start: ASCII_LINES\nASCII_LINES: /{LINES}/ & ~/(?s:.*)\\n\\n(?s:.*)/",
    "and": 'start: A "." \nA: /[a-c]/ /[b-d]/ & /[a-z]b/ | "q"',
    "not_in_rule": 'start: "<" PLAIN ">"\nPLAIN: /[a-b]*/ & ~("a" | /b+a.*/)',
    "not_repeated": "start: A\nA: (~/[ab]/)+ & /[a-c]{0,3}/",
    "json_string": r'start: "q(" JSON_STRING ")"' + "\n"
    r"JSON_CHAR: /(\\([\"\\\/bfnrt]|u[a-fA-F0-9]{4})|[^\"\\\x00-\x1F\x7F])/" + "\n"
    r'JSON_STRING: "\"" JSON_CHAR* "\""',
    # --- %regex ---
    "substring_words": 'start: "<" %regex {"substring_words": "foo bar. baz"} ">"',
    "substring_chars": 'start: "<" %regex {"substring_chars": "abcab"} ">"',
    "substring_chunks": 'start: "<" %regex {"substring_chunks": ["abc", "de", "fg"]} ">"',
    "substring_terminal": 'start: QUOTE ("," QUOTE)*\n'
    'QUOTE: "\\"" %regex {"substring_words": "to be or not to be"} "\\""',
    # --- %json, nested grammars ---
    "json": 'start: TEXT | fun_call\nTEXT: /[^{](.|\\n)*/\nfun_call: %json {"enum": [{"name": "get"}, {"id": [1, 2]}], '
    '"x-guidance": {"whitespace_flexible": false}}',
    "json_object": 'start: "call " fun_call "!"\nfun_call: %json {"type": "object", "properties": {'
    '"a": {"type": "null"}, "b": {"enum": ["x", "yz"]}}, "required": ["a"], "additionalProperties": false, '
    '"x-guidance": {"whitespace_flexible": false}}',
    "json_ignore": 'start: "a" %json {"enum": [1, 22]} "b" "c"\n%ignore " "',
    "nested": 'start: "a" %lark {\n  start: x ";"\n  x: "x" y{1,2}\n  y: "y"\n} "b" y\ny: "q"',
    "nested_ignore": 'start: "a" %lark {\n  start: "x" "y" "z"\n  %ignore "-"\n} "b" "c"\n%ignore " "',
    "nested_same_ignore": 'start: "a" %lark {\n  start: "x" "y"\n  %ignore " "\n} "b" "c"\n%ignore " "',
    "header": '%llguidance {"no_forcing": true}\nstart: "a"+ ";"\n%llguidance {}',
    # --- parameters ---
    "permutation": 'start    :  perm::0x0\nperm::_  :  ""                       %if is_ones([0:3])\n'
    '         |  "a" perm::set_bit(0)     %if bit_clear(0)\n'
    '         |  "b" perm::set_bit(1)     %if bit_clear(1)\n'
    '         |  "c" perm::set_bit(2)     %if bit_clear(2)',
    "at_least_once": 'start    :  perm::0x0\nperm::_  :  ""                       %if is_ones([0:3])\n'
    '         |  "a" perm::set_bit(0)\n         |  "b" perm::set_bit(1)\n         |  "c" perm::set_bit(2)',
    "counted": 'start  : aa::0\naa::_  : "b" aa::incr(_)    %if lt(_, 20)\n       | bb::_\n'
    'bb::_  : "a" bb::incr(_)    %if lt(_, 20)\n       | ""',
    "counted_fields": 'start  : lst::0x0\nlst::_ : "a" lst::incr([0:3])  %if lt([0:3], 5)\n'
    '       | "b" lst::incr([3:6])  %if lt([3:6], 5)\n       | "c" lst::incr([6:9])  %if lt([6:9], 6)\n       | ""',
    "chosen": 'start    :  perm::0x0\nperm::_  :  ""                       %if bit_count_ge(_, 1)\n'
    '         |  "a" perm::set_bit(0)     %if and(bit_clear(0), bit_count_lt(_, 3))\n'
    '         |  "b" perm::set_bit(1)     %if and(bit_clear(1), bit_count_lt(_, 3))\n'
    '         |  "c" perm::set_bit(2)     %if and(bit_clear(2), bit_count_lt(_, 3))\n'
    '         |  "d" perm::set_bit(3)     %if and(bit_clear(3), bit_count_lt(_, 3))',
    "counted_down": 'start: aa::5\naa::_ : "x" aa::decr(_) %if ne(_, 0)\n | ";" %if or(is_zeros(_), not(bit_set(0)))',
}
