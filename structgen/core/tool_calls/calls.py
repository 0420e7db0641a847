"""Tool calls as values, and which of them an output may have."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from keyword import iskeyword
from typing import Any, Literal, TypeAlias

from structgen.core.python_types.schemas import readable_options
from structgen.core.tool_calls.definitions import Tool
from structgen.core.tool_calls.patterns import NAME, ToolFormat, stops
from structgen.errors import ConstraintError
from structgen.options import JsonOptions

FreeText = Literal["anywhere", "before", "none"]


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool.

    Attributes:
        name: the tool.
        arguments: its arguments by name, as JSON values.
        id: the call's id, where the format has one and it was written.
    """

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True)
class SkippedTool:
    """A tool that cannot be called, since it has no possible arguments.

    Attributes:
        name: its name.
        pointer: the JSON Pointer, in the list of tools, of what is to blame.
        reason: why there are none.
    """

    name: str
    pointer: str
    reason: str


CallPieces: TypeAlias = "list[str | ToolCall]"
"""Free text and calls, in order."""


@dataclass(frozen=True)
class Calls:
    """Which calls an output has.

    Attributes:
        format: how they are written.
        tools: what may be called; none: there are no calls.
        required: whether there must be one.
        parallel: whether there may be more than one.
        free_text: where other text may be: "anywhere"; "before": before the first call only; "none".
        options: how JSON may be spelled.
    """

    format: ToolFormat
    tools: tuple[Tool, ...]
    required: bool
    parallel: bool
    free_text: FreeText
    options: JsonOptions

    def options_of(self, tool: Tool) -> JsonOptions:
        """How the schema of a tool is read."""
        if tool.function is not None:
            return readable_options(self.options)
        return replace(self.options, unsupported="ignore") if tool.lenient else self.options

    @property
    def text_after(self) -> bool:
        """Whether other text may follow a call."""
        return self.free_text == "anywhere" and self.format.text_after


def check_names(form: ToolFormat, tools: tuple[Tool, ...]) -> None:
    """Raise ConstraintError for a tool whose name the format cannot write."""
    if not any(NAME in pattern for pattern in form.calls):
        return
    stopping = set("".join(stops(pattern, NAME) for pattern in form.calls))
    for tool in tools:
        is_name = form.names is None or (re.fullmatch(form.names, tool.name) and not iskeyword(tool.name))
        if stopping & set(tool.name) or any(map(str.isspace, tool.name)) or not is_name:
            raise ConstraintError(
                f"the tool name {tool.name!r} cannot be written in the format {form.name!r}; use letters, digits"
                + (", '_' and '-'" if form.names is None else " and '_', as names in Python have them")
            )
