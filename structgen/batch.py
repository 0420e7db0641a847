"""Batches: rows that are written together, each with its result or its error."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sized
from contextlib import closing
from dataclasses import dataclass
from itertools import count, repeat
from typing import Any, TypeAlias

from structgen.constraints.base import Constraint
from structgen.constraints.json import as_constraint
from structgen.decoding.batching.request import Event, Request
from structgen.decoding.output import Output
from structgen.decoding.prompts import Prompt
from structgen.errors import GenerationError, OptionsError, StructgenError
from structgen.generation_results import GenerationResult, result_of

Outcome: TypeAlias = "GenerationResult | StructgenError"
Begin: TypeAlias = "Callable[[BatchRow, Constraint | None], Request]"
Write: TypeAlias = "Callable[[Iterable[Request | None]], Generator[list[Event], None, None]]"


@dataclass(frozen=True)
class BatchProgress:
    """How far a batch is.

    Attributes:
        done: rows that are done, those that failed included. failed: of them, those that did.
        total: rows that there are; None: not known.
        tokens: of the results.
        seconds: since the batch began.
    """

    done: int
    failed: int
    total: int | None
    tokens: int
    seconds: float


@dataclass(frozen=True)
class BatchRow:
    """What is asked for in a row; nothing of it is checked."""

    prompt: Prompt
    constraint: Any
    seed: int | None
    prediction: Any


class BatchRows:
    """The rows of one call, taken one by one.

    Args:
        prompts, constraints, seeds, prediction: as ``Generator.batch`` takes them.
        seed: where there are no ``seeds``, row i has ``seed + i``; None: none has one.

    Raises:
        GenerationError: there are not as many of one as of the other, or ``prompts`` is a single one.
        OptionsError: a seed beside seeds. ConstraintError: the one constraint for all cannot be used.
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
            else (None if seed is None else seed + row for row in count())
        )  # fmt: skip
        self._prompts = prompts

    def written(
        self, begin: Begin, write: Write, progress: Callable[[BatchProgress], object] | None = None
    ) -> Generator[tuple[int, Outcome], None, None]:
        """Index and outcome of each row, as they are done.

        Args:
            begin: from a row and its constraint to what is asked of the scheduler.
            write: writes what it is given, taking it as rows come free; None takes a turn.
        """
        started, done, failed, tokens = time.perf_counter(), 0, 0, 0
        settled: list[tuple[int, Outcome]] = []
        open_rows: dict[Output, tuple[int, Constraint | None]] = {}

        def requests() -> Iterator[Request | None]:
            for index, row in enumerate(self._rows()):
                try:
                    constraint = self.common if row.constraint is self.common else as_constraint(row.constraint)
                    request = begin(row, constraint)
                except Exception as error:
                    settled.append((index, _of_row(error, index)))
                    yield None
                else:
                    open_rows[request.output] = index, constraint
                    yield request

        with closing(write(requests())) as steps:
            for events in steps:
                last = (event for event in events if event.is_last)
                settled += [_settled(event, *open_rows.pop(event.handle.output)) for event in last]
                while settled:
                    row, outcome = settled.pop(0)
                    done += 1
                    if isinstance(outcome, StructgenError):
                        failed += 1
                    else:
                        tokens += len(outcome.token_ids)
                    if progress is not None:
                        progress(BatchProgress(done, failed, self.total, tokens, time.perf_counter() - started))
                    yield row, outcome

    def _rows(self) -> Iterator[BatchRow]:
        for prompt in self._prompts:
            yield BatchRow(prompt, next(self._constraints), next(self._seeds), next(self._predictions))

    def _checked(self, name: str, each: Iterable[Any]) -> Iterator[Any]:
        """One a prompt. Iterators may have more."""
        if self.total is not None and isinstance(each, Sized) and len(each) != self.total:
            raise GenerationError(f"{self.total} prompts, but {len(each)} {name}; give one a prompt.")

        def one_by_one() -> Iterator[Any]:
            row = -1
            for row, value in enumerate(each):  # noqa: B007
                yield value
            raise GenerationError(f"There are {name} for {row + 1} prompts only, and more prompts; give one a prompt.")

        return one_by_one()


def _settled(event: Event, row: int, constraint: Constraint | None) -> tuple[int, Outcome]:
    """What has come of a row that is done.

    Raises:
        Exception: what the model raised; that is no row's.
    """
    if event.error is not None:
        if not isinstance(event.error, StructgenError):
            raise event.error
        return row, _of_row(event.error, row)
    try:
        return row, result_of(event.handle.output, constraint)
    except Exception as error:
        return row, _of_row(error, row)


def _of_row(error: Exception, row: int) -> StructgenError:
    """The error of a row, which says so."""
    found = error
    if not isinstance(error, StructgenError):  # of a tokenizer, or of a constraint that is not the library's
        found = GenerationError(f"{type(error).__name__}: {error}")
        found.__cause__ = error
    assert isinstance(found, StructgenError)
    found.row = row
    return found
