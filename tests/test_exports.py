"""The public surface: ``structgen.__all__`` is sorted and whole, and importing structgen stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import structgen
from structgen import errors

HEAVY = ("torch", "transformers", "lark", "interegular", "tiktoken", "typer", "rich", "starlette", "gguf", "numba")
# Of what is small but adds up: for `import structgen`, and for what most programs take from it.
SMALL = ("numpy", "llvmlite", "pydantic", "pydantic_core", "jsonschema", "referencing", "httpx", "regex")
LANGUAGES = ("structgen.grammar.gbnf", "structgen.grammar.lark_reader", "structgen.grammar.llguidance.reader")
NOT_OF_GENERATOR = (*HEAVY, "pydantic", "jsonschema", "referencing", "httpx", *LANGUAGES)
NOT_OF_HELP = (*HEAVY[:5], *SMALL, "structgen.generator", "structgen.constraints.json")


def rank(name: str) -> tuple[int, str]:
    """The order that ruff asks of ``__all__`` (RUF022): constants, classes, functions; each by name."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_all_is_sorted_without_duplicates() -> None:
    assert structgen.__all__ == sorted(set(structgen.__all__), key=rank)


@pytest.mark.parametrize("name", getattr(structgen, "__all__", []))
def test_exported_names_exist_and_say_what_they_are(name: str) -> None:
    exported = getattr(structgen, name)
    assert name.startswith("__") or getattr(exported, "__doc__", None), f"{name} has no docstring"


def test_every_export_is_what_the_type_checker_sees() -> None:
    """The imports under ``if TYPE_CHECKING`` name the objects that are loaded when they are used, and none besides."""
    source = Path(structgen.__file__).read_text(encoding="utf-8")
    branch = next(node for node in ast.parse(source).body if isinstance(node, ast.If))
    imports = [node for node in branch.body if isinstance(node, ast.ImportFrom)]
    named = {alias.asname or alias.name: (str(node.module), alias.name) for node in imports for alias in node.names}
    loaded = set(structgen.__all__) - {"__version__"} - set(vars(errors))
    assert set(named) == loaded
    for name, (module, there) in named.items():
        assert getattr(structgen, name) is getattr(import_module(module), there)


@pytest.mark.parametrize("first", ["import structgen.json_schema.loading", "from structgen import json_schema", ""])
def test_no_package_hides_a_function_of_its_name(first: str) -> None:
    program = f"{first}\nimport structgen, structgen.json_schema.places, structgen.constraints.json\n"
    assert output_of(f"{program}print(structgen.json_schema({{}}).schema)") == "{}"


def test_other_names_are_refused() -> None:
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
