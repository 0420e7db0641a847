"""Grammars in XGrammar's EBNF, written from its documentation: text, and characters or words that matter in it."""

from __future__ import annotations

import random
from collections.abc import Sequence

R = '\na ::= "1"\nb ::= "(" b ")" | "2"'
GRAMMARS: dict[str, tuple[str, Sequence[str]]] = {
    # rules, literals, classes
    "sums": (
        'root ::= expr ("=" expr)*\nexpr ::= term ([-+*/] term)*\nterm ::= num | "(" expr ")"\nnum ::= [0-9]+',
        "1+(=)",
    ),
    "lines": ('root ::= "a" |\n         "b" # a comment\n  | "c"\n  d\n# another\nd ::= "d"', "abcd"),
    "left recursion": ('root ::= root "a" | "a"', "ab"),
    "mutual recursion": ('root ::= x "a" | "b"\nx ::= root "c" | "d" x | ""', "abcd"),
    "ambiguous": ("root ::= item* item+\nitem ::= [a-c] | [b-d] [b-d]?", "abcde"),
    "empty literal": ('root ::= sign [0-9]\nsign ::= "" | "+" | "-"', "+-01"),
    "empty group": ('root ::= ( ) "a" ()? ("b" | ())', "ab"),
    "escapes": (
        r'root ::= "\"\\\/\'\?" ["\\/]? "\n\r\t\b\f\a\v\e" "\x41g" "\x1F600" "\u00e9" "\U0001F600"',
        "\"\\/'?\nAgé\U0001f600",
    ),
    "escapes one by one": (
        r'root ::= "\n" | "\r\t" | "\b\f\a" | "\v\e" | "\x41g" | "\x1F600" | "\u00e9" | "\U0001F600x"',
        "\n\rAgé\U0001f600x\a\b",
    ),
    "characters": ('root ::= "中文" | "é"+ | [à-ü] "😀"', "中文éà😀"),
    "class escapes": (r"root ::= [\^\$\.\*\+\?\(\)\[\]\{\}\|\/\-\\]+", "^$.*+?()[]{}|/-\\a"),
    "class dashes": (r"root ::= [a-] [-a] [a\-z] [--/] [+--]", "a-z./+,b"),
    "class negated": (r"root ::= [^0-9a\n] [^^] [a^] [^]", "0ab^\né"),
    "class of code points": (r"root ::= [\u4e00-\u9fff\x41-\x43] [\U0001F600-\U0001F64F]", "中A\U0001f600D"),
    "names": ('root ::= a.b -c _d e-2.f\na.b ::= "1"\n-c ::= "2"\n_d ::= "3"\ne-2.f ::= "4"?', "1234"),
    "line ends": ('root ::= "a" # x\r  "b"\r\nc ::= "c"\rd ::= c\n', "abc"),
    # repetition
    "counts": ('root ::= "a"{2} "b"{1,} ("c" d){0,2} "e"{0}\nd ::= "d"?', "abcde"),
    "counts with blanks": ('root ::= "a" { 1 , 3 } "b"{2,-1}', "ab"),
    "repeated groups": ('root ::= (("a"? "b")+ "c"){1,2} ("d"*)*', "abcd"),
    "many": ('root ::= [ab]{0,20} "c"{3,5} ("de"){10,11}', "abcde"),
    "identifiers": ('root ::= identifier ("," identifier){0,4}\nidentifier ::= [a-zA-Z_] [a-zA-Z0-9_]*', "a,_1Z"),
    # whole examples
    "quoted": (
        r'root ::= "\"" char* "\""'
        + "\n"
        + r'char ::= [^"\\\x00-\x1f] | "\\" escape'
        + "\n"
        + r'escape ::= ["\\/bfnrt] | "u" [0-9A-Fa-f]{4}',
        '"\\nu0aé',
    ),
    "json": (
        "root ::= basic_array | basic_object\n"
        'basic_any ::= basic_number | basic_string | "true" | "false" | "null" | basic_array | basic_object\n'
        'basic_number ::= ("0" | "-"? [1-9] [0-9]*) ("." [0-9]+)? ([eE] [+-]? [0-9]+)?\n'
        'basic_string ::= (([\\"] basic_string_1 [\\"]))\n'
        'basic_string_1 ::= "" | [^"\\\\\\x00-\\x1F] basic_string_1 | "\\\\" escape basic_string_1\n'
        'escape ::= ["\\\\/bfnrt] | "u" [A-Fa-f0-9]{4}\n'
        'basic_array ::= "[" ("" | ws basic_any (ws "," ws basic_any)*) ws "]"\n'
        'basic_object ::= "{" ("" | ws basic_string ws ":" ws basic_any ( ws "," ws basic_string ws ":" ws basic_any)*)'
        ' ws "}"\nws ::= [ \\n\\t]*',
        '{["1a]}:, \\n0.e-',
    ),
    # lookahead assertions and attributes
    "lookahead": ('root ::= a "c"\na ::= "a" | "b" b (= "c")\nb ::= "b" (= [c])', "abc"),
    "lazy": ('root ::= a "c"\na[lazy] ::= [ab]* "b"', "abc"),
    "lazy choice": ('root ::= a ("c" | a)*\na[lazy] ::= "a" | "ab" | "b" "b"* "a"', "abc"),
    "lazy and empty": ('root ::= a "c"\na[lazy] ::= "a"*', "ac"),
    "lazy expression": ('root ::= a "c"*\na[lazy] ::= Regex("(ab|c)+(b|a)?")', "abc"),
    "max_chars": ('root ::= a ";" a\na[max_chars=3] ::= [a-cé]*', "abcé;"),
    "max_chars and lazy": ('root ::= a "x"\na[ lazy , max_chars = 9 ] ::= [ab] "."', "ab.x"),
    "max_chars and macros": (
        'root ::= a ";"\na[max_chars=4] ::= ("[" Substring("a", "b", "c") | Regex("d(?:e|f)*", json_string=true)) "]"?',
        "[abc];def",
    ),
    "capture": ('root ::= x "-" y\nx[capture] ::= [a-b]+\ny[capture="the y"] ::= ("a" x?)*', "ab-"),
    # Regex
    "expression": (r'root ::= "<" Regex("\\d{2,3}(?:[a-c]|\\w-)?") ">"', "<0a_->"),
    "expression classes": (r'root ::= Regex("[\\w\\-.]+\\s\\S[^\\d]\\D?\\W")', "a-. é0_\n"),
    "expression anchored": ('root ::= Regex("^a(b|c)*$") Regex("d$")?', "abcd"),
    "expression groups": ('root ::= Regex("(?<n>ab)+(?P<m>c)?(?:d|(e))*?")', "abcde"),
    "expression escapes": (r'root ::= Regex("\\x41\\u0042\\u{43}\\t\\n\\.\\/\\-\\\\\\a\\e")', "ABC\t\n./-\\\a\x1b"),
    "expression with a dot": ('root ::= Regex("a.b")', "ab\nc"),
    "expression with flags": (
        'root ::= Regex("a.b", flags="") | Regex("c.d", flags="s") | Regex("x.Y", flags="iu")',
        "abcdxyXY\n",
    ),
    "expression ignoring case": ('root ::= Regex("(?i)abc|[^d-f]")', "abcABCdDgé"),
    "expression in a JSON string": (r'root ::= "\"" Regex("a.c|[\"x]+", json_string=true) "\""', '"acx\\\n'),
    "expressions repeated": ('root ::= (Regex("a+b?") "c"){1,3}', "abc"),
    # Substring
    "substring": ('root ::= "[" Substring("a", "b", "a", "c") "]"', "[abc]"),
    "substring of words": (
        'root ::= Substring("the ", "cat ", "the ", "dog") "."?',
        ["the ", "cat ", "dog", *"the cdog."],
    ),
    "substring with shared beginnings": ('root ::= Substring("ab", "a", "b", "", "abc", "a")', "abc"),
    "substring repeated": ('root ::= ("x" Substring("é", "b", "é"))*', "xéb"),
    # TagDispatch
    "tags": (f'root ::= TagDispatch(("<t>", a), ("<s>", b)){R}', ["<t>", "<s>", *"<ts>12()"]),
    "tags once": (
        f'root ::= TagDispatch(("<t>", a), ("<s>", b), loop_after_dispatch=false){R}',
        ["<t>", "<s>", *"<ts>12()"],
    ),
    "tags shared": (f'root ::= TagDispatch(("<t>", a), ("<t>", b)){R}', ["<t>", *"<t>12()"]),
    "tags with overlaps": (f'root ::= TagDispatch(("aab", a), ("bba", b)){R}', ["aab1", "bba2", *"ab12()"]),
    "tags with excludes": (f'root ::= TagDispatch(("<t>", a), excludes=("<e>", ">>",)){R}', ["<t>1", "<e>", *"<te>12"]),
    "tags with excludes that end alike": (f'root ::= TagDispatch(("b>", a), excludes=("ab>",)){R}', "ab>12"),
    "tags inside": (
        f'root ::= body "</answer>"\nbody ::= TagDispatch(("<t>", a), excludes=("</answer>",)){R}',
        ["<t>1", "</answer>", *"<t>/answer12"],
    ),
    "tags between": (f'root ::= ("p" TagDispatch(("x", a)) "q"){{1,2}}{R}', "pqx12"),
    "tags in tags": (
        'root ::= TagDispatch(("x", inner))\ninner ::= "(" TagDispatch(("y", inner), excludes=(")",)) ")"',
        "xy()a",
    ),
    "text without words": ('root ::= TagDispatch(excludes=("ab", "bc")) | "ab"', "abc"),
    "any text": ('root ::= "a" TagDispatch()', "abé"),
    "documentation's tags": (
        'root ::= TagDispatch(\n    ("<tool_call>", tool_call_body),\n    ("<code>", code_body),\n'
        '    loop_after_dispatch=true,\n    excludes=()\n)\ntool_call_body ::= "{" [^}]* "}"\n'
        'code_body ::= "```" [^`]* "```"',
        ["<tool_call>", "<code>", *"{}`<a"],
    ),
}
"""By name."""


