"""The HTTP application: routes, and the way of a request through reading, compiling, writing and answering."""

from __future__ import annotations

import asyncio
import json
import sys
import time
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from structgen.core.answers.refused_texts import TextAndConstraint, refused_offset
from structgen.core.constraints.cache import COMPILED, content_key, joined
from structgen.core.constraints.remarks import remarks
from structgen.errors import GrammarWarning, RefusedTextError
from structgen.generation.generator import Generator
from structgen.server.admission import Admission
from structgen.server.answering import Answering, Caller
from structgen.server.compiler import CompileService
from structgen.server.coverage import report_of
from structgen.server.endpoints import SURFACES, AnswerWriter, Surface
from structgen.server.engine import AsyncEngine, RequestStream, with_prompt_length
from structgen.server.errors import RequestError, as_request_error, overloaded
from structgen.server.formats import PlacedConstraint, structured_constraint
from structgen.server.gate import Gate
from structgen.server.inference_request import InferenceRequest, new_id
from structgen.server.memory import give_back_regularly
from structgen.server.metrics import ServerMetrics
from structgen.server.openai_types import CheckRequest, RequestPart
from structgen.server.pages import page_routes
from structgen.server.reading import READ_AT_ONCE, read_json, read_request
from structgen.server.records import CLIENT_CLOSED, LOG, RequestRecord
from structgen.server.sequences import SequenceEnd, SequenceEvent, SequenceRequest, ServedModel
from structgen.server.settings import ServingSettings
from structgen.server.sources import sources_of
from structgen.server.sse import ClientGone, EventStream, Receive, begun, wait_until_gone
from structgen.server.token_endpoints import TOKEN_ENDPOINTS
from structgen.server.tracing import RequestTrace
from structgen.server.waiting_slots import WaitingSlot, WaitingSlots

# The process is the server's own, so it may set this for all of it; CPython has no such setting for one thread.
SWITCH_SECONDS = 5e-4
"""After which a thread gives Python's lock to one that waits for it. A step of the model waits for it several times: by
Python's own 5 milliseconds it takes twice as long while a thread runs that reads what a stranger sends."""
_T = TypeVar("_T")
_Asked = TypeVar("_Asked", bound=RequestPart)


