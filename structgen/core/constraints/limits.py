"""What a constraint may ask for: its size, looked at before anything is made of it, and what compiling it may take."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any, TypeAlias

from structgen.errors import TooComplexError

COMPOSED = 10
"""How many times the values of one constraint those of a composed one may be."""


@dataclass(frozen=True)
class CompileLimits:
    """What a constraint may ask for.

    Attributes:
        text_bytes: characters of all its texts and names together, UTF-8 encoded.
        depth: nesting of its values.
        nodes: values in it; of one that is composed of others, in each, and ten times as many in all.
        pattern_length: code points of one regular expression.
        seconds: of processor time for compiling it, a first mask and the shortest text.
        memory_bytes: resident memory of the process in which that is tried.
    """

    text_bytes: int = 256 << 10
    depth: int = 64
    nodes: int = 20_000
    pattern_length: int = 2_000
    seconds: float = 10.0
    memory_bytes: int | None = 2 << 30

    @cached_property
    def whole(self) -> CompileLimits:
        """What a constraint may ask for that is composed of others, if it is looked at as one."""
        return replace(self, nodes=COMPOSED * self.nodes)


def check_size(constraint: Any, limits: CompileLimits) -> None:
    """Raise TooComplexError where a constraint is larger than allowed. O(its size), at most the limits.

    Of one that is composed of others (tags with their schemas, a sequence), each may have as many values as one alone.
    """
    parts: list[tuple[Any, int]] = [(constraint, 0)]
    text = total = 0
    while parts:
        part, depth = parts.pop()
        waiting: list[_Value] = [(part, depth, False)]
        nodes = 0
        while waiting:
            value, depth, is_pattern = waiting.pop()
            if value is not part and is_dataclass(value) and not isinstance(value, type):
                parts.append((value, depth))
                continue
            nodes += 1
            if isinstance(value, str):
                text += len(value.encode(errors="replace"))
            else:
                waiting += islice(_inner(value, depth, is_pattern), limits.nodes + 1)
            _check_counts(nodes + len(waiting), total + nodes, text, depth, limits)
            if is_pattern and isinstance(value, str) and len(value) > limits.pattern_length:
                raise _too_large(limits.pattern_length, "pattern_length", "characters in one pattern")
        total += nodes


def _check_counts(nodes: int, total: int, text: int, depth: int, limits: CompileLimits) -> None:
    if nodes > limits.nodes or total > limits.whole.nodes:
        most = limits.nodes if nodes > limits.nodes else limits.whole.nodes
        raise _too_large(most, "nodes", "values")
    if depth > limits.depth:
        raise _too_large(limits.depth, "depth", "levels of nesting")
    if text > limits.text_bytes:
        raise _too_large(limits.text_bytes, "text_bytes", "bytes of text")


def _too_large(most: int, budget: str, what: str) -> TooComplexError:
    return TooComplexError(f"the constraint has more than {most:,} {what}; simplify it", limit=most, budget=budget)


_Value: TypeAlias = "tuple[Any, int, bool]"
"""Something in a constraint, its depth, and whether it is a regular expression if it is a text."""


def _inner(value: Any, depth: int, is_pattern: bool) -> Iterable[_Value]:
    """What is directly inside a value."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key, depth + 1, is_pattern
            yield inner, depth + 1, key == "pattern"
            if key == "patternProperties" and isinstance(inner, Mapping):
                yield from ((name, depth + 2, True) for name in inner)
    elif isinstance(value, list | tuple):
        yield from ((inner, depth + 1, False) for inner in value)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.name != "_key":
                yield getattr(value, field.name), depth, field.name == "pattern"
