"""Whether a JSON text is spelled as options ask, and a text of a value that is."""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from structgen.options import OPEN_DIGITS, JsonOptions

_PART = re.compile(r'"(?:[^"\\]|\\.)*"|[-+0-9.eE]+|true|false|null|[{}\[\],:]|[ \t\n\r]+', re.DOTALL)
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_SHORT = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/"}


def random_options(rng: random.Random, dialect: Any, formats: bool) -> JsonOptions:
    """Options other than the exact ones."""
    return JsonOptions(
        dialect=dialect,
        assert_formats=formats,
        key_order=rng.choice(("declared", "any")),
        whitespace=rng.choice(("single", "compact", "any", 0, 1, 2, 4)),
        max_whitespace_run=rng.choice((None, 0, 1, 2, 16)),
        string_escapes=rng.choice(("minimal", "any")),
        number_spellings=rng.choice(("plain", "any")),
        max_string_length=rng.choice((None, None, None, 0, 1, 2, 20)),
        max_number_length=rng.choice(("auto", None, None, 1, 2, 8)),
    )


def fault(text: str, options: JsonOptions, schema: Any = None) -> str | None:
    """What of the options a text does not respect; None: nothing. The text is JSON."""
    parts = _PART.findall(text)
    if "".join(parts) != text:
        return "no JSON"
    for place, part in enumerate(parts):
        if part[0] in "-0123456789":
            if options.number_spellings == "plain" and not _PLAIN.fullmatch(part):
                return "number spelled"
            if isinstance(options.max_number_length, int) and len(part) > options.max_number_length:
                return "number over limit"
        if part[0] == '"':
            if options.string_escapes == "minimal" and not _minimal(part):
                return "escape"
            is_key = next((p for p in parts[place + 1 :] if not p[0].isspace()), "") == ":"
            if (
                options.max_string_length is not None
                and not is_key
                and len(json.loads(part)) > options.max_string_length
            ):
                return "string over limit"
    if _blanks(text, parts, options):
        return "whitespace"
    return _order(text, options, schema)


def _minimal(part: str) -> bool:
    for match in _ESCAPE.finditer(part):
        character = chr(int(match[1], 16)) if match[1] else _SHORT[match[2]]
        if character not in '"\\' and character >= " ":
            return False
    return True


def _blanks(text: str, parts: list[str], options: JsonOptions) -> bool:
    """Whether the whitespace is not what the options say."""
    if options.whitespace == "any":
        most = options.max_whitespace_run
        return most is not None and any(p[0].isspace() and len(p) > most for p in parts)
    solid = [part for part in parts if not part[0].isspace()]
    if options.whitespace == "compact":
        return len(solid) != len(parts)
    if options.whitespace == "single":
        places = [place for place, part in enumerate(parts) if part[0].isspace()]
        return any(parts[place] != " " or not place or parts[place - 1] not in ",:" for place in places)
    return text != "".join(_indented(solid, int(options.whitespace)))


def _indented(solid: list[str], spaces: int) -> Iterator[str]:
    """The parts as ``json.dumps(indent=spaces)`` lays them out."""
    depth = 0
    for place, part in enumerate(solid):
        before = solid[place - 1] if place else ""
        if part in "}]":
            depth -= 1
            if before not in "{[":
                yield "\n" + " " * (spaces * depth)
        elif before and before in "{[,":
            yield "\n" + " " * (spaces * depth)
        yield part + (" " if part == ":" else "")
        depth += part in "{["


def _order(text: str, options: JsonOptions, schema: Any) -> str | None:
    """Members of the whole object stand as declared, where one table alone declares them."""
    plain = isinstance(schema, dict) and not {"allOf", "anyOf", "oneOf", "not", "if", "$ref"} & set(schema)
    plain = plain and not any(word.startswith(("$", "dep", "ext", "uneval", "type", "dis", "enum")) for word in schema)
    if options.key_order != "declared" or not plain or not isinstance(schema.get("properties"), dict):
        return None
    value = json.loads(text)
    declared = list(schema["properties"])
    ranks = (
        [declared.index(key) if key in declared else len(declared) for key in value] if isinstance(value, dict) else []
    )
    return "key order" if ranks != sorted(ranks) else None


def fits(value: Any, options: JsonOptions) -> bool:
    """Whether a value can be spelled within the limits (plain numbers are the shortest that count).

    "auto" cuts plain numbers that the schema leaves open, so those that may be too long for it do not count as fitting.
    """
    if isinstance(value, str):
        return options.max_string_length is None or len(value) <= options.max_string_length
    if isinstance(value, dict):
        return all(fits(item, options) for item in value.values())
    if isinstance(value, list):
        return all(fits(item, options) for item in value)
    if isinstance(value, bool) or value is None:
        return True
    if options.max_number_length == "auto" and options.number_spellings == "plain":
        return all(len(digits) <= OPEN_DIGITS for digits in number(value).lstrip("-").split("."))
    return not isinstance(options.max_number_length, int) or len(number(value)) <= options.max_number_length


def number(value: Any) -> str:
    """A number in digits, without an exponent."""
    if isinstance(value, int):
        return str(value)
    text = format(Decimal(repr(value)) if isinstance(value, float) else value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def texts(value: Any, options: JsonOptions, most: int = 24) -> list[str] | None:
    """The value with its members in all orders; None if these are more than ``most``."""
    orders = _orders(value, most)
    return None if orders is None else [_written(one, options, 0) for one in orders]


def _orders(value: Any, most: int) -> list[Any] | None:
    if isinstance(value, list):
        inner = [_orders(item, most) for item in value]
        combined = _product(inner, most)
        return None if combined is None else [list(items) for items in combined]
    if isinstance(value, dict):
        inner = [_orders(item, most) for item in value.values()]
        combined = _product(inner, most)
        if combined is None or len(value) > 4 or len(combined) * [1, 1, 2, 6, 24][len(value)] > most:
            return None
        return [
            dict(pairs) for items in combined for pairs in itertools.permutations(list(zip(value, items, strict=True)))
        ]
    return [value]


def _product(inner: list[list[Any] | None], most: int) -> list[tuple[Any, ...]] | None:
    count = 1
    for listed in inner:
        count *= most + 1 if listed is None else len(listed)
    return None if count > most else list(itertools.product(*[listed or [] for listed in inner]))


def _written(value: Any, options: JsonOptions, depth: int) -> str:
    indent = options.whitespace if isinstance(options.whitespace, int) else None
    inside = "" if indent is None else "\n" + " " * (indent * (depth + 1))
    outside = "" if indent is None else "\n" + " " * (indent * depth)
    colon = ":" if indent is None else ": "
    if isinstance(value, dict) and value:
        members = [
            json.dumps(k, ensure_ascii=False) + colon + _written(v, options, depth + 1) for k, v in value.items()
        ]
        return "{" + inside + ("," + inside).join(members) + outside + "}"
    if isinstance(value, list) and value:
        return "[" + inside + ("," + inside).join(_written(v, options, depth + 1) for v in value) + outside + "]"
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        return number(value)
    return json.dumps(value, ensure_ascii=False)
