"""Indexes that were built last, for the process: schemas hold documents as text, and are read again and again."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping

from structgen.core.bounded_cache import BoundedCache
from structgen.core.text_sets.borders import Boundary
from structgen.core.text_sets.corpus import Corpus
from structgen.core.text_sets.folding import checked_folds

MAX_BYTES = 256 << 20
_BUILT: BoundedCache[Hashable, Corpus] = BoundedCache(MAX_BYTES, lambda corpus: 2 * corpus.memory_bytes)


def known_corpus(documents: Mapping[str, str], boundary: Boundary = "char", fold: Iterable[str] | bool = ()) -> Corpus:
    """The index of some documents, built if it is not there. Errors as `Corpus.build`."""
    try:
        key = boundary, checked_folds(fold), *documents.items()
        built = _BUILT.get(key)
    except TypeError:  # no texts, which the builder says
        return Corpus.build(documents, boundary, fold)
    return built or _BUILT.put(key, Corpus.build(documents, boundary, fold))


def remember(corpus: Corpus) -> None:
    """Let `known_corpus` give this index of its documents."""
    _BUILT.put((corpus.boundary_name, corpus.folds, *corpus.texts().items()), corpus)
