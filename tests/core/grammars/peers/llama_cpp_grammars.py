"""Grammars in GBNF, written from llama.cpp's grammars/README.md: text, and characters or words that matter in it."""

from __future__ import annotations

from collections.abc import Sequence

JSON_STRING = r"""
string ::= "\"" char{0,6} "\""
char ::= [^"\\\x7F\x00-\x1F] | [\\] (["\\bfnrt] | "u" [0-9a-fA-F]{4})
space ::= | " " | "\n" [ \t]{0,20}"""

GRAMMARS: dict[str, tuple[str, Sequence[str]]] = {
    "literals": ('root ::= "1. " | "O-O" "-O"? | ""', ["1. ", "O-O", "-", "1"]),
    "classes": ("root ::= [1-9] [NBKQR] [+#]", "19NR+#0"),
    "code points": ("root ::= hiragana+ [\\u4e00-\\u9fff]?\nhiragana ::= [ぁ-ゟ]", "ぁゟ中a"),
    "escapes": (
        r'root ::= "\x41" | "\u00e9x" | "\U0001F600" [\x30-\x32] | "\"\\" | "\t\r\n" "\[\]"',
        'Aéx\U0001f6000"\\\t\r\n[]-',
    ),
    "escapes in classes": (r"root ::= [\]\[\\]+ [\x61\u00e9\U0001F600]? [\"]", '][-\\aé\U0001f600"'),
    "single lines": ('single-line ::= [^\\n]+ "\\n"\nroot ::= single-line{1,2}', "ab\n "),
    "negated": ("root ::= [^a-c\\n\\]] [^^]? [a^]", "abcd^]\n"),
    "dashes": ("root ::= [a-] [-a] [a-c]", "a-bc"),
    "any character": ('root ::= . "x" .*', "xé\n"),
    "sequences": (
        'root ::= "1. " move " " move "\\n"\nmove ::= "e" [1-8] | "Nf3"',
        ["1. ", "e4", "Nf3", " ", "\n", "e"],
    ),
    "alternatives": (
        'root ::= pawn | nonpawn | castle | "a" "b" | "a" "c"\npawn ::= "p"\n'
        'nonpawn ::= "n" pawn\ncastle ::= "a" castle | "d"',
        "abcdnp",
    ),
    "groups": ('root ::= ("a" | "b") "c" (("d"))', "abcd"),
    "repetitions": ('root ::= "a"* "b"+ "c"? ("d" "e"){2} "f"{1,} "g"{0,2}', "abcdefg"),
    "repeated groups": ('root ::= (("a" "b"?)+ "c"){1,3} ("d" | "e")*', "abcde"),
    "repeated rules": ('root ::= item{2,3} item*\nitem ::= [xy] "z"?', "xyz"),
    "zero times": ('root ::= "a"{0} "b"{0,0} "c"{0,1}', "abc"),
    "many times": ('root ::= [ab]{0,30} "c"{5}', ["a", "b", "ccccc", "c"]),
    "repetitions of repetitions": ('root ::= ("a"{2}){1,2} ("b"*)? ("c"+)*', "abc"),
    "comments": ('# the grammar\nroot ::= "a" # not "b"\n# more\n\nws ::= [ \\t\\n]+ # unused\n', "ab"),
    "lines in groups": (
        'root ::= (\n    # first\n    "a"\n\n    ([1-9] [0-9]? ". " "b" "\\n")+\n)',
        ["a", "1", "19", ". ", "b", "\n"],
    ),
    "lines after bars": ('root ::= "a" |\n    "b" | # two\n    "c"', "abc"),
    "names": (
        'root ::= check-mate dataType UPPER-CASE rule-1 2\ncheck-mate ::= "#"\ndataType ::= "i"?\n'
        'UPPER-CASE ::= "U"\nrule-1 ::= "1"\n2 ::= "2"?',
        "#iU12",
    ),
    "right recursion": ('root ::= "a" root | "b"', "ab"),
    "nesting": ('root ::= "(" root ")" root | ""', "()a"),
    "two kinds of nesting": ('root ::= pair*\npair ::= "(" root ")" | "[" root "]"', "()[]"),
    "empty alternatives": ('root ::= opt "x" opt\nopt ::= | "a" | "b" opt', "abx"),
    "optional repetitions": ('root ::= ("x" ("x" ("x")?)?)? "y"', "xy"),
    "lists": ('root ::= ("- " item)+\nitem ::= [^\\n]+ "\\n"', ["- ", "a", "\n", "b -"]),
    "sums": (
        'root ::= (expr "=" ws term "\\n")+\nexpr ::= term ([-+*/] term)*\nterm ::= ident | num | "(" ws expr ")" ws\n'
        "ident ::= [a-z] [a-z0-9_]* ws\nnum ::= [0-9]+ ws\nws ::= [ \\t\\n]*",
        "a1+=(\n) _",
    ),
    "chess": (
        'root ::= "1. " move " " move "\\n" ([1-9] [0-9]? ". " move " " move "\\n"){0,2}\n'
        'move ::= (pawn | nonpawn | castle) [+#]?\nnonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]\n'
        'pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?\ncastle ::= "O-O" "-O"?',
        ["1. ", "e4", " ", "Nf3", "\n", "O-O", "-O", "x", "+", "2. ", "Qxd5", "=Q"],
    ),
    "json": (
        'root ::= object\nvalue ::= object | array | string | number | ("true" | "false" | "null") ws\n'
        'object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws\n'
        'array ::= "[" ws (value ("," ws value)*)? "]" ws\n'
        'string ::= "\\"" ([^"\\\\\\x7F\\x00-\\x1F] | "\\\\" (["\\\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\\"" ws\n'
        'number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws\n'
        'ws ::= | " " | "\\n" [ \\t]{0,20}',
        ["{", "}", '"a"', ":", ",", "[", "]", "12", "-0.5e", "true", " ", "\n", "\\u00e9", "null"],
    ),
    "strings": (f"root ::= string{JSON_STRING}", ['"', "a", "\\n", "\\u00e9", "é", " "]),
    "members": (
        'root ::= "[" space item ("," space item){1,3} "]" space\n'
        'item ::= "{" space "\\"name\\"" space ":" space string "," space age "}" space\n'
        f'age ::= ([0-9] | ([1-8] [0-9] | [9] [0-9]) | "1" ([0-4] [0-9] | [5] "0")) space{JSON_STRING}',
        ["[", "{", '"name"', ":", '"a"', ",", "150", "99", "7", "}", "]", " ", "\n"],
    ),
    "other keys": (
        'root ::= [\\"] ( [a] ([g] ([e] char+ | [^"e] char*) | [^"g] char*) | [^"a] char* )? [\\"]\nchar ::= [^"]',
        ['"', "age", "ag", "a", "b"],
    ),
    "emoji": ("root ::= emoji+\nemoji ::= [\\U0001F300-\\U0001F6FF] | [☀-➿]", "😀🌍☀a"),
    "dates": (
        'root ::= year "-" ("0" [1-9] | "1" [0-2]) "-" day\nyear ::= [0-9]{4}\n'
        'day ::= "0" [1-9] | [1-2] [0-9] | "3" [0-1]',
        ["2024", "-", "01", "12", "31", "0"],
    ),
    "tables": (
        'root ::= row{2,}\nrow ::= cell ("," cell){1,2} "\\n"\ncell ::= [a-z]* | "\\"" ([^"] | "\\"\\"")* "\\""',
        ["a", ",", "\n", '"', '""', "b,\n"],
    ),
    "ambiguous": ('root ::= x x\nx ::= "a" | "aa" | "ab" | ""', "ab"),
    "shared beginnings": ('root ::= ("abc" | "abd" | "ab" [c-e] "f") "g"?', ["ab", "c", "d", "e", "f", "g"]),
}
"""By name."""
