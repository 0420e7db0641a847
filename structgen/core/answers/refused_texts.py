"""Texts that a constraint refuses: from which byte on, and by which keywords of a schema."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, NoReturn

from structgen.core.answers.occurrences import Occurrence
from structgen.core.answers.reasons import reasons
from structgen.core.constraints.base import Constraint
from structgen.core.constraints.cache import content_key, joined
from structgen.core.constraints.json import JsonSchemaConstraint
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import RefusedTextError

CHUNK = 4096


def refused_offset(grammar: Grammar, data: bytes) -> int | None:
    """The first byte that a grammar refuses (``len(data)``: the end comes too early); None if it accepts all."""
    matcher = grammar.matcher()
    for start in range(0, len(data), CHUNK):
        if not matcher.accept_bytes(data[start : start + CHUNK]):
            offset = start
            while matcher.accept_bytes(data[offset : offset + 1]):
                offset += 1
            return offset
    return None if matcher.is_accepting() else len(data)


def reasons_of(constraint: Any, text: str, token: str = "") -> tuple[Occurrence, ...]:
    """The keyword occurrences of a schema that refuse a text, or a token after it; of another constraint, none.

    Raises:
        SchemaError: as `structgen.reasons`.
    """
    if not isinstance(constraint, JsonSchemaConstraint):
        return ()
    return reasons(constraint.schema, text, token, options=constraint.options, registry=constraint.registry).occurrences


@dataclass(frozen=True)
class TextAndConstraint:
    """Why a constraint refuses a text, as something to compile: where constraints of strangers are compiled with limits
    of time and memory, this question is asked under the same ones.

    Attributes:
        text, token: see `structgen.reasons`.
    """

    constraint: Constraint
    text: str = field(repr=False)
    token: str = ""

    def compile(self, vocabulary: Vocabulary) -> NoReturn:
        """Raises RefusedTextError, whose ``reasons`` are the answer; and what `reasons_of` raises."""
        occurrences = reasons_of(self.constraint, self.text, self.token)
        named = ", ".join(map(str, occurrences)) or "no single keyword"
        raise RefusedTextError(f"what refuses the text: {named}", text=self.text, reasons=occurrences)

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`."""
        return joined("reasons", content_key(self.constraint), self.text, self.token)

    def parse(self, text: str) -> str:
        """The text."""
        return text

    def parse_partial(self, text: str) -> str:
        """The text so far."""
        return text

    def instruction(self) -> None:
        """Nothing is asked for."""
