"""Arrays of distinct items against brute force: all texts of small languages, and hostile equalities.

With one spelling for each value the language of a schema with few values is a finite set of texts, so that the bytes
allowed after every beginning are known exactly.
"""

from __future__ import annotations

import itertools
import json
import random
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from typing import Any

import pytest

from structgen import JsonOptions, UnsatisfiableSchemaError, UnsupportedSchemaError, compile_json_schema
from structgen.core.vocabulary.vocabulary import Vocabulary
from tests.many import cases

BYTES = Vocabulary([bytes([b]) for b in range(256)] + [b""], eos_token_ids=[256], special_token_ids=[256])
ONE_SPELLING = JsonOptions(whitespace="compact", key_order="any")


def spellings(value: Any) -> list[str]:
    """All compact texts of a value: members in any order."""
    if isinstance(value, dict):
        return [
            "{" + ",".join(members) + "}"
            for order in itertools.permutations(value.items())
            for members in itertools.product(*[[json.dumps(k) + ":" + t for t in spellings(v)] for k, v in order])
        ]
    if isinstance(value, list):
        return ["[" + ",".join(texts) + "]" for texts in itertools.product(*map(spellings, value))]
    return [json.dumps(value, ensure_ascii=False)]


def canonical(value: Any) -> Any:
    return json.dumps(value, sort_keys=True)


def check_language(schema: dict[str, Any], values: list[Any], options: JsonOptions = ONE_SPELLING) -> None:
    """The grammar's texts, byte by byte, are the spellings of the arrays ``values``."""
    texts = sorted(text.encode() for value in values for text in spellings(value))
    matcher = compile_json_schema(schema, BYTES, options).matcher()

    def walk(low: int, high: int, depth: int) -> None:
        assert matcher.is_accepting() == (len(texts[low]) == depth), texts[low][:depth]
        assert not any(matcher.stats.values())
        wanted: dict[int, list[int]] = {}
        for number in range(low, high):
            if len(texts[number]) > depth:
                wanted.setdefault(texts[number][depth], []).append(number)
        assert set(matcher.next_bytes().nonzero()[0].tolist()) == set(wanted), texts[low][:depth]
        for byte, numbers in wanted.items():
            assert matcher.accept_bytes(bytes([byte]))
            walk(numbers[0], numbers[-1] + 1, depth + 1)
            matcher.rollback()

    walk(0, len(texts), 0)


def arrays(values: list[Any], least: int, most: int) -> list[list[Any]]:
    """All arrays of distinct values."""
    return [list(items) for size in range(least, most + 1) for items in itertools.permutations(values, size)]


ITEMS: dict[str, tuple[Any, list[Any]]] = {
    "spaces": ({"enum": ["New York", "Los Angeles", "New"]}, ["New York", "Los Angeles", "New"]),
    "pattern with spaces": ({"type": "string", "pattern": "^a (b|c| d)$"}, ["a b", "a c", "a  d"]),
    "shared beginnings": ({"enum": ["a", "aa", "aaa", "b"]}, ["a", "aa", "aaa", "b"]),
    "long constants": ({"enum": ["x" * 250, "x" * 250 + "y"]}, ["x" * 250, "x" * 250 + "y"]),
    "integers": ({"type": "integer", "minimum": 8, "maximum": 11}, [8, 9, 10, 11]),
    "signed": ({"type": "integer", "minimum": -2, "maximum": 1}, [-2, -1, 0, 1]),
    "decimals": ({"type": "number", "multipleOf": 0.5, "minimum": 0.5, "maximum": 2}, [0.5, 1, 1.5, 2]),
    "enumerated numbers": ({"enum": [10, 100, 1.5, -1]}, [10, 100, 1.5, -1]),
    "mixed": ({"enum": [1, "1", None, [1], {"a": 1}]}, [1, "1", None, [1], {"a": 1}]),
    "literals": ({"type": ["boolean", "null"]}, [True, False, None]),
    "lengths": (
        {"type": "string", "pattern": "^[ab]*$", "minLength": 1, "maxLength": 2},
        ["a", "b", "aa", "ab", "ba", "bb"],
    ),
    "objects": (
        {
            "type": "object",
            "properties": {"a": {"type": "boolean"}, "b": {"const": 0}},
            "additionalProperties": False,
        },
        [{}, {"a": True}, {"a": False}, {"b": 0}, {"a": True, "b": 0}, {"a": False, "b": 0}],
    ),
    "keys": (
        {"type": "object", "propertyNames": {"pattern": "^[xy]$"}, "additionalProperties": {"const": 1}},
        [{}, {"x": 1}, {"y": 1}, {"x": 1, "y": 1}],
    ),
    "arrays": ({"type": "array", "items": {"enum": [1, 12]}, "maxItems": 1}, [[], [1], [12]]),
    "distinct arrays": (
        {"type": "array", "items": {"enum": [1, 12]}, "uniqueItems": True},
        [[], [1], [12], [1, 12], [12, 1]],
    ),
    "alternatives": ({"anyOf": [{"enum": ["a", "b"]}, {"enum": ["b", "c"]}, {"const": 1}]}, ["a", "b", "c", 1]),
    "overlapping objects": (
        {
            "type": "object",
            "required": ["k"],
            "propertyNames": {"const": "k"},
            "anyOf": [{"properties": {"k": {"enum": [1, 2]}}}, {"properties": {"k": {"enum": [2, 3]}}}],
        },
        [{"k": 1}, {"k": 2}, {"k": 3}],
    ),
}


