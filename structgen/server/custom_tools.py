"""Custom tools, which take a text: to the model each is a function with one argument."""

from __future__ import annotations

from typing import Any

from structgen.core.constraints.limits import CompileLimits, check_size
from structgen.core.regex.ecma_parser import parse
from structgen.errors import Place, StructgenError
from structgen.server.errors import RequestError, as_request_error
from structgen.server.openai_types import CustomDefinition, CustomTool, FunctionTool
from structgen.server.outputs import CUSTOM_INPUT


def as_functions(
    tools: list[FunctionTool | CustomTool], limits: CompileLimits
) -> tuple[list[dict[str, Any]], frozenset[str]]:
    """All tools as functions, and the names of those that are custom.

    Raises:
        RequestError: a custom tool whose text cannot be constrained so.
    """
    functions, custom = [], set()
    for number, tool in enumerate(tools):
        if isinstance(tool, FunctionTool):
            functions.append({"type": "function", "function": tool.function.model_dump(exclude_unset=True)})
        else:
            custom.add(tool.custom.name)
            functions.append(as_function(tool.custom, limits, ("tools", number, "custom")))
    return functions, frozenset(custom)


def as_function(tool: CustomDefinition, limits: CompileLimits, path: Place) -> dict[str, Any]:
    """A custom tool as a function."""
    schema: dict[str, Any] = {"type": "string"}
    if tool.format is not None and tool.format.type == "grammar":
        grammar = tool.format.grammar
        if grammar.syntax == "lark":
            raise RequestError.at(
                (*path, "format", "grammar", "syntax"),
                "custom tools with Lark grammars are not supported; use a regular expression, or a function",
                "unsupported_value",
            )
        schema["pattern"] = _whole(grammar.definition, limits, (*path, "format", "grammar", "definition"))
    fields = {CUSTOM_INPUT: schema}
    parameters = {"type": "object", "properties": fields, "required": [CUSTOM_INPUT], "additionalProperties": False}
    described = {"description": tool.description} if tool.description else {}
    return {"type": "function", "function": {"name": tool.name, **described, "parameters": parameters}}


def _whole(expression: str, limits: CompileLimits, path: Place) -> str:
    """The pattern of the texts that an expression matches as a whole. It is read by itself first: of ``a)|(b`` the
    brackets would be those that it is put into.

    Raises:
        RequestError: it is none, or too long.
    """
    try:
        check_size({"pattern": expression}, limits)
        parse(expression)
    except StructgenError as error:
        raise as_request_error(error, path) from error
    return f"^(?:{expression})$"


def choice_as_function(choice: Any) -> Any:
    """``tool_choice`` with custom tools as the functions that stand for them."""
    if isinstance(choice, dict):
        choice = {key: choice_as_function(value) for key, value in choice.items()}
        if choice.get("type") == "custom":
            nested = {"function": choice["custom"]} if "custom" in choice else {"name": choice["name"]}
            return {"type": "function", **nested}
    return [choice_as_function(item) for item in choice] if isinstance(choice, list) else choice
