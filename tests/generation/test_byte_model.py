"""What a model says of bytes, against all covers of short texts, whose tokens the tokenizer judges."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import structgen as sg
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError, IncompleteOutputError, OptionsError
from structgen.generation.byte_ensemble import ByteEnsemble
from structgen.generation.byte_model import END, ByteModel
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from tests.core.tokenization.small_tokenizers import PATTERNS, encode, trained
from tests.generation.decoding.test_canonical_spelling import Tokenizer
from tests.many import cases

PROMPT = "the ab"
TEXTS = ["", "t", "the", "th", "the ", " the", "12", "1", "'l", "x", "x\n", "ab!", "  ", "a the"]


@cache
def generator(name: str, seed: int = 0) -> Generator:
    tokenizer = Tokenizer(trained(PATTERNS[name]))
    vocabulary = Vocabulary.from_transformers(tokenizer.backend_tokenizer, eos_token_ids=tokenizer.eos_token_id)
    return Generator(TinyModel(vocabulary.size, seed=seed, order=2), tokenizer, vocabulary=vocabulary)


def is_text(token: bytes) -> bool:
    """Whether a token is whole characters."""
    try:
        return bool(token.decode())
    except UnicodeDecodeError:
        return not token


class Judge:
    """Sums over covers, found by trying all tokens; the model is asked for each prefix anew. Of bytes that also stand
    in tokens with parts of characters, it says nothing (``judged``)."""

    def __init__(self, made: Generator) -> None:
        self.made, self.backend = made, made.tokenizer.backend_tokenizer
        self.prompt = encode(self.backend, PROMPT)
        self.tokens = [token if is_text(token) else b"" for token in made.vocabulary.tokens]
        parts = [token for token in made.vocabulary.tokens if not is_text(token)]
        self.judged = [*(byte for byte in range(128) if not any(byte in part for part in parts)), END]
        short = {token.decode()[:3] for token in self.tokens if token}
        self.continuations = ["", *sorted(short)]
        self._log_probs: dict[tuple[int, ...], Any] = {}

    def log_probs(self, prefix: tuple[int, ...]) -> Any:
        if prefix not in self._log_probs:
            logits = np.asarray(self.made.model.prefill([[*self.prompt, *prefix]])[0][0], np.float64)
            self._log_probs[prefix] = logits - np.log(np.exp(logits).sum())
        return self._log_probs[prefix]

    def is_begun(self, tokens: tuple[int, ...]) -> bool:
        """Whether some text has these as its first tokens."""
        text = b"".join(self.tokens[token] for token in tokens).decode()
        return any(tuple(encode(self.backend, text + more)[: len(tokens)]) == tokens for more in self.continuations)

    def spelled(self, text: bytes, prefix: tuple[int, ...] = (), log_prob: float = 0.0) -> Iterator[tuple[Any, float]]:
        """Canonical tokens of beginnings of a text, each with its probability's logarithm and what is left."""
        yield (prefix, text), log_prob
        for token, piece in enumerate(self.tokens):
            if piece and text.startswith(piece) and self.is_begun((*prefix, token)):
                more = log_prob + float(self.log_probs(prefix)[token])
                yield from self.spelled(text[len(piece) :], (*prefix, token), more)

    def masses(self, text: bytes) -> dict[int, float]:
        """By byte, and the end: the sum over all covers of the text with it."""
        found: defaultdict[int, float] = defaultdict(float)
        for (prefix, left), log_prob in self.spelled(text):
            for token, piece in enumerate(self.tokens):
                if len(piece) > len(left) and piece.startswith(left) and self.is_begun((*prefix, token)):
                    found[piece[len(left)]] += math.exp(log_prob + float(self.log_probs(prefix)[token]))
            if not left and tuple(encode(self.backend, text.decode())) == prefix:
                end = self.made.tokenizer.eos_token_id
                found[END] += math.exp(log_prob + float(self.log_probs(prefix)[end]))
        return dict(found)


@pytest.mark.full
@pytest.mark.parametrize("name", ["gpt2", "cl100k", "none"])
def test_sums_over_all_covers(name: str) -> None:
    made, judge = generator(name), Judge(generator(name))
    model = ByteModel(made, PROMPT)
    for text in TEXTS[: len(cases(len(TEXTS), 5))]:
        whole = judge.masses(text[:-1].encode()).get(ord(text[-1]), 0.0) if text else 1.0
        if not whole:
            with pytest.raises(GenerationError, match="no canonical tokens"):
                model.next_byte_logprobs(text)
            continue
        said, masses = model.next_byte_logprobs(text), judge.masses(text.encode())
        assert said.log_prob == pytest.approx(math.log(whole), abs=1e-6)
        for byte in judge.judged:
            assert math.exp(said.log_probs[byte]) == pytest.approx(masses.get(byte, 0.0) / whole, abs=1e-9), (
                text,
                byte,
            )
        assert np.exp(said.log_probs).sum() + said.lost == pytest.approx(1.0)


