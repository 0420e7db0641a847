"""Batches: sequences that are written together, each with its result or its error."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sized
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count, repeat
from typing import Any, TypeAlias

from structgen.core.constraints.base import Constraint, T
from structgen.core.constraints.json import as_constraint
from structgen.errors import GenerationError, OptionsError, RefusedValueError, StructgenError
from structgen.generation.decoding.output import Output
from structgen.generation.decoding.prompts import Prompt
from structgen.generation.decoding.refusals import Refusal, reason_of
from structgen.generation.options import GenerationOptions
from structgen.generation.results import GenerationResult, result_of
from structgen.generation.scheduler.request import Event, Request
from structgen.progress import Wait, check_progress

Outcome: TypeAlias = "GenerationResult[T] | StructgenError"
BatchOutcomes: TypeAlias = "Generator[tuple[int, GenerationResult[T] | StructgenError], None, None]"
"""The index and the outcome of each prompt, as they are done."""
Begin: TypeAlias = "Callable[[BatchTask, Constraint | None], Request]"
Result: TypeAlias = "Callable[[Request, Constraint | None, int], GenerationResult[Any]]"
Write: TypeAlias = "Callable[[Iterable[Request | None]], Generator[list[Event], None, None]]"


@dataclass(frozen=True)
class BatchProgress:
    """How far a batch is.

    Attributes:
        done: prompts that are done, those that failed included. failed: of them, those that did.
        total: prompts that there are; None: not known.
        tokens: of the results.
        seconds: since the batch began.
    """

    done: int
    failed: int
    total: int | None
    tokens: int
    seconds: float


class BatchOptions(GenerationOptions, total=False):
    """Keyword arguments of ``batch`` and ``stream_batch``, which says what they are."""

    seeds: Iterable[int] | None
    batch_size: int
    progress: Callable[[BatchProgress], object] | None


@dataclass(frozen=True)
class BatchTask:
    """What is asked for a prompt; nothing of it is checked. ``attempt`` counts from 0; ``refused`` is what came of the
    one before, ``refused_values`` what was refused in all before, plain JSON."""

    prompt: Prompt
    constraint: Any
    seed: int | None
    prediction: Any
    attempt: int = 0
    refused: Refusal | None = None
    refused_values: tuple[Any, ...] = ()

    def again(self, error: RefusedValueError) -> BatchTask:
        """The task of another attempt, after one whose value was refused."""
        return replace(
            self,
            attempt=self.attempt + 1,
            refused=Refusal(error.text or "", reason_of(error)),
            refused_values=(*self.refused_values, error.value),
        )


class BatchTasks:
    """The tasks of one call, taken one by one.

    Args:
        prompts, constraints, seeds, prediction: as ``Generator.batch`` takes them.
        seed: where there are no ``seeds``, prompt i has ``seed + i``; None: none has one.

    Raises:
        GenerationError: there are not as many of one as of the other, or ``prompts`` is a single one.
        OptionsError: both a seed and seeds.
        ConstraintError: the one constraint for all cannot be used.
    """

    def __init__(
        self,
        prompts: Iterable[Prompt],
        constraints: Any,
        seeds: Iterable[int] | None,
        seed: int | None,
        prediction: Any = None,
    ) -> None:
        if isinstance(prompts, (str, bytes, Mapping)) or not isinstance(prompts, Iterable):
            raise GenerationError(f"A batch needs several prompts, not a single one: {prompts!r:.80}")
        if seeds is not None and not isinstance(seeds, Iterable):
            raise OptionsError(f"seeds must be integers, one a prompt, not {seeds!r:.100}")
        if seeds is not None and seed is not None:
            raise OptionsError("give either seed or seeds, not both")
        self.total = len(prompts) if isinstance(prompts, Sized) else None
        self.common: Constraint | None = None
        if isinstance(constraints, (list, tuple, Iterator)):
            self._constraints = self._checked("constraints", constraints)
        else:
            self.common = as_constraint(constraints)
            self._constraints = repeat(self.common)
        several = isinstance(prediction, (list, tuple, Iterator))
        self._predictions = self._checked("predictions", prediction) if several else repeat(prediction)
        self._seeds: Iterator[int | None] = (
            self._checked("seeds", seeds) if seeds is not None
            else (None if seed is None else seed + index for index in count())
        )  # fmt: skip
        self._prompts = prompts

    def written(
        self,
        begin: Begin,
        write: Write,
        wait: Wait,
        progress: Callable[[BatchProgress], object] | None = None,
        attempts: int = 1,
        result: Result = lambda request, constraint, attempts: result_of(request.output, constraint, attempts),
    ) -> BatchOutcomes[Any]:
        """Index and outcome of each prompt, as they are done.

        Args:
            begin: from a task and its constraint to what is asked of the scheduler.
            write: writes what it is given, taking it as sequences end; None takes a turn.
            wait: is advanced with each prompt.
            progress: is called when the first one is begun, and whenever one is done.
            attempts: how often an output is written, where the type's own validators refuse its value.
            result: what a finished request gives.
        """
        check_progress(progress)
        started, done, failed, tokens = time.perf_counter(), 0, 0, 0
        if progress is not None:
            progress(BatchProgress(0, 0, self.total, 0, 0.0))
        tasks: Iterator[tuple[int, BatchTask]] = enumerate(self._tasks())
        if self.total is not None:  # all are there: none waits for what comes of another
            tasks = iter(sorted(tasks, key=lambda each: beginning(each[1].prompt)))
        coming = _Coming(tasks, begin, attempts, result)
        with wait, closing(write(coming)) as steps:
            for events in steps:
                for event in events:
                    if event.is_last:
                        coming.end(event)
                while coming.settled:
                    index, outcome = coming.settled.popleft()
                    done += 1
                    wait.advance()
                    if isinstance(outcome, StructgenError):
                        failed += 1
                    else:
                        tokens += len(outcome.token_ids)
                    if progress is not None:
                        progress(BatchProgress(done, failed, self.total, tokens, time.perf_counter() - started))
                    yield index, outcome

    def _tasks(self) -> Iterator[BatchTask]:
        for prompt in self._prompts:
            yield BatchTask(prompt, next(self._constraints), next(self._seeds), next(self._predictions))

    def _checked(self, name: str, each: Iterable[Any]) -> Iterator[Any]:
        """One a prompt. Iterators may have more."""
        if self.total is not None and isinstance(each, Sized) and len(each) != self.total:
            raise GenerationError(f"{self.total} prompts, but {len(each)} {name}; give one a prompt.")

        def one_by_one() -> Iterator[Any]:
            index = -1
            for index, value in enumerate(each):  # noqa: B007
                yield value
            raise GenerationError(
                f"There are {name} for {index + 1} prompts only, and more prompts; give one a prompt."
            )

        return one_by_one()


def beginning(prompt: Any) -> str:
    """What prompts are sorted by, so that those with a common beginning are read one after the other: it is read once.
    Whatever is no prompt is left to those who check prompts."""
    if isinstance(prompt, str):
        return prompt
    try:
        return json.dumps(prompt)
    except (TypeError, ValueError, RecursionError):
        return ""


class _Coming:
    """Requests as sequences end: tasks in their order, and such as are written once more. After it had none it may have
    more.

    Attributes:
        settled: index and outcome of tasks that are done.
    """

    def __init__(self, tasks: Iterator[tuple[int, BatchTask]], begin: Begin, attempts: int, result: Result) -> None:
        self.settled: deque[tuple[int, Outcome]] = deque()
        self._tasks, self._begin, self._attempts, self._result = tasks, begin, attempts, result
        self._again: deque[tuple[int, BatchTask]] = deque()
        self._open: dict[Output, tuple[int, BatchTask, Constraint | None]] = {}

    def __iter__(self) -> _Coming:
        return self

    def __next__(self) -> Request | None:
        """The next request; None for a task that failed at once, in ``settled`` now."""
        index, task = self._again.popleft() if self._again else next(self._tasks)
        try:
            constraint = as_constraint(task.constraint)
            request = self._begin(task, constraint)
        except Exception as error:
            self.settled.append((index, _at_index(error, index)))
            return None
        self._open[request.output] = index, task, constraint
        return request

    def end(self, event: Event) -> None:
        """Take the last event of a task.

        Raises:
            Exception: what the model raised; that is no task's.
        """
        index, task, constraint = self._open.pop(event.handle.output)
        if event.error is not None:
            if not isinstance(event.error, StructgenError):
                raise event.error
            self.settled.append((index, _at_index(event.error, index)))
            return
        try:
            outcome: Outcome = self._result(event.handle.request, constraint, task.attempt + 1)
        except Exception as error:
            if isinstance(error, RefusedValueError) and task.attempt + 1 < self._attempts:
                self._again.append((index, task.again(error)))
                return
            outcome = _at_index(error, index)
        self.settled.append((index, outcome))


def _at_index(error: Exception, index: int) -> StructgenError:
    """The error of a prompt, which says so."""
    typed = error
    if not isinstance(error, StructgenError):  # of a tokenizer, or of a constraint that is not the library's
        typed = GenerationError(f"{type(error).__name__}: {error}")
        typed.__cause__ = error
    assert isinstance(typed, StructgenError)
    typed.row = index
    return typed
