"""Searching the outputs that a constraint allows: the likeliest, n different ones. See docs/decoding.md."""

from structgen.generation.search.guidance import Guidance, context_aware
from structgen.generation.search.methods import METHODS
from structgen.generation.search.results import RankedValue, Ranking, SearchResult, SearchRun, SearchStats

__all__ = [
    "METHODS", "Guidance", "RankedValue", "Ranking", "SearchResult", "SearchRun", "SearchStats", "context_aware",
]  # fmt: skip
