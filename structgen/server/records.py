"""What is noted of a request: a line of the log, metrics, a span. Never its text."""

from __future__ import annotations

import json
import logging
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from structgen.errors import ModelError, StructgenError
from structgen.server.errors import RequestError, as_request_error
from structgen.server.inference_request import InferenceRequest
from structgen.server.metrics import ServerMetrics
from structgen.server.sequences import SequenceEnd, SequenceEvent
from structgen.server.tracing import RequestTrace

LOG = logging.getLogger("structgen.server")
MAX_HEADER = 4_000  # characters of the header of warnings: servers and proxies take some 8,000 of all
CLIENT_CLOSED = 499  # as nginx logs it; nobody gets this answer


def log_failure(id: str, error: BaseException) -> None:
    """Log what a request failed with, and where. Of errors of structgen without the message, which may quote text."""
    if isinstance(error, StructgenError) and not isinstance(error, (RequestError, ModelError)):
        where = "".join(traceback.format_tb(error.__traceback__))
        LOG.error("request %s failed: %s\n%s", id, type(error).__name__, where)
    else:
        LOG.error("request %s failed", id, exc_info=error)


class RequestRecord:
    """One request.

    Attributes:
        id: of the answer.
        status: of HTTP.
        details: more fields of its line.
        warnings: what there is to say about its constraint, which the answer reports.
        report: what of each keyword is enforced, where the answer is to say so; None: it is not.
        trace: its span; None: it has none.

    Args:
        metrics: of the server.
    """

    def __init__(self, id: str, path: str, metrics: ServerMetrics, trace: RequestTrace | None = None) -> None:
        self.id, self.trace = id, trace
        self.status = 200
        self.details: dict[str, Any] = {}
        self.warnings: list[str] = []
        self.report: dict[str, Any] | None = None
        self._path, self._metrics = path, metrics
        self._started = time.monotonic()
        self._first: float | None = None
        self._last: float | None = None

    def asked(self, work: InferenceRequest, model: str) -> None:
        """Note what is asked for."""
        self.details.update(model=model, stream=work.sequence.streams, prompt_tokens=work.prompt_tokens)
        self.details["constraint"] = work.constraint.kind if work.constraint else None
        self._metrics.asked(work.prompt_tokens)
        if self.trace is not None:
            self.trace.asked(work, model)

    def warn(self, warnings: list[str]) -> None:
        """Note what there is to say about its constraint."""
        if warnings:
            self.warnings, self.details["warnings"] = warnings, len(warnings)

    def metadata(self, *, warns: bool = True) -> dict[str, Any]:
        """What an answer says besides, at its key ``structgen``; ``warns``: the warnings are part of it."""
        said: dict[str, Any] = {"warnings": self.warnings} if warns and self.warnings else {}
        return said if self.report is None else {**said, "report": self.report}

    @property
    def headers(self) -> dict[str, str]:
        """Those of its answer."""
        text = json.dumps(self.warnings) if self.warnings else ""
        return {"x-request-id": self.id} | ({"x-structgen-warnings": text[:MAX_HEADER]} if text else {})

    @contextmanager
    def compiling(self, kind: str, *, kept: bool) -> Iterator[None]:
        """While the grammar of a kind of constraint is waited for; ``kept``: it was compiled before."""
        started, outcome = time.monotonic(), "kept" if kept else "compiled"
        try:
            with nullcontext() if self.trace is None else self.trace.compiling(kind):
                yield
        except RequestError as error:
            outcome = error.code or "failed"
            raise
        finally:
            self._metrics.compiled(kind, outcome, time.monotonic() - started)

    def event(self, event: SequenceEvent) -> None:
        """Note what is streamed."""
        now = time.monotonic()
        if self._first is None and event.tokens:
            self._first = now
            self._metrics.first_token.observe(now - self._started)
        elif self._last is not None:
            self._metrics.between_tokens.observe(now - self._last)
        self._last = now

    def ended(self, ends: Sequence[SequenceEnd], work: InferenceRequest) -> None:
        """Note how the outputs ended."""
        reasons = [work.finish_reason(end.finish_reason) for end in ends]
        for end, reason in zip(ends, reasons, strict=True):
            self._metrics.ended(end, reason)
        if self._first is None and ends:  # nothing was streamed
            self._metrics.first_token.observe(min(end.times.first for end in ends) - self._started)
        self._metrics.whole.observe(time.monotonic() - self._started)
        self.details["completion_tokens"] = sum(len(end.token_ids) for end in ends)
        self.details["finish_reasons"] = [end.finish_reason for end in ends]
        self.details["forced_tokens"] = sum(end.stats.forced_tokens for end in ends)
        if self._first is not None:
            self.details["first_token_seconds"] = round(self._first - self._started, 6)
        if self.trace is not None:
            self.trace.ended(ends, reasons)

    def refused(self, error: BaseException) -> RequestError:
        """The error as the client gets it; those that are the server's own go to the log."""
        reported = as_request_error(error)
        self.status = reported.status
        self.details["error"] = reported.code
        if reported.status >= 500 and reported.code not in ("draining",):
            log_failure(self.id, error)
        self._metrics.rejected(reported.code or reported.type)
        return reported

    def left(self) -> None:
        """The client went away, unless the request was answered."""
        if "finish_reasons" not in self.details and "error" not in self.details:
            self.status = CLIENT_CLOSED
            self._metrics.cancelled.inc()
        self.close()

    def close(self) -> None:
        """Write the line, and end the span."""
        seconds = round(time.monotonic() - self._started, 6)
        fields = {"id": self.id, "path": self._path, "status": self.status, "seconds": seconds}
        LOG.info(json.dumps({**fields, **self.details}))
        if self.trace is not None:
            error = "client_closed_request" if self.status == CLIENT_CLOSED else self.details.get("error")
            if error is None and self.status >= 400:
                error = str(self.status)
            first = None if self._first is None else self._first - self._started
            self.trace.finish(self.id, self.status, error, first)
