"""Members called like keywords, and values that look like schemas: no walk over a schema takes them for keywords."""

from __future__ import annotations

import random
from typing import Any

import jsonschema
import pytest

import structgen
from structgen.core.json_schema.keywords_data import with_sources, without_sources, written_out
from structgen.core.json_schema.regions import has_regions
from structgen.errors import StructgenError
from tests.many import cases

NAMES = [
    *("properties", "items", "$ref", "type", "enum", "const", "default", "required", "additionalProperties"),
    *("patternProperties", "x-structgen", "$defs", "title", "description", "$id", "$anchor", "anyOf", "not"),
    *("pattern", "examples"),
]
DEFINED = ["properties", "enum", "$ref", "default"]
HIDDEN: Any = {"x-structgen": {"oneOf": "names", "max_tokens": 3}, "$ref": "#/none", "$id": "https://example.com/none"}


def value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(6)
    if depth < 2 and kind < 2:
        return {rng.choice(NAMES): value(rng, depth + 1) for _ in range(rng.randint(1, 2))}
    return rng.choice(["names", "#/none", 1, True, None, [], HIDDEN])


def schema(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(8)
    if depth < 3 and kind < 4:
        names = rng.sample(NAMES, 3)
        members = {name: schema(rng, depth + 1) for name in names}
        return {"type": "object", "properties": members, "required": names[:1], "default": value(rng)}
    if depth < 3 and kind == 4:
        return {"type": "array", "items": schema(rng, depth + 1), "maxItems": 2, "examples": [value(rng)]}
    if depth and kind == 5:
        return {"$ref": f"#/$defs/{rng.choice(DEFINED)}"}
    return {"enum": [value(rng), value(rng)]} if kind % 2 else {"const": value(rng), "default": HIDDEN}


@pytest.mark.parametrize("seed", cases(300, 12))
def test_walks(seed: int) -> None:
    rng = random.Random(seed)
    whole = {**schema(rng), "$defs": {name: schema(rng, 3 if name == "enum" else 2) for name in DEFINED}}
    assert with_sources(whole, {"names": ["a"]}) == written_out(whole) == without_sources(whole) == whole
    assert not has_regions(whole)
    oracle = jsonschema.Draft202012Validator(whole)
    try:
        constraint = structgen.json_schema(whole)
        written = list(structgen.examples(constraint, 4, seed=seed))
    except StructgenError as error:
        assert isinstance(error, structgen.UnsatisfiableSchemaError | structgen.UnresolvableReferenceError), error
        return
    assert constraint.schema == whole
    for example in written:
        assert oracle.is_valid(example.value), example.text
    for target in ("openai", "gemini", "anthropic"):
        lowered = structgen.lower(whole, target)
        assert lowered.beyond == (), lowered.beyond
        for example in written:
            assert oracle.is_valid(lowered.back(lowered.forth(example.value))), example.text


@pytest.mark.parametrize("seed", cases(50, 5))
def test_what_is_said_in_the_place_of_a_keyword_is_read(seed: int) -> None:
    rng = random.Random(seed)
    said: Any = {"type": "string", "x-structgen": {"oneOf": "names", "max_tokens": 3}}
    for name in rng.sample(NAMES, 3):
        said = {"type": "object", "properties": {name: said, "other": {"enum": [HIDDEN]}}, "default": HIDDEN}
    assert has_regions(said)
    filled = str(with_sources(said, {"names": ["a"]}))
    assert filled.count("'oneOf': 'names'") == str(said).count("'oneOf': 'names'") - 1
