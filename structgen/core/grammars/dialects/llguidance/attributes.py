"""What stands in brackets after the name of a rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from structgen.core.grammars.dialects.llguidance.syntax import (
    Attributes,
    CharacterRange,
    Expression,
    Literal,
    Name,
    Pieces,
    Tree,
)
from structgen.core.grammars.dialects.llguidance.tokens import Cursor
from structgen.core.regions import TERMS, Region
from structgen.errors import OptionsError

MAX_CHARS = 100_000
"""The largest ``max_chars``."""
_KNOWN = ("capture", "lazy", "suffix", "stop", "stop_capture", "max_chars", *TERMS)


def read_attributes(cursor: Cursor, rule: str, value: Callable[[], Tree]) -> Attributes:
    """The attributes of a rule, at the bracket.

    Args:
        cursor: stands there.
        rule: the rule's name.
        value: reads a terminal at the cursor.

    Raises:
        GrammarError: unknown, given twice, not supported, or of the wrong kind.
    """
    cursor.take("[")
    attributes = Attributes()
    while not cursor.take("]"):
        token = cursor.expect("rule", "an attribute")
        name = token.text
        if name not in _KNOWN:
            cursor.source.fail(token.offset, f"there is no attribute {name!r}", f"There are {', '.join(_KNOWN)}.")
        if name in attributes.places:
            cursor.source.fail(token.offset, f"the attribute {name} is given twice")
        if name in ("suffix", "stop") and attributes.ending is not None:
            cursor.source.fail(token.offset, "a rule has one of suffix and stop")
        attributes.places[name] = token.offset
        attributes = _with(attributes, cursor, name, rule, value)
        if not cursor.take(",") and not cursor.has("]"):
            cursor.unexpected("a comma or a closing bracket")
    if attributes.stop_capture is not None and attributes.ending is None:
        cursor.source.fail(
            attributes.places["stop_capture"], "stop_capture needs suffix or stop, whose text it captures"
        )
    return attributes


def _region(cursor: Cursor, name: str) -> Region:
    """What ``max_tokens`` or ``temperature`` says."""
    if name == "max_tokens" and cursor.has("number") and not cursor.token.text.isdecimal():
        cursor.unexpected("a whole number of tokens")
    token = cursor.expect("number", f"a number for {name}")
    try:
        return Region(max_tokens=int(token.text)) if name == "max_tokens" else Region(float(token.text))
    except (OptionsError, ValueError) as error:
        cursor.source.fail(token.offset, f"{name} cannot be {token.text:.40}", str(error))


def _with(attributes: Attributes, cursor: Cursor, name: str, rule: str, value: Callable[[], Tree]) -> Attributes:
    if name == "lazy":
        return replace(attributes, lazy=True)
    if name == "capture" and not cursor.has("="):
        return replace(attributes, capture=rule)
    cursor.expect("=", f"= and a value for {name}")
    if name == "max_chars":
        return replace(attributes, max_chars=cursor.whole_number("max_chars", MAX_CHARS))
    if name in TERMS:
        return replace(attributes, region=_region(cursor, name).within(attributes.region))
    if name in ("capture", "stop_capture"):
        token = cursor.expect("string", "a name in quotes")
        if token.text.endswith("i"):
            cursor.source.fail(token.offset, "a name has no flags")
        try:
            text = json.loads(token.text)
        except ValueError:
            cursor.source.fail(token.offset, "this is no text as JSON writes it")
        return replace(attributes, **{name: text})
    offset = cursor.token.offset
    ending = value()
    if not isinstance(ending, Literal | CharacterRange | Expression | Pieces | Name):
        cursor.source.fail(offset, f"{name} is a text, a regular expression or a terminal")
    if isinstance(ending, Literal) and not ending.text:
        cursor.source.fail(
            offset,
            f"an empty {name} is not supported: it means the model's end of sequence, after which no output goes on",
            "Write lazy for a text that ends as soon as it can, or leave it out.",
        )
    return replace(attributes, ending=ending, is_stop=name == "stop")
