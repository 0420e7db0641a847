"""How compiled code becomes a function: a shared library through the system's loader, an object through LLVM.

Libraries come with the package and need nothing but the system. Objects are made where numba is, and are linked by the
LLVM that comes with it.
"""

from __future__ import annotations

import ctypes
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from structgen.core.kernels.objects import LEVEL, NEEDS, SYMBOL, TABLE, Kernel, unsealed

# The errors that a kernel raises, its ``self``: numba means another thing by the names of Python's own data.
ERRORS = (IndexError, TypeError)
_METH_FASTCALL = 0x0080


@dataclass(frozen=True, slots=True)
class Loaded:
    """A kernel, and how many of `structgen.core.kernels.objects.WIDER` this processor runs, as its object tells."""

    run: Kernel
    level: int


def has_compiler() -> bool:
    """Whether numba and llvmlite are installed (which does not import them)."""
    return all(importlib.util.find_spec(name) is not None for name in ("numba", "llvmlite"))


def load_library(path: Path) -> Loaded:
    """The kernel in a shared library. About 0.2 ms.

    Raises:
        OSError, RuntimeError: it cannot be loaded, or is no library of a kernel.
    """
    library = ctypes.CDLL(str(path))
    addresses = {}
    for name in (SYMBOL, TABLE, LEVEL):
        if not hasattr(library, name):
            raise RuntimeError(f"{path} has no function {name}")
        addresses[name] = _address(getattr(library, name))
    return _loaded(path, addresses.__getitem__, library)


def load_object(path: Path) -> Loaded:
    """The kernel in an object file. About 0.5 ms, and 30 ms for LLVM the first time.

    Raises:
        OSError, RuntimeError: it cannot be read, is damaged, or is no object of this platform.
    """
    data = unsealed(path.read_bytes())
    if data is None:
        raise RuntimeError(f"{path} is damaged; delete it")
    llvm = _llvm()
    # JITLink puts all sections into one piece of memory. They refer to each other by 32 bits, and in a process with
    # large mappings (a worker of Ray, say) LLVM's older linker leaves them further apart, and ends the process.
    jit = llvm.create_lljit_compiler(
        llvm.Target.from_default_triple().create_target_machine(jit=True), use_jit_link=True
    )
    library = llvm.JITLibraryBuilder().add_object_img(data)
    for name in (SYMBOL, TABLE, LEVEL):
        library.export_symbol(name)
    if sys.platform == "win32" and (probe := _find(("ntdll", "ucrtbase"), "__chkstk")):
        library.import_symbol("__chkstk", probe)
    linked = library.link(jit, path.stem)
    return _loaded(path, linked.__getitem__, (jit, linked))


@lru_cache(1)
def _llvm() -> Any:
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


class _MethodDefinition(ctypes.Structure):
    """``PyMethodDef`` (https://docs.python.org/3/c-api/structures.html)."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


_alive: list[Any] = []  # linkers and libraries hold the code, and definitions the names, of functions that are in use


def _loaded(path: Path, address: Callable[[str], int], owner: Any) -> Loaded:
    """What to call, of code whose symbols are told by ``address`` as long as ``owner`` lives."""
    needs = _needs(path)
    table = ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_void_p))(address(TABLE))()
    for number, position in enumerate(needs):
        table[number] = position
    level = ctypes.CFUNCTYPE(ctypes.c_int64)(address(LEVEL))()
    definition = _MethodDefinition(b"run", address(SYMBOL), _METH_FASTCALL, b"A kernel of structgen.")
    _alive.append((owner, definition))
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.POINTER(_MethodDefinition), ctypes.py_object, ctypes.c_void_p]
    return Loaded(make(ctypes.byref(definition), ERRORS, None), level)


def _needs(path: Path) -> list[int]:
    """Where the functions are that kernels call.

    Raises:
        RuntimeError: this platform has no such function.
    """
    addresses = {name: _function(name) for name in NEEDS}
    missing = [name for name, address in addresses.items() if not address]
    if missing:
        raise RuntimeError(f"{path} needs {', '.join(missing)}, which this platform's libraries lack")
    return [address for address in addresses.values() if address]


_C_LIBRARIES: dict[str, tuple[str | None, ...]] = {"linux": (None, "libm.so.6"), "win32": ("ucrtbase", "ntdll")}


@lru_cache
def _function(name: str) -> int | None:
    if name.startswith("Py"):
        return _address(getattr(ctypes.pythonapi, name))
    return _find(_C_LIBRARIES.get(sys.platform, (None,)), name)


def _find(libraries: tuple[str | None, ...], name: str) -> int | None:
    """Where a function of C is; None: the libraries are called otherwise here, or have no such function."""
    for library in libraries:
        try:
            return _address(getattr(ctypes.CDLL(library), name))
        except (OSError, AttributeError):
            continue
    return None


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
