"""Python functions as tools: definitions from signatures and docstrings, and calls with typed arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pydantic

from structgen.core.json_schema.plain import plain_json
from structgen.core.json_schema.report import Report
from structgen.core.python_types.schemas import derive
from structgen.core.python_types.signatures import arguments_type, call_function, describe, function_name
from structgen.core.tool_calls.values import json_text
from structgen.errors import ConstraintError, ToolCallError


@dataclass(frozen=True)
class PythonTool:
    """A function that a model may call. Make it with ``tool``; equal if function, name and description are.

    Attributes:
        name: as the model calls it.
        description: what it does.
        function: what is called.
        parameters: the JSON Schema of its arguments, with all that their types ask for.
        shown: pydantic's own schema of them, with descriptions: what the model reads.
        report: where ``parameters`` is narrower than the types, and what is checked when the function is called.
    """

    name: str
    description: str
    function: Callable[..., Any]
    parameters: Mapping[str, Any] = field(compare=False, repr=False)
    shown: Mapping[str, Any] = field(compare=False, repr=False)
    report: Report = field(compare=False, repr=False)
    _adapter: pydantic.TypeAdapter[Any] = field(compare=False, repr=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function itself, as Python calls it."""
        return self.function(*args, **kwargs)

    @property
    def definition(self) -> dict[str, Any]:
        """The tool as OpenAI's API takes it."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.shown)}
        return {"type": "function", "function": function}

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call (JSON values) as the function's types: a dataclass parameter is a dataclass.

        Raises:
            ToolCallError: they are not what the function takes.
        """
        try:
            arguments: dict[str, Any] = self._adapter.validate_json(json_text(dict(given)))
        except Exception as error:  # validators of the types may raise anything
            raise ToolCallError(
                f"The arguments of {self.name} are refused: {error}", name=self.name, value=dict(given)
            ) from error
        return arguments

    def call(self, given: Mapping[str, Any]) -> Any:
        """Call the function with the arguments of a call (JSON values), as its types.

        Raises:
            ToolCallError: they are not what the function takes, or it raised; then that is the ``cause``.
        """
        arguments = self.arguments(given)
        try:
            return call_function(self.function, arguments)
        except Exception as error:
            raise ToolCallError(
                f"{self.name} raised {type(error).__name__}: {error}", name=self.name, value=dict(given)
            ) from error


def tool(function: Callable[..., Any], *, name: str | None = None, description: str | None = None) -> PythonTool:
    """A function as a tool: its schema from annotations, its descriptions from the docstring.

    Docstrings may be of Google's, NumPy's or Sphinx' style; ``Annotated[T, Field(description=...)]`` wins over them.

    Args:
        function: a function, method, partial or callable object.
        name, description: in place of its own.

    Raises:
        ConstraintError: no function, or one with parameters that no JSON can be given for; ``*args`` and ``**kwargs``
            are such.
    """
    if isinstance(function, type) or not callable(function):
        raise ConstraintError(f"a tool is a function, not {function!r:.100}")
    adapter: pydantic.TypeAdapter[Any]
    try:
        adapter = pydantic.TypeAdapter(arguments_type(function))
        derived = derive(adapter)
    except (pydantic.errors.PydanticUserError, TypeError, NameError) as error:
        reason = getattr(error, "message", None) or str(error)
        raise ConstraintError(f"{function_name(function)} cannot be a tool: {reason}") from error
    called = name or function_name(function)
    said = describe(function) if description is None else description
    shown = {key: value for key, value in plain_json(derived.shown).items() if key != "title"}
    return PythonTool(called, said, function, plain_json(derived.schema), shown, derived.report, adapter)
