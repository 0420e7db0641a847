"""Random context-free grammars as trees, their texts, and their spelling in Lark's and in GBNF's notation.

A node is a list: ``["lit", text]``, ``["set", characters]``, ``["ref", rule]``, ``["seq", *nodes]``,
``["alt", *nodes]``, ``["rep", node, least, most or None]``. `recognise` is a plain recogniser of such grammars, for
any recursion.
"""

from __future__ import annotations

import json
import random
from typing import Any

Node = list[Any]
Rules = dict[str, Node]
LITERALS = ["a", "b", "ab", "ba", "1", "(", ")", ",", "if", "é", "aa", "+", '"', "\\", "😀", "-"]
SETS = ["ab", "a-c", "0-9", "abé", "x"]
FIRST = ["a", "b", "(", "1", "+", "-", "if", "é", ","]


def random_rules(rng: random.Random, start: str, deterministic: bool = False) -> Rules:
    """One to four rules. ``deterministic``: alternatives begin with different literals, which suits LALR parsers."""
    names = [start, "r", "s", "t"][: rng.randint(1, 4)]
    literals = rng.sample(LITERALS, 5)

    def leaf() -> Node:
        way = rng.random()
        if way < 0.5:
            return ["lit", rng.choice(literals)]
        return ["ref", rng.choice(names)] if way < 0.8 else ["set", rng.choice(SETS)]

    def node(depth: int) -> Node:
        way = rng.random()
        if depth == 0 or way < 0.3:
            return leaf()
        if way < 0.6:
            return ["seq", *(node(depth - 1) for _ in range(rng.choice((0, 2, 2, 3))))]
        if way < 0.8:
            return ["alt", *(node(depth - 1) for _ in range(rng.choice((2, 2, 3))))]
        least, most = rng.choice(((0, 1), (0, 1), (0, None), (1, None), (2, 2), (1, 3), (0, 2)))
        return ["rep", node(depth - 1), least, most]

    def rule() -> Node:
        if not deterministic or rng.random() < 0.2:
            return ["alt", *(node(2) for _ in range(rng.randint(1, 3)))]
        firsts = rng.sample(FIRST, rng.randint(1, 3))
        return ["alt", *(["seq", ["lit", first], node(2)] for first in firsts)]

    return {name: rule() for name in names}


# --- notations --------------------------------------------------------------------------------------------------------


def to_gbnf(rules: Rules) -> str:
    """The grammar in GBNF."""
    return "\n".join(f"{name} ::= {_gbnf(node)}" for name, node in rules.items())


def _gbnf(node: Node) -> str:
    kind, *rest = node
    if kind == "lit":
        return '"' + rest[0].replace("\\", "\\\\").replace('"', '\\"') + '"'
    if kind == "set":
        return f"[{rest[0]}]"
    if kind == "ref":
        return str(rest[0])
    if kind == "seq":
        return "(" + " ".join(map(_gbnf, rest)) + ")" if rest else '""'
    if kind == "alt":
        return "(" + " | ".join(map(_gbnf, rest)) + ")"
    inner, least, most = rest
    return f"({_gbnf(inner)}){_count(least, most)}"


def _count(least: int, most: int | None) -> str:
    if (least, most) in ((0, 1), (0, None), (1, None)):
        return {(0, 1): "?", (0, None): "*", (1, None): "+"}[least, most]
    return f"{{{least},{'' if most is None else most}}}"


def to_lark(rules: Rules, rng: random.Random) -> str:
    """The grammar in Lark's notation, with named terminals, blanks to ignore, priorities and aliases here and there."""
    named: dict[str, str] = {}
    lines = []
    for name, node in rules.items():
        lines.append(f"{rng.choice(('', '', '!', '?')) if name != 'start' else ''}{name}: {_lark(node, rng, named)}")
    for name, definition in named.items():
        lines.append(f"{name}{rng.choice(('', '', '', '.2', '.-1'))}: {definition}")
    if rng.random() < 0.4:
        lines.append(rng.choice(('%ignore " "', "%ignore /[ ]+/", "COMMENT: /#[^;]*;/\n%ignore COMMENT")))
    return "\n".join(lines)


