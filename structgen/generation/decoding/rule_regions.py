"""Regions of a grammar: the texts of rules that have a temperature, or a budget of tokens, of their own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import TypeAlias

import numpy as np

from structgen.core.engines.protocols import Matcher
from structgen.core.regions import OpenRegion, PartialParse
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.closing_budget import Closer
from structgen.generation.decoding.regions import FieldMeter, FieldRegions, RegionMeter

Use: TypeAlias = tuple[int, int]
"""A use of a rule: which region it is, and where it begins in the text."""


class RuleMeter(RegionMeter):
    """Where a text stands in the regions of its grammar. What a token does is seen in what its matcher reads.

    Where a text can be read in several ways, the limits hold in all of them.
    """

    def __init__(self, matcher: Matcher, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._matcher = matcher
        self._parses: Sequence[PartialParse] = matcher.partial_parses() or ()
        self._ends: list[int] = []  # of the tokens
        self._most = dict[Use, int]()  # tokens that parts may have, as their shortest texts have more than their limits
        self._over = set[Use]()

    @property
    def is_limited(self) -> bool:
        return any(each.region.max_tokens is not None for parse in self._parses for each in parse.regions)

    @property
    def temperature(self) -> float | None:
        of_regions = (each.region.temperature for each in reversed(open_regions(self._parses)))
        return next((temperature for temperature in of_regions if temperature is not None), None)

    def add(self, data: bytes, closer: Closer) -> None:
        before = {use for parse in self._parses for use in self._uses(parse)}
        self._ends.append(self._size + len(data))
        self._parses = self._matcher.partial_parses() or ()
        uses = [self._uses(parse) for parse in self._parses]
        for use in set().union(*uses) - before:
            self._note_least(use, closer)
        self._most = {use: most for use, most in self._most.items() if any(use in open_uses for open_uses in uses)}
        self._over |= {use for each in uses for use, part in each.items() if self._count(use[1]) > _own_limit(part)}
        self.exceeded = len(self._over)

    def fits(self, data: bytes, closer: Closer) -> bool:
        if any(parse.next[data[0]] and not self._may_go_on(parse) for parse in self._parses):
            return False
        parses = self._matcher.partial_parses() or ()
        if self._matcher.is_accepting():
            return True
        self._ends.append(self._size + len(data))
        try:
            return all(self._keeps(parse, closer) for parse in parses)
        finally:
            self._ends.pop()

    def closing(self, closer: Closer) -> list[int]:
        if self._matcher.is_accepting():
            return []
        for parse in self._parses:
            for use, part in self._uses(parse).items():
                left = self._limit(use, part) - self._count(use[1])
                if self._is_spelled and part.bound < left:
                    continue
                tokens = self._speller.fewest(self._part(use, closer.completion())) or []
                if tokens and len(tokens) >= left:
                    return tokens
        return []

    @property
    def _size(self) -> int:
        """Bytes of the text."""
        return self._ends[-1] if self._ends else 0

    def _count(self, start: int) -> int:
        """Tokens that hold text from an offset on."""
        return len(self._ends) - bisect_right(self._ends, start)

    def _uses(self, parse: PartialParse) -> dict[Use, OpenRegion]:
        """The parts with limits in which a parse stands, inner ones first; those that have begun."""
        return {
            (id(each.region), self._size - each.size): each
            for each in reversed(parse.regions)
            if each.region.max_tokens is not None and each.size
        }

    def _limit(self, use: Use, part: OpenRegion) -> int:
        return self._most.get(use, _own_limit(part))

    def _may_go_on(self, parse: PartialParse) -> bool:
        """Whether its parts may have another token."""
        return all(self._count(use[1]) < self._limit(use, part) for use, part in self._uses(parse).items())

    def _keeps(self, parse: PartialParse, closer: Closer) -> bool:
        """Whether its parts can be closed within their limits. A part that has just begun may have what it takes."""
        for use, part in self._uses(parse).items():
            left = self._limit(use, part) - self._count(use[1])
            if left < 0 or not (self._is_spelled and part.bound <= left):
                is_new = self._count(use[1]) == 1
                if not is_new and (left < 0 or not self._speller.fits(self._part(use, closer.completion()), left)):
                    return False
        return True

    def _note_least(self, use: Use, closer: Closer) -> None:
        """A part has begun: what the least of its texts takes, it may have."""
        parts = [uses[use] for uses in map(self._uses, self._parses) if use in uses]
        limit, count = min(map(_own_limit, parts)), self._count(use[1])
        if not self._is_spelled or max(part.bound for part in parts) > limit - count:
            least = len(self._speller.fewest(self._part(use, closer.completion())) or ())
            if count + least > limit:
                self._most[use] = count + least

    def _part(self, use: Use, completion: bytes) -> bytes:
        """How much of the completion a part has: up to where it may end. A step of a matcher for each byte."""
        probe, size = self._matcher.copy(), self._size
        for end in range(len(completion)):
            if not any(_holds(parse, use, size + end) for parse in probe.partial_parses() or ()):
                return completion[:end]
            probe.accept_bytes(completion[end : end + 1])
        return completion


def region_meter(regions: FieldRegions, matcher: Matcher | None, vocabulary: Vocabulary) -> RegionMeter | None:
    """What follows an output in its regions; None where it has none."""
    if matcher is not None and matcher.partial_parses() is not None:
        return RuleMeter(matcher, vocabulary)
    return FieldMeter(regions, vocabulary) if regions else None


def open_regions(parses: Iterable[PartialParse]) -> tuple[OpenRegion, ...]:
    """The regions in which the next token begins, outer ones first: those that it may go on with, unless a parse
    around them takes what they do not."""
    possible = [parse for parse in parses if parse.next.any()]
    old = [parse for parse in possible if not parse.is_fresh] or possible
    inside = max(old, key=_depth, default=None)
    if inside is not None and not inside.regions:
        inside = max(possible, key=_depth)
    return () if inside is None else tuple(takewhile(lambda each: _is_open(each, possible, old), inside.regions))


def _depth(parse: PartialParse) -> int:
    return len(parse.regions)


def _is_open(region: OpenRegion, possible: Sequence[PartialParse], old: Sequence[PartialParse]) -> bool:
    """Whether what comes next may be in a region, whatever it is."""
    inside = [any(each.region is region.region for each in parse.regions) for parse in possible]
    within = np.logical_or.reduce([r.next for r, is_inside in zip(possible, inside, strict=True) if is_inside])
    around = [r.next for r in old if not any(each.region is region.region for each in r.regions)]
    return not any((one & ~within).any() for one in around)


def _holds(parse: PartialParse, use: Use, size: int) -> bool:
    return any((id(each.region), size - each.size) == use for each in parse.regions)


def _own_limit(part: OpenRegion) -> int:
    assert part.region.max_tokens is not None
    return part.region.max_tokens
