"""Random languages and models so small that every output can be listed by accepting token after token."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

import structgen
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import StructgenError
from structgen.generation.decoding.hypothesis import Hypothesis, Rules
from structgen.generation.models.prefix_reader import make_reader
from structgen.generation.models.tiny import TinyModel
from structgen.generation.search.method import Method
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.space import Space

Tokens = tuple[int, ...]
PROMPT = [1, 2]
VOCABULARY = Vocabulary([None, b"a", b"b", b"c", b"ab", b"bc"], eos_token_ids=0)


def expression(rng: random.Random, depth: int = 3) -> str:
    """A random regular expression over a, b, c."""
    kind = rng.choice(["letter", "letter", "and", "and", "or", "repeat", "class"]) if depth else "letter"
    if kind == "letter":
        return rng.choice(["a", "b", "c", "ab", "bc"])
    if kind == "class":
        return rng.choice(["[ab]", "[abc]", "[bc]"])
    one = expression(rng, depth - 1)
    if kind == "repeat":
        return f"({one})" + rng.choice(["?", "*", "+", "{1,2}"])
    other = expression(rng, depth - 1)
    return f"({one}|{other})" if kind == "or" else one + other


@dataclass
class World:
    """A model, a language, and a budget.

    Attributes:
        limit: tokens of an output, the end not counted.
    """

    grammar: Any
    model: Any
    limit: int
    vocabulary: Vocabulary = VOCABULARY

    def space(self, method: Method, **options: Any) -> Space:
        root = Hypothesis.root(Rules(self.grammar, **options), self.limit)
        return Space(
            make_reader(self.model, PROMPT, self.limit, states=method.needs_states),
            root,
            method.scoring,
            budget=method.limits,
        )

    def run(self, method: Method, n: int = 1, seed: int = 0, **options: Any) -> SearchOutcome:
        return method.run(self.space(method, **options), n, np.random.default_rng(seed))

    def log_probs(self, prefix: Tokens) -> Any:
        logits = self.model.prefill([[*PROMPT, *prefix]])[0][0].astype(float)
        return logits - np.logaddexp.reduce(logits)

    def allowed(self, prefix: Tokens) -> list[int]:
        """By trying each token; the end is 0."""
        matcher = self.grammar.matcher()
        assert all(matcher.accept_token(token) for token in prefix)
        tokens = range(self.vocabulary.size)
        return [token for token in tokens if matcher.accept_token(token) and (matcher.rollback(1) or True)]

    @property
    def closes(self) -> bool:
        """Whether some output is known to fit in the budget: `Generator.search` says so where none is."""
        return Hypothesis.root(Rules(self.grammar), self.limit).closes

    def choices(self, prefix: Tokens) -> list[int]:
        """What is allowed within the budget: at its end, nothing but the end."""
        return [token for token in self.allowed(prefix) if token == 0 or len(prefix) < self.limit]

    @cached_property
    def outputs(self) -> dict[Tokens, tuple[float, float]]:
        """Each output with its log-probability: the model's, and that masked and renormalised."""
        outputs = dict[Tokens, tuple[float, float]]()
        waiting: list[tuple[Tokens, float, float]] = [((), 0.0, 0.0)]
        while waiting:
            prefix, whole, local = waiting.pop()
            log_probs, allowed = self.log_probs(prefix), self.choices(prefix)
            mass = np.logaddexp.reduce([log_probs[token] for token in allowed])
            for token in allowed:
                log_prob = float(log_probs[token])
                if token == 0:
                    outputs[prefix] = whole + log_prob, local + log_prob - mass
                elif len(prefix) < self.limit:
                    waiting.append(((*prefix, token), whole + log_prob, local + log_prob - mass))
        return outputs

    @cached_property
    def known(self) -> dict[Tokens, tuple[float, float]]:
        """The outputs that methods find which follow what is known to close in time: all but those that some beginning
        leads to whose shortest completion, in bytes, takes too many tokens."""
        return {tokens: pair for tokens, pair in self.outputs.items() if self._is_known(tokens)}

    def _is_known(self, tokens: Tokens) -> bool:
        hypothesis: Hypothesis | None = Hypothesis.root(Rules(self.grammar), self.limit)
        for token in tokens:
            assert hypothesis is not None
            hypothesis = hypothesis.extended(token)
            if hypothesis is None or not hypothesis.closes:
                return False
        return True


def world(seed: int, limit: int = 5, **model: Any) -> World:
    """A random one, with at least one output."""
    rng = random.Random(seed)
    while True:
        try:
            grammar = structgen.compile_regex(expression(rng), VOCABULARY)
        except StructgenError:
            continue
        made = World(grammar, TinyModel(6, seed=seed, **({"scale": 1.0} | model)), limit)
        if made.outputs:
            return made


def tokens_of(outcome: SearchOutcome) -> list[Tokens]:
    return [node.hypothesis.tokens for _, node in outcome.finished]


def gap_of(values: list[float]) -> float:
    """The least difference between neighbours."""
    ordered = sorted(values)
    return min((b - a for a, b in pairwise(ordered)), default=math.inf)
