"""What any matcher must do: masks are acceptance, no dead ends, undoing is exact, and it ends well.

`Wrong` says what went wrong; the areas turn it into a case.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.engines.laws import BrokenLawError, check_state, mask_of
from structgen.core.engines.protocols import Grammar, Matcher

Judge = Callable[[bytes], str | None]
"""What is wrong with a whole text; None: nothing."""


class Wrong(Exception):
    """The engine did what it must not: ``kind`` in a word or two, and the text at which it did."""

    def __init__(self, kind: str, detail: str, text: bytes = b"") -> None:
        self.kind, self.detail, self.text = kind, detail, text
        super().__init__(f"{kind}: {detail}; text {text!r}")


def accepts(grammar: Grammar, text: bytes) -> bool:
    """Whether a whole text is in the language."""
    matcher = grammar.matcher()
    return matcher.accept_bytes(text) and matcher.is_accepting()


class Walk:
    """A random text by masks. ``alphabet``: bytes that are taken more often."""

    def __init__(self, grammar: Any, rng: random.Random, judge: Judge, alphabet: bytes) -> None:
        self.grammar, self.rng, self.judge, self.alphabet = grammar, rng, judge, frozenset(alphabet)
        self.vocabulary = grammar.vocabulary
        self.matcher: Matcher = grammar.matcher()
        self.text = b""
        self.texts = 0

    def run(self, steps: int, checks: float = 0.12) -> bytes:
        """Walk, check, and end the text. Returns it.

        Raises:
            Wrong: something is.
        """
        masks, done = [], 0
        for _ in range(steps):
            allowed = mask_of(self.matcher)
            masks.append(allowed)
            token = self._choose(allowed)
            if self.rng.random() < checks:
                self.compare(allowed)
            if self.rng.random() < checks:
                self.finish(self.matcher.fork())
            if token is None:
                break
            if not self.matcher.accept_token(token):
                raise Wrong("mask = accept", f"token {token} {self.vocabulary.tokens[token]!r} is refused", self.text)
            self.text += self.vocabulary.tokens[token]
            done += 1
        whole = self.finish(self.matcher.fork())
        self._undo(masks, done)
        return whole

    def _choose(self, allowed: npt.NDArray[np.bool_]) -> int | None:
        found = np.flatnonzero(allowed).tolist()
        if not found:
            raise Wrong("dead end", "no token is allowed", self.text)
        ends = set(self.vocabulary.eos_token_ids)
        if allowed[list(ends)].any() != self.matcher.is_accepting():
            raise Wrong("mask = accept", "end of sequence and is_accepting differ", self.text)
        ids = [token for token in found if token not in ends]
        if not ids or (self.matcher.is_accepting() and self.rng.random() < 0.1):
            return None
        tokens = self.vocabulary.tokens
        likely = [token for token in ids if tokens[token][0] in self.alphabet] if self.rng.random() < 0.85 else []
        chosen: int = self.rng.choice(likely or ids)
        return chosen

    def compare(self, allowed: npt.NDArray[np.bool_]) -> None:
        """The laws that hold in every state (`core.engines.laws`), and that the mask is the one seen before."""
        try:
            again = check_state(self.matcher, text=self.text)
        except BrokenLawError as error:
            raise Wrong(error.law, str(error), self.text) from error
        if not np.array_equal(again, allowed):
            raise Wrong("mask = accept", "another mask than a moment ago", self.text)

    def finish(self, matcher: Matcher) -> bytes:
        """The text with a completion; both are checked."""
        forced = matcher.forced_bytes()
        bound = matcher.completion_bound()
        rest = matcher.shortest_completion()
        whole = self.text + rest
        if bound < len(rest):
            raise Wrong("completion bound", f"it is {bound}, but {rest!r} completes", self.text)
        if forced and not rest.startswith(forced):
            raise Wrong("forced bytes", f"{forced!r} are forced, but {rest!r} completes", self.text)
        if not matcher.accept_bytes(rest):
            raise Wrong("completion refused", f"{rest!r}", self.text)
        if not matcher.is_accepting():
            raise Wrong("completion does not complete", f"{rest!r}", self.text)
        self.texts += 1
        fault = self.judge(whole)
        if fault is not None:
            raise Wrong(fault, "a text that the engine wrote", whole)
        return whole

    def _undo(self, masks: list[npt.NDArray[np.bool_]], done: int) -> None:
        """Back a random number of the ``done`` steps; ``masks`` are those before each step."""
        if not done or self.rng.random() < 0.5:
            return
        steps = self.rng.randint(1, done)
        fork = self.matcher.fork()
        fork.rollback(steps)
        if not np.array_equal(mask_of(fork), masks[done - steps]):
            raise Wrong("rollback", f"another mask {steps} steps back", self.text)
