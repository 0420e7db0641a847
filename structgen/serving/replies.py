"""What a whole reply may be: a section of thinking, then an answer or tool calls."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal

from structgen.constraints.base import Constraint
from structgen.constraints.cache import COMPILED, content_key, joined
from structgen.constraints.tools import ToolCalls
from structgen.tool_calls.grammar import START, GrammarBuilder
from structgen.tool_calls.patterns import Gap, Marker
from structgen.vocabulary.vocabulary import Vocabulary

Thinking = Literal["none", "begun", "may"]
"""Whether a reply has a section of thinking: no; the prompt has begun one; it may begin with one."""
THINK, THOUGHT = "<think>", "</think>"
BLANKS = Gap("[ \\t\\r\\n]{0,4}", "\n\n")


@dataclass(frozen=True)
class ReplyConstraint:
    """Thinking, then what one of some constraints allows.

    Attributes:
        thinking: see ``Thinking``.
        answer: what the answer must be; None: it is one of the calls' grammar.
        calls: tool calls that may stand in its place.
    """

    thinking: Thinking
    answer: Constraint | None
    calls: ToolCalls | None

    def compile(self, vocabulary: Vocabulary) -> Any:
        """The grammar over ``vocabulary``; a few are kept for the process. Errors are those of the parts."""
        return COMPILED.get(joined(self.content_key(), vocabulary), lambda: self._compiled(vocabulary))

    def content_key(self) -> Hashable:
        """See `structgen.constraints.cache.content_key`."""
        parts = [part for part in (self.answer, self.calls) if part is not None]
        return joined("reply", self.thinking, self.answer is None, *map(content_key, parts))

    def _compiled(self, vocabulary: Vocabulary) -> Any:
        builder = GrammarBuilder(vocabulary)
        body = builder.nonterminal("body")
        named = set[int]() if self.calls is None else set(self.calls.compile(vocabulary).vocabulary.named)

        def within(own: Vocabulary) -> Vocabulary:
            return own.within(vocabulary.naming([*own.named, *named]))

        for name, part in (("answer", self.answer), ("calls", self.calls)):
            if part is not None:
                builder.rule(body, *builder.embedded(name, lambda own, part=part: part.compile(within(own))))  # type: ignore[misc]
        thought = (*builder.free_text([THOUGHT]), *builder.pieces([Marker(THOUGHT), BLANKS]))
        if self.thinking != "begun":
            builder.rule(START, body)
        if self.thinking == "begun":
            builder.rule(START, *thought, body)
        elif self.thinking == "may":
            builder.rule(START, *builder.pieces([Marker(THINK)]), *thought, body)
        return builder.compile()

    def parse(self, text: str) -> str:
        """The text."""
        return text

    def parse_partial(self, text: str) -> str:
        """The text so far."""
        return text

    def instruction(self) -> str | None:
        """What to tell the model about the answer."""
        return None if self.answer is None else self.answer.instruction()
