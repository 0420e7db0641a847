"""Languages and models whose target is known in closed form: the six cases, and truth by enumeration for any other."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.models.tiny import TinyCache
from structgen.generation.target.store import PrefixStore
from structgen.generation.target.target import Target
from tests.fakes import FakeMatcher

PROMPT = [0]
Tokens = tuple[int, ...]


class FunctionModel:
    """Next-token probabilities as a function of the tokens after the prompt. Token 0 ends the text."""

    context_length = None

    def __init__(self, vocab_size: int, probs: Callable[[Tokens], Sequence[float]]) -> None:
        self.vocab_size, self.probs = vocab_size, probs
        self.reads: list[Tokens] = []

    def prefill(self, prompts: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.float64], TinyCache]:
        self.reads += [tuple(prompt[len(PROMPT) :]) for prompt in prompts]
        with np.errstate(divide="ignore"):
            rows = [np.log(np.array(self.probs(tuple(prompt[len(PROMPT) :])), dtype=float)) for prompt in prompts]
        return np.stack(rows), TinyCache([list(prompt) for prompt in prompts])

    def forward(self, token_ids: Sequence[Sequence[int]], cache: TinyCache) -> npt.NDArray[np.float64]:
        for row, new in zip(cache.sequences, token_ids, strict=True):
            row += new
        return self.prefill(cache.sequences)[0][:, None]


class PrefixMatcher(FakeMatcher):
    """A language given by a function from a text to its shortest completion (None: there is none)."""

    def __init__(self, vocabulary: Vocabulary, completion: Callable[[bytes], bytes | None]) -> None:
        super().__init__(vocabulary)
        self._completion = lru_cache(completion)

    def completion(self, text: bytes) -> bytes | None:
        return self._completion(text)


@dataclass
class FakeGrammar:
    """A compiled grammar over brute-force matchers."""

    vocabulary: Vocabulary
    completion: Callable[[bytes], bytes | None]
    memory_bytes: int = 0
    completions_are_shortest: bool = False
    is_outdated: bool = False

    @cached_property
    def _matcher(self) -> PrefixMatcher:
        return PrefixMatcher(self.vocabulary, self.completion)

    def matcher(self) -> Any:
        self._matcher.reset()
        return copy.copy(self._matcher)


@dataclass
class Case:
    """A target with its truth: the probability of each sequence of tokens given the language, and Z."""

    name: str
    tokens: list[bytes]
    probs: Callable[[Tokens], Sequence[float]]
    completion: Callable[[bytes], bytes | None]
    z: float
    truth: dict[str, float] = field(default_factory=dict)
    max_tokens: int = 60

    def target(self, **options: Any) -> Target:
        vocabulary = Vocabulary([None, *self.tokens], eos_token_ids=0)
        model = FunctionModel(len(self.tokens) + 1, self.probs)
        options = {"max_tokens": self.max_tokens, "model_id": self.name, "constraint_id": self.name, **options}
        return Target(model, PROMPT, FakeGrammar(vocabulary, self.completion), vocabulary, **options)

    def store(self, **options: Any) -> PrefixStore:
        return PrefixStore(self._target, **options)

    @cached_property
    def _target(self) -> Target:
        return self.target()


def finite(words: Sequence[str]) -> Callable[[bytes], bytes | None]:
    """Completions of a finite language."""
    spelled = sorted((word.encode() for word in words), key=len)
    return lambda text: next((word[len(text) :] for word in spelled if word.startswith(text)), None)


def _bits(length: int, one: float) -> Callable[[Tokens], Sequence[float]]:
    """Independent bits (tokens 1 and 2 are "0" and "1"), then the end."""
    return lambda prefix: [0.0, 1 - one, one] if len(prefix) < length else [1.0, 0.0, 0.0]


def _binary(length: int) -> list[str]:
    return [format(number, f"0{length}b") for number in range(2**length)]


def skewed(one: float = 0.5) -> Case:
    """Case 1: {00000} and all that begins with 1."""
    words = [word for word in _binary(5) if word[0] == "1" or word == "00000"]
    z = (1 - one) ** 5 + one
    truth = {word: math.prod(one if bit == "1" else 1 - one for bit in word) / z for word in words}
    return Case("skewed", [b"0", b"1"], _bits(5, one), finite(words), z, truth)


def even(p: float = 0.5) -> Case:
    """Case 2: an even number of a's."""
    truth = {"a" * (2 * n): (1 - p * p) * p ** (2 * n) for n in range(20)}

    def completion(text: bytes) -> bytes | None:
        return b"a" * (len(text) % 2) if set(text) <= {97} else None

    return Case("even", [b"a"], lambda prefix: [1 - p, p], completion, 1 / (1 + p), truth, max_tokens=200)


def _dyck_completion(text: bytes) -> bytes | None:
    depth = 0
    for byte in text:
        depth += 1 if byte == 40 else -1
        if depth < 0:
            return None
    return b")" * depth


