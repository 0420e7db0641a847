"""Imports go one way: a module imports its own stage or an earlier one, without circles; kernels only numba, numpy.

Imports inside functions count as those at the top do: they hide a circle, they do not undo it. Only imports for type
checkers (``if TYPE_CHECKING``) may point back, within a folder.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.package_sources import PATHS, parsed, text

# The stages in order. Members of one stage may import each other, but not in a circle.
STAGES: list[set[str]] = [
    {"errors", "options", "progress"},
    {
        "core.bounded_cache",
        "core.json_text",
        "core.regions",
        "core.untrusted_json",
        "core.json_prefix",
        "core.cache_folder",
        "core.whole_files",
        "core.workers",
        "core.kernels",
    },
    {"core.regex", "core.text_sets", "core.monitors", "core.json_schema.formula", "core.vocabulary"},
    {"core.engines.apply"},
    {
        "core.json_schema",
        "core.tokenization",
        "core.grammars",
        "core.engines.byte_sets",
        "core.engines.capture",
        "core.engines.protocols",
        "core.engines.bitmask",
        "core.engines.draft_trees",
        "core.engines.pages",
        "core.engines.logits",
    },
    {
        "core.json_places",
        "core.json_spans",
        "core.engines.matcher",
        "core.engines.state_matcher",
        "core.engines.laws",
        "core.engines.captures",
        "core.engines.draft_masks",
        "core.engines.shared_machine",
        "core.engines.batches",
        "core.engines.json.numbers",
    },
    {"core.engines.json.value_graph"},
    {"core.engines.json.tables"},
    {"core.engines.json", "core.engines.cfg", "core.engines.lalr", "core.engines.sorted", "core.engines.counted"},
    {"core.engines.composed", "core.engines.triggered"},
    {"core.compilers", "core.python_types", "core.tool_calls"},
    {"core.constraints"},
    {"core.answers"},
    {"generation.filters"},
    {
        "generation.sampling",
        "generation.models",
        "generation.loading",
        "generation.ray_cluster",
        "generation.decoding",
        "generation.scheduler",
        "generation.speculative",
        "generation.target",
        "generation.fields",
    },
    {"generation.results"},
    {"generation.search"},
    {
        "generation.options",
        "generation.calibration",
        "generation.consensus",
        "generation.voting",
        "generation.refining",
        "generation.batch",
        "generation.byte_ensemble",
        "generation.byte_model",
        "generation.open_objects",
        "generation.prepared_model",
        "generation.target_sampler",
        "generation.searcher",
        "generation.async_generation",
        "generation.generator",
        "generation.api",
        "tools",
        "rl",
    },
    {"generation.batch_files", "benchmarking", "server"},
    {"integrations"},
    {"cli", "testing", "__main__"},
]
# The floors, lowest first: a floor knows those below it. What stands beside another knows nothing of it.
FLOORS: dict[str, set[str]] = {
    "core": set(),
    "generation": {"core"},
    "testing": {"core"},
    "tools": {"core", "generation"},
    "rl": {"core"},
    "server": {"core", "generation", "tools"},
    "benchmarking": {"core", "generation", "tools"},
    "integrations": {"core", "generation", "tools"},
    "__main__": {"cli"},
    "cli": {"core", "generation", "tools", "server", "benchmarking", "integrations"},
}
LOOSE = {"errors", "options", "progress"}
STAGE_OF = {f"structgen.{part}": number for number, stage in enumerate(STAGES) for part in stage}
# Folders that are part of the one above: a table with the module that reads it as the automata's own character sets.
PARTS = {"structgen.core.regex.unicode": "structgen.core.regex"}
# What a kernel may import: compiled code sees arrays and numbers only. llvmlite is numba's own back end (intrinsics);
# typing costs nothing at run time.
KERNEL_IMPORTS = {"numba", "llvmlite", "numpy", "platformdirs", "structgen"}

NAMES = {path: f"structgen/{path}".removesuffix(".py").replace("/", ".").removesuffix(".__init__") for path in PATHS}
MODULES = {name: text(path) for path, name in NAMES.items()}


@cache
def imported(module: str, source: str, *, for_types: bool = True) -> list[str]:
    """Dotted names that the module imports, anywhere; those for type checkers only if ``for_types``."""
    return list(_imported(module, source, for_types=for_types))


def _imported(module: str, source: str, *, for_types: bool) -> Iterator[str]:
    tree = parsed(source)
    skipped = set() if for_types else {node for branch in type_checking(tree) for node in ast.walk(branch)}
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module.split(".") if is_package(module) else module.split(".")[:-1]
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                yield f"{name}.{alias.name}" if f"{name}.{alias.name}" in MODULES else name


def type_checking(tree: ast.Module) -> list[ast.stmt]:
    """What stands under ``if TYPE_CHECKING``."""
    ifs = [node for node in ast.walk(tree) if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return [statement for node in ifs for statement in node.body]


def is_package(module: str) -> bool:
    return any(other.startswith(f"{module}.") for other in MODULES)


def folder(module: str) -> str:
    """A module's folder; of a floor's own modules, each is one."""
    name = module if is_package(module) else module.rpartition(".")[0]
    if name in ("structgen.core", "structgen.generation"):
        return module
    return PARTS.get(name, name)


def stage_of(module: str) -> int | None:
    """The stage of the longest beginning that has one; None: of none."""
    parts = module.split(".")
    beginnings = (".".join(parts[:end]) for end in range(len(parts), 1, -1))
    return next((STAGE_OF[name] for name in beginnings if name in STAGE_OF), None)


def violations(module: str, source: str) -> list[str]:
    """Imports of a later stage, in words. The package's root re-exports the library: only the last stage imports it."""
    stage = stage_of(module)
    if stage is None:
        return []
    found = []
    for name in imported(module, source):
        where = len(STAGES) - 1 if name == "structgen" else stage_of(name)
        if name.split(".")[0] == "structgen" and (where is None or where > stage):
            found.append(f"{module} (stage {stage}) imports {name}")
    return found


