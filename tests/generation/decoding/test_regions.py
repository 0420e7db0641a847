"""Fields with a temperature and a budget of their own, over random schemas, counted again in the finished texts."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import accumulate
from typing import Annotated, Any

import jsonschema
import numpy as np
import pytest
from pydantic import BaseModel

import structgen
from structgen.core.constraints.structural_tags import StructuralTags
from structgen.core.json_schema.regions import region_at
from structgen.core.json_spans import matches, value_spans
from structgen.core.regions import Region
from structgen.errors import OptionsError, StructgenError
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from structgen.generation.results import GenerationResult
from structgen.generation.sampling import allowed_token_ids, to_numpy
from tests.many import cases

PIECES = ['": "', '",', "ab", "abc", "\\n", '{"', "[", "],", "12", ", ", "true", '"]', "é"]
TOKENS = [*(bytes([byte]) for byte in range(256)), *(piece.encode() for piece in PIECES), None]


class Bytes:
    eos_token_id, chat_template = len(TOKENS) - 1, None

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return list(text.encode())


def generator(seed: int) -> Generator:
    vocabulary = structgen.Vocabulary(TOKENS, eos_token_ids=len(TOKENS) - 1)
    return Generator(TinyModel(len(TOKENS), seed=seed, order=2, scale=1.5), Bytes(), vocabulary=vocabulary)


def schema(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    kind = rng.randrange(7 if depth < 2 else 5)
    if kind == 5:
        return {"type": "array", "items": schema(rng, depth + 1), "minItems": rng.randrange(2), "maxItems": 4}
    if kind == 6:
        names = rng.sample(["a", "b", "c"], rng.randint(1, 3))
        members = {name: schema(rng, depth + 1) for name in names}
        required = rng.sample(names, rng.randint(0, len(names)))
        return {"type": "object", "properties": members, "required": required, "additionalProperties": False}
    string: dict[str, Any] = {"type": "string", "minLength": rng.randrange(4)}
    scalars: list[dict[str, Any]] = [{"type": "integer"}, {"enum": ["abcabc", 12, None]}, {"type": ["boolean", "null"]}]
    return [string, string, *scalars][kind]


def token_counts(result: GenerationResult[Any]) -> dict[str, int]:
    """How many tokens hold a byte of each value."""
    texts = [TOKENS[token] or b"" for token in result.token_ids]
    ends = list(accumulate(map(len, texts)))
    spans = value_spans(b"".join(texts))
    return {
        each.pointer: sum(
            end > each.start and end - len(text) < each.end for end, text in zip(ends, texts, strict=True)
        )
        for each in spans
    }


# 2904: an item that might have come, and did not, had the id of the next one
@pytest.mark.parametrize("seed", [*cases(10_000, 60), 2904])
def test_no_value_has_more_tokens_than_its_limit_but_those_that_are_counted(seed: int) -> None:
    rng = random.Random(seed)
    source = {"type": "object", "properties": {"x": schema(rng), "y": schema(rng)}, "required": ["x", "y"],
              "additionalProperties": False}  # fmt: skip
    regions = {
        pointer: Region(rng.choice([None, 0.0, 2.0]), rng.choice([None, 1, 2, 5, 12]))
        for pointer in rng.sample(["/x", "/y", "/x/*", "/*", "/y/a", "", "/x/0"], rng.randint(1, 3))
    }
    try:
        result = generator(seed).generate(
            "x", source, regions=regions, temperature=rng.choice([0.0, 1.0]), seed=seed, schema_in_prompt=False,
            max_new_tokens=rng.choice([40, 120]), draft=rng.choice([None, "ngram"]),
        )  # fmt: skip
    except structgen.IncompleteOutputError:
        return
    except OptionsError as error:
        assert "did you mean" in str(error)
        return
    jsonschema.validate(result.value, source)
    counts = token_counts(result)
    limits = {
        pointer: next((region.max_tokens for pattern, region in regions.items() if matches(pattern, pointer)), None)
        for pointer in counts
    }
    exceeded = {pointer for pointer, limit in limits.items() if limit is not None and counts[pointer] > limit}
    assert len(exceeded) == result.stats.exceeded_regions


@pytest.mark.parametrize("limit", range(1, 12))
def test_a_text_is_closed_at_its_limit(limit: int) -> None:
    source = {"type": "object", "properties": {"why": {"type": "string"}, "n": {"type": "integer"}},
              "required": ["why", "n"], "additionalProperties": False}  # fmt: skip
    for seed in cases(20, 3):
        result = generator(seed).generate(
            "x", source, regions={"/why": Region(1.0, limit)}, seed=seed, schema_in_prompt=False, max_new_tokens=300
        )
        assert token_counts(result)["/why"] <= max(limit, 2) and result.stats.exceeded_regions <= (limit < 2)


def test_tokens_in_a_region_have_its_temperature() -> None:
    """Within: the likeliest token that is allowed; around: what is drawn without the region, up to its first token."""
    short = {"type": "string", "maxLength": 8}
    source = {"type": "object", "properties": {"a": short, "b": short},
              "required": ["a", "b"], "additionalProperties": False}  # fmt: skip
    varied = set()
    for seed in cases(60, 8):
        one = generator(3)
        options: dict[str, Any] = {"seed": seed, "temperature": 1.0, "schema_in_prompt": False}
        result = one.generate("x", source, regions={"/b": Region(temperature=0.0)}, **options)
        plain = one.generate("x", source, **options)
        start = next(each.start for each in value_spans(result.text.encode()) if each.pointer == "/b")
        matcher, offset, ids = structgen.compile_json_schema(source, one.vocabulary).matcher(), 0, list(b"x")
        mask = np.zeros((1, (len(TOKENS) + 31) // 32), np.int32)
        for index, token in enumerate(result.token_ids):
            if offset < start:
                assert token == plain.token_ids[index]
            else:
                matcher.fill_next_token_bitmask(mask, 0)
                allowed = allowed_token_ids(mask[0], len(TOKENS))
                if json_open(result.text.encode()[:offset]):
                    logits = to_numpy(one.model.prefill([ids])[0][0])
                    assert token == allowed[int(np.argmax(logits[allowed]))]
            matcher.accept_token(token)
            ids.append(token)
            offset += len(TOKENS[token] or b"")
        varied.add(json.loads(result.text)["a"])
    assert len(varied) > 2


def json_open(data: bytes) -> bool:
    """Whether /b is not over."""
    return not any(each.pointer == "/b" for each in value_spans(data))


class Written(BaseModel):
    why: Annotated[str, Region(max_tokens=4, temperature=2.0)]
    n: int


@pytest.mark.parametrize("limit", [2, 4])
def test_a_schema_and_a_type_say_what_the_option_says(limit: int) -> None:
    text: dict[str, Any] = {"type": "string"}
    source: dict[str, Any] = {"type": "object", "properties": {"why": text, "n": {"type": "integer"}}}
    source["required"] = ["why", "n"]
    terms: dict[str, Any] = {"max_tokens": limit, "temperature": 2.0}
    ways: list[tuple[Any, dict[str, Any]]] = [
        (source, {"regions": {"/why": Region(**terms)}}),
        ({**source, "properties": {**source["properties"], "why": {**text, "x-structgen": terms}}}, {}),
        ({**source, "properties": {"why": {"$ref": "#/$defs/w"}, "n": {"type": "integer"}},
          "$defs": {"w": {**text, "x-structgen": {**terms, "max_tokens": 99}}}},
         {"regions": {"/why": Region(max_tokens=limit)}}),
        *([(Written, {})] if limit == 4 else []),
    ]  # fmt: skip
    options: dict[str, Any] = {"seed": 3, "temperature": 1.0, "schema_in_prompt": False, "max_new_tokens": 80}
    texts = [generator(5).generate("x", each, **options, **more) for each, more in ways]
    assert len({result.text for result in texts}) == 1 and token_counts(texts[0])["/why"] <= limit


LIMITED: dict[str, Any] = {
    "type": "object", "properties": {"why": {"type": "string", "x-structgen": {"max_tokens": 3}}}, "required": ["why"],
}  # fmt: skip
PARTS: dict[str, Callable[[], Any]] = {
    "tools": lambda: structgen.tool_call("hermes", [{"name": "f", "parameters": LIMITED}]),
    "union": lambda: structgen.json_schema(LIMITED) | structgen.choice(["a"]),
    "concatenation": lambda: structgen.choice(["a"]) + structgen.json_schema(LIMITED),
    "lines": lambda: structgen.json_lines(LIMITED),
    "tags": lambda: structgen.tag_dispatch({("<f>", "</f>"): LIMITED}),
    "structural tags": lambda: StructuralTags({}, structgen.JsonOptions()).read(
        {"structures": [{"begin": "<f>", "schema": LIMITED, "end": "</f>"}], "triggers": ["<f>"]}
    ),
    "terminal": lambda: structgen.lark('start: "a" X\n%declare X', terminals={"X": structgen.json_schema(LIMITED)}),
    "%json": lambda: structgen.lark(f'start: "a" x\nx: %json {json.dumps(LIMITED)}'),
    "%json itself": lambda: structgen.lark(f"start: %json {json.dumps(LIMITED['properties']['why'])}"),
    "thoughts": lambda: structgen.think(LIMITED),
}


@pytest.mark.parametrize("name", PARTS)
def test_regions_of_json_within_other_text_are_refused(name: str) -> None:
    """What would not be kept is not written as if it were."""
    one, constraint = generator(1), PARTS[name]()
    calls: list[Any] = [
        lambda: one.generate("x", constraint, max_new_tokens=60),
        lambda: one.batch(["x"], constraint, max_new_tokens=60),
        *who_keeps_no_regions(one, constraint),
    ]
    for call in calls:
        with pytest.raises(StructgenError, match=r"max_tokens.*temperature"):
            call()


def who_keeps_no_regions(one: Generator, constraint: Any) -> list[Any]:
    return [
        lambda: one.search("x", constraint, max_new_tokens=60),
        lambda: one.search("x", constraint, max_new_tokens=60, method="arithmetic"),
        lambda: one.rank("x", constraint, 2, max_new_tokens=60),
        lambda: one.distortion("x", constraint, n=2, max_new_tokens=60),
        lambda: one.sample("x", constraint, 1, max_new_tokens=60),
    ]


@pytest.mark.parametrize("source", [LIMITED, Written])
def test_searches_refuse_the_regions_of_a_schema(source: Any) -> None:
    for call in who_keeps_no_regions(generator(1), source):
        with pytest.raises(structgen.ConstraintError, match="cannot be kept here"):
            call()


def test_what_looks_like_a_region_and_is_data_is_none() -> None:
    """A value that a schema lists is no schema."""
    value = {"x-structgen": {"max_tokens": 3}}
    assert generator(1).generate("x", {"enum": [value]}, schema_in_prompt=False).value == value
    assert generator(1).search("x", {"const": value}, schema_in_prompt=False).values == [value]
    named = {"type": "object", "properties": {"default": LIMITED}}
    with pytest.raises(structgen.ConstraintError, match="cannot be kept here"):
        generator(1).search("x", named)


@pytest.mark.parametrize("call", ["search", "rank", "distortion"])
def test_searches_keep_no_budget_of_thinking(call: str) -> None:
    thoughtful = structgen.think(structgen.choice(["a"]), max_think_tokens=2)
    options: dict[str, Any] = {"k": 2} if call == "rank" else {}
    with pytest.raises(structgen.GenerationError, match="max_think_tokens"):
        getattr(generator(1), call)("x", thoughtful, max_new_tokens=60, **options)


@pytest.mark.parametrize(
    "regions", [{"a": Region()}, {"/a": 3}, [("/a", Region())], {"/labl": Region()}, {1: Region()}]
)
def test_regions_that_cannot_be(regions: Any) -> None:
    source = {"type": "object", "properties": {"label": {"type": "string"}}}
    with pytest.raises(OptionsError):
        generator(1).generate("x", source, regions=regions)
    with pytest.raises(OptionsError):
        generator(1).generate("x", structgen.choice(["a"]), regions={"": Region()})
    wrong: list[dict[str, Any]] = [{"temperature": -1}, {"temperature": "hot"}, {"max_tokens": 0}, {"max_tokens": True}]
    for options in wrong:
        with pytest.raises(OptionsError):
            Region(**options)


def test_references_of_all_kinds_and_names_that_are_nearly_numbers() -> None:
    hot = {"type": "string", "x-structgen": {"temperature": 0.5}}
    places = {
        "by pointer": "#/$defs/a%20b",
        "by anchor": "#here",
        "by its own address": "https://example.com/c",
        "within another": "https://example.com/d#deep",
        "elsewhere": "https://example.com/none",
    }
    definitions = {
        "a b": hot,
        "b": {**hot, "$anchor": "here"},
        "c": {**hot, "$id": "https://example.com/c"},
        "d": {"$id": "https://example.com/d", "$defs": {"$ref": {**hot, "$anchor": "deep"}, "e": {"$anchor": "here"}}},
    }
    members = {name: {"$ref": reference} for name, reference in places.items()} | {"²": hot}
    source = {"$defs": definitions, "properties": members, "x-structgen": {"max_tokens": 90}}
    assert region_at(source, "") == Region(max_tokens=90)
    for name in members:
        assert region_at(source, f"/{name}") == (None if name == "elsewhere" else Region(temperature=0.5)), name
    assert region_at(source, "/" + "9" * 5_000) is None
