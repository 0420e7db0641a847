"""The same JSON value in other legal text: members in another order, whitespace, escapes, spellings of numbers."""

from __future__ import annotations

import json
from decimal import Decimal
from random import Random
from typing import Any

# None in three of five places, one byte in one, two in one.
_BLANKS = [""] * 48 + list(" \t\n\r") * 4 + [one + other for one in " \t\n\r" for other in " \t\n\r"]
_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f", "/": "\\/"}


def respelled(value: Any, random: Random) -> str:
    """A random legal text of ``value`` (RFC 8259), as different from the usual one as it can be."""
    return _blank(random) + _value(value, random) + _blank(random)


def _blank(random: Random) -> str:
    return _BLANKS[int(random.random() * len(_BLANKS))]


def _value(value: Any, random: Random) -> str:
    if isinstance(value, dict):
        members = list(value.items())
        random.shuffle(members)
        return _listed(
            "{}", [f"{_string(k, random)}{_blank(random)}:{respelled(v, random)}" for k, v in members], random
        )
    if isinstance(value, list):
        return _listed("[]", [respelled(item, random) for item in value], random)
    if isinstance(value, str):
        return _string(value, random)
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return _number(value, random)


def _listed(brackets: str, parts: list[str], random: Random) -> str:
    return brackets[0] + ",".join(_blank(random) + part + _blank(random) for part in parts) + brackets[1]


def _string(text: str, random: Random) -> str:
    return '"' + "".join(_character(c, random) for c in text) + '"'


def _character(character: str, random: Random) -> str:
    way = random.randrange(4)
    if character in _SHORT and (way < 2 or character in '"\\'):
        return _SHORT[character]
    if way == 0 or character < " ":
        units = character.encode("utf-16-be", "surrogatepass").hex()
        text = "".join("\\u" + units[place : place + 4] for place in range(0, len(units), 4))
        return text.upper().replace("\\U", "\\u") if random.random() < 0.5 else text
    return character


def _number(value: Any, random: Random) -> str:
    """One of: as it is, with zeros behind the point, with an exponent."""
    plain = str(value) if isinstance(value, Decimal) else json.dumps(value)
    sign, digits, exponent = Decimal(plain).as_tuple()
    assert isinstance(exponent, int)
    way = random.randrange(4)
    if way == 0 or len(digits) + abs(exponent) > 60:
        return plain
    text = "".join(map(str, digits))
    if way == 1:
        zeros = "0" * random.randrange(1, 4)
        return plain + (zeros if "." in plain and "e" not in plain else "" if "e" in plain else "." + zeros)
    shift = random.randrange(-3, 4)
    if way == 2 and shift < 0 and text != "0":
        exponent, text = exponent + shift, text + "0" * -shift
    mantissa = f"{text[0]}.{text[1:]}" if len(text) > 1 and text[0] != "0" else text
    scale = exponent + (len(text) - 1 if "." in mantissa else 0)
    return "-" * sign + mantissa + random.choice("eE") + (random.choice(("", "+")) if scale >= 0 else "") + str(scale)
