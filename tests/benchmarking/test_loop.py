"""The model loop: both paces write what a naive loop writes for each output alone; failures are kept apart."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import numpy as np
import pytest
from tiny_bench import EOS, VOCABULARY, Lying, load

from structgen.benchmarking.engines import Engine, Structgen, Unconstrained
from structgen.benchmarking.loop import DecoderDraft, Draft, MaskedDraft, draw, log_prob, write_by_turns, write_together
from structgen.benchmarking.model_server import bench_vocabulary
from structgen.generation.sampling import SamplingParams

PROMPT = list(b"a prompt")
SCHEMAS = [{"type": "object"}, {"type": "array", "items": {"enum": ["x", "yy"]}, "minItems": 1}, {"type": "string"}]
BUDGET = 24
GENERATOR = load()
COMMON = bench_vocabulary(GENERATOR)


def drafts(temperature: float) -> list[Draft]:
    params = SamplingParams(temperature, seed=5)
    engine = Structgen(COMMON, "generation")
    found: list[Draft] = []
    for number, schema in enumerate(SCHEMAS):
        start = engine.compile(json.dumps(schema))
        found.append(MaskedDraft(f"m{number}", start(), engine.row, VOCABULARY, params, BUDGET))
        found.append(DecoderDraft(f"d{number}", start(), VOCABULARY, params, BUDGET))
    free = Unconstrained(COMMON)
    return [*found, MaskedDraft("free", free.compile("true")(), free.row, VOCABULARY, params, BUDGET)]


def naive(schema: Any, temperature: float) -> tuple[list[int], str, float]:
    """One output, by the definition: the model on the whole text, probabilities by softmax over allowed tokens."""
    engine: Engine = Unconstrained(COMMON) if schema is None else Structgen(COMMON, "generation")
    session, rng = engine.compile(json.dumps(schema))(), np.random.default_rng(5)
    ids: list[int] = []
    total = 0.0
    while len(ids) < BUDGET:
        session.fill()
        logits = GENERATOR.model.prefill([PROMPT + ids])[0][0].astype(np.float64)
        allowed = [t for t in range(VOCABULARY.size) if engine.row[t // 32] >> (t % 32) & 1]
        weights = {t: math.exp(logits[t] - logits.max()) for t in allowed}
        if temperature:
            heated = [math.exp((logits[t] - logits.max()) / temperature) for t in allowed]
            edges = np.cumsum(heated)
            token = allowed[int(np.searchsorted(edges, rng.random() * edges[-1], side="right"))]
        else:
            token = max(allowed, key=lambda t: logits[t])
        total += math.log(weights[token] / sum(weights.values()))
        session.accept(token)
        if token == EOS:
            return ids, "stop", total
        ids.append(token)
    return ids, "length", total


@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("write", [write_by_turns, write_together])
def test_both_paces_write_what_each_would_alone(write: Any, temperature: float) -> None:
    written = drafts(temperature)
    marks: list[str | None] = []
    write(GENERATOR.model, GENERATOR.model.prefill([PROMPT]), written, marks.append)
    masked = [draft for draft in written if isinstance(draft, MaskedDraft)]
    for draft, schema in zip(masked, [*SCHEMAS, None], strict=True):
        ids, finish, logprob = naive(schema, temperature)
        assert (draft.token_ids, draft.finish, draft.error) == (ids, finish, "")
        assert draft.logprob_masked == pytest.approx(logprob, abs=1e-4)
        assert draft.logprob_model <= draft.logprob_masked + 1e-6
        assert len(draft.mask_ns) == len(ids) + (finish == "stop") and draft.first_ns > 0
        assert bool(draft.step_ns) == (write is write_by_turns and len(draft.mask_ns) > 1)
    own = [draft for draft in written if isinstance(draft, DecoderDraft)]
    for decoded, schema in zip(own, SCHEMAS, strict=True):
        alone = GENERATOR.generate("a prompt", schema, temperature=temperature, seed=5, max_new_tokens=BUDGET,
                                   schema_in_prompt=False)  # fmt: skip
        assert decoded.token_ids == list(alone.token_ids) and decoded.finish == alone.finish_reason
    assert {*marks} == {draft.label for draft in written} | {None}


def test_outputs_that_agree_share_a_row() -> None:
    model = copy.copy(GENERATOR.model)
    engine = Structgen(COMMON, "generation")
    widths = []
    forward = model.forward
    model.forward = lambda ids, cache: (widths.append(len(ids)), forward(ids, cache))[1]  # type: ignore
    start = engine.compile('{"enum": ["same for all"]}')
    same = [MaskedDraft(str(i), start(), engine.row, VOCABULARY, SamplingParams(), BUDGET) for i in range(4)]
    write_together(model, model.prefill([PROMPT]), same, lambda name: None)
    assert {VOCABULARY.decode(draft.token_ids) for draft in same} == {b'"same for all"'}
    assert set(widths) == {1}


@pytest.mark.parametrize("write", [write_by_turns, write_together])
def test_an_engine_that_fails_does_not_end_the_others(write: Any) -> None:
    engine, lying = Structgen(COMMON), Lying(COMMON)
    params = SamplingParams()
    bad = MaskedDraft("bad", lying.compile('{"const": "zz"}')(), lying.row, VOCABULARY, params, BUDGET)
    good = MaskedDraft("good", engine.compile('{"const": "zz"}')(), engine.row, VOCABULARY, params, BUDGET)
    write(GENERATOR.model, GENERATOR.model.prefill([PROMPT]), [bad, good], lambda name: None)
    assert "the mask allows it" in bad.error and bad.finish is None
    assert good.finish == "stop"


def test_draws_follow_the_distribution() -> None:
    scores = np.log(np.array([0.5, 0.0, 0.3, 0.2], dtype=np.float32) + 1e-38)
    scores[1] = -np.inf
    rng = np.random.default_rng(0)
    counts = np.bincount([draw(scores, SamplingParams(1.0), rng) for _ in range(4000)], minlength=4)
    assert counts[1] == 0
    assert counts / 4000 == pytest.approx([0.5, 0, 0.3, 0.2], abs=0.03)
    assert draw(scores, SamplingParams(0.0), rng) == 0
    assert math.exp(log_prob(scores, 2)) == pytest.approx(0.3)
    with pytest.raises(Exception, match="allows no token"):
        draw(np.full(3, -np.inf, dtype=np.float32), SamplingParams(), rng)
