"""The drafts of JSON Schema: the keywords that each has, and how each identifies schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from structgen.core.json_schema import (
    keywords_array,
    keywords_data,
    keywords_logic,
    keywords_object,
    keywords_scalar,
    unevaluated,
)
from structgen.core.json_schema.keyword import TABLE, X_STRUCTGEN, Function, Keyword
from structgen.core.json_schema.keywords_object import PLAIN
from structgen.core.json_schema.spelling import ELSEWHERE, MAX_ORDINARY, doubt_words, misspelt, misspelt_format

if TYPE_CHECKING:
    from structgen.core.json_schema.pointers import Pointer

_MODULES = (
    keywords_array,
    keywords_data,
    keywords_logic,
    keywords_object,
    keywords_scalar,
    unevaluated,
)  # which fill the table


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """One draft, or a metaschema's selection from it.

    ``identifier`` is the keyword of a schema's URI, ``overriding_ref`` says that ``$ref`` hides the keywords next to
    it (up to draft 7), ``formats`` are the names that it defines.

    From these follow ``functions``, the keywords that mean something by themselves, ``speaking``, those that say
    something of values (``then``, too, which ``if`` reads), ``in_place``, those whose subschemas speak of the same
    value, ``opening``, the keywords that change how a schema is read, ``not_plain``, those that no plain object has
    (see `keywords_object.plain_object`), and ``ordinary``, words that need no look: those that some draft has, and
    those that were looked at and are not taken for misspelt ones; ``own_formats`` are such names of formats.
    """

    name: str
    keywords: Mapping[str, Keyword]
    formats: frozenset[str]
    identifier: str = "$id"
    overriding_ref: bool = False
    asserts_formats: bool = False
    functions: Mapping[str, Function] = field(init=False)
    speaking: frozenset[str] = field(init=False)
    in_place: tuple[Keyword, ...] = field(init=False)
    opening: frozenset[str] = field(init=False)
    not_plain: frozenset[str] = field(init=False)
    ordinary: set[str] = field(init=False)
    own_formats: set[str] = field(init=False)

    def read_of(self, schema: dict[str, Any]) -> dict[str, Any]:
        """What is read of a schema: the schema itself, or of one with ``$ref`` up to draft 7, which hides the keywords
        next to it, a copy of the rest: ``$ref`` and ``x-structgen``, of which those drafts say nothing."""
        if not self.overriding_ref or "$ref" not in schema:
            return schema
        return {word: schema[word] for word in ("$ref", X_STRUCTGEN) if word in schema}

    def is_effective(self, word: str) -> bool:
        """Whether a word says something of values or is a base for references: ``$ref`` that hides it takes that away.
        Of definitions and annotations it takes nothing: pointers lead to those all the same."""
        return word in self.speaking or word == self.identifier

    def __post_init__(self) -> None:
        opening = {self.identifier, "$ref"} if self.overriding_ref else {self.identifier}
        entries = self.keywords.values()
        functions = {entry.name: entry.function for entry in entries if entry.function is not None}
        speaking = frozenset(entry.name for entry in entries if not (entry.is_structure or entry.is_annotation))
        in_place = tuple(entry for entry in entries if entry.is_reference or entry.applies is not None)
        is_plain = functions.get("properties") is keywords_object.properties and functions.keys() >= PLAIN
        object.__setattr__(self, "functions", functions)
        object.__setattr__(self, "speaking", speaking)
        object.__setattr__(self, "in_place", in_place)
        object.__setattr__(self, "opening", frozenset(opening))
        object.__setattr__(self, "not_plain", functions.keys() - (PLAIN if is_plain else frozenset()))
        object.__setattr__(self, "ordinary", set(WORDS))
        object.__setattr__(self, "own_formats", set())

    def doubt(self, word: str) -> str | None:
        """What to say of a word that is most likely a misspelt keyword of this draft; None: it is not."""
        if word in self.ordinary:
            return None
        meant = misspelt(word, self.keywords)
        if meant is not None:
            return f"not a keyword of {self.name}, so it has no effect; did you mean {meant!r}?"
        if len(self.ordinary) < MAX_ORDINARY:
            self.ordinary.add(word)
        return None

    def doubt_schema(self, schema: Mapping[str, Any]) -> str | None:
        """What to say of a whole schema that says nothing, although it has words; None: it says something."""
        return doubt_words(schema, WORDS, self.name)

    def doubt_format(self, name: str) -> str | None:
        """What to say of a format that is most likely a misspelt one of this draft; None: it is not."""
        if name in self.formats or name in self.own_formats:
            return None
        meant = misspelt_format(name, self.formats)
        if meant is not None:
            return f"{name!r:.80} is no format of {self.name}, so it has no effect; did you mean {meant!r}?"
        if len(self.own_formats) < MAX_ORDINARY:
            self.own_formats.add(name)
        return None


# A format that any draft from 4 on defines is enforced under all of them: draft 4 has no "date" or "uuid", but who
# writes them there means them, and validators agree.
_FORMATS = frozenset(
    {
        *("date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname", "ipv4", "ipv6"),
        *("uri", "uri-reference", "uri-template", "iri", "iri-reference", "uuid", "json-pointer"),
        *("relative-json-pointer", "regex"),
    }
)
_FORMATS_3 = frozenset({"date-time", "date", "time", "email", "ip-address", "ipv6", "host-name", "uri", "regex"})

WORDS = frozenset({keyword.name for keyword in TABLE} | ELSEWHERE)
"""What some draft, or another vocabulary, defines."""


def _of(version: int) -> dict[str, Keyword]:
    return {keyword.name: keyword for keyword in TABLE if keyword.since <= version <= keyword.until}


BY_NAME: Mapping[str, Dialect] = {
    "draft3": Dialect("draft3", _of(3), _FORMATS_3, "id", overriding_ref=True),
    "draft4": Dialect("draft4", _of(4), _FORMATS, "id", overriding_ref=True),
    "draft6": Dialect("draft6", _of(6), _FORMATS, overriding_ref=True),
    "draft7": Dialect("draft7", _of(7), _FORMATS, overriding_ref=True),
    "draft2019-09": Dialect("draft2019-09", _of(2019), _FORMATS),
    "draft2020-12": Dialect("draft2020-12", _of(2020), _FORMATS),
}

_METASCHEMAS = {
    "json-schema.org/draft-03/schema": "draft3",
    "json-schema.org/draft-04/schema": "draft4",
    "json-schema.org/draft-06/schema": "draft6",
    "json-schema.org/draft-07/schema": "draft7",
    "json-schema.org/draft/2019-09/schema": "draft2019-09",
    "json-schema.org/draft/2020-12/schema": "draft2020-12",
}


def by_metaschema(uri: str) -> Dialect | None:
    """The dialect that a ``$schema`` names; the scheme and an empty fragment do not matter. None: a custom one."""
    name = _METASCHEMAS.get(uri.partition("://")[2].rstrip("#"))
    return BY_NAME[name] if name else None


_VOCABULARIES = frozenset({keyword.vocabulary for keyword in TABLE if keyword.vocabulary})
_FORMAT_VOCABULARIES = frozenset({"format-annotation", "format-assertion"})


def knows_vocabulary(uri: str) -> bool:
    """Whether this is one of the vocabularies of 2019-09 or 2020-12."""
    return "//json-schema.org/draft/20" in uri and _last_segment(uri) in _VOCABULARIES | _FORMAT_VOCABULARIES


def _last_segment(uri: str) -> str:
    return uri.rstrip("/").rpartition("/")[2]


def restricted(dialect: Dialect, vocabularies: Mapping[str, bool]) -> Dialect:
    """The dialect without the keywords of the vocabularies that a metaschema's ``$vocabulary`` leaves out."""
    present = {"", "core", "meta-data", "content", *map(_last_segment, vocabularies)}
    if present & _FORMAT_VOCABULARIES:
        present.add("format")
    if dialect.name == "draft2019-09" and "applicator" in present:  # there, unevaluated* belong to the applicators
        present.add("unevaluated")
    keywords = {name: keyword for name, keyword in dialect.keywords.items() if keyword.vocabulary in present}
    return Dialect(dialect.name, keywords, dialect.formats, asserts_formats="format-assertion" in present)


_FORMS: dict[str, list[Keyword]] = {}
for _keyword in TABLE:
    if _keyword.subschemas != "none":
        _FORMS.setdefault(_keyword.name, []).append(_keyword)


def subschemas(schema: Mapping[str, Any], pointer: Pointer) -> Iterator[tuple[Any, Pointer]]:
    """The schemas directly inside ``schema``, with the pointers to them, by the keywords of all drafts.

    Only there can an identifier stand: "$id" inside "enum" or another word is data.
    """
    for name, value in schema.items():
        for keyword in _FORMS.get(name, ()):
            yield from keyword.children(value, (pointer, name))
