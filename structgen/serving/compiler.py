"""Constraints of strangers, compiled safely: static limits first, then a trial in a process that may be lost.

A grammar that compiles in a trial within its limits of processor time and memory is compiled here, once for all who ask
for it, and kept by content (`structgen.constraints.cache`). One that does not is refused, and refused at once the next
time. What comes of load, or of a process that was lost, says nothing of the constraint and is not remembered.
"""

from __future__ import annotations

import pickle
import threading
import traceback
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from itertools import islice
from queue import SimpleQueue
from typing import Any, TypeAlias

from structgen.constraints.base import Constraint
from structgen.constraints.cache import COMPILED, content_key, joined
from structgen.decoding.closing import shortest_completion
from structgen.engines.bitmask import allocate_token_bitmask
from structgen.engines.protocols import Grammar
from structgen.errors import ConstraintError, GrammarWarning, InternalError, StructgenError, TooComplexError
from structgen.serving.async_compiler import kept_grammar
from structgen.serving.errors import RequestError, unavailable
from structgen.vocabulary.vocabulary import Vocabulary
from structgen.workers import Limits, LostWorker, Watch, Worker, WorkerError

KEPT_REFUSALS = 256
"""Constraints whose refusal is remembered."""
STALLED = 6
"""A trial that takes so many times its limit by the clock is given up, whatever holds it up."""
COMPOSED = 10
"""How many times the values of one constraint those of a composed one may be."""


@dataclass(frozen=True)
class CompileLimits:
    """What a constraint may ask for.

    Attributes:
        text_bytes: characters of all its texts and names together, UTF-8 encoded.
        depth: nesting of its values.
        nodes: values in it; of one that is composed of others, in each, and ten times as many in all.
        pattern_length: code points of one regular expression.
        seconds: of processor time for compiling it, a first mask and the shortest text.
        memory_bytes: resident memory of the process in which that is tried.
    """

    text_bytes: int = 256 << 10
    depth: int = 64
    nodes: int = 20_000
    pattern_length: int = 2_000
    seconds: float = 10.0
    memory_bytes: int | None = 2 << 30

    @cached_property
    def whole(self) -> CompileLimits:
        """What a constraint may ask for that is composed of others, if it is looked at as one."""
        return replace(self, nodes=COMPOSED * self.nodes)


class CompileService:
    """Compiles constraints for one vocabulary. Thread-safe; `compile` blocks. See ``Compiling``.

    Args:
        vocabulary: the model's tokens.
        limits: what constraints may ask for.
        workers: processes for trials; each holds the vocabulary. One caller has all but one of them.

    Raises:
        WorkerError: a process did not come up.
    """

    def __init__(self, vocabulary: Vocabulary, limits: CompileLimits | None = None, workers: int = 1) -> None:
        self.vocabulary = vocabulary
        self.limits = limits or CompileLimits()
        self.at_once, self.each = workers, max(1, workers - 1)
        self._idle: SimpleQueue[Worker] = SimpleQueue()
        self._lock = threading.Lock()
        self._refused: OrderedDict[Hashable, StructgenError] = OrderedDict()
        seconds = self.limits.seconds
        guard = Limits(STALLED * seconds, self.limits.memory_bytes, seconds)
        self._workers = [Worker(_Trials, vocabulary, guard) for _ in range(workers)]
        for worker in self._workers:
            self._idle.put(worker)

    def known(self, constraint: Constraint) -> Grammar | None:
        """The compiled form if it is kept.

        Raises:
            StructgenError: the constraint was refused before.
        """
        kept = kept_grammar(constraint, self.vocabulary)
        if kept is not None:
            return kept
        key = joined(content_key(constraint), self.vocabulary)
        with self._lock:
            refusal = None if key is None else self._refused.get(key)
        if refusal is not None:
            raise refusal.with_traceback(None)
        return None

    def compile(self, constraint: Constraint, is_wanted: Callable[[], bool] = lambda: True) -> Grammar:
        """The compiled form of a constraint, tried out elsewhere first unless it is kept.

        Args:
            is_wanted: whether somebody waits for it.

        Raises:
            TooComplexError: it is larger than ``limits`` allow, or took more processor time or memory.
            StructgenError: what compiling it raises.
            RequestError: it could not be told (503): the process was lost or stood still; or nobody wants it.
        """
        known = self.known(constraint)
        if known is not None:
            return known
        key = joined(content_key(constraint), self.vocabulary)
        try:
            check_size(constraint, self.limits)
            self._try(constraint, key, is_wanted)
            if not is_wanted():
                raise _unwanted()
            grammar = _begun(constraint.compile(self.vocabulary))
            COMPILED.kept(key)  # which counts again what it takes, now that it is begun
            return grammar
        except StructgenError as error:
            self._refuse(key, error)
            raise

    def close(self) -> None:
        """End the processes; trials under way are given up (503)."""
        for worker in self._workers:
            worker.close()

    def _refuse(self, key: Hashable, error: StructgenError) -> None:
        """Remember what is a property of the constraint; a ``RequestError`` is what came of load."""
        if key is None or isinstance(error, (InternalError, RequestError)):
            return
        with self._lock:
            self._refused[key] = error
            while len(self._refused) > KEPT_REFUSALS:
                self._refused.popitem(last=False)

    def _try(self, constraint: Constraint, key: Hashable, is_wanted: Callable[[], bool]) -> None:
        """Compile in a process of its own, and make a first mask there."""
        try:
            job = pickle.dumps(constraint)
        except Exception as error:
            raise ConstraintError(f"the constraint cannot be sent to another process: {error}") from error
        worker = self._idle.get()
        try:
            if key is not None and COMPILED.peek(key) is not None:
                return
            if not is_wanted():
                raise _unwanted()
            answer = worker.run(job, is_wanted)
        except LostWorker as lost:
            raise _refusal(lost, self.limits) from None
        except WorkerError:
            raise unavailable("No process could be started to try the constraint in.", "compile_failed", 5.0) from None
        finally:
            self._idle.put(worker)
        if answer is not None:
            raise answer


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


