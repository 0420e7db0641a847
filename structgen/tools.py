"""Functions as tools, and the loop that calls them: a model writes calls or an answer, and gets what came of them.

::

    def weather(city: str, days: int = 1) -> str:
        '''The weather of the next days.

        Args:
            city: its name in English
            days: how many days
        '''

    run = structgen.tools.run(generator, "What will the weather in Bonn be?", [weather])
    run.answer
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import pydantic_core

from structgen.core.constraints.tools import OnImpossible, tool_call
from structgen.core.tool_calls.calls import ToolCall
from structgen.core.tool_calls.definitions import read_tools
from structgen.core.tool_calls.functions import PythonTool, tool
from structgen.core.tool_calls.templates import tool_format
from structgen.errors import OptionsError, ToolCallError
from structgen.generation.decoding.prompts import Prompt, as_messages
from structgen.generation.generator import Generator
from structgen.generation.options import GenerationOptions
from structgen.options import JsonOptions, check_choice, check_count

__all__ = ["CalledTool", "PythonTool", "ToolRun", "run", "tool"]


@dataclass(frozen=True)
class CalledTool:
    """A call that was made.

    Attributes:
        call: as the model wrote it.
        result: what the function gave back; None if it failed.
        error: why it failed, where the model was told; None if it did not.
    """

    call: ToolCall
    result: Any = None
    error: ToolCallError | None = None


@dataclass(frozen=True)
class ToolRun:
    """What came of ``run``.

    Attributes:
        answer: the model's last text, without calls.
        calls: all calls, in order.
        messages: the conversation, with the answer.
    """

    answer: str
    calls: list[CalledTool] = field(default_factory=list)
    messages: list[Mapping[str, Any]] = field(default_factory=list, repr=False)


def run(
    generator: Generator,
    prompt: Prompt,
    tools: Any,
    *,
    format: str | None = None,
    max_calls: int = 10,
    on_error: Literal["reply", "raise"] = "reply",
    result_role: str = "tool",
    tool_choice: Any = "auto",
    parallel_tool_calls: bool = True,
    on_impossible: OnImpossible = "refuse",
    json_options: JsonOptions | None = None,
    **options: Unpack[GenerationOptions],
) -> ToolRun:
    """Let a model call functions until it answers.

    Each turn is one output of ``tool_call``: text, or calls whose arguments satisfy the functions' types. Functions are
    called in the order written, with their own types; results go back as messages, strings as they are, others as JSON
    (as pydantic writes them). After ``max_calls`` calls the model is asked once more, without calls.

    Args:
        generator: writes the turns; its chat template must take the role of results.
        prompt: a string or chat messages.
        tools: functions, or what ``structgen.tools.tool`` makes of them.
        format: how the model writes calls, see ``tool_call``; None: told by its chat template, "hermes" where that
            shows no format that is known (as the server does).
        max_calls: of functions, in all.
        on_error: "reply": what a function raises is told to the model; "raise": it raises here.
        result_role: the role of messages with results; "user" for templates that know no "tool".
        tool_choice: of the first turn, see ``tool_call``: "required" where there must be a call.
        parallel_tool_calls: whether a turn may have more than one call.
        on_impossible, json_options: see ``tool_call``.
        **options: see ``GenerationOptions``.

    Raises:
        ToolCallError: with ``on_error="raise"``, a function raised, or its types refused the arguments.
        ConstraintError, GenerationError and their subclasses: see ``tool_call`` and ``Generator.generate``.
    """
    check_count("max_calls", max_calls, 0)
    check_choice("on_error", on_error, ("reply", "raise"))
    functions = _functions(tools)
    form = tool_format(generator.tokenizer) if format is None else format
    messages: list[Mapping[str, Any]] = [*as_messages(prompt)]
    made: list[CalledTool] = []
    while True:
        left = max(0, max_calls - len(made))
        constraint = tool_call(
            form,
            list(functions.values()),
            tool_choice="none" if not left else "auto" if made else tool_choice,
            parallel_tool_calls=parallel_tool_calls and left > 1,
            on_impossible=on_impossible,
            json_options=json_options,
        )
        result = generator.generate(messages, constraint, **options)
        messages.append({"role": "assistant", "content": result.text})
        calls = [piece for piece in result.value if isinstance(piece, ToolCall)]
        if not calls:
            answer = "".join(piece for piece in result.value if isinstance(piece, str))
            return ToolRun(answer, made, messages)
        for number, call in enumerate(calls):
            done = _called(functions[call.name], call, on_error) if number < left else _too_many(call, max_calls)
            made.append(done)
            messages.append({"role": result_role, "name": call.name, "content": _reply_to(done)})


def _functions(tools: Any) -> dict[str, PythonTool]:
    functions: dict[str, PythonTool] = {}
    for read in read_tools(tools):
        if read.function is None:
            raise OptionsError(
                f"the tool {read.name!r} is a definition, which cannot be called here; give the function, or call "
                "what tool_call(...) reads yourself"
            )
        functions[read.name] = read.function
    return functions


def _called(function: PythonTool, call: ToolCall, on_error: str) -> CalledTool:
    try:
        return CalledTool(call, function.call(call.arguments))
    except ToolCallError as error:
        if on_error == "raise":
            raise
        return CalledTool(call, error=error)


def _too_many(call: ToolCall, most: int) -> CalledTool:
    message = f"{call.name} was not called: {most} calls have been made, and no more are allowed"
    return CalledTool(call, error=ToolCallError(message, name=call.name, value=call.arguments))


def _reply_to(done: CalledTool) -> str:
    """What the model is told of a call."""
    if done.error is not None:
        return f"Error: {done.error}"
    if isinstance(done.result, str):
        return done.result
    return pydantic_core.to_json(done.result, fallback=repr, inf_nan_mode="strings").decode()
