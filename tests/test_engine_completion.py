"""Random walks of matchers over random schemas: masks, forks, rollbacks and completions agree with each other.

The oracle of what comes out is `jsonschema`.
"""

from __future__ import annotations

import json
import random
import re
from fractions import Fraction
from functools import cache
from typing import Any

import jsonschema
import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from structgen.bitmask import allocate_token_bitmask
from structgen.compiled import compile_json_schema
from structgen.errors import SchemaTooComplexError, UnsatisfiableSchemaError, UnsupportedSchemaError
from structgen.matcher import GrammarMatcher
from structgen.options import JsonOptions
from structgen.vocabulary.vocabulary import Vocabulary
from tests.schemas_strategy import options, schemas

STEPS = 12
MERGED = [b'":', b'"}', b', "', b'","', b"true", b"00", b"\\u", b'{"', b"[[", b"]}", b'": ', b" 1", "é".encode(), b"ab"]
MERGED += [b'"a', b'a":', b"\\u00", b"\n  ", b"}}", b"1,", b"e-", b"\xf0\x9f", b"\\ud83d", b'","a', b'"}}', b'":"']


@cache
def vocabulary() -> Vocabulary:
    """Every byte, what often stands together, two ids that spell the same, and the end of sequence."""
    tokens = [bytes([byte]) for byte in range(256)] + MERGED + [b'"', b"a"]
    return Vocabulary([*tokens, None], eos_token_ids=len(tokens))


def mask_of(matcher: GrammarMatcher) -> npt.NDArray[np.bool_]:
    """The mask as bool[V]."""
    bitmask = allocate_token_bitmask(1, vocabulary().size)
    matcher.fill_next_token_bitmask(bitmask)
    return np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")[: vocabulary().size].astype(bool)


def exact_number(text: str) -> Any:
    """The number that a JSON text spells, without rounding."""
    value = Fraction(text)
    return int(value) if value.denominator == 1 else float(value) if float(value) == value else value


def is_comparable(text: str) -> bool:
    """Whether the oracle can judge a text: no endless exponents; Python's ``$`` also matches before a last newline."""
    return not re.search(r"[0-9][eE][+-]?0*[0-9]{4}", text) and "\\n" not in text and "000a" not in text.lower()


def check_valid(schema: Any, text: bytes) -> None:
    """The text is JSON without repeated keys and satisfies the schema."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), f"repeated key in {text!r}"
        return dict(pairs)

    decoded = text.decode()
    if is_comparable(decoded):
        value = json.loads(decoded, object_pairs_hook=members, parse_float=exact_number)
        checker = jsonschema.FormatChecker(["ipv4", "uuid"])  # Python has no date in the year 0
        jsonschema.Draft202012Validator(schema, format_checker=checker).validate(value)


def start(schema: Any, chosen: JsonOptions) -> GrammarMatcher:
    """A matcher, or give up on a schema that is not covered or has no value."""
    try:
        return compile_json_schema(schema, vocabulary(), chosen).matcher()
    except (UnsatisfiableSchemaError, UnsupportedSchemaError, SchemaTooComplexError):
        assume(False)
        raise


def check_mask(matcher: GrammarMatcher) -> list[int]:
    """A mask bit is set exactly if the token is accepted. The allowed tokens."""
    mask = mask_of(matcher)
    accepted = np.array([matcher.fork().accept_token(token) for token in range(vocabulary().size)])
    wrong = np.flatnonzero(mask != accepted).tolist()
    assert not wrong, [(vocabulary().tokens[token], bool(mask[token])) for token in wrong]
    assert mask.any(), "a live state allows no token"
    assert matcher.is_accepting() == mask[vocabulary().eos_token_ids[0]]
    return [token for token in np.flatnonzero(mask).tolist() if vocabulary().tokens[token]]


def check_completion(matcher: GrammarMatcher, schema: Any, text: bytes) -> bytes:
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
        ahead = [token for token in allowed if completion.startswith(vocabulary().tokens[token])]
        return dice.choice(ahead)
    structural = [token for token in allowed if vocabulary().tokens[token][:1] in b'"\\,]}:u']
    return dice.choice(structural if structural and dice.random() < 0.4 else allowed)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(schemas(), options(), st.integers(0, 2**32))
def test_walks(schema: Any, chosen: JsonOptions, seed: int) -> None:
    matcher = start(schema, chosen)
    dice = random.Random(seed)
    text, masks = b"", []
    for _ in range(STEPS):
        allowed = check_mask(matcher)
        completion = check_completion(matcher, schema, text)
        if not allowed:
            break
        masks.append(mask_of(matcher))
        token = next_token(dice, allowed, completion)
        twin = matcher.fork()
        assert matcher.accept_token(token)
        assert (mask_of(twin) == masks[-1]).all(), "a step of one matcher changed its fork"
        text += vocabulary().tokens[token]
    for steps in range(len(masks)):
        matcher.rollback()
        assert (mask_of(matcher) == masks[-1 - steps]).all(), f"another mask after {steps + 1} steps back"


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
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
