"""Tools as OpenAI's API defines them, and which of them may or must be called."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from structgen.core.json_schema.keyword import X_STRUCTGEN
from structgen.core.json_schema.keywords_data import without_sources
from structgen.core.json_schema.plain import plain_json
from structgen.core.json_schema.regions import has_regions
from structgen.core.tool_calls.functions import PythonTool
from structgen.core.tool_calls.functions import tool as function_tool
from structgen.errors import ConstraintError, OptionsError, SchemaError
from structgen.options import near_name, near_or_known

MAX_TOOLS = 1_000
"""Tools of one constraint."""
NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
"""What a tool takes that says nothing of its parameters (as OpenAI's API reads it)."""
OTHER_KEYS = ("inputSchema", "input_schema")
"""What MCP and Anthropic's API call the parameters."""
NO_KEYS = ("arguments", "args", "params", "properties", "schema", "json_schema", "args_schema")
"""What others are written for the parameters."""


@dataclass(frozen=True)
class Tool:
    """A function that a model may call. Equal if all that is said of it is.

    Attributes:
        name: its name.
        parameters: the JSON Schema of its arguments.
        definition: what was given, ``{"name": ..., "parameters": ...}``, without documents and names, to be shown.
        pointer: the JSON Pointer of ``parameters`` in the list of tools.
        lenient: ``strict`` was given as false: what cannot be enforced of the schema is left out.
        function: what is called, where the tool was given as a Python function.
    """

    name: str
    parameters: Mapping[str, Any] = field(compare=False, repr=False)
    definition: Mapping[str, Any] = field(compare=False, repr=False)
    pointer: str
    lenient: bool
    key: str = field(repr=False)
    function: PythonTool | None = field(default=None, compare=False, repr=False)

    @property
    def has_field_regions(self) -> bool:
        """Whether its schema says of arguments how they are written."""
        return X_STRUCTGEN in self.key and has_regions(self.parameters)


@dataclass(frozen=True)
class ToolChoice:
    """Which tools may be called, and whether one must be.

    Attributes:
        tools: those that may be.
        required: whether there must be a call.
    """

    tools: tuple[Tool, ...]
    required: bool


def read_tools(tools: Any) -> tuple[Tool, ...]:
    """Read a list of tools: function definitions (``{"type": "function", "function": {...}}``, or what stands inside),
    Python functions, tools as MCP lists them (``inputSchema``) or Anthropic's API (``input_schema``); or a whole
    result of MCP's ``tools/list``.

    Raises:
        ConstraintError: no list, something that is no function, no name, or one that occurs twice.
        SchemaError: ``parameters`` is no object of JSON (the pointer leads into the list).
    """
    tools = tools.get("tools", tools) if isinstance(tools, Mapping) else getattr(tools, "tools", tools)
    if isinstance(tools, (str, bytes, Mapping)) or not isinstance(tools, Sequence):
        raise ConstraintError(f"tools are a list of function definitions, not {type(tools).__name__}")
    if len(tools) > MAX_TOOLS:
        raise ConstraintError(f"there are {len(tools)} tools, more than {MAX_TOOLS:,}")
    by_name: dict[str, Tool] = {}
    for number, tool in enumerate(tools):
        read = _read(tool, number)
        if read.name in by_name:
            raise ConstraintError(f"two tools are called {read.name!r} (the second is tool {number})")
        by_name[read.name] = read
    return tuple(by_name.values())


def _read(tool: Any, number: int) -> Tool:
    if callable(tool) and not isinstance(tool, type):
        return _of_function(tool if isinstance(tool, PythonTool) else function_tool(tool), number)
    if hasattr(tool, "inputSchema") and not isinstance(tool, Mapping):  # the class of MCP's own package
        tool = {name: getattr(tool, name, None) for name in ("name", "description", "inputSchema")}
    if not isinstance(tool, Mapping):
        kind = f"the class {tool.__name__}" if isinstance(tool, type) else type(tool).__name__
        raise ConstraintError(f"tool {number} is {kind}; expected a function, or a function definition (a dict)")
    if tool.get("type", "function") != "function" and "function" not in tool and "parameters" not in tool:
        raise ConstraintError(f"tool {number} is of type {tool['type']!r}; only functions are supported")
    pointer, inner, keyword = f"/{number}", tool, "parameters"
    if "function" in tool:
        pointer, inner = f"/{number}/function", tool["function"]
        if not isinstance(inner, Mapping):
            raise ConstraintError(f"'function' of tool {number} is {type(inner).__name__}; expected a dict")
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        raise ConstraintError(f"tool {number} has no name; expected {{'name': ..., 'parameters': ...}}")
    if any(0xD800 <= ord(c) < 0xE000 for c in name):
        raise ConstraintError(
            f"the name {name!r} of tool {number} holds half of a surrogate pair, which is not a character"
        )
    strict = inner.get("strict")
    if not isinstance(strict, bool | None):
        raise ConstraintError(f"'strict' of the tool {name!r} is {strict!r:.100}; expected true, false or nothing")
    other_key = next((word for word in OTHER_KEYS if word in inner), None)
    if other_key is not None and "parameters" not in inner:
        keyword, inner = other_key, {**inner, "parameters": inner[other_key]}
        inner = {name: inner[name] for name in ("name", "description", "parameters") if inner.get(name) is not None}
    elif "parameters" not in inner:
        _refuse_near(inner, name)
    parameters = NO_PARAMETERS if inner.get("parameters") is None else inner["parameters"]
    pointer += f"/{keyword}"
    if not isinstance(parameters, Mapping):
        what = f"{keyword!r} of the tool {name!r} is {type(parameters).__name__}; expected a JSON Schema (a dict)"
        raise SchemaError(what, pointer=pointer)
    with placed(pointer):
        parameters = copy.deepcopy(plain_json(parameters))
        definition = without_sources(plain_json({k: v for k, v in inner.items() if k != "type"}))
        definition = copy.deepcopy(definition)
    return Tool(
        name, parameters, definition, pointer, strict is False, repr((name, parameters, inner.get("description")))
    )


def _refuse_near(definition: Mapping[str, Any], name: str) -> None:
    """Refuse a definition without parameters that has them under another name, which nobody would read."""
    for word, value in definition.items():
        if isinstance(value, Mapping) and (word in NO_KEYS or near_name(str(word), ["parameters"])):
            raise ConstraintError(f"the tool {name!r} has {word!r} and no 'parameters'; did you mean 'parameters'?")


def _of_function(tool: PythonTool, number: int) -> Tool:
    definition = without_sources(tool.definition["function"])
    key = repr((tool.name, tool.parameters, tool.description))
    return Tool(tool.name, tool.parameters, definition, f"/{number}/parameters", False, key, tool)


@contextmanager
def placed(pointer: str) -> Iterator[None]:
    """A block that reads a schema that stands at ``pointer`` in the list of tools: errors say where that is."""
    try:
        yield
    except SchemaError as error:
        error.move_below(pointer)
        raise


def choose(tools: tuple[Tool, ...], choice: Any) -> ToolChoice:
    """The tools that ``tool_choice`` leaves, as OpenAI's API reads it.

    Args:
        tools: all tools.
        choice: "auto", "required", "none", ``{"name": ...}``, ``{"type": "function", "function": {"name": ...}}`` or
            ``{"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [...]}}``.

    Raises:
        OptionsError: something else.
        ConstraintError: a tool that is not there (the error names the nearest), or no tools where one must be called.
    """
    if choice == "none":
        return ToolChoice((), False)
    required = choice != "auto"
    if isinstance(choice, Mapping):
        mode: Literal["auto", "required"] = "required"
        if choice.get("type") == "allowed_tools":
            allowed = choice.get("allowed_tools", choice)
            mode, names = _allowed(allowed)
        else:
            names = [_name(choice)]
        tools = tuple(_named(tools, name) for name in dict.fromkeys(names))
        required = mode == "required"
    elif choice not in ("auto", "required"):
        _refuse(choice, [tool.name for tool in tools])
    if not tools:
        raise ConstraintError("there are no tools to call; give some, or tool_choice='none'")
    return ToolChoice(tools, required)


def _allowed(allowed: Any) -> tuple[Literal["auto", "required"], list[str]]:
    tools = allowed.get("tools") if isinstance(allowed, Mapping) else None
    if (
        not isinstance(tools, Sequence)
        or isinstance(tools, str)
        or allowed.get("mode", "auto") not in ("auto", "required")
    ):
        _refuse(allowed)
    return allowed.get("mode", "auto"), [_name(tool) for tool in tools]


def _name(reference: Any) -> str:
    inner = reference.get("function", reference) if isinstance(reference, Mapping) else None
    name = inner.get("name") if isinstance(inner, Mapping) else None
    if not isinstance(name, str):
        _refuse(reference)
    return name


def _refuse(choice: Any, names: Sequence[str] = ()) -> NoReturn:
    meant = "'required'" if choice == "any" else f"{{'name': {choice!r}}}" if choice in names else None
    raise OptionsError(
        "tool_choice must be 'auto', 'required', 'none', {'name': ...}, {'type': 'function', 'function': "
        f"{{'name': ...}}}} or {{'type': 'allowed_tools', ...}}, not {choice!r:.200}"
        + (f"; did you mean {meant}?" if meant else "")
    )


def _named(tools: tuple[Tool, ...], name: str) -> Tool:
    for tool in tools:
        if tool.name == name:
            return tool
    raise ConstraintError(f"there is no tool {name!r}; {near_or_known(name, [tool.name for tool in tools])}")
