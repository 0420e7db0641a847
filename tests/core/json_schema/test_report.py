"""What the report says of each keyword."""

from __future__ import annotations

from typing import Any

import pytest

from structgen.core.json_schema.lowering import lower
from structgen.options import JsonOptions

D7 = JsonOptions(dialect="draft7")
TABLE: list[tuple[Any, JsonOptions | None, str, str, str]] = [  # schema, options, pointer, status, part of the reason
    ({"type": "string"}, None, "/type", "enforced", ""),
    ({"items": {"minimum": 1}}, None, "/items/minimum", "enforced", ""),
    ({"title": "x"}, None, "/title", "annotation", ""),
    ({"$defs": {}}, None, "/$defs", "annotation", "structure"),
    ({"x-y": 1}, None, "/x-y", "annotation", "not a keyword of draft2020-12"),
    ({"dependencies": {}}, None, "/dependencies", "enforced", ""),
    ({"dependencies": {}}, D7, "/dependencies", "enforced", ""),
    ({"format": "date"}, None, "/format", "enforced", ""),
    ({"format": "date"}, JsonOptions(assert_formats=False), "/format", "annotation", "not asserted"),
    ({"format": "int32"}, None, "/format", "annotation", "not a format"),
    ({"format": "regex"}, None, "/format", "enforced", ""),
    ({"format": "idn-hostname"}, None, "/format", "enforced", "Punycode"),
    ({"pattern": r"^\p{L}+$"}, None, "/pattern", "enforced", "by Unicode 18.0.0"),
    ({"patternProperties": {"^(?i:é)": True}}, None, "/patternProperties", "enforced", "by Unicode 18.0.0"),
    ({"$ref": "#/definitions/a", "type": "null", "definitions": {"a": {}}}, D7, "/type", "ignored", "hides"),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "null"}}}, None, "/$defs/a/type", "enforced", ""),
    ({"then": {}}, None, "/then", "ignored", "unless if"),
    ({"if": {}, "then": {}}, None, "/then", "enforced", ""),
    ({"maxContains": 1}, None, "/maxContains", "ignored", "unless contains"),
    ({"additionalItems": False}, D7, "/additionalItems", "ignored", "unless items"),
    ({"contentMediaType": "text/html"}, None, "/contentMediaType", "annotation", ""),
    ({"items": {"$schema": 5}}, None, "/items/$schema", "annotation", "not a metaschema"),
    ({"type": "object", "properties": {"a": False}, "required": ["a"]}, None, "/required", "enforced", ""),
    ({"$schema": "http://a.b/c"}, None, "/$schema", "annotation", "read as draft2020-12"),
]


@pytest.mark.parametrize(("schema", "options", "pointer", "status", "reason"), TABLE, ids=lambda entry: str(entry)[:40])
def test_report(schema: Any, options: JsonOptions | None, pointer: str, status: str, reason: str) -> None:
    report = lower(schema, options).report
    entry = report.to_dict()[pointer]
    assert entry["status"] == status
    assert reason in entry.get("reason", "")
    assert any(line.startswith(pointer) and status in line for line in str(report).splitlines())


def test_what_no_reference_reaches_is_not_reported() -> None:
    assert set(lower({"$defs": {"a": {"type": "null"}}}).report.to_dict()) == {"/$defs"}
    assert str(lower(True).report) == ""
