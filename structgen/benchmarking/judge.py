"""One engine on one schema: compile, walk every instance's tokens through the masks, give verdicts and times."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any, Literal, TypedDict

from structgen.benchmarking.engines import Engine, Refused, Session
from structgen.benchmarking.vocabularies import BenchVocabulary

Verdict = Literal["right", "rejects_valid", "accepts_invalid", "cannot_stop", "mask_differs", "error"]
# What can go wrong on one instance, in words for the table.
WRONG: dict[Verdict, str] = {
    "rejects_valid": "rejects a valid instance",
    "accepts_invalid": "accepts an invalid instance",
    "cannot_stop": "cannot stop at the end of a valid instance",
    "mask_differs": "refuses a token that its mask allows",
    "error": "raises on an instance",
}

Outcome = Literal["compiled", "refused", "timeout", "crash", "memory", "error"]


class Record(TypedDict, total=False):
    """One line of the results: one schema through one engine.

    ``compile_ns``: schema text in hand to the first mask. ``times_ns``: advance + mask of each token, all instances
    in a row; ``again_ns``: the same for a second walk through all of them, by other matchers of the same grammar.
    ``died_at``: for each instance, bytes of its text before the refused token; -1 where none was refused.
    """

    engine: str
    schema: str
    outcome: Outcome
    error: str
    compile_ns: int
    verdicts: list[Verdict]
    died_at: list[int]
    times_ns: list[int]
    again_ns: list[int]


@dataclass(frozen=True, slots=True)
class Timing:
    """What is timed.

    Attributes:
        again: walk all instances a second time.
        garbage: leave Python's collector on, and what it has seen not frozen, as in a user's process.
    """

    again: bool = False
    garbage: bool = False


def judge(engine: Engine, vocabulary: BenchVocabulary, path: Path, timing: Timing | None) -> Record:
    """Run the MaskBench file ``path`` through the engine; None: record no times. The record lacks only the engine's
    name."""
    case = json.loads(path.read_text(encoding="utf-8"))
    schema_text = json.dumps(case["schema"], ensure_ascii=False)
    record: Record = {"schema": path.stem}
    gc.collect()
    if timing is None or not timing.garbage:
        # else each collection sweeps through all that earlier schemas left, and the processor's caches with it
        gc.freeze()
        gc.disable()
    try:
        began = perf_counter_ns()
        try:
            start = engine.compile(schema_text)
            start().fill()
        except Refused as error:
            return {**record, "outcome": "refused", "error": str(error)}
        except Exception as error:  # an engine's defect must not end the run
            return {**record, "outcome": "error", "error": f"{type(error).__name__}: {error}"}
        record["compile_ns"] = perf_counter_ns() - began
        return {**record, "outcome": "compiled", **_judge_instances(engine, vocabulary, start, case["tests"], timing)}
    finally:
        gc.enable()


def _judge_instances(
    engine: Engine,
    vocabulary: BenchVocabulary,
    start: Callable[[], Session],
    tests: list[dict[str, Any]],
    timing: Timing | None,
) -> Record:
    walked = _walk_all(engine, vocabulary, start, tests)
    if timing is None:
        del walked["times_ns"]
    elif timing.again:
        walked["again_ns"] = _walk_all(engine, vocabulary, start, tests)["times_ns"]
    return walked


def _walk_all(
    engine: Engine, vocabulary: BenchVocabulary, start: Callable[[], Session], tests: list[dict[str, Any]]
) -> Record:
    times: list[int] = []
    walked: Record = {"verdicts": [], "died_at": [], "times_ns": times}
    for test in tests:
        token_ids = vocabulary.encode(json.dumps(test["data"], ensure_ascii=False))
        try:
            verdict, used = _walk(engine, vocabulary.eos_token_id, start(), token_ids, test["valid"], times)
        except Exception as error:  # as above
            walked["error"] = f"{type(error).__name__}: {error}"
            verdict, used = "error", -1
        walked["verdicts"].append(verdict)
        walked["died_at"].append(used if used < 0 else sum(len(vocabulary.tokens[i]) for i in token_ids[:used]))
    return walked


def _walk(
    engine: Engine, eos: int, session: Session, token_ids: list[int], valid: bool, times: list[int]
) -> tuple[Verdict, int]:
    """One instance: (verdict, tokens before the refused one or -1). Appends the time of each advance + mask, ns.

    The first mask counts with the first token.
    """
    row, fill, accept, step = engine.row.data, session.fill, session.accept, session.step
    began = perf_counter_ns()
    fill()
    before = perf_counter_ns() - began
    for position, token_id in enumerate(token_ids):
        if not row[token_id >> 5] >> (token_id & 31) & 1:
            return "rejects_valid" if valid else "right", position
        began = perf_counter_ns()
        if step is not None:
            accepted = step(token_id)
        else:
            accepted = accept(token_id)
            fill()
        times.append(perf_counter_ns() - began + before)
        before = 0
        if not accepted:
            return "mask_differs", position
    may_stop = bool(row[eos >> 5] >> (eos & 31) & 1)
    if valid:
        return "right" if may_stop else "cannot_stop", -1
    return "accepts_invalid" if may_stop else "right", -1
