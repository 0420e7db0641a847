"""Captures as they are asked for: rules and terminals by name, and the names of what they capture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from structgen.errors import OptionsError
from structgen.options import near_or_known

CapturesOption: TypeAlias = "Iterable[str] | Mapping[str, str]"
"""Rules and terminals of a grammar whose texts are captured, by name, or these with other names for the captures."""


def checked_captures(captures: CapturesOption) -> tuple[tuple[str, str], ...]:
    """Rules and terminals with the names of their captures.

    Raises:
        OptionsError: anything else.
    """
    is_usable = isinstance(captures, Iterable) and not isinstance(captures, str | bytes)
    found = (
        tuple(captures.items() if isinstance(captures, Mapping) else ((c, c) for c in captures)) if is_usable else ()
    )
    if not is_usable or not all(isinstance(name, str) and name for pair in found for name in pair):
        raise OptionsError(
            "captures are names of rules and terminals, ('city', 'NUMBER'), or these with the names of what they "
            f"capture, {{'city': 'place'}}; not {captures!r:.100}"
        )
    return tuple(dict.fromkeys(found))


def capture_symbols(
    captures: Iterable[tuple[str, str]],
    rules: Mapping[str, int],
    terminals: Mapping[str, int],
    others: Mapping[str, str],
) -> tuple[tuple[int, str], ...]:
    """The symbols of a grammar that are captured, with names.

    Args:
        captures: names of rules and terminals, and names of captures.
        rules, terminals: the grammar's own, in numbers.
        others: why other names of the grammar's text cannot be captured.

    Raises:
        OptionsError: there is no such rule or terminal (the nearest is named), or it is one of the others.
    """
    found = []
    for symbol, name in captures:
        if symbol in rules:
            found.append((rules[symbol], name))
        elif symbol in terminals:
            found.append((~terminals[symbol], name))
        elif symbol in others:
            raise OptionsError(f"captures names {symbol!r}, which {others[symbol]}")
        else:
            hint = near_or_known(symbol, map(str, (*rules, *terminals)))
            raise OptionsError(f"captures names {symbol!r}, but the grammar has no such rule or terminal; {hint}")
    return tuple(dict.fromkeys(found))
