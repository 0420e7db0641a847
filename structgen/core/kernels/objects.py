"""Kernels as object code: what an object holds, where it lies, whether it is the right one.

An object holds a kernel, `SYMBOL`, in the calling convention of C extensions (METH_FASTCALL), and refers to nothing
outside itself: the few functions of C and of Python that it calls (`NEEDS`) stand in a table that `TABLE` gives and
whoever loads it fills. So it works for any Python and C library of its platform. `structgen.core.kernels.build` makes
objects, `core.kernels.libraries` shared libraries of them, and `core.kernels.functions` loads both. What
they were made from is told by a hash of all sources.
"""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

SYMBOL, TABLE, LEVEL = "structgen_kernel", "structgen_needs", "structgen_level"
"""What an object exports: the kernel, a function that gives the table, and one that gives the number of `WIDER`'s
processors that this one is, counted from the narrowest (of kernels of `VECTORS`; 0 of the others)."""
FOLDER = Path(__file__).parent
SHIPPED = FOLDER / "objects"
SOURCES = "sources"  # the file beside shipped libraries that tells what they were made from
ENTRIES = {
    "json": "structgen.core.kernels.json.run",
    "cfg": "structgen.core.kernels.cfg.run",
    "lalr": "structgen.core.kernels.lalr.run",
    "automata": "structgen.core.kernels.automata.run",
    "tokens": "structgen.core.kernels.tokens.run",
    "checks": "structgen.core.kernels.checks.run",
    "aligned": "structgen.core.kernels.aligned.run",
    "sampling": "structgen.core.kernels.sampling.run",
    "sorted": "structgen.core.kernels.sorted.run",
}
"""The kernels, and the module of each one's entry."""

VECTORS = ("sampling",)
"""Kernels of vector arithmetic: for x86-64 made again for wider processors. The results are the same bits."""
WIDER = {"avx512": ("x86-64-v4", "-prefer-256-bit"), "avx2": ("x86-64-v3", "")}
"""By name, widest first: LLVM's name of the processor, and what to change of it."""

TARGETS = {
    "linux-x86_64": "x86_64-unknown-linux-gnu",
    "linux-aarch64": "aarch64-unknown-linux-gnu",
    "darwin-x86_64": "x86_64-apple-macosx11.0.0",
    "darwin-arm64": "arm64-apple-macosx11.0.0",
    "windows-x86_64": "x86_64-pc-windows-msvc",
}
"""Platforms that objects are made for, and LLVM's names for them."""

NEEDS = {
    "PyLong_AsLongLong": "i64 (ptr)", "PyLong_FromLongLong": "ptr (i64)", "PyErr_Occurred": "ptr ()",
    "PyErr_SetString": "void (ptr, ptr)", "PyTuple_GetItem": "ptr (ptr, i64)",
    "PyEval_SaveThread": "ptr ()", "PyEval_RestoreThread": "void (ptr)",
    "memset": "ptr (ptr, i32, i64)", "memcpy": "ptr (ptr, ptr, i64)", "memmove": "ptr (ptr, ptr, i64)",
    "exp": "double (double)", "log": "double (double)",
}  # fmt: skip
"""The table's functions in their order, and their types as LLVM writes them."""

Kernel = Callable[[int, int, int, int, int], int]


def is_on(variable: str) -> bool:
    """Whether a variable of the environment is set, and not to 0."""
    return os.environ.get(variable, "0") not in ("", "0")


def is_checked() -> bool:
    """Whether kernels are to check every access (``NUMBA_BOUNDSCHECK=1``); a checked kernel raises IndexError."""
    return is_on("NUMBA_BOUNDSCHECK")


CALLERS = ("calls.py", "functions.py", "libraries.py", "loading.py", "machine.py")
"""Files that only link or call what is compiled: objects do not depend on them."""


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
    processor = platform.machine().lower()
    system = {"win32": "windows"}.get(sys.platform, sys.platform)
    name = f"{system}-{machine.get(processor, processor)}"
    return name if name in TARGETS and sys.maxsize > 2**32 and sys.implementation.name == "cpython" else None


def object_path(folder: Path, name: str, target: str, checked: bool) -> Path:
    """Where below ``folder`` the object of a kernel lies."""
    return folder / (target + ("-checked" if checked else "")) / f"{name}.o"


def library_path(folder: Path, name: str, target: str) -> Path:
    """Where below ``folder`` the shared library of an object lies."""
    return folder / target / (name + (".dll" if target.startswith("windows") else ".so"))


def variants(name: str, target: str) -> dict[str, tuple[str, str]]:
    """The objects of a kernel for a platform: LLVM's names of the processor and of features, by the object's name.

    The first is for all processors of the platform, those of `WIDER` come behind it.
    """
    result = {name: ("", "")}
    if name in VECTORS and target.endswith("x86_64"):
        result |= {f"{name}-{width}": wider for width, wider in WIDER.items()}
    return result


def shipped_library(name: str, target: str) -> Path | None:
    """The library in this package, if it was made from these sources."""
    path = library_path(SHIPPED, name, target)
    try:
        made_from = (SHIPPED / SOURCES).read_text().strip()
    except OSError:
        return None
    return path if made_from == sources_hash() and path.is_file() else None


_SEAL = 32  # bytes of SHA-256 behind an object: LLVM does not survive a damaged one


def sealed(data: bytes) -> bytes:
    """An object and its checksum, as it lies in the cache folder."""
    return data + hashlib.sha256(data).digest()


def unsealed(whole: bytes) -> bytes | None:
    """An object without its checksum; None: it is not as it was written."""
    data = whole[:-_SEAL]
    return data if sealed(data) == whole else None
