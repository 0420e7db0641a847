"""Bias and penalties against their definitions; what is counted."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import SamplingParams
from structgen.generation.sampling.penalties import History
from tests.server.tiny import EOS, VOCABULARY, ByteTokenizer


def adjusted(history: History, logits: np.ndarray) -> np.ndarray:
    row = logits.copy()
    adjustments = history.adjustments()
    if adjustments is not None:
        adjustments.apply(row)
    return row


def test_penalties_are_those_of_their_definitions() -> None:
    params = SamplingParams(
        1.0, repetition_penalty=1.5, presence_penalty=0.5, frequency_penalty=0.25, logit_bias={3: 2.0, 9: -1.0}
    )
    rng = np.random.default_rng(0)
    logits, prompt = rng.normal(size=200).astype(np.float32), rng.integers(200, size=70).tolist()
    history, written = History(params, prompt), rng.integers(200, size=150).tolist()
    for token in written:
        history.add(token)
    expected = logits.astype(np.float64)
    expected[3] += 2.0
    expected[9] -= 1.0
    for token in {*prompt, *written}:
        expected[token] = expected[token] / 1.5 if expected[token] > 0 else expected[token] * 1.5
    for token in set(written):
        expected[token] -= 0.5 + 0.25 * written.count(token)
    assert np.allclose(adjusted(history, logits), expected, atol=1e-5)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 128, 129, 500, 3000])
@pytest.mark.parametrize("kind", ["bias", "prompt", "written", "all"])
def test_any_number_of_tokens(kind: str, size: int) -> None:
    """Against the definition, with as many different tokens as there are."""
    rng = np.random.default_rng(size)
    logits, tokens = rng.normal(size=4000).astype(np.float32), rng.permutation(4000)[: 2 * size]
    biases = {token: float(rng.normal()) for token in tokens[:size].tolist() if kind in ("bias", "all")}
    prompt = tokens[size // 2 : size // 2 + size].tolist() if kind in ("prompt", "all") else []
    written = tokens[size // 3 : size // 3 + size].tolist() * 2 if kind in ("written", "all") else []
    params = SamplingParams(
        1.0, repetition_penalty=1.5, presence_penalty=0.5, frequency_penalty=0.25, logit_bias=biases
    )
    history = History(params, prompt)
    for token in written:
        history.add(token)
    expected = logits.astype(np.float64)
    for token, bias in biases.items():
        expected[token] += bias
    for token in {*prompt, *written}:
        expected[token] = expected[token] / 1.5 if expected[token] > 0 else expected[token] * 1.5
    for token in set(written):
        expected[token] -= 0.5 + 0.25 * written.count(token)
    assert np.allclose(adjusted(history, logits), expected, atol=1e-5)


def naive_dry(context: list[int], params: SamplingParams, is_breaker: Any) -> dict[int, float]:
    """By comparing each earlier place with the end, token by token."""
    found: dict[int, float] = {}
    for place in range(1, len(context)):
        length = 0
        while length < place and context[place - 1 - length] == context[-1 - length]:
            if is_breaker(context[-1 - length]):
                break
            length += 1
        token = context[place]
        if length >= params.dry_allowed_length and not is_breaker(token):
            penalty = params.dry_multiplier * params.dry_base ** (length - params.dry_allowed_length)
            found[token] = max(found.get(token, 0.0), penalty)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_dry_is_that_of_its_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    params = SamplingParams(
        1.0, dry_multiplier=0.8, dry_allowed_length=1 + seed % 3, dry_sequence_breakers=("d", "\n"), logit_bias={2: 1.0}
    )
    tokens = [b"a", b"b", b"c", b"d", b"xdx"][: 3 + seed % 3]
    context = rng.integers(len(tokens), size=50 * (seed % 2)).tolist()
    history = History(params, context, tokens)
    logits = np.zeros(8, np.float32)
    for token in rng.integers(len(tokens), size=60).tolist():
        history.follow(token)
        context.append(token)
        expected = logits.astype(float)
        expected[2] += 1.0
        for repeated, penalty in naive_dry(context, params, lambda one: b"d" in tokens[one]).items():
            expected[repeated] -= penalty
        assert np.allclose(adjusted(history, logits), expected, rtol=1e-5)


def test_dry_counts_forced_tokens_and_the_prompt_and_stays_finite() -> None:
    """A model that would repeat itself for ever does not; of a long repetition the penalty is a number."""
    model = TinyModel(VOCABULARY.size, seed=3, scale=0.1)
    generator = Generator(model, ByteTokenizer(None), vocabulary=VOCABULARY)
    plain = generator.generate("x" * 500, structgen.regex("[xy]{40}"), max_new_tokens=40, logit_bias={ord("x"): 40.0})
    dry = generator.generate(
        "x" * 500, structgen.regex("[xy]{40}"), max_new_tokens=40, logit_bias={ord("x"): 40.0}, dry_multiplier=0.8
    )
    assert plain.text == "x" * 40 and "y" in dry.text
    history = History(SamplingParams(dry_multiplier=1.0), [0] * 5000, [b"x"])
    history.follow(0)
    assert np.isfinite(adjusted(history, np.zeros(4, np.float32))).all()


def test_repetition_penalty_is_that_of_transformers() -> None:
    torch = pytest.importorskip("torch")
    processors = pytest.importorskip("transformers.generation.logits_process")
    logits = torch.randn(1, 500, generator=torch.Generator().manual_seed(0))
    for prompt in ([3, 5, 5, 8], list(range(0, 500, 2))):
        expected = processors.RepetitionPenaltyLogitsProcessor(1.3)(torch.tensor([prompt]), logits.clone())
        history = History(SamplingParams(1.0, repetition_penalty=1.3), prompt)
        assert np.allclose(adjusted(history, logits[0].numpy()), expected[0].numpy())


GREAT = [
    {"logit_bias": {1: 1e300}}, {"logit_bias": {0: -1e300, 1: -1e300}}, {"logit_bias": {0: 3e38, 1: -3e38}},
    {"repetition_penalty": 1e300}, {"repetition_penalty": 1e-300}, {"presence_penalty": 1e300},
    {"presence_penalty": -1e300}, {"frequency_penalty": 1e308}, {"frequency_penalty": -1e308},
    {"dry_multiplier": 1e300, "dry_base": 1e300}, {"logit_bias": {1: 1e300}, "repetition_penalty": 1e-300},
]  # fmt: skip


@pytest.mark.parametrize("great", GREAT, ids=str)
def test_numbers_that_float32_does_not_have_leave_logits_numbers(great: dict[str, Any]) -> None:
    """What a constraint alone allows can be drawn, however much it is punished."""
    history = History(SamplingParams(1.0, **great), [0, 1] * 4, [b"x", b"y"])
    for token in (0, 1, 0, 1, 0):
        history.add(token)
        history.follow(token)
        assert np.isfinite(adjusted(history, np.array([30.0, -30.0, 0.0], np.float32))).all()


def test_nothing_to_adjust() -> None:
    history = History(SamplingParams(1.0), [1, 2, 3])
    history.add(4)
    assert history.adjustments() is None
    history = History(SamplingParams(1.0, presence_penalty=1.0), [1, 2, 3])
    assert history.adjustments() is None  # the prompt counts for repetition_penalty only
    history.add(4)
    adjustments = history.adjustments()
    assert adjustments is not None and adjustments.token_ids.tolist() == [4] and adjustments.minus.tolist() == [1.0]


@pytest.mark.parametrize("draft", [None, "ngram"])
def test_greedy_outputs_of_random_batches_are_those_of_plain_python(draft: str | None) -> None:
    """Prompts with many different tokens, biases of any number, many tokens written; alone, in a batch, with drafts."""
    rng = random.Random(5)
    for biased in (0, 3, 64, 65, 200):
        biases = {token: rng.uniform(-6, 2) for token in rng.sample(range(EOS), biased)}
        params = SamplingParams(
            repetition_penalty=rng.choice([1.0, 1.3]),
            presence_penalty=rng.choice([0.0, 0.7]),
            frequency_penalty=rng.choice([0.0, 0.3]),
            logit_bias=biases,
        )
        count, model = rng.choice([5, 90]), TinyModel(VOCABULARY.size, seed=biased)
        prompts = ["".join(map(chr, rng.choices(range(33, 700), k=length))) for length in (1, 40, 400)]
        wanted = [plain(model, list(prompt.encode()), count, params) for prompt in prompts]
        made = Generator(model, ByteTokenizer(None), vocabulary=VOCABULARY, draft=draft)
        options: dict[str, Any] = {
            name: getattr(params, name) for name in ("repetition_penalty", "presence_penalty", "frequency_penalty")
        }
        options |= {"logit_bias": biases, "schema_in_prompt": False}
        constraint = structgen.regex(f"[0-9a-z]{{{count}}}")
        assert [made.generate(prompt, constraint, **options).text for prompt in prompts] == wanted
        assert [result.text for result in made.batch(prompts, constraint, **options)] == wanted


def plain(model: TinyModel, prompt: list[int], count: int, params: SamplingParams) -> str:
    """So many of the likeliest letters and digits, by the definitions of bias and penalties."""
    letters, written = b"0123456789abcdefghijklmnopqrstuvwxyz", list[int]()
    for _ in range(count):
        logits = model.read_after([[*prompt, *written]])[0].astype(np.float64)
        for token, bias in params.bias_pairs:
            logits[token] += bias
        for token in {*prompt, *written}:
            factor = params.repetition_penalty
            logits[token] = logits[token] / factor if logits[token] > 0 else logits[token] * factor
        for token in set(written):
            logits[token] -= params.presence_penalty + params.frequency_penalty * written.count(token)
        written.append(max(letters, key=lambda token: logits[token]))
    return bytes(written).decode()
