"""Kernels as wheels carry them: shared libraries that need neither numba nor llvmlite, whatever the engine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from structgen.core.kernels import functions, libraries, loading, objects
from structgen.errors import KernelError

HOST = objects.host_target()
pytestmark = pytest.mark.skipif(
    HOST is None or libraries.compiler(HOST, HOST) is None, reason="there is no C compiler here to link with"
)
ROOT = objects.FOLDER.parents[2]
# A Python where the modules named are not to be had, and libraries lie in another folder than the package's.
START = """
import importlib.util, json, sys
from pathlib import Path

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

SHIPPED, *BLOCKED = sys.argv[1:]
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in BLOCKED else real(name, *rest)
sys.meta_path.insert(0, Missing())
from structgen.core.kernels import functions, loading, objects
objects.SHIPPED = Path(SHIPPED)
"""
# Masks of a language of each engine, the kernels of samplers and of aligned sampling, forks and threads.
MASKS = """
import hashlib, os, threading
import numpy as np
import structgen

vocabulary = structgen.Vocabulary([*(bytes([byte]) for byte in range(256)), b"true", b'{"', None], eos_token_ids=258)
schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", 2.5]}}, "required": ["a"]}
grammars = {
    "json": (structgen.compile_json_schema(schema, vocabulary), b'{"a": 12, "b": 2.5}'),
    "regex": (structgen.compile_regex("[a-f]{2,5}(ab|cd)*", vocabulary), b"abcabcd"),
    "gbnf": (structgen.compile_gbnf('root ::= "(" root ")" | [0-9]+', vocabulary), b"((12))"),
    "lark": (structgen.compile_lark('start: "a" start "b" | "c"', vocabulary), b"aacbb"),
}

def digests():
    found = {}
    for name, (grammar, text) in grammars.items():
        matcher, digest, row = grammar.matcher(), hashlib.sha256(), structgen.allocate_token_bitmask(1, vocabulary.size)
        for byte in text:
            matcher.fill_next_token_bitmask(row)
            digest.update(row.tobytes())
            assert matcher.accept_token(byte), (name, byte)
        assert matcher.is_accepting(), name
        found[name] = digest.hexdigest()
    return found