def random_grammar(rng: random.Random) -> str:
    """Up to three rules over a, b, c, each with a text (XGrammar does not end on some that have none)."""
    names = ["root", "x", "y"][: rng.randint(1, 3)]
    return "\n".join(f'{name} ::= {_choice(rng, 1, names)} | "a"' for name in names)


def _choice(rng: random.Random, depth: int, names: list[str]) -> str:
    options = []
    for _ in range(rng.choice([1, 1, 2])):
        signs = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "{0,}", "{1,}"]
        parts = [_element(rng, depth, names) + rng.choice(signs) for _ in range(rng.randint(1, 3))]
        options.append(" ".join(parts))
    return " | ".join(options)


def _element(rng: random.Random, depth: int, names: list[str]) -> str:
    kind = rng.randrange(12 if depth else 6)
    if kind < 2:
        return f'"{rng.choice(["a", "b", "ab", "ba", "", "c", "bc"])}"'
    if kind == 2:
        return rng.choice(["[ab]", "[^a]", "[a-c]", "[b-]"])
    if kind < 5:
        return rng.choice(names)
    if kind > 5:
        return f"({_choice(rng, depth - 1, names)})"
    pieces = ",".join(f'"{rng.choice(["a", "b", "ab", "c"])}"' for _ in range(rng.randint(0, 4)))
    tag = f'("{rng.choice(["ab", "c", "ba", "bb"])}", {rng.choice(names)})'
    excluded = rng.choice(["", '"cc",', '"ca"'])
    macros = [
        f'Regex("{rng.choice(["a*b", "(ab|c)+", "a{1,2}", "[bc]?a", ".b", "b+?"])}")',
        f"Substring({pieces})",
        f"TagDispatch({tag}, excludes=({excluded}))",
    ]
    return rng.choice(macros)
