"""Arguments in which members and items are written one by one, too, as text: `NestedArguments` patterns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from structgen.core.tool_calls.patterns import KEY, SPELLED_KEY, VALUE, Forms, NestedArguments, written
from structgen.core.tool_calls.spelling import written_string
from structgen.core.tool_calls.values import json_text


def arguments_text(pattern: NestedArguments, arguments: Mapping[str, Any]) -> str:
    """The text of arguments.

    Raises:
        TypeError, ValueError: a value is none of JSON.
    """
    return _members(pattern, pattern.argument, arguments)


def _members(pattern: NestedArguments, forms: Forms, members: Mapping[Any, Any]) -> str:
    texts = [_filled(pattern, forms, key, value) for key, value in members.items()]
    return written(pattern.separator).join(texts)


def _filled(pattern: NestedArguments, forms: Forms, key: Any, value: Any) -> str:
    """A member, or an item (whose key is None)."""
    spelled = pattern.spelled
    constants = {None: spelled.null, True: spelled.true, False: spelled.false}
    if isinstance(value, str):
        form, text = forms.string, written_string(value, spelled.strings[0]) if spelled.strings else value
    elif isinstance(value, Mapping):
        form, text = forms.object, _members(pattern, pattern.member, value)
    elif isinstance(value, Sequence):
        items = [_filled(pattern, pattern.item, None, item) for item in value]
        form, text = forms.array, written(pattern.separator).join(items)
    else:
        form = forms.scalar
        text = constants[value] if value is None or isinstance(value, bool) else json_text(value)
    return written(tuple(text if piece is VALUE else _key(pattern, piece, key) for piece in form))


def _key(pattern: NestedArguments, piece: Any, key: Any) -> Any:
    if piece not in (KEY, SPELLED_KEY):
        return piece
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r:.100} of an object is {type(key).__name__}, not a string")
    return key if piece is KEY else written_string(key, pattern.spelled.strings[0])
