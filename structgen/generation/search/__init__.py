"""Searching the outputs that a constraint allows: the likeliest, n different ones. See docs/decoding.md."""

from structgen.generation.search.methods import METHODS
from structgen.generation.search.results import RankedValue, Ranking, SearchResult, SearchRun, SearchStats

__all__ = ["METHODS", "RankedValue", "Ranking", "SearchResult", "SearchRun", "SearchStats"]
