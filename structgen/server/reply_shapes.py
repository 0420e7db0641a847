"""What a reply may be after its thinking: an answer, or tool calls in its place."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from structgen.core.constraints.base import Constraint, instruction_of
from structgen.core.constraints.cache import COMPILED, content_key, joined
from structgen.core.constraints.tools import ToolCalls
from structgen.core.json_schema.prompt_forms import SchemaForm
from structgen.core.tool_calls.grammar import START, GrammarBuilder
from structgen.core.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True)
class ReplyConstraint:
    """What one of two constraints allows.

    Attributes:
        answer: what the answer must be.
        calls: tool calls that may stand in its place.
    """

    answer: Constraint
    calls: ToolCalls

    def compile(self, vocabulary: Vocabulary) -> Any:
        """The grammar over ``vocabulary``; a few are kept for the process. Errors are those of the parts."""
        return COMPILED.get(joined(self.content_key(), vocabulary), lambda: self._compiled(vocabulary))

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`."""
        return joined("reply", content_key(self.answer), content_key(self.calls))

    def _compiled(self, vocabulary: Vocabulary) -> Any:
        builder = GrammarBuilder(vocabulary)
        named = set(self.calls.compile(vocabulary).vocabulary.named)

        def within(answer_vocabulary: Vocabulary) -> Vocabulary:
            return answer_vocabulary.within(vocabulary.naming([*answer_vocabulary.named, *named]))

        builder.rule(
            START, *builder.embedded("answer", lambda answer_vocabulary: self.answer.compile(within(answer_vocabulary)))
        )
        builder.rule(
            START, *builder.embedded("calls", lambda answer_vocabulary: self.calls.compile(within(answer_vocabulary)))
        )
        return builder.compile()

    def parse(self, text: str) -> str:
        """The text."""
        return text

    def parse_partial(self, text: str) -> str:
        """The text so far."""
        return text

    def instruction(self, form: SchemaForm = "schema") -> str | None:
        """What the prompt says of the answer."""
        return instruction_of(self.answer, form)
