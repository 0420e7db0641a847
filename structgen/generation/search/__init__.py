"""Searching the outputs that a constraint allows: the likeliest, n different ones. See docs/decoding.md."""

from structgen.generation.search.guidance import Guidance, context_aware
from structgen.generation.search.methods import METHODS
from structgen.generation.search.results import SearchResult, SearchRun, SearchStats

__all__ = ["METHODS", "Guidance", "SearchResult", "SearchRun", "SearchStats", "context_aware"]
