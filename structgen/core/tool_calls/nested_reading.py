"""The reader of arguments in which members and items are written one by one, too: `NestedArguments` patterns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Any, NamedTuple

from structgen.core.engines.json.members import MemberValues, ObjectCase
from structgen.core.json_schema.formula.values import ANY, ARRAY, OBJECT, STRING
from structgen.core.json_text import decode_exact
from structgen.core.regex.dfa import accepts
from structgen.core.tool_calls.patterns import KEY, SPELLED_KEY, VALUE, Forms, NestedArguments, Pattern, Slot
from structgen.core.tool_calls.spelling import read_string
from structgen.core.tool_calls.values import is_json

MAX_DEPTH = 200
"""Values that lie in each other; deeper ones are no arguments."""
_BEGINS_NUMBER = re.compile(r"-?[0-9]")

Fixed = Callable[[Pattern, int], "int | None"]
"""Where a pattern without slots ends that begins at a place of the text; None: it does not stand there."""
Values = Sequence[MemberValues] | None
"""What a value may be; None: that is not known."""


class _Slot(NamedTuple):
    """Where a value is kept: a member of an object, or the next item of an array."""

    container: dict[str, Any] | list[Any]
    key: str | int

    def put(self, value: Any) -> None:
        """Keep a value, in the place of one that was kept."""
        if isinstance(self.container, list):
            assert isinstance(self.key, int)
            self.container[self.key :] = [value]
        else:
            assert isinstance(self.key, str)
            self.container[self.key] = value


class NestedReader:
    """Reads one text.

    Args:
        text: what is read.
        pattern: how arguments are written.
        fixed: matches patterns without slots.
    """

    def __init__(self, text: str, pattern: NestedArguments, fixed: Fixed) -> None:
        self._text, self._pattern, self._fixed = text, pattern, fixed

    def arguments(self, position: int, arguments: dict[str, Any], cases: Sequence[ObjectCase] | None) -> int | None:
        """Fill ``arguments`` with those from a place on, as far as they go; where they end, None in the middle of one.

        Args:
            position: where they begin.
            arguments: what is filled.
            cases: what they may be; None where the schema does not matter (`NestedArguments.by_schema`).
        """
        return self._members(position, self._pattern.argument, arguments, cases, 0)

    def _members(
        self, position: int, forms: Forms, members: dict[str, Any], cases: Sequence[ObjectCase] | None, depth: int
    ) -> int | None:
        named = self._key(forms, position)
        while named is not None:
            key, begun = named
            values = None if cases is None else _of_member(cases, key)
            end = self._value(begun, _of_key(forms, key), _Slot(members, key), values, depth)
            if end is None:
                return None
            position = end
            following = self._fixed(self._pattern.separator, position)
            named = None if following is None else self._key(forms, following)
        return position

    def _items(self, position: int, slot: _Slot, values: Values, depth: int) -> int | None:
        items: list[Any] = []
        slot.put(items)
        form = self._pattern.item
        of_item = None if values is None else [item for value in values for item in _items_of(value)]
        following: int | None = position
        while following is not None and self._begins(following):
            end = self._value(following, form, _Slot(items, len(items)), of_item, depth)
            if end is None:
                return None
            position = end
            following = self._fixed(self._pattern.separator, position)
        return position

    def _begins(self, position: int) -> bool:
        """Whether an item may begin at a place."""
        form = self._pattern.item
        if form.string[0] is not VALUE:
            return any(self._fixed(_within(one), position) is not None for one in _all(form))
        return position < len(self._text) and self._fixed(form.array[-1:], position) is None

    # --- names ---
    def _key(self, forms: Forms, position: int) -> tuple[str, int] | None:
        """The name of the member that begins at a slot, and where it ends; None: none begins."""
        slot = SPELLED_KEY if SPELLED_KEY in forms.string else KEY
        begun = self._fixed(_before(forms.string, slot), position)
        if begun is None:
            return None
        if slot is KEY:
            name = _compiled(self._pattern.names).match(self._text, begun)
            return None if name is None else (name[0], name.end())
        for quotes in self._pattern.spelled.strings:
            read = read_string(self._text, begun, quotes)
            if read is not None and read[1] is not None:
                return read[0], read[1]
        return None

    # --- values ---
    def _value(self, position: int, forms: Forms, slot: _Slot, values: Values, depth: int) -> int | None:
        """Read what follows the key of a member, or an item, and keep it; where it ends, None: it does not."""
        if depth > MAX_DEPTH:
            return None
        for form, is_array in self._containers(position, forms, values):
            begun = self._fixed(_within(form), position)
            if begun is not None:
                inside = self._items if is_array else self._object
                end = inside(begun, slot, values, depth + 1)
                return None if end is None else self._fixed(_after(form), end)
        begun = self._fixed(_within(forms.string), position)
        if begun is not None and (read := self._string(begun, forms, slot, values)) is not None:
            return read[0]
        begun = self._fixed(_within(forms.scalar), position)
        return None if begun is None else self._scalar(begun, forms.scalar, slot)

    def _containers(self, position: int, forms: Forms, values: Values) -> list[tuple[Pattern, bool]]:
        """The forms of objects and arrays that a value may have, and whether these are arrays."""
        if not self._pattern.by_schema:
            return [(forms.object, False), (forms.array, True)]
        begun, kinds = self._fixed(_within(forms.string), position), _kinds(values)
        if begun is None or not kinds & (OBJECT | ARRAY):
            return []
        is_empty = not kinds & STRING and self._fixed(_after(forms.string), begun) is not None
        if is_empty or self._begins(begun) or self._key(self._pattern.member, begun) is not None:
            return [(forms.array, bool(kinds & ARRAY))]
        return []

    def _object(self, position: int, slot: _Slot, values: Values, depth: int) -> int | None:
        members: dict[str, Any] = {}
        slot.put(members)
        cases = None if values is None else [case for value in values for case in value.objects]
        return self._members(position, self._pattern.member, members, cases, depth)

    def _string(self, begun: int, forms: Forms, slot: _Slot, values: Values) -> tuple[int | None] | None:
        """Where a string ends (None: it is unfinished); None: it is no string."""
        tail = _after(forms.string)
        for quotes in self._pattern.spelled.strings:
            read = read_string(self._text, begun, quotes)
            if read is not None:
                slot.put(read[0])
                return (None if read[1] is None else self._fixed(tail, read[1]),)
        return None if self._pattern.spelled.strings else self._raw(begun, forms, slot, values)

    def _raw(self, begun: int, forms: Forms, slot: _Slot, values: Values) -> tuple[int | None] | None:
        closing = self._pattern.closing
        end = self._text.find(closing, begun)
        text = self._text[begun : end if end >= 0 else len(self._text)]
        kinds = _kinds(values) if forms.string == forms.scalar else STRING
        if is_json(text, kinds):
            return None
        if end < 0:
            return (None,)
        slot.put(text)
        return (self._fixed(_after(forms.string), end),)

    def _scalar(self, begun: int, form: Pattern, slot: _Slot) -> int | None:
        spelled = self._pattern.spelled
        for text, value in ((spelled.null, None), (spelled.true, True), (spelled.false, False)):
            if self._text.startswith(text, begun):
                return self._kept(slot, value, begun + len(text), form)
        number = decode_exact(self._text, begun) if _BEGINS_NUMBER.match(self._text, begun) else None
        return None if number is None else self._kept(slot, number[0], number[1], form)

    def _kept(self, slot: _Slot, value: Any, end: int, form: Pattern) -> int | None:
        if end < len(self._text):  # else it may go on
            slot.put(value)
        return self._fixed(_after(form), end)


def _of_member(cases: Sequence[ObjectCase], name: str) -> list[MemberValues]:
    """What a member may be in any of some cases."""
    every: list[MemberValues] = []
    for case in cases:
        choices = case.members.get(name)
        if choices is None:
            choices = next((choices for names, choices in case.others if accepts(names, name)), [])
        every += [values for values, _ in choices]
    return every


def _items_of(values: MemberValues) -> Iterator[MemberValues]:
    """What items of arrays may be, at any place."""
    for case in values.arrays:
        states, todo = {0}, [0]
        while todo:
            for item, after in case.following(todo.pop()):
                yield item
                if after not in states:
                    states.add(after)
                    todo.append(after)


def _kinds(values: Values) -> int:
    return (reduce(or_, (value.kinds for value in values), 0) if values is not None else 0) or ANY


@lru_cache(512)
def _before(pattern: Pattern, slot: Slot) -> Pattern:
    return pattern[: pattern.index(slot)]


@lru_cache(512)
def _within(pattern: Pattern) -> Pattern:
    """What stands between the key, if there is one, and the value."""
    keys = [number for number, piece in enumerate(pattern) if piece in (KEY, SPELLED_KEY)]
    return pattern[keys[0] + 1 if keys else 0 : pattern.index(VALUE)]


def _all(forms: Forms) -> tuple[Pattern, ...]:
    return forms.string, forms.scalar, forms.object, forms.array


def _of_key(forms: Forms, key: str) -> Forms:
    """The forms with the key in its place after the value, where it stands there again."""
    if not any(KEY in _after(form) for form in _all(forms)):
        return forms
    filled = [
        (*form[: form.index(VALUE) + 1], *(key if piece is KEY else piece for piece in _after(form)))
        for form in _all(forms)
    ]
    return Forms(*filled)


@lru_cache(512)
def _after(pattern: Pattern) -> Pattern:
    return pattern[pattern.index(VALUE) + 1 :]


@lru_cache(64)
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression)
