"""A function's parameters as a type that pydantic reads: a TypedDict, whose values are the arguments by name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import pydantic
import typing_extensions

from structgen.core.python_types.docstrings import read_docstring
from structgen.errors import ConstraintError


def arguments_type(function: Callable[..., Any]) -> Any:
    """The arguments of a function as a TypedDict: parameters without annotation are of any type, those with a default
    may be left out. Descriptions come from the docstring, where ``Field(description=...)`` says none.

    Raises:
        ConstraintError: the signature cannot be read, an annotation cannot be resolved, or there are ``*args`` or
            ``**kwargs``, which have no names that a schema could say.
    """
    name = function_name(function)
    try:
        parameters = inspect.signature(function).parameters.values()
        hints = typing_extensions.get_type_hints(_annotated(function), include_extras=True)
    except (ValueError, TypeError, NameError) as error:
        raise ConstraintError(f"cannot read the parameters of {name}: {error}") from error
    described = read_docstring(inspect.getdoc(_documented(function))).parameters
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ConstraintError(
                f"the parameter {parameter} of {name} stands for any number of arguments; name those that there are"
            )
        kind = hints.get(parameter.name, Any)
        if parameter.name in described:
            kind = Annotated[kind, pydantic.Field(description=described[parameter.name])]
        fields[parameter.name] = kind if parameter.default is parameter.empty else typing_extensions.NotRequired[kind]
    made: Any = typing_extensions.TypedDict  # a name that is known at run time is nothing for type checkers
    return pydantic.with_config(pydantic.ConfigDict(extra="forbid"))(made(name, fields))


def function_name(function: Callable[..., Any]) -> str:
    """The name of a function, of the class of a callable object, or of the function that a partial is of."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def call_function(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a function with arguments by name; those that it takes by position only are given so."""
    positional = []
    named = dict(arguments)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.POSITIONAL_ONLY and parameter.name in named:
            positional.append(named.pop(parameter.name))
    return function(*positional, **named)


def _annotated(function: Any) -> Any:
    """What bears the annotations."""
    while isinstance(function, functools.partial):
        function = function.func
    return function if inspect.isroutine(function) else type(function).__call__


def _documented(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isroutine(function) or (type(function).__doc__ is not None and type(function).__call__.__doc__ is None):
        return function
    return type(function).__call__


def describe(function: Callable[..., Any]) -> str:
    """What the docstring says of the function as a whole."""
    return read_docstring(inspect.getdoc(_documented(function))).description
