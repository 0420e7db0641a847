"""Answers about schemas, measured on real ones.

    python benchmarks/answers.py DATA/maskbench --part compare --count 1000

compare: schemas with one keyword tightened, both directions: decided, wrong, milliseconds of processor time. "Wrong" is
judged by how the pair was made, and by python-jsonschema for each document of a difference. rewritings: the same of
whole schemas. reasons: near misses, and the keywords named for them. `lowering.py` measures what providers are sent.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # measure this checkout

from answer_examples import alternatives, examples, near_misses, strategy
from answer_schemas import is_valid, quantile, schemas

import structgen
from structgen.core.json_schema.dialects import subschemas
from structgen.core.json_schema.pointers import ROOT

MONOTONE = (
    "properties",
    "items",
    "additionalProperties",
    "allOf",
    "anyOf",
    "$defs",
    "definitions",
    "patternProperties",
)
"""Keywords through which less in a subschema is less of the whole."""


CONDITIONS = ('"not"', '"oneOf"', '"if"', "unevaluated", '"contains"')
"""Where one of these is, the root alone is tightened: less in a subschema may be more of the whole."""


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """The subschemas through which a schema is monotone."""
    if not isinstance(schema, dict) or "$ref" in schema:
        return
    yield schema
    for name in MONOTONE:
        value = schema.get(name)
        children = value if isinstance(value, list) else [value]
        if isinstance(value, dict) and name in ("properties", "$defs", "definitions", "patternProperties"):
            children = list(value.values())
        for child in children:
            yield from parts(child)


def tightened(schema: Any, rng: random.Random) -> Any | None:
    """A copy with one keyword tightened; None: nothing was tried."""
    text = json.dumps(schema)
    if any(word in text for word in CONDITIONS):  # definitions may be referred to from there
        changed = copy.deepcopy(schema)
        part = changed
        rng.choice([_require, _close, _limit, _fewer_types])(part, rng)
        return changed if changed != schema and "unevaluated" not in text else None
    changed = copy.deepcopy(schema)
    part = rng.choice(list(parts(changed)) or [{}])
    edit = rng.choice(EDITS)
    before = copy.deepcopy(part)
    edit(part, rng)
    return changed if part != before else None


def _require(part: dict[str, Any], rng: random.Random) -> None:
    if isinstance(part.get("properties"), dict) and part["properties"]:
        name = rng.choice(sorted(part["properties"]))
        if isinstance(part.get("required", []), list) and name not in part.get("required", []):
            part["required"] = [*part.get("required", []), name]


def _close(part: dict[str, Any], rng: random.Random) -> None:
    if "properties" in part and "additionalProperties" not in part:
        part["additionalProperties"] = False


def _lower_limit(part: dict[str, Any], rng: random.Random) -> None:
    for name in ("maxLength", "maxItems", "maxProperties", "maximum"):
        if isinstance(part.get(name), int) and part[name] > 1:
            part[name] -= 1


def _raise_limit(part: dict[str, Any], rng: random.Random) -> None:
    for name in ("minLength", "minItems", "minProperties", "minimum"):
        if isinstance(part.get(name), int):
            part[name] += 1


def _fewer_values(part: dict[str, Any], rng: random.Random) -> None:
    if isinstance(part.get("enum"), list) and len(part["enum"]) > 1:
        part["enum"] = part["enum"][:-1]


def _limit(part: dict[str, Any], rng: random.Random) -> None:
    new = {"string": ("maxLength", 7), "array": ("maxItems", 2), "object": ("maxProperties", 3)}
    new |= {"integer": ("maximum", 100), "number": ("minimum", 0)}
    name, value = new.get(str(part.get("type")), ("minLength", 1))
    part.setdefault(name, value)


def _fewer_types(part: dict[str, Any], rng: random.Random) -> None:
    kind = part.get("type")
    if isinstance(kind, list) and len(kind) > 1:
        part["type"] = kind[:-1]
    elif kind == "number":
        part["type"] = "integer"
    elif kind is None:
        part["type"] = ["object", "string"]


def _add_text(part: dict[str, Any], rng: random.Random) -> None:
    if part.get("type") == "string":
        part.setdefault(*rng.choice([("pattern", "^[a-z]"), ("format", "date"), ("enum", ["a", "b"])]))


def _distinct(part: dict[str, Any], rng: random.Random) -> None:
    if part.get("type") == "array":
        part.setdefault("uniqueItems", True)


def _fewer_alternatives(part: dict[str, Any], rng: random.Random) -> None:
    if isinstance(part.get("anyOf"), list) and len(part["anyOf"]) > 1:
        part["anyOf"] = part["anyOf"][:-1]


EDITS = [
    _require, _close, _lower_limit, _raise_limit, _fewer_values, _limit, _fewer_types, _add_text, _distinct,
    _fewer_alternatives,
]  # fmt: skip


def compare(data: Path, count: int, seed: int) -> dict[str, Any]:
    """See the module."""
    rng = random.Random(seed)
    tally: Counter[str] = Counter()
    methods: Counter[str] = Counter()
    times: list[float] = []
    wrong: list[str] = []
    named: Counter[str] = Counter()
    for name, schema in schemas(data, seed):
        if tally["pairs"] == count:
            break
        tight = next((t for t in (tightened(schema, rng) for _ in range(8)) if t is not None), None)
        if tight is None:
            continue
        began = process_time()
        try:
            answer = structgen.compare(schema, tight)
        except structgen.SchemaError:
            tally["refused"] += 1
            continue
        times.append(1e3 * (process_time() - began) / 2)
        tally["pairs"] += 1
        methods.update(answer.methods)
        tally["unknown"] += (answer.old_in_new is None) + (answer.new_in_old is None)
        for reason in answer.unknown:
            print("unknown", name, reason, file=sys.stderr)
        if answer.new_in_old is False:
            wrong.append(f"{name}: {answer.new_only}")
        if answer.old_only is not None and answer.old_only.text is not None:
            value = json.loads(answer.old_only.text)
            if not is_valid(schema, value) or is_valid(tight, value):
                wrong.append(f"{name}: {answer.old_only}")
            named["named" if answer.old_only.keywords else "not named"] += 1
        if times[-1] > 500:
            print("slow", name, times[-1], answer.methods, file=sys.stderr)
    return {
        "pairs": tally["pairs"], "questions": 2 * tally["pairs"], "refused": tally["refused"],
        "unknown": tally["unknown"], "wrong": wrong, "methods": dict(methods), "keywords": dict(named),
        "p50": quantile(times, 0.5), "p90": quantile(times, 0.9), "p99": quantile(times, 0.99), "max": max(times),
    }  # fmt: skip


def lint(data: Path, count: int, seed: int) -> dict[str, Any]:
    """Findings by rule, and milliseconds of a schema."""
    tally: Counter[str] = Counter()
    times: list[float] = []
    for _, schema in schemas(data, seed):
        if len(times) == count:
            break
        began = process_time()
        try:
            findings = structgen.lint(schema)
        except structgen.SchemaError as error:
            tally[f"refused: {type(error).__name__}"] += 1
            continue
        times.append(1e3 * (process_time() - began))
        tally.update({one.rule for one in findings})
    milliseconds = {"p50": quantile(times, 0.5), "p99": quantile(times, 0.99), "max": max(times)}
    return {"schemas": len(times), "schemas by rule": dict(tally), **milliseconds}


def rewritings(data: Path, count: int, seed: int) -> dict[str, Any]:
    """Whole schemas rewritten in six ways, both directions: decided, and wrong by how the pair was made."""
    return {name: _rewritten(data, count, seed, name) for name in REWRITINGS}


def _rewritten(data: Path, count: int, seed: int, name: str) -> dict[str, Any]:
    tally: Counter[str] = Counter()
    wrong: list[str] = []
    rewrite, within = REWRITINGS[name]
    for stem, schema in schemas(data, seed):
        if tally["pairs"] == count:
            break
        rewritten = _everywhere(copy.deepcopy(schema), rewrite)
        turning = [word for word in CONDITIONS if rewrite is not _any_of or word != '"oneOf"']
        if rewritten == schema or (within != "equal" and any(word in json.dumps(schema) for word in turning)):
            continue  # under a condition less may be more
        try:
            answer = structgen.compare(schema, rewritten)
        except structgen.SchemaError:
            tally["refused"] += 1
            continue
        tally["pairs"] += 1
        tally["unknown"] += len(answer.unknown)
        for reason in answer.unknown:
            print("unknown", name, stem, reason, file=sys.stderr)
        decided = answer.old_in_new, answer.new_in_old
        said = {"equal": (True, True), "narrower": (None, True), "wider": (True, None)}[within]
        if any(expected is True and answered is False for expected, answered in zip(said, decided, strict=True)):
            wrong.append(stem)
        for only, of_old in ((answer.old_only, True), (answer.new_only, False)):
            if only is not None and only.text is not None:
                value = json.loads(only.text)
                if is_valid(schema, value) is not of_old or is_valid(rewritten, value) is of_old:
                    wrong.append(f"{stem}: {only.text:.200}")
    return {**tally, "wrong": wrong}


def _everywhere(part: Any, rewrite: Callable[[dict[str, Any]], None]) -> Any:
    """A schema with each of its subschemas rewritten, inner ones first."""
    if isinstance(part, dict):
        for child, _ in subschemas(part, ROOT):
            if isinstance(child, dict):
                _everywhere(child, rewrite)
        rewrite(part)
    return part


def _closed(part: dict[str, Any]) -> None:
    if isinstance(part.get("properties"), dict):
        part.setdefault("additionalProperties", False)


def _nullable(part: dict[str, Any]) -> None:
    if isinstance(part.get("type"), str) and "enum" not in part and "const" not in part:
        part["type"] = [part["type"], "null"]


def _any_of(part: dict[str, Any]) -> None:
    if "oneOf" in part and "anyOf" not in part:
        part["anyOf"] = part.pop("oneOf")


def _unlimited(part: dict[str, Any]) -> None:
    for word in ("maxLength", "minLength", "pattern", "minimum", "maximum", "minItems", "maxItems"):
        part.pop(word, None)


def _strict(part: dict[str, Any]) -> None:
    _closed(part)
    if isinstance(part.get("properties"), dict):
        part["required"] = list(part["properties"])


def _respelt(part: dict[str, Any]) -> None:
    if "$ref" not in part:
        if isinstance(part.get("type"), str):
            part["type"] = [part["type"]]
        if isinstance(part.get("enum"), list):
            part["enum"] = part["enum"][::-1]
        for name in ("anyOf", "oneOf"):
            if isinstance(part.get(name), list):
                part[name] = part[name][::-1]


REWRITINGS: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "closed": (_closed, "narrower"), "nullable": (_nullable, "wider"), "oneOf to anyOf": (_any_of, "wider"),
    "limits dropped": (_unlimited, "wider"), "strict": (_strict, "narrower"), "respelt": (_respelt, "equal"),
}  # fmt: skip


def named(data: Path, count: int, seed: int) -> dict[str, Any]:
    """Keywords named for near misses, judged as whole documents; milliseconds of each question."""
    tally: Counter[str] = Counter()
    times: list[float] = []
    for _, schema in schemas(data, seed):
        if tally["schemas"] == count:
            break
        try:
            texts = [one.text for one in structgen.examples(schema, 2, style="invalid", seed=seed)]
        except structgen.StructgenError:
            continue
        tally["schemas"] += bool(texts)
        for text in texts:
            began = process_time()
            answer = structgen.reasons(schema, text)
            times.append(1e3 * (process_time() - began))
            tally["refused texts"] += 1
            tally["alone"] += bool(answer.alone)
            tally["together"] += bool(answer.together)
    return {**tally, "p50": quantile(times, 0.5), "p90": quantile(times, 0.9), "max": max(times)}


PARTS = {
    "compare": compare, "rewritings": rewritings, "examples": examples,
    "alternatives": alternatives,
    "strategy": strategy, "near-misses": near_misses, "lint": lint,
    "reasons": named,
}  # fmt: skip


def main() -> None:
    """Measure and print as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--part", choices=sorted(PARTS), default="compare")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print(json.dumps(PARTS[asked.part](asked.data, asked.count, asked.seed), indent=1))


if __name__ == "__main__":
    main()