class ApiServer:
    """A model over HTTP.

    Attributes:
        is_warm: whether a first token was written; until then requests wait.
        failure: why none could be; None: nothing has gone wrong.

    Args:
        model: see ``AsyncEngine``.
        settings: limits; None: ``ServingSettings()``.
        metrics_prefix: of the names of metrics.
    """

    def __init__(
        self,
        model: Generator | ServedModel,
        settings: ServingSettings | None = None,
        *,
        metrics_prefix: str = "structgen:",
    ) -> None:
        given_settings = (settings or ServingSettings()).of_model(model.defaults)
        self.settings = with_prompt_length(given_settings, model)
        self.metrics = ServerMetrics(self.settings.model_names[0], metrics_prefix, self.settings.max_cache_bytes)
        workers, limits = self.settings.compile_workers, self.settings.compile_limits
        self._service = CompileService(model.vocabulary, limits, workers, self.settings.sources) if workers else None
        self.engine = AsyncEngine(model, self.settings, compiling=self._service, observe=self.metrics.step)
        self.admission = Admission(self.settings)
        self.created = int(time.time())
        self.is_warm = False
        self.failure: BaseException | None = None
        self._drafts = model.drafts
        self._bodies = self._bodies_logged = 0
        self._slots = WaitingSlots(lambda who: self.engine.room_for(who), self._no_room)

    def app(self) -> Starlette:
        """The ASGI application."""
        posts = [Route(surface.path, self._endpoint(surface), methods=["POST"]) for surface in SURFACES]
        gets = {
            "/v1/models": self._models,
            "/v1/models/{model:path}": self._model,
            "/health": self._health,
            "/ready": self._ready,
            "/metrics": self._metrics,
        }
        asked = [Route(path, endpoint, methods=["GET"]) for path, endpoint in gets.items()]
        plain = {"/check": self._report} | {
            path: partial(self._tokens, kind, describe) for path, (kind, describe) in TOKEN_ENDPOINTS.items()
        }
        others = [Route(path, self._plain(path, answer), methods=["POST"]) for path, answer in plain.items()]
        routes = [*page_routes(), *others, *posts, *asked]
        handlers: Any = {HTTPException: _http_error, RequestError: _request_error, Exception: _request_error}
        gate = Middleware(Gate, admission=self.admission, most=4 * self.settings.max_body)
        return Starlette(routes=routes, middleware=[gate], exception_handlers=handlers, lifespan=self._lifespan)

    async def drain(self) -> None:
        """Take on no more work, let what there is end, and close validly what does not end in time."""
        self.admission.is_draining = True
        await self._wait_until_idle(self.settings.drain_seconds)
        if not self.engine.is_idle:
            self.engine.hurry()
            await self._wait_until_idle(self.settings.drain_seconds)

    async def _wait_until_idle(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self.engine.is_idle and time.monotonic() < until:
            await asyncio.sleep(0.02)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        warnings.filterwarnings("ignore", category=GrammarWarning)  # they name rules of requests
        interval = sys.getswitchinterval()
        sys.setswitchinterval(min(interval, SWITCH_SECONDS))
        background = [
            asyncio.ensure_future(self._warm_up()),
            asyncio.ensure_future(give_back_regularly(self._has_worked)),
        ]
        try:
            yield
        finally:
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)
            await asyncio.to_thread(self._close)
            sys.setswitchinterval(interval)

    async def _warm_up(self) -> None:
        """Have a first token written; what is asked meanwhile waits for it."""
        if self.is_warm:
            return
        started = time.monotonic()
        if self._drafts:
            what = "preparing drafts: weights are copied, and calls of several tokens are measured"
            LOG.info(json.dumps({"event": "preparing", "message": what}))
        try:
            await self.engine.agenerate("Hello", max_new_tokens=1)
        except Exception as error:
            self.failure = self.engine.failure or error
            return
        self.is_warm = True
        LOG.info(json.dumps({"event": "ready", "seconds": round(time.monotonic() - started, 1)}))

    def _has_worked(self) -> bool:
        """Whether a body came since this was asked last, or outputs are written or wait."""
        before, self._bodies_logged = self._bodies_logged, self._bodies
        return before != self._bodies or not self.engine.is_idle

    def _close(self) -> None:
        self.engine.close()
        if self._service is not None:
            self._service.close()

    # --- requests for text ---
    def _endpoint(self, surface: Surface) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            trace = RequestTrace(surface.path, request.headers, self.settings.model_names[0])
            record = RequestRecord(new_id(surface.id_prefix), surface.path, self.metrics, trace)
            try:
                return await self._answer(surface, request, record)
            except Exception as error:
                return self._failed(error, record)

        return endpoint

    async def _answer(self, surface: Surface, request: Request, record: RequestRecord) -> Any:
        arrived = time.monotonic()
        caller, body = await self._received(request)
        with self._slots.held(caller.share) as slot:
            reading = _while_held(self._read_body(surface.request, body, caller), slot)
            asked = await _while_there(reading, request.receive)
        answering = Answering(surface, record, asked, caller, arrived, is_long=len(body) > READ_AT_ONCE)
        if not asked.stream:
            work, writer, stream = await _while_there(self._begun(answering), request.receive)
            try:
                events = work.chosen(await _while_there(stream.last(), request.receive))
                return self._whole(events, work, writer, record)
            except BaseException:
                self.engine.cancel(stream)
                raise
        silence = self.settings.silence_seconds  # what fails within has its status
        chunks, is_begun = await begun(self._chunks(answering), silence, request.receive)
        answering.has_headers = not is_begun
        return EventStream(
            chunks,
            record.headers,
            self.settings.write_seconds,
            answering.failure,
            record.left,
            silence,
            lambda: answering.waits_for,
            is_silent=not is_begun,
        )

    async def _received(self, request: Request) -> tuple[Caller, bytes]:
        """Who asks, and the body. A request whose body is still coming takes no slot of those that wait."""
        address = address_of(request)
        caller = Caller(self.admission.check(request.headers, address), address)
        self._slots.check(caller.share)
        self._bodies += 1
        return caller, await self.admission.body(request.headers, request.receive)

    def _no_room(self) -> RequestError:
        return overloaded("Too many requests wait already.", self.engine.retry_after())

    async def _begun(self, answering: Answering) -> tuple[InferenceRequest, AnswerWriter, RequestStream]:
        """What a request asks for, what answers it, and the outputs, which are being written."""
        share = answering.caller.share
        with self._slots.held(share) as slot:
            work, writer, sequences = await _while_held(self._prepared(answering), slot)
        sequences = [replace(sequence, key=share, arrived=answering.arrived) for sequence in sequences]
        return work, writer, self.engine.submit(sequences, share)

    async def _prepared(self, answering: Answering) -> tuple[InferenceRequest, AnswerWriter, list[SequenceRequest]]:
        """What a request asks for, what answers it, and the outputs that are to be written."""
        settings, vocabulary = self.settings, self.engine.vocabulary
        surface, record, asked, caller = answering.surface, answering.record, answering.asked, answering.caller
        self._check_model(asked.model)
        work: InferenceRequest = await self.engine.read(
            lambda tokenizer: surface.work(asked, tokenizer, vocabulary, settings),
            caller.share,
            is_long=answering.is_long,
        )
        model = asked.model or settings.model_names[0]
        record.asked(work, model)
        for ids in work.prompts:  # before anything is compiled for a prompt that is too long
            self.engine.budget(len(ids), work.sequence.max_new_tokens)
        answering.waits_for = "compiling the constraint"
        grammar = await self._compiled(work.constraint, record, caller, answering.arrived)
        if work.constraint is not None:
            record.warn(remarks(work.constraint.constraint, grammar))
        if asked.structgen.report:
            record.report = await self.engine.off_loop(lambda: report_of(grammar), caller.share, is_long=True)
        writer = surface.writer(work, vocabulary, id=record.id, created=int(time.time()), model=model)
        answering.waits_for, answering.writer = "waiting for the model", writer
        return work, writer, work.sequences(grammar, self.engine.budget, caller.key)

    async def _read_body(self, kind: type[_Asked], body: bytes, caller: Caller) -> _Asked:
        """The request in a body; a large one is read off the loop. Errors as ``read_json``, ``read_request``."""
        if len(body) <= READ_AT_ONCE:
            return read_request(kind, read_json(body))
        return await self.engine.off_loop(lambda: read_request(kind, read_json(body)), caller.share, is_long=True)

    def _whole(
        self, events: Sequence[SequenceEvent], work: InferenceRequest, writer: AnswerWriter, record: RequestRecord
    ) -> Response:
        answer = writer.completion(events)
        record.ended([event.end for event in events if event.end is not None], work)
        record.close()
        said = record.metadata()
        answer = {**answer, "structgen": said} if said else answer
        return JSONResponse(answer, headers=record.headers)

    async def _chunks(self, answering: Answering) -> AsyncGenerator[bytes, None]:
        """The encoded events of an answer."""
        surface, record = answering.surface, answering.record
        work, writer, stream = await self._begun(answering)
        try:
            events = _chosen(stream, work) if work.is_chosen else stream.events()
            index, event = await anext(events)
            for chunk in writer.opening():
                yield answering.encoded(chunk)
            ends: dict[int, SequenceEnd] = {}
            while True:
                record.event(event)
                if event.end is not None:
                    ends[index] = event.end
                for chunk in writer.chunks(index, event):
                    yield answering.encoded(chunk)
                try:
                    index, event = await anext(events)
                except StopAsyncIteration:
                    break
            for chunk in writer.closing():
                yield answering.encoded(chunk)
            record.ended([ends[index] for index in sorted(ends)], work)
            if surface.done:
                yield surface.done
        finally:
            self.engine.cancel(stream)

    async def _compiled(
        self, constraint: PlacedConstraint | None, record: RequestRecord, caller: Caller, arrived: float
    ) -> Any:
        if constraint is None:
            return None
        kept = COMPILED.peek(joined(content_key(constraint.constraint), self.engine.vocabulary)) is not None
        with record.compiling(constraint.kind, kept=kept):
            try:
                until = arrived + self.settings.queue_seconds
                return await self.engine.compile(constraint.constraint, caller.share, until)
            except Exception as error:
                raise as_request_error(error, constraint.place) from error

    def _check_model(self, name: str | None) -> None:
        if name is not None and name not in self.settings.model_names:
            raise _no_model(name, self.settings.model_names)

    def _failed(self, error: Exception, record: RequestRecord) -> Response:
        if isinstance(error, ClientGone):
            record.left()
            return Response(status_code=CLIENT_CLOSED)
        reported = record.refused(error)
        record.close()
        return _error_response(reported, record.id)

    # --- what is asked about the server ---
    async def _models(self, request: Request) -> Response:
        self.admission.check_key(request.headers)
        return JSONResponse({"object": "list", "data": [self._described(name) for name in self.settings.model_names]})

    async def _model(self, request: Request) -> Response:
        self.admission.check_key(request.headers)
        name = request.path_params["model"]
        if name not in self.settings.model_names:
            raise _no_model(name, self.settings.model_names)
        return JSONResponse(self._described(name))

    def _described(self, name: str) -> dict[str, Any]:
        described = {"id": name, "object": "model", "created": self.created, "owned_by": "structgen"}
        sampling = self.settings.sampling_defaults
        return {**described, "max_model_len": self.engine.context_length, "sampling_defaults": sampling}

    def _plain(
        self, path: str, answer: Callable[[Request, RequestRecord], Awaitable[dict[str, Any]]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint whose answers are objects and no text of the model's."""

        async def endpoint(request: Request) -> Response:
            record = RequestRecord(new_id(f"{path[1:]}-"), path, self.metrics)
            try:
                fields = await answer(request, record)
            except Exception as error:
                return self._failed(error, record)
            record.close()
            return JSONResponse(fields, headers={"x-request-id": record.id})

        return endpoint

    async def _tokens(
        self, kind: type[Any], describe: Callable[..., dict[str, Any]], request: Request, record: RequestRecord
    ) -> dict[str, Any]:
        """The tokens of a prompt, or their text."""
        caller, body = await self._received(request)
        asked, engine = await self._read_body(kind, body, caller), self.engine
        self._check_model(asked.model)
        with self._slots.held(caller.share) as slot:
            reading = engine.read(
                lambda tokenizer: describe(asked, tokenizer, engine.vocabulary, self.settings, engine.context_length),
                caller.share,
                is_long=len(body) > READ_AT_ONCE,
            )
            fields: dict[str, Any] = await _while_there(_while_held(reading, slot), request.receive)
        return fields

    async def _report(self, request: Request, record: RequestRecord) -> dict[str, Any]:
        """What of a constraint is enforced: for the page."""
        arrived = time.monotonic()
        caller, body = await self._received(request)
        off_loop = partial(self.engine.off_loop, who=caller.share, is_long=True)  # no prompt waits for what a page asks
        asked = await self._read_body(CheckRequest, body, caller)
        constraint = await off_loop(
            lambda: structured_constraint(asked.structured_outputs, self.settings, sources_of(asked, {}, self.settings))
        )
        assert constraint is not None
        started = time.perf_counter()
        with self._slots.held(caller.share) as slot:
            compiling = _while_there(self._compiled(constraint, record, caller, arrived), request.receive)
            grammar = await _while_held(compiling, slot)
        milliseconds = 1e3 * (time.perf_counter() - started)
        report = await off_loop(lambda: report_of(grammar))
        total = "".join(f"; {count} keywords {status}" for status, count in sorted(report["counts"].items()))
        summary = f"Every output satisfies the constraint{total}; compiled in {milliseconds:.0f} ms."
        record.details["constraint"] = constraint.kind
        answer = {"summary": summary, "keywords": report["keywords"]}
        if asked.text is None:
            return answer
        data = (asked.text + asked.token).encode(errors="surrogatepass")
        offset = await off_loop(lambda: refused_offset(grammar, data))
        judged: dict[str, Any] = {"refused_at_byte": offset, "is_begun": offset == len(data), "reasons": []}
        if offset is not None:
            question = TextAndConstraint(constraint.constraint, asked.text, asked.token)
            why = PlacedConstraint(question, ("text",), "reasons")
            with self._slots.held(caller.share) as slot:
                asking = _while_there(self._reasons(why, record, caller, arrived), request.receive)
                judged["reasons"] = await _while_held(asking, slot)
        return {**answer, "text": judged}

    async def _reasons(
        self, why: PlacedConstraint, record: RequestRecord, caller: Caller, arrived: float
    ) -> list[dict[str, str]]:
        """The keywords that refuse a text: asked where constraints are compiled, under their limits."""
        try:
            await self._compiled(why, record, caller, arrived)
        except RequestError as error:
            if isinstance(error.__cause__, RefusedTextError):
                return [reason.to_dict() for reason in error.__cause__.reasons]
            raise
        raise AssertionError("a question gives no grammar")

    async def _health(self, _: Request) -> Response:
        healthy = self.engine.is_healthy
        return JSONResponse({"status": "ok" if healthy else "failed"}, 200 if healthy else 503)

    async def _ready(self, _: Request) -> Response:
        ready = self.is_warm and self.engine.is_healthy and not self.admission.is_draining
        state = "draining" if self.admission.is_draining else "ready" if ready else "not ready"
        return JSONResponse({"status": state}, 200 if ready else 503)

    async def _metrics(self, _: Request) -> Response:
        self.metrics.outputs(
            self.engine.running, self.engine.waiting
        )  # the last step may not have reported its end yet
        return Response(self.metrics.text(), media_type=self.metrics.content_type)


def address_of(request: Request) -> str:
    """Where a request comes from."""
    return request.client.host if request.client else ""


async def _chosen(stream: RequestStream, work: InferenceRequest) -> AsyncGenerator[tuple[int, SequenceEvent], None]:
    """As ``RequestStream.events``, of what is chosen when all are written."""
    for index, event in enumerate(work.chosen(await stream.last())):
        yield index, event


async def _while_there(work: Any, receive: Receive) -> Any:
    """The result of a coroutine, given up when the client is gone.

    Raises:
        ClientGone: it is.
    """
    gone, working = asyncio.ensure_future(wait_until_gone(receive)), asyncio.ensure_future(work)
    try:
        await asyncio.wait({gone, working}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone("the client went away")
        return working.result()
    finally:
        for task in (gone, working):
            task.cancel()
        await asyncio.gather(gone, working, return_exceptions=True)


async def _while_held(work: Coroutine[Any, Any, _T], slot: WaitingSlot) -> _T:
    """The result of a coroutine, given up when its slot is another's.

    Raises:
        RequestError: it is.
    """
    working = asyncio.ensure_future(work)
    either: set[asyncio.Future[Any]] = {working, slot.turned_away}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            slot.turned_away.result()
        return working.result()
    finally:
        slot.turned_away.cancel()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


def _no_model(name: str, names: Sequence[str]) -> RequestError:
    return RequestError(
        f"There is no model {name!r}; there is {', '.join(names)}.", status=404, code="model_not_found", param="model"
    )


def _error_response(error: RequestError, request_id: str | None = None) -> Response:
    headers = error.headers() if request_id is None else {**error.headers(), "x-request-id": request_id}
    return JSONResponse(error.body(), error.status, headers=headers)


async def _http_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code)
    wrong = RequestError(f"{error.detail}.", status=error.status_code, code=code)
    response = _error_response(wrong)
    response.headers.update(error.headers or {})
    return response


async def _request_error(_: Request, error: Exception) -> Response:
    return _error_response(as_request_error(error))