def _lark(node: Node, rng: random.Random, named: dict[str, str]) -> str:
    kind, *rest = node
    if kind in ("lit", "set"):
        word = json.dumps(rest[0], ensure_ascii=False) if kind == "lit" else f"/[{rest[0]}]{rng.choice(('', '', '+'))}/"
        if kind == "lit" and rest[0].isalpha() and rng.random() < 0.1:
            word += "i"
        if rng.random() < 0.3:
            name = f"T{len(named)}"
            known = next((n for n, definition in named.items() if definition == word), None)
            named[known or name] = word
            return known or name
        return word
    if kind == "ref":
        return str(rest[0])
    if kind == "seq":
        return "(" + " ".join(_lark(child, rng, named) for child in rest) + ")" if rest else "()"
    if kind == "alt":
        return "(" + " | ".join(_lark(child, rng, named) for child in rest) + ")"
    inner, least, most = rest
    text = _lark(inner, rng, named)
    if (least, most) == (0, 1):
        return f"[{text}]" if rng.random() < 0.5 else f"({text})?"
    if most is None:
        return f"({text})" + ("*" if least == 0 else "+")
    return f"({text})~{least}..{most}"


# --- texts ------------------------------------------------------------------------------------------------------------


def derived(rules: Rules, start: str, rng: random.Random, most: int = 40) -> str | None:
    """A random text of the grammar; None if none came of it."""
    out: list[str] = []
    left = [most]

    def write(node: Node, depth: int) -> bool:
        left[0] -= 1
        if left[0] < 0 or depth > 25:
            return False
        kind, *rest = node
        if kind == "lit":
            out.append(rest[0])
        elif kind == "set":
            out.append(rng.choice([c for c in rest[0] if c != "-"]))
        elif kind == "ref":
            return write(rules[rest[0]], depth + 1)
        elif kind == "seq":
            return all(write(child, depth + 1) for child in rest)
        elif kind == "alt":
            return write(rng.choice(rest), depth + 1)
        else:
            inner, least, bound = rest
            count = rng.randint(least, least + 2 if bound is None else bound)
            return all(write(inner, depth + 1) for _ in range(count))
        return True

    return "".join(out) if write(rules[start], 0) else None


def mutated(rng: random.Random, text: str, alphabet: str) -> str:
    """One or two characters inserted, replaced, dropped or swapped."""
    characters = list(text)
    for _ in range(rng.randint(1, 2)):
        place, way = rng.randint(0, len(characters)), rng.randrange(4)
        if way == 0 or place == len(characters):
            characters.insert(place, rng.choice(alphabet))
        elif way == 1:
            characters[place] = rng.choice(alphabet)
        elif way == 2:
            del characters[place]
        else:
            characters[place : place + 2] = characters[place : place + 2][::-1]
    return "".join(characters)


def recognise(rules: Rules, start: str, text: str) -> bool:
    """Whether the text is of the grammar: where each rule may end from each place, to a least fixpoint."""
    table: dict[tuple[str, int], set[int]] = {(start, 0): set()}

    def ends(node: Node, at: int) -> set[int]:
        kind, *rest = node
        if kind == "lit":
            return {at + len(rest[0])} if text.startswith(rest[0], at) else set()
        if kind == "set":
            return {at + 1} if at < len(text) and _in_set(text[at], rest[0]) else set()
        if kind == "ref":
            return table.setdefault((rest[0], at), set())
        if kind == "alt":
            return set().union(*(ends(child, at) for child in rest))
        if kind == "seq":
            places = {at}
            for child in rest:
                places = set().union(*(ends(child, place) for place in places))
            return places
        inner, least, most = rest
        places, found = {at}, {at} if least == 0 else set()
        for count in range(1, len(text) + least + 2 if most is None else most + 1):
            places = set().union(*(ends(inner, place) for place in places))
            before = len(found)
            found |= places if count >= least else set()
            if not places or (most is None and count > least and len(found) == before):
                break
        return found

    grown = True
    while grown:
        size = sum(map(len, table.values())) + len(table)
        for name, at in list(table):
            table[name, at] = table[name, at] | ends(rules[name], at)
        grown = sum(map(len, table.values())) + len(table) > size
    return len(text) in table[start, 0]


def _in_set(character: str, members: str) -> bool:
    if len(members) == 3 and members[1] == "-":
        return members[0] <= character <= members[2]
    return character in members