@pytest.mark.parametrize("name", ITEMS)
@pytest.mark.parametrize("most", [2, None])
def test_small_languages(name: str, most: int | None) -> None:
    items, values = ITEMS[name]
    limit = {} if most is None else {"maxItems": most}
    few = values if most is not None else values[:3]
    if most is None:  # exhausting the values is the point
        items = {"allOf": [items, {"enum": few}]}
    schema = {"type": "array", "uniqueItems": True, "items": items, **limit}
    check_language(schema, arrays(few, 0, len(few) if most is None else most))


@pytest.mark.parametrize("name", ["integers", "shared beginnings", "objects", "distinct arrays"])
def test_as_many_as_there_are(name: str) -> None:
    items, values = ITEMS[name]
    items, values = {"allOf": [items, {"enum": values[:3]}]}, values[:3]
    schema = {"type": "array", "uniqueItems": True, "items": items, "minItems": 3}
    check_language(schema, arrays(values, 3, 3))


def test_contains_with_few_values() -> None:
    schema = {
        "type": "array",
        "uniqueItems": True,
        "items": {"enum": [1, 2, 3, "a b"]},
        "contains": {"minimum": 3},
        "maxItems": 2,
    }
    wanted = [items for items in arrays([1, 2, 3, "a b"], 1, 2) if any(item in (3, "a b") for item in items)]
    wanted = [items for items in wanted if any(not isinstance(item, int) or item >= 3 for item in items)]
    check_language(schema, wanted)


def test_items_before_those_that_are_counted() -> None:
    """Some item from the second on is no number: the first may be the same as the only one that is left for that."""
    schema = {
        "type": "array", "uniqueItems": True, "items": {"enum": [None, True, 1]},
        "not": {"prefixItems": [True, {"type": "number"}]},
    }  # fmt: skip
    items = [None, True, 1]
    check_language(schema, [array for array in arrays(items, 2, 3) if array[1] != 1 or array[1] is True])
    with pytest.raises(UnsupportedSchemaError, match="uniqueItems"):
        compile_json_schema({**schema, "items": {"enum": [None, 1]}}, BYTES, ONE_SPELLING)


def test_random_enumerations() -> None:
    scalars = [0, 1, 10, -1, 0.5, 1.25, "", " ", "a", "a b", "ab", "é", None, True]
    generator = random.Random(7)
    for _ in range(40):
        values = generator.sample(scalars, 3)
        compound = generator.choice([[values[0]], {"a": values[1]}, [], {}, [values[0], values[1]]])
        chosen = [*values[:2], compound]
        check_language({"type": "array", "uniqueItems": True, "items": {"enum": chosen}}, arrays(chosen, 0, 3))


def accepts(schema: Any, text: str) -> bool:
    matcher = compile_json_schema(schema, BYTES, JsonOptions.exact()).matcher()
    for byte in text.encode():
        if not matcher.accept_bytes(bytes([byte])):
            return False
    return matcher.is_accepting()


