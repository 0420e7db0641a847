"""The public surface: ``structgen.__all__`` is sorted and whole, and importing structgen stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import structgen

HEAVY = ("torch", "transformers", "lark", "interegular", "tiktoken", "typer", "rich", "starlette", "gguf", "numba")
# Of what is small but adds up: for `import structgen`, and for what most programs take from it.
SMALL = ("numpy", "llvmlite", "pydantic", "pydantic_core", "jsonschema", "referencing", "httpx", "regex")
LANGUAGES = (
    "structgen.core.grammars.gbnf",
    "structgen.core.grammars.lark_reader",
    "structgen.core.grammars.dialects.llguidance.reader",
)
NOT_OF_GENERATOR = (*HEAVY, "pydantic", "jsonschema", "referencing", "httpx", *LANGUAGES)
NOT_OF_HELP = (*HEAVY[:5], *SMALL, "structgen.generation.generator", "structgen.core.constraints.json")


@pytest.mark.parametrize("name", getattr(structgen, "__all__", []))
def test_exported_names_exist_and_say_what_they_are(name: str) -> None:
    exported = getattr(structgen, name)
    assert name.startswith("__") or getattr(exported, "__doc__", None), f"{name} has no docstring"


def test_every_export_is_what_the_type_checker_sees() -> None:
    """What stands in the stub, a line a name."""
    source = Path(structgen.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    imports = [node for node in ast.parse(source).body if isinstance(node, ast.ImportFrom)]
    assert all(len(node.names) == 1 and node.names[0].asname == node.names[0].name for node in imports)
    assert [*structgen.__all__] == sorted({"__version__", *(node.names[0].name for node in imports)})
    for node in imports:
        assert getattr(structgen, node.names[0].name) is getattr(import_module(str(node.module)), node.names[0].name)


@pytest.mark.parametrize(
    "first", ["import structgen.core.json_schema.loading", "from structgen import json_schema", ""]
)
def test_no_package_hides_a_function_of_its_name(first: str) -> None:
    program = f"{first}\nimport structgen, structgen.core.json_schema.pointers, structgen.core.constraints.json\n"
    assert output_of(f"{program}print(structgen.json_schema({{}}).schema)") == "{}"


def test_other_names_are_refused() -> None:
    with pytest.raises(
        AttributeError, match=r"no attribute 'stream'; it is a method of generators: structgen\.Generator\(\)"
    ):
        structgen.stream  # type: ignore  # noqa: B018
    with pytest.raises(AttributeError, match="'structgen' has no attribute 'Generater'"):
        structgen.Generater  # type: ignore[attr-defined]  # noqa: B018
    assert set(structgen.__all__) <= set(dir(structgen))


def test_nothing_public_is_left_out() -> None:
    """A class or function in the package's namespace is exported or has a leading underscore."""
    public = {name for name, value in vars(structgen).items() if callable(value) and not name.startswith("_")}
    assert public <= set(structgen.__all__)


@pytest.mark.parametrize(
    "program, unwanted",
    [
        ("import structgen", (*HEAVY, *SMALL)),
        ("from structgen import Generator, JsonOptions, json_schema", NOT_OF_GENERATOR),
        ("import structgen.cli.commands", NOT_OF_HELP),
    ],
)
def test_import_loads_no_heavy_module(program: str, unwanted: tuple[str, ...]) -> None:
    listed = f"{program}\nimport sys; print(*[name for name in {unwanted!r} if name in sys.modules])"
    assert output_of(listed) == ""


def output_of(program: str) -> str:
    """What a fresh Python prints."""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return finished.stdout.strip()
