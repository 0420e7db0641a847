"""Random walks of matchers over random schemas: masks, forks, rollbacks and completions agree with each other.

The oracle of what comes out is `jsonschema`.
"""

from __future__ import annotations

import json
import os
import random
import re
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from structgen.core.engines.json.compiled import compile_json_schema
from structgen.core.engines.json.matcher import JsonMatcher
from structgen.core.engines.laws import check_laws, check_state, mask_of
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, SchemaTooComplexError, UnsatisfiableSchemaError, UnsupportedSchemaError
from structgen.options import JsonOptions
from tests.schemas_strategy import NAMES, SCALARS, options, schemas

STEPS = 12
# Always the same examples, so that a run means something; look for new ones with other settings.
RUN = settings(
    max_examples=80,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
MERGED = [b'":', b'"}', b', "', b'","', b"true", b"00", b"\\u", b'{"', b"[[", b"]}", b'": ', b" 1", "é".encode(), b"ab"]
MERGED += [b'"a', b'a":', b"\\u00", b"\n  ", b"}}", b"1,", b"e-", b"\xf0\x9f", b"\\ud83d", b'","a', b'"}}', b'":"']


@cache
def vocabulary() -> Vocabulary:
    """Every byte, what often stands together, two ids that spell the same, and the end of sequence."""
    tokens = [bytes([byte]) for byte in range(256)] + MERGED + [b'"', b"a"]
    return Vocabulary([*tokens, None], eos_token_ids=len(tokens))


def exact_number(text: str) -> Any:
    """The number that a JSON text spells, without rounding."""
    value = Fraction(text)
    return int(value) if value.denominator == 1 else float(value) if float(value) == value else value


def is_comparable(text: str) -> bool:
    """Whether the oracle can judge a text: no exponents beyond float; Python's ``$`` also matches before a newline."""
    return not re.search(r"[0-9][eE][+-]?0*[0-9]{3}|(\\n|\\u000[aA])\"", text)


def parsed(text: str) -> Any:
    """The value of a JSON text, numbers exact, no key repeated."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), f"repeated key in {text!r}"
        return dict(pairs)

    return json.loads(text, object_pairs_hook=members, parse_float=exact_number)


def validator(schema: Any) -> jsonschema.Draft202012Validator:
    """The oracle, formats included."""
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker(["ipv4", "uuid"]))


def check_valid(schema: Any, text: bytes) -> None:
    """The text is JSON without repeated keys and satisfies the schema."""
    decoded = text.decode()
    if is_comparable(decoded):
        validator(schema).validate(parsed(decoded))


def start(schema: Any, chosen: JsonOptions) -> JsonMatcher:
    """A matcher, or give up on a schema that is not covered or has no value."""
    try:
        return compile_json_schema(schema, vocabulary(), chosen).matcher()
    except (UnsatisfiableSchemaError, UnsupportedSchemaError, SchemaTooComplexError):
        assume(False)
        raise


def check_completion(matcher: JsonMatcher, schema: Any, text: bytes) -> bytes:
    """The completion completes, is valid, and leaves the matcher as it was. The completion."""
    before = matcher.configurations()[0].copy()
    completion = matcher.shortest_completion()
    assert (matcher.configurations()[0] == before).all()
    twin = matcher.fork()
    assert twin.accept_bytes(completion) and twin.is_accepting()
    check_valid(schema, text + completion)
    return completion


def next_token(dice: random.Random, allowed: list[int], completion: bytes) -> int:
    """Often a token that makes progress, else any."""
    if completion and dice.random() < 0.5:
        return dice.choice([token for token in allowed if completion.startswith(vocabulary().tokens[token])])
    structural = [token for token in allowed if vocabulary().tokens[token][:1] in b'"\\,]}:u']
    return dice.choice(structural if structural and dice.random() < 0.4 else allowed)


@pytest.mark.full
@RUN
@given(schemas(), options(), st.integers(0, 2**32))
def test_walks(schema: Any, chosen: JsonOptions, seed: int) -> None:
    """Whatever is written is JSON without repeated keys and satisfies the schema."""

    def valid(text: bytes) -> bool:
        check_valid(schema, text)
        return True

    check_laws(start(schema, chosen).grammar, valid=valid, walks=1, steps=STEPS, likely=b'"\\,]}:u', seed=seed)


@pytest.mark.full
@RUN
@given(schemas(), options(), st.integers(0, 2**32))
def test_long_walks(schema: Any, chosen: JsonOptions, seed: int) -> None:
    """Completions only, over more tokens."""
    matcher = start(schema, chosen)
    dice = random.Random(seed)
    text = b""
    for _ in range(4 * STEPS):
        completion = check_completion(matcher, schema, text)
        mask = mask_of(matcher)
        allowed = [token for token in np.flatnonzero(mask).tolist() if vocabulary().tokens[token]]
        if not allowed:
            assert matcher.is_accepting()
            break
        token = next_token(dice, allowed, completion)
        assert matcher.accept_token(token)
        text += vocabulary().tokens[token]


def mutated(value: Any, dice: random.Random) -> Any:
    """The value with one part changed."""
    if isinstance(value, dict) and value and dice.random() < 0.8:
        changed = dict(dice.sample(list(value.items()), len(value)))
        key = dice.choice(list(changed))
        if dice.random() < 0.3:
            changed[dice.choice([*NAMES, "abc", "12", "xxxy"])] = changed[key]
        elif dice.random() < 0.3:
            del changed[key]
        else:
            changed[key] = mutated(changed[key], dice)
        return changed
    if isinstance(value, list) and value and dice.random() < 0.8:
        place = dice.randrange(len(value))
        new = dice.choice([[], [value[place]] * 2, [mutated(value[place], dice)], [mutated(value[place], dice)]])
        return [*value[:place], *new, *value[place + 1 :]]
    if isinstance(value, (int, float)) and dice.random() < 0.5:
        return value + dice.choice([1, -1, 0.5, 10])
    if isinstance(value, str) and dice.random() < 0.5:
        return dice.choice([value[1:], value + "a", value + value, value + "é"])
    return dice.choice([*SCALARS, [], {}, [0], {"a": 0}])


@pytest.mark.full
@RUN
@given(schemas(), st.integers(0, 2**32))
def test_exact_options_accept_what_is_valid(schema: Any, seed: int) -> None:
    """Documents near the schema's border: one that a walk gives, changed a little at a time."""
    matcher = start(schema, JsonOptions.exact())
    dice = random.Random(seed)
    text = b""
    for _ in range(STEPS):
        completion = matcher.shortest_completion()
        allowed = [token for token in np.flatnonzero(mask_of(matcher)).tolist() if vocabulary().tokens[token]]
        if not allowed:
            break
        token = next_token(dice, allowed, completion)
        assert matcher.accept_token(token)
        text += vocabulary().tokens[token]
    document = (text + matcher.shortest_completion()).decode()
    assume(is_comparable(document))
    value = parsed(document)
    for _ in range(8):
        if any(isinstance(part, Fraction) for part in leaves(value)):
            break
        document = json.dumps(value, ensure_ascii=dice.random() < 0.5)
        reader = start(schema, JsonOptions.exact())
        accepted = reader.accept_bytes(document.encode()) and reader.is_accepting()
        if is_comparable(document):
            assert accepted == validator(schema).is_valid(value), document
        value = mutated(value, dice)


def leaves(value: Any) -> list[Any]:
    """The scalars in a value."""
    if isinstance(value, (dict, list)):
        parts = value.values() if isinstance(value, dict) else value
        return [leaf for part in parts for leaf in leaves(part)]
    return [value]


def test_real_schemas() -> None:
    """Completions at random cuts of real documents."""
    dice = random.Random(1)
    folder = Path(os.environ.get("STRUCTGEN_DATA", Path(__file__).parents[5] / "shared" / "data")) / "maskbench"
    files = sorted(folder.glob("*.json"))
    if not files:
        pytest.skip(f"there are no schemas in {folder}: set STRUCTGEN_DATA to a folder with maskbench")
    for file in dice.sample(files, 30):
        case = json.loads(file.read_text(encoding="utf-8"))
        try:
            grammar = compile_json_schema(case["schema"], vocabulary(), JsonOptions(whitespace="any", key_order="any"))
        except ConstraintError:
            continue
        for document in (json.dumps(test["data"]).encode() for test in case["tests"] if test["valid"]):
            matcher = grammar.matcher()
            for cut in sorted(dice.sample(range(len(document)), min(10, len(document)))):
                matcher.reset()
                if matcher.accept_bytes(document[:cut]):
                    completion = matcher.shortest_completion()
                    assert matcher.accept_bytes(completion) and matcher.is_accepting()


NULL = {"type": "null"}
ANY_TWO_LETTERS = {"type": "object", "patternProperties": {"^[a-z]{2}$": NULL}, "additionalProperties": False}
LATE = {"type": "object", "properties": {"a": NULL, "b": NULL, "c": NULL}, "additionalProperties": False}


def test_mask_of_a_declared_key_that_no_class_begins() -> None:
    digits = {"patternProperties": {"^[0-9]{2}": NULL}, "additionalProperties": False}
    matcher = start({"type": "object", "properties": {"aab": NULL}, **digits}, JsonOptions())
    assert matcher.accept_bytes(b'{"a')
    check_state(matcher)


def test_a_key_may_not_be_skipped_that_later_ones_need() -> None:
    schema = {**LATE, "dependentRequired": {"c": ["a"]}, "minProperties": 2}
    matcher = start(schema, JsonOptions())
    assert not matcher.accept_bytes(b'{"b":')


def test_more_keys_than_there_are() -> None:
    with pytest.raises(UnsatisfiableSchemaError):
        compile_json_schema({**ANY_TWO_LETTERS, "minProperties": 677}, vocabulary())


def test_a_required_key_that_cannot_be_spelled() -> None:
    with pytest.raises(UnsatisfiableSchemaError):
        compile_json_schema({"type": "object", "required": ["\ud800"]}, vocabulary())


def test_escapes_that_nothing_completes() -> None:
    """With minimal escapes only control characters have ``\\u``, in keys of open objects too."""
    matcher = compile_json_schema({"type": "object"}, vocabulary()).matcher()
    assert matcher.accept_bytes(b'{"')
    assert not matcher.fork().accept_bytes(b"\\uc") and not matcher.fork().accept_bytes(b"\\u1")
    assert matcher.accept_bytes(b"\\u001f") and matcher.accept_bytes(matcher.shortest_completion())
