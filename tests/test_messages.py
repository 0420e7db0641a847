"""Messages name only what exists: options, parameters, environment variables, flags of the command."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, is_typeddict

import pytest

import structgen
from structgen import JsonOptions
from tests.package_sources import PATHS, tree

FIELDS = {field.name for field in dataclasses.fields(JsonOptions)}
# Where users find what they pass, beside the exported names.
PUBLIC_MODULES = [
    "generation.target",
    "generation.sampling",
    "generation.speculative.model_drafter",
    "generation.sampling.device_masks",
    "generation.loading",
    "server.openai_types",
    "server.settings",
]


def parameters(value: Any) -> set[str]:
    """What may be passed by name to a public function, class or its methods."""
    if is_typeddict(value):
        return set(value.__annotations__)
    found = set(inspect.signature(value).parameters) if callable(value) and not _is_alias(value) else set[str]()
    if inspect.isclass(value):
        methods = [item for name, item in inspect.getmembers(value, callable) if name[0] != "_"]
        found |= {name for method in methods for name in _signature(method)}
    return found


def _is_alias(value: Any) -> bool:
    return not (inspect.isclass(value) or inspect.isfunction(value))


def _signature(value: Any) -> set[str]:
    try:
        return set(inspect.signature(value).parameters)
    except ValueError:
        return set()


@cache
def public() -> set[str]:
    """Names that users can pass to something."""
    found = set(FIELDS)
    for name in structgen.__all__:
        value = getattr(structgen, name)
        if inspect.isclass(value) and issubclass(value, Exception):
            continue
        found |= parameters(value)
    for name in PUBLIC_MODULES:
        module = importlib.import_module(f"structgen.{name}")
        found |= {p for item in vars(module).values() if inspect.isclass(item) for p in _signature(item)}
        found |= {p for item in vars(module).values() if inspect.isfunction(item) for p in _signature(item)}
    return found


def prose(module: ast.AST) -> Iterator[str]:
    """Texts in calls that make or raise errors: whatever is called something with error, refuse or the like."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and re.search(
            r"(?i)error|refus|badinput|unsupported|out_of_range|too_", ast.unparse(node.func)
        ):
            parts: list[ast.expr] = [*node.args, *(keyword.value for keyword in node.keywords)]
            for part in parts:
                for text in ast.walk(part):
                    if isinstance(text, ast.Constant) and isinstance(text.value, str):
                        yield text.value


@cache
def flags() -> set[str]:
    """Options of the command and of all that are below it."""
    typer = pytest.importorskip("typer")
    from structgen.cli.commands import app

    found, pending = set[str](), [typer.main.get_command(app)]
    while pending:
        command = pending.pop()
        found |= {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
        pending += getattr(command, "commands", {}).values()
    return found


def wrong(text: str, options: set[str], known: set[str], commands: set[str]) -> list[str]:
    """What a message names that does not exist."""
    found = [name for name in re.findall(r"\b(?:max|min)_[a-z_]+\b", text) if name not in options]
    found += [name for name in re.findall(r"\b([a-z][a-z_]+)=(?=\S)", text) if name not in options]
    found += [name for name in re.findall(r"\bJsonOptions\.([a-z_]+)", text) if name not in FIELDS]
    found += [name for name in re.findall(r"\b[A-Z]{2,}(?:_[A-Z]+)+\b", text) if name not in known]
    # Flags of other commands (pip, python) are named together with these.
    if not re.search(r"\b(?:pip|python)\b", text):
        found += [name for name in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text) if name not in commands]
    return found


@cache
def variables() -> set[str]:
    """Variables of the environment that the library knows."""
    return {
        found
        for path in PATHS
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for found in re.findall(r"^STRUCTGEN_[A-Z_]+$", node.value)
    }


def test_what_messages_name_exists() -> None:
    options, commands = public(), flags()
    texts = [(path, text) for path in PATHS for text in prose(tree(path))]
    found = [(path, text, wrong(text, options, variables(), commands)) for path, text in texts]
    assert len(texts) > 1000 and [each for each in found if each[2]] == []


def test_budgets_of_schemas_are_options_and_others_are_not() -> None:
    found = []
    for path in PATHS:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("TooComplexError"):
                of_a_schema = ast.unparse(node.func).endswith("SchemaTooComplexError")
                budgets = [keyword.value for keyword in node.keywords if keyword.arg == "budget"]
                names = [name.value for name in budgets if isinstance(name, ast.Constant) and name.value]
                found += [(path, ast.unparse(node)) for name in names if (name in FIELDS) != of_a_schema]
    assert found == []


def test_a_name_that_does_not_exist_is_seen() -> None:
    options, commands = public(), flags()
    good = (
        "raise max_steps, pass schema_in_prompt=False, JsonOptions.whitespace, set STRUCTGEN_CACHE_DIR, give --schema"
    )
    assert not wrong(good, options, variables(), commands)
    for bad in ("raise max_duties", "pass nothing=1", "JsonOptions.speed", "raise MAX_DUTIES", "use --fast"):
        assert wrong(bad, options, variables(), commands), bad
