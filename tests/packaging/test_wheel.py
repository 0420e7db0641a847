"""The wheel of this platform, built from the checkout and installed where nothing else is: masks, processor time, size.

``make test-wheel`` runs these: they install packages and compile the kernels, which takes minutes.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from structgen.core.kernels import libraries, objects

ROOT = Path(__file__).parents[2]
HOST = objects.host_target()
pytestmark = [
    pytest.mark.skipif(not os.environ.get("STRUCTGEN_TEST_WHEEL"), reason="takes minutes: `make test-wheel`"),
    pytest.mark.skipif(HOST is None, reason="no wheel has kernels for this platform"),
    pytest.mark.timeout(1800),
]
SECONDS = 60  # of processor time, for an install
# Masks of each kind of constraint; what was imported, and how long importing took.
PROGRAM = """
import json, sys, time
start = time.process_time()
import structgen
library = time.process_time() - start
vocabulary = structgen.Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=256)
schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
grammars = [structgen.compile_json_schema(schema, vocabulary), structgen.compile_regex("[a-c]+x", vocabulary)]
try:
    grammars.append(structgen.compile_lark('start: "a" start "b" | "c"', vocabulary))
except structgen.ConstraintError as error:
    assert "pip install 'structgen-lm[lark]'" in str(error)
masks = []
for grammar in grammars:
    row = structgen.allocate_token_bitmask(1, vocabulary.size)
    grammar.matcher().fill_next_token_bitmask(row)
    bits = [token for token in range(257) if int(row[0, token >> 5]) >> (token & 31) & 1]
    masks.append(bytes(token for token in bits if token < 256).decode())
there = [name for name in ("numba", "llvmlite", "torch") if name in sys.modules]
print(json.dumps({"masks": masks, "there": there, "import": library, "all": time.process_time() - start}))
"""


def timed(*command: str, **environment: str) -> tuple[float, str]:
    """Processor seconds of a command and all that it starts, and its output; it must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("STRUCTGEN_", "PYTHONPATH"))}
    done = subprocess.run(
        command, capture_output=True, text=True, cwd="/", env={**settings, **environment}, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def megabytes(environment: Path, *without: str) -> float:
    """What an environment's packages bring, but for pip's, those named, and the byte code that pip makes of them."""
    left_out = {"pip", "setuptools", "pkg_resources", "_distutils_hack", *without}
    found = 0
    for site in (environment / "lib").glob("*/site-packages"):
        for path in site.rglob("*"):
            package = path.relative_to(site).parts[0].partition("-")[0].removesuffix(".libs")
            if path.is_file() and path.suffix != ".pyc" and package not in left_out:
                found += path.stat().st_size
    return found / 1e6


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The wheel, and the processor seconds that building it took."""
    folder = tmp_path_factory.mktemp("wheel")
    command = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    seconds, _ = timed(*command)
    (wheel,) = folder.glob("*.whl")
    return wheel, seconds


@pytest.fixture
def installed(tmp_path: Path) -> Callable[[str], tuple[Path, float]]:
    """A function: a fresh environment with a requirement, and the processor seconds of installing it."""

    def install(requirement: str) -> tuple[Path, float]:
        environment = tmp_path / "environment"
        venv.create(environment, with_pip=True)
        seconds, _ = timed(str(environment / "bin" / "python"), "-m", "pip", "install", requirement)
        return environment, seconds

    return install


def test_it_holds_libraries_of_this_platform_only(built: tuple[Path, float]) -> None:
    wheel, _ = built
    assert "-py3-none-" in wheel.name and not wheel.name.endswith("-any.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith("structgen/core/kernels/objects/")]
        metadata = next(archive.read(name).decode() for name in archive.namelist() if name.endswith("/METADATA"))
    expected = {
        objects.library_path(Path("structgen/core/kernels/objects"), variant, str(HOST)).as_posix()
        for name in objects.ENTRIES
        for variant in objects.variants(name, str(HOST))
    }
    assert set(names) == {*expected, "structgen/core/kernels/objects/sources"}
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra" not in line]
    assert not [line for line in needed if "numba" in line or "llvmlite" in line]


def test_the_engine_alone(built: tuple[Path, float], installed: Callable[[str], tuple[Path, float]]) -> None:
    wheel, building = built
    environment, seconds = installed(str(wheel))
    print(f"engine: building {building:.1f} s, installing {seconds:.1f} s, {megabytes(environment):.0f} MB")
    assert building + seconds < SECONDS
    _, said = timed(str(environment / "bin" / "python"), "-c", PROGRAM, STRUCTGEN_CACHE_DIR=str(environment / "cache"))
    assert '"masks": ["{", "abc"], "there": []' in said
    assert not list(environment.glob("cache/**/*.o"))
    assert megabytes(environment, "numpy") < 20  # numpy itself takes 59


def test_with_the_server(built: tuple[Path, float], installed: Callable[[str], tuple[Path, float]]) -> None:
    environment, seconds = installed(f"{built[0]}[serve,lark]")
    print(f"[serve,lark]: installing {seconds:.1f} s, {megabytes(environment):.0f} MB")
    assert seconds < SECONDS and megabytes(environment) < 150
    _, said = timed(str(environment / "bin" / "python"), "-c", PROGRAM)
    assert '"masks": ["{", "abc", "ac"], "there": []' in said


def test_a_wheel_without_kernels(tmp_path: Path) -> None:
    """For platforms that have none: nothing is compiled."""
    command = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT))
    seconds, _ = timed(*command, STRUCTGEN_PLATFORM="any")
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl") and seconds < 20
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if "/objects/" in name]


def test_a_compiler_of_this_machine_is_not_needed() -> None:
    """(Zig's linker is asked for then.)"""
    assert libraries.compiler("windows-x86_64", "windows-x86_64") is None
    assert libraries.compiler("linux-aarch64", "linux-x86_64") is None
