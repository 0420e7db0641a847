"""``/v1/responses``: requests as work, and what comes of it as a response and its events. No model, no I/O."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.server.chat import arguments_of, one_constraint, reply_work
from structgen.server.custom_tools import as_functions, choice_as_function
from structgen.server.errors import RequestError
from structgen.server.formats import PlacedConstraint, format_constraint, schema_constraint, structured_constraint
from structgen.server.inference_request import (
    InferenceRequest,
    TokenStream,
    call_id,
    choice_fields,
    end_of,
    new_id,
    thinking_tokens,
)
from structgen.server.openai_types import CustomTool, FunctionTool, JsonSchemaFormat
from structgen.server.outputs import CUSTOM_INPUT, OutputPart, OutputReader
from structgen.server.responses_types import (
    CustomCallItem,
    CustomCallOutputItem,
    FlatCustom,
    FlatFunction,
    FunctionCallItem,
    FunctionCallOutputItem,
    InputItem,
    MessageItem,
    ReasoningItem,
    ResponseJsonSchema,
    ResponseRequest,
)
from structgen.server.sequences import SequenceEnd, SequenceEvent
from structgen.server.settings import ServingSettings
from structgen.server.sources import message_texts, sources_of

LOGPROBS = "message.output_text.logprobs"


def response_work(
    request: ResponseRequest, tokenizer: Any, vocabulary: Vocabulary, settings: ServingSettings
) -> InferenceRequest:
    """What a request asks for.

    Raises:
        RequestError: what it asks for cannot be done, with the field that asks for it.
    """
    if request.structgen.fields:
        raise RequestError.at(
            ("structgen", "fields"), "Responses say nothing of fields; ask chat or completions", "unsupported_parameter"
        )
    wants_logprobs = LOGPROBS in (request.include or ()) or request.top_logprobs is not None
    tools, custom = as_functions([_nested(tool) for tool in request.tools or []], settings.compile_limits)
    choice: Any = request.tool_choice
    messages = plain_input(request)
    sources = sources_of(request, message_texts(messages), settings)
    return reply_work(
        messages,
        tokenizer,
        vocabulary,
        settings,
        request=request,
        constraint=one_constraint(
            _text_constraint(request, settings, sources),
            structured_constraint(request.structured_outputs, settings, sources),
        ),
        sources=sources,
        tools=tools,
        custom=custom,
        tool_choice=choice if choice is None or isinstance(choice, str) else choice_as_function(choice.model_dump()),
        parallel=request.parallel_tool_calls is not False,
        effort=request.reasoning.effort if request.reasoning else None,
        template_fields={},
        max_tokens=request.max_output_tokens or settings.default_max_tokens,
        logprobs=(request.top_logprobs or 0) if wants_logprobs else None,
    )


def _text_constraint(
    request: ResponseRequest, settings: ServingSettings, sources: Mapping[str, Any]
) -> PlacedConstraint | None:
    given = request.text.format if request.text else None
    if not isinstance(given, ResponseJsonSchema):
        constraint = format_constraint(given, settings, sources)
        return (
            None if constraint is None else PlacedConstraint(constraint.constraint, ("text", "format"), constraint.kind)
        )
    fields = {"name": given.name, "schema": given.schema_, "strict": given.strict}
    return schema_constraint(JsonSchemaFormat.model_validate(fields), ("text", "format", "schema"), settings, sources)


def _nested(tool: FlatFunction | FlatCustom) -> FunctionTool | CustomTool:
    """A tool as chat has it."""
    fields = tool.model_dump(exclude_unset=True, exclude={"type"})
    if isinstance(tool, FlatFunction):
        return FunctionTool.model_validate({"type": "function", "function": fields})
    if (form := fields.get("format")) and form["type"] == "grammar":
        grammar = {"syntax": form["syntax"], "definition": form["definition"]}
        fields["format"] = {"type": "grammar", "grammar": grammar}
    return CustomTool.model_validate({"type": "custom", "custom": fields})


def plain_input(request: ResponseRequest) -> list[dict[str, Any]]:
    """The input as messages: calls belong to the message before them, thinking to the one after it."""
    messages: list[dict[str, Any]] = []
    if request.instructions:
        messages.append({"role": "system", "content": request.instructions})
    items = request.input
    if isinstance(items, str):
        return [*messages, {"role": "user", "content": items}]
    thoughts: list[str] = []
    for item in items:
        if isinstance(item, ReasoningItem):
            thoughts += [part.text for part in item.content or item.summary or ()]
            continue
        message = _plain_item(item)
        if message["role"] == "assistant":
            if thoughts:
                message["reasoning_content"], thoughts = "\n".join(thoughts), []
            if "tool_calls" in message and messages and messages[-1]["role"] == "assistant":
                messages[-1].setdefault("tool_calls", []).extend(message["tool_calls"])
                texts = [each["reasoning_content"] for each in (messages[-1], message) if "reasoning_content" in each]
                messages[-1] |= {"reasoning_content": "\n".join(texts)} if texts else {}
                continue
        messages.append(message)
    return messages


def _plain_item(item: InputItem) -> dict[str, Any]:
    if isinstance(item, MessageItem):
        role = "system" if item.role == "developer" else item.role
        return {"role": role, "content": _text(item.content)}
    if isinstance(item, FunctionCallOutputItem | CustomCallOutputItem):
        return {"role": "tool", "content": _text(item.output), "tool_call_id": item.call_id}
    if isinstance(item, FunctionCallItem):
        arguments = arguments_of(item.arguments)
    else:
        assert isinstance(item, CustomCallItem)
        arguments = {CUSTOM_INPUT: item.input}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": item.call_id, "name": item.name, "arguments": arguments}],
    }


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.refusal if part.type == "refusal" else part.text for part in content)


# --- what is answered ---
_ITEM_PREFIX = {"text": "msg_", "thinking": "rs_", "call": "fc_", "custom": "ctc_"}
_CALL_EVENTS = {
    "call": ("response.function_call_arguments", "arguments"),
    "custom": ("response.custom_tool_call_input", "input"),
}


class ResponseWriter:
    """Writes the answer to one request. Arguments as ``ChatWriter``."""

    def __init__(self, work: InferenceRequest, vocabulary: Vocabulary, *, id: str, created: int, model: str) -> None:
        self._work, self._vocabulary = work, vocabulary
        self._head = _head(work, id, created, model)
        self._reader = OutputReader(work.form)
        self._tokens = TokenStream(vocabulary)
        self._ids: dict[int, tuple[str, str]] = {}  # of the items, and of their calls
        self._logprobs: dict[int, list[dict[str, Any]]] = {}
        self._sent = 0
        self._open: int | None = None
        self._end: SequenceEnd | None = None
        self._text = ""
        self._thinking = 0

    def completion(self, events: Sequence[SequenceEvent]) -> dict[str, Any]:
        """The whole response."""
        for _ in self.chunks(0, events[0]):
            pass
        return self._response()

    def opening(self) -> Iterator[dict[str, Any]]:
        """What a stream begins with."""
        for name in ("created", "in_progress"):
            yield self._event(f"response.{name}", response=self._head)

    def chunks(self, index: int, event: SequenceEvent) -> Iterator[dict[str, Any]]:
        """The events for what is new."""
        self._tokens.add(event)
        self._text = event.text
        for delta in self._reader.read(event.text, is_whole=event.is_last):
            if self._open is not None and self._open != delta.index:
                yield from self._closed(self._open)
            if delta.is_new:
                yield from self._opened(delta.index, delta.part)
            if delta.delta:
                yield self._delta(delta.index, delta.part, delta.delta)
        if event.is_last:
            self._end = end_of(event)
            self._thinking = thinking_tokens(self._work, self._vocabulary, event)
            if self._open is not None:
                yield from self._closed(self._open)

    def closing(self) -> Iterator[dict[str, Any]]:
        """What a stream ends with."""
        response = self._response()
        yield self._event(f"response.{response['status']}", response=response)

    def failure(self, error: RequestError) -> dict[str, Any]:
        """The event for an error in a stream."""
        code = {429: "rate_limit_exceeded", 400: "invalid_prompt"}.get(error.status, "server_error")  # those there are
        fields = {"code": code, "message": error.message}
        return self._event("response.failed", response={**self._head, "status": "failed", "error": fields})

    # --- items ---
    def _opened(self, index: int, part: OutputPart) -> Iterator[dict[str, Any]]:
        self._open = index
        self._ids[index] = new_id(_ITEM_PREFIX[part.kind]), part.id or call_id(self._work.form.calls)
        empty = OutputPart(part.kind, "", part.name, part.id)
        item = self._item(index, empty, "in_progress")
        if part.kind in ("text", "thinking"):
            item["content"] = []
        yield self._event("response.output_item.added", output_index=index, item=item)
        if part.kind in ("text", "thinking"):
            yield self._event("response.content_part.added", **self._place(index), part=self._content(index, empty))

    def _delta(self, index: int, part: OutputPart, text: str) -> dict[str, Any]:
        if part.kind in _CALL_EVENTS:
            name, _ = _CALL_EVENTS[part.kind]
            return self._event(f"{name}.delta", item_id=self._ids[index][0], output_index=index, delta=text)
        name = "output_text" if part.kind == "text" else "reasoning_text"
        more = {"logprobs": self._new_logprobs(index)} if part.kind == "text" else {}
        return self._event(f"response.{name}.delta", **self._place(index), delta=text, **more)

    def _closed(self, index: int) -> Iterator[dict[str, Any]]:
        part = self._reader.parts[index]
        self._open = None
        if part.kind in _CALL_EVENTS:
            name, field = _CALL_EVENTS[part.kind]
            more = {"name": part.name} if part.kind == "call" else {}
            yield self._event(
                f"{name}.done", item_id=self._ids[index][0], output_index=index, **{field: part.text}, **more
            )
        else:
            name = "output_text" if part.kind == "text" else "reasoning_text"
            logprobs = {"logprobs": self._logprobs.get(index, [])} if part.kind == "text" else {}
            yield self._event(f"response.{name}.done", **self._place(index), text=part.text, **logprobs)
            yield self._event("response.content_part.done", **self._place(index), part=self._content(index, part))
        yield self._event(
            "response.output_item.done", output_index=index, item=self._item(index, part, self._status(index))
        )

    def _item(self, index: int, part: OutputPart, status: str) -> dict[str, Any]:
        item_id, call = self._ids[index]
        item: dict[str, Any] = {"id": item_id, "status": status}
        if part.kind == "text":
            return {**item, "type": "message", "role": "assistant", "content": [self._content(index, part)]}
        if part.kind == "thinking":
            return {**item, "type": "reasoning", "summary": [], "content": [self._content(index, part)]}
        kind = "custom_tool_call" if part.kind == "custom" else "function_call"
        return {**item, "type": kind, "call_id": call, "name": part.name, _CALL_EVENTS[part.kind][1]: part.text}

    def _content(self, index: int, part: OutputPart) -> dict[str, Any]:
        if part.kind == "thinking":
            return {"type": "reasoning_text", "text": part.text}
        logprobs = self._logprobs.get(index, []) if part.text else []
        return {"type": "output_text", "text": part.text, "annotations": [], "logprobs": logprobs}

    def _new_logprobs(self, index: int) -> list[dict[str, Any]]:
        if self._work.logprobs is None:
            return []
        start = self._work.form.answer_start(self._text)
        choices = [choice for offset, choice in self._tokens.with_text(self._text) if offset >= start]
        new = [choice_fields(self._vocabulary, choice, self._work.logprobs) for choice in choices]
        self._logprobs.setdefault(index, []).extend(new)
        return new

    def _place(self, index: int) -> dict[str, Any]:
        return {"item_id": self._ids[index][0], "output_index": index, "content_index": 0}

    def _status(self, index: int) -> str:
        is_last = self._end is not None and index == len(self._reader.parts) - 1
        return "incomplete" if is_last and self._finish() == "length" else "completed"

    def _finish(self) -> str:
        assert self._end is not None
        return self._work.finish_reason(self._end.finish_reason)

    # --- the response ---
    def _response(self) -> dict[str, Any]:
        assert self._end is not None
        output = [self._item(index, part, self._status(index)) for index, part in enumerate(self._reader.parts)]
        cut = self._finish() == "length"
        return {
            **self._head,
            "status": "incomplete" if cut else "completed",
            "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
            "completed_at": None if cut else int(time.time()),
            "output": output,
            "usage": self._usage(self._end),
        }

    def _usage(self, end: SequenceEnd) -> dict[str, Any]:
        written = len(end.token_ids)
        return {
            "input_tokens": self._work.prompt_tokens,
            "input_tokens_details": {"cached_tokens": end.cached_tokens, "cache_write_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": self._thinking},
            "total_tokens": self._work.prompt_tokens + written,
        }

    def _event(self, kind: str, **fields: Any) -> dict[str, Any]:
        self._sent += 1
        return {"type": kind, "sequence_number": self._sent - 1, **fields}


def _head(work: InferenceRequest, id: str, created: int, model: str) -> dict[str, Any]:
    """What a response says from its beginning on."""

    def dumped(value: Any) -> Any:
        return None if value is None else value.model_dump(by_alias=True, exclude_unset=True)

    request: Any = work.asked
    choice = request.tool_choice
    text = dumped(request.text) or {}
    return {
        "id": id,
        "object": "response",
        "created_at": created,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": request.instructions,
        "max_output_tokens": request.max_output_tokens,
        "metadata": request.metadata or {},
        "model": model,
        "output": [],
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "previous_response_id": None,
        "reasoning": {"effort": request.reasoning.effort if request.reasoning else None, "summary": None},
        "service_tier": "default",
        "store": False,
        "temperature": work.sequence.params.temperature,
        "text": {**text, "format": text.get("format") or {"type": "text"}},
        "tool_choice": "auto" if choice is None else choice if isinstance(choice, str) else dumped(choice),
        "tools": [_tool_fields(tool) for tool in request.tools or []],
        "top_logprobs": request.top_logprobs or 0,
        "top_p": work.sequence.params.top_p,
        "truncation": "disabled",
        "usage": None,
        "user": request.user,
    }


def _tool_fields(tool: FlatFunction | FlatCustom) -> dict[str, Any]:
    fields = tool.model_dump(by_alias=True, exclude_unset=True)
    return {"parameters": None, "strict": None, **fields} if isinstance(tool, FlatFunction) else fields
