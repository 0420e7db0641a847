"""The drafts of JSON Schema: dispatch tables from keyword to keyword function, and how each identifies schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from structgen.core.json_schema import keywords_array as arrays
from structgen.core.json_schema import keywords_logic as logic
from structgen.core.json_schema import keywords_object as objects
from structgen.core.json_schema import keywords_scalar as scalars
from structgen.core.json_schema import unevaluated
from structgen.core.json_schema.formula.language import Formula
from structgen.core.json_schema.spelling import (
    ANNOTATIONS,
    ELSEWHERE,
    MAX_ORDINARY,
    STRUCTURE,
    doubt_words,
    misspelt,
    misspelt_format,
)

if TYPE_CHECKING:
    from structgen.core.json_schema.lowering import Context
    from structgen.core.json_schema.places import Place

Keyword = Callable[[Any, dict[str, Any], "Place", "Context"], Formula | list[Formula]]


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """One draft, or a metaschema's selection from it.

    ``identifier`` is the keyword of a schema's URI, ``overriding_ref`` says that ``$ref`` hides the keywords beside
    it (up to draft 7), ``partners`` are read by other keywords (``then`` by ``if``), ``formats`` the defined names.

    From these follow ``opening``, the keywords that change how a schema is read, ``not_plain``, those beside which
    a schema is no plain object (see `keywords_object.plain_object`), and ``ordinary``, words that need no look: those
    that some draft has, and those that were looked at and are not taken for misspelt ones; ``own_formats`` are such
    names of formats.
    """

    name: str
    keywords: Mapping[str, Keyword]
    partners: frozenset[str]
    formats: frozenset[str]
    identifier: str = "$id"
    overriding_ref: bool = False
    asserts_formats: bool = False
    opening: frozenset[str] = field(init=False)
    not_plain: frozenset[str] = field(init=False)
    ordinary: set[str] = field(init=False)
    own_formats: set[str] = field(init=False)

    def __post_init__(self) -> None:
        opening = {self.identifier, "$ref"} if self.overriding_ref else {self.identifier}
        plain = self.keywords.keys() >= objects.PLAIN and self.keywords["properties"] is objects.properties
        object.__setattr__(self, "opening", frozenset(opening))
        object.__setattr__(self, "not_plain", frozenset(self.keywords) - (objects.PLAIN if plain else frozenset()))
        object.__setattr__(self, "ordinary", set(WORDS))
        object.__setattr__(self, "own_formats", set())

    def doubt(self, word: str) -> str | None:
        """What to say of a word that is most likely a misspelt keyword of this draft; None: it is not."""
        if word in self.ordinary:
            return None
        meant = misspelt(word, (*self.keywords, *self.partners, *STRUCTURE, *ANNOTATIONS))
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


_COMMON: dict[str, Keyword] = {
    "type": scalars.type,
    "enum": scalars.enum,
    "minLength": scalars.minLength,
    "maxLength": scalars.maxLength,
    "pattern": scalars.pattern,
    "format": scalars.format,
    "properties": objects.properties,
    "patternProperties": objects.patternProperties,
    "additionalProperties": objects.additionalProperties,
    "minItems": arrays.minItems,
    "maxItems": arrays.maxItems,
    "uniqueItems": arrays.uniqueItems,
    "$ref": logic.ref,
}
_UP_TO_4: dict[str, Keyword] = {
    "type": scalars.type_draft4,
    "minimum": scalars.minimum_draft4,
    "maximum": scalars.maximum_draft4,
    "exclusiveMinimum": scalars.exclusive_draft4,
    "exclusiveMaximum": scalars.exclusive_draft4,
}
# From 2019-09 on two keywords replace it, and validators may go on enforcing it (core, section "Compatibility"; the
# suite's optional/dependencies-compatibility): whoever writes it means it.
_DEPENDENCIES: dict[str, Keyword] = {"dependencies": objects.dependencies}
_UP_TO_2019: dict[str, Keyword] = {"items": arrays.items_draft3, "additionalItems": arrays.additionalItems}
_FROM_4: dict[str, Keyword] = {
    "multipleOf": scalars.multipleOf,
    "required": objects.required,
    "minProperties": objects.minProperties,
    "maxProperties": objects.maxProperties,
    "allOf": logic.allOf,
    "anyOf": logic.anyOf,
    "oneOf": logic.oneOf,
    "not": logic.not_,
}
_FROM_6: dict[str, Keyword] = {
    "const": scalars.const,
    "minimum": scalars.minimum,
    "maximum": scalars.maximum,
    "exclusiveMinimum": scalars.exclusiveMinimum,
    "exclusiveMaximum": scalars.exclusiveMaximum,
    "contains": arrays.contains,
    "propertyNames": objects.propertyNames,
}
_FROM_7: dict[str, Keyword] = {"if": logic.if_}
_FROM_2019: dict[str, Keyword] = {
    "dependentRequired": objects.dependentRequired,
    "dependentSchemas": objects.dependentSchemas,
    "unevaluatedProperties": unevaluated.unevaluatedProperties,
    "unevaluatedItems": unevaluated.unevaluatedItems,
}
_DRAFT3: dict[str, Keyword] = {
    "type": logic.type_draft3,
    "properties": objects.properties_draft3,
    "divisibleBy": scalars.multipleOf,
    "disallow": logic.disallow,
    "extends": logic.extends,
}
_2019: dict[str, Keyword] = {"$recursiveRef": logic.recursiveRef}
_2020: dict[str, Keyword] = {
    "prefixItems": arrays.prefixItems,
    "items": arrays.items,
    "$dynamicRef": logic.dynamicRef,
}

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

_IF = frozenset({"then", "else"})
_CONTAINS = frozenset({"minContains", "maxContains"})
_NONE: frozenset[str] = frozenset()
WORDS = frozenset(
    {
        *(_COMMON | _UP_TO_4 | _DEPENDENCIES | _UP_TO_2019 | _FROM_4 | _FROM_6 | _FROM_7 | _FROM_2019 | _DRAFT3),
        *(_2019 | _2020),
        *(_IF | _CONTAINS | STRUCTURE | ANNOTATIONS | ELSEWHERE),
    }
)
"""What some draft, or another vocabulary, defines."""


BY_NAME: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect("draft3", _COMMON | _UP_TO_4 | _DEPENDENCIES | _UP_TO_2019 | _DRAFT3, _NONE, _FORMATS_3, "id", True),
        Dialect("draft4", _COMMON | _FROM_4 | _UP_TO_4 | _DEPENDENCIES | _UP_TO_2019, _NONE, _FORMATS, "id", True),
        Dialect("draft6", _COMMON | _FROM_4 | _FROM_6 | _DEPENDENCIES | _UP_TO_2019, _NONE, _FORMATS, "$id", True),
        Dialect(
            "draft7", _COMMON | _FROM_4 | _FROM_6 | _FROM_7 | _DEPENDENCIES | _UP_TO_2019, _IF, _FORMATS, "$id", True
        ),
        Dialect(
            "draft2019-09",
            _COMMON | _FROM_4 | _FROM_6 | _FROM_7 | _FROM_2019 | _DEPENDENCIES | _UP_TO_2019 | _2019,
            _IF | _CONTAINS,
            _FORMATS,
        ),
        Dialect(
            "draft2020-12",
            _COMMON | _FROM_4 | _FROM_6 | _FROM_7 | _FROM_2019 | _DEPENDENCIES | _2020,
            _IF | _CONTAINS,
            _FORMATS,
        ),
    )
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


# By the last segment of the vocabulary's URI.
_VOCABULARY_KEYWORDS = {
    "core": "",
    "meta-data": "",
    "content": "",
    "validation": (
        "type enum const multipleOf maximum exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern "
        "maxItems minItems uniqueItems maxContains minContains maxProperties minProperties required dependentRequired"
    ),
    "applicator": (
        "prefixItems items additionalItems contains additionalProperties properties patternProperties dependentSchemas "
        "propertyNames if then else allOf anyOf oneOf not"
    ),
    "unevaluated": "unevaluatedItems unevaluatedProperties",
    "format-annotation": "format",
    "format-assertion": "format",
    "format": "format",
}


def knows_vocabulary(uri: str) -> bool:
    """Whether this is one of the vocabularies of 2019-09 or 2020-12."""
    return "//json-schema.org/draft/20" in uri and uri.rstrip("/").rpartition("/")[2] in _VOCABULARY_KEYWORDS


def restricted(dialect: Dialect, vocabularies: Mapping[str, bool]) -> Dialect:
    """The dialect without the keywords of the vocabularies that a metaschema's ``$vocabulary`` leaves out."""
    present = {uri.rstrip("/").rpartition("/")[2] for uri in vocabularies}
    if dialect.name == "draft2019-09":  # there, unevaluated* belong to the applicators
        present |= {"unevaluated"} if "applicator" in present else set()
    kept = {word for name in present for word in _VOCABULARY_KEYWORDS.get(name, "").split()}
    known = {word for words in _VOCABULARY_KEYWORDS.values() for word in words.split()}
    keywords = {word: function for word, function in dialect.keywords.items() if word in kept or word not in known}
    asserts_formats = "format-assertion" in present
    return Dialect(dialect.name, keywords, dialect.partners & kept, dialect.formats, asserts_formats=asserts_formats)
