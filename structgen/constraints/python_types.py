"""JSON Schemas of Python types, such that what satisfies the schema is what pydantic reads as the type.

Pydantic's own schemas say less than its validators ask for: a date of the year 0000 is one to RFC 3339 but not to
Python, keys of ``dict[int, ...]`` are any strings, ``IPv4Network`` is a format that no draft defines. What is missing
is added here, as patterns. They may be narrower than the validator (networks of whole octets only), never wider.
Conditions on the time of validation (``PastDate``), texts within strings (``Json``) and functions of the user remain;
what they refuse raises when the output is parsed.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_IPV4_NETWORK = (
    rf"(?:{_IPV4}(?:/32)?|{_OCTET}(?:\.{_OCTET}){{2}}\.0/24|{_OCTET}\.{_OCTET}\.0\.0/16|{_OCTET}\.0\.0\.0/8)"
)
_HEX = "[0-9A-Fa-f]{1,4}"
_IPV6 = rf"(?:(?:{_HEX}:){{7}}{_HEX}|(?:{_HEX}:){{1,6}}:{_HEX}|::{_HEX})"
_IPV6_NETWORK = rf"(?:{_IPV6}(?:/128)?|(?:{_HEX}:){{4}}:/64|(?:{_HEX}:){{3}}:/48|(?:{_HEX}:){{2}}:/32)"
_IPV4_INTERFACE = rf"{_IPV4}(?:/(?:3[0-2]|[12]?[0-9]))?"
_IPV6_INTERFACE = rf"{_IPV6}(?:/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9]))?"
_DATE = "(?!0000)[0-9]{4}-"
_CLOCK = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,6})?"
_DAY = "(?:0[1-9]|1[0-9]|2[0-8])"  # of every month

PATTERNS: dict[str, str] = {
    "date": f"^{_DATE}",
    "date-time": f"^{_DATE}[0-9]{{2}}-[0-9]{{2}}[Tt]{_CLOCK}[Zz+\\-]",  # Python has no leap seconds
    "time": f"^{_CLOCK}[Zz+\\-]",
    "duration": "^P(?!.*[0-9]{6})",  # Python's timedelta ends at 999,999,999 days
    "ipv4network": f"^{_IPV4_NETWORK}$",
    "ipv6network": f"^{_IPV6_NETWORK}$",
    "ipvanynetwork": f"^(?:{_IPV4_NETWORK}|{_IPV6_NETWORK})$",
    "ipv4interface": f"^{_IPV4_INTERFACE}$",
    "ipv6interface": f"^{_IPV6_INTERFACE}$",
    "ipvanyinterface": f"^(?:{_IPV4_INTERFACE}|{_IPV6_INTERFACE})$",
    "ipvanyaddress": f"^(?:{_IPV4}|{_IPV6})$",
    "base64": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$",
    "base64url": "^(?:[A-Za-z0-9_\\-]{4})*(?:[A-Za-z0-9_\\-]{2}==|[A-Za-z0-9_\\-]{3}=)?$",
    **{
        f"uuid{version}": f"^[0-9A-Fa-f]{{8}}-[0-9A-Fa-f]{{4}}-{version}[0-9A-Fa-f]{{3}}-[89abAB][0-9A-Fa-f]{{3}}-"
        "[0-9A-Fa-f]{12}$"
        for version in range(1, 9)
    },
}
"""What strings of a format satisfy besides the format, to be read by pydantic."""

_KEYS: dict[str, dict[str, Any]] = {
    "integer": {"pattern": "^-?(?:0|[1-9][0-9]{0,17})$"},
    "number": {"pattern": r"^-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?$"},
    "boolean": {"enum": ["true", "false"]},
}
"""What the keys of a dict are, by the type that they are read as."""


class TypeSchemas(GenerateJsonSchema):
    """Pydantic's schemas, made as narrow as its validators, with objects of declared fields closed.

    Pydantic drops undeclared members by default, so a model would write them for nothing. A type that keeps them
    (``extra="allow"``) says so in its schema and stays open.
    """

    def generate(self, schema: Any, mode: Any = "validation") -> dict[str, Any]:
        """The schema of a type, with the patterns of its formats."""
        found = super().generate(schema, mode)
        _add_patterns(found)
        return found

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """A pydantic model."""
        return _close(super().model_schema(schema))

    def typed_dict_schema(self, schema: Any) -> dict[str, Any]:
        """A TypedDict."""
        return _close(super().typed_dict_schema(schema))

    def dataclass_schema(self, schema: Any) -> dict[str, Any]:
        """A dataclass."""
        return _close(super().dataclass_schema(schema))

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        """A dict, whose keys are written as strings."""
        found = super().dict_schema(schema)
        keys = self.generate_inner(schema["keys_schema"]) if "keys_schema" in schema else {}
        names = _KEYS.get(str(keys.get("type"))) if "enum" not in keys else None
        return {**found, "propertyNames": names} if names else found

    def datetime_schema(self, schema: Any) -> dict[str, Any]:
        """A point in time; one without time zone is not a ``date-time``."""
        if schema.get("tz_constraint") != "naive":
            return super().datetime_schema(schema)
        return {"type": "string", "pattern": f"^{_DATE}(?:0[1-9]|1[0-2])-{_DAY}T{_CLOCK}$"}

    def decimal_schema(self, schema: Any) -> dict[str, Any]:
        """A number, which is read exactly, with its limits on digits."""
        found = super().decimal_schema(schema)
        number = next((part for part in found.get("anyOf", ()) if part.get("type") == "number"), {"type": "number"})
        digits, places = schema.get("max_digits"), schema.get("decimal_places")
        if digits is None:
            return number if places is None else {**number, "allOf": [{"multipleOf": _power(-places)}]}
        fractions = range(min(digits, digits if places is None else places) + 1)
        choices = [_within(digits - count, count) for count in ([places] if places in fractions else fractions)]
        return {**number, "allOf": [{"anyOf": choices}]}

    def url_schema(self, schema: Any) -> dict[str, Any]:
        """A URL of one of the schemes, with a host that needs no encoding."""
        found = super().url_schema(schema)
        schemes = "|".join(schema.get("allowed_schemes") or ())
        host = r"[a-z][a-z0-9]{0,20}(?:\.[a-z][a-z0-9]{0,20}){0,9}"
        return {**found, "pattern": f"^(?:{schemes})://{host}(?:[/?#]|$)"} if schemes else found


def _within(whole: int, places: int) -> dict[str, Any]:
    """Decimals of so many digits before and after the point."""
    bound = _power(whole)
    return {"multipleOf": _power(-places), "exclusiveMinimum": -bound, "exclusiveMaximum": bound}


def _power(exponent: int) -> int | Decimal:
    return 10**exponent if exponent >= 0 else Decimal(1).scaleb(exponent)


def _add_patterns(schema: Any) -> None:
    """Add to every string of a format in `PATTERNS` its pattern, in place."""
    if isinstance(schema, list):
        for item in schema:
            _add_patterns(item)
    elif isinstance(schema, dict):
        for child in list(schema.values()):
            _add_patterns(child)
        pattern = PATTERNS.get(schema["format"]) if isinstance(schema.get("format"), str) else None
        if pattern is not None:
            if "pattern" in schema:
                schema["allOf"] = [*schema.get("allOf", ()), {"pattern": pattern}]
            else:
                schema["pattern"] = pattern


def _close(schema: dict[str, Any]) -> dict[str, Any]:
    return {"additionalProperties": False, **schema} if "properties" in schema else schema
