"""Automata that were made before, for functions that make them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from structgen.core.bounded_cache import BoundedCache

P = ParamSpec("P")
R = TypeVar("R")
MAX_BYTES = 16 << 20
"""Of one cache; an automaton has about a kilobyte a state."""
LEAST_BYTES = 1_024  # what an entry costs besides its automaton


LARGE = 1 << 20
"""Bytes of an automaton that is not held for ever: what is larger was made for one constraint, mostly a hostile one."""
_CACHES: list[BoundedCache[Any, Any]] = []  # as many as there are functions that keep automata


def automata_cache() -> BoundedCache[Any, Any]:
    """A cache of automata, of which `forget_large_automata` knows."""
    cache: BoundedCache[Any, Any] = BoundedCache(MAX_BYTES, automaton_bytes)
    _CACHES.append(cache)
    return cache


def forget_large_automata() -> None:
    """Forget the automata of more than ``LARGE`` bytes that functions have kept; they are made again when needed."""
    for cache in _CACHES:
        cache.forget(lambda automaton: automaton_bytes(automaton) > LARGE)


def automaton_bytes(value: Any) -> int:
    """Of an automaton of any kind, or of one with a remark."""
    dfa = value[0] if isinstance(value, tuple) else value
    return LEAST_BYTES + int(dfa.transitions.nbytes + dfa.accepting.nbytes)


def keeps_automata(function: Callable[P, R]) -> Callable[P, R]:
    """Remember what a function of hashable arguments makes, up to ``MAX_BYTES``; errors are not remembered.

    The cache is the function's attribute ``cache``.
    """
    cache: BoundedCache[Any, R] = automata_cache()

    @wraps(function)
    def remembering(*args: P.args, **options: P.kwargs) -> R:
        key = (args, *sorted(options.items()))
        kept = cache.get(key)
        return cache.put(key, function(*args, **options)) if kept is None else kept

    remembering.cache = cache  # type: ignore[attr-defined]
    return remembering
