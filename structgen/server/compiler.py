"""Constraints of strangers, compiled safely: static limits first, then a trial in a process that may be lost.

A grammar that compiles in a trial within its limits of processor time and memory is sent here, and kept by content
(`core.constraints.cache`). One that does not is refused, and refused at once the next time. What comes of load, or
of a process that was lost, says nothing of the constraint and is not remembered. A trial has little time at first: what
takes longer begins anew after those that do not.
"""

from __future__ import annotations

import pickle
import traceback
import warnings
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from typing import Any

from structgen.core.bounded_cache import BoundedCache
from structgen.core.constraints.base import Constraint
from structgen.core.constraints.cache import COMPILED, content_key, joined
from structgen.core.constraints.composed import tag_dispatch
from structgen.core.constraints.limits import CompileLimits, check_size
from structgen.core.constraints.text import LarkConstraint, choice, gbnf, regex
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.engines.protocols import Grammar, Matcher
from structgen.core.text_sets.opening import SharedTexts
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.core.workers import Limits, LostWorker, WorkerError
from structgen.errors import ConstraintError, InternalError, StructgenError, TooComplexError
from structgen.generation.decoding.closing_budget import shortest_completion
from structgen.server.async_compiler import kept_grammar
from structgen.server.errors import RequestError, unavailable
from structgen.server.fair_pool import KINDER
from structgen.server.logs import mute_constraints
from structgen.server.sending import received, sent
from structgen.server.trials import CAN_FORK, TrialHost, TrialJob, TrialWorkers

KEPT_REFUSALS = 256
"""Constraints whose refusal is remembered."""
FIRST_SECONDS = 0.1
"""Processor time of a trial before others have their turn. Most constraints take a tenth of it."""
STALLED = 6
"""A trial that takes so many times its limit by the clock is given up: the last resort, for a process that stands
still. That says nothing of the constraint: it is answered with 503, never with 400, and is not remembered."""
EXAMPLES: tuple[Callable[[], Constraint], ...] = (
    lambda: tag_dispatch({"<a>": {"properties": {"a": {"pattern": "a"}, "b": {"type": "number"}}}}),
    lambda: choice(["a"]),
    lambda: regex("a"),
    lambda: gbnf('root ::= "a"'),
    lambda: LarkConstraint('start: "a"'),
    lambda: LarkConstraint('start: "a"', lexer="contextual"),
)
"""One constraint of each kind: what they load is there before a stranger's comes."""


