"""The official suite in other words: respelled instances are judged alike, and what masks allow to end validates."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import jsonschema
import pytest

from structgen import JsonOptions, allocate_token_bitmask, compile_json_schema
from structgen.errors import (
    PatternError,
    SchemaTooComplexError,
    UnresolvableReferenceError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from tests.suite import official
from tests.suite.respell import respelled

SUITE = official.suite_folder()
FILES = [
    path
    for dialect in sorted(path.name for path in (SUITE / "tests").iterdir())
    for path in official.files(SUITE, dialect)
    if "optional" not in path.parts
]
VALIDATORS = {"draft7": jsonschema.Draft7Validator, "draft2020-12": jsonschema.Draft202012Validator}


def name(path: Path) -> str:
    return path.relative_to(SUITE / "tests").with_suffix("").as_posix()


def grammars(path: Path) -> Any:
    """(group, grammar or None where no value is valid) of the groups that compile."""
    dialect = path.relative_to(SUITE / "tests").parts[0]
    options = JsonOptions.exact(dialect=dialect, assert_formats=False)
    for group in json.loads(path.read_text(encoding="utf-8")):
        registry = official.remotes(SUITE, dialect)
        try:
            yield group, compile_json_schema(group["schema"], official._vocabulary(), options, registry=registry)
        except UnsatisfiableSchemaError:
            yield group, None
        except (UnsupportedSchemaError, SchemaTooComplexError, UnresolvableReferenceError, PatternError):
            continue


def test_the_spellings_themselves() -> None:
    random = Random(1)
    values = [
        0,
        -0.0,
        1,
        -120,
        1.5,
        1e30,
        0.001,
        123456789012345,
        "",
        'a"\\/\n\x01é😀',
        [1, [], {}],
        {"a": 1, "": 2},
    ]
    for value in values:
        for _ in range(20):
            assert json.loads(respelled(value, random)) == value


@pytest.mark.parametrize("path", FILES, ids=name)
def test_respelled(path: Path) -> None:
    """Shuffled members, whitespace, escapes, zeros and exponents change no verdict."""
    wrong = []
    for group, grammar in grammars(path):
        for test in group["tests"]:
            random = Random(f"{group['description']} {test['description']}")
            for _ in range(2):
                text = respelled(test["data"], random)
                matcher = grammar.matcher() if grammar else None
                accepted = matcher is not None and matcher.accept_bytes(text.encode()) and matcher.is_accepting()
                if accepted != test["valid"]:
                    wrong.append((group["description"], test["description"], text, test["valid"]))
    assert not wrong


@pytest.mark.parametrize("path", FILES, ids=name)
def test_bytes_of_death(path: Path) -> None:
    """An invalid instance lives exactly as long as there is a valid text that begins like it."""
    dialect = path.relative_to(SUITE / "tests").parts[0]
    for group, grammar in grammars(path):
        if grammar is None:
            continue
        default = VALIDATORS[dialect]
        validator = jsonschema.validators.validator_for(group["schema"], default=default)(
            group["schema"], registry=official.remotes(SUITE, dialect)
        )
        for test in group["tests"][:4]:
            data = json.dumps(test["data"], ensure_ascii=False).encode()
            matcher = grammar.matcher()
            alive = next((end for end in range(len(data)) if not matcher.accept_bytes(data[end : end + 1])), len(data))
            assert not test["valid"] or (alive == len(data) and matcher.is_accepting())
            whole = data[:alive] + matcher.shortest_completion()
            if not _beyond_the_oracle(group["schema"]):
                assert validator.is_valid(json.loads(whole)), whole


@pytest.mark.parametrize("path", FILES, ids=name)
def test_random_walks(path: Path) -> None:
    """From masks alone: every state has a way on, and what ends where masks allow it validates."""
    dialect = path.relative_to(SUITE / "tests").parts[0]
    bitmask = allocate_token_bitmask(1, 257)
    for group, grammar in grammars(path):
        if grammar is None:
            continue
        random = Random(group["description"])
        matcher, text = grammar.matcher(), b""
        for _ in range(40):
            matcher.fill_next_token_bitmask(bitmask)
            allowed = [t for t in range(257) if bitmask[0, t // 32] >> (t % 32) & 1]
            assert allowed, text
            likely = [t for t in allowed if t == 256 or chr(t) in '"{}[],:truefalsn01-ab']
            token = random.choice(likely or allowed)
            if token == 256:
                break
            assert matcher.accept_token(token), text
            text += bytes([token])
        whole = text + matcher.shortest_completion()
        if not _beyond_the_oracle(group["schema"]):
            validator = jsonschema.validators.validator_for(group["schema"], default=VALIDATORS[dialect])
            registry = official.remotes(SUITE, dialect)
            assert validator(group["schema"], registry=registry).is_valid(json.loads(whole)), whole


def _beyond_the_oracle(schema: Any) -> bool:
    """python-jsonschema divides floats, has no \\p in its patterns, and keeps to one vocabulary."""
    text = json.dumps(schema)
    return any(word in text for word in ("\\\\p{", "multipleOf", "metaschema-no-validation", '"dependencies"'))
