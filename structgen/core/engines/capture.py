"""What captures are: named parts of an output. `structgen.core.engines.captures` finds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias


@dataclass(frozen=True, slots=True)
class Capture:
    """A named part of an output.

    Attributes:
        text: as the output shows it, special tokens by their names.
        value: of a part that is JSON its value (of an unfinished one as far as it goes), else the text.
        start, end: where it stands in the output's text, in characters.
        complete: whether it has ended, in the chosen reading of the text so far; always so in a finished output.
    """

    text: str
    value: Any
    start: int
    end: int
    complete: bool = True


Captures: TypeAlias = Mapping[str, Any]
"""Captures by name, all names that the grammar has: of a part that can occur several times a list of `Capture`, in the
order of the text; of others a `Capture`, None where it does not occur."""


class LazyCaptures(Mapping[str, Any]):
    """Captures that are looked for when they are first asked for."""

    def __init__(self, find: Callable[[], Captures]) -> None:
        self._find: Callable[[], Captures] | None = find
        self._found: Captures = {}

    def _all(self) -> Captures:
        if self._find is not None:
            self._found, self._find = self._find(), None
        return self._found

    def __getitem__(self, name: str) -> Any:
        return self._all()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def __repr__(self) -> str:
        return repr(self._all())

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._all(),)