alone, rest = digests(), []
threads = [threading.Thread(target=lambda: rest.append(digests())) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert rest == [alone] * 4
if hasattr(os, "fork"):
    child = os.fork()
    if child == 0:
        os._exit(0 if digests() == alone else 1)
    assert os.waitpid(child, 0)[1] == 0
kinds = sorted({type(loading.kernel(name)).__name__ for name in objects.ENTRIES})
there = [name for name in ("numba", "llvmlite") if name in sys.modules]
print(json.dumps({"masks": alone, "compilers": there, "kinds": kinds}))
"""


def python(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {name: value for name, value in os.environ.items() if name not in ("NUMBA_BOUNDSCHECK", "STRUCTGEN_JIT")}
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True, text=True, cwd=ROOT, timeout=250, env={**settings, "PYTHONPATH": str(ROOT), **environment},
    )  # fmt: skip


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a wheel for this platform carries: the cache's objects, linked."""
    assert HOST is not None
    if objects.is_checked():
        pytest.skip("wheels carry no kernels that check their accesses")
    loading.build()
    folder = tmp_path_factory.mktemp("objects")
    for name in objects.ENTRIES:
        for variant in objects.variants(name, HOST):
            data = objects.unsealed(objects.object_path(loading.cache_folder(), variant, HOST, False).read_bytes())
            assert data is not None
            libraries.link(data, HOST, objects.library_path(folder, variant, HOST), HOST)
    (folder / objects.SOURCES).write_text(objects.sources_hash())
    return folder


@pytest.mark.full
def test_masks_need_no_compiler(shipped: Path, tmp_path: Path) -> None:
    """The same masks as with LLVM's linker, with nothing in the cache folder."""
    pytest.importorskip("lark")
    without = python(START + MASKS, str(shipped), "numba", "llvmlite", STRUCTGEN_KERNELS_DIR=str(tmp_path))
    assert without.returncode == 0, without.stderr
    found = json.loads(without.stdout)
    assert found["compilers"] == [] and found["kinds"] == ["builtin_function_or_method"]
    assert not list(tmp_path.rglob("*.o"))
    linked = python(START + MASKS, str(tmp_path / "none"))
    assert linked.returncode == 0, linked.stderr
    assert json.loads(linked.stdout) == {**found, "compilers": ["llvmlite"]}


@pytest.mark.parametrize(
    "environment, said",
    [
        ({}, "no library of these sources"),
        ({"STRUCTGEN_JIT": "1"}, "STRUCTGEN_JIT=1 asks for"),
        ({"NUMBA_BOUNDSCHECK": "1"}, "NUMBA_BOUNDSCHECK=1"),
    ],
)
def test_where_numba_is_needed_and_missing_the_error_says_what_to_install(
    tmp_path: Path, environment: dict[str, str], said: str
) -> None:
    program = (
        START + "import structgen\nstructgen.compile_regex('a', structgen.Vocabulary([b'a', None], eos_token_ids=1))"
    )
    found = python(program, str(tmp_path), "numba", "llvmlite", **environment)
    last = found.stderr.strip().splitlines()[-1]
    assert found.returncode == 1 and last.startswith("structgen.errors.KernelError: ") and said in last
    assert "pip install 'structgen-lm[jit]'" in last


def test_a_library_that_cannot_be_loaded_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert HOST is not None
    broken = objects.library_path(tmp_path, "tokens", HOST)
    broken.parent.mkdir()
    broken.write_bytes(b"no library")
    (tmp_path / objects.SOURCES).write_text(objects.sources_hash())
    monkeypatch.setattr(objects, "SHIPPED", tmp_path)
    monkeypatch.setattr(objects, "is_checked", lambda: False)
    with monkeypatch.context() as without:
        without.setattr(functions, "has_compiler", lambda: False)
        with pytest.raises(KernelError, match=r"tokens\.(so|dll) could not be loaded.*structgen-lm\[jit\]"):
            loading.kernel.__wrapped__("tokens")
    loading.build(["tokens"])
    assert callable(loading.kernel.__wrapped__("tokens"))  # with numba an object is made in its place


def test_libraries_refer_to_nothing(shipped: Path) -> None:
    """So that they work with any C library, and where Python's own functions cannot be seen from libraries."""
    tool = shutil.which("nm")
    if tool is None or sys.platform != "linux":
        pytest.skip("nm lists what a library refers to")
    made = sorted(shipped.rglob("*.so"))
    assert len(made) == sum(len(objects.variants(name, str(HOST))) for name in objects.ENTRIES)
    for library in made:
        listed = subprocess.run([tool, "-D", str(library)], capture_output=True, text=True, check=True).stdout
        exported = {line.split()[-1] for line in listed.splitlines()}
        assert exported == {objects.SYMBOL, objects.TABLE, objects.LEVEL}, library
        assert " U " not in listed


def test_the_level_is_that_of_the_processor(shipped: Path) -> None:
    """LLVM's own look at it is the judge."""
    llvm = pytest.importorskip("llvmlite.binding")
    has = {feature for feature, there in llvm.get_host_cpu_features().items() if there}
    three = {"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}
    four = three | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
    assert HOST is not None
    expected = (has >= three) + (has >= four) if HOST.endswith("x86_64") else 0
    assert functions.load_library(objects.library_path(shipped, "sampling", HOST)).level == expected
    assert functions.load_library(objects.library_path(shipped, "json", HOST)).level == 0


def test_a_narrower_processor_takes_the_narrower_variant(tmp_path: Path) -> None:
    paths = {name: tmp_path / name for name in ("sampling", "sampling-avx512", "sampling-avx2")}
    for level, name in enumerate(["sampling", "sampling-avx2", "sampling-avx512"]):
        taken: list[str] = []

        def load(path: Path, level: int = level, taken: list[str] = taken) -> functions.Loaded:
            taken.append(path.name)
            return functions.Loaded(lambda m, operation, x, y, z: 0, level)

        loading._widest("sampling", paths, load)
        assert taken[-1] == name
