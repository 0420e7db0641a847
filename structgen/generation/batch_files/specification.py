"""Constraints as data: what a column of a file says of one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

from structgen.core.compilers import LarkDialect
from structgen.core.constraints.base import Constraint, instruction_of
from structgen.core.constraints.json import json_schema
from structgen.core.constraints.text import LarkConstraint, choice, gbnf, regex
from structgen.core.engines.protocols import Grammar
from structgen.core.json_schema.loading import load_schema
from structgen.core.json_schema.prompt_forms import SchemaForm
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.options import JsonOptions

Kind: TypeAlias = Literal["schema", "lark", "gbnf", "ebnf", "regex", "choice"]
KINDS: tuple[Kind, ...] = get_args(Kind)
DEFAULT_OPTIONS = JsonOptions()


@dataclass(frozen=True)
class ConstraintSpecification:
    """A constraint, made of its specification when it is first asked for anything: so what is wrong with it is raised
    by then, and it costs nothing to send to another process.

    Attributes:
        kind: what ``source`` is.
        source: JSON text of a schema or of a list of texts, a grammar, an expression. Never a path.
        options: of a schema.
    """

    kind: Kind
    source: str
    options: JsonOptions = DEFAULT_OPTIONS

    @cached_property
    def constraint(self) -> Constraint:
        """What it says.

        Raises:
            ConstraintError: it cannot be used.
        """
        if self.kind == "schema":
            return json_schema(load_schema(self.source), self.options)
        if self.kind == "choice":
            return choice(json.loads(self.source))
        if self.kind == "lark":
            return LarkConstraint(self.source, dialect=lark_dialect(self.source))
        if self.kind in ("gbnf", "ebnf"):
            return gbnf(self.source, dialect="llama.cpp" if self.kind == "gbnf" else "xgrammar")
        return regex(self.source)

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


def lark_dialect(grammar: str) -> LarkDialect:
    """The dialect of a Lark grammar: llguidance's, if it says so by ``%llguidance {}`` before anything else."""
    lines = (line.strip() for line in grammar.splitlines())
    first = next((line for line in lines if line and not line.startswith(("//", "#"))), "")
    return "llguidance" if first.startswith("%llguidance") else "lark"
