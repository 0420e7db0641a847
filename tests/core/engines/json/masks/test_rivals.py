"""Masks in arrays of distinct items against taking each token: items that differ from those before, early or late."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import structgen
from structgen import JsonOptions, Vocabulary
from tests.core.engines.json.masks.taking import checked_mask

CHARACTERS = ['"', "a", "b", "ab", "1", "0", ".", "-", "e", "\\u0061", "\\n", "é", "k", "l"]
PIECES = [*CHARACTERS, ",", " ", "[", "]", "{", "}", ":"]
ITEM_ENDS = ['","', '"],["', '","l":', '"},{"', "},", "1,", "],["]
WHOLE = ['"a', '"ab"', '{"k":"', '"k":', '"l":', "true", "10", '":"a', *ITEM_ENDS]


def vocabulary() -> Vocabulary:
    random = np.random.default_rng(3)
    tokens = [bytes([byte]) for byte in range(256)] + [text.encode() for text in WHOLE]
    for _ in range(500):
        tokens.append("".join(PIECES[i] for i in random.integers(0, len(PIECES), random.integers(2, 5))).encode())
    return Vocabulary([*tokens, None], eos_token_ids=len(tokens))


VOCABULARY = vocabulary()


def members(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties)[:1],
        "additionalProperties": False,
    }


FEW = {"enum": ["a", "ab", "aba", "b", "é", "1"]}
ITEMS: dict[str, Any] = {
    "listed": FEW,
    "patterns": {"type": "string", "pattern": "^[ab]{1,3}$"},
    "short": {"type": "string", "maxLength": 2},
    "text": {"type": "string"},
    "numbers": {"type": "integer", "minimum": -1, "maximum": 11},
    "kinds": {"enum": [1, "1", 10, True, None, ["a"], {"k": 1}]},
    "members": members(k=FEW, l={"type": "boolean"}),
    "named": members(k={"type": "string"}, l={"enum": [0, 1]}),
    "keys": {"type": "object", "propertyNames": {"pattern": "^[ab]{1,2}$"}, "additionalProperties": {"enum": [0, "a"]}},
    "nested": {"type": "array", "items": FEW, "uniqueItems": True, "maxItems": 2},
    "objects in arrays": {"type": "array", "items": members(k=FEW), "maxItems": 2},
}


@pytest.mark.parametrize("name", ITEMS)
def test_a_mask_is_what_can_be_taken(name: str) -> None:
    """Along random texts: a bit is set exactly if the token is taken, which asks of every byte anew."""
    random = np.random.default_rng(5)
    options = JsonOptions(string_escapes="any", whitespace="any")
    schema = {"type": "array", "uniqueItems": True, "items": ITEMS[name]}
    grammar = structgen.compile_json_schema(schema, VOCABULARY, options)
    seen = 0
    for _ in range(4):
        matcher = grammar.matcher()
        for _ in range(18):
            bits = checked_mask(matcher)
            seen += 1
            choices = [int(token) for token in np.flatnonzero(bits) if (VOCABULARY.tokens[token] or b"").strip()]
            if not choices:
                break
            matcher.accept_token(int(random.choice(choices)))
    assert seen >= 10


REPEATED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "bounded": ({"type": "string", "maxLength": 9}, ['"ab1ab"', '"\\u0061b1"', '"aé\\n"']),
    "few of a pattern": ({"type": "string", "pattern": "^(ab|a|b|1+)$"}, ['"a"', '"ab"', '"1"']),
    "listed": (FEW, ['"aba"', '"ab"', '"\\u0061"', '"é"', '"b"']),
    "numbers": ({"type": "number"}, ["10", "1.5", "-0.10"]),
    "few numbers": ({"enum": [1, 10, 100, 1.5]}, ["1", "10", "1e2"]),
    "of several kinds": (
        {"oneOf": [members(k=FEW, l={"type": "number"}), members(l={"type": "number"}), {"type": "number"}]},
        ['{"k":"ab","l":10}', '{"l":1}', "10", '{"l":1.0,"k":"a"}'],
    ),
    "in items": ({"type": "array", "items": {"type": "number"}, "uniqueItems": True}, ["[1,10]", "[10]", "[]"]),
}  # fmt: skip


@pytest.mark.parametrize("name", REPEATED)
def test_masks_along_items_that_are_there(name: str) -> None:
    """Behind each beginning of an item that was written before, which most tokens leave."""
    items, texts = REPEATED[name]
    schema = {"type": "array", "uniqueItems": True, "items": items}
    matcher = structgen.compile_json_schema(schema, VOCABULARY, JsonOptions.exact()).matcher()
    assert matcher.accept_bytes(b"[")
    for text in texts:
        written = text.encode() + b", "
        for index in range(len(written)):
            checked_mask(matcher)
            assert matcher.accept_bytes(written[index : index + 1]), (text, index)
    for text in texts:
        again, item = matcher.fork(), text.encode()
        for index in range(len(item)):
            checked_mask(again)
            if not again.accept_bytes(item[index : index + 1]):
                break
