"""Failures made small: parts of a case are taken away or replaced by less as long as it fails in the same way."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

Case = dict[str, Any]
JSON_FIELDS = ("schema", "rules")
TEXT_FIELDS = ("text", "grammar", "pattern")


def shrink(case: Case, fails: Callable[[Case], bool], seconds: float = 20.0) -> Case:
    """A smaller case that ``fails`` too, found greedily within ``seconds``."""

    def still(smaller: Case) -> bool:
        try:
            return time.monotonic() < end and fails(smaller)
        except Exception:  # no legal case any more
            return False

    end = time.monotonic() + seconds
    better: Case | None = case
    while better is not None and time.monotonic() < end:
        case = better
        better = next(filter(still, candidates(case)), None)
    return case


def candidates(case: Case) -> Iterator[Case]:
    """Smaller cases, the smallest first."""
    if case.get("vocabulary"):
        yield {**case, "vocabulary": 0}
    for field in JSON_FIELDS:
        if isinstance(case.get(field), str):
            found = sorted((json.dumps(value) for value in less(json.loads(case[field]))), key=len)
            for text in dict.fromkeys(found):
                if len(text) < len(case[field]):
                    yield {**case, field: text}
    for field in TEXT_FIELDS:
        if isinstance(case.get(field), str):
            for text in _shorter(case[field]):
                yield {**case, field: text}
    for name, value in (case.get("options") or {}).items():
        if value != _PLAIN.get(name, value):
            yield {**case, "options": {**case["options"], name: _PLAIN[name]}}


_PLAIN = {
    "key_order": "any",
    "whitespace": "any",
    "max_whitespace_run": None,
    "string_escapes": "any",
    "number_spellings": "any",
    "max_string_length": None,
    "max_number_length": None,
}


def less(value: Any) -> Iterator[Any]:
    """Values with one part less, or with one part replaced by something simpler."""
    if isinstance(value, dict):
        yield {}
        yield from value.values()
        for name in value:
            yield {key: item for key, item in value.items() if key != name}
        for name, item in value.items():
            for smaller in less(item):
                yield {**value, name: smaller}
            if isinstance(item, (dict, list)) and item:
                yield {**value, name: True}
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield value[:place] + value[place + 1 :]
            for smaller in less(item):
                yield [*value[:place], smaller, *value[place + 1 :]]
    elif isinstance(value, str) and value:
        yield value[:-1]
        yield value[1:]
        yield "a"
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and value not in (0, 1):
        yield 0
        yield 1
        if isinstance(value, int):
            yield value // 2


def _shorter(text: str) -> Iterator[str]:
    """The text without a stretch of it, long ones first; a JSON text also with one part of its value less."""
    try:
        value = json.loads(text)
        yield from sorted((json.dumps(smaller) for smaller in less(value)), key=len)[:50]
    except ValueError:
        pass
    size = len(text) // 2
    while size:
        for start in range(0, len(text), size):
            yield text[:start] + text[start + size :]
        size //= 2
