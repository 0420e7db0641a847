"""Regions of an output: fields of its JSON with a temperature, or a budget of tokens, of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from structgen.core.json_places import JsonPlaces, OpenValue
from structgen.core.json_spans import matches
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import OptionsError
from structgen.generation.decoding.closing_budget import Speller, closing_tokens
from structgen.generation.sampling import SamplingParams
from structgen.options import check_count


@dataclass(frozen=True)
class Region:
    """How a part of an output is written.

    Attributes:
        temperature: in place of the output's; None: that of the part around it. A token is drawn as the innermost part
            says in which it begins.
        max_tokens: the most tokens that hold some of it; None: no limit of its own. It is closed in time.

    Raises:
        OptionsError: a value that it cannot have.
    """

    temperature: float | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        check_count("max_tokens", self.max_tokens, optional=True)
        if self.temperature is not None:
            SamplingParams(temperature=self.temperature)


Regions = tuple[tuple[str, Region], ...]
"""Patterns of JSON Pointers (``*`` for any index or name), and what holds there; the first that matches counts."""


def checked_regions(regions: Any) -> Regions:
    """What the option ``regions`` asks for.

    Raises:
        OptionsError: it is no mapping from JSON Pointers to regions.
    """
    if regions is None:
        return ()
    if not isinstance(regions, Mapping) or not all(isinstance(each, Region) for each in regions.values()):
        raise OptionsError(
            f"regions must be a dict like {{'/why': Region(max_tokens=60)}}, not {regions!r:.100}",
            option="regions",
            value=regions,
        )
    for pointer in regions:
        if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
            raise OptionsError(
                f"regions names {pointer!r:.100}, which is no JSON Pointer: that is '' or begins with '/'",
                option="regions",
                value=pointer,
            )
    return tuple(regions.items())


class _Used:
    """Tokens of a value that is open: how many it has, and may have."""

    def __init__(self, limit: int) -> None:
        self.limit = self.most = limit
        self.count = 0


class RegionMeter:
    """Where one output stands in its regions. It is asked about each token before it is written, and told of each
    that is.

    Attributes:
        exceeded: values that have more tokens than their limits, since nothing shorter could be written.
    """

    def __init__(self, regions: Regions, vocabulary: Vocabulary) -> None:
        self._regions, self._speller = regions, Speller(closing_tokens(vocabulary))
        self._places = JsonPlaces()
        self._used = dict[int, _Used]()  # by the id of a value that is open
        self._has_limits = any(region.max_tokens is not None for _, region in regions)
        self.exceeded = 0

    @property
    def is_limited(self) -> bool:
        """Whether a value is open that has a limit."""
        return bool(self._used)

    def params(self, params: SamplingParams) -> SamplingParams:
        """How the next token is drawn, where the output's are ``params``."""
        for value in reversed(self._places.values):
            temperature = self._region(value).temperature
            if temperature is not None:
                return replace(params, temperature=temperature)
        return params

    def add(self, data: bytes, completion: Callable[[], bytes]) -> None:
        """A token with these bytes was written; ``completion`` completes the output after it."""
        touched = self._places.read(data)
        if not self._has_limits:
            return
        entered = {id(each): each for each in (*touched, *self._places.values) if id(each) not in self._used}
        new = {key: _Used(limit) for key, each in entered.items() if (limit := self._region(each).max_tokens)}
        self._used |= new
        for value in touched:
            if (used := self._used.get(id(value))) is not None:
                used.count += 1
                self.exceeded += used.count == used.limit + 1
        still = {id(each): each for each in self._places.values}
        self._used = {key: used for key, used in self._used.items() if key in still}
        for key in new.keys() & still.keys():  # what the least of its texts takes, it may have
            lacking = self._lacking(self._places, completion())[key]
            self._used[key].most = max(self._used[key].limit, self._used[key].count + lacking)

    def fits(self, data: bytes, completion: bytes) -> bool:
        """Whether the values that are open can be closed within their limits after a token with these bytes."""
        after, copies = self._places.copy()
        touched = {id(each) for each in after.read(data)}
        lacking = self._lacking(after, completion)
        counts = {key: used.count + (id(copies[key]) in touched) for key, used in self._used.items()}
        return all(counts[key] + lacking.get(id(copies[key]), 0) <= used.most for key, used in self._used.items())

    def closing(self, completion: bytes) -> list[int]:
        """The tokens that end a value with nothing to spare of its limit; none as long as others fit."""
        for key, part in self._parts(self._places, completion).items():
            tokens = self._speller.fewest(part) or [] if key in self._used else []
            if tokens and self._used[key].count + len(tokens) >= self._used[key].most:
                return tokens
        return []

    def _lacking(self, places: JsonPlaces, completion: bytes) -> dict[int, int]:
        """The fewest tokens that end each open value, by its id."""
        parts = self._parts(places, completion)
        return {key: len(self._speller.fewest(part) or ()) for key, part in parts.items()}

    def _parts(self, places: JsonPlaces, completion: bytes) -> dict[int, bytes]:
        """How much of the completion each open value has, by its id; inner ones first."""
        after, copies = places.copy()
        ends = dict.fromkeys(copies, 0)
        keys = {id(each): key for key, each in copies.items()}
        for end, byte in enumerate(completion, start=1):
            held = [keys[id(each)] for each in after.read(bytes([byte])) if id(each) in keys]
            if not held:
                break
            ends.update(dict.fromkeys(held, end))
        return {key: completion[: ends[key]] for key in reversed(ends)}

    def _region(self, value: OpenValue) -> Region:
        return next((region for pattern, region in self._regions if matches(pattern, value.pointer)), NOWHERE)


NOWHERE = Region()
