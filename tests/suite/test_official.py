"""The official JSON Schema suite: every required test of every dialect is right, or its group is refused by name."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from referencing.jsonschema import SchemaRegistry

from tests.suite import official

SUITE = official.suite_folder()
SHIPPED = Path(__file__).parent / "data"
DIALECTS = sorted(path.name for path in (SUITE / "tests").iterdir())
FILES = [path for dialect in DIALECTS for path in official.files(SUITE, dialect)]
REQUIRED = [path for path in FILES if "optional" not in path.parts]
OPTIONAL = [path for path in FILES if "optional" in path.parts]


def name(path: Path) -> str:
    return path.relative_to(SUITE / "tests").with_suffix("").as_posix()


@pytest.mark.parametrize("path", REQUIRED, ids=name)
def test_required(path: Path, record_result) -> None:
    result = official.run_file(SUITE, path, official.compile_with_structgen)
    record_result(f"{name(path).split('/')[0]}, required", result)
    assert not result.wrong, "\n".join(result.wrong)


@pytest.mark.parametrize("path", OPTIONAL, ids=name)
def test_optional_are_counted(path: Path, record_result) -> None:
    """Optional tests may come out either way (they are reported), but nothing may break."""
    result = official.run_file(SUITE, path, official.compile_with_structgen)
    record_result(f"{name(path).split('/')[0]}, optional", result)


def compile_with_jsonschema(schema: object, dialect: str, registry: SchemaRegistry, formats: bool) -> official.Judge:
    """An independent validator in the engine's place; it does not assert formats."""
    default = {"draft7": jsonschema.Draft7Validator, "draft2020-12": jsonschema.Draft202012Validator}[dialect]
    validator = jsonschema.validators.validator_for(schema, default=default)(schema, registry=registry)
    return lambda text: validator.is_valid(json.loads(text))


@pytest.mark.parametrize("dialect", ["draft7", "draft2020-12"])
def test_the_runner_itself(dialect: str) -> None:
    paths = [path for path in official.files(SHIPPED, dialect) if path.stem != "pattern"]  # \p is not in Python's re
    total = sum((official.run_file(SHIPPED, path, compile_with_jsonschema) for path in paths), official.Result())
    assert total.right == total.total > 100, total.wrong
