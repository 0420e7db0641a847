"""Kernels as object code: where they come from, what they may refer to, what importing the library needs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from structgen.core.kernels import build, functions, loading, objects

# A kernel in a package of its own, so that the real ones need not be compiled: seconds in place of a minute.
SMALL = """
from structgen.core.kernels.jit import entry, internal
from structgen.core.kernels.memory import int_array, word_array


@internal
def total(numbers):
    found = 0
    for i in range(numbers.shape[0]):
        found += numbers[i]
    return found


def _make(stamp):
    def run(m, operation, x, y, z):
        if operation == 0:
            return total(int_array(m, 0))
        if operation == 1:
            return word_array(m, 0)[x]
        return stamp

    return run


run = entry(_make)
"""
SETTINGS = ("NUMBA_BOUNDSCHECK", "STRUCTGEN_JIT", "STRUCTGEN_KERNELS_DIR")  # not handed on to other processes
CALL = """
import sys, types
package = types.ModuleType("structgen")
package.__path__ = [sys.argv[1]]
sys.modules["structgen"] = package
from structgen.core.kernels import loading, objects
objects.ENTRIES.clear()
objects.ENTRIES["small"] = "structgen.core.kernels.small"
import numpy as np
from structgen.core.kernels.calls import Function
run = loading.kernel("small")
print(Function(run, 0, [np.int32])(np.arange(10, dtype=np.int32)), "numba" in sys.modules, type(run).__name__)
try:
    Function(run, 1, [np.int64])(np.zeros(2, np.int64), x=5)
    print("read on")
except IndexError:
    print("IndexError")
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the floor with the small kernel as its only one."""
    copy = tmp_path_factory.mktemp("small") / "structgen"
    kernels = copy / "core" / "kernels"
    kernels.mkdir(parents=True)
    for path in objects.FOLDER.glob("*.py"):
        shutil.copy(path, kernels)
    for name in ("progress.py", "errors.py", "core/cache_folder.py"):  # what tells of compiling, and where objects lie
        shutil.copy(objects.FOLDER.parents[1] / name, copy / name)
    (kernels / "small.py").write_text(SMALL)
    source = (kernels / "objects.py").read_text()
    start, end = source.index("ENTRIES = {"), source.index("}", source.index("ENTRIES = {"))
    (kernels / "objects.py").write_text(
        source[:start] + 'ENTRIES = {"small": "structgen.core.kernels.small"' + source[end:]
    )
    return copy


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter's output; it must succeed."""
    kept = {name: value for name, value in os.environ.items() if name not in SETTINGS}
    finished = subprocess.run(
        [sys.executable, "-c", *arguments], capture_output=True, text=True, env={**kept, **environment}
    )
    assert finished.returncode == 0, finished.stderr
    return finished


@pytest.mark.full
def test_an_object_is_built_once_and_numba_stays_out(package: Path, tmp_path: Path) -> None:
    first = python(CALL, str(package), STRUCTGEN_CACHE_DIR=str(tmp_path))
    (built,) = tmp_path.rglob("small.o")
    made = built.stat().st_mtime_ns
    assert first.stdout.splitlines()[0] == "45 False builtin_function_or_method"
    again = python(CALL, str(package), STRUCTGEN_CACHE_DIR=str(tmp_path))
    assert again.stdout == first.stdout and again.stderr == ""
    assert built.stat().st_mtime_ns == made


