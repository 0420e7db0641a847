"""Captures as they are asked for: rules and terminals by name, and the names of what they capture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from structgen.core.regions import Region
from structgen.errors import OptionsError
from structgen.options import near_or_known

CapturesOption: TypeAlias = "Iterable[str | tuple[str, str | Region]] | Mapping[str, str | Region]"
"""Rules and terminals of a grammar whose texts are captured, by name, or these with other names for the captures, or
with how their texts are written."""
Captured: TypeAlias = tuple[tuple[str, str | Region], ...]
"""Rules and terminals, with the names of their captures, or how they are written."""


def checked_captures(captures: CapturesOption) -> Captured:
    """Rules and terminals with the names of their captures.

    Raises:
        OptionsError: anything else.
    """
    is_usable = isinstance(captures, Iterable) and not isinstance(captures, str | bytes)
    pairs = captures.items() if isinstance(captures, Mapping) else captures if is_usable else ()
    result = tuple(pair if isinstance(pair, tuple) and len(pair) == 2 else (pair, pair) for pair in pairs)
    if not is_usable or not all(
        isinstance(rule, str) and rule and isinstance(name, str | Region) and name for rule, name in result
    ):
        raise OptionsError(
            "captures are names of rules and terminals, ('city', 'NUMBER'), or these with the names of what they "
            f"capture, {{'city': 'place'}}; not {captures!r:.100}"
        )
    return tuple(dict.fromkeys(result))


def capture_symbols(
    captures: Captured,
    rules: Mapping[str, int],
    terminals: Mapping[str, int],
    others: Mapping[str, str],
) -> tuple[tuple[int, str | Region], ...]:
    """The symbols of a grammar that are captured, with names.

    Args:
        captures: names of rules and terminals, and names of captures.
        rules, terminals: the grammar's own, in numbers.
        others: why other names of the grammar's text cannot be captured.

    Raises:
        OptionsError: there is no such rule or terminal (the nearest is named), or it is one of the others.
    """
    symbols: list[tuple[int, str | Region]] = []
    for symbol, name in captures:
        if symbol in rules:
            symbols.append((rules[symbol], name))
        elif symbol in terminals:
            symbols.append((~terminals[symbol], name))
        elif symbol in others:
            raise OptionsError(f"{_option(name)} names {symbol!r}, which {others[symbol]}")
        else:
            hint = near_or_known(symbol, map(str, (*rules, *terminals)))
            raise OptionsError(
                f"{_option(name)} names {symbol!r}, but the grammar has no such rule or terminal; {hint}"
            )
    return tuple(dict.fromkeys(symbols))


def _option(name: str | Region) -> str:
    """What names a rule: the option for captures, or for regions."""
    return "regions" if isinstance(name, Region) else "captures"
