"""Kernels as object code: where an object lies, whether it is the right one, how it becomes a function.

An object holds one function, `SYMBOL`, in the calling convention of C extensions (METH_FASTCALL), and refers to a few
functions of C and of Python only (`EXTERNALS`). It is made by `structgen.kernels.build` and loaded here by LLVM's
JITLink, so it works for any Python of its platform. What an object was made from is told by a hash of all sources.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

SYMBOL = "structgen_kernel"
FOLDER = Path(__file__).parent
SHIPPED = FOLDER / "objects"
SOURCES = "sources"  # the file beside shipped objects that tells what they were made from
ENTRIES = {
    "json": "structgen.kernels.json.run",
    "cfg": "structgen.kernels.cfg.run",
    "lalr": "structgen.kernels.lalr.run",
    "automata": "structgen.kernels.automata.run",
    "tokens": "structgen.kernels.tokens.run",
    "checks": "structgen.kernels.checks.run",
    "aligned": "structgen.kernels.aligned.run",
    "sampling": "structgen.kernels.sampling.run",
}
"""The kernels, and the module of each one's entry."""

VECTORS = ("sampling",)
"""Kernels of vector arithmetic: for x86-64 made again for wider processors. The results are the same bits."""
WIDER = {
    "avx512": ("x86-64-v4", "-prefer-256-bit", ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")),
    "avx2": ("x86-64-v3", "", ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")),
}
"""By name, widest first: LLVM's name of the processor, what to change of it, and the features that it must have."""

TARGETS = {
    "linux-x86_64": "x86_64-unknown-linux-gnu",
    "linux-aarch64": "aarch64-unknown-linux-gnu",
    "darwin-x86_64": "x86_64-apple-macosx11.0.0",
    "darwin-arm64": "arm64-apple-macosx11.0.0",
    "windows-x86_64": "x86_64-pc-windows-msvc",
}
"""Platforms that objects are made for, and LLVM's names for them."""

PYTHON_FUNCTIONS = (
    "PyLong_AsLongLong", "PyLong_FromLongLong", "PyErr_Occurred", "PyErr_SetString", "PyTuple_GetItem",
    "PyEval_SaveThread", "PyEval_RestoreThread",
)  # fmt: skip
# The errors that an entry raises. They are its ``self``: numba means another thing by the names of Python's own data.
ERRORS = (IndexError, TypeError)
C_FUNCTIONS = ("memset", "memcpy", "memmove", "bzero", "exp", "log", "__chkstk")
EXTERNALS = frozenset((*PYTHON_FUNCTIONS, *C_FUNCTIONS))

Kernel = Callable[[int, int, int, int, int], int]
_METH_FASTCALL = 0x0080


def is_on(variable: str) -> bool:
    """Whether a variable of the environment is set, and not to 0."""
    return os.environ.get(variable, "0") not in ("", "0")


def is_checked() -> bool:
    """Whether kernels are to check every access (``NUMBA_BOUNDSCHECK=1``); a checked kernel raises IndexError."""
    return is_on("NUMBA_BOUNDSCHECK")


CALLERS = ("calls.py", "loading.py", "machine.py")
"""Files that only call what is compiled: objects do not depend on them."""


@lru_cache(1)
def sources_hash() -> str:
    """SHA-256 of all Python files below ``kernels/`` but those that only call what is compiled. 0.5 ms."""
    digest = hashlib.sha256()
    for path in sorted(path for path in FOLDER.rglob("*.py") if path.name not in CALLERS):
        digest.update(path.relative_to(FOLDER).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def host_target() -> str | None:
    """The name of this platform among `TARGETS`; None: no object fits it."""
    machine = {"amd64": "x86_64", "x64": "x86_64", "aarch64": "arm64" if sys.platform == "darwin" else "aarch64"}
    found = platform.machine().lower()
    system = {"win32": "windows"}.get(sys.platform, sys.platform)
    name = f"{system}-{machine.get(found, found)}"
    return name if name in TARGETS and sys.maxsize > 2**32 and sys.implementation.name == "cpython" else None


def object_path(folder: Path, name: str, target: str, checked: bool) -> Path:
    """Where below ``folder`` the object of a kernel lies."""
    return folder / (target + ("-checked" if checked else "")) / f"{name}.o"


def wider_name(name: str, width: str) -> str:
    """What the object of a kernel of `VECTORS` for processors of `WIDER` is called."""
    return f"{name}-{width}"


@lru_cache(1)
def widths() -> tuple[str, ...]:
    """Which of `WIDER` this processor runs, widest first."""
    from llvmlite import binding as llvm

    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know this platform
        return ()
    has = {feature for feature, there in features.items() if there}
    narrower: set[str] = set(WIDER["avx2"][2])
    return tuple(width for width, (_, _, needed) in WIDER.items() if has >= {*needed, *narrower})


def shipped_object(name: str, target: str, checked: bool) -> Path | None:
    """The object in this package, if it was made from these sources."""
    path = object_path(SHIPPED, name, target, checked)
    try:
        made_from = (SHIPPED / SOURCES).read_text().strip()
    except OSError:
        return None
    return path if made_from == sources_hash() and path.is_file() else None


class _MethodDefinition(ctypes.Structure):
    """``PyMethodDef`` (https://docs.python.org/3/c-api/structures.html)."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


_alive: list[Any] = []  # linkers hold the code and definitions the names of functions that are in use


@lru_cache(1)
def _machine() -> Any:
    """LLVM for this process, which finds the names that objects refer to."""
    from llvmlite import binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in PYTHON_FUNCTIONS:
        llvm.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
    for library in _C_LIBRARIES.get(sys.platform, (None,)):
        for name in C_FUNCTIONS:
            if llvm.address_of_symbol(name) is None and (function := _find(library, name)):
                llvm.add_symbol(name, function)
    return llvm


_C_LIBRARIES: dict[str, tuple[str | None, ...]] = {"linux": (None, "libm.so.6"), "win32": ("ucrtbase", "ntdll")}


def _find(library: str | None, name: str) -> int | None:
    try:
        return ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value
    except (OSError, AttributeError):  # the library is called otherwise here, or has no such function
        return None


_SEAL = 32  # bytes of SHA-256 behind an object: LLVM does not survive a damaged one


def sealed(data: bytes) -> bytes:
    """An object and its checksum, as `load_object` reads it."""
    return data + hashlib.sha256(data).digest()


def load_object(path: Path) -> Kernel:
    """The function in an object file. About 0.5 ms, and 30 ms for LLVM the first time.

    Raises:
        OSError, RuntimeError: it cannot be read, is damaged, or is no object of this platform.
    """
    whole = path.read_bytes()
    data = whole[:-_SEAL]
    if sealed(data) != whole:
        raise RuntimeError(f"{path} is damaged; delete it")
    llvm = _machine()
    missing = [name for name in sorted(EXTERNALS) if name.encode() in data and not llvm.address_of_symbol(name)]
    if missing:  # LLVM would end the process
        raise RuntimeError(f"{path} needs {', '.join(missing)}, which this platform's libraries lack")
    # JITLink puts all sections into one piece of memory. They refer to each other by 32 bits, and in a process with
    # large mappings (a worker of Ray, say) LLVM's older linker leaves them further apart, and ends the process.
    jit = llvm.create_lljit_compiler(
        llvm.Target.from_default_triple().create_target_machine(jit=True), use_jit_link=True
    )
    library = llvm.JITLibraryBuilder().add_object_img(data).export_symbol(SYMBOL)
    for name in EXTERNALS:
        if name.encode() in data:
            library.import_symbol(name, llvm.address_of_symbol(name))
    linked = library.link(jit, path.stem)
    address = linked[SYMBOL]
    if not address:
        raise RuntimeError(f"{path} has no function {SYMBOL}")
    definition = _MethodDefinition(b"run", address, _METH_FASTCALL, b"A kernel of structgen.")
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = (
        ctypes.py_object,
        [ctypes.POINTER(_MethodDefinition), ctypes.py_object, ctypes.c_void_p],
    )
    _alive.append((jit, linked, definition))
    return make(ctypes.byref(definition), ERRORS, None)  # type: ignore[no-any-return]