def circle(graph: dict[str, set[str]]) -> str:
    """A circle in words; "" if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " → ".join(error.args[1])
    return ""


def test_imports_go_one_way() -> None:
    # Folders that hold nothing but others, and the root, need no stage.
    placed = [module for module, source in MODULES.items() if module != "structgen" and source.strip()]
    lost = [module for module in placed if stage_of(module) is None]
    assert not lost, f"modules that belong to no stage: give each one in {Path(__file__).name}"
    assert [wrong for module, source in MODULES.items() for wrong in violations(module, source)] == []


def test_floors_know_those_below() -> None:
    found = []
    for module, source in MODULES.items():
        own = module.split(".")[1] if "." in module else ""
        known = FLOORS.get(own, set()) | LOOSE | {own}
        names = {name for name in imported(module, source) if name.startswith("structgen.")}
        found += [f"{module} imports {name}" for name in sorted(names) if own and name.split(".")[1] not in known]
    assert not found


def test_no_circle_of_modules() -> None:
    graph = {
        module: {name for name in imported(module, source, for_types=False) if name in MODULES and name != module}
        for module, source in MODULES.items()
        if module != "structgen"
    }
    assert not circle(graph), "modules import each other in a circle"


# Modules of engines that name, for types only, one that imports them: a matcher the grammar that made it, the parts of
# recursive data each other, helpers of a contract the contract. Objects that call each other belong in one file, or one
# of the files in two.
NAMED_FROM_BELOW = {
    ("bitmask", "protocols"),
    ("draft_trees", "protocols"),
    ("cfg.matcher", "cfg.compiled"),
    ("cfg.pair_completion", "cfg.pairs"),
    ("composed.matcher", "composed.grammar"),
    ("counted.matcher", "counted.grammar"),
    ("json.matcher", "json.compiled"),
    ("json.value_graph.items", "json.value_graph.node"),
    ("json.value_graph.objects", "json.value_graph.node"),
    ("lalr.matcher", "lalr.compiled"),
}


def test_no_new_circle_for_types_only() -> None:
    top = "structgen.core.engines."
    engines = {module: source for module, source in MODULES.items() if module.startswith(top)}
    at_run_time = {module: set(imported(module, source, for_types=False)) for module, source in engines.items()}

    def reached(module: str) -> set[str]:
        seen, waiting = set[str](), [module]
        while waiting:
            waiting += (new := at_run_time.get(waiting.pop(), set()) - seen)
            seen |= new
        return seen

    back = {
        (module.removeprefix(top), name.removeprefix(top))
        for module, source in engines.items()
        for name in set(imported(module, source)) & engines.keys() - at_run_time[module]
        if module in reached(name)
    }
    assert back == NAMED_FROM_BELOW


def test_no_circle_of_folders() -> None:
    """Neither those for type checkers: what a folder is about needs nothing of what stands on it."""
    graph: dict[str, set[str]] = {}
    for module, source in MODULES.items():
        if folder(module) != "structgen":
            names = {name for name in imported(module, source) if name in MODULES}
            graph.setdefault(folder(module), set()).update(map(folder, names))
    for name, others in graph.items():
        others -= {name, "structgen"}
    assert not circle(graph), "folders import each other in a circle"


def picture(top: str) -> list[list[str]]:
    """The folders and loose files right below a package, those that import none of the others first."""
    graph: dict[str, set[str]] = {}
    for module, source in MODULES.items():
        if module.startswith(f"{top}."):
            box = module.removeprefix(f"{top}.").split(".")[0]
            names = [name for name in imported(module, source) if name.startswith(f"{top}.")]
            graph.setdefault(box, set()).update(name.removeprefix(f"{top}.").split(".")[0] for name in names)
            graph[box].discard(box)
    levels, sorter = [], TopologicalSorter(graph)
    sorter.prepare()
    while sorter.is_active():
        levels.append(sorted(sorter.get_ready()))
        sorter.done(*levels[-1])
    return levels


@pytest.mark.parametrize("top", ["structgen", "structgen.core"])
def test_the_picture_of_imports_is_taken_in_at_a_glance(top: str) -> None:
    levels = picture(top)
    assert len(levels) <= 14 and sum(map(len, levels)) <= 24, "\n".join(map(" ".join, levels))


def test_one_place_knows_all_engines() -> None:
    """Constraints, decoders and servers see the protocols; an engine knows itself, and composed grammars the one that
    they are built on."""
    knowing = {}
    for module, source in MODULES.items():
        engines = {
            name.split(".")[3] for name in imported(module, source) if name.startswith("structgen.core.engines.")
        }
        engines &= {"json", "cfg", "lalr", "sorted", "composed"}
        if len(engines) > 1:
            knowing[module] = engines
    assert knowing.pop("structgen.core.compilers") == {"json", "cfg", "lalr", "sorted", "composed"}
    assert all(
        module.startswith("structgen.core.engines.composed.") and engines == {"cfg", "composed"}
        for module, engines in knowing.items()
    ), knowing


def test_kernels_stand_alone() -> None:
    """They are built without the rest of the package, and import nothing beyond the array code's own tools."""
    kernels = [module for module in MODULES if "kernels" in module]
    imports = {(module, name) for module in kernels for name in imported(module, MODULES[module])}
    # No part of what is built; it says to users that they wait, where, or why.
    known = {"structgen.progress", "structgen.core.cache_folder", "structgen.errors"}
    imports -= {("structgen.core.kernels.loading", name) for name in known}
    own = {(module, name) for module, name in imports if name.startswith("structgen")}
    assert imports and {each for each in own if ".kernels" not in each[1].removesuffix("_kernels")} == set()
    allowed = sys.stdlib_module_names | KERNEL_IMPORTS
    assert {each for each in imports if each[1].split(".")[0] not in allowed} == set()


