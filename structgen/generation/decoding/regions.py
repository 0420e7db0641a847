"""Regions of an output: fields of its JSON with a temperature, or a budget of tokens, of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from structgen.core.json_places import JsonPlaces, OpenValue
from structgen.core.json_schema.regions import region_at
from structgen.core.json_spans import matches
from structgen.core.regions import Region
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import OptionsError
from structgen.generation.decoding.closing_budget import Closer, Speller, closing_tokens
from structgen.generation.sampling import SamplingParams

Regions: TypeAlias = tuple[tuple[str, Region], ...]
"""Patterns of JSON Pointers (``*`` for any index or name; the first that matches counts), or names of rules, with what
holds there."""


@dataclass(frozen=True)
class FieldRegions:
    """The regions of JSON: by the option ``regions``, and by what the schema says; the option has its way.

    Attributes:
        patterns: see ``Regions``.
        schema: the JSON Schema; None: it says nothing.
    """

    patterns: Regions = ()
    schema: Any = field(default=None, compare=False)

    def __bool__(self) -> bool:
        return bool(self.patterns) or self.schema is not None

    def find(self, pointer: str) -> Region | None:
        """What holds of the value at a JSON Pointer."""
        asked = next((region for pattern, region in self.patterns if matches(pattern, pointer)), None)
        written = None if self.schema is None else region_at(self.schema, pointer)
        return written if asked is None else asked.within(written)


NO_REGIONS = FieldRegions()


def checked_regions(regions: Any) -> Regions:
    """What the option ``regions`` asks for.

    Raises:
        OptionsError: it is no mapping from JSON Pointers or names of rules to regions.
    """
    if regions is None:
        return ()
    if not isinstance(regions, Mapping) or not all(isinstance(each, Region) for each in regions.values()):
        raise OptionsError(
            f"regions must be a dict like {{'/why': Region(max_tokens=60)}}, not {regions!r:.100}",
            option="regions",
            value=regions,
        )
    for name in regions:
        if not isinstance(name, str):
            raise OptionsError(
                f"regions names {name!r:.100}; expected a JSON Pointer such as '/why', or the name of a rule",
                option="regions",
                value=name,
            )
    return tuple(regions.items())


class RegionMeter(ABC):
    """Where one output stands in its regions. It is asked about each token before it is written, and told of each
    that is.

    Attributes:
        exceeded: parts that have more tokens than their limits, since nothing shorter could be written.
    """

    exceeded: int = 0

    def __init__(self, vocabulary: Vocabulary) -> None:
        tokens = closing_tokens(vocabulary)
        self._speller, self._is_spelled = Speller(tokens), tokens.single_bytes

    @property
    @abstractmethod
    def is_limited(self) -> bool:
        """Whether a part is open that has a limit."""

    @property
    @abstractmethod
    def temperature(self) -> float | None:
        """At which the next token is drawn; None: at the output's."""

    @abstractmethod
    def add(self, data: bytes, closer: Closer) -> None:
        """A token with these bytes was written; ``closer`` completes the output after it."""

    @abstractmethod
    def fits(self, data: bytes, closer: Closer) -> bool:
        """Whether the parts that are open can be closed within their limits after a token with these bytes, which the
        matcher has accepted."""

    @abstractmethod
    def closing(self, closer: Closer) -> list[int]:
        """The tokens that end a part with nothing to spare of its limit; none as long as others fit."""

    def params(self, params: SamplingParams) -> SamplingParams:
        """How the next token is drawn, where the output's are ``params``."""
        return params if self.temperature is None else replace(params, temperature=self.temperature)

    def _closes(self, closer: Closer, budget: int) -> bool:
        """Whether all that completes the output takes no more tokens, by a look at its length."""
        return self._is_spelled and closer.bound() <= budget


class _TokenCount:
    """Tokens of a value that is open: how many it has, and may have."""

    def __init__(self, limit: int) -> None:
        self.limit = self.most = limit
        self.count = 0


class FieldMeter(RegionMeter):
    """Where JSON stands in the regions of its fields.

    Args:
        regions: asked once for each value.
    """

    def __init__(self, regions: FieldRegions, vocabulary: Vocabulary) -> None:
        super().__init__(vocabulary)
        self._find = regions.find
        self._places = JsonPlaces()
        self._regions = dict[OpenValue, Region | None]()  # of those that are open
        self._used = dict[OpenValue, _TokenCount]()  # of those with limits
        self._enter(self._places.values)

    @property
    def is_limited(self) -> bool:
        return bool(self._used)

    @property
    def temperature(self) -> float | None:
        for value in reversed(self._places.values):
            region = self._regions[value]
            if region is not None and region.temperature is not None:
                return region.temperature
        return None

    def add(self, data: bytes, closer: Closer) -> None:
        touched = self._places.read(data)
        new = self._enter([*touched, *self._places.values])
        for value in touched:
            if (used := self._used.get(value)) is not None:
                used.count += 1
                self.exceeded += used.count == used.limit + 1
        self._regions = {each: self._regions[each] for each in self._places.values}
        self._used = {each: self._used[each] for each in self._places.values if each in self._used}
        if new & self._used.keys():  # what the least of its texts takes, it may have
            for key, part in self._parts(self._places, closer.completion()).items():
                if key in new:
                    used = self._used[key]
                    used.most = max(used.limit, used.count + len(self._speller.fewest(part) or ()))

    def fits(self, data: bytes, closer: Closer) -> bool:
        after, copies = self._places.copy()
        touched = set(after.read(data))
        left = {key: used.most - used.count - (copies[key] in touched) for key, used in self._used.items()}
        if min(left.values()) < 0:
            return False
        if self._closes(closer, min(left.values())):
            return True
        names = {each: key for key, each in copies.items()}
        parts = self._parts(after, closer.completion(), {copies[key] for key in left})
        return all(self._speller.fits(part, left[names[key]]) for key, part in parts.items())

    def closing(self, closer: Closer) -> list[int]:
        if self._closes(closer, min(used.most - used.count for used in self._used.values()) - 1):
            return []
        for key, part in self._parts(self._places, closer.completion()).items():
            tokens = self._speller.fewest(part) or []
            if tokens and self._used[key].count + len(tokens) >= self._used[key].most:
                return tokens
        return []

    def _enter(self, values: Iterable[OpenValue]) -> set[OpenValue]:
        """Look up the regions of values that were not open before."""
        new = {each for each in values if each not in self._regions}
        for value in new:
            region = self._regions[value] = self._find(value.pointer)
            if region is not None and region.max_tokens is not None:
                self._used[value] = _TokenCount(region.max_tokens)
        return new

    def _parts(self, places: JsonPlaces, completion: bytes, keys: Collection[OpenValue] = ()) -> dict[OpenValue, bytes]:
        """How much of the completion each value with a limit has; inner ones first."""
        keys = keys or self._used.keys()
        limited = [index for index, each in enumerate(places.values) if each in keys]
        if not limited:
            return {}
        ends = places.ends(completion, limited[0])
        return {places.values[index]: completion[: ends[index - limited[0]]] for index in reversed(limited)}
