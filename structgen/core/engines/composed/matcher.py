"""The matcher of a composed grammar."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from structgen.core.engines.composed import masks
from structgen.core.engines.composed.answers import Answers
from structgen.core.engines.composed.configuration import Configuration
from structgen.core.engines.composed.steps import ConfigurationSteps
from structgen.core.engines.matcher import BaseMatcher
from structgen.core.regions import PartialParse
from structgen.errors import CompletionTooLongError, GenerationError, MatcherStateError

if TYPE_CHECKING:
    from structgen.core.engines.composed.grammar import ComposedGrammar

# Equal configurations are merged at the end of each piece, so long texts are read in pieces.
PIECE = 16
MAX_ASKED_STEPS = 256
"""Steps in which a completion is sought that monitors are asked about."""

_Snapshot = list[tuple[Configuration, int]]


class ComposedMatcher(BaseMatcher["ComposedGrammar"]):
    """One output in progress; see `structgen.core.engines.protocols.Matcher`. Make one with `ComposedGrammar.matcher`.

    Its state is a set of configurations: at every point where an embedded text may begin or end, one goes on in it and
    one in the grammar around.
    """

    def __init__(self, grammar: ComposedGrammar) -> None:
        super().__init__(grammar)
        self._answers = Answers(grammar) if grammar.is_monitored else None
        self._steps = ConfigurationSteps(grammar, self._answers)
        self._text = b""  # so far, where monitors are asked what may follow it
        self._configurations = self._steps.start()
        self._history: list[tuple[_Snapshot, bool, int]] = []
        self._check_answers()

    @property
    def stats(self) -> dict[str, int]:
        """Counts of what budgets gave up, embedded grammars' included; ``dropped_alternatives``: configurations.

        Where monitors are asked also ``empty_suggestions`` and ``monitor_timeouts``, shared by forks.
        """
        total = {"dropped_alternatives": self._steps.dropped}
        if self._answers is not None:
            total |= self._answers.stats
        seen = {id(b): b for snapshot, _, _ in self._history for b, _ in snapshot}
        seen.update({id(b): b for b in self._configurations})
        for configuration in seen.values():
            for name, count in configuration.matcher.stats.items():
                total[name] = total.get(name, 0) + count
        return total

    def _fill(self, bitmask: npt.NDArray[np.int32], index: int, address: int) -> None:
        masks.fill(self._steps, self._configurations, self._text, self.is_accepting(), bitmask, index)
        self._check_answers()

    def _accept_token(self, token_id: int) -> bool:
        if self._terminated:
            return False
        vocabulary = self._grammar.vocabulary
        before = [(configuration, configuration.steps) for configuration in self._configurations]
        data = vocabulary.tokens[token_id]
        if not data:
            if token_id not in vocabulary.eos_token_ids or not self.is_accepting():
                return False
            self._terminated = True
        else:
            successors = self._steps.advance(self._configurations, data, token_id, self._text)
            self._check_step(before)
            if not successors:
                return False
            self._configurations = successors
        self._keep(before, False, data)
        return True

    def _check_step(self, before: _Snapshot) -> None:
        """Raise what a monitor has raised; then all is as it was."""
        try:
            self._check_answers()
        except GenerationError:
            self._restore(before)
            raise

    def _keep(self, before: _Snapshot, ended: bool, data: bytes) -> None:
        self._history.append((before, ended, len(self._text)))
        if self._answers is not None:
            self._text += data

    def _accept(self, data: bytes) -> bool:
        if not isinstance(data, bytes):
            data = bytes(memoryview(data))
        if self._terminated and data:
            return False
        before, dropped = (
            [(configuration, configuration.steps) for configuration in self._configurations],
            self._steps.dropped,
        )
        for start in range(0, len(data), PIECE):
            text = self._text + data[:start] if self._answers is not None else b""
            self._configurations = self._steps.advance(self._configurations, data[start : start + PIECE], text=text)
            self._check_step(before)
            if not self._configurations:
                self._restore(before)
                self._steps.dropped = dropped
                return False
        self._keep(before, self._terminated, data)
        return True

    def _rollback(self, steps: int) -> None:
        """O(configurations)."""
        if not 0 <= steps <= len(self._history):
            raise MatcherStateError.past_the_start(steps, len(self._history))
        if steps:
            before, self._terminated, length = self._history[-steps]
            self._text = self._text[:length]
            del self._history[-steps:]
            self._restore(before)

    def _fork(self) -> ComposedMatcher:
        """O(steps)."""
        twins: dict[int, Configuration] = {}

        def twin_of(configuration: Configuration) -> Configuration:
            if id(configuration) not in twins:
                twins[id(configuration)] = configuration.fork()
            return twins[id(configuration)]

        twin = self._bare([twin_of(configuration) for configuration in self._configurations])
        twin._history = [([(twin_of(b), n) for b, n in before], ended, end) for before, ended, end in self._history]
        return twin

    def _copy(self) -> ComposedMatcher:
        """O(configurations)."""
        return self._bare([configuration.copy() for configuration in self._configurations])

    def is_accepting(self) -> bool:
        """See `Matcher.is_accepting`."""
        return not self._terminated and any(
            b.content is None and b.matcher.is_accepting() for b in self._configurations
        )

    def _mark_next_bytes(self, out: npt.NDArray[np.int32]) -> None:
        following = np.zeros(256, np.bool_)
        for configuration in self._configurations:
            following |= configuration.matcher.next_bytes()
        out[:] = np.packbits(following, bitorder="little").view(np.int32)

    def shortest_completion(self) -> bytes:
        """See `Matcher.shortest_completion`: the shortest that one of the configurations writes."""
        if self._terminated or self.is_accepting():
            return b""
        return self._shortest() if self._answers is None else self._shortest_asked()

    def _shortest(self) -> bytes:
        """The shortest completion where no monitor is asked."""
        completions, refused = [], None
        for configuration in self._configurations:
            try:
                completions.append(configuration.shortest_completion())
            except CompletionTooLongError as error:
                refused = error
        if refused and not completions:
            raise refused
        return min(completions, key=len)

    def _shortest_asked(self) -> bytes:
        """A completion in which monitors have a say: from place to place, as far as what is short is allowed.

        Raises:
            CompletionTooLongError: none of so many steps or bytes completes it.
        """
        walker = self
        for _ in range(MAX_ASKED_STEPS):
            texts = (configuration.shortest_completion() for configuration in walker._configurations)
            steps = (walker._led(text) for text in sorted(texts, key=len))
            step = next((step for step in steps if len(step._text) > len(walker._text)), None)
            if step is None:
                break
            if step.is_accepting():
                self._check_answers()
                return step._text[len(self._text) :]
            walker = step
        raise CompletionTooLongError(f"no text of {MAX_ASKED_STEPS} names completes the output")

    def _led(self, text: bytes) -> ComposedMatcher:
        """A copy after as much of a text as is taken, or until the output may stop."""
        walker = self._copy()
        for byte in text:
            if not walker._accept(bytes([byte])) or walker.is_accepting():
                break
        return walker

    def _check_answers(self) -> None:
        """Raise what a monitor has raised."""
        if self._answers is not None:
            self._answers.check()

    def completion_bound(self) -> int:
        """See `Matcher.completion_bound`: the least of the configurations' own."""
        if self._terminated or self.is_accepting():
            return 0
        if self._answers is not None:
            return super().completion_bound()
        return min(configuration.completion_bound() for configuration in self._configurations)

    def state_key(self, *, same_matcher: bool = False) -> Hashable:
        """See `Matcher.state_key`."""
        keys = frozenset(
            configuration.own_key() if same_matcher else configuration.key() for configuration in self._configurations
        )
        return None if None in keys else (keys, self._terminated, self._text)

    def partial_parses(self) -> list[PartialParse] | None:
        """See `Matcher.partial_parses`. O(configurations)."""
        if not self._grammar.has_regions:
            return None
        return [parse for configuration in self._configurations for parse in configuration.partial_parses()]

    def _restore(self, snapshot: _Snapshot) -> None:
        for configuration, steps in snapshot:
            configuration.go_back(steps)
        self._configurations = [configuration for configuration, _ in snapshot]

    def _bare(self, configurations: list[Configuration]) -> ComposedMatcher:
        twin = ComposedMatcher.__new__(ComposedMatcher)
        BaseMatcher.__init__(twin, self._grammar)
        twin._configurations, twin._history = configurations, []
        twin._steps = ConfigurationSteps(self._grammar, self._answers)
        twin._steps.dropped, twin._terminated = self._steps.dropped, self._terminated
        twin._answers, twin._text = self._answers, self._text
        return twin
