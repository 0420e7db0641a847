"""Parts of `answers.py` about documents that are drawn: examples, alternatives, near misses, hypothesis."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from time import process_time
from typing import Any

from answer_schemas import is_valid, quantile, schemas

import structgen
from structgen.core.answers.deciding import UNDECIDED, Questions, answering
from structgen.core.answers.drawing import EARLY, DocumentDrawing
from structgen.core.answers.examples import NearMisses
from structgen.core.answers.joint import Joint
from structgen.core.answers.picking.picks import RandomPicks
from structgen.core.json_schema.lowering import Lowered


def examples(data: Path, count: int, seed: int) -> dict[str, Any]:
    """Documents a second, 100 of each schema, compiling included; those that python-jsonschema refuses."""
    tally: Counter[str] = Counter()
    rates: list[float] = []
    refused: list[str] = []
    for name, schema in schemas(data, seed):
        if tally["schemas"] == count:
            break
        tally["schemas"] += 1
        try:
            began = process_time()
            drawn = list(structgen.examples(schema, 100, seed=seed))
            rates.append(len(drawn) / max(process_time() - began, 1e-9))
        except structgen.StructgenError as error:
            tally[f"not served: {type(error).__name__}"] += 1
            continue
        tally["documents"] += len(drawn)
        for one in drawn[:10]:
            tally["judged"] += 1
            if not is_valid(schema, json.loads(one.text)):
                refused.append(f"{name}: {one.text:.200}")
    rates.sort()
    return {**tally, "a second, p10": quantile(rates, 0.1), "p50": quantile(rates, 0.5), "refused": refused}


def alternatives(data: Path, count: int, seed: int) -> dict[str, Any]:
    """Documents until every alternative of a schema's value graph was met."""
    tally: Counter[str] = Counter()
    needed: list[float] = []
    unmet: list[str] = []
    for name, schema in schemas(data, seed):
        if tally["schemas"] == count:
            break
        try:
            lowered = Lowered(schema, answering(None), None)
            joint = Joint([lowered], lowered.options)
            node = Questions(joint, lowered.options).node_of(joint.roots[0])
            if node is None:
                continue
            drawing = DocumentDrawing(node, lowered.options, RandomPicks(seed), 300)
            drawn = 0
            while drawn < MOST_DOCUMENTS and (drawn < EARLY or drawing.routes().is_open):
                drawing.document()
                drawn += 1
        except structgen.StructgenError:
            tally["not drawn"] += 1
            continue
        tally["schemas"] += 1
        needed.append(drawn)
        if drawing.routes().unmet:
            unmet.append(f"{name}: {len(drawing.routes().unmet)}")
    reached = 1 - len(unmet) / max(tally["schemas"], 1)
    documents = {"p50": quantile(needed, 0.5), "p90": quantile(needed, 0.9), "max": max(needed)}
    return {**tally, "completely reached": reached, **documents, "unmet": unmet}


MOST_DOCUMENTS = 5_000


def strategy(data: Path, count: int, seed: int) -> dict[str, Any]:
    """hypothesis: schemas served, values a second; bytes by which a shrunk document is longer than a shortest one."""
    import hypothesis

    from structgen.testing import from_constraint

    tally: Counter[str] = Counter()
    rates: list[float] = []
    longer: list[float] = []
    kept: list[Any] = []
    refused: list[str] = []
    quietly = hypothesis.settings(
        max_examples=100, deadline=None, database=None, suppress_health_check=list(hypothesis.HealthCheck)
    )
    for name, schema in schemas(data, seed):
        if tally["schemas"] == count:
            break
        try:
            (shortest,) = structgen.examples(schema, style="minimal")
        except structgen.StructgenError:
            continue
        tally["schemas"] += 1
        kept.clear()
        try:
            began = process_time()
            hypothesis.seed(seed)(
                quietly(hypothesis.given(from_constraint(schema))(lambda value: kept.append(value)))
            )()
            rates.append(len(kept) / max(process_time() - began, 1e-9))
            shrunk = hypothesis.find(from_constraint(schema), lambda _: True, settings=quietly)
        except Exception as error:
            tally[f"not served: {type(error).__name__}"] += 1
            print(name, error, file=sys.stderr)
            continue
        tally["served"] += 1
        plain = [json.loads(json.dumps(value, default=float)) for value in kept]
        refused += [f"{name}: {value!r:.200}" for value in plain if not is_valid(schema, value)]
        text = json.dumps(shrunk, separators=(",", ":"), ensure_ascii=False, default=float)
        longer.append(len(text.encode()) - len(shortest.text.encode()))
    bytes_more = {"p50": quantile(longer, 0.5), "p90": quantile(longer, 0.9), "max": max(longer)}
    return {
        **tally,
        "a second, p10": quantile(rates, 0.1),
        "p50": quantile(rates, 0.5),
        "bytes more": bytes_more,
        "refused": refused,
    }


def near_misses(data: Path, count: int, seed: int) -> dict[str, Any]:
    """Of schemas that compile, occurrences with documents that they alone refuse, shown to have none, and left open."""
    tally: Counter[str] = Counter()
    times: list[float] = []
    wrong: list[str] = []
    for name, schema in schemas(data, seed):
        if tally["schemas"] == count:
            break
        tally["schemas"] += 1
        try:
            next(structgen.examples(schema, 1), None)
            misses = NearMisses(schema, answering(None))
        except structgen.StructgenError as error:
            tally[f"refused: {type(error).__name__}"] += 1
            continue
        for occurrence in misses.occurrences[:60]:
            began = process_time()
            try:
                questions, _, node = misses.of(occurrence)
                text = (
                    None
                    if node is None
                    else DocumentDrawing(node, questions.options, RandomPicks(seed), 200).document()
                )
            except (*UNDECIDED, structgen.StructgenError) as error:
                tally[f"open: {type(error).__name__}"] += 1
                continue
            times.append(1e3 * (process_time() - began))
            tally["none" if text is None else "some"] += 1
            if text is not None and not occurrence.under and is_valid(schema, json.loads(text)):
                wrong.append(f"{name} {occurrence.pointer}: {text:.200}")
    return {**tally, "p50": quantile(times, 0.5), "p99": quantile(times, 0.99), "taken by the judge": wrong}