def test_small_numbers_do_not_collide() -> None:
    matcher = compile_json_schema({"uniqueItems": True}, BYTES, JsonOptions.exact()).matcher()
    for one in range(-60, 61):
        for two in range(-60, 61):
            assert matcher.accept_bytes(b"[%d,%d" % (one, two))
            assert matcher.accept_bytes(b"]") == (one != two), (one, two)
            matcher.rollback(2 if one != two else 1)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("10", "1e1"), ("10", "1.0E+01"), ("0", "-0"), ("0", "0e5"), ("-1.50", "-15e-1"), ("120e-2", "1.2"),
        ('"a"', '"\\u0061"'), ('"/"', '"\\/"'), ('"\\n"', '"\\u000A"'), ('"😀"', '"\\ud83d\\uDE00"'),
        ('{"a":1,"b":[2]}', '{ "b" : [ 2.0 ], "\\u0061" : 1 }'), ("[[1],{}]", "[ [1e0] , {  } ]"),
        ('{"a":{"c":1,"d":2}}', '{"a":{"d":2,"c":1}}'), ("[" * 300 + "1" + "]" * 300, "[" * 300 + "1.0" + "]" * 300),
    ],
)  # fmt: skip
def test_equal_values(one: str, two: str) -> None:
    assert accepts({}, f"[{one},{two}]")
    assert not accepts({"uniqueItems": True}, f"[{one},{two}]")
    assert accepts({"uniqueItems": True}, f"[{one},[{two}]]")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("1", "true"), ("0", "false"), ("1", '"1"'), ("null", '"null"'), ("[]", "{}"), ('"a"', '"a "'), ("1", "10"),
        ("1e5", "1e-5"), ("-1", "1"), ('{"a":1}', '{"a":1,"b":1}'), ("[1,2]", "[2,1]"), ('{"a":[]}', '{"a":{}}'),
        ('{"a":1,"b":2}', '{"a":2,"b":1}'), ("1.5", "15"), ("[[],[]]", "[[[]]]"), ('"\\u0000"', '""'),
    ],
)  # fmt: skip
def test_different_values(one: str, two: str) -> None:
    assert accepts({"uniqueItems": True}, f"[{one},{two}]")
    assert accepts({"uniqueItems": True}, f"[{two} , {one}]")


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"items": {"format": "email"}}, '["a@b.c","a@b.d","zz@example.com"]'),
        ({"items": {"pattern": "^[A-Z]{4} [0-9]{3,4}$"}}, '["ABCD 123","ABCD 124","ABCD 1234"]'),
        ({"contains": {"minimum": 3}}, "[1,1.5,3]"),
        ({"items": {"minimum": 7}}, "[7.000,1.4e+001]"),
        ({"items": {"enum": [7, 8]}}, "[8,70e-1]"),
        ({"items": {"enum": ["de_DE", "en_GB"]}}, '["de_DE","\\u0065n_G\\u0042"]'),
        ({"contains": {"const": "\u0001"}}, '[1,"\\u0001"]'),
        ({"contains": {"const": "x" * 300}}, '[1,"' + "x" * 300 + '"]'),
        ({"contains": {"const": 9007199254740992}}, '[[true,"\\u0062"]\n,90071992547409920000e-4]'),
        ({"items": {"enum": ["😀a", 1000]}}, '[1000,"\\ud83d\\uDE00\\u0061"]'),
        ({"items": {"enum": [0.0000001, [1]]}}, "[[1.000], 1e-7]"),
    ],
)
def test_valid_arrays_in_any_spelling(schema: dict[str, Any], text: str) -> None:
    assert accepts({**schema, "uniqueItems": True}, text)


@pytest.mark.parametrize("least", [300, 1000])
def test_long_completions(least: int) -> None:
    for items in ({"type": "integer"}, {"type": "integer", "minimum": 1, "maximum": least}, {"type": "string"}):
        schema = {"type": "array", "uniqueItems": True, "items": items, "minItems": least}
        matcher = compile_json_schema(schema, BYTES, ONE_SPELLING).matcher()
        found = json.loads(matcher.shortest_completion())
        assert len(found) == len(set(found)) == least


def test_distinct_and_not_distinct() -> None:
    branch = {"items": {"type": "integer"}}
    schema = {"type": "array", "uniqueItems": True, "oneOf": [branch, {"uniqueItems": True, **branch}]}
    with pytest.raises(UnsatisfiableSchemaError):  # both branches say the same of distinct items
        compile_json_schema(schema, BYTES)
    schema["oneOf"] = [branch, {"uniqueItems": True, "items": {"type": "number"}}]
    assert accepts(schema, "[0,0.5]")
    assert not accepts(schema, "[0,0]")
    assert not accepts(schema, "[0,1]")


