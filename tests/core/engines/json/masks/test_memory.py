"""Masks that are kept against masks that are made: in every state that walks come to, those of a matcher with memory
equal those of one without. Small schemas, whose states recur behind other containers, counts and keys."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import structgen
from structgen.core.engines.json.compiled import JsonGrammar, compile_json_schema
from structgen.core.engines.json.masks import bitmask_rows
from structgen.core.engines.json.matcher import JsonMatcher
from structgen.core.kernels.json import layout
from structgen.errors import SchemaTooComplexError, UnsatisfiableSchemaError, UnsupportedSchemaError
from structgen.options import JsonOptions
from tests.concurrency import together
from tests.core.kernels.test_json_machine import CASES, TOKENS, VOCABULARY
from tests.schemas_strategy import NAMES, NONE, arrays, objects, options, scalars, schemas

LONG = [
    b"}}}}",
    b"]]",
    b"}]",
    b"]}",
    b'"}}',
    b'"]',
    b"},{",
    b"],[",
    b'","',
    b'"],"',
    b"1]",
    b"1}",
    b"1,1",
    b"null,",
    b"}\n}",
]
WORDS = structgen.Vocabulary([*TOKENS, *LONG, None, b""], eos_token_ids=[len(TOKENS) + len(LONG)])
RUN = settings(
    max_examples=120,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
# What keys of the memory must tell apart: counts, keys seen, keys required by others, undeclared keys, the empty key,
# items that must differ or be equal, containers in containers, existentials, escapes, lengths, numbers.
HARD: list[Any] = [
    {"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 3, "items": {"type": "integer"}}},
    {"type": "array", "prefixItems": [{"const": 1}, {"const": "a"}], "items": {"type": "boolean"}, "minItems": 4},
    {"type": "object", "minProperties": 2, "maxProperties": 3, "additionalProperties": {"type": "integer"}},
    {"type": "object", "properties": {"": {"const": 1}, "a": {}}, "additionalProperties": {"type": "boolean"}},
    {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {"type": "string"}}},
    {"type": "object", "propertyNames": {"enum": ["a", "b", "ab"]}, "additionalProperties": {"$ref": "#"}},
    {"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}}, "dependentRequired": {"a": ["b"]}},
    {"properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}, "c": {}}, "required": ["c"], "maxProperties": 2},
    {"type": "array", "uniqueItems": True, "items": {"type": ["integer", "array", "null"], "items": {"$ref": "#"}}},
    {"type": "array", "items": {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2, "1", None]}}},
    {"type": "array", "contains": {"const": 1}, "minContains": 2, "items": {"type": ["integer", "array"]}},
    {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "array", "items": {"maxLength": 2}}]},
    {"type": "array", "items": {"type": "string", "pattern": "^[a-c]{2,4}$", "maxLength": 3}},
    {"type": "array", "items": {"enum": ["a", "ab", "é", 1, 10, None]}},
    {"type": "array", "items": {"type": "integer", "minimum": -3, "maximum": 1000, "multipleOf": 5}},
    {"patternProperties": {"^a": {"type": "integer"}}, "minProperties": 3, "not": {"required": ["b"]}},
    {"type": "object", "not": {"additionalProperties": {"type": "integer"}}, "maxProperties": 3},
]
SPELLINGS = [
    JsonOptions(),
    JsonOptions.exact(),
    JsonOptions(whitespace=2),
    JsonOptions(whitespace="compact", key_order="any"),
    JsonOptions(whitespace="any", max_whitespace_run=2, string_escapes="any", number_spellings="any"),
]


def mask(matcher: JsonMatcher) -> npt.NDArray[np.int32]:
    row = structgen.allocate_token_bitmask(1, matcher.grammar.vocabulary.size)
    matcher.fill_next_token_bitmask(row)
    return row[0]


def check_walks(grammar: JsonGrammar, dice: random.Random, walks: int, steps: int) -> int:
    """Compare every mask of random walks, some of whose steps are undone. How many were compared."""
    compared, tokens = 0, grammar.vocabulary.tokens
    for _ in range(walks):
        kept, made = grammar.matcher(), JsonMatcher(grammar, remembers=False)
        for _ in range(steps):
            found, wanted = mask(kept), mask(made)
            assert (found == wanted).all(), (tokens, made.configurations())
            compared += 1
            bits = np.flatnonzero(np.unpackbits(found.view(np.uint8), bitorder="little")).tolist()
            allowed = [token for token in bits if tokens[token]]
            if not allowed:
                break
            likely = [token for token in allowed if tokens[token][:1] in b'{}[]",:01']
            token = dice.choice(likely if likely and dice.random() < 0.8 else allowed)
            assert kept.accept_token(token) and made.accept_token(token)
            if dice.random() < 0.1:
                kept.rollback(1)
                made.rollback(1)
    return compared


@pytest.mark.first_case
@pytest.mark.parametrize("spelling", SPELLINGS, ids=range(len(SPELLINGS)))
@pytest.mark.parametrize("number", range(len(HARD) + len(CASES)))
def test_kept_masks_are_those_that_are_made(number: int, spelling: JsonOptions) -> None:
    schema = [*HARD, *(schema for schema, _ in CASES)][number]
    grammar = compile_json_schema(schema, WORDS, spelling)
    assert check_walks(grammar, random.Random(number), walks=12, steps=25) > 10


@pytest.mark.full
@RUN
@given(
    st.one_of(
        schemas(),
        objects(objects(scalars())).map(lambda one: {**one, "$defs": {"none": NONE}}),
        arrays(arrays(objects(scalars()))).map(lambda one: {**one, "$defs": {"none": NONE}}),
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True).map(
            lambda names: {
                "properties": {name: {"$ref": "#"} for name in names},
                "required": names[:1],
                "uniqueItems": True,
            }
        ),
    ),
    options(),
    st.integers(0, 1 << 30),
)
def test_of_random_schemas(schema: Any, spelling: JsonOptions, seed: int) -> None:
    try:
        grammar = compile_json_schema(schema, WORDS, spelling)
    except (SchemaTooComplexError, UnsatisfiableSchemaError, UnsupportedSchemaError):
        return
    check_walks(grammar, random.Random(seed), walks=6, steps=20)


def written(grammar: JsonGrammar, text: bytes) -> list[bool]:
    """Whether a mask was written to the memory, before each byte of a text."""
    matcher, memory, found = grammar.matcher(), grammar.rows.memory, []
    for byte in text:
        before = memory[layout.M_HEAD]
        mask(matcher)
        found.append(bool(memory[layout.M_HEAD] != before))
        assert matcher.accept_token(byte)
    return found


def test_states_that_come_again_are_found() -> None:
    schema = {"type": "array", "items": {"properties": {"a": {"type": "integer"}}, "additionalProperties": False}}
    grammar = compile_json_schema(schema, VOCABULARY, JsonOptions.exact())
    text = b'[{"a":1},{"a":22},{"a":3}]'
    first = written(grammar, text)
    assert all(first[:8]) and not any(first[19:])  # the third item is as the second, but for its count
    assert not any(written(grammar, text))  # another matcher of the grammar
    assert all(written(compile_json_schema(schema, VOCABULARY, JsonOptions.exact()), text)[:8])  # another grammar


def test_what_depends_on_the_text_is_not_kept() -> None:
    distinct = {"type": "array", "uniqueItems": True, "items": {"type": "integer"}}
    assert not any(written(compile_json_schema(distinct, VOCABULARY, JsonOptions()), b"[1, 2, 3")[1:])
    others = compile_json_schema({"additionalProperties": {"const": 1}}, VOCABULARY, JsonOptions(whitespace="compact"))
    text = b'{"a":1,"b":1'
    assert written(others, text)[2] and not any(written(others, text)[8:10])  # a key must not be "a" again


def small_memory(monkeypatch: pytest.MonkeyPatch, words: int, name: bytes) -> structgen.Vocabulary:
    """A vocabulary, used by nothing else, whose memory has so many words for masks."""
    monkeypatch.setattr(bitmask_rows, "MEMORY_BYTES", 8 * (layout.M_RING + words))
    return structgen.Vocabulary([*TOKENS, *LONG, name, None], eos_token_ids=[len(TOKENS) + len(LONG) + 1])


@pytest.mark.parametrize("words", [40, 300, 2000])
def test_a_small_memory_forgets(monkeypatch: pytest.MonkeyPatch, words: int) -> None:
    vocabulary = small_memory(monkeypatch, words, b"small %d" % words)
    for number, schema in enumerate(HARD):
        check_walks(compile_json_schema(schema, vocabulary, JsonOptions.exact()), random.Random(number), 10, 25)


def test_a_memory_that_is_locked_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar = compile_json_schema(HARD[0], small_memory(monkeypatch, 2000, b"locked"), JsonOptions())
    grammar.rows.memory[layout.M_LOCK] = 1  # as if another thread were in it
    before = grammar.rows.memory.copy()
    check_walks(grammar, random.Random(0), 5, 20)
    assert (grammar.rows.memory == before).all()


def test_threads_share_a_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = small_memory(monkeypatch, 3000, b"threads")
    grammars = [compile_json_schema(schema, vocabulary, JsonOptions.exact()) for schema in HARD]
    done = []

    def work(number: int) -> None:
        for turn in range(3):
            for place in range(len(grammars)):
                check_walks(grammars[(place + number) % len(grammars)], random.Random(number + 10 * turn), 2, 20)
        done.append(number)

    together(work)
    assert sorted(done) == [0, 1, 2, 3]  # and none has failed
