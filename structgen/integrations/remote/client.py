"""The two clients: openai's own, driven by what `asking` says."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, overload
from weakref import WeakKeyDictionary

from structgen.core.answers.targets.table import target_of
from structgen.core.constraints.base import T
from structgen.core.constraints.json import as_constraint
from structgen.core.constraints.sources import Source, Texts
from structgen.errors import IntegrationError, RemoteServerError
from structgen.generation.decoding.prompts import Prompt, telling
from structgen.integrations.remote.request_formats import ServerKnowledge, check_fields, provider_at
from structgen.integrations.remote.results import RemoteEvent, RemoteResult
from structgen.integrations.remote.retry_policy import Asking, usage_of
from structgen.options import check_count

if TYPE_CHECKING:
    import openai

    from structgen.core.constraints.sources import TypeForm

DEFAULT_ATTEMPTS = 3


class _Remote:
    """What both clients have: the model, and what is known of the server.

    Attributes:
        client: of the package openai.
        model: the model's name there.
        server: what was found out about it, for later calls; see `ServerKnowledge`.
    """

    def __init__(self, client: Any, model: str, target: str | None = None) -> None:
        self.client = client
        self.model = model
        target = provider_at(getattr(client, "base_url", "")) if target is None else target_of(target).name
        self.server = ServerKnowledge(target=target)

    def _asked(
        self,
        prompt: Prompt,
        constraint: Any,
        max_attempts: int = DEFAULT_ATTEMPTS,
        max_new_tokens: int | None = None,
        schema_in_prompt: bool | str = True,
        schema_form: str = "auto",
        **fields: Any,
    ) -> Callable[[], Asking]:
        """What begins to ask, which compiles the constraint; the arguments are checked now."""
        check_count("max_attempts", max_attempts)
        check_count("max_new_tokens", max_new_tokens, optional=True)
        instructs = telling(schema_in_prompt, schema_form)
        wanted = {"model": self.model, **fields}
        checked = as_constraint(constraint)
        check_fields(fields, checked is not None, max_new_tokens is not None)
        return partial(Asking, prompt, checked, self.server, wanted, max_attempts, max_new_tokens, instructs)


class RemoteGenerator(_Remote):
    """Writes outputs that satisfy constraints with any OpenAI-compatible server; checked here, byte by byte.

    A constraint is asked for in the best form that the server takes (``response_format`` with ``json_schema``, vLLM's
    ``structured_outputs`` and ``guided_*``, SGLang's and llama.cpp's fields, else in the prompt alone); what it refuses
    is remembered. An answer that does not conform is repaired where one part of it does, continued where the server can
    go on with a message, and else asked for again, with what was wrong.

    May be used by several threads.

    Args:
        base_url: such as ``http://localhost:8000/v1``; None: that of the environment, as openai reads it.
        model: the model's name there.
        api_key: None: OPENAI_API_KEY, or none.
        client: an ``openai.OpenAI`` in place of all that, with its own time limits and retries.
        target: the provider whose part of JSON Schema the server reads ("openai", "anthropic", "gemini", ...; see
            `structgen.lower`): schemas are lowered to it, and answers mapped back. None: by the server's address.

    Raises:
        IntegrationError: the package openai is missing. OptionsError: no such target.
    """

    client: openai.OpenAI

    def __init__(
        self,
        base_url: str | None = None,
        model: str = "default",
        *,
        api_key: str | None = None,
        client: Any = None,
        target: str | None = None,
    ) -> None:
        super().__init__(client or _openai().OpenAI(base_url=base_url, api_key=_key(api_key)), model, target)
        self._address = None if client else (base_url, api_key)
        self._by_loop = WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncRemoteGenerator]()

    @overload
    def generate(self, prompt: Prompt, constraint: Texts = None, **options: Any) -> RemoteResult[str]: ...

    @overload
    def generate(self, prompt: Prompt, constraint: Source[T], **options: Any) -> RemoteResult[T]: ...

    @overload
    def generate(self, prompt: Prompt, constraint: TypeForm[T], **options: Any) -> RemoteResult[T]: ...

    @overload
    def generate(self, prompt: Prompt, constraint: Any, **options: Any) -> RemoteResult[Any]: ...

    def generate(self, prompt: Prompt, constraint: Any = None, **options: Any) -> RemoteResult[Any]:
        """Write one output.

        Args:
            prompt: a string, or chat messages.
            constraint: a constraint, or anything ``json_schema`` takes; None: free text.
            **options: ``max_attempts`` (answers, 3), ``max_new_tokens`` (of each answer; None: the server's default),
                ``schema_in_prompt`` (True, False, "user" or "system"), ``schema_form`` ("auto" is the schema), and
                fields of the request: ``temperature``, ``seed``, ``stop``, ``extra_body``, ...

        Raises:
            OptionsError: an option has a wrong value, or is a field that results would say nothing of.
            RemoteOutputError: no answer conforms; it has the ``attempts``.
            RemoteServerError: the server refuses the request as such, or cannot be reached.
            ConstraintError: the constraint cannot be used.
        """
        asking = self._asked(prompt, constraint, **options)()
        while asking.result is None:
            with _reported(asking):
                reply = self.client.chat.completions.create(**asking.request())
                _take(asking, reply)
        return asking.result

    @overload
    def stream(self, prompt: Prompt, constraint: Texts = None, **options: Any) -> Iterator[RemoteEvent[str]]: ...

    @overload
    def stream(self, prompt: Prompt, constraint: Source[T], **options: Any) -> Iterator[RemoteEvent[T]]: ...

    @overload
    def stream(self, prompt: Prompt, constraint: TypeForm[T], **options: Any) -> Iterator[RemoteEvent[T]]: ...

    @overload
    def stream(self, prompt: Prompt, constraint: Any, **options: Any) -> Iterator[RemoteEvent[Any]]: ...

    def stream(self, prompt: Prompt, constraint: Any = None, **options: Any) -> Iterator[RemoteEvent[Any]]:
        """Write one output, yielding text that fits as it comes; arguments and errors as ``generate``.

        At the first byte that does not fit the stream is closed and the next attempt begins: after what fits, where
        the server can go on with a message, else anew; then ``event.attempt`` is another, and the text begins anew.
        Bad arguments raise at the call.
        """
        return self._stream(self._asked(prompt, constraint, **options)())

    def _stream(self, asking: Asking) -> Iterator[RemoteEvent]:
        while asking.result is None:
            with _reported(asking):
                stream = self.client.chat.completions.create(**asking.request(), **_STREAMING)
                writing = _Writing(asking)
                with stream:
                    for chunk in stream:
                        event = writing.take(chunk)
                        if event is not None:
                            yield event
                        if asking.is_wrong:
                            break
                writing.finish()
        yield _last(asking)

    @overload
    async def agenerate(self, prompt: Prompt, constraint: Texts = None, **options: Any) -> RemoteResult[str]: ...

    @overload
    async def agenerate(self, prompt: Prompt, constraint: Source[T], **options: Any) -> RemoteResult[T]: ...

    @overload
    async def agenerate(self, prompt: Prompt, constraint: TypeForm[T], **options: Any) -> RemoteResult[T]: ...

    @overload
    async def agenerate(self, prompt: Prompt, constraint: Any, **options: Any) -> RemoteResult[Any]: ...

    async def agenerate(self, prompt: Prompt, constraint: Any = None, **options: Any) -> RemoteResult[Any]:
        """`generate` while the loop goes on, any number of calls at once; cancelling the task ends the request.

        Raises:
            IntegrationError: this was made with a ``client``, which is not for coroutines.
        """
        return await self._in_loop().generate(prompt, constraint, **options)

    @overload
    def astream(
        self, prompt: Prompt, constraint: Texts = None, **options: Any
    ) -> AsyncGenerator[RemoteEvent[str], None]: ...

    @overload
    def astream(
        self, prompt: Prompt, constraint: Source[T], **options: Any
    ) -> AsyncGenerator[RemoteEvent[T], None]: ...

    @overload
    def astream(
        self, prompt: Prompt, constraint: TypeForm[T], **options: Any
    ) -> AsyncGenerator[RemoteEvent[T], None]: ...

    @overload
    def astream(self, prompt: Prompt, constraint: Any, **options: Any) -> AsyncGenerator[RemoteEvent[Any], None]: ...

    def astream(self, prompt: Prompt, constraint: Any = None, **options: Any) -> AsyncGenerator[RemoteEvent[Any], None]:
        """`stream` while the loop goes on; leaving the iterator ends the request. Errors as ``agenerate``."""
        return self._in_loop().stream(prompt, constraint, **options)

    def _in_loop(self) -> AsyncRemoteGenerator:
        """The same server for coroutines of the running loop, to which connections belong."""
        if self._address is None:
            raise IntegrationError(
                "This RemoteGenerator was made with an openai.OpenAI, which is not for coroutines; make an "
                "AsyncRemoteGenerator with an openai.AsyncOpenAI, which has generate and stream for them."
            )
        loop, (base_url, api_key) = asyncio.get_running_loop(), self._address
        client = self._by_loop.get(loop)
        if client is None:
            client = self._by_loop[loop] = AsyncRemoteGenerator(base_url, self.model, api_key=api_key)
            client.server = self.server  # what one learns of it, the other knows
        return client


class AsyncRemoteGenerator(_Remote):
    """`RemoteGenerator` for coroutines: the same arguments, results and errors; any number of calls at once."""

    client: openai.AsyncOpenAI

    def __init__(
        self,
        base_url: str | None = None,
        model: str = "default",
        *,
        api_key: str | None = None,
        client: Any = None,
        target: str | None = None,
    ) -> None:
        super().__init__(client or _openai().AsyncOpenAI(base_url=base_url, api_key=_key(api_key)), model, target)

    @overload
    async def generate(self, prompt: Prompt, constraint: Texts = None, **options: Any) -> RemoteResult[str]: ...

    @overload
    async def generate(self, prompt: Prompt, constraint: Source[T], **options: Any) -> RemoteResult[T]: ...

    @overload
    async def generate(self, prompt: Prompt, constraint: TypeForm[T], **options: Any) -> RemoteResult[T]: ...

    @overload
    async def generate(self, prompt: Prompt, constraint: Any, **options: Any) -> RemoteResult[Any]: ...

    async def generate(self, prompt: Prompt, constraint: Any = None, **options: Any) -> RemoteResult[Any]:
        """See `RemoteGenerator.generate`."""
        asking = await asyncio.to_thread(self._asked(prompt, constraint, **options))  # compiling holds up no loop
        while asking.result is None:
            with _reported(asking):
                reply = await self.client.chat.completions.create(**asking.request())
                _take(asking, reply)
        return asking.result

    @overload
    def stream(
        self, prompt: Prompt, constraint: Texts = None, **options: Any
    ) -> AsyncGenerator[RemoteEvent[str], None]: ...

    @overload
    def stream(self, prompt: Prompt, constraint: Source[T], **options: Any) -> AsyncGenerator[RemoteEvent[T], None]: ...

    @overload
    def stream(
        self, prompt: Prompt, constraint: TypeForm[T], **options: Any
    ) -> AsyncGenerator[RemoteEvent[T], None]: ...

    @overload
    def stream(self, prompt: Prompt, constraint: Any, **options: Any) -> AsyncGenerator[RemoteEvent[Any], None]: ...

    def stream(self, prompt: Prompt, constraint: Any = None, **options: Any) -> AsyncGenerator[RemoteEvent[Any], None]:
        """See `RemoteGenerator.stream`; what is wrong with prompt and constraint raises at the first event."""
        return self._stream(self._asked(prompt, constraint, **options))

    async def _stream(self, asked: Callable[[], Asking]) -> AsyncGenerator[RemoteEvent, None]:
        asking = await asyncio.to_thread(asked)
        while asking.result is None:
            with _reported(asking):
                stream = await self.client.chat.completions.create(**asking.request(), **_STREAMING)
                writing = _Writing(asking)
                async with stream:
                    async for chunk in stream:
                        event = writing.take(chunk)
                        if event is not None:
                            yield event
                        if asking.is_wrong:
                            break
                writing.finish()
        yield _last(asking)


_STREAMING: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}


class _Writing:
    """A stream of one attempt: chunks in, events out."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._number = len(asking.attempts)
        self._text = asking.kept
        self._finish_reason: str | None = None
        self._refusal = ""
        self._usage: dict[str, int] = {}

    def take(self, chunk: Any) -> RemoteEvent | None:
        """A chunk, and what of it fits."""
        self._usage = usage_of(chunk.usage) or self._usage
        if not chunk.choices:
            return None
        choice = chunk.choices[0]
        self._finish_reason = choice.finish_reason or self._finish_reason
        self._refusal += getattr(choice.delta, "refusal", None) or ""
        delta = self._asking.feed(choice.delta.content or "")
        self._text += delta
        if not delta:
            return None
        return RemoteEvent(delta, self._text, self._number, None, self._asking.constraint)

    def finish(self) -> None:
        """The stream is over, or was closed."""
        self._asking.finish(self._finish_reason, self._usage, self._refusal or None)


def _take(asking: Asking, reply: Any) -> None:
    """A whole reply."""
    if not getattr(reply, "choices", None):
        raise RemoteServerError(f"the server's answer has no choices: {reply!r:.300}", attempts=tuple(asking.attempts))
    choice = reply.choices[0]
    asking.feed(choice.message.content or "")
    asking.finish(choice.finish_reason, usage_of(reply.usage), getattr(choice.message, "refusal", None))


def _last(asking: Asking) -> RemoteEvent:
    assert asking.result is not None
    return RemoteEvent("", asking.result.text, len(asking.attempts) - 1, asking.result, asking.constraint)


@contextmanager
def _reported(asking: Asking) -> Iterator[None]:
    """Errors of the client as what they say about the request, or as ours."""
    import openai

    try:
        yield
    except openai.APIStatusError as error:
        asking.refused(error.status_code, _message(error))
    except openai.APIConnectionError as error:
        where = error.request.url.host if error.request is not None else "the server"
        raise RemoteServerError(
            f"cannot reach {where}: {error.__cause__ or error}", attempts=tuple(asking.attempts)
        ) from error
    except openai.APIError as error:  # in a stream, or an answer that cannot be read
        raise RemoteServerError(f"the server failed: {error}", attempts=tuple(asking.attempts)) from error


def _message(error: openai.APIStatusError) -> str:
    """What the server said, with the field that it names."""
    try:
        return error.response.text or str(error)
    except Exception:  # a streamed answer that was not read
        return str(error)


def _key(api_key: str | None) -> str:
    return api_key or os.environ.get("OPENAI_API_KEY") or "none"  # servers of one's own ask for none


def _openai() -> Any:
    try:
        import openai
    except ImportError as error:
        raise IntegrationError("RemoteGenerator needs the package openai: pip install structgen-lm[remote]") from error
    return openai
