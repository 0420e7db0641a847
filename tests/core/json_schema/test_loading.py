"""Schema texts: exact numbers, sources, and errors with line and column."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from structgen.core.json_schema.loading import load_schema
from structgen.errors import SchemaError, SchemaTooComplexError


def test_sources(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text('{"minimum": 0.10}', encoding="utf-8")
    expected = {"minimum": Decimal("0.10")}
    assert load_schema(path) == load_schema(path.read_bytes()) == load_schema(path.read_text()) == expected
    assert load_schema(b"\xef\xbb\xbftrue") is True
    assert load_schema(expected) is expected


def test_numbers_are_exact() -> None:
    assert load_schema('{"maximum": 0.1234567890123456789e3}') == {"maximum": Decimal("123.4567890123456789")}


def test_of_two_equal_keys_the_last_counts() -> None:
    assert load_schema('{"a": 1, "a": 2}') == {"a": 2}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ('{"a": 1,\n "b": }', 'line 2, column 7\n   "b": }\n        ^'),
        ("", "the schema is empty"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"type":\n', "line 2, column 1"),
        ('{"a": "\u2028",\n x', "line 2, column 2"),
        ('{"a": -Infinity}', "-Infinity is not JSON"),
        (b'{"a": "\xff"}', "not UTF-8: invalid start byte at byte 7"),
        ("[1]", "an object, true or false; this text holds a list"),
        (5, "found int"),
    ],
)
def test_bad_texts(source: Any, message: str) -> None:
    with pytest.raises(SchemaError) as error:
        load_schema(source)
    assert message in str(error.value)


def test_deep_text() -> None:
    with pytest.raises(SchemaTooComplexError, match="nested too deeply"):
        load_schema('{"items":' * 100_000 + "{}" + "}" * 100_000)
