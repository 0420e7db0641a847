"""Methods of an engine that structgen wraps: each is looked at by its signature before it is wrapped, and may be absent
alone."""

from __future__ import annotations

import importlib.util
import inspect
import logging
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any


@dataclass(frozen=True)
class Hook:
    """A method of an engine, or a function, that is wrapped.

    Attributes:
        gives: what is lost without it, in a word.
        owner: the class or module that has it, by its whole name.
        method: its name there.
        parameters: what it must take, without ``self`` or ``cls``.
        around: what is called in its place: with the engine's method, and what that was called with.
        needs: a module without which the owner cannot be imported.
    """

    gives: str
    owner: str
    method: str
    parameters: tuple[str, ...]
    around: Callable[..., Any]
    needs: str = ""

    @property
    def name(self) -> str:
        """Class (or module) and method."""
        return f"{self.owner.rpartition('.')[2]}.{self.method}"

    @property
    def target(self) -> str:
        """The whole name of the method."""
        return f"{self.owner}.{self.method}"

    def misfit(self) -> str:
        """What differs in the installed version; "" if nothing does. Imports the module."""
        if self.needs and importlib.util.find_spec(self.needs) is None:
            return f"{self.owner} needs {self.needs}, which is not installed"
        try:
            method = getattr(pkgutil.resolve_name(self.owner), self.method, None)
        except (ImportError, AttributeError) as error:
            return f"{self.owner} is not there ({error})"
        if method is None:
            return f"{self.name} is not there"
        parameters = parameters_of(method)
        return (
            ""
            if parameters == self.parameters
            else f"{self.name} takes {list(parameters)}, not {list(self.parameters)}"
        )

    def make(self) -> None:
        """Wrap the method, unless it is wrapped. Call `misfit` before."""
        original, function = self._as_it_is()
        if not hasattr(function, "structgen_original"):
            wrapper: Any = _wrapped(function, self.around)
            wrapper.structgen_original = original
            is_of_class = isinstance(original, classmethod)
            setattr(pkgutil.resolve_name(self.owner), self.method, classmethod(wrapper) if is_of_class else wrapper)

    def undo(self) -> None:
        """The engine's own method again, for tests."""
        original = getattr(self._as_it_is()[1], "structgen_original", None)
        if original is not None:
            setattr(pkgutil.resolve_name(self.owner), self.method, original)

    def _as_it_is(self) -> tuple[Any, Any]:
        """What the owner has under the name, and the function in it."""
        static = inspect.getattr_static(pkgutil.resolve_name(self.owner), self.method, None)
        return static, static.__func__ if isinstance(static, classmethod) else static


def _wrapped(function: Callable[..., Any], around: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def wrapper(*args: Any, **more: Any) -> Any:
        return around(function, *args, **more)

    return wrapper


def make_fitting(hooks: Iterable[Hook], log: logging.Logger, make: Callable[[Hook], None] = Hook.make) -> None:
    """Wrap what fits; what does not is left out, each in one line of the log."""
    for hook in hooks:
        misfit = hook.misfit()
        if misfit:
            log.warning("structgen goes without %s: %s", hook.gives, misfit)
        else:
            make(hook)


def parameters_of(method: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a method's parameters, without ``self``."""
    return tuple(name for name in inspect.signature(method).parameters if name != "self")


def differing(owner: type, methods: dict[str, tuple[str, ...]]) -> str:
    """The first method of a class that takes something else, or an abstract one that is not among these; "" if none."""
    unknown = sorted(getattr(owner, "__abstractmethods__", frozenset()) - methods.keys())
    if unknown:
        return f"{owner.__name__} asks for {', '.join(unknown)}"
    for name, parameters in methods.items():
        method = getattr(owner, name, None)
        taken_here = None if method is None else parameters_of(method)
        if taken_here != parameters:
            return f"{owner.__name__}.{name} takes {taken_here and list(taken_here)}, not {list(parameters)}"
    return ""
