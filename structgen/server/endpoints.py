"""The endpoints that write text, each with how it is read and answered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from structgen.server.chat import ChatWriter, chat_work
from structgen.server.completions import CompletionWriter, completion_work
from structgen.server.errors import RequestError
from structgen.server.inference_request import InferenceRequest
from structgen.server.openai_types import ChatRequest, CommonFields, CompletionRequest
from structgen.server.responses import ResponseWriter, response_work
from structgen.server.responses_types import ResponseRequest
from structgen.server.sequences import SequenceEvent
from structgen.server.sse import DONE, encode_event


class AnswerWriter(Protocol):
    """Writes the answers to one request."""

    def completion(self, events: Sequence[SequenceEvent]) -> dict[str, Any]:
        """The whole answer, from the last event of each output, which has all of its tokens."""
        ...

    def opening(self) -> Iterator[dict[str, Any]]:
        """What a stream begins with."""
        ...

    def chunks(self, index: int, event: SequenceEvent) -> Iterator[dict[str, Any]]:
        """What is new of an output."""
        ...

    def closing(self) -> Iterator[dict[str, Any]]:
        """What a stream ends with."""
        ...


@dataclass(frozen=True)
class Surface:
    """An endpoint.

    Attributes:
        path: where it is.
        request: the type of its requests.
        work: from a request's fields, tokenizer, vocabulary and settings to what is asked for.
        writer: from that, the vocabulary and the answer's head to what answers it.
        id_prefix: of the ids of answers.
        encoded: an event of a stream.
        failure: the event for an error in a stream, for whose answer there may be no writer yet.
        done: what ends a stream.
    """

    path: str
    request: type[CommonFields]
    work: Callable[..., InferenceRequest]
    writer: Callable[..., AnswerWriter]
    id_prefix: str
    encoded: Callable[[dict[str, Any]], bytes]
    failure: Callable[[AnswerWriter | None, RequestError], bytes]
    done: bytes = b""


def _failure(_: AnswerWriter | None, error: RequestError) -> bytes:
    return encode_event(error.body())


def _response_failure(writer: AnswerWriter | None, error: RequestError) -> bytes:
    if not isinstance(writer, ResponseWriter):  # OpenAI's event for a stream that has no response yet
        fields = {"code": error.code, "message": error.message, "param": error.param, "sequence_number": 0}
        return _named({"type": "error", **fields, **error.body()})  # for its ``error``, OpenAI's client raises
    return _named(writer.failure(error))


def _named(event: dict[str, Any]) -> bytes:
    return encode_event(event, event["type"])


SURFACES = (
    Surface("/v1/responses", ResponseRequest, response_work, ResponseWriter, "resp_", _named, _response_failure),
    Surface("/v1/chat/completions", ChatRequest, chat_work, ChatWriter, "chatcmpl-", encode_event, _failure, DONE),
    Surface(
        "/v1/completions", CompletionRequest, completion_work, CompletionWriter, "cmpl-", encode_event, _failure, DONE
    ),
)