class _Trials:
    """The server in the process: compiles, makes a mask, and forgets."""

    def __init__(self, vocabulary: Vocabulary, watch: Watch) -> None:
        self.greeting = "ready"
        self._vocabulary = vocabulary
        warnings.filterwarnings("ignore", category=GrammarWarning)  # they name rules of requests

    def __call__(self, job: bytes) -> StructgenError | None:
        try:
            _begun(pickle.loads(job).compile(self._vocabulary))
        except StructgenError as error:
            return error
        except Exception as error:  # without its message, which may hold text of the request and comes to the log
            frame = traceback.extract_tb(error.__traceback__)[-1]
            return InternalError(
                f"compiling the constraint raised {type(error).__name__} ({frame.name}, line {frame.lineno})"
            )
        finally:
            COMPILED.clear()
        return None


def _begun(grammar: Grammar) -> Grammar:
    """The grammar with what all outputs begin with: the first mask, and the shortest way to close."""
    matcher = grammar.matcher()
    matcher.fill_next_token_bitmask(allocate_token_bitmask(1, grammar.vocabulary.size))
    shortest_completion(matcher)
    return grammar


def check_size(constraint: Any, limits: CompileLimits) -> None:
    """Raise TooComplexError where a constraint is larger than allowed. O(its size), at most the limits.

    Of one that is composed of others (tags with their schemas, a sequence), each may have as many values as one alone.
    """
    parts: list[tuple[Any, int]] = [(constraint, 0)]
    text = total = 0
    while parts:
        part, depth = parts.pop()
        waiting: list[_Value] = [(part, depth, False)]
        nodes = 0
        while waiting:
            value, depth, is_pattern = waiting.pop()
            if value is not part and is_dataclass(value) and not isinstance(value, type):
                parts.append((value, depth))
                continue
            nodes += 1
            if isinstance(value, str):
                text += len(value.encode(errors="replace"))
            else:
                waiting += islice(_inner(value, depth, is_pattern), limits.nodes + 1)
            _check_counts(nodes + len(waiting), total + nodes, text, depth, limits)
            if is_pattern and isinstance(value, str) and len(value) > limits.pattern_length:
                raise _too_large(limits.pattern_length, "pattern_length", "characters in one pattern")
        total += nodes


def _check_counts(nodes: int, total: int, text: int, depth: int, limits: CompileLimits) -> None:
    if nodes > limits.nodes or total > limits.whole.nodes:
        most = limits.nodes if nodes > limits.nodes else limits.whole.nodes
        raise _too_large(most, "nodes", "values")
    if depth > limits.depth:
        raise _too_large(limits.depth, "depth", "levels of nesting")
    if text > limits.text_bytes:
        raise _too_large(limits.text_bytes, "text_bytes", "bytes of text")


def _too_large(most: int, budget: str, what: str) -> TooComplexError:
    return TooComplexError(f"the constraint has more than {most:,} {what}; simplify it", limit=most, budget=budget)


_Value: TypeAlias = "tuple[Any, int, bool]"
"""Something in a constraint, its depth, and whether it is a regular expression if it is a text."""


def _inner(value: Any, depth: int, is_pattern: bool) -> Iterable[_Value]:
    """What is directly inside a value."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key, depth + 1, is_pattern
            yield inner, depth + 1, key == "pattern"
            if key == "patternProperties" and isinstance(inner, Mapping):
                yield from ((name, depth + 2, True) for name in inner)
    elif isinstance(value, list | tuple):
        yield from ((inner, depth + 1, False) for inner in value)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            if field.name != "_key":
                yield getattr(value, field.name), depth, field.name == "pattern"
