"""The processor in mlx-lm with a small random model: greedy, sampled, drafts, batches, budgets; masks by a matcher."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.errors import ConstraintError, IncompleteOutputError, TokenizerError
from structgen.integrations.mlx import processor
from tests.integrations.transformers.small import CASES, EOS, VOCABULARY, WIDTH, Case, text_of

mx = pytest.importorskip("mlx.core", reason="mlx is not installed (make test-mlx)")
pytest.importorskip("mlx_lm", reason="mlx-lm is not installed (make test-mlx)")

PROMPT = [byte + 3 for byte in b"Name it:"]


@cache
def model(seed: int = 0) -> Any:
    from mlx_lm.models.llama import Model, ModelArgs

    mx.random.seed(seed)
    made = Model(
        ModelArgs(
            model_type="llama", hidden_size=32, num_hidden_layers=1, intermediate_size=48, num_attention_heads=2,
            num_key_value_heads=2, rms_norm_eps=1e-5, vocab_size=WIDTH, tie_word_embeddings=False,
        )
    )  # fmt: skip
    made.update(_scaled(made.parameters()))
    mx.eval(made.parameters())
    return made


def _scaled(tree: Any) -> Any:
    """Far apart scores."""
    if isinstance(tree, dict):
        return {name: _scaled(value) for name, value in tree.items()}
    return [_scaled(value) for value in tree] if isinstance(tree, list) else 3.0 * tree


def run(case: Case, seed: int | None = None, *, draft: int | None = None, most: int = 200, **options: Any) -> str:
    """The text of a `generate_step`, with the end of sequence as mlx-lm's `stream_generate` sees it."""
    from mlx_lm.generate import generate_step, speculative_generate_step
    from mlx_lm.sample_utils import make_sampler

    mx.random.seed(seed or 0)
    one = processor(case.constraint, VOCABULARY, **options)
    sampler = make_sampler(temp=0.0 if seed is None else 1.0)
    arguments: dict[str, Any] = {"max_tokens": most, "sampler": sampler, "logits_processors": [one]}
    if draft is None:
        steps = generate_step(mx.array(PROMPT), model(), **arguments)
    else:
        steps = speculative_generate_step(mx.array(PROMPT), model(), model(draft), num_draft_tokens=3, **arguments)
    written = []
    for step in steps:
        written.append(int(step[0]))
        if written[-1] in EOS:
            break
    return text_of(written)


@pytest.mark.parametrize("name", CASES)
def test_greedy_sampled_and_drafted_texts_are_valid(name: str) -> None:
    case = CASES[name]
    greedy = run(case)
    assert case.is_valid(greedy)
    for seed in range(1, 4):
        assert case.is_valid(run(case, seed))
    for draft in (0, 1):
        assert run(case, draft=draft) == greedy
        assert case.is_valid(run(case, 5, draft=draft))


def test_masks_are_those_of_a_matcher_wherever_it_goes() -> None:
    """A token more, back, forward again, another prompt."""
    rng = random.Random(4)
    compiled = CASES["pairs"].constraint.compile(VOCABULARY)
    one = processor(CASES["pairs"].constraint, VOCABULARY)
    for prompt in (PROMPT, PROMPT[1:], [40, 41]):
        written: list[int] = []
        for _ in range(30):
            matcher = compiled.matcher()
            assert all(map(matcher.accept_token, written))
            mask = np.zeros((1, -(-VOCABULARY.size // 32)), np.int32)
            matcher.fill_next_token_bitmask(mask)
            expected = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist() or [*EOS]
            masked = np.array(one(mx.array([*prompt, *written]), mx.zeros((1, WIDTH))))[0]
            assert np.flatnonzero(np.isfinite(masked)).tolist() == expected
            if matcher.is_terminated() or rng.random() < 0.2:
                written = written[: rng.randrange(len(written) + 1)]
            else:
                written = [*written, rng.choice(expected)]


def test_a_processor_a_row_of_a_batch() -> None:
    from mlx_lm.generate import BatchGenerator

    names = list(CASES)
    batch = BatchGenerator(model(), stop_tokens=[[end] for end in EOS], max_tokens=120)
    each = [[processor(CASES[name].constraint, VOCABULARY, max_tokens=120)] for name in names]
    uids = batch.insert([PROMPT[: 3 + n] for n in range(len(names))], logits_processors=each)
    written: dict[int, list[int]] = {uid: [] for uid in uids}
    while responses := _next(batch):
        for response in responses:
            written[response.uid].append(int(response.token))
    for uid, name in zip(uids, names, strict=True):
        assert CASES[name].is_valid(text_of(written[uid])), name


def _next(batch: Any) -> Any:
    found = batch.next()
    while isinstance(found, tuple) and not found[1] and found[0]:  # prompts that are still read
        found = batch.next()
    return found[1] if isinstance(found, tuple) else found


def test_texts_are_closed_within_the_budget() -> None:
    case = CASES["object"]
    for budget in (8, 9, 12, 20):
        for seed in (None, 1, 2):
            text = run(case, seed, most=budget + 1, max_tokens=budget)
            assert case.is_valid(text), (budget, seed, text)


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(ConstraintError, match="free text needs no processor"):
        processor(None, VOCABULARY)
    with pytest.raises(IncompleteOutputError, match="Raise it to at least 3"):
        processor(structgen.choice(["ab ab"]), VOCABULARY, max_tokens=2)
    with pytest.raises(TokenizerError, match="the tokenizer of this model"):
        processor(structgen.choice(["ab"]), VOCABULARY)(mx.array(PROMPT), mx.zeros((1, 40)))
