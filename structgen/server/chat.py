"""``/v1/chat/completions``: requests as work, and what comes of it as objects and chunks. No model, no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from structgen.core.constraints.base import Constraint, instruction_of
from structgen.core.constraints.limits import check_size
from structgen.core.constraints.thinking import THINK, THOUGHT, Thinking
from structgen.core.constraints.tools import OnImpossible, ToolCalls, tool_call
from structgen.core.json_schema.keywords_data import with_sources
from structgen.core.json_schema.prompt_forms import FormOption
from structgen.core.json_text import named_once
from structgen.core.tool_calls.definitions import choose, read_tools
from structgen.core.tool_calls.templates import template_of, tool_format
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import StructgenError
from structgen.generation.decoding.prompts import Place as PromptPlace
from structgen.server.best_of import with_choice
from structgen.server.custom_tools import as_functions, choice_as_function
from structgen.server.errors import RequestError, as_request_error
from structgen.server.formats import (
    PlacedConstraint,
    Sources,
    format_constraint,
    grammar_constraint,
    structured_constraint,
)
from structgen.server.inference_request import (
    InferenceRequest,
    TokenStream,
    call_id,
    check_fields,
    check_healing,
    choice_fields,
    choices_of,
    end_of,
    sequence_of,
    thinking_tokens,
    trace_fields,
    usage_of,
    with_fields,
    with_regions,
)
from structgen.server.openai_types import (
    AssistantCustomCall,
    AssistantMessage,
    AssistantToolCall,
    ChatRequest,
    Message,
    ToolMessage,
)
from structgen.server.outputs import CUSTOM_INPUT, OutputForm, OutputPart, OutputReader, ThinkingState
from structgen.server.prompts import (
    ChatPrompt,
    check_template_fields,
    messages_for_template,
    rendered,
    template_takes,
    token_ids,
)
from structgen.server.reply_shapes import ReplyConstraint
from structgen.server.sequences import SequenceEnd, SequenceEvent
from structgen.server.settings import ServingSettings
from structgen.server.sources import message_texts, sources_of


def chat_work(
    request: ChatRequest, tokenizer: Any, vocabulary: Vocabulary, settings: ServingSettings
) -> InferenceRequest:
    """What a chat request asks for.

    Raises:
        RequestError: what it asks for cannot be done, with the field that asks for it.
    """
    if request.top_logprobs is not None and not request.logprobs:
        raise RequestError.at(("top_logprobs",), "top_logprobs needs logprobs to be true")
    messages = [plain_message(message) for message in request.messages]
    sources = sources_of(request, message_texts(messages), settings)
    constraint = one_constraint(
        format_constraint(request.response_format, settings, sources),
        structured_constraint(request.structured_outputs, settings, sources),
        grammar_constraint(request.grammar, settings),
    )
    tools, custom = as_functions(request.tools or [], settings.compile_limits)
    choice: Any = request.tool_choice
    return reply_work(
        messages,
        tokenizer,
        vocabulary,
        settings,
        request=request,
        constraint=constraint,
        sources=sources,
        tools=tools,
        custom=custom,
        tool_choice=choice if choice is None or isinstance(choice, str) else choice_as_function(choice.model_dump()),
        parallel=request.parallel_tool_calls is not False,
        effort=request.reasoning_effort,
        template_fields=request.chat_template_kwargs or {},
        max_tokens=_max_tokens(request) or settings.default_max_tokens,
        logprobs=(request.top_logprobs or 0) if request.logprobs else None,
        prediction=None if request.prediction is None else _joined(request.prediction.content, "") or None,
    )


def reply_work(
    messages: Sequence[Mapping[str, Any]],
    tokenizer: Any,
    vocabulary: Vocabulary,
    settings: ServingSettings,
    *,
    request: Any,
    constraint: PlacedConstraint | None,
    sources: Sources,
    tools: Sequence[Mapping[str, Any]],
    custom: frozenset[str],
    tool_choice: Any,
    parallel: bool,
    effort: str | None,
    template_fields: Mapping[str, Any],
    max_tokens: int,
    logprobs: int | None,
    prediction: str | None = None,
) -> InferenceRequest:
    """Work for a reply to messages: what chat and responses have in common. ``request`` has the sampling fields."""
    fields = dict(template_fields)
    check_template_fields(tokenizer, fields)
    check_healing(request.structgen, is_text=False)
    fields.update(_effort(effort, tokenizer, request))
    on_impossible: OnImpossible = request.structgen.on_impossible
    calls = _calls(
        tools,
        tool_choice,
        parallel,
        tokenizer,
        settings,
        sources=sources,
        or_answer=constraint is not None,
        on_impossible=on_impossible,
    )
    if calls is not None and calls.calls.required:
        constraint = None  # there is no answer that it could be about
    elif calls is not None and constraint is not None:  # instead of the answer, see ReplyConstraint
        calls = replace(calls, calls=replace(calls.calls, required=True, free_text="none"))
    role = request.structgen.schema_in_prompt or settings.schema_in_prompt
    notes: list[tuple[str, PromptPlace]] = []
    if constraint is not None and role != "none":
        note = _instruction(constraint.constraint, request.structgen.schema_form or settings.schema_form, settings)
        notes += [(note, role)] if note else []
    takes_tools = template_takes(tokenizer, "tools")
    if calls is not None and calls.calls.tools and not takes_tools:
        notes.append((calls.instruction() or "", "system"))
    shown = messages_for_template(messages, takes_tools=takes_tools)
    given = [{"type": "function", "function": dict(tool.definition)} for tool in calls.calls.tools] if calls else []
    text = rendered(tokenizer, ChatPrompt(shown, given if takes_tools else (), notes, fields))
    thinking, max_think_tokens = thinking_of(tokenizer, text), request.structgen.max_think_tokens
    if max_think_tokens is None:
        max_think_tokens = settings.max_think_tokens
    form = OutputForm(calls, thinking, answer_or_calls=calls is not None and constraint is not None, custom=custom)
    work = InferenceRequest(
        request,
        sequence_of(
            request,
            vocabulary,
            settings,
            max_new_tokens=max_tokens,
            top_logprobs=logprobs or 0,
            traced=request.structgen.trace,
            prediction=prediction,
        ),
        prompts=[token_ids(tokenizer, text, settings)],
        choices=choices_of(request, settings) if hasattr(request, "n") else 1,
        constraint=_whole(constraint, calls, thinking, max_think_tokens),
        logprobs=logprobs,
        form=form,
    )
    check_fields(work, calls=calls is not None)
    return with_choice(with_regions(work, calls=calls is not None), settings)


def _instruction(constraint: Constraint, form: FormOption, settings: ServingSettings) -> str | None:
    """What the prompt says of a constraint."""
    return instruction_of(constraint, settings.model_defaults.schema_form if form == "auto" else form)


def plain_message(message: Message) -> dict[str, Any]:
    """A message as templates have it: text as one string, arguments of calls as values."""
    content = _joined(message.content, "\n")
    role = "system" if message.role == "developer" else message.role
    plain: dict[str, Any] = {"role": role, "content": content}
    if isinstance(message, AssistantMessage):
        if message.reasoning_content:
            plain["reasoning_content"] = message.reasoning_content
        if message.refusal and not plain["content"]:
            plain["content"] = message.refusal
        if message.tool_calls:
            plain["tool_calls"] = [_plain_call(call) for call in message.tool_calls]
    if isinstance(message, ToolMessage):
        plain["tool_call_id"] = message.tool_call_id
    return plain


def _joined(content: Any, between: str) -> str:
    """The text of a content: a string, parts, or nothing."""
    if isinstance(content, list):
        return between.join(part.text if part.type == "text" else part.refusal for part in content)
    return content or ""


def _plain_call(call: AssistantToolCall | AssistantCustomCall) -> dict[str, Any]:
    if isinstance(call, AssistantCustomCall):
        return {"id": call.id, "name": call.custom.name, "arguments": {CUSTOM_INPUT: call.custom.input}}
    return {"id": call.id, "name": call.function.name, "arguments": arguments_of(call.function.arguments)}


def arguments_of(text: str) -> Any:
    """The arguments of a call that was made; text that is no JSON object, or has a name twice, stands for
    itself."""
    try:
        value = json.loads(text, object_pairs_hook=named_once) if text.strip() else {}
    except (ValueError, RecursionError):
        return {CUSTOM_INPUT: text}
    return value if isinstance(value, dict) else {CUSTOM_INPUT: text}


def thinking_of(tokenizer: Any, prompt: str) -> ThinkingState:
    """Whether the reply to a prompt has a section of thinking: the template has begun one, or knows of them."""
    if prompt.rstrip().endswith(THINK):
        return "begun"
    return "may" if THINK in template_of(tokenizer) and not prompt.rstrip().endswith(THOUGHT) else "none"


def one_constraint(*asked: PlacedConstraint | None) -> PlacedConstraint | None:
    """The one constraint that is asked for in one of several ways.

    Raises:
        RequestError: two are used.
    """
    constraints = [each for each in asked if each is not None]
    if len(constraints) > 1:
        one, other = (str(each.place[0]) for each in constraints[:2])
        raise RequestError.at((other,), f"{one} and {other} exclude each other")
    return constraints[0] if constraints else None


def _max_tokens(request: ChatRequest) -> int | None:
    one, other = request.max_completion_tokens, request.max_tokens
    if one is not None and other is not None and one != other:
        raise RequestError.at(("max_tokens",), f"max_tokens is {other}, but max_completion_tokens is {one}; give one")
    return one or other


def _effort(effort: str | None, tokenizer: Any, request: Any) -> dict[str, Any]:
    """What the template takes of ``reasoning_effort``."""
    if effort is None:
        return {}
    if template_takes(tokenizer, "reasoning_effort"):
        return {"reasoning_effort": effort}
    if effort == "none" and template_takes(tokenizer, "enable_thinking"):
        return {"enable_thinking": False}
    raise RequestError.at(
        ("reasoning_effort",) if hasattr(request, "reasoning_effort") else ("reasoning", "effort"),
        f"The model's chat template takes no reasoning effort {effort!r}",
        "unsupported_parameter",
    )


def _calls(
    tools: Sequence[Mapping[str, Any]],
    tool_choice: Any,
    parallel: bool,
    tokenizer: Any,
    settings: ServingSettings,
    *,
    sources: Sources,
    or_answer: bool,
    on_impossible: OnImpossible,
) -> ToolCalls | None:
    """The calls that a reply may have; None: there are none, and no text looks like one."""
    choice = tool_choice or ("auto" if tools else "none")
    name = settings.tool_format or tool_format(tokenizer)
    if not tools and choice != "none":
        raise RequestError.at(("tool_choice",), "tool_choice needs tools")
    if (not tools and name != "harmony") or (or_answer and choice == "none"):
        return None
    if isinstance(choice, Mapping) and choice.get("type") != "allowed_tools":
        parallel = False  # OpenAI: a tool that is named is called exactly once; instructor relies on it
    try:
        check_size(list(tools), settings.compile_limits)
        tools = with_sources(tools, sources)
    except StructgenError as error:
        raise as_request_error(error, ("tools",)) from error
    try:
        return tool_call(name, tools, tool_choice=choice, parallel_tool_calls=parallel, on_impossible=on_impossible)
    except StructgenError as error:
        raise _wrong_choice(tools, choice) or as_request_error(error, ("tools",)) from error


def _wrong_choice(tools: Sequence[Any], choice: Any) -> RequestError | None:
    """What is wrong with ``tool_choice``; None: nothing, or the tools cannot be read."""
    try:
        read = read_tools(tools)
    except StructgenError:
        return None
    try:
        choose(read, choice)
    except StructgenError as error:
        return RequestError.at(("tool_choice",), str(error))
    return None


def _whole(
    constraint: PlacedConstraint | None, calls: ToolCalls | None, thinking: ThinkingState, max_think_tokens: int | None
) -> PlacedConstraint | None:
    """Everything that a reply must be."""
    if calls is not None and calls.calls.format.harmony:
        if constraint is not None:
            raise RequestError(
                "A constraint on the answer is not supported for models of the harmony format yet.",
                code="unsupported_parameter",
                param="response_format",
            )
        if max_think_tokens is not None:
            raise RequestError.at(
                ("structgen", "max_think_tokens"),
                "Budgets of thinking are not supported for models of the harmony format yet.",
                "unsupported_parameter",
            )
    body: Constraint | None = None if constraint is None else constraint.constraint
    if calls is not None:
        body = calls if body is None else ReplyConstraint(body, calls)
    if thinking != "none" and (body is not None or max_think_tokens is not None):
        body = Thinking(body, thinking, max_think_tokens)
    if body is None:
        return None
    if constraint is not None:
        return PlacedConstraint(body, constraint.place, constraint.kind)
    return PlacedConstraint(body, ("tools",), "tools") if calls is not None else PlacedConstraint(body, (), "thinking")


# --- what is answered ---
CALLS = ("call", "custom")


def _called(part: OutputPart, text: str, *, with_name: bool) -> dict[str, Any]:
    """A call, or what is new of it."""
    kind, field = ("custom", "input") if part.kind == "custom" else ("function", "arguments")
    return {"type": kind, kind: {"name": part.name, field: text}} if with_name else {kind: {field: text}}


class ChatWriter:
    """Writes the answers to one request.

    Args:
        work: what was asked for.
        id, created, model: of the answer.
        vocabulary: for log-probabilities.
    """

    def __init__(self, work: InferenceRequest, vocabulary: Vocabulary, *, id: str, created: int, model: str) -> None:
        self._work, self._vocabulary = work, vocabulary
        self._head = {"id": id, "created": created, "model": model, "system_fingerprint": None}
        self._readers = [OutputReader(work.form) for _ in range(work.choices)]
        self._tokens = [TokenStream(vocabulary) for _ in range(work.choices)]
        self._ids: dict[tuple[int, int], str] = {}
        self._ends: dict[int, SequenceEnd] = {}
        self._thinking = 0

    def completion(self, events: Sequence[SequenceEvent]) -> dict[str, Any]:
        """The whole answer, from the last event of each output."""
        choices = []
        for index, event in enumerate(events):
            parts = self._read_whole(index, event)
            self._tokens[index].add(event)
            message = self._message(index, parts)
            choice = {
                "index": index,
                "message": message,
                "logprobs": self._logprobs(index, event.text),
                "finish_reason": self._finish(event, parts),
            }
            choices.append(with_fields(choice, self._work, end_of(event)))
        return {**self._head, "object": "chat.completion", "choices": choices, "usage": self._usage()}

    def opening(self) -> Iterator[dict[str, Any]]:
        """The first chunk of each output."""
        for index in range(self._work.choices):
            yield self._chunk(index, {"role": "assistant", "content": ""})

    def chunks(self, index: int, event: SequenceEvent) -> Iterator[dict[str, Any]]:
        """What is new of an output."""
        reader = self._readers[index]
        self._tokens[index].add(event)
        if self._work.sequence.traced and event.tokens:
            tokens = [trace_fields(self._vocabulary, choice) for choice in event.tokens]
            yield {**self._chunk(index, {}), "structgen": {"tokens": tokens}}
        deltas = list(reader.read(event.text, is_whole=event.is_last))
        for number, delta in enumerate(deltas):
            logprobs = self._logprobs(index, event.text) if number == len(deltas) - 1 else None
            yield self._chunk(index, self._delta(index, delta.index, delta.part, delta.delta, delta.is_new), logprobs)
        if event.end is not None:
            self._note_end(index, event)
            last = self._chunk(index, {}, self._logprobs(index, event.text), self._finish(event, reader.parts))
            yield {**last, "choices": [with_fields(last["choices"][0], self._work, event.end)]}

    def closing(self) -> Iterator[dict[str, Any]]:
        """What follows all outputs."""
        if self._work.include_usage:
            yield {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": self._usage()}

    def _read_whole(self, index: int, event: SequenceEvent) -> list[OutputPart]:
        for _ in self._readers[index].read(event.text, is_whole=True):
            pass
        self._note_end(index, event)
        return self._readers[index].parts

    def _note_end(self, index: int, event: SequenceEvent) -> None:
        self._ends[index] = end_of(event)
        self._thinking += thinking_tokens(self._work, self._vocabulary, event)

    def _message(self, index: int, parts: Sequence[OutputPart]) -> dict[str, Any]:
        text = "".join(part.text for part in parts if part.kind == "text")
        thought = "".join(part.text for part in parts if part.kind == "thinking")
        calls = [
            {"id": self._id(index, number, part), **_called(part, part.text, with_name=True)}
            for number, part in enumerate(parts)
            if part.kind in CALLS
        ]
        message: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None, "refusal": None}
        if thought:
            message["reasoning_content"] = thought
        if calls:
            message["tool_calls"] = calls
        return message

    def _delta(self, index: int, number: int, part: OutputPart, text: str, is_new: bool) -> dict[str, Any]:
        if part.kind == "text":
            return {"content": text}
        if part.kind == "thinking":
            return {"reasoning_content": text}
        call_index = sum(other.kind in CALLS for other in self._readers[index].parts[:number])
        head = {"index": call_index, "id": self._id(index, number, part)} if is_new else {"index": call_index}
        return {"tool_calls": [{**head, **_called(part, text, with_name=is_new)}]}

    def _id(self, index: int, number: int, part: OutputPart) -> str:
        return self._ids.setdefault((index, number), part.id or call_id(self._work.form.calls))

    def _finish(self, event: SequenceEvent, parts: Sequence[OutputPart]) -> str:
        return self._work.finish_reason(end_of(event).finish_reason, any(part.kind in CALLS for part in parts))

    def _logprobs(self, index: int, text: str) -> dict[str, Any] | None:
        top = self._work.logprobs
        if top is None:
            return None
        choices = self._tokens[index].with_text(text)
        return {"content": [choice_fields(self._vocabulary, choice, top) for _, choice in choices], "refusal": None}

    def _usage(self) -> dict[str, Any]:
        return usage_of(self._work, [self._ends[index] for index in sorted(self._ends)], self._thinking)

    def _chunk(
        self, index: int, delta: dict[str, Any], logprobs: Any = None, finish: str | None = None
    ) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        chunk = {**self._head, "object": "chat.completion.chunk", "choices": [choice]}
        return {**chunk, "usage": None} if self._work.include_usage else chunk
