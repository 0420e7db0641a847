"""Small worlds whose distribution over finished texts can be enumerated, and a test of samples against it."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, ClassVar

import numpy as np

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.decoding.output import Output
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import SamplingParams, allowed_token_ids, filtered_probs, masked_log_probs
from structgen.generation.speculative.speculator import Speculator
from tests.fakes import FakeMatcher, WordsMatcher
from tests.generation.decoding.writing import decode

ALPHA = 1e-6
WORDS = [
    b"bb",
    b"aab",
    b"abab",
    *(bytes(word) for word in product(b"ab", repeat=5) if bytes(word).count(b"a") % 2 == 0),
]


class TableModel(TinyModel):
    """A tiny model that looks its logits up, so that thousands of outputs take a second."""

    def __init__(self, vocab_size: int, **options: Any) -> None:
        super().__init__(vocab_size, **options)
        self._cached = lru_cache(maxsize=None)(lambda history: TinyModel._logits(self, list(history)))

    def _logits(self, history: list[int]) -> Any:
        return self._cached(tuple(history[-self._order :]))


def small_vocabulary() -> Vocabulary:
    """End of sequence, a, b, ab, ba."""
    return Vocabulary([None, b"a", b"b", b"ab", b"ba"], eos_token_ids=0)


class CachedWords(WordsMatcher):
    """Words, with masks looked up by the text."""

    masks: ClassVar[dict[bytes, Any]] = {}

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> None:
        if self.text not in self.masks:
            row = np.zeros_like(bitmask)
            super().fill_next_token_bitmask(row, 0)
            self.masks[self.text] = row[0]
        bitmask[index] = self.masks[self.text]


def matcher() -> FakeMatcher:
    """Of the words."""
    return CachedWords(small_vocabulary(), WORDS)


def outcomes(model: TinyModel, params: SamplingParams, prompt: Sequence[int]) -> dict[tuple[int, ...], float]:
    """The exact distribution of the plain loop: every token sequence and its probability."""
    vocabulary = small_vocabulary()
    found: dict[tuple[int, ...], float] = {}

    def walk(tokens: tuple[int, ...], prob: float) -> None:
        state = matcher()
        assert all(state.accept_token(token) for token in tokens)
        bitmask = np.zeros((1, 1), dtype=np.int32)
        state.fill_next_token_bitmask(bitmask, 0)
        allowed = allowed_token_ids(bitmask[0], vocabulary.size)
        if allowed.tolist() == [0]:
            found[tokens] = found.get(tokens, 0.0) + prob
            return
        logits = model.prefill([[*prompt, *tokens]])[0][0][: vocabulary.size]
        for token, share in zip(
            allowed.tolist(), filtered_probs(masked_log_probs(logits, allowed), params), strict=True
        ):
            if share and token == 0:
                found[tokens] = found.get(tokens, 0.0) + prob * share
            elif share:
                walk((*tokens, token), prob * share)

    walk((), 1.0)
    return found


def samples(
    model: TinyModel,
    speculator: Callable[[], Speculator],
    params: SamplingParams,
    count: int,
    *,
    batch: int = 1,
    prompt: Sequence[int] = (1, 2),
) -> Counter[tuple[int, ...]]:
    """Outputs of one speculator, which goes on learning."""
    found: Counter[tuple[int, ...]] = Counter()
    vocabulary, one = small_vocabulary(), speculator()
    for start in range(0, count, batch):
        outputs = [
            Output(
                vocabulary,
                matcher(),
                dataclasses.replace(params, seed=start + row),
                max_new_tokens=8,
            )
            for row in range(batch)
        ]
        for _ in decode(model, [prompt] * batch, outputs, one):
            pass
        found.update(tuple(output.token_ids) for output in outputs)
    return found


def g_test(found: Counter[tuple[int, ...]], expected: dict[tuple[int, ...], float]) -> float:
    """p-value of the likelihood-ratio test that ``found`` was drawn from ``expected`` (Sokal & Rohlf, G-test).

    Cells with fewer than 5 expected are put together. With n samples over k cells, a distribution at Kullback-Leibler
    distance d (nats) from the expected one gives G about 2 n d above its mean k - 1: at alpha = 1e-6 and k = 10, n =
    3000 it is found nearly always from d = 0.01 on (total variation about 0.07).
    """
    count = found.total()
    if any(outcome not in expected for outcome in found):
        return 0.0
    cells: list[tuple[int, float]] = []
    rest_found, rest_expected = 0, 0.0
    for outcome, prob in expected.items():
        if prob * count < 5:
            rest_found, rest_expected = rest_found + found[outcome], rest_expected + prob * count
        else:
            cells.append((found[outcome], prob * count))
    if rest_expected > 0:
        cells.append((rest_found, rest_expected))
    g = 2 * sum(seen * math.log(seen / wanted) for seen, wanted in cells if seen)
    return chi_squared_tail(g, len(cells) - 1)


def chi_squared_tail(value: float, degrees: int) -> float:
    """P(X >= value) of the chi-squared distribution, by recurrence (Abramowitz & Stegun 26.4.4, 26.4.5)."""
    if value <= 0 or degrees < 1:
        return 1.0
    half = value / 2
    if degrees % 2:
        total, term, start = math.erfc(math.sqrt(half)), math.sqrt(half / math.pi) * 2 * math.exp(-half), 1
    else:
        total, term, start = math.exp(-half), math.exp(-half) * half, 2
    for number in range(start, degrees, 2):
        total += term
        term *= value / (number + 2)
    return total
