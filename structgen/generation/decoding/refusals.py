"""Answers that were refused: what the model reads of them, and a constraint without them, so that none comes again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.json import JsonSchemaConstraint
from structgen.core.constraints.thinking import Thinking
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import SchemaTooComplexError

MAX_EXCLUDED = 16  # the last ones: what it costs to compile grows with their members
MAX_STEPS = 100_000  # of compiling, about a microsecond each


def without(constraint: Constraint, values: Sequence[Any]) -> Constraint | None:
    """The constraint without these values, as JSON has them equal; None where that cannot be said of it."""
    if isinstance(constraint, Thinking):
        answer = None if constraint.answer is None else without(constraint.answer, values)
        return None if answer is None else replace(constraint, answer=answer)
    if not isinstance(constraint, JsonSchemaConstraint):
        return None
    options = replace(constraint.options, max_steps=min(MAX_STEPS, constraint.options.max_steps))
    return replace(constraint.without(values), options=options)


def compiled_without(constraint: Constraint, values: Sequence[Any], vocabulary: Vocabulary) -> Grammar | None:
    """What masks outputs that are none of the last of these values: of as many as can be compiled; None: of none.

    Raises:
        UnsatisfiableSchemaError: no other value is left.
    """
    count = min(len(values), MAX_EXCLUDED)
    while count:
        narrowed = without(constraint, values[-count:])
        if narrowed is None:
            return None
        try:
            grammar: Grammar = narrowed.compile(vocabulary)
            return grammar
        except SchemaTooComplexError:
            count //= 2
    return None


MAX_SHOWN = 4000
"""So many characters of an answer, and of what is wrong with it, are shown to the model again."""


class Refusal(NamedTuple):
    """An answer, and what is wrong with it."""

    answer: str
    reason: str

    def messages(self) -> list[dict[str, Any]]:
        """The rest of a chat in which it was given: the answer, and a request for another one."""
        shown = [{"role": "assistant", "content": _cut(self.answer)}] if self.answer else []
        return [*shown, {"role": "user", "content": self.advice}]

    @property
    def advice(self) -> str:
        """What is wrong, and what to do."""
        return (
            f"Your answer does not fit: {_cut(self.reason)}\nWrite the whole answer again, and nothing else around it."
        )


def reason_of(error: BaseException) -> str:
    """What validators say of a value, a line each, by what they have raised: pydantic's places and messages, without
    what is only for programmers; else the error's own words."""
    cause = error.__cause__ or error
    errors: Callable[..., list[dict[str, Any]]] | None = getattr(cause, "errors", None)
    if not callable(errors) or not hasattr(cause, "error_count"):
        return str(cause) or type(cause).__name__
    mistakes = errors(include_url=False, include_context=False, include_input=False)
    return "\n".join(_line(".".join(map(str, mistake["loc"])), str(mistake["msg"])) for mistake in mistakes)


def _line(where: str, message: str) -> str:
    return f"{where}: {message}" if where else message


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} ..."
