"""Strings and what pydantic reads from strings: expressions, addresses, encoded bytes, identifiers."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pydantic
from pydantic.types import Base64Encoder, Base64UrlEncoder
from pydantic_core import SchemaError, SchemaValidator, core_schema

from structgen.core.grammars import python_regex
from structgen.core.grammars.rust_regex import parse_rust_search
from structgen.core.python_types.functions import LENGTHS, Functions, function_name
from structgen.core.python_types.json_texts import NotRegularError, json_text
from structgen.core.python_types.notes import checked, narrowed
from structgen.core.python_types.values import JsonDict
from structgen.core.regex.charset import CharSet, corrected
from structgen.core.regex.ecma_ast import ecma_source
from structgen.core.regex.regex_format import READ_BY_PYTHON
from structgen.errors import PatternError

_SPACE = r"\t-\r \x85\xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000"  # Unicode's White_Space, as Rust trims
_TRIMMED = rf"^(?![{_SPACE}])(?:[^]*[^{_SPACE}])?$"
_ASCII = r"^[\0-\x7F]*$"

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_IPV4_NETWORK = (
    rf"(?:{_IPV4}(?:/32)?|{_OCTET}(?:\.{_OCTET}){{2}}\.0/24|{_OCTET}\.{_OCTET}\.0\.0/16|{_OCTET}\.0\.0\.0/8"
    r"|0\.0\.0\.0/0)"
)
_HEX = "[0-9A-Fa-f]{1,4}"
_IPV6 = (
    rf"(?:(?:{_HEX}:){{7}}{_HEX}"
    + "".join(rf"|(?:{_HEX}:){{{n}}}(?:(?::{_HEX}){{1,{7 - n}}}|:)" for n in range(1, 7))
    + rf"|(?:{_HEX}:){{7}}:|:(?:(?::{_HEX}){{1,7}}|:))"
)
_IPV6_NETWORK = rf"(?:{_IPV6}(?:/128)?|(?:{_HEX}:){{4}}:/64|(?:{_HEX}:){{3}}:/48|(?:{_HEX}:){{2}}:/32|{_HEX}::/16|::/0)"
_IPV4_INTERFACE = rf"{_IPV4}(?:/(?:3[0-2]|[12]?[0-9]))?"
_IPV6_INTERFACE = rf"{_IPV6}(?:/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9]))?"
_BASE64 = "^(?:[A-Za-z0-9{0}]{{4}})*(?:[A-Za-z0-9{0}][AQgw]==|[A-Za-z0-9{0}]{{2}}[AEIMQUYcgkosw048]=)?$"
# Groups whose three bytes are all ASCII: no high bit in the 1st, 2nd and 3rd.
_FIRST, _SECOND, _THIRD = "[A-Za-f]", "[A-HQ-Xg-nw-z0-3]", "[ABEFIJMNQRUVYZcdghklopstwx014589]"
_BASE64_TEXT = (
    f"^(?:{_FIRST}{_SECOND}{_THIRD}[A-Za-z0-9{{0}}])*(?:{_FIRST}[AQgw]==|{_FIRST}{_SECOND}[AEIMQUYcgkosw048]=)?$"
)
_MAIL_DOMAIN = r"(?:[A-Za-z0-9]{1,30}(?:-[A-Za-z0-9]{1,20})?\.){1,3}[A-Za-z]{2,20}"
_EMAIL = rf"[A-Za-z0-9]{{1,20}}(?:[._+\-][A-Za-z0-9]{{1,20}}){{0,2}}@{_MAIL_DOMAIN}"
# Names at the top that the standards keep for other uses: the package email-validator refuses them.
_SPECIAL_USE = "|".join(
    "".join(f"[{letter.upper()}{letter}]" for letter in name)
    for name in ("arpa", "invalid", "local", "localhost", "onion", "test")
)
_NO_SPECIAL_USE = rf"(?![^]*\.(?:{_SPECIAL_USE})>?$)"
_LABEL = "[a-z](?:[a-z0-9]{0,20}(?:-[a-z0-9]{1,20})?)?"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{0,9}}"
_PORT = "(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}))?"
_PCHAR = r"[A-Za-z0-9\-._~!$&()*+,;=:@]"
_TAIL = rf"(?:/{_PCHAR}*)*(?:\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"
_USER = "(?:[A-Za-z0-9._~-]{1,40}(?::[A-Za-z0-9._~-]{0,40})?@)?"
_SPECIAL = ("http", "https", "ws", "wss", "ftp")
_OTHER_URL = (
    rf"^(?!(?:{'|'.join(_SPECIAL)}|file):)[a-z][a-z0-9+.\-]{{0,20}}:"
    rf"(?://{_USER}{_HOST}{_PORT}{_TAIL}|[A-Za-z0-9]{_PCHAR}*)$"
)
_UUID = "^[0-9A-Fa-f]{{8}}-[0-9A-Fa-f]{{4}}-{}[0-9A-Fa-f]{{3}}-[89abAB][0-9A-Fa-f]{{3}}-[0-9A-Fa-f]{{12}}$"
_SIZES = "|".join(re.escape(unit) for unit in sorted(pydantic.ByteSize.byte_sizes, key=len, reverse=True))
_BYTE_SIZE = rf"^(?:0|[1-9][0-9]{{0,11}})(?:\.[0-9]{{1,6}})? ?(?:{_SIZES}|[KMGTPE]i?B|B|kB)?$"

_NARROW = {
    "ipv4network": "whole octets",
    "ipv6network": "whole groups of 16 bits",
    "ipv6": "no zone (%eth0)",
    "email": "letters, digits and single signs between them",
    "name-email": "names of letters and digits",
}
PATTERNS: dict[str, str] = {
    "ipv4network": f"^{_IPV4_NETWORK}$",
    "ipv6network": f"^{_IPV6_NETWORK}$",
    "ipvanynetwork": f"^(?:{_IPV4_NETWORK}|{_IPV6_NETWORK})$",
    "ipv4interface": f"^{_IPV4_INTERFACE}$",
    "ipv6interface": f"^{_IPV6_INTERFACE}$",
    "ipvanyinterface": f"^(?:{_IPV4_INTERFACE}|{_IPV6_INTERFACE})$",
    "ipvanyaddress": f"^(?:{_IPV4}|{_IPV6})$",
    "email": f"^{_NO_SPECIAL_USE}{_EMAIL}$",
    "name-email": rf"^{_NO_SPECIAL_USE}(?:{_EMAIL}|[A-Za-z0-9]{{1,30}}(?: [A-Za-z0-9]{{1,30}}){{0,4}} <{_EMAIL}>)$",
    "regex": READ_BY_PYTHON,
}
"""What strings of a format are, where pydantic's functions read them."""


