"""All derivations of short texts, and the one that the rule of `structgen.core.engines.captures` takes among them.

By definition, on the grammar as written: derivations are listed one by one, and the best is found by comparing two at
a time from the top and from the left. Nothing of this is shared with the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

MAX_STEPS = 5_000
OPEN = "open"
"""The end of a part that goes on behind the end of the text."""


@dataclass(frozen=True)
class Written:
    """A grammar as written: rules (names in lower case) as lists of alternatives; terminals as expressions.

    Attributes:
        prefixes: by terminal, an expression for all beginnings of its texts that are not whole, or can go on.
        blank: whether single blanks between terminals are ignored.
    """

    rules: dict[str, list[list[str]]]
    terminals: dict[str, str]
    prefixes: dict[str, str]
    blank: bool = False


# A part: (symbol, where it starts to be read, where its text begins, its end or OPEN, its parts or None for a terminal)
Part = tuple[str, int, int, Any, Any]


class TooManyDerivations(Exception):
    """The text has more than can be listed."""


class Derivations:
    """Lists the derivations of one text."""

    def __init__(self, grammar: Written, text: str) -> None:
        self.grammar, self.text = grammar, text
        self.steps = 0

    def starts(self, at: int) -> list[int]:
        """Where a terminal can begin."""
        found = [at]
        while self.grammar.blank and self.text[found[-1] : found[-1] + 1] == " ":
            found.append(found[-1] + 1)
        return found

    def whole(self, symbol: str, at: int, around: frozenset[Any] = frozenset()) -> Iterator[Part]:
        """Parts that begin at a place and have ended."""
        self.count()
        if symbol in self.grammar.terminals:
            expression = self.grammar.terminals[symbol]
            for end in range(at + 1, len(self.text) + 1):
                for start in self.starts(at):
                    if start < end and re.fullmatch(expression, self.text[start:end]):
                        yield symbol, at, start, end, None
                        break
            return
        for end in range(at, len(self.text) + 1):
            if (symbol, at, end) not in around:
                for alternative in self.grammar.rules[symbol]:
                    for parts in self.sequences(alternative, at, end, around | {(symbol, at, end)}):
                        yield symbol, at, at, end, parts

    def sequences(self, symbols: list[str], at: int, end: int, around: frozenset[Any]) -> Iterator[tuple[Part, ...]]:
        """All ways to make a text of some symbols."""
        if not symbols:
            if at == end:
                yield ()
            return
        for part in self.whole(symbols[0], at, around):
            if part[3] <= end:
                for rest in self.sequences(symbols[1:], part[3], end, around):
                    yield part, *rest

    def open(self, symbol: str, at: int, around: frozenset[Any] = frozenset()) -> Iterator[tuple[bool, Part]]:
        """Parts that begin before the end of the text and go on, and whether the text ends inside a terminal."""
        self.count()
        if symbol in self.grammar.terminals:
            for start in self.starts(at):
                if start < len(self.text) and re.fullmatch(self.grammar.prefixes[symbol], self.text[start:]):
                    yield True, (symbol, at, start, OPEN, None)
                    return
            return
        if (symbol, at, OPEN) in around:
            return
        for alternative in self.grammar.rules[symbol]:
            for is_inside, parts in self.open_sequences(alternative, at, around | {(symbol, at, OPEN)}):
                yield is_inside, (symbol, at, at, OPEN, parts)

    def open_sequences(self, symbols: list[str], at: int, around: frozenset[Any]) -> Iterator[tuple[bool, Any]]:
        if not symbols:
            return
        if at == len(self.text) and any(self.has_text(symbol) for symbol in symbols):
            yield False, (("", at, at, OPEN, None),)  # the next was not begun
            return
        if symbols[0] in self.grammar.terminals and self.starts(at)[-1] == len(self.text):
            yield False, ((symbols[0], at, len(self.text), OPEN, ()),)  # nor here, behind what is ignored
        for is_inside, part in self.open(symbols[0], at, around):
            yield is_inside, (part,)
        for part in self.whole(symbols[0], at, around):
            for is_inside, rest in self.open_sequences(symbols[1:], part[3], around):
                yield is_inside, (part, *rest)

    def count(self) -> None:
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise TooManyDerivations

    def has_text(self, symbol: str, around: frozenset[str] = frozenset()) -> bool:
        """Whether a symbol stands for any text but the empty one."""
        if symbol in self.grammar.terminals or symbol in around:
            return symbol not in around
        return any(self.has_text(s, around | {symbol}) for own in self.grammar.rules[symbol] for s in own)

    # --- the best ---
    def best(self, *, is_finished: bool) -> Part | None:
        """The derivation that is taken; None if there is none."""
        if not is_finished:
            found = list(self.open("start", 0))
            inside = [part for is_inside, part in found if is_inside] or [part for _, part in found]
            if inside:
                return min(inside, key=cmp_to_key(self.compare))
        ends = [end for end in range(len(self.text) + 1) if self.starts(end)[-1] == len(self.text)]
        whole = [part for part in self.whole("start", 0) if part[3] in ends]
        last = max((part[3] for part in whole), default=None)
        return min((part for part in whole if part[3] == last), key=cmp_to_key(self.compare), default=None)

    def compare(self, one: Part, other: Part) -> int:
        """Below 0 if the first of two derivations of the same rule over the same text is taken."""
        mine, theirs = one[4], other[4]
        if not isinstance(mine, tuple) or not isinstance(theirs, tuple):
            return 0
        for place in range(max(len(mine), len(theirs))):
            a, b = mine[place : place + 1], theirs[place : place + 1]
            unbegun = [part for part in (*a, *b) if part[0] == ""]
            if unbegun:
                break  # nothing is left to be compared
            if [part[0] for part in a] != [part[0] for part in b]:
                return self.written(one, place, a) - self.written(one, place, b)
            if self.length(a[0]) != self.length(b[0]):
                return -1 if self.length(a[0]) > self.length(b[0]) else 1
        for a, b in zip(mine, theirs, strict=False):
            found = self.compare(a, b)
            if found:
                return found
        return 0

    def length(self, part: Part) -> int:
        """Open parts are longest, those that were not begun behind ignored text shortest."""
        if part[3] != OPEN:
            return int(part[3])
        return -1 if part[0] in self.grammar.terminals and part[4] == () else len(self.text) + 1

    def written(self, part: Part, place: int, following: tuple[Part, ...]) -> int:
        """The first alternative that begins so and goes on with this, or ends."""
        begin = [p[0] for p in part[4][:place]]
        for number, alternative in enumerate(self.grammar.rules[part[0]]):
            if alternative[:place] == begin:
                is_end = not following and len(alternative) == place
                if is_end or (following and alternative[place : place + 1] == [following[0][0]]):
                    return number
        raise AssertionError("not as written")


def captured(part: Part, names: set[str], size: int) -> list[tuple[str, int, int, bool]]:
    """Captures of a derivation: name, begin, end, complete; outer ones first."""
    found = []

    def leaves(node: Part) -> list[tuple[int, int]]:
        if node[0] == "" or (node[4] == () and node[3] == OPEN):
            return []
        if node[4] is None:
            return [(node[2], size if node[3] == OPEN else node[3])]
        return [leaf for inner in node[4] for leaf in leaves(inner)]

    def walk(node: Part) -> None:
        own = leaves(node)
        if node[0] in names and (own or node[3] != OPEN):
            begin, end = (own[0][0], own[-1][1]) if own else (node[1], node[1])
            found.append((node[0], begin, end, node[3] != OPEN))
        for inner in node[4] or ():
            walk(inner)

    walk(part)
    return found
