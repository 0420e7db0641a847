"""What is fuzzed: a module each, with ``unit(seed, tally)`` and ``replay(case)``, and how often it has its turn."""

from __future__ import annotations

import importlib
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

SHARES = {  # of the units, in per mille
    "json": 780,
    "lark": 45,
    "lalr": 45,
    "gbnf": 25,
    "expressions": 85,
    "python_types": 10,
    "answers": 20,
    "vocabularies": 5,
    "generations": 8,
    "hostile": 1,
    "threads": 1,
}
_MODULES = {
    "json": "json_checks",
    "lark": "grammars",
    "lalr": "grammars",
    "gbnf": "grammars",
    "vocabularies": "vocabulary_walks",
}
_SHARED = ("lark", "lalr", "gbnf")


def module(area: str) -> Any:
    """The module of an area."""
    return importlib.import_module(f"tests.fuzz.{_MODULES.get(area, area)}")


def area_of(seed: int, only: Sequence[str] = ()) -> str:
    """The area that a seed belongs to."""
    names = [name for name in SHARES if not only or name in only]
    return random.Random(f"area {seed}").choices(names, [SHARES[name] for name in names])[0]


def run(area: str, seed: int, tally: Counter[str]) -> list[dict[str, Any]]:
    """One unit: what failed, as cases with their seed."""
    unit = module(area)
    try:
        found = unit.unit(seed, tally, area) if area in _SHARED else unit.unit(seed, tally)
    except Exception as error:  # a fault of the fuzzer itself, or of the engine where none was expected
        found = [{"kind": f"untyped {type(error).__name__}", "detail": repr(error)[:300]}]
    tally[f"units {area}"] += 1
    return [{"area": area, "seed": seed, **case} for case in found]


def replay(case: dict[str, Any]) -> str | None:
    """What is still wrong with a case; None: nothing. A case of a seed alone is run as it was."""
    if set(case) <= {"area", "seed", "kind", "detail"}:
        found = run(case["area"], case["seed"], Counter())
        return str(found[0]["kind"]) if found else None
    module_ = module(case["area"])
    if not hasattr(module_, "replay"):  # there the seed is the case
        return replay({"area": case["area"], "seed": case["seed"]})
    answer: str | None = module_.replay(case)
    return answer
