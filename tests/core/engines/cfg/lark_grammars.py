"""Lark grammars as normal forms by way of Lark's own compiler (not by structgen's front end), and Lark as a judge."""

from __future__ import annotations

import re
from functools import lru_cache

from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.regex.dfa import from_strings
from structgen.core.regex.pattern import full_match_dfa

GRAMMARS: dict[str, tuple[str, str]] = {
    # name: grammar, alphabet for exhaustive strings
    "left": ('start: start "a" | "b"', "ab"),
    "right": ('start: "a" start | "b"', "ab"),
    "centre": ('start: "a" start "b" | "c"', "abc"),
    "centre_empty": ('start: "a" start "b" |', "ab"),
    "twice": ('start: start start | "a"', "ab"),
    "twice_empty": ('start: start start | "a" | "(" start ")" |', "a()"),
    "expression": ('start: e\ne: e "+" e | e "*" e | "a" | "(" e ")"', "a+*("),
    "arithmetic": (
        'start: sum\n?sum: product | sum "+" product\n?product: atom | product "*" atom\n'
        '?atom: /[0-9]+/ | "(" sum ")"\n%ignore " "',
        "1+( )",
    ),
    "cycle": ('start: a\na: b | "x"\nb: a | a a | "y"', "xy"),
    "nullable_cycle": ('start: a\na: b c\nb: a |\nc: "x" |', "xy"),
    "hidden_left": ('start: a\na: b a "x" | "y"\nb: "z" |', "xyz"),
    "indirect": ('start: a\na: b "x" | "p"\nb: c "y" | "q"\nc: a "z" | "r"', "xyzpqr"),
    "word_end": ('start: /[a-z]+/ "end"', "end"),
    "words": ('start: WORD+\nWORD: /[a-c]+/\n%ignore " "', "ac "),
    "keyword": ('start: "or" NAME | NAME "or" NAME\nNAME: /[or]+/\n%ignore " "', "or "),
    "list": ('start: "[" [item ("," item)*] "]"\nitem: "1" | start\n%ignore /[ ]+/', "[],1 "),
    "comment": ('start: "a"+\nCOMMENT: /#[^;]*;/\n%ignore COMMENT\n%ignore " "', "a#; "),
    "palindrome": ('start: "a" start "a" | "b" start "b" |', "ab"),
    "ambiguous_tail": ('start: x "b"\nx: "a" x |', "ab"),
    "optional_chain": ('start: a b c d\na: "1" |\nb: "2" | a\nc: "3" | b\nd: "4" | c', "1234"),
    "mutual": ('start: a\na: b "x" | "m"\nb: a "y" | b a | "n"', "xymn"),
    "two_ignored": ('start: "a" "b"\n%ignore "ab"\n%ignore "-"', "ab-"),
    "right_nullable": ('start: "a" start tail | "b"\ntail: "c" |', "abc"),
    "unicode": ('start: "é" start "ü" | "x"', "éüx"),
}

JSON = r"""
start: value
value: object | array | STRING | NUMBER | "true" | "false" | "null"
object: "{" [pair ("," pair)*] "}"
pair: STRING ":" value
array: "[" [value ("," value)*] "]"
STRING: /"([^"\\\x00-\x1f]|\\(["\\\/bfnrt]|u[0-9a-fA-F]{4}))*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
%ignore /[ \t\n\r]+/
"""
SQL = r"""
start: select
select: "select" ["distinct"] items "from" tables [where] [order] [limit]
items: "*" | item ("," item)*
item: expr ["as" NAME]
tables: table ("," table)* | table join+
table: NAME [NAME]
join: ["left"] "join" NAME "on" expr
where: "where" expr
order: "order" "by" expr ("," expr)*
limit: "limit" NUMBER
expr: conj | expr "or" conj
conj: neg | conj "and" neg
neg: cmp | "not" neg
cmp: term | term op term | term "in" "(" expr ("," expr)* ")" | term "is" ["not"] "null"
op: "="|"<"|">"|"<="|">="|"<>"|"like"
term: factor | term ("+"|"-") factor
factor: prim | factor ("*"|"/") prim
prim: NUMBER | STR | NAME | NAME "." NAME | NAME "(" [expr ("," expr)*] ")" | "(" expr ")"
NAME: /[a-zA-Z_][a-zA-Z0-9_]*/
NUMBER: /[0-9]+(\.[0-9]+)?/
STR: /'[^']*'/
%ignore /[ \t\n]+/
"""


@lru_cache
def normal_form(text: str) -> ContextFreeGrammar:
    """The normal form of a grammar by Lark's compiler: its terminals and the rules that its Earley parser gets."""
    from lark.load_grammar import load_grammar

    grammar, _ = load_grammar(text, "<test>", [], False)
    terminals, rules, ignore = grammar.compile(["start"], "*")
    number = {t.name: i for i, t in enumerate(terminals)}
    names = list(dict.fromkeys(["start", *(r.origin.name for r in rules)]))
    nonterminal = {name: i for i, name in enumerate(names)}
    converted = []
    for rule in rules:
        symbols = [~number[s.name] if s.is_term else nonterminal[s.name] for s in rule.expansion]
        converted.append(Rule(nonterminal[rule.origin.name], tuple(symbols)))
    return ContextFreeGrammar(
        tuple(Terminal(t.name, _dfa(t.pattern), t.pattern.value) for t in terminals),
        tuple(names),
        tuple(converted),
        0,
        tuple(number[name] for name in ignore),
    )


def _dfa(pattern):
    if pattern.type == "str":
        return from_strings([pattern.value])
    return full_match_dfa(re.sub(r"\(\?:", "(?:", pattern.value))


@lru_cache
def judge(text: str):
    """A function that tells whether Lark's complete dynamic Earley parser accepts a string."""
    import lark

    parser = lark.Lark(text, parser="earley", lexer="dynamic_complete", ambiguity="explicit")

    def accepts(string: str) -> bool:
        try:
            parser.parse(string)
        except lark.exceptions.LarkError:
            return False
        return True

    return accepts
