"""The JSON machine on fixed schemas and texts: its verdict is jsonschema's, and each mask says what accepting does.

Small enough to run with bounds checks as well (``make test`` does). Random schemas:
tests/core/engines/json/test_engine_completion.py.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import numpy as np
import pytest

import structgen
from structgen import JsonOptions, Vocabulary
from structgen.core.engines.laws import check_state, mask_of

MULTI = [
    '":',
    '{"',
    '"}',
    '",',
    '": ',
    "true",
    "12",
    "null",
    "ell",
    ' "',
    '\\"',
    "\\n",
    "é",
    'a"',
    'ab":',
    ', "',
    '":"',
    '"]',
    "}}",
    "00",
    "  ",
    "\\u00",
    "\\ud83d",
    "😀",
    '","',
    '":1,"',
    ',"a":',
    "e1",
    "-",
    "0.5",
    "\n  ",
    "[[",
    '""',
    "\\",
]
TOKENS = [bytes([byte]) for byte in range(256)] + [text.encode() for text in MULTI] + [b"\xf0\x9f", b"\x98"]
VOCABULARY = Vocabulary([*TOKENS, None, b""], eos_token_ids=[len(TOKENS)])
EXACT = JsonOptions.exact()

RECURSIVE = {
    "$defs": {"n": {"properties": {"next": {"$ref": "#/$defs/n"}, "v": {"type": "integer"}}}},
    "$ref": "#/$defs/n",
}
MANY = {"properties": {f"k{i}": {"type": "integer"} for i in range(150)}, "required": ["k3", "k149"]}
CASES: list[tuple[Any, list[str]]] = [
    (True, ["1", ' {"a": [null, {}]} ', '"\\ud83d\\ude00"', '"\\ud83d"', '{"a":1,"a":2}', '{"a":1,"\\u0061":2}', "01"]),
    ({"type": "string", "maxLength": 3}, ['"abc"', '"abcd"', '"é😀\\n"', '"\\ud83d\\ude00ab"', '"\\ud83d\\ude00abc"']),
    ({"type": "string", "minLength": 2}, ['"a"', '"ab"', '"\\u0061b"', '""']),
    ({"pattern": "^[a-z]+$", "maxLength": 4}, ['"abcd"', '"abcde"', '"aB"', '"\\u0061"', "3"]),
    ({"pattern": "^(aa)*$", "minLength": 3, "maxLength": 5}, ['"aaaa"', '"aaa"', '"aa"', '"aaaaaa"']),
    (
        {"enum": ["x", "xy", "é", 1, None, {"q": [1]}, 'a"b']},
        ['"x"', '"xy"', '"xyz"', '"\\u00e9"', '{"q":[1.0]}', '"a\\"b"', "1e0"],
    ),
    ({"type": "integer", "minimum": 3, "maximum": 1000}, ["3", "2", "1e3", "1.0e3", "1001", "30e-1", "31e-1", "-3"]),
    ({"multipleOf": 0.01}, ["0.01", "0.015", "15e-3", "1e-2", "1"]),
    (
        {"properties": {"a": {"type": "string"}, "ab": {"type": "integer"}}, "required": ["a"]},
        [
            '{"a":"x"}',
            '{"ab":1,"a":""}',
            '{"ab":"x","a":""}',
            "{}",
            '{"abc":1,"a":"x"}',
            '{"\\u0061b":1,"a":""}',
            '{"z":1,"z":2,"a":""}',
        ],
    ),
    (
        {"properties": {"a": {}}, "patternProperties": {"^b": {"type": "integer"}}, "additionalProperties": False},
        ['{"a":"x","b1":2}', '{"b1":"x"}', '{"c":1}', '{"b1":1,"b1":1}', '{"a":1,"b":2,"bb":3}'],
    ),
    (
        {"propertyNames": {"pattern": "^(a|b.*)$"}, "minProperties": 2},
        ['{"a":1,"b":2}', '{"a":1,"a":2}', '{"a":1}', '{"c":1,"b":1}'],
    ),
    (
        {"maxProperties": 2, "required": ["a"]},
        ['{"a":1,"b":2}', '{"b":1,"c":2}', '{"b":1,"a":2}', '{"a":1,"b":1,"c":1}'],
    ),
    ({"dependentRequired": {"a": ["b"]}, "maxProperties": 2}, ['{"a":1,"b":2}', '{"a":1}', '{"c":1,"a":2}', '{"b":1}']),
    (
        MANY,
        [
            '{"k149":1,"k3":2}',
            '{"k3":1}',
            '{"k149":1,"k3":2,"k149":3}',
            '{"k3":1,"k149":"x"}',
            '{"k3":1,"k149":2,"k150":[]}',
        ],
    ),
    (RECURSIVE, ['{"next":{"next":{"v":1}}}', '{"next":{"v":"x"}}', '{"next":{"next":{"next":{"next":{}}}}}']),
    (
        {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
        ["[]", '[1,"a"]', '[1,"a",2]', '["a"]'],
    ),
    ({"items": {"type": "array", "minItems": 1, "maxItems": 2}}, ["[[1],[1,2]]", "[[]]", "[[1,2,3]]"]),
    (
        {
            "anyOf": [
                {"properties": {"k": {"const": "A"}, "v": {"type": "integer"}}, "required": ["k"]},
                {"properties": {"k": {"const": "B"}, "v": {"type": "string"}}, "required": ["k"]},
            ]
        },
        ['{"k":"A","v":1}', '{"v":"x","k":"B"}', '{"v":"x","k":"A"}', '{"k":"C"}', '{"k":"AB"}', "[]"],
    ),
    ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, ["1", "2", "2.5", "1.5", '"x"']),
    ({"not": {"type": ["string", "object"]}}, ["1", '"x"', "{}", "[]", "null"]),
    (
        {"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}},
        ['{"a":1,"b":2}', '{"a":1}', '{"a":2}'],
    ),
]


def is_valid(schema: Any, text: str) -> bool:
    """By json and jsonschema; duplicate keys and lone surrogates are refused, as structgen does."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError("duplicate key")
        return dict(pairs)

    try:
        value = json.loads(text, object_pairs_hook=members)
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return False
    return bool(jsonschema.Draft202012Validator(schema).is_valid(value))


