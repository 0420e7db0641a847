"""The official JSON Schema test suite through an engine: each group compiles, each instance is text that it judges.

    python tests/suite/official.py [SUITE] [DIALECT ...]     prints a line for each file and the totals

SUITE is a checkout of https://github.com/json-schema-org/JSON-Schema-Test-Suite (or a folder with its ``tests`` and
``remotes``); without it, the folder that ``suite_folder`` finds.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import referencing
import referencing.jsonschema
from referencing.jsonschema import DRAFT3, DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012, SchemaRegistry

from structgen.errors import (
    SchemaTooComplexError,
    UnresolvableReferenceError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)

SPECIFICATIONS = {
    "draft3": DRAFT3,
    "draft4": DRAFT4,
    "draft6": DRAFT6,
    "draft7": DRAFT7,
    "draft2019-09": DRAFT201909,
    "draft2020-12": DRAFT202012,
}

# What an engine makes of a schema: whether a JSON text is accepted. Arguments: schema, dialect, registry, formats.
Judge = Callable[[str], bool]
Compiler = Callable[[Any, str, SchemaRegistry, bool], Judge]


def suite_folder() -> Path:
    """The suite of the data folder (STRUCTGEN_DATA, or shared/data beside the checkout), else the few files here."""
    beside = Path(__file__).parents[2].parent / "shared" / "data"
    suite = Path(os.environ.get("STRUCTGEN_DATA", beside)) / "json-schema-test-suite"
    return suite if (suite / "tests").is_dir() else Path(__file__).parent / "data"


@dataclass
class Result:
    """The count of one file's tests.

    ``wrong``: descriptions of the tests that were judged against their label. ``unsupported``: tests of groups that
    the engine does not cover, by keyword.
    """

    right: int = 0
    wrong: list[str] = field(default_factory=list)
    unsupported: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """All tests of the file."""
        return self.right + len(self.wrong) + self.unsupported.total()

    def __add__(self, other: Result) -> Result:
        return Result(self.right + other.right, self.wrong + other.wrong, self.unsupported + other.unsupported)

    def __str__(self) -> str:
        text = f"{self.right:,} of {self.total:,} tests right, {len(self.wrong):,} wrong"
        if self.unsupported:
            reasons = ", ".join(f"{keyword} {count}" for keyword, count in self.unsupported.most_common())
            text += f", {self.unsupported.total():,} not covered ({reasons})"
        return text


@cache
def remotes(suite: Path, dialect: str) -> SchemaRegistry:
    """The suite's remote documents, at the address where it expects them; one without ``$schema`` is of ``dialect``."""
    folder = suite / "remotes"
    registry: SchemaRegistry = referencing.jsonschema.EMPTY_REGISTRY
    for path in sorted(folder.rglob("*.json")):
        place = path.relative_to(folder)
        specification = SPECIFICATIONS.get(place.parts[0], SPECIFICATIONS[dialect])
        resource = referencing.Resource.from_contents(json.loads(path.read_text()), specification)
        registry = registry.with_resource(f"http://localhost:1234/{place.as_posix()}", resource)
    return registry


def run_file(suite: Path, path: Path, compile_schema: Compiler) -> Result:
    """Judge every test of one file of the suite. Formats are asserted in ``optional/format`` and nowhere else."""
    dialect = path.relative_to(suite / "tests").parts[0]
    assert_formats = path.parent.name == "format"
    result = Result()
    for group in json.loads(path.read_text(encoding="utf-8")):
        try:
            judge = compile_schema(group["schema"], dialect, remotes(suite, dialect), assert_formats)
        except (UnsupportedSchemaError, SchemaTooComplexError, UnresolvableReferenceError) as error:
            # (unresolvable: a remote document of another draft, which a folder with some of the drafts lacks)
            result.unsupported[error.keyword or type(error).__name__] += len(group["tests"])
            continue
        except UnsatisfiableSchemaError:
            judge = _nothing
        for test in group["tests"]:
            text = json.dumps(test["data"], ensure_ascii=False)
            if judge(text) == test["valid"]:
                result.right += 1
            else:
                label = "valid" if test["valid"] else "invalid"
                result.wrong.append(f"{group['description']}: {test['description']}: {text[:100]} is {label}")
    return result


def _nothing(text: str) -> bool:
    """The judge of an unsatisfiable schema."""
    return False


@cache
def _vocabulary() -> Any:
    structgen: Any = importlib.import_module("structgen")
    return structgen.Vocabulary([bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256], special_token_ids=[256])


def compile_with_structgen(schema: Any, dialect: str, registry: SchemaRegistry, assert_formats: bool) -> Judge:
    """The engine itself, with exact options, over bytes."""
    structgen: Any = importlib.import_module("structgen")
    options = structgen.JsonOptions.exact(dialect=dialect, assert_formats=assert_formats)
    grammar = structgen.compile_json_schema(schema, _vocabulary(), options, registry=registry)

    def judge(text: str) -> bool:
        matcher = grammar.matcher()
        return bool(matcher.accept_bytes(text.encode()) and matcher.is_accepting())

    return judge


def files(suite: Path, dialect: str) -> Iterator[Path]:
    """The files of a dialect: the required ones, then ``optional/`` and ``optional/format/``."""
    folder = suite / "tests" / dialect
    for part in (folder, folder / "optional", folder / "optional" / "format"):
        yield from sorted(part.glob("*.json"))


def main(arguments: list[str]) -> int:
    """Print a line for each file, then the totals of the required and of the optional tests."""
    suite = Path(arguments[0]) if arguments else suite_folder()
    for dialect in arguments[1:] or sorted(path.name for path in (suite / "tests").iterdir()):
        totals = {"required": Result(), "optional": Result()}
        for path in files(suite, dialect):
            result = run_file(suite, path, compile_with_structgen)
            kind = "optional" if "optional" in path.parts else "required"
            totals[kind] += result
            print(f"{path.relative_to(suite / 'tests')}: {result}", *result.wrong, sep="\n    ")
        for kind, total in totals.items():
            print(f"{dialect}, {kind}: {total}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
