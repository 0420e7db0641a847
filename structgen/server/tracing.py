"""Spans of requests for OpenTelemetry, by its conventions for generative models. Never text of prompts or outputs.

The package ``opentelemetry-api`` alone records nothing; whoever runs the server brings and sets up an SDK
(``opentelemetry-instrument structgen serve``). Without either, nothing of this costs anything.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from structgen.server.inference_request import InferenceRequest
from structgen.server.sequences import SequenceEnd

try:
    from opentelemetry import propagate, trace
except ImportError:  # the extra `serve` brings it
    propagate = trace = None  # type: ignore[assignment]

OPERATIONS = {"/v1/completions": "text_completion"}
"""What each endpoint does, in the words of the conventions; the others chat."""


class RequestTrace:
    """The span of a request, with children ``queue``, ``compile``, ``prefill`` and ``decode``.

    What is learned of the request is added to it; ``finish`` ends it. Times are seconds of ``time.monotonic``.
    Where nobody records, no method does anything.

    Args:
        path: of the endpoint.
        headers: of the request; ``traceparent`` in them says which span this one belongs to, unless there is a current
            one (of what instruments Starlette).
        model: the name of the server's model.
    """

    def __init__(self, path: str, headers: Mapping[str, str], model: str) -> None:
        self._span: Any = None
        if trace is None:
            return
        self._clock = time.time_ns() - time.monotonic_ns()
        operation = OPERATIONS.get(path, "chat")
        current = trace.get_current_span().get_span_context().is_valid
        span = trace.get_tracer("structgen.server").start_span(
            f"{operation} {model}",
            None if current else propagate.extract(headers),
            kind=trace.SpanKind.INTERNAL if current else trace.SpanKind.SERVER,
            attributes={
                "gen_ai.operation.name": operation,
                "gen_ai.provider.name": "structgen",
                "http.request.method": "POST",
                "http.route": path,
                "url.path": path,
            },
        )
        if span.is_recording():
            self._span = span

    def asked(self, work: InferenceRequest, model: str) -> None:
        """Note what is asked for."""
        if self._span is None:
            return
        params = work.sequence.params
        attributes = {
            "gen_ai.request.model": model,
            "gen_ai.response.model": model,
            "gen_ai.request.max_tokens": work.sequence.max_new_tokens,
            "gen_ai.request.temperature": params.temperature,
            "gen_ai.request.top_p": params.top_p,
            "gen_ai.request.top_k": params.top_k,
            "gen_ai.request.seed": None if params.seed is None else str(params.seed),  # may need 64 bits without sign
            "gen_ai.request.frequency_penalty": params.frequency_penalty,
            "gen_ai.request.presence_penalty": params.presence_penalty,
            "gen_ai.request.choice.count": work.choices,
            "gen_ai.request.stream": work.sequence.streams,
            "gen_ai.output.type": "text" if work.constraint is None else _output_type(work.constraint.kind),
            "gen_ai.usage.input_tokens": work.prompt_tokens,
            "structgen.constraint.kind": None if work.constraint is None else work.constraint.kind,
        }
        self._span.set_attributes({name: value for name, value in attributes.items() if value is not None})

    @contextmanager
    def compiling(self, kind: str) -> Iterator[None]:
        """While the grammar is waited for."""
        if self._span is None:
            yield
            return
        child = self._child("compile", time.monotonic(), {"structgen.constraint.kind": kind})
        try:
            yield
        except BaseException as error:
            _fail(child, getattr(error, "code", None) or type(error).__name__)
            raise
        finally:
            child.end()

    def ended(self, ends: Sequence[SequenceEnd], reasons: Sequence[str]) -> None:
        """Note how the outputs came about, and why they ended."""
        if self._span is None:
            return
        for index, end in enumerate(ends):
            times = end.times
            about = {"structgen.choice.index": index}
            self._past("queue", times.submitted, times.admitted, about)
            self._past("prefill", times.admitted, times.first, {**about, "structgen.cached_tokens": end.cached_tokens})
            self._past("decode", times.first, times.ended, {**about, "structgen.output_tokens": len(end.token_ids)})
        self._span.set_attributes(
            {
                "gen_ai.response.finish_reasons": list(reasons),
                "gen_ai.usage.output_tokens": sum(len(end.token_ids) for end in ends),
                "gen_ai.usage.cache_read.input_tokens": sum(end.cached_tokens for end in ends),
                "structgen.forced_tokens": sum(end.stats.forced_tokens for end in ends),
            }
        )

    def finish(self, id: str, status: int, error: str | None, first: float | None) -> None:
        """End the span.

        Args:
            id: of the answer.
            status: of HTTP.
            error: the code of the error; None: there was none.
            first: seconds until the first token of a stream; None: not known.
        """
        if self._span is None:
            return
        self._span.set_attributes({"gen_ai.response.id": id, "http.response.status_code": status})
        if first is not None:
            self._span.set_attribute("gen_ai.response.time_to_first_chunk", first)
        if error is not None:
            _fail(self._span, error)
        self._span.end()

    def _past(self, name: str, begin: float, end: float, about: dict[str, Any]) -> None:
        """A child that is over."""
        self._child(name, begin, about).end(self._time(end))

    def _child(self, name: str, begin: float, about: dict[str, Any]) -> Any:
        return trace.get_tracer("structgen.server").start_span(
            name, trace.set_span_in_context(self._span), start_time=self._time(begin), attributes=about
        )

    def _time(self, seconds: float) -> int:
        return self._clock + int(seconds * 1e9)


def _output_type(kind: str) -> str:
    return "json" if kind.startswith("json") else "text"


def _fail(span: Any, code: str) -> None:
    span.set_attribute("error.type", code)
    span.set_status(trace.StatusCode.ERROR, code)
