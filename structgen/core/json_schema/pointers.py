"""JSON Pointers into schema documents, as linked tuples: to extend one costs a tuple, and errors alone spell one out.

A pointer is ``(uri,)`` for the root of a document (the root document has uri "") or ``(parent, token)``.
"""

from __future__ import annotations

from typing import Any

Pointer = tuple[Any, ...]
ROOT: Pointer = ("",)


def sibling(pointer: Pointer, keyword: str) -> Pointer:
    """The pointer to another keyword of the same schema."""
    return (pointer[0], keyword)


def escape(token: str) -> str:
    """A reference token as RFC 6901 section 3 spells it."""
    return token.replace("~", "~0").replace("/", "~1")


def unescape(token: str) -> str:
    """Inverse of `escape`."""
    return token.replace("~1", "/").replace("~0", "~")


def pointer_text(pointer: Pointer) -> str:
    """The JSON Pointer (RFC 6901), with the document's URI and ``#`` in front if it is not the root document."""
    tokens: list[str] = []
    while len(pointer) == 2:
        pointer, token = pointer
        tokens.append("/" + escape(str(token)))
    prefix = f"{pointer[0]}#" if pointer[0] else ""
    return prefix + "".join(reversed(tokens))
