"""Benchmarks have one home: peers are imported by their adapters alone, and only when they are asked for."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import structgen
from structgen.benchmarking.engines import ENGINES, PACKAGES
from tests.package_sources import parsed

ROOT = Path(structgen.__file__).parent
PEERS = {*PACKAGES.values(), "lm_eval", "datasets", "tiktoken", "outlines", "guidance"}
# Modules that may import them; the adapter of lm_eval is itself what is asked for.
KEEPERS = {
    "peers.py": {"llguidance", "xgrammar", "outlines_core"},
    "lm_eval_adapter.py": {"lm_eval"},
    "schemas.py": {"datasets"},
    "reasoning.py": {"datasets"},
    "vocabularies.py": {"tiktoken"},
}
PARTS_OF_ENGINES = {
    **{ROOT / "integrations" / name / "dialects.py": {"xgrammar"} for name in ("sglang", "vllm")},
    ROOT / "core" / "tokenization" / "reading.py": {"tiktoken"},
}
"""Both engines have XGrammar in them, whose class of tags they hand on. An encoding of tiktoken is asked what it makes
of texts: only who has the package has one."""


def peers_of(path: Path) -> Iterator[str]:
    """Peers that a module imports, anywhere."""
    for node in ast.walk(parsed(path.read_text("utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
        yield from (name.split(".")[0] for name in names if name.split(".")[0] in PEERS)


def test_peers_have_one_keeper_each() -> None:
    found = {path: set(peers_of(path)) for path in ROOT.rglob("*.py")}
    for path, names in found.items():
        kept = KEEPERS.get(path.name, set()) if path.parent.name == "benchmarking" else set()
        allowed = kept | PARTS_OF_ENGINES.get(path, set())
        assert names <= allowed, path


def test_scripts_stand_on_the_package() -> None:
    """They go through its adapters, which have the peers' calls and the tables."""
    scripts = sorted((ROOT.parent / "benchmarks").glob("*.py"))
    assert scripts
    for path in scripts:
        assert not set(peers_of(path)), path


def test_nothing_is_imported_unless_asked() -> None:
    modules = [f"structgen.benchmarking.{path.stem}" for path in (ROOT / "benchmarking").glob("*.py")]
    asked = [name for name in modules if not name.endswith(("lm_eval_adapter", "__init__"))]
    code = f"import sys, {', '.join(asked)}, structgen.cli.bench; print(sorted({PEERS!r} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT.parent, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == "[]"


@pytest.mark.parametrize("name", PACKAGES)
def test_adapters_of_peers_are_among_the_peers(name: str) -> None:
    assert ENGINES[name].startswith("structgen.benchmarking.peers:")
