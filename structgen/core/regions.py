"""Regions: parts of an output that have a temperature, or a budget of tokens, of their own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.errors import OptionsError
from structgen.options import check_count, refuse_name

TERMS = ("max_tokens", "temperature")
"""The names that a region has in requests, in schemas (under ``x-structgen``) and in grammars."""


@dataclass(frozen=True)
class Region:
    """How a part of an output is written: the value of a field, or the text of a grammar's rule.

    In a type it marks a field: ``Annotated[str, Region(max_tokens=60)]``.

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
        value = self.temperature
        is_number = isinstance(value, Real) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= value < math.inf):
            raise OptionsError(
                f"temperature of a region must be a number of at least 0, not {value!r:.100}",
                option="temperature",
                value=value,
            )

    def within(self, other: Region | None) -> Region:
        """This one, with what it leaves open as another has it."""
        if other is None:
            return self
        temperature = other.temperature if self.temperature is None else self.temperature
        return replace(self, temperature=temperature, max_tokens=self.max_tokens or other.max_tokens)

    def keyword(self) -> dict[str, Any]:
        """What a schema's ``x-structgen`` says of it."""
        return {name: value for name in TERMS if (value := getattr(self, name)) is not None}

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """The JSON Schema of a type that is annotated with it (pydantic)."""
        core_schema = dict(handler(schema))
        return {**core_schema, "x-structgen": {**core_schema.get("x-structgen", {}), **self.keyword()}}


def region_of(terms: Any) -> Region:
    """A region as data: ``{"max_tokens": 60, "temperature": 1.0}``.

    Raises:
        OptionsError: no mapping, another name, or a value that it cannot have.
    """
    if not isinstance(terms, Mapping):
        raise OptionsError(f'a region is written {{"max_tokens": 60}}, not {terms!r:.100}', option="regions")
    for name in terms:
        if name not in TERMS:
            refuse_name(name, TERMS)
    return Region(**terms)


@dataclass(frozen=True, slots=True)
class OpenRegion:
    """A region in which a text ends.

    Attributes:
        region: its terms; the same object for each use of a rule.
        size: bytes of the text that are in it so far.
        bound: bytes of a text that ends it, or more.
    """

    region: Region
    size: int
    bound: int


@dataclass(frozen=True, slots=True)
class PartialParse:
    """One way to read the text so far.

    Attributes:
        regions: in which it ends, outer ones first.
        bound: bytes of a text that completes it, or more; 0: it may be complete.
        next: bool[256], the bytes that it can go on with.
        is_fresh: whether it begins where the text ends, so that it says nothing of the text.
    """

    regions: tuple[OpenRegion, ...]
    bound: int
    next: npt.NDArray[np.bool_]
    is_fresh: bool
