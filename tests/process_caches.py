"""Caches that all grammars of a process share, emptied for tests that measure what one of them takes."""

from __future__ import annotations

from typing import Any

from structgen.core.constraints.cache import COMPILED
from structgen.core.engines.json.numbers import automaton as numbers
from structgen.core.engines.json.value_graph import conjunctions, shared
from structgen.core.regex.dfa_cache import DfaCache
from structgen.core.regex.pattern import pattern_dfa


def forget() -> None:
    """What earlier tests left in caches of grammars, value nodes and automata."""
    COMPILED.clear()
    automata: DfaCache[Any] = pattern_dfa.cache  # type: ignore[attr-defined]
    caches: tuple[Any, ...] = (conjunctions._known_strings, conjunctions._known_numbers, automata)
    for cache in caches:
        cache.memory_bytes = 0
    for entries in (*caches[:2], automata._entries, numbers.NUMBERS._entries):
        entries.clear()
    for counted in (conjunctions._known_strings, conjunctions._known_numbers):
        counted._counted.clear()
    shared.SHARED.clear()
