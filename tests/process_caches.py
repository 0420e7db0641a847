"""Caches that all grammars of a process share, emptied for tests that measure what one of them takes."""

from __future__ import annotations

from typing import Any

from structgen.core.bounded_cache import BoundedCache
from structgen.core.constraints.cache import COMPILED
from structgen.core.engines.json.numbers import automaton as numbers
from structgen.core.engines.json.value_graph import conjunctions, shared
from structgen.core.regex.pattern import pattern_dfa


def forget() -> None:
    """What earlier tests left in caches of grammars, value nodes and automata."""
    COMPILED.clear()
    automata: BoundedCache[Any, Any] = pattern_dfa.cache  # type: ignore[attr-defined]
    automata.forget()
    numbers.NUMBERS.forget()
    conjunctions._known_strings.forget()
    conjunctions._known_numbers.forget()
    shared.SHARED.clear()
    shared.ANSWERED.clear()