@pytest.mark.full
def test_a_damaged_object_is_built_anew(package: Path, tmp_path: Path) -> None:
    first = python(CALL, str(package), STRUCTGEN_CACHE_DIR=str(tmp_path))
    (built,) = tmp_path.rglob("small.o")
    whole = built.read_bytes()
    middle = len(whole) // 2
    damaged = (b"", b"no object", whole[:-1], whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :])
    for content in damaged:
        built.write_bytes(content)
        found = python(CALL, str(package), STRUCTGEN_CACHE_DIR=str(tmp_path))
        assert found.stdout == first.stdout and "could not be loaded" not in found.stderr
        assert built.read_bytes() == whole
    broken = objects.sealed(b"no object")  # as it was written, and none: making it anew would not help
    built.write_bytes(broken)
    found = python(CALL, str(package), STRUCTGEN_CACHE_DIR=str(tmp_path), NUMBA_CACHE_DIR=str(tmp_path / "numba"))
    assert found.stdout.startswith("45 True ") and "could not be loaded" in found.stderr
    assert built.read_bytes() == broken


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's here")
@pytest.mark.parametrize("place", ["", "kernels", "kernels/*/*", "kernels/*/*/small.o"])
def test_a_folder_that_others_can_write_is_not_read(package: Path, tmp_path: Path, place: str) -> None:
    cache = tmp_path / "cache"
    first = python(CALL, str(package), STRUCTGEN_CACHE_DIR=str(cache))
    (built,) = cache.rglob("small.o")
    built.write_bytes(b"a stranger's")
    open_to_all = next(path for path in cache.glob(place) if path.name != "lock") if place else cache
    open_to_all.chmod(0o777)
    found = python(CALL, str(package), STRUCTGEN_CACHE_DIR=str(cache))
    assert found.stdout == first.stdout and found.stderr.count("not this user's alone") == 1
    assert built.read_bytes() == b"a stranger's"


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's here")
def test_objects_are_made_so_that_nobody_else_can_write(package: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    before = os.umask(0o002)  # as many systems have it
    try:
        python(CALL, str(package), STRUCTGEN_CACHE_DIR=str(cache))
    finally:
        os.umask(before)
    again = python(CALL, str(package), STRUCTGEN_CACHE_DIR=str(cache))
    assert again.stderr == "" and len(list(cache.rglob("small.o"))) == 1


@pytest.mark.full
def test_checked_objects_lie_beside_the_others(package: Path, tmp_path: Path) -> None:
    found = python(CALL, str(package), STRUCTGEN_CACHE_DIR=str(tmp_path), NUMBA_BOUNDSCHECK="1")
    assert found.stdout.splitlines() == ["45 False builtin_function_or_method", "IndexError"]


@pytest.mark.full
def test_the_jit_on_demand(package: Path, tmp_path: Path) -> None:
    found = python(
        CALL, str(package), STRUCTGEN_CACHE_DIR=str(tmp_path), STRUCTGEN_JIT="1", NUMBA_CACHE_DIR=str(tmp_path)
    )
    assert found.stdout.startswith("45 True ") and "builtin" not in found.stdout and found.stderr == ""
    assert not list(tmp_path.rglob("*.o"))


@pytest.mark.full
def test_other_sources_are_built_anew(package: Path, tmp_path: Path) -> None:
    python(CALL, str(package), STRUCTGEN_CACHE_DIR=str(tmp_path))
    changed = tmp_path / "structgen"
    shutil.copytree(package, changed)
    source = changed / "core" / "kernels" / "small.py"
    source.write_text(source.read_text().replace("found = 0", "found = 1"))
    found = python(CALL, str(changed), STRUCTGEN_CACHE_DIR=str(tmp_path))
    assert found.stdout.startswith("46 ")
    assert len(list(tmp_path.rglob("small.o"))) == 2


def test_shipped_libraries_of_other_sources_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(objects, "SHIPPED", tmp_path)
    path = objects.library_path(tmp_path, "tokens", "linux-x86_64")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    assert objects.shipped_library("tokens", "linux-x86_64") is None
    (tmp_path / "sources").write_text("another hash")
    assert objects.shipped_library("tokens", "linux-x86_64") is None
    (tmp_path / "sources").write_text(objects.sources_hash())
    assert objects.shipped_library("tokens", "linux-x86_64") == path
    assert objects.shipped_library("json", "linux-x86_64") is None


@pytest.mark.full
def test_a_folder_that_cannot_be_written_to(package: Path, tmp_path: Path) -> None:
    """(A file in its place, which stops root as well.)"""
    (tmp_path / "file").touch()
    found = python(CALL, str(package), STRUCTGEN_CACHE_DIR=str(tmp_path / "file"))
    assert found.stdout.startswith("45 False ")


@pytest.mark.full
def test_a_rebuild_gives_the_same_bytes(package: Path, tmp_path: Path) -> None:
    made = []
    for name in ("one", "two"):
        command = [sys.executable, str(package / "core" / "kernels" / "build.py"), "--out", str(tmp_path / name)]
        subprocess.run(command, check=True, capture_output=True)
        made += [path.read_bytes() for path in (tmp_path / name).rglob("small.o")]
    assert len(made) == 2 and made[0] == made[1]


NATIVE = """
declare {declared}
define i32 @"5small5_make12_3clocals_3e3run"(ptr %result, ptr %exception, i64, i64, i64, i64, i64) {{
  {call}
  store i64 7, ptr %result
  ret i32 0
}}
"""


def test_an_object_refers_to_functions_of_c_and_python_only() -> None:
    triple = objects.TARGETS["linux-x86_64"]
    fine = NATIVE.format(declared="double @exp(double)", call="%e = call double @exp(double 1.0)")
    assert build.emit(fine, triple)
    unknown = NATIVE.format(declared="void @NRT_incref(ptr)", call="call void @NRT_incref(ptr %result)")
    with pytest.raises(RuntimeError, match="NRT_incref"):
        build.emit(unknown, triple)
    with pytest.raises(RuntimeError, match="expected one native entry"):
        build.emit("define i32 @other() {\n ret i32 0\n}", triple)


def test_a_broken_object_is_no_kernel(tmp_path: Path) -> None:
    broken = tmp_path / "tokens.o"
    broken.write_bytes(b"no object")
    with pytest.raises((OSError, RuntimeError)):
        functions.load_object(broken)


IMPORTED = """
import json, sys, structgen
print(json.dumps([name for name in sys.argv[1:] if name in sys.modules]))
"""


def test_importing_the_library_needs_no_compiler_and_no_models() -> None:
    """Once the kernels are built."""
    loading.build()
    names = ["numba", "torch", "transformers", "lark"]
    found: Any = json.loads(python(IMPORTED, *names, PYTHONPATH=str(objects.FOLDER.parents[2])).stdout)
    assert found == []


def test_a_platform_without_a_function_gets_no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of it would end the process."""
    loading.build(["aligned"])
    target = objects.host_target()
    assert target is not None
    path = objects.object_path(loading.cache_folder(), "aligned", target, objects.is_checked())
    assert functions.load_object(path).level == 0
    monkeypatch.setattr(functions, "NEEDS", {**objects.NEEDS, "no_such_function": "void ()"})
    with pytest.raises(RuntimeError, match="no_such_function"):
        functions.load_object(path)


SCATTERED = """
import ctypes, mmap
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
def reserve(size):
    return libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
pages = [reserve(8192) for _ in range(400)]
reserve(8 << 30)
for page in pages[::2]:
    libc.munmap(page, 8192)
import numpy, structgen
vocabulary = structgen.Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=256)
print(structgen.compile_json_schema({"type": "integer"}, vocabulary).matcher().accept_bytes(b"12"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is laid out by Linux's mmap here")
def test_kernels_load_where_memory_is_scattered() -> None:
    """Small holes beside a mapping of 8 GB, as workers of Ray have them: an object's sections would lie on both sides
    of it."""
    found = subprocess.run([sys.executable, "-c", SCATTERED], capture_output=True, text=True, timeout=250)
    assert found.stdout == "True\n", found.stderr[-2000:]