WALKED: list[dict[str, Any]] = [
    {"uniqueItems": True},
    {"uniqueItems": True, "items": {"enum": [0, 5, 1.5]}},
    {"uniqueItems": True, "items": {"type": "integer", "minimum": -3, "maximum": 12}},
    {"uniqueItems": True, "items": {"multipleOf": 0.25, "minimum": 0, "maximum": 1}, "minItems": 4},
    {"uniqueItems": True, "items": {"type": ["number", "null"]}, "minItems": 12},
    {"uniqueItems": True, "contains": {"minimum": 3}, "items": {"type": "number"}},
    {"uniqueItems": True, "items": {"uniqueItems": True, "items": {"enum": ["a", "\u0001", " "]}, "type": "array"}},
    {
        "uniqueItems": True,
        "items": {"type": "object", "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {"const": 0}},
    },
]


@pytest.mark.first_case
@pytest.mark.parametrize("number", range(len(WALKED)))
@pytest.mark.parametrize("options", [JsonOptions.exact(), JsonOptions()], ids=["exact", "default"])
def test_random_walks_end(number: int, options: JsonOptions) -> None:
    """However a value was begun: no dead end, and the completion is an array of distinct items."""
    schema = {"type": "array", **WALKED[number]}
    random_ = random.Random(number)
    likely = b'[]{}",:0123456789.eE+-ab\\u0 ntrlf'
    for _ in cases(60, 20):
        matcher = compile_json_schema(schema, BYTES, options).matcher()
        text = b""
        for _ in range(random_.randrange(40)):
            allowed = matcher.next_bytes().nonzero()[0].tolist()
            if not allowed:
                assert matcher.is_accepting(), text
                break
            byte = bytes([random_.choice([b for b in allowed if b in likely] or allowed)])
            assert matcher.accept_bytes(byte), text
            text += byte
        whole = json.loads(text + matcher.shortest_completion(), parse_float=Decimal)
        assert len({repr_value(item) for item in whole}) == len(whole), text
        assert not any(matcher.stats.values())


EXACT = Context(prec=1000, Emax=MAX_EMAX, Emin=MIN_EMIN)


def repr_value(value: Any) -> str:
    """Equal for equal values: numbers by value, members in one order."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{key!r}:{repr_value(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(repr_value, value)) + "]"
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return str(EXACT.normalize(Decimal(value))) if value else "0"
    return repr(value)


@pytest.mark.parametrize("text", ["[0,0e", "[0,-0e", "[0,0.0e", "[0.0,0e+1", "[true,true", '["a","\\u0061"'])
def test_what_can_only_repeat_an_item_is_dead(text: str) -> None:
    matcher = compile_json_schema({"uniqueItems": True}, BYTES, JsonOptions.exact()).matcher()
    assert not matcher.accept_bytes(text.encode())


def test_an_indented_bracket_must_not_repeat_an_item() -> None:
    """After the newline that only a closing bracket may follow, the object can take no more members."""
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "object"}}
    matcher = compile_json_schema(schema, BYTES, JsonOptions(whitespace=2)).matcher()
    item = b'{\n    "": 0'
    assert matcher.accept_bytes(b"[\n  " + item + b"\n  },\n  " + item)
    assert not matcher.accept_bytes(b"\n")
    assert matcher.accept_bytes(b',\n    "a": 0\n  }\n]') and matcher.is_accepting()


@pytest.mark.first_case
@pytest.mark.parametrize(
    "item",
    [
        {"exclusiveMinimum": 1e300, "multipleOf": 5},
        {"exclusiveMinimum": 1e300, "not": {"multipleOf": 1}},
        {"exclusiveMinimum": 1e300, "not": {"multipleOf": 1e-300}},
        {"minimum": -2e300, "maximum": -1e300, "not": {"multipleOf": 0.001}},
        {"minimum": 1e-300, "maximum": 2e-300},
        {"minimum": 1e200, "type": "integer", "multipleOf": 7},
    ],
    ids=str,
)
def test_numbers_whose_members_are_hundreds_of_digits_away(item: dict[str, Any]) -> None:
    """What the next item can become is not looked for among all shorter texts, nor given up."""
    matcher = compile_json_schema({"items": {"type": "number", **item}, "uniqueItems": True}, BYTES).matcher()
    assert matcher.accept_bytes(b"[")
    first, *_ = matcher.shortest_completion().split(b"]")
    assert matcher.accept_bytes(first + b",") if first else True
    for byte in matcher.shortest_completion()[:20]:
        assert matcher.next_bytes()[byte] and matcher.accept_bytes(bytes([byte]))
    rest = matcher.shortest_completion()
    assert matcher.accept_bytes(rest) and matcher.is_accepting()
    assert not any(matcher.stats.values())
