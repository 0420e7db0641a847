"""Hostile sizes and bytes: deep, long, huge, malformed. Each an answer or a typed error, in time."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from structgen import JsonOptions, compile_gbnf, compile_json_schema, compile_lark, compile_regex
from structgen.errors import StructgenError
from tests.fuzz.schemas import HUGE, Schemas
from tests.fuzz.vocabularies import vocabulary

Case = dict[str, Any]
SECONDS = 30.0


def _nested(word: str, depth: int, inner: Any) -> Any:
    for _ in range(depth):
        inner = {
            word: [inner]
            if word in ("allOf", "anyOf", "oneOf", "prefixItems")
            else {"a": inner}
            if word == "properties"
            else inner
        }
    return inner


def _schemas(rng: random.Random) -> Any:
    """A schema that is large in one way."""
    size = rng.choice((50, 300, 1_500))
    word = rng.choice(("allOf", "anyOf", "oneOf", "not", "items", "properties", "prefixItems"))
    ways: list[Callable[[], Any]] = [
        lambda: _nested(word, size, {"type": "integer"}),
        lambda: {"enum": [f"{'x' * rng.randrange(30)}{i}" for i in range(size)]},
        lambda: {"anyOf": [{"properties": {f"k{i}": {"const": i}}} for i in range(min(size, 400))]},
        lambda: {"oneOf": [{"minimum": i, "maximum": i + 3} for i in range(min(size, 200))]},
        lambda: {"properties": {f"k{i}": {} for i in range(size)}, "required": [f"k{i}" for i in range(0, size, 2)]},
        lambda: {"pattern": "^" + "a?" * min(size, 200) + "a" * min(size, 200) + "$"},
        lambda: {"pattern": "(a|b)*a(a|b)" + f"{{{rng.randrange(5, 25)}}}$"},
        lambda: {"maxLength": rng.choice(HUGE), "minLength": rng.choice((0, 1, 1000))},
        lambda: {"maxItems": rng.choice(HUGE), "uniqueItems": True, "items": {"enum": list(range(size))}},
        lambda: {"maxProperties": rng.choice(HUGE), "minProperties": rng.choice((0, 3))},
        lambda: {"minItems": rng.choice((300, 3000)), "uniqueItems": True, "items": {"type": "integer"}},
        lambda: {"minimum": 10**size, "multipleOf": 10 ** (size // 2) + 1},
        lambda: {"multipleOf": rng.choice((1e-300, 1e-20, 10**300, 2**200 + 1, 0.0001234567))},
        lambda: {"dependentRequired": {f"k{i}": [f"k{i + 1}"] for i in range(min(size, 60))}},
        lambda: {"patternProperties": {f"^k{i}": {"minimum": i} for i in range(min(size, 20))}},
        lambda: {"not": {"anyOf": [{"required": [f"k{i}"]} for i in range(min(size, 70))]}},
        lambda: {
            "contains": {"const": 1},
            "minContains": rng.choice((50, 2000)),
            "maxContains": rng.choice((50, 5000)),
        },
        lambda: {"if": {"required": ["a"]}, "then": _nested("if", 30, {"required": ["b"]}), "uniqueItems": True},
    ]
    return rng.choice(ways)()


def _texts(rng: random.Random) -> list[bytes]:
    size = rng.choice((1_000, 20_000))
    return [
        b"[" * size + b"]" * size,
        b'{"a":' * size,
        b'"' + b"a" * size + b'"',
        b"1" * size,
        b"-0." + b"0" * size + b"1",
        b"1e" + b"9" * min(size, 2000),
        json.dumps(list(range(size // 10))).encode(),
        json.dumps({f"k{i}": i for i in range(size // 20)}).encode(),
        b'"' + rng.randbytes(50) + b'"',
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'"\xed\xa0\x80"',
        b'"\xf8\x88\x80\x80\x80"',
        b'"\xc0\xaf"',
        rng.randbytes(200),
        b"",
        b"\x00",
        b"\xef\xbb\xbf1",
    ]


def unit(seed: int, tally: Counter[str]) -> list[Case]:
    """One hostile constraint, hostile texts, and one that has been bitten about."""
    rng = random.Random(f"hostile {seed}")
    failed: list[Case] = []
    large = _schemas(rng)
    makers: list[tuple[str, Callable[[], Any]]] = [("schema", lambda: compile_json_schema(large, vocabulary(1)))]
    broken = Schemas(rng).root()
    makers.append(
        ("broken schema", lambda: compile_json_schema(_broken(rng, broken), vocabulary(1), JsonOptions.exact()))
    )
    source = "".join(rng.choices('start: "a" | b\n%ignore /x+/ ~2..3 [ ] ( ) { } * + ? root ::= \\ -> ', k=60))
    makers.append(("Lark", lambda: compile_lark(source, vocabulary(1), lexer=rng.choice(("dynamic", "contextual")))))
    makers.append(("GBNF", lambda: compile_gbnf("root ::= " + source, vocabulary(1))))
    makers.append(
        ("expression", lambda: compile_regex("".join(rng.choices("ab()[]{}*+?|\\^$.-,1:=!<", k=12)), vocabulary(1)))
    )
    for name, make in makers:
        start = time.process_time()  # others may have the processors
        try:
            tally["hostile"] += 1
            matcher = make().matcher()
            for text in _texts(rng) if name == "schema" else ():
                tally["texts"] += 1
                if matcher.accept_bytes(text):
                    matcher.is_accepting()
                    matcher.next_bytes()
                    matcher.rollback()
            matcher.shortest_completion()
        except StructgenError:
            pass
        except Exception as error:
            failed.append({"kind": f"untyped {type(error).__name__}", "detail": f"{name}: {error!r}"[:300]})
        if time.process_time() - start > SECONDS:
            failed.append({"kind": "slow", "detail": f"{name}: {time.process_time() - start:.0f} s of the processor"})
    return failed


def _broken(rng: random.Random, schema: Any) -> Any:
    """The schema with values of wrong types here and there."""
    wrong: list[Any] = [
        None,
        True,
        -1,
        1.5,
        "x",
        [],
        {},
        [None],
        float("nan"),
        float("inf"),
        10**400,
        "\ud800",
        ["a", 1],
        {1: 2},
    ]
    if isinstance(schema, dict):
        return {key: rng.choice(wrong) if rng.random() < 0.2 else _broken(rng, child) for key, child in schema.items()}
    if isinstance(schema, list):
        return [_broken(rng, child) for child in schema]
    return schema
