"""Many walks through a store at once, in an order that keeps what is drawn exact."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.aligned import calls as k
from structgen.errors import UnsatisfiableTargetError
from structgen.generation.target.results import Budget, Limit
from structgen.generation.target.store import PrefixStore


@dataclass(frozen=True, slots=True)
class Policy:
    """How a walk chooses: by learned bounds or by the mask only; with the survival coin or with a weight."""

    learned: bool
    coin: bool


class Outcome(NamedTuple):
    """How one attempt ended: ``node`` is where the text ends, -1 if there is none."""

    status: int
    node: int
    log_weight: float
    log_prob: float
    steps: int


class Meter:
    """What a draw has used of its budget."""

    def __init__(self, store: PrefixStore, budget: Budget | None) -> None:
        self._store, self._budget = store, budget or Budget()
        self._tokens, self._calls = store.reader.tokens, store.reader.calls
        self._start = time.perf_counter()
        self.attempts = 0

    @property
    def model_tokens(self) -> int:
        """Tokens read since the start."""
        return self._store.reader.tokens - self._tokens

    @property
    def model_calls(self) -> int:
        """Calls made since the start."""
        return self._store.reader.calls - self._calls

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.perf_counter() - self._start

    def exceeded(self) -> Limit | None:
        """The budget that is used up, attempts aside (those in flight still count)."""
        return self._budget.used_up(self.model_tokens, self.seconds)

    def room(self, wanted: int) -> int:
        """How many of the wanted attempts may start."""
        limit = self._budget.attempts
        return wanted if limit is None else max(0, min(wanted, limit - self.attempts))


class Walks:
    """Attempts in flight over one store.

    Attempts are numbered as they start, each with a random number generator of its own (so an outcome does not depend
    on who else is in flight), and their outcomes are handed out **in that order**: the first to finish are those that
    ask the model least, and taking them first would favour short and well-known texts.

    Args:
        width: most attempts that may wait for the model at once. More of them share a call; but they know less of
            each other, so more are rejected.
    """

    def __init__(self, store: PrefixStore, policy: Policy, meter: Meter, seed: int, first: int, width: int) -> None:
        self._store, self._policy, self._meter = store, policy, meter
        self._seed, self._next, self._width = seed, first, width
        self._whole = np.zeros((0, 4), dtype=np.int64)
        self._real = np.zeros((0, 3))
        self._states = np.zeros(0, dtype=np.uint64)
        self._numbers: list[int] = []
        self.limit: Limit | None = None

    @property
    def next_attempt(self) -> int:
        """The number of the next attempt to start."""
        return self._next

    def outcomes(self, wanted: Callable[[int], int]) -> Iterator[Outcome]:
        """Outcomes in order; ends when the budget does (``limit`` says which).

        Args:
            wanted: asked before each round for how many attempts in flight would be useful, given how many texts lie
                ready after an attempt that still waits.

        Raises:
            UnsatisfiableTargetError: no text fits the target.
        """
        store, ready, emitted = self._store, dict[int, Outcome](), self._next
        while True:
            self.limit = self._meter.exceeded()
            if self.limit:
                return
            if not store.node_count:
                store.expand([(-1, -1)])
            self._check()
            self._start(wanted(sum(outcome.node >= 0 for outcome in ready.values())))
            if not self._numbers:
                self.limit = "attempts"
                return
            self._step(ready)
            while emitted in ready:
                yield ready.pop(emitted)
                emitted += 1
            self._expand()

    def _check(self) -> None:
        if self._store.nodes["high"][0] == -np.inf:
            target = self._store.target
            raise UnsatisfiableTargetError(
                f"No text of the constraint can be written: every path is a dead end, or the model rules it out, or "
                f"it takes more than max_tokens={target.max_tokens} tokens."
            )

    def _start(self, wanted: int) -> None:
        """Start attempts up to the number that may be in flight."""
        waiting = len(self._numbers)
        count = self._meter.room(max(0, min(wanted, self._width) - waiting))
        if count <= 0:
            return
        whole, real = np.zeros((count, 4), dtype=np.int64), np.zeros((count, 3))
        whole[:, k.W_EDGE] = -1
        if self._policy.learned:
            real[:, [k.W_BOUND, k.W_WEIGHT]] = self._store.nodes["high"][0]
        numbers = range(self._next, self._next + count)
        self._whole, self._real = np.concatenate([self._whole, whole]), np.concatenate([self._real, real])
        self._states = np.concatenate([self._states, attempt_states(self._seed, numbers)])
        self._numbers += numbers
        self._next += count
        self._meter.attempts += count

    def _step(self, ready: dict[int, Outcome]) -> None:
        """Move all walks on and put the ended ones aside."""
        store, whole, real = self._store, self._whole, self._real
        store.clock += 1
        nodes, edges = store.nodes, store.edges
        k.walk(
            whole, real, self._states, self._policy.learned, self._policy.coin,
            nodes["start"], nodes["count"], nodes["high"], nodes["mass"], nodes["used"], edges["logp"],
            edges["child"], store.clock,
        )  # fmt: skip
        status = whole[:, k.W_STATUS].tolist()
        rows = zip(self._numbers, whole.tolist(), real.tolist(), strict=True)
        for number, (node, _, how, steps), (_, weight, logp) in rows:
            if how != k.WAITING:
                finished = how == k.FINISHED
                ready[number] = Outcome(how, node if finished else -1, weight, logp, steps)
        keep = [i for i, how in enumerate(status) if how == k.WAITING]
        self._whole, self._real, self._states = whole[keep], real[keep], self._states[keep]
        self._numbers = [self._numbers[i] for i in keep]

    def _expand(self) -> None:
        """Ask the model about all that is waited for, in the order of the attempts."""
        if self._numbers:
            requests = [(node, edge) for node, edge, *_ in self._whole.tolist()]
            self._store.expand(requests, protect={node for node, _ in requests})


def attempt_states(seed: int, numbers: range) -> npt.NDArray[np.uint64]:
    """The generator of each attempt, a function of seed and number: SplitMix64's output function over a sequence."""
    start = int(np.random.default_rng(seed).integers(0, 1 << 63))
    z = np.uint64(start) + np.arange(numbers.start, numbers.stop, dtype=np.uint64) * np.uint64(0xD1342543DE82EF95)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
