"""Methods of an engine that structgen wraps: each is looked at by its signature before it is wrapped, and may be absent
alone."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from typing import Any

Wrapping = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class Hook:
    """A method that is wrapped.

    Attributes:
        gives: what is lost without it, in a word.
        module, owner, method: where it stands.
        parameters: what it must take, without ``self``.
        wrapping: from the engine's method to ours, which calls it.
    """

    gives: str
    module: str
    owner: str
    method: str
    parameters: tuple[str, ...]
    wrapping: Wrapping

    @property
    def name(self) -> str:
        """Class and method."""
        return f"{self.owner}.{self.method}"

    def misfit(self) -> str:
        """What differs in the installed version; "" if nothing does. Imports the module."""
        try:
            owner = getattr(import_module(self.module), self.owner)
        except (ImportError, AttributeError) as error:
            return f"{self.module}.{self.owner} is not there ({error})"
        method = getattr(owner, self.method, None)
        if method is None:
            return f"{self.name} is not there"
        found = parameters_of(method)
        return "" if found == self.parameters else f"{self.name} takes {list(found)}, not {list(self.parameters)}"

    def make(self) -> None:
        """Wrap the method, unless it is wrapped. Call `misfit` before."""
        owner = getattr(import_module(self.module), self.owner)
        original = getattr(owner, self.method)
        if not hasattr(original, "structgen_original"):
            wrapper: Any = wraps(original)(self.wrapping(original))
            wrapper.structgen_original = original
            setattr(owner, self.method, wrapper)

    def undo(self) -> None:
        """The engine's own method again, for tests."""
        owner = getattr(import_module(self.module), self.owner)
        original = getattr(getattr(owner, self.method, None), "structgen_original", None)
        if original is not None:
            setattr(owner, self.method, original)


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
        found = None if method is None else parameters_of(method)
        if found != parameters:
            return f"{owner.__name__}.{name} takes {None if found is None else list(found)}, not {list(parameters)}"
    return ""
