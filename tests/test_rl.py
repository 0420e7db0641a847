"""Masks that are made again, and log-probabilities of masked policies: by transformers, dense softmax, autograd."""

from __future__ import annotations

import random
import time
from typing import Any

import numpy as np
import pytest

import structgen
from structgen import rl
from structgen.errors import BitmaskError, ConstraintError, TokenError
from structgen.integrations.transformers import GrammarLogitsProcessor
from tests.integrations.transformers.small import CASES, EOS, PAD, VOCABULARY, ids, llama

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("transformers", reason="transformers is not installed")


def bits(rows: Any) -> Any:
    return np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little").astype(bool)[:, : VOCABULARY.size]


def written(name: str, seed: int, **options: Any) -> Any:
    """A sampled rollout of the small model, with what it was drawn from."""
    torch.manual_seed(seed)
    prompt = ids("Name it:")
    out = llama().generate(
        **prompt, logits_processor=[GrammarLogitsProcessor(CASES[name].constraint, VOCABULARY)], do_sample=True,
        top_k=0, max_new_tokens=60, return_dict_in_generate=True, output_logits=True, output_scores=True, **options,
    )  # fmt: skip
    return out, out.sequences[0, prompt["input_ids"].shape[1] :]


@pytest.mark.parametrize("name", CASES)
def test_masks_are_those_of_a_matcher_at_each_place(name: str) -> None:
    _, tokens = written(name, 1)
    constraint = CASES[name].constraint
    compiled = structgen.json_schema(constraint) if isinstance(constraint, dict) else constraint
    matcher = compiled.compile(VOCABULARY).matcher()
    found = bits(rl.masks(constraint, VOCABULARY, tokens.tolist()))
    for place, token in enumerate(tokens.tolist()):
        mask = structgen.allocate_token_bitmask(1, VOCABULARY.size)
        matcher.fill_next_token_bitmask(mask)
        assert (found[place] == bits(mask)[0]).all()
        assert matcher.accept_token(token)


@pytest.mark.parametrize("name", CASES)
def test_what_was_drawn_from_is_the_model_less_the_log_mass(name: str) -> None:
    """transformers' own log-probabilities of the scores that it drew from; the model's, read anew in one pass."""
    for seed in range(3):
        out, tokens = written(name, seed)
        drawn = torch.stack(out.scores)[:, 0].log_softmax(-1).gather(1, tokens[:, None])[:, 0]
        start = out.sequences.shape[1] - len(tokens)
        with torch.inference_mode():
            logits = llama()(out.sequences).logits[0, start - 1 : -1]
        policy, mass = rl.log_probs(logits, tokens, rl.masks(CASES[name].constraint, VOCABULARY, tokens.tolist()))
        model = logits.log_softmax(-1).gather(1, tokens[:, None])[:, 0]
        assert torch.allclose(policy, drawn, atol=1e-4)
        assert torch.allclose(policy, model - mass, atol=1e-5) and (mass <= 1e-6).all()


def test_gradients_are_those_of_a_dense_masked_softmax() -> None:
    rng = np.random.default_rng(5)
    allowed = rng.random((2, 7, 70)) < 0.3
    chosen = torch.from_numpy(rng.integers(0, 70, (2, 7)))
    np.put_along_axis(allowed, chosen.numpy()[..., None], True, axis=2)
    packed = np.packbits(np.pad(allowed, ((0, 0), (0, 0), (0, 26))), axis=2, bitorder="little").view(np.int32)
    weights = torch.from_numpy(rng.normal(size=(2, 2, 7)))
    given, grads = rng.standard_normal((2, 7, 75)), []
    for dense in (False, True):
        logits = torch.from_numpy(given.copy()).requires_grad_()
        if dense:
            weight = logits.exp() * torch.from_numpy(np.pad(allowed, ((0, 0), (0, 0), (0, 5))))
            mass = (weight.sum(-1) / logits.exp().sum(-1)).log()
            policy = (weight.gather(-1, chosen[..., None])[..., 0] / weight.sum(-1)).log()
        else:
            policy, mass = rl.log_probs(logits, chosen, packed)
        ((policy * weights[0]).sum() + (mass * weights[1]).sum()).backward()
        grads.append((policy.detach(), mass.detach(), logits.grad))
    for ours, theirs in zip(*grads, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-12)


def test_rows_are_worked_on_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    logits, tokens = torch.randn(9, 70), torch.arange(9)
    rows = np.full((9, 3), -1, np.int32)
    whole = rl.log_probs(logits, tokens, rows)
    monkeypatch.setattr(rl, "MOST_ELEMENTS", 150)
    assert all(torch.equal(*pair) for pair in zip(whole, rl.log_probs(logits, tokens, rows), strict=True))
    assert torch.equal(whole[1], torch.zeros(9))
    assert rl.log_probs(torch.zeros(0, 70), tokens[:0], rows[:0])[0].shape == (0,)


def test_padding_and_free_text_are_not_masked() -> None:
    tokens = [*b"yes", EOS[0], PAD, PAD]
    spelled = [token + 3 if place < 3 else token for place, token in enumerate(tokens)]
    rows = bits(rl.masks(structgen.choice(["yes", "no"]), VOCABULARY, spelled))
    assert rows[4:].all() and not rows[:4].all(axis=1).any()
    assert bits(rl.masks(None, VOCABULARY, spelled)).all() and len(rl.masks({}, VOCABULARY, [])) == 0


def test_a_token_that_is_not_allowed_has_no_probability() -> None:
    row = np.full((1, 3), -1, np.int32)
    row[0, 0] = ~np.int32(1 << 5)
    policy, mass = rl.log_probs(torch.zeros(1, 96), torch.tensor([5]), row)
    assert policy.item() == -np.inf and mass.item() == pytest.approx(np.log(95 / 96), abs=1e-6)


def test_wrong_input_is_refused() -> None:
    constraint = structgen.choice(["yes"])
    with pytest.raises(ConstraintError, match=r"completion_ids\[1\] is token 100 .* does not allow there"):
        rl.masks(constraint, VOCABULARY, [3 + ord("y"), 100, 101])
    with pytest.raises(ConstraintError, match=r"completion_ids\[0\]"):
        rl.masks(constraint, VOCABULARY, [100])
    with pytest.raises(TokenError):
        rl.masks(constraint, VOCABULARY, [10**6, 3])
    with pytest.raises(TokenError, match="completion_ids"):
        rl.masks(constraint, VOCABULARY, ["y"])  # type: ignore[list-item]
    with pytest.raises(BitmaskError, match="wanted floating"):
        rl.log_probs(torch.zeros(2, 96), torch.zeros(3, dtype=torch.int64), np.zeros((2, 3), np.int32))
    with pytest.raises(BitmaskError, match="wanted floating"):
        rl.log_probs(torch.zeros(2, 96), torch.zeros(2, dtype=torch.int64), np.zeros((2, 3), np.int64))


def test_masks_are_made_again_in_microseconds() -> None:
    rng = random.Random(2)
    words = ["{", '"', "name", '":"', "Ada", "ab", " ", '"}', "12"]
    vocabulary = structgen.Vocabulary(
        [None, *(bytes([byte]) for byte in range(256)), *(w.encode() for w in words)], eos_token_ids=0
    )
    text = '{"name":"' + "".join(rng.choice("ab 12") for _ in range(2000)) + '"}'
    tokens = [1 + byte for byte in text.encode()]
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    rl.masks(schema, vocabulary, tokens)
    start = time.thread_time()
    rl.masks(schema, vocabulary, tokens)
    assert (time.thread_time() - start) / len(tokens) < 30e-6  # 10 on a quiet machine
