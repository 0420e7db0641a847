"""What is written into a type: ``Annotated[str, QuoteOf(letter)]``, ``Annotated[str, OneOf(cities)]``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from structgen.core.json_schema.keyword import X_STRUCTGEN
from structgen.core.json_schema.keywords_data import (
    BOUNDARY,
    FOLD,
    ONE_OF,
    QUOTE_OF,
    written_documents,
    written_names,
)
from structgen.core.text_sets.borders import Boundary, boundary_number
from structgen.core.text_sets.corpus import Corpus, Quote, known_corpus
from structgen.core.text_sets.folding import checked_folds
from structgen.core.text_sets.names import NameSet
from structgen.core.text_sets.references import BY_REFERENCE, SourceReference
from structgen.errors import ConstraintError


class DataMark:
    """What both have in common: a core schema whose strings are checked, and the keyword in its JSON Schema.

    Attributes:
        keyword: the keyword's value.
    """

    keyword: dict[str, Any]

    def check(self, text: str) -> str:
        """The text as the type has it.

        Raises:
            ValueError: it is no such text.
        """
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """The schema of the annotated type, whose strings are checked."""
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def _checked(self, value: Any) -> Any:
        return self.check(value) if isinstance(value, str) else value  # of ``str | None`` the other

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """The JSON Schema of the annotated type, with the keyword: as it can be sent; for `derive`, by reference. What
        other marks say of it holds as well.

        Raises:
            ConstraintError: it is of no strings.
        """
        described = dict(handler(schema))
        if isinstance(kind := described.get("type"), str) and kind != "string":
            raise ConstraintError(
                f"{type(self).__name__} marks strings, and this type's JSON is of type {kind!r}; mark the strings in "
                "it: list[Annotated[str, ...]]"
            )
        said = self.referring() if BY_REFERENCE.get() else self.keyword
        words = described.get(X_STRUCTGEN, {})
        if said.keys().isdisjoint(words):
            return {**described, X_STRUCTGEN: {**words, **said}}
        return {**described, "allOf": [*described.get("allOf", ()), {X_STRUCTGEN: said}]}

    def referring(self) -> dict[str, Any]:
        """The keyword, whose documents or names are in a reference."""
        raise NotImplementedError


class QuoteOf(DataMark):
    """Marks a string as a part of some documents, word for word. Its values are `Quote`, which say where they stand.

    Args:
        documents: a text, texts by name or a `Corpus`. `named` says instead that they come with the request.
        boundary, fold: where quotes begin and end, and how documents are folded, see `Corpus.build`; an index has its
            own.

    Raises:
        ConstraintError, OptionsError: as `Corpus.build`.
    """

    def __init__(
        self,
        documents: str | Mapping[str, str] | Corpus,
        boundary: Boundary = "char",
        fold: Iterable[str] | bool = (),
    ) -> None:
        self.keyword = {**_borders(boundary, fold), **written_documents(documents)}
        self.corpus: Corpus | None = self._index

    @classmethod
    def named(cls, name: str, boundary: Boundary = "char", fold: Iterable[str] | bool = ()) -> QuoteOf:
        """A quote of documents that come with the request: ``sources={name: ...}``; "prompt" is that itself."""
        mark = cls.__new__(cls)
        mark.keyword, mark.corpus = {QUOTE_OF: name, **_borders(boundary, fold)}, None
        return mark

    @cached_property
    def _index(self) -> Corpus:
        source = self.keyword[QUOTE_OF]
        documents = source.get("documents") or {"": source["text"]}
        return known_corpus(documents, self.keyword[BOUNDARY], self.keyword.get(FOLD, ()))

    def referring(self) -> dict[str, Any]:
        return self.keyword if self.corpus is None else {**self.keyword, QUOTE_OF: SourceReference(self.corpus)}

    def check(self, text: str) -> str:
        """The quote with its places; of documents that are not known yet, the text."""
        if self.corpus is None:
            return text
        quote = self.corpus.quote(text)
        if not quote.occurrences:
            raise ValueError(f"the documents do not say {text!r:.200}")
        return quote


def _borders(boundary: Boundary, fold: Iterable[str] | bool) -> dict[str, Any]:
    """What the keyword says of borders and folding."""
    boundary_number(boundary)
    folds = checked_folds(fold)
    return {BOUNDARY: boundary, **({FOLD: list(folds)} if folds else {})}


class OneOf(DataMark):
    """Marks a string as one of some names.

    Args:
        names: a `NameSet` or names. `named` says instead that they come with the request.

    Raises:
        ConstraintError: as `NameSet.build`.
    """

    def __init__(self, names: NameSet | Iterable[str]) -> None:
        self.names: NameSet | None = names if isinstance(names, NameSet) else NameSet.build(names)

    @cached_property
    def keyword(self) -> dict[str, Any]:  # type: ignore[override]
        return written_names(self.names)

    def referring(self) -> dict[str, Any]:
        return self.keyword if self.names is None else {ONE_OF: SourceReference(self.names)}

    @classmethod
    def named(cls, name: str) -> OneOf:
        """One of the names that the request gives: ``sources={name: [...]}``."""
        mark = cls.__new__(cls)
        mark.keyword, mark.names = {ONE_OF: name}, None
        return mark

    def check(self, text: str) -> str:
        """The name; of names that are not known yet, the text."""
        if self.names is not None and text not in self.names:
            raise ValueError(f"{text!r:.200} is none of the {len(self.names):,} names")
        return text


__all__ = ["DataMark", "OneOf", "Quote", "QuoteOf"]
