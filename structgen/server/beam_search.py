"""Beam searches of a server: a call of the model at a time, one search after the other, beside what is drawn."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from structgen.core.engines.captures.capturing import captures_of
from structgen.errors import QueueError, StructgenError
from structgen.generation.decoding.hypothesis import END, Hypothesis, Rules
from structgen.generation.decoding.stats import GenerationStats
from structgen.generation.models.prefix_reader import make_reader
from structgen.generation.search.beam import Group, check_some
from structgen.generation.search.results import merged
from structgen.generation.search.space import SearchNode, Space
from structgen.server.errors import RequestError
from structgen.server.sequences import SequenceEnd, SequenceEvent, SequenceRequest, SequenceTimes, TokenChoice


class BeamTask:
    """The beams of one request.

    Attributes:
        request: it; its ``beams`` are given.
        beams: those.
        seconds: after which they are closed as soon as they can be.
    """

    def __init__(self, request: SequenceRequest, root: Hypothesis) -> None:
        assert request.beams is not None
        self.request, self.beams, self._root = request, request.beams, root
        self.seconds = request.seconds
        self._submitted = time.monotonic() if request.arrived is None else request.arrived
        self._admitted = 0.0
        self._is_hurried = False
        self._space: Space | None = None

    def waits_too_long(self) -> bool:
        """Whether it was not begun in time."""
        limit = self.request.queue_seconds
        return limit is not None and not self._admitted and time.monotonic() - self._submitted > limit

    def events(self, model: Any) -> Iterator[SequenceEvent | None]:
        """A call of the model at a time; at last its event, with ``others``.

        Raises:
            RequestError: fewer outputs end than are asked for.
            IncompleteOutputError: none does.
        """
        self._admitted = time.monotonic()
        reader = make_reader(model, self.request.prompt_ids, self._root.remaining, self.request.salt)
        space = Space(reader, self._root, self.beams.method.scoring, lambda one: one.data)
        group = Group(space, self.beams.method, self.beams.method.beams(self.beams.count))
        for _ in group.steps():
            yield None
            if self._is_late() and group.run:
                yield from self._closed(space, group)
                break
        yield self._event(space, group)

    def _is_late(self) -> bool:
        return self.seconds is not None and time.monotonic() - self._submitted > self.seconds

    def _closed(self, space: Space, group: Group) -> Iterator[None]:
        """The beams that run, by the shortest way to their ends; a call of the model a token."""
        self._is_hurried = True
        running: list[SearchNode | None] = [entry.node for entry in group.run]
        while running := [node for node in running if node is not None]:
            for node in running:
                if node.is_finished:
                    group.done.append((self.beams.method.final(node), node))
            running = [node for node in running if not node.is_finished]
            space.expand([node for node in running if node is not None])
            running = [space.planned(node) for node in running if node is not None]
            yield None

    def _event(self, space: Space, group: Group) -> SequenceEvent:
        check_some(group.done)
        finished = sorted(group.done, key=lambda pair: -pair[0])
        texts = [node.hypothesis.text for _, node in finished]
        best = [one.node for one in merged(finished, [node.hypothesis.data for _, node in finished], texts)]
        spellings = [node for _, node in finished if all(node is not one for one in best)]
        chosen = [*best, *spellings][: self.beams.count]
        if len(chosen) < self.beams.count:
            raise RequestError.at(
                ("n",),
                f"n is {self.beams.count}, and the beams end in {len(chosen)} outputs: the constraint has no more, or "
                "best_of is too low; lower n, or raise best_of",
            )
        first, *others = [self._of(space, node) for node in chosen]
        return SequenceEvent(first.text, first.tokens, first.end, others=tuple(others))

    def _of(self, space: Space, node: SearchNode) -> SequenceEvent:
        now, hypothesis = time.monotonic(), node.hypothesis
        prompt = len(self.request.prompt_ids)
        stats = GenerationStats(prompt, len(hypothesis.tokens), target_forwards=space.reader.calls)
        end = SequenceEnd(
            "length" if node.is_shaped else "stop",
            node.log_local,
            hypothesis.tokens,
            stats,
            times=SequenceTimes(self._submitted, self._admitted, now, now),
            is_hurried=self._is_hurried,
            captures=captures_of(hypothesis.grammar, hypothesis.data, is_finished=True),
        )
        return SequenceEvent(hypothesis.text, tuple(self._tokens(space, hypothesis)), end)

    def _tokens(self, space: Space, hypothesis: Hypothesis) -> Iterator[TokenChoice]:
        """Its tokens, with the likeliest of each place: what of them the search kept."""
        path = [space.root]
        for token in hypothesis.tokens:
            child = path[-1].children[token]
            assert child is not None
            path.append(child)
        for (node, child), token in zip(pairwise(path), hypothesis.tokens, strict=True):
            after = node.expansion
            assert after is not None
            kept = [
                (int(one), float(log_prob) - after.log_mass)
                for one, log_prob in zip(after.tokens, after.log_probs, strict=True)
                if one != END
            ]
            yield TokenChoice(token, child.log_local - node.log_local, tuple(kept[: self.request.top_logprobs]))


class BeamQueue:
    """Searches, of which one runs. As ``OutputWriter``, in one thread."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._waiting: deque[BeamTask] = deque()
        self._running: tuple[BeamTask, Iterator[SequenceEvent | None]] | None = None

    @property
    def waiting(self) -> int:
        """Searches that were not begun."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Whether one was."""
        return int(self._running is not None)

    def submit(self, request: SequenceRequest, root: Hypothesis) -> BeamTask:
        """Take one on."""
        task = BeamTask(request, root)
        self._waiting.append(task)
        return task

    def cancel(self, task: BeamTask) -> None:
        """Forget one."""
        if self._running is not None and self._running[0] is task:
            self._running = None
        elif task in self._waiting:
            self._waiting.remove(task)

    def hurry(self) -> None:
        """Close all soon."""
        for task in [*self._waiting, *([self._running[0]] if self._running else [])]:
            task.seconds = 0.0

    def clear(self) -> None:
        """Forget all."""
        self._waiting.clear()
        self._running = None

    def step(self) -> list[tuple[BeamTask, SequenceEvent]]:
        """A call of the model for the one that runs; those that have ended, or have waited for too long."""
        late = [task for task in self._waiting if task.waits_too_long()]
        for task in late:
            self._waiting.remove(task)
        events = [(task, _failed(QueueError("The request has waited for too long; try again later."))) for task in late]
        if self._running is None and self._waiting:
            task = self._waiting.popleft()
            self._running = task, task.events(self._model)
        if self._running is not None:
            task, steps = self._running
            try:
                event = next(steps)
            except (StructgenError, MemoryError) as error:
                event = _failed(error)
            if event is not None:
                self._running = None
                events.append((task, event))
        return events


def _failed(error: Exception) -> SequenceEvent:
    return SequenceEvent("", error=error)


def root_of(request: SequenceRequest) -> Hypothesis:
    """What a search begins with. In any thread.

    Raises:
        IncompleteOutputError: not even the shortest output fits in the budget.
    """
    assert request.grammar is not None
    root = Hypothesis.root(Rules(request.grammar, request.stop), request.max_new_tokens)
    root.check_closes()
    return root
