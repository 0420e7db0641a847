"""What a model is told of an answer of its own that was refused, so that it can write a better one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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
    told: Callable[..., list[dict[str, Any]]] | None = getattr(cause, "errors", None)
    if not callable(told) or not hasattr(cause, "error_count"):
        return str(cause) or type(cause).__name__
    places = told(include_url=False, include_context=False, include_input=False)
    return "\n".join(_line(".".join(map(str, place["loc"])), str(place["msg"])) for place in places)


def _line(where: str, message: str) -> str:
    return f"{where}: {message}" if where else message


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]} ..."
