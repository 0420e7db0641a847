"""The methods of search, a table: all that anyone has to know of one stands in its file; here is its name."""

from __future__ import annotations

from structgen.generation.search.arithmetic import Arithmetic
from structgen.generation.search.beam import Beam
from structgen.generation.search.best_first import BestFirst
from structgen.generation.search.diverse import Diverse
from structgen.generation.search.exact import Exact
from structgen.generation.search.gumbel import Gumbel
from structgen.generation.search.method import Method
from structgen.generation.search.phrases import Phrases

METHODS: dict[str, type[Method]] = {
    "beam": Beam,
    "best_first": BestFirst,
    "exact": Exact,
    "gumbel": Gumbel,
    "arithmetic": Arithmetic,
    "diverse": Diverse,
    "phrases": Phrases,
}
