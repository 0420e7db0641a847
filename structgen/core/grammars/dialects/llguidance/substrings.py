"""What stands somewhere in a text: ``%regex {"substring_words": ...}`` and its like, as chunks."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import lru_cache

from structgen.core.grammars.dialects.llguidance.tokens import GrammarText, LarkToken
from structgen.core.regex.unicode.properties import property_set

_KINDS = ("substring_words", "substring_chars", "substring_chunks")


def chunks_of(source: GrammarText, token: LarkToken) -> tuple[str, ...]:
    """The chunks of a ``%regex {...}``.

    Raises:
        GrammarError: none or several kinds of substring, or no text where it must be.
    """
    value = token.value
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in _KINDS:
        keys = ", ".join(map(repr, value)) if isinstance(value, dict) else "no object"
        source.fail(
            token.offset, f"%regex is followed by an object with one key of {', '.join(_KINDS)}, not {keys or '{}'}"
        )
    ((kind, content),) = value.items()
    texts = content if kind == "substring_chunks" else [content]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        what = "a list of texts" if kind == "substring_chunks" else "a text"
        source.fail(token.offset, f"{kind} is {what}")
    if any("\ud800" <= character <= "\udfff" for text in texts for character in text):
        source.fail(token.offset, "half of a surrogate pair, which is not a character")
    if kind == "substring_words":
        return tuple(words_of(texts[0]))
    return tuple(texts[0] if kind == "substring_chars" else texts)


def words_of(text: str) -> Iterable[str]:
    """The text cut where letters and digits (and ``_``), white space, and what is neither meet."""
    for _, characters in itertools.groupby(text, _kind):
        yield "".join(characters)


@lru_cache(1 << 16)
def _kind(character: str) -> int:
    point = ord(character)
    for kind, properties in enumerate(("binary/Alphabetic gc/N", "binary/White_Space")):
        sets = [property_set(*name.split("/")) or () for name in properties.split()]
        if character == "_" or any(low <= point <= high for members in sets for low, high in members):
            return kind
    return 2