class Texts(Functions):
    """Schemas of strings."""

    def str_schema(self, schema: core_schema.StringSchema) -> JsonDict:
        """A string: lengths and the expression hold for what is left when blanks are stripped."""
        derived: JsonDict = {"type": "string"}
        least = schema.get("min_length", self.setting("str_min_length") or None)
        most = schema.get("max_length", self.setting("str_max_length"))
        if least is not None:
            derived["minLength"] = least
        if most is not None:
            derived["maxLength"] = most
        patterns, unsaid = [], None
        if schema.get("pattern") is not None:
            engine = schema.get("regex_engine", self.setting("regex_engine", "rust-regex"))
            pattern, unsaid = _searched(schema["pattern"], engine)
            patterns += [pattern] if pattern is not None else []
        if schema.get("ascii_only"):
            patterns.append(_ASCII)
        strips = schema.get("strip_whitespace", self.setting("str_strip_whitespace", False))
        limited = bool(derived.keys() - {"type"} or patterns)
        if strips and limited:
            patterns.append(_TRIMMED)
        derived |= conjoined(patterns)
        if strips and limited:
            derived = narrowed(derived, "str", "no blanks at the ends, which would be stripped")
        return derived if unsaid is None else checked(derived, "str", unsaid)

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonDict:
        """Bytes as UTF-8 text, or encoded as ``val_json_bytes`` says; lengths count bytes."""
        least, most = schema.get("min_length"), schema.get("max_length")
        encoding = self.setting("val_json_bytes", "utf8")
        if encoding == "utf8":
            derived: JsonDict = {"type": "string"}
            derived |= {} if least is None else {"minLength": least}
            if most is None:
                return (
                    derived
                    if least is None
                    else narrowed(derived, "bytes", "as many characters as bytes are asked for")
                )
            return narrowed(
                {**derived, "maxLength": most, "pattern": _ASCII}, "bytes", "ASCII, as there is a max_length"
            )
        if encoding == "hex":
            count = f"{{{least or 0},{'' if most is None else most}}}"
            return {"type": "string", "pattern": f"^(?:[0-9A-Fa-f]{{2}}){count}$"}
        derived = {"type": "string", "pattern": _BASE64.format(r"_\-")}
        for key, keyword, characters in (
            ("min_length", "minLength", -(-(least or 0) // 3) * 4),
            ("max_length", "maxLength", (most or 0) // 3 * 4),
        ):
            if schema.get(key) is not None:
                derived = narrowed({**derived, keyword: characters}, "bytes", "lengths of whole groups of three bytes")
        return derived

    def url_schema(self, schema: core_schema.UrlSchema) -> JsonDict:
        """A URL with a host of plain labels: nothing in it needs encoding."""
        schemes = schema.get("allowed_schemes")
        if schemes:
            plain = [re.escape(scheme).replace(r"\-", "-") for scheme in schemes if scheme != "file"]
            options = [f"(?:{'|'.join(plain)})://{_USER}{_HOST}{_PORT}{_TAIL}"] if plain else []
            options += [f"file://(?:{_HOST})?/{_PCHAR}*{_TAIL}"] if "file" in schemes else []
        else:
            options = [
                f"(?:{'|'.join(_SPECIAL)})://{_USER}{_HOST}{_PORT}{_TAIL}",
                f"file://(?:{_HOST})?/{_PCHAR}*{_TAIL}",
            ]
        derived: JsonDict = {"type": "string", "pattern": f"^(?:{'|'.join(options)})$"}
        if not schemes:
            derived = {"type": "string", "anyOf": [{"pattern": derived["pattern"]}, {"pattern": _OTHER_URL}]}
        if schema.get("max_length") is not None:  # a slash, and what the type says by default, may come to it
            defaults = len(str(schema.get("default_path") or "/")) + len(str(schema.get("default_host") or ""))
            derived["maxLength"] = max(0, schema["max_length"] - defaults - 6)
        return narrowed(derived, schema["type"], "hosts are names of ASCII letters, digits and single hyphens")

    def multi_host_url_schema(self, schema: core_schema.MultiHostUrlSchema) -> JsonDict:
        """A URL of several hosts; one is written."""
        return self.url_schema(schema)  # type: ignore[arg-type]

    def json_schema(self, schema: core_schema.JsonSchema) -> JsonDict:
        """JSON within a string."""
        derived = super().json_schema(schema)
        try:
            text = json_text(derived["contentSchema"], self.resolve_ref_schema)
        except (NotRegularError, RuntimeError) as error:  # RuntimeError: not known yet, as the type holds itself
            return checked(derived, "json", f"that the string is JSON of the type ({error})")
        reason = "compact, strings without escapes; no members with defaults, and of mappings only empty ones"
        return narrowed({**derived, "pattern": f"^{text}$"}, "json", reason)

    def uuid_schema(self, schema: core_schema.UuidSchema) -> JsonDict:
        """An identifier, perhaps of one version."""
        version = schema.get("version")
        said = {"format": "uuid"} if version is None else {"pattern": _UUID.format(version)}
        return {"type": "string", **said}

    def function_after_schema(self, schema: core_schema.AfterValidatorFunctionSchema) -> JsonDict:
        """Of the functions after strings, ``ByteSize`` reads a number and a unit, and some decode."""
        if function_name(schema) in ("EncodedBytes.decode", "EncodedStr.decode_str"):
            return self._decoded(schema)
        if function_name(schema) == "ByteSize._validate":
            sizes = [{"type": "string", "pattern": _BYTE_SIZE}, {"type": "integer", "minimum": 0}]
            return narrowed({"anyOf": sizes}, "ByteSize", "units in usual spelling")
        return super().function_after_schema(schema)

    def _decoded(self, schema: Any) -> JsonDict:
        """Base64, of UTF-8 where a string is decoded."""
        inner, encoder = self.generate_inner(schema["schema"]), schema["function"]["function"].__self__.encoder
        extra = {Base64Encoder: "+/", Base64UrlEncoder: r"_\-"}.get(encoder)
        if extra is None or self.setting("val_json_bytes", "utf8") != "utf8":
            return checked(inner, "function-after", f"that {encoder.__qualname__} decodes it")
        is_text = schema["schema"]["type"] == "str"
        derived = {**inner, **conjoined([*_patterns(inner), (_BASE64_TEXT if is_text else _BASE64).format(extra)])}
        return narrowed(derived, "function-after", "base64 of ASCII") if is_text else derived

    def generate_inner(self, schema: Any) -> JsonDict:
        """Where a function of pydantic reads a string of a format: with the pattern of this format."""
        derived = super().generate_inner(schema)
        name = derived.get("format")
        if schema["type"] == "json":  # formats of what is within
            return derived
        if schema["type"] in ("lax-or-strict", "json-or-python", "function-after") and "format" in derived:
            derived = self._limited(derived, schema)
        if name == "zoneinfo":
            return {"enum": sorted(zoneinfo.available_timezones())}
        if schema["type"] == "function-after" and self._is_secret_bytes(schema):
            return {**derived, **self.bytes_schema(_byte_lengths(derived))}
        if isinstance(name, str) and name in PATTERNS and PATTERNS[name] not in _patterns(derived):
            derived = {**derived, **conjoined([*_patterns(derived), PATTERNS[name]])}
            if _NARROW.get(name):
                return narrowed(derived, name, _NARROW[name])
        return derived

    def _limited(self, derived: JsonDict, schema: Any) -> JsonDict:
        """What a function reads of a string, within the limits that ``model_config`` sets for all strings."""
        limits = self.str_schema(core_schema.str_schema())
        if len(limits) == 1 or not self._reads_string(schema):
            return derived
        patterns = [
            *_patterns(derived),
            *(pattern for pattern in _patterns(limits) if pattern not in _patterns(derived)),
        ]
        least, most = limits.get("minLength", 0), limits.get("maxLength")
        derived = {**derived, "minLength": max(derived.get("minLength", 0), least), **conjoined(patterns)}
        return derived if most is None else {**derived, "maxLength": min(most, derived.get("maxLength", most))}

    def _reads_string(self, schema: Any) -> bool:
        kind = schema["type"]
        if kind == "lax-or-strict":
            return self._reads_string(schema["strict_schema" if self.setting("strict") else "lax_schema"])
        if kind == "json-or-python":
            return self._reads_string(schema["json_schema"])
        if kind == "union":
            return any(map(self._reads_string, core_schema.iter_union_choices(schema)))
        inner = schema.get("schema") if kind.startswith("function-") else None
        return kind == "str" if inner is None else self._reads_string(inner)

    def _is_secret_bytes(self, schema: Any) -> bool:
        """Whether these are secret bytes, whose lengths functions count."""
        while schema["type"] == "function-after" and function_name(schema) in LENGTHS:
            schema = self.core(schema["schema"])
        return schema["type"] == "function-after" and function_name(schema) == "SecretBytes"


def _byte_lengths(derived: JsonDict) -> core_schema.BytesSchema:
    keys = {"min_length": "minLength", "max_length": "maxLength"}
    return core_schema.bytes_schema(**{key: derived[keyword] for key, keyword in keys.items() if keyword in derived})


def conjoined(patterns: list[str]) -> JsonDict:
    """Patterns that all hold."""
    others = [{"pattern": pattern} for pattern in patterns[1:]]
    return {} if not patterns else {"pattern": patterns[0], **({"allOf": others} if others else {})}


def _patterns(schema: JsonDict) -> list[str]:
    patterns = [schema["pattern"]] if "pattern" in schema else []
    return patterns + [part["pattern"] for part in schema.get("allOf", ()) if set(part) == {"pattern"}]


def _searched(pattern: Any, engine: str) -> tuple[str | None, str | None]:
    """The expression in ECMA-262, or why there is none."""
    try:
        if isinstance(pattern, re.Pattern):
            return ecma_source(python_regex.parse(pattern.pattern, pattern.flags)), None
        if engine == "python-re":
            return ecma_source(python_regex.parse(pattern)), None
        return ecma_source(parse_rust_search(pattern, as_pydantic_reads)), None
    except PatternError as error:
        return None, f"that it matches {pattern!r:.100}: {str(error).splitlines()[0]}"


@lru_cache(maxsize=256)
def as_pydantic_reads(atom: str, expected: CharSet) -> CharSet:
    """The characters that an expression of one character matches in the installed pydantic-core.

    Takes some ten milliseconds, and nothing when asked again.

    Args:
        atom: the expression, as Rust's crate ``regex`` writes it.
        expected: what it is likely to match; the nearer, the fewer questions.

    Raises:
        PatternError: pydantic-core does not read the expression.
    """
    try:
        only, some = _judge(rf"^{atom}*\z"), _judge(atom)
    except SchemaError as error:
        raise PatternError(f"pydantic-core does not read {atom!r}: {error}", pattern=atom) from None
    return corrected(expected, only, some)


def _judge(pattern: str) -> Callable[[str], bool]:
    """Whether pydantic-core takes a string."""
    return SchemaValidator(core_schema.str_schema(pattern=pattern)).isinstance_python
