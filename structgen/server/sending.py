"""Compiled grammars as bytes, between processes that have the same vocabulary, which is not sent."""

from __future__ import annotations

import gc
import io
import pickle
from contextvars import ContextVar
from types import BuiltinFunctionType, FunctionType
from typing import Any

from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import Vocabulary

_OWN: ContextVar[Vocabulary] = ContextVar("structgen_own_vocabulary")
_OTHERS = frozenset(
    (
        *(("builtins", name) for name in ("str", "set", "frozenset", "bytearray")),
        *(("array", name) for name in ("array", "_array_reconstructor")),
        *(("numpy", name) for name in ("ndarray", "dtype")),
        *((f"numpy.{core}.multiarray", name) for core in ("core", "_core") for name in ("_reconstruct", "scalar")),
        *((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core")),
        *(("collections", name) for name in ("OrderedDict", "defaultdict", "deque")),
        ("decimal", "Decimal"),
        ("fractions", "Fraction"),
    )
)


def sent(grammar: Grammar, vocabulary: Vocabulary) -> bytes:
    """A grammar for a process that has ``vocabulary``; nothing where it cannot be sent."""
    data = io.BytesIO()
    try:
        _Pickler(data, vocabulary).dump(grammar)
    except (pickle.PickleError, AttributeError, TypeError, ValueError, RecursionError):
        return b""
    return data.getvalue()


def received(data: bytes, vocabulary: Vocabulary) -> Any:
    """The grammar that was sent, over this process's ``vocabulary``.

    Raises:
        UnpicklingError: these bytes name what is no part of a grammar.
    """
    token, collects = _OWN.set(vocabulary), gc.isenabled()
    gc.disable()  # collections would look again and again at what comes, and hold up all threads
    try:
        return _Unpickler(_Pieces(data)).load()
    finally:
        _OWN.reset(token)
        if collects:  # else another thread, which receives something too, says when
            gc.enable()


class _Pickler(pickle.Pickler):
    def __init__(self, data: io.BytesIO, vocabulary: Vocabulary) -> None:
        super().__init__(data, pickle.HIGHEST_PROTOCOL)
        self._vocabulary = vocabulary

    def reducer_override(self, value: Any) -> Any:
        """A vocabulary as the tokens that it names, besides the one that both have; texts without what Lark notes."""
        if isinstance(value, str):
            return str, (str(value),)
        if isinstance(value, type | FunctionType | BuiltinFunctionType):
            _check(value.__module__, value.__qualname__)
        if not isinstance(value, Vocabulary):
            return NotImplemented
        if value is not self._vocabulary and self._vocabulary.naming(value.named) != value:
            raise pickle.PicklingError("a grammar over another vocabulary")
        return _vocabulary, (value.named,)


def _vocabulary(named: frozenset[int]) -> Vocabulary:
    return _OWN.get().naming(named)


class _Pieces(io.BytesIO):
    """Bytes that are read by functions of Python: between two pieces (of 64 KiB) other threads have their turn, which
    would else stand still until all is read."""

    def read(self, size: int | None = -1, /) -> bytes:
        """See ``io.BytesIO``."""
        return super().read(size)

    def readinto(self, buffer: Any, /) -> int:
        """See ``io.BytesIO``."""
        return super().readinto(buffer)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """What grammars are made of, and nothing else: the process that sent them had read a stranger's text."""
        _check(module, name)
        return super().find_class(module, name)


def _check(module: str, name: str) -> None:
    if (module, name) not in _OTHERS and not (module.startswith("structgen.") and "." not in name):
        raise pickle.UnpicklingError(f"a grammar does not hold {module}.{name}")
