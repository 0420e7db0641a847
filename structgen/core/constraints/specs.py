"""Constraints as data: the only reader of what files, command lines, requests and inference engines say of one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from structgen.core.compilers import LarkDialect
from structgen.core.constraints.base import Constraint, instruction_of
from structgen.core.constraints.json import json_schema
from structgen.core.constraints.limits import CompileLimits, check_size
from structgen.core.constraints.named_text import Names
from structgen.core.constraints.structural_tags import StructuralTags
from structgen.core.constraints.text import LarkConstraint, choice, gbnf
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.limits import load_text
from structgen.core.json_schema.keywords_data import with_sources
from structgen.core.json_schema.loading import load_schema
from structgen.core.json_schema.prompt_forms import SchemaForm
from structgen.core.untrusted_json import read_object
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import SpecificationError
from structgen.options import JsonOptions

FILE_KINDS = ("schema", "lark", "gbnf", "ebnf", "regex", "choice")
"""What a column of a file of prompts may be."""
GRAMMAR_FILES = {".lark": "lark", ".gbnf": "gbnf", ".ebnf": "ebnf"}
"""Files with grammars: Lark's language (llguidance's if it begins with %llguidance), GBNF, XGrammar's EBNF."""
DEFAULT_OPTIONS = JsonOptions()
ANY_OBJECT = {"type": "object"}


@dataclass(frozen=True)
class ConstraintSpec:
    """A constraint, read from its data when it is first asked for anything: so what is wrong with it is raised by then,
    and it costs nothing to send to another process.

    Attributes:
        kind: what ``source`` is. "schema": a JSON Schema, or its text. "json": the same as requests have it, a schema,
            a boolean, or the text of either. "grammar": in any notation that `WrittenGrammar` reads.
        source: a schema, a list of texts (or the JSON text of one), a grammar, an expression, tags. A string is never a
            path; of schemas and of the grammars of ``GRAMMAR_FILES`` a ``Path`` is.
        options: how JSON may be spelled.
        special_tokens: names of tokens that are no text, with their ids: what is meant where structural tags, grammars
            and expressions spell them.
        sources: what names of sources in a schema stand for, see ``json_schema``.
    """

    kind: str
    source: Any
    options: JsonOptions = DEFAULT_OPTIONS
    special_tokens: Mapping[str, int] = field(default_factory=dict, compare=False)
    sources: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def constraint(self) -> Constraint:
        """What it says.

        Raises:
            SpecificationError: it says none, or is of no such kind. ConstraintError: what it says cannot be used.
        """
        if self.kind not in _READERS:
            raise SpecificationError(
                f"there is no kind of constraint {self.kind!r:.40}; kinds are {', '.join(_READERS)}"
            )
        return _READERS[self.kind](self)

    @cached_property
    def value(self) -> Any:
        """The source; of kinds whose JSON may come as a text, what that holds.

        Raises:
            SpecificationError: the text is no JSON object, or no list.
        """
        if self.kind in ("json", "structural_tag") and isinstance(self.source, str):
            is_object = self.source.lstrip().startswith("{")
            return read_object(self.source.encode(errors="surrogatepass"), "The text") if is_object else self.source
        if self.kind == "choice" and isinstance(self.source, str):
            return texts_of(self.source)
        return self.source

    def check_size(self, limits: CompileLimits) -> None:
        """Raise TooComplexError where it is larger than allowed, before anything is made of it; else as ``value``."""
        limits = limits.whole if self.kind == "structural_tag" else limits
        check_size({"pattern": self.value} if self.kind == "regex" else self.value, limits)

    def compile(self, vocabulary: Vocabulary) -> Grammar:
        """See ``Constraint``."""
        return self.constraint.compile(vocabulary)

    def parse(self, text: str) -> Any:
        """See ``Constraint``."""
        return self.constraint.parse(text)

    def parse_partial(self, text: str) -> Any:
        """See ``Constraint``."""
        return self.constraint.parse_partial(text)

    def instruction(self, form: SchemaForm = "schema") -> str | None:
        """See ``Constraint``."""
        return instruction_of(self.constraint, form)


def checked_source(kind: str, value: Any) -> Any:
    """The value, if it is of a type that this kind has; see ``ConstraintSpec.source``.

    Raises:
        SpecificationError: it is not.
    """
    if kind == "choice":
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise SpecificationError(f"choice is a list of texts, not {value!r:.40}")
    elif kind in ("schema", "json", "structural_tag"):
        what = "tags as an object, or their" if kind == "structural_tag" else "a schema or its"
        if not isinstance(value, (str, dict) if kind == "structural_tag" else (str, dict, bool)):
            raise SpecificationError(f"{kind} is {what} text, not {value!r:.40}")
    elif kind != "json_object" and not isinstance(value, str):
        raise SpecificationError(f"{kind} is a text, not {value!r:.40}")
    return value


def texts_of(text: str) -> Any:
    """What the JSON text of a choice holds; a SpecificationError says that it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SpecificationError(f"choice is a JSON list of texts; this cannot be read: {error}") from None


def _schema(spec: ConstraintSpec) -> Constraint:
    return json_schema(
        spec.source if isinstance(spec.source, Path) else load_schema(spec.source), spec.options, sources=spec.sources
    )


def _json(spec: ConstraintSpec) -> Constraint:
    value = spec.value
    if value in ("true", "false"):
        value = value == "true"
    if isinstance(value, str):
        raise SpecificationError("a schema is an object, a boolean, or the JSON text of an object")
    return json_schema(value, spec.options, sources=spec.sources)


def _lark(spec: ConstraintSpec) -> Constraint:
    return LarkConstraint(spec.source, dialect=lark_dialect(load_text(spec.source)[0]))


_READERS: dict[str, Callable[[ConstraintSpec], Constraint]] = {
    "schema": _schema,
    "json": _json,
    "json_object": lambda spec: json_schema(ANY_OBJECT, spec.options),
    "lark": _lark,
    "gbnf": lambda spec: gbnf(spec.source),
    "ebnf": lambda spec: gbnf(spec.source, dialect="xgrammar"),
    "grammar": lambda spec: Names(spec.special_tokens).grammar(spec.source),  # read where it is compiled
    "regex": lambda spec: Names(spec.special_tokens).regex(spec.source),
    "choice": lambda spec: choice(spec.value),
    "structural_tag": lambda spec: StructuralTags(spec.special_tokens, spec.options).read(
        with_sources(spec.value, spec.sources)
    ),
}


def lark_dialect(grammar: str) -> LarkDialect:
    """The dialect of a Lark grammar: llguidance's, if it says so by ``%llguidance {}`` before anything else."""
    lines = (line.strip() for line in grammar.splitlines())
    first = next((line for line in lines if line and not line.startswith(("//", "#"))), "")
    return "llguidance" if first.startswith("%llguidance") else "lark"
