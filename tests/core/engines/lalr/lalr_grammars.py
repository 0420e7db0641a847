"""Grammars whose lexers are awkward, and Lark's LALR parser with its contextual lexer as a judge."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files

GRAMMARS: dict[str, tuple[str, str]] = {
    # name: grammar, alphabet for exhaustive strings
    "left": ('start: start "a" | "b"', "ab"),
    "right": ('start: "a" start | "b"', "ab"),
    "centre": ('start: "a" start "b" | "c"', "abc"),
    "centre_empty": ('start: "a" start "b" |', "ab"),
    "arithmetic": (
        'start: sum\n?sum: product | sum "+" product\n?product: atom | product "*" atom\n'
        '?atom: /[0-9]+/ | "(" sum ")"\n%ignore " "',
        "1+( )",
    ),
    "keyword": ('start: ("if" NAME "then" NAME)+\nNAME: /[a-z]+/\n%ignore " "', "ifthen "),
    "keyword_here": ('start: "a" NAME | "b" "a"\nNAME: /[ab]+/\n%ignore " "', "ab "),
    "separator_needed": ('start: NAME "end"\nNAME: /[a-z]+/\n%ignore " "', "end "),
    "no_separator": ('start: NAME "end" | "(" NAME ")"\nNAME: /[den]+/', "end()"),
    "shadowed": ('start: A "b" | "c" B\nA: /a+/\nB: /a/', "abc"),
    "priority": ('start: (A | B)+ "!"\nA.2: /ab?/\nB: /[ab]+c/', "abc!"),
    "first_match": ("start: X Y\nX: /a|ab/\nY: /b*c/", "abc"),
    "lazy": ("start: (S | T)+\nS: /<.*?>/\nT: /[<>a]/", "<>a"),
    "lookahead": ('start: (N | D)+ ";"\nN: /0+(?![1-2])/\nD: /[0-2]/', "012;"),
    "lookahead_within": ('start: (S | Q)+\nS: /"(?!"").*?"/\nQ: /"""/', '"a'),
    "positive_lookahead": ('start: (N | D | "b")+\nN: /a+(?=b)/\nD: /[ac]/', "abc"),
    "boundary": ('start: (W | "-")+\nW: /a+\\b/', "a-b"),
    "far_fallback": ('start: (LONG | A | B | C)+\nLONG: /ab*c/\nA: "a"\nB: "b"\nC: "d"', "abcd"),
    "nested_fallback": ('start: (X | Y | A | B)+\nX: /a[ab]*!/\nY: /b[b]*\\?/\nA: "a"\nB: "b"', "ab!?"),
    "comment": ('start: ("/" | "*" | "a")+\nCOMMENT: /\\/\\*.*?\\*\\//\n%ignore COMMENT\n%ignore " "', "/*a "),
    "ignored_keyword": ('start: NAME+\nNAME: /[a-z]+/\nIGN: "x"\n%ignore IGN\n%ignore " "', "xa "),
    "insensitive": ('start: ("SELECT"i NAME)+\nNAME: /[a-z]+/i\n%ignore " "', "selctSx "),
    "two_keywords": ('start: ("ab"i | "ab" | NAME) ";"\nNAME: /[a-bA-B]+/', "abA;"),
    "unicode": ('start: "é" start "ü" | W\nW: /\\w/', "éüxß"),
    "dangling": ('start: s\ns: "i" s ["e" s] | "x"', "iex"),
    "conflict": ('start: a "x" | b "y"\na: "k" [ "," ]\nb: "k" ["," "z"]', "k,xyz"),
    "list": ('start: "[" [item ("," item)*] "]"\nitem: "1" | start\n%ignore /[ ]+/', "[],1 "),
    "swallowed": ('start: "1" | "," s "ab" | "if" "aa"\ns: "(" T\nT: /[ab]+/', "1,(abif"),
    "swallowed_by_a_blank": ('start: W* "!"\nW: /[a-c]+ */\n%ignore " "', "ab !"),
    "swallows_blanks": ('start: (W | "!")+\nW: /[ab]+ *c?/\n%ignore / +/', "abc !"),
    "shifted": ('start: "x" | "(" (start start)~1..2', "(x"),
    "far_end": ('start: "b" "a" | "," (start start start)~1..2\n%ignore " "', "ab, "),
    "empty_rules": ('start: a b c\na: "1" |\nb: "2" |\nc: "3" |', "123"),
    "indented": (
        'start: (_NL | stmt)*\nstmt: "p" _NL | "i" ":" _NL _INDENT stmt+ _DEDENT\n'
        '_NL: /(\\r?\\n[\\t ]*)+/\n%declare _INDENT _DEDENT\n%ignore " "',
        "pi:\n ",
    ),
    "brackets": (
        'start: (_NEWLINE | stmt)*\nstmt: e _NEWLINE | "i" ":" _NEWLINE _INDENT stmt+ _DEDENT\n'
        'e: "x" | LPAR e RPAR\nLPAR: "("\nRPAR: ")"\n_NEWLINE: (/\\r?\\n[\\t ]*/ | COMMENT)+\nCOMMENT: /#[^\\n]*/\n'
        '%declare _INDENT _DEDENT\n%ignore " "\n%ignore COMMENT',
        "xi:()\n #",
    ),
}


def bundled(name: str) -> str:
    """The text of a grammar that comes with Lark."""
    return (files("lark") / "grammars" / name).read_text(encoding="utf-8")


@lru_cache
def judge(text: str, start: str = "start") -> Callable[[str], bool]:
    """A function that tells whether Lark's LALR parser accepts a string."""
    import lark
    from lark.indenter import PythonIndenter

    postlex = None
    if "%declare _INDENT" in text:
        name = "_NEWLINE" if "_NEWLINE" in text else "_NL"
        postlex = type("Test", (PythonIndenter,), {"NL_type": name})()
    parser = lark.Lark(text, parser="lalr", lexer="contextual", start=start, postlex=postlex)

    def accepts(string: str) -> bool:
        try:
            parser.parse(string)
        except (lark.exceptions.LarkError, IndexError, AssertionError):  # the last two are the indenter's
            return False
        return True

    return accepts