# What of the kernels' folder runs without numba, or imports it (`build`) and LLVM (`functions`) where it is asked to.
WITHOUT_NUMBA = {
    f"structgen.core.kernels.{name}" for name in ("objects", "loading", "functions", "libraries", "build", "glue")
}


def test_numba_is_imported_where_kernels_are_written() -> None:
    """By sources of kernels, and by what they alone import: the rest of the library must do without it."""
    imports = {module: set(imported(module, source, for_types=False)) for module, source in MODULES.items()}
    del imports["structgen.core.kernels.build"]  # a program: it runs in a process of its own
    assert not [module for module, names in imports.items() if "structgen.core.kernels.build" in names]
    bound = {
        module
        for module, names in imports.items()
        if any(name.partition(".")[0] in ("numba", "llvmlite") for name in names)
    } - WITHOUT_NUMBA
    while more := {
        module
        for module, names in imports.items()
        if module not in bound and any(name in bound or name.rpartition(".")[0] in bound for name in names)
    }:
        bound |= more
    assert "structgen.core.kernels.json.masks" in bound  # so that the test sees something
    strays = {module for module in bound if not module.startswith("structgen.core.kernels.")}
    assert not strays, f"they import numba, themselves or through kernels: {sorted(strays)}"
    assert not bound & WITHOUT_NUMBA
    assert not {module for module in bound if module.rpartition(".")[2] in ("machine", "layout", "calls")}


def test_a_backward_import_is_seen() -> None:
    assert violations(
        "structgen.core.json_schema.formula.x", "def f():\n    from structgen.core.engines.json.numbers import spec"
    )
    assert violations("structgen.core.json_schema.formula.x", "from ...engines.json.numbers import y")
    assert violations("structgen.core.json_schema.formula.x", "import structgen")
    assert violations("structgen.core.engines.cfg.x", "def f():\n    from structgen.core.engines.composed import x")
    assert not violations(
        "structgen.core.json_schema.formula.x", "from ....errors import SchemaError\nfrom . import language"
    )
    assert list(imported("x", "if TYPE_CHECKING:\n    import y\nimport z", for_types=False)) == ["z"]
    assert circle({"a": {"b"}, "b": {"a"}})


if __name__ == "__main__":  # python -m tests.test_layering: the picture, a level a line
    for level in [*picture("structgen"), [], *picture("structgen.core"), [], *picture("structgen.generation")]:
        print(*level)