def dyck(a: float = 0.35, b: float = 0.45, e: float = 0.2) -> Case:
    """Case 3: balanced brackets; Z = e C(ab)."""
    c = (1 - math.sqrt(1 - 4 * a * b)) / (2 * a * b)
    truth = {}
    level = [""]
    for _ in range(7):
        for text in level:
            if _dyck_completion(text.encode()) == b"":
                truth[text] = (a * b) ** (len(text) // 2) / c
        level = [text + bracket for text in level for bracket in "()" if _dyck_completion((text + bracket).encode())
                 is not None]  # fmt: skip
    return Case("dyck", [b"(", b")"], lambda prefix: [e, a, b], _dyck_completion, e * c, truth, max_tokens=32)


def fibonacci(length: int = 10) -> Case:
    """Case 4: no 11; the target is uniform over F(length + 2) words."""
    words = [word for word in _binary(length) if "11" not in word]
    z = len(words) / 2**length
    return Case("fibonacci", [b"0", b"1"], _bits(length, 0.5), finite(words), z, {w: 1 / len(words) for w in words})


def ambiguous() -> Case:
    """Case 5: aaaa out of a and aa; the truth is over sequences of tokens, written with a bar between them."""
    p = {"a": 0.5, "aa": 0.3}
    paths = ["a|a|a|a", "a|a|aa", "a|aa|a", "aa|a|a", "aa|aa"]
    mass = {path: math.prod(p[token] for token in path.split("|")) * 0.2 for path in paths}
    z = sum(mass.values())
    truth = {path: value / z for path, value in mass.items()}
    return Case("ambiguous", [b"a", b"aa"], lambda prefix: [0.2, 0.5, 0.3], finite(["aaaa"]), z, truth)


def dead_end(tokens: Sequence[bytes] = (b"a", b"b"), words: Sequence[str] = ("az", "b")) -> Case:
    """Case 6: "a" leads nowhere for want of a token for z."""
    probs = [1.0 - 0.3 * len(tokens), *([0.3] * len(tokens))]
    return Case("dead end", list(tokens), lambda prefix: probs, finite(words), 0.3 * 0.4, {"b": 1.0})


CASES = [skewed(), skewed(0.1), even(), even(0.8), dyck(), fibonacci(), ambiguous(), dead_end()]


def spelling(store: PrefixStore, tokens: Sequence[int], case: Case) -> str:
    """How the truth of a case names a sequence of tokens."""
    texts = [store.target.vocabulary.tokens[token].decode() for token in tokens]
    return ("|" if case.name == "ambiguous" else "").join(texts)


def sequences(case: Case, limit: int = 4000) -> list[list[int]]:
    """Token sequences of the language, shortest first, by brute force; all of them where fewer than ``limit``."""
    vocabulary = case.target().vocabulary
    found, open_ = [], [[]]  # type: ignore[var-annotated]
    while open_ and len(found) < limit:
        ids = open_.pop(0)
        text = b"".join(vocabulary.tokens[i] for i in ids)
        if case.completion(text) == b"":
            found.append(ids)
        if len(ids) < case.max_tokens:
            ways = range(1, len(case.tokens) + 1)
            open_ += [[*ids, i] for i in ways if case.completion(text + vocabulary.tokens[i]) is not None]
    return found


def induced(store: PrefixStore, case: Case, ids: Sequence[int]) -> float:
    """The probability that a walk without the coin, started now, writes these tokens and ends; straight from the
    definition: within the trie by probability times bound, below it by the mask."""
    vocabulary, nodes = store.target.vocabulary, store.nodes
    node, text, prob = 0, b"", 1.0
    for depth, token in enumerate([*ids, 0]):
        row = case.probs(tuple(ids[:depth]))
        shares = {}
        for other in range(len(row)):
            fits = case.completion(text) == b"" if other == 0 else case.completion(text + vocabulary.tokens[other])
            if fits is False or fits is None:
                continue
            child = _child(store, node, other) if node >= 0 else -1
            shares[other] = row[other] * (math.exp(nodes["high"][child]) if child >= 0 else 1.0)
        prob *= shares[token] / sum(shares.values())
        node = _child(store, node, token) if node >= 0 else -1
        text += vocabulary.tokens[token]
    return prob


def _child(store: PrefixStore, node: int, token: int) -> int:
    edges = store.edges_of(node)
    return int(edges["child"][edges["token"] == token][0]) if token and token in edges["token"] else -1


def g_statistic(counts: dict[str, float], truth: dict[str, float]) -> float:
    """2 n KL(empirical || truth), unlisted texts taken together; infinite where an impossible one occurs."""
    n = sum(counts.values())
    cells = [(counts.get(text, 0.0), p) for text, p in truth.items()]
    rest, rest_p = sum(c for text, c in counts.items() if text not in truth), 1 - sum(truth.values())
    cells.append((rest, rest_p))
    if any(count and p < 1e-12 for count, p in cells):
        return math.inf
    return 2 * sum(count * math.log(count / (n * p)) for count, p in cells if count)


def null_quantile(truth: dict[str, float], n: int, repetitions: int = 2000) -> float:
    """The largest G statistic of so many samples of n from the truth itself: a parametric bootstrap."""
    return _null_quantile((*truth.values(), max(0.0, 1 - sum(truth.values()))), n, repetitions) + 1e-9


@lru_cache
def _null_quantile(truth: tuple[float, ...], n: int, repetitions: int) -> float:
    p = np.array([value for value in truth if value > 0])
    draws = np.random.default_rng(7).multinomial(n, p / p.sum(), size=repetitions).astype(float)
    ratios = np.where(draws > 0, draws / (n * p), 1.0)
    return float((2 * draws * np.log(ratios)).sum(axis=1).max())
