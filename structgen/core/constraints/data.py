"""Constraints from data, as values: one of many names, a quote of documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from structgen.core.compilers import compile_names, compile_quotes
from structgen.core.constraints.text import TextConstraint
from structgen.core.engines.protocols import Grammar
from structgen.core.text_sets.borders import Boundary
from structgen.core.text_sets.corpus import MAX_PLACES, Corpus, Quote
from structgen.core.text_sets.names import NameSet
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError
from structgen.options import check_count

LISTED = 50
"""Names up to which an instruction shows all."""


@dataclass(frozen=True)
class NamesConstraint(TextConstraint):
    """One of some names, of which there may be millions. Make it with ``one_of``."""

    names: NameSet

    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        return compile_names(self.names, vocabulary)

    def instruction(self) -> str:
        """Asks for one of the names, and lists them where they are few."""
        if len(self.names) <= LISTED:
            return "Answer with exactly one of these names:\n" + "\n".join(self.names)
        return f"Answer with exactly one of {len(self.names):,} names, which are not listed here."


@dataclass(frozen=True)
class QuotesConstraint(TextConstraint):
    """A part of some documents, word for word. Make it with ``substring_of``. Its values are `Quote`.

    Attributes:
        corpus: the documents.
        min_chars, max_chars: code points of the quote; None: no limit.
        max_places: places that a value lists.
    """

    corpus: Corpus
    min_chars: int = 1
    max_chars: int | None = None
    max_places: int = field(default=MAX_PLACES, compare=False)

    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        return compile_quotes(self.corpus, vocabulary, self.min_chars, self.max_chars)

    def parse(self, text: str) -> Quote:
        """The text with its places.

        Raises:
            GenerationError: it stands in none of the documents.
        """
        quote = self.corpus.quote(text, self.max_places)
        if not quote.occurrences:
            raise GenerationError(f"the documents do not say {text!r:.200}", text=text)
        return quote

    def instruction(self) -> str:
        """Asks for a quote. The documents are not shown: the prompt does that."""
        return "Answer with a passage that is quoted word for word."


def one_of(names: NameSet | Iterable[str]) -> NamesConstraint:
    """One of some names: a set that was built or opened, or names that it is built of.

    Raises:
        ConstraintError: as `NameSet.build`.
    """
    return NamesConstraint(names if isinstance(names, NameSet) else NameSet.build(names))


def substring_of(
    documents: Corpus | str | Mapping[str, str],
    *,
    min_chars: int = 1,
    max_chars: int | None = None,
    boundary: Boundary = "char",
    fold: Iterable[str] | bool = (),
    max_places: int = MAX_PLACES,
) -> QuotesConstraint:
    """A quote: a part of some documents, word for word. Its value is a `Quote`, which says where it stands.

    Args:
        documents: an index that was built or opened, or a text, or texts by name, that it is built of.
        min_chars, max_chars: code points that the quote has; None: no limit.
        boundary, fold: where it begins and ends, and how documents are folded before, see `Corpus.build`; an index has
            its own.
        max_places: places that its value lists.

    Raises:
        ConstraintError: as `Corpus.build`.
        OptionsError: numbers that are no counts or exclude each other, or another boundary.
    """
    check_count("min_chars", min_chars, 0)
    check_count("max_places", max_places, 0)
    if max_chars is not None:
        check_count("max_chars", max_chars, max(min_chars, 1))
    corpus = documents if isinstance(documents, Corpus) else Corpus.build(documents, boundary, fold)
    return QuotesConstraint(corpus, min_chars, max_chars, max_places)
