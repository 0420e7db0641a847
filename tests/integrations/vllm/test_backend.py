"""structgen's backend under vLLM's own manager, against structgen's matchers and against XGrammar's backend there."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("vllm", reason="vLLM is not here; `make test-engines` fetches it")

from vllm.exceptions import VLLMValidationError
from vllm.v1.structured_output.backend_xgrammar import XgrammarBackend

from structgen.integrations.engine_requests import engine_vocabulary
from tests.integrations.engine_world import (
    LOGITS,
    compiled,
    draft,
    mask_of,
    random_request,
    special_id,
    tokenizer,
    unpacked,
)
from tests.integrations.vllm.world import END, TURN, Engine, engine_config

pytestmark = pytest.mark.usefixtures("registered")


def with_turn(mask: np.ndarray) -> np.ndarray:
    """A matcher's mask with the second end of the model, which its generation settings name."""
    mask = mask.copy()
    mask[special_id(TURN)] = mask[special_id(END)]
    return mask


@pytest.mark.parametrize("seed", range(120))
def test_masks_over_drafts_are_those_of_the_matcher(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random requests, several at once, drafts valid and not: every row, what is accepted, and the state behind it."""
    rng = random.Random(seed)
    engine = Engine(monkeypatch, drafts=4)
    vocabulary = engine_vocabulary(tokenizer(), LOGITS)
    followed = {}
    for number in range(3):
        kind, value, constraint = random_request(1000 * seed + number)
        grammar = compiled(constraint, vocabulary)
        if grammar is None:
            with pytest.raises(VLLMValidationError):
                engine.ask(kind, value)
            continue
        followed[engine.ask(kind, value).request_id] = grammar.matcher()
    for _ in range(6):
        drafts = {}
        for name, matcher in followed.items():
            request = engine.requests[name]
            proposed = draft(rng, matcher, rng.randint(0, 4))
            valid = engine.manager.validate_tokens(request, proposed)
            wanted: list[int] = []
            walker = matcher.fork()
            while len(wanted) < len(proposed) and not walker.is_terminated():
                if not walker.accept_token(proposed[len(wanted)]):
                    break
                wanted.append(proposed[len(wanted)])
            assert valid == wanted
            drafts[name] = valid + [-1] * rng.randint(0, 4 - len(valid))
        if not drafts:
            return
        rows = engine.masks(drafts)
        assert rows.dtype == np.int32 and rows.shape == (5 * len(followed), LOGITS // 32)
        for number, (name, matcher) in enumerate(followed.items()):
            walker = matcher.fork()
            for place, token in enumerate([*drafts[name], -1]):
                if walker.is_terminated():
                    break
                assert (unpacked(rows[5 * number + place]) == with_turn(mask_of(walker))).all()
                if token < 0:
                    break
                assert walker.accept_token(token)
        for name, matcher in followed.items():
            allowed = [] if matcher.is_terminated() else np.flatnonzero(mask_of(matcher)).tolist()
            if len(allowed):
                token = int(rng.choice(allowed))
                assert engine.manager.accept_tokens(engine.requests[name], [token])
                assert matcher.accept_token(token)
            assert engine.grammar(engine.requests[name]).is_terminated() == matcher.is_terminated()


@pytest.mark.parametrize("seed", range(40))
def test_rollbacks(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random accepts and rollbacks leave the state of the tokens that are left, counted as vLLM counts them."""
    rng = random.Random(seed)
    engine = Engine(monkeypatch)
    vocabulary = engine_vocabulary(tokenizer(), LOGITS)
    number = seed
    while (grammar := compiled(random_request(number)[2], vocabulary)) is None:
        number += 1000
    ours = engine.grammar(engine.ask(*random_request(number)[:2]))
    kept: list[int] = []
    for _ in range(40):
        matcher = grammar.matcher()
        assert all(matcher.accept_token(token) for token in kept)
        if kept and rng.random() < 0.3:
            count = rng.randint(1, len(kept))
            ours.rollback(count)
            del kept[-count:]
        elif not matcher.is_terminated():
            tokens = draft(rng, matcher, 3)
            walker = matcher.fork()
            taken = 0
            while taken < len(tokens) and not walker.is_terminated() and walker.accept_token(tokens[taken]):
                taken += 1
            is_whole = taken == len(tokens) or walker.is_terminated()
            assert ours.accept_tokens("r", tokens) == is_whole
            kept += tokens[:taken] if is_whole else []
        assert ours.num_processed_tokens == len(kept)
    ours.reset()
    bitmask = ours_mask(engine, ours)
    assert (bitmask == with_turn(mask_of(grammar.matcher()))).all()


def ours_mask(engine: Engine, grammar: Any) -> np.ndarray:
    assert engine.manager.backend is not None
    bitmask = engine.manager.backend.allocate_token_bitmask(1)
    grammar.fill_bitmask(bitmask, 0)
    return unpacked(bitmask[0])


def test_the_ends_of_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """All stop tokens are masked like the end of sequence, and end the output; those of text are no text any more."""
    engine = Engine(monkeypatch)
    brace, think = tokenizer().encode("}")[0], special_id("<think>")
    ours = engine.grammar(engine.ask("choice", ["a", "a}"], stop_token_ids=[think]))
    assert ours.accept_tokens("r", tokenizer().encode("a"))
    assert set(np.flatnonzero(ours_mask(engine, ours))) == {brace, think, special_id(END), special_id(TURN)}
    assert ours.validate_tokens([think, brace]) == [think]
    assert ours.accept_tokens("r", [think]) and ours.is_terminated()
    assert ours_mask(engine, ours).all()  # what comes then is thrown away
    ours.rollback(1)
    assert not ours.is_terminated() and ours.accept_tokens("r", [brace])
    ending = engine.grammar(engine.ask("choice", ["a", "a}"], stop_token_ids=[brace]))
    assert ending.accept_tokens("r", tokenizer().encode("a"))
    assert set(np.flatnonzero(ours_mask(engine, ending))) == {brace, special_id(END), special_id(TURN)}
    assert ending.accept_tokens("r", [brace]) and ending.is_terminated()
    with pytest.raises(VLLMValidationError, match=r"JSON|token|spell"):
        engine.ask("json", {"type": "object"}, stop_token_ids=[brace])


def test_many_requests_are_filled_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(monkeypatch, rows=300)
    for number in range(200):
        engine.ask("regex", f"[a-{'bcdefgh'[number % 7]}]{{{number % 5}}}")
    rows = engine.masks({})
    assert len(rows) == 200
    vocabulary = engine_vocabulary(tokenizer(), LOGITS)
    from structgen import compile_regex

    for number in range(200):
        matcher = compile_regex(f"[a-{'bcdefgh'[number % 7]}]{{{number % 5}}}", vocabulary).matcher()
        assert (unpacked(rows[number]) == with_turn(mask_of(matcher))).all()


SIMPLE: list[tuple[str, Any, list[str], list[str]]] = [
    ("choice", ["yes", "no", "not sure"], ["yes", "no", "not sure"], ["not", "maybe", ""]),
    ("regex", "[0-9]{3}-[a-z]+", ["123-ab"], ["12-ab", "123-"]),
    ("regex", "(the|a) (cat|dog)s?", ["the cats", "a dog"], ["the cow"]),
    ("grammar", 'root ::= "a" root "b" | "ab"', ["ab", "aabb"], ["aab", "ba"]),
    ("grammar", 'root ::= num (op num)*\nnum ::= [0-9]+\nop ::= "+" | "-"', ["1+23-4"], ["1+", "+1"]),
    ("json", {"type": "integer"}, ["1", "-20"], ["1.5", '"1"']),
    ("json", {"type": "boolean"}, ["true", "false"], ["null", "tru"]),
    ("json", {"enum": ["red", "green", 3]}, ['"red"', "3"], ['"blue"', "4"]),
    (
        "json",
        {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
        ['{"a": 1}'],
        ["{}", '{"b": 1}', '{"a": "x"}'],
    ),
    ("json", {"type": "array", "items": {"type": "null"}, "maxItems": 2}, ["[]", "[null, null]"], ["[1]", "[null,"]),
    ("json_object", True, ["{}", '{"a": [1, {"b": null}]}'], ["[]", "1"]),
]


@pytest.mark.parametrize("kind, value, good, bad", SIMPLE, ids=lambda value: str(value)[:30])
def test_xgrammar_in_vllm_says_the_same(
    kind: str, value: Any, good: list[str], bad: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simple requests mean the same under vLLM's own backend, its classes driven as ours are."""
    import json

    from vllm.v1.structured_output.backend_types import StructuredOutputOptions

    engine = Engine(monkeypatch)
    theirs = XgrammarBackend(engine_config(), tokenizer(), LOGITS)
    option = StructuredOutputOptions[kind.upper()]
    spec = "" if kind == "json_object" else value if isinstance(value, str) else json.dumps(value)
    ends = {special_id(END)}
    for text, is_good in [*((text, True) for text in good), *((text, False) for text in bad)]:
        tokens = [*tokenizer().encode(text), special_id(END)]
        ours = engine.grammar(engine.ask(kind, value))
        assert ours.accept_tokens("r", tokens) == is_good, text
        assert theirs.compile_grammar(option, spec, ends).accept_tokens("r", tokens) == is_good, text
    if kind in ("choice", "regex", "grammar"):  # JSON's whitespace differs
        ours, other = engine.grammar(engine.ask(kind, value)), theirs.compile_grammar(option, spec, ends)
        bitmask = theirs.allocate_token_bitmask(1)
        rng = random.Random(0)
        while not ours.is_terminated():
            other.fill_bitmask(bitmask, 0)
            mask = ours_mask(engine, ours)
            mask[special_id(TURN)] = False
            assert (mask == unpacked(bitmask[0])).all()
            token = int(rng.choice(np.flatnonzero(mask).tolist()))
            assert ours.accept_tokens("r", [token]) and other.accept_tokens("r", [token])
