"""Schemas lowered for providers and engines, measured on real schemas and tools.

python benchmarks/lowering.py DATA/maskbench --count 1000 [--targets openai gemini]
python benchmarks/lowering.py DATA/maskbench --count 200 --engines      # with xgrammar, llguidance, cyllama installed
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # measure this checkout

from answer_schemas import is_valid, quantile, schemas

import structgen
from structgen.benchmarking.engines import load_engine
from structgen.benchmarking.vocabularies import BenchVocabulary
from structgen.core.answers.targets.table import TARGETS
from structgen.core.vocabulary.vocabulary import TextVocabulary

DRAFT_2020 = "https://json-schema.org/draft/2020-12/schema"


def lowered_for(target: str, drawn: list[tuple[str, Any]]) -> dict[str, Any]:
    """Within limits, the verdicts, and what the judges object to: ``fits`` for what is sent, python-jsonschema for
    drawn answers mapped back and for the documents of the verdicts, and back and forth again."""
    tally: Counter[str] = Counter()
    times: list[float] = []
    wrong: list[str] = []
    for name, schema in drawn:
        tally["schemas"] += 1
        began = process_time()
        try:
            lowered = structgen.lower(schema, target)
            tally[lowered.verdict] += 1
        except structgen.UnsatisfiableSchemaError:
            tally["without values"] += 1
            continue
        except structgen.StructgenError as error:
            tally[f"cannot: {type(error).__name__}"] += 1
            continue
        times.append(1e3 * (process_time() - began))
        is_within = not lowered.beyond and not structgen.fits(lowered.sent, target)
        tally["within limits"] += is_within
        tally["equal to closed"] += lowered.closed_verdict == "equal"
        try:
            wrong += [f"{name}: {one}" for one in _objections(schema, lowered, tally)]
        except structgen.StructgenError as error:
            tally[f"not drawn: {type(error).__name__}"] += 1
    return {**tally, "p50": quantile(times, 0.5), "p99": quantile(times, 0.99), "wrong": wrong}


def _objections(schema: Any, lowered: structgen.LoweredSchema, tally: Counter[str]) -> Iterator[str]:
    meant = json.loads(json.dumps({"$schema": DRAFT_2020, **lowered.meant}, default=float))
    for only, is_of_schema in ((lowered.comparison.old_only, True), (lowered.comparison.new_only, False)):
        if only is not None and only.text is not None:
            value = json.loads(only.text)
            tally["verdicts' documents"] += 1
            if is_valid(schema, value) is not is_of_schema or is_valid(meant, value) is is_of_schema:
                yield f"the verdict's document {only.text:.200}"
    for example in structgen.examples({"$schema": DRAFT_2020, **lowered.sent}, 3):
        back = json.loads(json.dumps(lowered.back(example.value), default=float))
        tally["answers"] += 1
        if not is_valid(meant, back):
            yield f"the answer {example.text:.200} means {back!r:.200}"
        elif lowered.verdict in ("equal", "narrower") and not is_valid(schema, back):
            yield f"the answer {example.text:.200} is not of the schema, whose verdict is {lowered.verdict}"
    for example in structgen.examples(meant, 3):
        tally["round trips"] += 1
        again = lowered.back(lowered.forth(example.value))
        if json.dumps(again, default=float, sort_keys=True) != json.dumps(example.value, default=float, sort_keys=True):
            yield f"{example.text:.200} comes back as {again!r:.200}"


def asked_of(target: str, drawn: list[tuple[str, Any]]) -> dict[str, Any]:
    """What an engine that runs here makes of schemas lowered for it: taken; documents that are meant and allowed; near
    misses that are refused. llama.cpp by the converter of cyllama, whose grammar this library reads."""
    tally: Counter[str] = Counter()
    wrong: list[str] = []
    try:
        peer = _peer(target)
    except ImportError as error:
        return {"not installed": str(error)}
    for name, schema in drawn:
        try:
            lowered = structgen.lower(schema, target)
            right = [
                lowered.forth(one.value) for one in structgen.examples({"$schema": DRAFT_2020, **lowered.meant}, 3)
            ]
            near = structgen.examples({"$schema": DRAFT_2020, **lowered.sent}, 3, style="invalid")
            missed = [one.value for one in near]
        except structgen.StructgenError:
            continue
        tally["schemas"] += 1
        try:
            takes = peer(lowered.sent)
        except Exception as error:
            tally["refused"] += 1
            wrong.append(f"{name}: refused, {type(error).__name__}: {error!s:.150}")
            continue
        for number, value in enumerate(right + missed):
            is_right = number < len(right)
            value = json.loads(json.dumps(value, default=float))
            if is_right:
                value = arranged(value, lowered.sent, lowered.sent, required_first=target == "llama.cpp")
            text = json.dumps(value, ensure_ascii=False)
            tally["documents" if is_right else "near misses"] += 1
            if takes(text.encode()) is not is_right:
                tally["documents refused" if is_right else "near misses taken"] += 1
                wrong.append(f"{name}: {'refuses' if is_right else 'takes'} {text:.150}")
    return {**tally, "wrong": wrong[:60]}


def arranged(value: Any, part: Any, root: Any, *, required_first: bool) -> Any:
    """A value of a lowered schema with its members in the order in which an engine has them written: as declared; by
    llama.cpp's converter those that are required first."""
    while isinstance(part, dict) and "$ref" in part:
        part = root["$defs"][part["$ref"].rpartition("/")[2]]
    if not isinstance(part, dict):
        return value
    for branch in part.get("anyOf", ()):
        if is_valid({"$schema": DRAFT_2020, "$defs": root.get("$defs", {}), "anyOf": [branch]}, value):
            return arranged(value, branch, root, required_first=required_first)
    if isinstance(value, list):
        items = [*part.get("prefixItems", ()), *[part.get("items", True)] * len(value)]
        pairs = zip(value, items, strict=False)
        return [arranged(item, inner, root, required_first=required_first) for item, inner in pairs]
    if not isinstance(value, dict):
        return value
    members, needed = part.get("properties", {}), part.get("required", ())
    names = [*members]
    if required_first:
        names.sort(key=lambda name: name not in needed)
    others = part.get("additionalProperties", True)
    return {
        name: arranged(value[name], members.get(name, others), root, required_first=required_first)
        for name in [*(name for name in names if name in value), *(name for name in value if name not in members)]
    }


