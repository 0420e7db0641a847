"""Imports go one way: a module imports its own stage or an earlier one, without circles; kernels only numba, numpy."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# The stages in order. Members of one stage may import each other, but not in a circle.
STAGES: list[set[str]] = [
    {"errors", "options", "first_import", "kernels"},
    {"automata", "formula", "vocabulary"},
    {"json_schema", "grammar", "protocols"},
    {"machine"},
    {"masks", "bitmask", "compiled", "matcher", "state_matcher", "grammar_machine", "contextual", "composition"},
    {"decoding", "models"},
    {"generator", "constraints", "python_types", "text_constraints", "composed_constraints", "api"},
    {"benchmarking"},
    {"cli"},
]
STAGE_OF = {part: number for number, stage in enumerate(STAGES) for part in stage}
# What a kernel may import: compiled code sees arrays and numbers only. llvmlite is numba's own back end (intrinsics);
# typing costs nothing at run time.
KERNEL_IMPORTS = {"__future__", "collections", "math", "typing", "numba", "numpy", "llvmlite"}

MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "structgen").rglob("*.py"))
}


def imported(module: str, source: str, *, at_import_only: bool = False) -> Iterator[str]:
    """Dotted names that the module imports: anywhere, or (``at_import_only``) when it is itself imported."""
    tree = ast.parse(source)
    for node in tree.body if at_import_only else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module.split(".") if is_package(module) else module.split(".")[:-1]
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                yield f"{name}.{alias.name}" if f"{name}.{alias.name}" in MODULES else name


def is_package(module: str) -> bool:
    return any(other.startswith(f"{module}.") for other in MODULES)


def violations(module: str, source: str) -> list[str]:
    """Imports of a later stage, in words. The package's root re-exports the library: only the last stage imports it."""
    if module == "structgen":
        return []
    stage = STAGE_OF[module.split(".")[1]]
    found = []
    for name in imported(module, source):
        parts = name.split(".")
        last = len(STAGES) - 1
        if parts[0] == "structgen" and (STAGE_OF.get(parts[1], len(STAGES)) if parts[1:] else last) > stage:
            found.append(f"{module} (stage {stage}) imports {name}")
    return found


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module: str) -> None:
    if module != "structgen":
        assert module.split(".")[1] in STAGE_OF, f"{module} belongs to no stage: give it one in {Path(__file__).name}"
    assert not violations(module, MODULES[module])


def test_no_circle() -> None:
    """Among the imports that run when a module is imported."""
    graph = {
        module: {name for name in imported(module, source, at_import_only=True) if name in MODULES and name != module}
        for module, source in MODULES.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other in a circle: {' → '.join(error.args[1])}")


@pytest.mark.parametrize("module", [module for module in MODULES if "kernels" in module])
def test_kernels_import_only_numba_and_numpy(module: str) -> None:
    """Whatever lies in a package or file named kernels."""
    assert {name.split(".")[0] for name in imported(module, MODULES[module])} <= KERNEL_IMPORTS


def test_a_backward_import_is_seen() -> None:
    assert violations("structgen.formula.x", "def f():\n    from structgen.machine import numbers")
    assert violations("structgen.formula.x", "from ..machine.numbers import y")
    assert violations("structgen.formula.x", "import structgen")
    assert not violations("structgen.formula.x", "from ..errors import SchemaError\nfrom . import language")
