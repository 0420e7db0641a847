"""Places in schema documents, as linked tuples: extending one costs a tuple, spelling it out is left to errors.

A place is ``(uri,)`` for the root of a document (the root document has uri "") or ``(parent, token)``.
"""

from __future__ import annotations

from typing import Any

Place = tuple[Any, ...]
ROOT: Place = ("",)


def sibling(place: Place, keyword: str) -> Place:
    """The place of another keyword of the same schema."""
    return (place[0], keyword)


def escape(token: str) -> str:
    """A reference token as RFC 6901 section 3 spells it."""
    return token.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """Inverse of `escape`."""
    return token.replace("~1", "/").replace("~0", "~")


def pointer(place: Place) -> str:
    """The JSON Pointer (RFC 6901), with the document's URI and ``#`` in front if it is not the root document."""
    tokens: list[str] = []
    while len(place) == 2:
        place, token = place
        tokens.append("/" + escape(str(token)))
    prefix = f"{place[0]}#" if place[0] else ""
    return prefix + "".join(reversed(tokens))