def _peer(target: str) -> Callable[[Any], Callable[[bytes], bool]]:
    """From a schema to whether a text is allowed, by an engine."""
    if target == "llama.cpp":
        from cyllama.utils.json_schema_to_grammar import json_schema_to_grammar

        def compiled(schema: Any) -> Callable[[bytes], bool]:
            grammar = structgen.gbnf(json_schema_to_grammar(json.dumps(schema))).compile(TextVocabulary())

            def takes(data: bytes) -> bool:
                matcher = grammar.matcher()
                return matcher.accept_bytes(data) and matcher.is_accepting()

            return takes

        return compiled
    end = 256
    words = BenchVocabulary("bytes", [*(bytes([byte]) for byte in range(end)), b""], end, lambda text: [*text.encode()])
    engine = load_engine(target, words)

    def of(schema: Any) -> Callable[[bytes], bool]:
        start = engine.compile(json.dumps(schema))

        def takes(data: bytes) -> bool:
            session = start()
            if not all(session.accept(byte) for byte in data):
                return False
            session.fill()
            return bool(engine.row[end // 32] >> end % 32 & 1)

        return takes

    return of


def main() -> None:
    """Measure and print as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--targets", nargs="*")
    parser.add_argument("--engines", action="store_true")
    asked = parser.parse_args()
    drawn = list(islice(schemas(asked.data, asked.seed), asked.count))
    measure = asked_of if asked.engines else lowered_for
    targets = asked.targets or (["llama.cpp", "xgrammar", "llguidance"] if asked.engines else [*TARGETS])
    print(json.dumps({target: measure(target, drawn) for target in targets}, indent=1))


if __name__ == "__main__":
    main()
