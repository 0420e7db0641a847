"""Errors of the server: what a client gets, and whether asking again can help."""

from __future__ import annotations

import math
from typing import Any

from structgen.errors import (
    CompletionTooLongError,
    ConstraintError,
    EmptyLanguageError,
    GrammarError,
    GrammarTooComplexError,
    IncompleteOutputError,
    MaskTimeoutError,
    OptionsError,
    PatternError,
    PatternTooComplexError,
    Place,
    SchemaError,
    SchemaTooComplexError,
    SpecificationError,
    StructgenError,
    TooComplexError,
    UnknownKeywordError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
    dotted,
    pointer_to,
)

LONGEST_MESSAGE, LONGEST_PLACE = 4_000, 1_000
"""Characters of what an error says, and of the place that it names: requests choose names and values in them."""


class RequestError(StructgenError):
    """A request that is answered with an error object.

    Attributes:
        status: HTTP status.
        type, code: what kind of error, as OpenAI's API names kinds.
        message: at most ``LONGEST_MESSAGE`` characters, whatever the request holds.
        param: the field of the request, dotted; None: no single one. A long one is cut.
        pointer: the same as JSON Pointer into the request, and on into a schema; None: no place. Of a long one, what
            is around it.
        retry_after: seconds after which asking again may help; None: not said.
        retry: whether asking again the same can help.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        pointer: str | None = None,
        retry_after: float | None = None,
        retry: bool = False,
    ) -> None:
        self.message = message = _cut(message)
        self.status = status
        self.type = type
        self.code = code
        self.param = None if param is None else _cut(param, LONGEST_PLACE)
        self.pointer = None if pointer is None else _whole_parts(pointer)
        self.retry_after = retry_after
        self.retry = retry
        super().__init__(message)

    @classmethod
    def at(cls, path: Place, message: str, code: str = "invalid_value", within: str = "") -> RequestError:
        """What is wrong at a place of the request; ``within`` is a JSON Pointer from there on."""
        return cls(message, code=code, param=dotted(path) or None, pointer=pointer_to(path) + within)

    def body(self) -> dict[str, Any]:
        """The error object."""
        fields = {"message": self.message, "type": self.type, "param": self.param, "code": self.code}
        return {"error": fields if self.pointer is None else {**fields, "pointer": self.pointer}}

    def headers(self) -> dict[str, str]:
        """``x-should-retry``, which OpenAI's clients obey, and ``Retry-After`` in whole seconds."""
        headers = {"x-should-retry": "true" if self.retry else "false"}
        if self.retry_after is not None:
            headers["retry-after"] = str(max(1, math.ceil(self.retry_after)))
        if self.status == 401:
            headers["www-authenticate"] = "Bearer"
        return headers


def _cut(text: str, most: int = LONGEST_MESSAGE) -> str:
    """A text without its middle, where it is long."""
    return text if len(text) <= most else f"{text[: most // 2]} ... {text[5 - most // 2 :]}"


def _whole_parts(pointer: str) -> str:
    """A pointer, or where it is long the beginning that leads to what holds its place."""
    return pointer if len(pointer) <= LONGEST_PLACE else pointer[: LONGEST_PLACE + 1].rpartition("/")[0]


def overloaded(message: str, retry_after: float, code: str = "queue_full") -> RequestError:
    """429: later it may go."""
    return RequestError(message, status=429, type="rate_limit_error", code=code, retry_after=retry_after, retry=True)


def unavailable(message: str, code: str, retry_after: float | None = None) -> RequestError:
    """503: this server takes no work; another, or this one later, may."""
    return RequestError(message, status=503, type="server_error", code=code, retry_after=retry_after, retry=True)


_CODES: list[tuple[type[Exception] | tuple[type[Exception], ...], str]] = [
    (
        (SchemaTooComplexError, GrammarTooComplexError, PatternTooComplexError, TooComplexError, MaskTimeoutError),
        "grammar_too_complex",
    ),
    (UnsupportedSchemaError, "unsupported_schema"),
    (UnknownKeywordError, "unknown_keyword"),
    (UnsatisfiableSchemaError, "unsatisfiable_schema"),
    (SchemaError, "invalid_schema"),
    (EmptyLanguageError, "empty_language"),
    (GrammarError, "invalid_grammar"),
    (PatternError, "invalid_pattern"),
    (ConstraintError, "invalid_constraint"),
    (OptionsError, "invalid_value"),
]
"""The code of each error that a constraint, or an option, can raise; the first that fits."""


def as_request_error(error: BaseException, path: Place = ()) -> RequestError:
    """What a client gets of any error; ``path`` is where the constraint stands in the request.

    Of errors that are nobody's fault but the server's nothing is reported but that they happened.
    """
    if isinstance(error, RequestError):
        return error
    if isinstance(error, SpecificationError):
        return RequestError.at((*path, *error.place), str(error), error.code)
    for kinds, code in _CODES:
        if isinstance(error, kinds):
            within = getattr(error, "pointer", None) or ""
            return RequestError.at(path, str(error), code, within if within.startswith("/") else "")
    if isinstance(error, IncompleteOutputError) and error.option == "stop":
        return RequestError.at(("stop",), str(error), "output_does_not_fit")
    if isinstance(error, (IncompleteOutputError, CompletionTooLongError)):
        why = str(error).replace("max_new_tokens", "max_tokens")
        return RequestError(
            f"The output cannot be closed within the token budget. {why}",
            code="output_does_not_fit",
            param="max_tokens",
        )
    if isinstance(error, StructgenError):
        return RequestError(str(error), status=500, type="server_error", code="generation_failed")
    return RequestError("The server failed; its log says why.", status=500, type="server_error", code="internal_error")
