"""Classes of characters as Rust's crate ``regex`` has them: ``[:alpha:]``, ``\\d``, ``\\p{…}``, and their algebra."""

from __future__ import annotations

import re
from functools import cache

from structgen.core.regex import charset
from structgen.core.regex.charset import CharSet
from structgen.core.regex.unicode.properties import property_names, property_set

ASCII_CLASSES = {
    "alnum": "09AZaz",
    "alpha": "AZaz",
    "ascii": "\x00\x7f",
    "blank": "\t\t  ",
    "cntrl": "\x00\x1f\x7f\x7f",
    "digit": "09",
    "graph": "!~",
    "lower": "az",
    "print": " ~",
    "punct": "!/:@[`{~",
    "space": "\t\r  ",
    "upper": "AZ",
    "word": "09AZ__az",
    "xdigit": "09AFaf",
}
"""First and last character of each range."""


def operated(a: CharSet, operator: str, b: CharSet) -> CharSet:
    """Two classes joined by ``&&``, ``--`` or ``~~``."""
    if operator == "&&":
        return charset.intersection(a, b)
    only_a = charset.intersection(a, charset.complement(b))
    if operator == "--":
        return only_a
    return charset.union(only_a, charset.intersection(b, charset.complement(a)))


@cache
def perl_class(kind: str, unicode: bool) -> CharSet:
    """``\\d``, ``\\w`` or ``\\s`` (UTS #18, annex C)."""
    if not unicode:
        return ascii_class({"d": "digit", "w": "word", "s": "space"}[kind])
    names = {
        "d": ["gc/Nd"],
        "s": ["binary/White_Space"],
        "w": ["binary/Alphabetic", "gc/M", "gc/Nd", "gc/Pc", "binary/Join_Control"],
    }
    sets = [property_set(*name.split("/")) for name in names[kind]]
    return charset.union(*(part for part in sets if part is not None))


@cache
def ascii_class(name: str) -> CharSet:
    """``[:name:]``."""
    ends = list(map(ord, ASCII_CLASSES[name]))
    return charset.normalise(zip(ends[::2], ends[1::2], strict=True))


def property_by_name(expression: str) -> CharSet | None:
    """The characters of ``\\p{expression}``, names compared loosely (UTS #18, RL1.2); None if there are none known."""
    name, sign, value = re.fullmatch(r"([^=:]*)([=:]?)(.*)", expression, re.DOTALL).groups()  # type: ignore[union-attr]
    kinds = {"gc": "gc", "generalcategory": "gc", "sc": "sc", "script": "sc", "scx": "scx", "scriptextensions": "scx"}
    wanted = [kinds.get(_loose(name), "")] if sign else ["gc", "binary", "sc"]
    for kind in wanted:
        exact = _loose_names().get(f"{kind}/{_loose(value if sign else name)}")
        if exact is not None:
            return property_set(*exact.split("/"))
    return None


def _loose(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower().removeprefix("is")


@cache
def _loose_names() -> dict[str, str]:
    return {f"{kind}/{_loose(value)}": f"{kind}/{value}" for kind, value in (n.split("/") for n in property_names())}