@pytest.mark.parametrize(
    "schema, texts", CASES, ids=lambda value: json.dumps(value)[:50] if not isinstance(value, list) else ""
)
def test_exact_options_accept_what_jsonschema_accepts(schema: Any, texts: list[str]) -> None:
    grammar = structgen.compile_json_schema(schema, VOCABULARY, EXACT)
    for text in texts:
        matcher = grammar.matcher()
        alive = True
        for place, byte in enumerate(text.encode()):
            if place % 5 == len(text) % 5:
                check_state(matcher, text=text.encode()[:place])
            alive = matcher.accept_token(byte)
            if not alive:
                break
        assert (alive and matcher.is_accepting()) == is_valid(schema, text), text


@pytest.mark.parametrize(
    "options",
    [
        JsonOptions(),
        JsonOptions(whitespace=2),
        JsonOptions(whitespace="compact"),
        JsonOptions(whitespace="any"),
        JsonOptions(string_escapes="any", key_order="any"),
        JsonOptions(max_string_length=4, number_spellings="any", max_number_length=4),
    ],
    ids=str,
)
@pytest.mark.parametrize("case", range(0, len(CASES), 2))
def test_walks_end_in_valid_documents(case: int, options: JsonOptions) -> None:
    schema, _ = CASES[case]
    grammar = structgen.compile_json_schema(schema, VOCABULARY, options)
    random = np.random.default_rng(case)
    matcher, text = grammar.matcher(), bytearray()
    for step in range(25):
        if step % 8 == 0:
            check_state(matcher, text=bytes(text))
        allowed = np.flatnonzero(mask_of(matcher)[: len(TOKENS)])
        if not len(allowed):
            break
        token = int(random.choice(allowed))
        assert matcher.accept_token(token)
        text += TOKENS[token]
    text += matcher.shortest_completion()
    assert is_valid(schema, text.decode()), text


def test_forks_are_independent() -> None:
    grammar = structgen.compile_json_schema(CASES[8][0], VOCABULARY, EXACT)
    matcher = grammar.matcher()
    for byte in b'{"z":1,"a':
        assert matcher.accept_token(byte)
    fork, before = matcher.fork(), mask_of(matcher)
    for byte in b'":"x","zz":2}':
        assert fork.accept_token(byte)
    for byte in b'b":1,"a":""}':
        assert matcher.accept_token(byte)
    assert fork.is_accepting() and matcher.is_accepting()
    assert fork.accept_token(VOCABULARY.eos_token_ids[0]) and fork.is_terminated() and not matcher.is_terminated()
    fork.rollback(14)
    matcher.rollback(12)
    assert (mask_of(fork) == before).all() and (mask_of(matcher) == before).all()
