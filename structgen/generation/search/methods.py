"""The methods of search, a table: all that anyone has to know of one stands in its file; here is its name."""

from __future__ import annotations

from structgen.generation.search.arithmetic import Arithmetic
from structgen.generation.search.attribute import Attribute
from structgen.generation.search.beam import Beam
from structgen.generation.search.best_first import BestFirst
from structgen.generation.search.cautious import Cautious
from structgen.generation.search.contrastive import Contrastive
from structgen.generation.search.diverse import Diverse
from structgen.generation.search.exact import Exact
from structgen.generation.search.foresight import Foresight
from structgen.generation.search.gumbel import Gumbel
from structgen.generation.search.method import Method
from structgen.generation.search.phrases import Phrases
from structgen.generation.search.planning import Planning
from structgen.generation.search.quality import Quality
from structgen.generation.search.rerank import BestOf, Rerank

METHODS: dict[str, type[Method]] = {
    "beam": Beam,
    "best_first": BestFirst,
    "exact": Exact,
    "gumbel": Gumbel,
    "arithmetic": Arithmetic,
    "diverse": Diverse,
    "phrases": Phrases,
    "cautious": Cautious,
    "attribute": Attribute,
    "rerank": Rerank,
    "best_of": BestOf,
    "quality": Quality,
    "planning": Planning,
    "contrastive": Contrastive,
    "foresight": Foresight,
}