class CompileService:
    """Compiles constraints for one vocabulary. Thread-safe; `compile` blocks. See ``Compiling``.

    Args:
        vocabulary: the model's tokens.
        limits: what constraints may ask for.
        workers: trials that go on at once, at each stage; one caller has all but one of them.
        sources: by name; of those that are names or indexes, trials have the texts.

    Raises:
        WorkerError: a process did not come up.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        limits: CompileLimits | None = None,
        workers: int = 1,
        sources: Mapping[str, Any] | None = None,
    ) -> None:
        self.vocabulary = vocabulary
        self.limits = limits or CompileLimits()
        self.at_once, self.each = workers, max(1, workers - 1)
        self._refused: BoundedCache[Hashable, StructgenError] = BoundedCache(KEPT_REFUSALS)
        self._trials: TrialHost | TrialWorkers
        setting = vocabulary, SharedTexts(sources or {})
        if CAN_FORK:
            self.stages: Sequence[float | None] = (min(FIRST_SECONDS, self.limits.seconds), None)
            self._trials = TrialHost(_Trial, setting)
        else:
            self.stages = (None,)
            self._trials = TrialWorkers(_Trial, setting, workers)

    def known(self, constraint: Constraint) -> Grammar | None:
        """The compiled form if it is kept.

        Raises:
            StructgenError: the constraint was refused before.
        """
        kept = kept_grammar(constraint, self.vocabulary)
        if kept is not None:
            return kept
        key = joined(content_key(constraint), self.vocabulary)
        refusal = None if key is None else self._refused.get(key)
        if refusal is not None:
            raise copy(refusal)
        return None

    def compile(
        self, constraint: Constraint, is_wanted: Callable[[], bool] = lambda: True, seconds: float | None = None
    ) -> Grammar | None:
        """The compiled form of a constraint, made in a process of its own unless it is kept.

        Args:
            is_wanted: whether somebody waits for it.
            seconds: of processor time, after which it is given up for now; None: those of the limits.

        Returns:
            None where ``seconds`` were too few.

        Raises:
            TooComplexError: it is larger than ``limits`` allow, or took more processor time or memory.
            StructgenError: what compiling it raises.
            RequestError: that is not known (503): the process was lost or stood still; or nobody wants it.
        """
        pending = self.known(constraint)
        if pending is not None:
            return pending
        key = joined(content_key(constraint), self.vocabulary)
        try:
            check_size(constraint, self.limits)
            if not is_wanted():
                raise _unwanted()
            sent = self._try(constraint, is_wanted, seconds)
            if sent is None:
                return None
            if not is_wanted():
                raise _unwanted()
            return self._kept(constraint, key, sent)
        except StructgenError as error:
            self._refuse(key, error)
            raise

    def close(self) -> None:
        """End the processes; trials under way are given up (503)."""
        self._trials.close()

    def _kept(self, constraint: Constraint, key: Hashable, sent: bytes) -> Grammar:
        """What a trial has sent, as a grammar of this process; where it could send none, compiled here."""
        if sent:
            grammar: Grammar = COMPILED.get(key, lambda: received(sent, self.vocabulary))
        else:
            grammar = constraint.compile(self.vocabulary)
        _first_mask(grammar)
        COMPILED.kept(key)  # which counts again what it takes, now that it is begun
        return grammar

    def _refuse(self, key: Hashable, error: StructgenError) -> None:
        """Remember what is a property of the constraint; a ``RequestError`` is what came of load.

        What is kept, as what is raised of it, is a copy: an error that was raised holds the frames that it went
        through, and with these the request.
        """
        if key is not None and not isinstance(error, (InternalError, RequestError)):
            self._refused.put(key, copy(error))

    def _try(self, constraint: Constraint, is_wanted: Callable[[], bool], seconds: float | None) -> bytes | None:
        """Compile in a process of its own, and make a first mask there. None: it had too little time."""
        try:
            data = pickle.dumps(constraint)
        except Exception as error:
            raise ConstraintError(f"the constraint cannot be sent to another process: {error}") from error
        most = self.limits.seconds if seconds is None else seconds
        limits = Limits(STALLED * most, self.limits.memory_bytes, most)
        try:
            answer = self._trials.run(TrialJob(data, limits, KINDER), is_wanted)
        except LostWorker as lost:
            if seconds is not None and lost.outcome in ("processor", "timeout"):
                return None
            raise _refusal(lost, self.limits) from None
        except WorkerError:
            raise unavailable("No process could be started to try the constraint in.", "compile_failed", 5.0) from None
        if isinstance(answer, StructgenError):
            raise answer
        grammar_bytes: bytes = answer
        return grammar_bytes


def _refusal(lost: LostWorker, limits: CompileLimits) -> StructgenError:
    """What a lost process says of the constraint, or that it says nothing."""
    if lost.outcome == "memory":
        most = limits.memory_bytes or 0
        return TooComplexError(
            f"compiling the constraint takes more than {most >> 20} MiB of memory; simplify it",
            limit=most,
            budget="memory_bytes",
        )
    if lost.outcome == "processor":
        return TooComplexError(
            f"compiling the constraint takes more than {limits.seconds:g} s of processor time; simplify it",
            limit=int(limits.seconds),
            budget="seconds",
        )
    if lost.outcome == "unwanted":
        return _unwanted()
    what = "stood still" if lost.outcome == "timeout" else "was lost"
    return unavailable(f"The process in which the constraint was tried {what}; ask again.", "compile_failed", 5.0)


def _unwanted() -> RequestError:
    return unavailable("Nobody waits for this constraint any more.", "compile_failed")


class _Trial:
    """What is done in a process of its own: compile, make a mask, and send what came of it.

    It is made once, in the process that trials are forked from, and loads there what compiling loads.
    """

    def __init__(self, setting: tuple[Vocabulary, SharedTexts]) -> None:
        self._vocabulary, self._shared = setting
        warnings.simplefilter("ignore")  # they name rules of requests
        mute_constraints()
        for example in EXAMPLES:
            with suppress(StructgenError):  # of vocabularies that cannot spell them
                self._compiled(example())
        COMPILED.clear()

    def __call__(self, data: bytes) -> StructgenError | bytes:
        """The error of a constraint, or its grammar; empty where that cannot be sent."""
        try:
            return sent(self._compiled(pickle.loads(data)), self._vocabulary)
        except StructgenError as error:
            return error
        except Exception as error:  # without its message, which may hold text of the request and comes to the log
            frame = traceback.extract_tb(error.__traceback__)[-1]
            return InternalError(
                f"compiling the constraint raised {type(error).__name__} ({frame.name}, line {frame.lineno})"
            )

    def _compiled(self, constraint: Constraint) -> Grammar:
        return _begun(constraint.compile(self._vocabulary))


def _begun(grammar: Grammar) -> Grammar:
    """The grammar with what all outputs begin with: the first mask, and the shortest way to close."""
    shortest_completion(_first_mask(grammar))
    return grammar


def _first_mask(grammar: Grammar) -> Matcher:
    """A matcher that has made it; the grammar keeps what was found."""
    matcher = grammar.matcher()
    matcher.fill_next_token_bitmask(allocate_token_bitmask(1, grammar.vocabulary.size))
    return matcher
