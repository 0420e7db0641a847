"""Thinking before the answer, by models that were trained to: free text between marks, then what is constrained."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from structgen.core.constraints.base import Constraint, T, instruction_of
from structgen.core.constraints.cache import COMPILED, content_key, joined
from structgen.core.constraints.json import as_constraint
from structgen.core.constraints.parts import BYTES
from structgen.core.constraints.sources import Source, Texts
from structgen.core.json_schema.prompt_forms import SchemaForm
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.tool_calls.grammar import START, GrammarBuilder
from structgen.core.tool_calls.patterns import Gap, Marker
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError
from structgen.options import JsonOptions, check_count

if TYPE_CHECKING:
    from structgen.core.constraints.sources import TypeForm

THINK, THOUGHT = "<think>", "</think>"
MAX_BLANKS = 4
BLANKS = Gap(f"[ \\t\\r\\n]{{0,{MAX_BLANKS}}}", "\n\n")
Begin = Literal["must", "may", "begun"]
"""Whether the thinking's opening mark must be written, may be, or stands in the prompt."""


def thought_end(data: bytes, begin: Begin) -> int:
    """The byte offset after the thinking of a whole output; 0 where there is none."""
    mark = THOUGHT.encode()
    if mark not in data or (
        begin == "may" and not data.startswith(THINK.encode())
    ):  # it stands in the answer, if at all
        return 0
    return data.index(mark) + len(mark)


@dataclass(frozen=True)
class Thinking(Generic[T]):
    """Thinking, then an answer. Make it with ``think``.

    Attributes:
        answer: what follows the thinking; None: any text.
        begin: see ``Begin``.
        max_think_tokens: the most tokens between the marks; None: any number. A grammar does not count tokens: whoever
            writes the output does (``Generator``, ``AsyncEngine`` and the server), and compiles it ``unbudgeted``.
    """

    answer: Constraint[T] | None
    begin: Begin = "must"
    max_think_tokens: int | None = None

    def after(self, prompt: str) -> Thinking[T]:
        """The constraint of what follows a prompt: one that ends in the opening mark has begun the thinking."""
        return replace(self, begin="begun") if prompt.rstrip().endswith(THINK) else self

    def unbudgeted(self) -> Thinking[T]:
        """The same without a budget."""
        return replace(self, max_think_tokens=None)

    def compile(self, vocabulary: Vocabulary) -> Any:
        """The grammar over ``vocabulary``; a few are kept for the process. Other errors are those of the answer.

        Raises:
            ConstraintError: there is a budget, which a grammar cannot keep.
        """
        if self.max_think_tokens is not None:
            raise ConstraintError(
                "max_think_tokens counts tokens, which a grammar does not: generate, stream and batch keep it, as do "
                "AsyncEngine and the server; leave it out here"
            )
        return COMPILED.get(joined(self.content_key(), vocabulary), lambda: self._compiled(vocabulary))

    def content_key(self) -> Hashable:
        """See `structgen.core.constraints.cache.content_key`."""
        return joined("thinking", self.begin, self.answer is None, content_key(self.answer or True))

    def _compiled(self, vocabulary: Vocabulary) -> Any:
        builder = GrammarBuilder(vocabulary)
        if self.answer is None:
            body = builder.regular("any text", lambda: full_match_dfa("[\\s\\S]*")) or ()
        else:
            answer = self.answer
            named = answer.compile(vocabulary).vocabulary.named
            body = builder.embedded(
                "answer",
                lambda named_vocabulary: answer.compile(
                    named_vocabulary.within(vocabulary.naming([*named_vocabulary.named, *named]))
                ),
            )
        thought = (*builder.free_text([THOUGHT]), *builder.pieces([Marker(THOUGHT), BLANKS]))
        if self.begin == "begun":
            builder.rule(START, *thought, *body)
        else:
            builder.rule(START, *builder.pieces([Marker(THINK)]), *thought, *body)
        if self.begin == "may":
            builder.rule(START, *body)
        return builder.compile()

    def parse(self, text: str) -> T:
        """The value of the answer."""
        answer = self.answer_in(text)
        if self.answer is None or self._after_thinking(text) is None:
            return answer  # type: ignore[return-value]  # without an answer T is str
        return self.answer.parse(answer)

    def answer_in(self, text: str) -> str:
        """What follows the thinking and its blanks in a whole output; all of it where no thinking is over."""
        answer = self._after_thinking(text)
        return text if answer is None else self._without_blanks(answer, is_whole=True)

    def _without_blanks(self, answer: str, *, is_whole: bool) -> str:
        """What follows the thinking without its blanks: of several readings so far, the one with the most."""
        if self.answer is None:
            return answer.lstrip()
        for blanks in range(min(MAX_BLANKS, len(answer) - len(answer.lstrip(" \t\r\n"))), 0, -1):
            matcher = self.answer.compile(BYTES).matcher()
            is_read = matcher.accept_bytes(answer[blanks:].encode(errors="replace"))
            if is_read and (matcher.is_accepting() or not is_whole):
                return answer[blanks:]
        return answer

    def parse_partial(self, text: str) -> Any:
        """The value of the answer as far as it goes; None while the model thinks."""
        answer = self._after_thinking(text)
        if answer is None:
            return None
        following = self._without_blanks(answer, is_whole=False)
        return following if self.answer is None else self.answer.parse_partial(following)

    def _after_thinking(self, text: str) -> str | None:
        """What follows the thinking; None where it is not over."""
        if self.begin == "may" and not text.startswith(THINK):
            return None if THINK.startswith(text) else text
        _, mark, answer = text.partition(THOUGHT)
        return answer if mark else None

    def instruction(self, form: SchemaForm = "schema") -> str | None:
        """What to tell the model about the answer."""
        return None if self.answer is None else instruction_of(self.answer, form)


@overload
def think(
    source: Texts = None, *, max_think_tokens: int | None = None, json_options: JsonOptions | None = None
) -> Thinking[str]: ...


@overload
def think(
    source: Source[T], *, max_think_tokens: int | None = None, json_options: JsonOptions | None = None
) -> Thinking[T]: ...


@overload
def think(
    source: TypeForm[T], *, max_think_tokens: int | None = None, json_options: JsonOptions | None = None
) -> Thinking[T]: ...


@overload
def think(
    source: Any, *, max_think_tokens: int | None = None, json_options: JsonOptions | None = None
) -> Thinking[Any]: ...


def think(source: Any = None, *, max_think_tokens: int | None = None, json_options: JsonOptions | None = None) -> Any:
    """Thinking, then an answer, whose value is the value. The thinking stands between ``<think>`` and ``</think>``,
    special tokens where the vocabulary has them, text elsewhere; where the prompt ends in ``<think>``, it has begun.

    Args:
        source: what the answer must be: a constraint, or anything ``json_schema`` takes; None: any text.
        max_think_tokens: the most tokens that the thinking may have; it is closed before there are more, and what
            remains of ``max_new_tokens`` is the answer's. 0: none. None: as many as ``max_new_tokens`` leaves.
        json_options: how JSON may be spelled where ``source`` is what ``json_schema`` takes.

    Raises:
        ConstraintError: a bad constraint.
        OptionsError: a negative budget.
    """
    check_count("max_think_tokens", max_think_tokens, 0, optional=True)
    return Thinking(as_constraint(source, json_options), max_think_tokens=max_think_tokens)