def test_texts_in_any_sequence_have_one_answer() -> None:
    model = ByteModel(generator("gpt2"), PROMPT)
    answers = {text: model.next_byte_logprobs(text).log_probs for text in TEXTS[:8]}
    for text in reversed(TEXTS[:8]):
        assert np.array_equal(model.next_byte_logprobs(text).log_probs, answers[text])


@pytest.mark.full
@pytest.mark.parametrize("rule", ["mixture", "product"])
def test_an_ensemble_draws_what_the_rule_says(rule: Any) -> None:
    """Against the tree of all texts of a small language, whose probabilities are multiplied byte by byte."""
    made = [generator("gpt2"), generator("digits", 5)]
    texts, weights = ["ab", "a", "the", "ll"], [0.75, 0.25]
    ensemble = ByteEnsemble(made, [3, 1], rule)
    models = [ByteModel(each, PROMPT) for each in made]
    expected = {text: 1.0 for text in texts}
    for text in texts:
        for end in range(len(text) + 1):
            so_far = text[:end]
            said = np.array([np.exp(model.next_byte_logprobs(so_far).log_probs) for model in models])
            mixed = weights @ said if rule == "mixture" else np.prod(said ** np.array(weights)[:, None], axis=0)
            options = {ord(t[end]) if len(t) > end else END for t in texts if t.startswith(so_far)}
            here = ord(text[end]) if end < len(text) else END
            expected[text] *= mixed[here] / sum(mixed[option] for option in options)
    count = len(cases(4_000, 300))
    drawn = Counter(ensemble.generate(PROMPT, texts, seed=seed).text for seed in range(count))
    assert sum(expected.values()) == pytest.approx(1.0)
    for text, probability in expected.items():
        assert abs(drawn[text] / count - probability) < 4.5 * math.sqrt(probability * (1 - probability) / count) + 1e-9


def test_a_start_may_end_within_a_token() -> None:
    """The distribution after it is that of whole texts that begin with it."""
    made = generator("gpt2")
    model, texts = ByteModel(made, PROMPT), ["the the", "that", "tab"]

    def probability(text: str, start: int) -> float:
        data = text.encode()
        steps = [model.next_byte_logprobs(data[:end]).log_probs[data[end]] for end in range(start, len(data))]
        return math.exp(sum(steps) + model.next_byte_logprobs(data).log_probs[END])

    for start in ("t", "th", "the t"):
        those = [text for text in texts if text.startswith(start)]
        for text in those:
            ratio = probability(text, 0) / probability(text, len(start))
            assert ratio == pytest.approx(math.exp(model.next_byte_logprobs(start).log_prob), rel=1e-6)
        output = ByteEnsemble([made]).generate(PROMPT, texts, start=start, seed=1)
        assert output.text in those


def test_constraints_budgets_and_refusals() -> None:
    made = generator("gpt2")
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    for seed in range(3):
        output = ByteEnsemble([made]).generate(PROMPT, schema, max_bytes=12, seed=seed)
        assert list(output.value) == ["a"] and len(output.text) <= 12
    assert ByteEnsemble([made]).generate(PROMPT, ["ab", "the"], temperature=0).text in ("ab", "the")
    with pytest.raises(IncompleteOutputError, match="No text of 3 bytes"):
        ByteEnsemble([made]).generate(PROMPT, schema, max_bytes=3)
    with pytest.raises(GenerationError, match="begins with 'x'"):
        ByteEnsemble([made]).generate(PROMPT, ["ab"], start="x")
    wrong: list[Any] = [[], [1, 2], [0], ["a"]]
    for weights in wrong:
        with pytest.raises(OptionsError, match="weight above 0"):
            ByteEnsemble([made], weights)
    with pytest.raises(OptionsError, match="rule"):
        ByteEnsemble([made], rule="sum")  # type: ignore[arg-type]
    with pytest.raises(GenerationError, match="max_bytes"):
        ByteModel(made, PROMPT, max_bytes=3).next_byte_logprobs("the")
    assert sg.ByteModel is ByteModel and sg.ByteEnsemble is ByteEnsemble
