"""Phrases in strings of JSON: in the one that a schema speaks of, in chosen ones within it, or in all within it.

``"x-structgen": {"avoiding": ["x"]}`` and ``{"including": {"phrases": ["x", "y"], "mode": "any"}}`` speak of the value,
if it is a string. ``{"strings": [{"avoiding": ["x"], "pointers": ["/title", "/items/*/text"], "some": false}]}`` speaks
of strings within it: at these JSON Pointers, of which a part ``*`` is any member and any item; without ``pointers`` of
all. With ``some`` one of them is enough, and must be there. Names of members are not meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from structgen.core.json_schema import checks
from structgen.core.json_schema.formula.language import (
    FALSE,
    MAX_COUNT,
    TRUE,
    All,
    Formula,
    Idx,
    Items,
    Phrased,
    Type,
    and_,
    named,
    not_,
    or_,
    present,
)
from structgen.core.json_schema.formula.values import ARRAY, OBJECT, STRING
from structgen.core.json_schema.keyword import X_STRUCTGEN
from structgen.core.json_schema.pointers import pointer_text, unescape
from structgen.core.text_sets.phrases import AVOIDING, INCLUDING, search_of
from structgen.errors import ConstraintError, OptionsError, SchemaError

if TYPE_CHECKING:
    from structgen.core.json_schema.context import Context
    from structgen.core.json_schema.pointers import Pointer

STRINGS, POINTERS, SOME = "strings", "pointers", "some"
ANY_PART = "*"
_IS_INDEX = re.compile(r"0|[1-9][0-9]{0,9}").fullmatch


def phrases(given: Mapping[str, Any], pointer: Pointer) -> list[Formula]:
    """What the words for phrases among ``given`` say of a string; each is true of what is none.

    Raises:
        SchemaError: what a word says is malformed.
    """
    formulas: list[Formula] = []
    for word in (INCLUDING, AVOIDING):
        if word in given:
            try:
                formulas.append(Phrased(search_of(word, given[word])))
            except (ConstraintError, OptionsError) as error:
                where = pointer_text((pointer, word))
                raise SchemaError(str(error), pointer=where, keyword=X_STRUCTGEN) from error
    return formulas


def strings_within(given: Any, pointer: Pointer, context: Context) -> Formula:
    """What a list of conditions says of the strings within a value.

    Raises:
        SchemaError: it is malformed.
    """
    parts = enumerate(checks.array(given, pointer))
    return and_(*[_condition(checks.mapping(one, (pointer, n)), (pointer, n), context) for n, one in parts])


def _condition(given: dict[str, Any], pointer: Pointer, context: Context) -> Formula:
    unknown = given.keys() - {INCLUDING, AVOIDING, POINTERS, SOME}
    string = and_(*phrases(given, pointer))
    if unknown or string is TRUE:
        checks.refuse(
            pointer, f'an object with "{INCLUDING}" or "{AVOIDING}", and perhaps "{POINTERS}", "{SOME}"', given
        )
    some = checks.boolean(given.get(SOME, False), (pointer, SOME))
    if POINTERS not in given:
        if some:
            checks.refuse(
                pointer, f'"{POINTERS}" with "{SOME}": the pointers of the strings of which one is meant', given
            )
        return context.lowering.recursive(lambda whole: and_(string, _inside(ANY_PART, whole)), pointer)
    places = [_parts(each, (pointer, POINTERS)) for each in checks.strings(given[POINTERS], (pointer, POINTERS))]
    if not places:
        checks.refuse((pointer, POINTERS), "a JSON Pointer at least", given[POINTERS])
    return or_(*[_some(each, string) for each in places]) if some else and_(*[_each(p, string) for p in places])


def _parts(text: str, pointer: Pointer) -> list[str]:
    if text and not text.startswith("/"):
        checks.refuse(pointer, 'JSON Pointers ("/title"; "" is the value itself)', text)
    return [unescape(part) for part in text.split("/")[1:]]


def _each(parts: Iterable[str], formula: Formula) -> Formula:
    """Every value at a pointer is as the formula says."""
    for part in reversed([*parts]):
        formula = _inside(part, formula)
    return formula


def _inside(part: str, formula: Formula) -> Formula:
    if part == ANY_PART:
        return and_(All(TRUE, formula), Idx(0, None, formula))
    index = _index(part)
    return and_(All(named(part), formula), TRUE if index is None else Idx(index, index + 1, formula))


def _some(parts: Iterable[str], string: Formula) -> Formula:
    """A string at a pointer is there, and as the formula says."""
    formula = and_(Type(STRING), string)
    for part in reversed([*parts]):
        if part == ANY_PART:
            members, items = not_(All(TRUE, not_(formula))), and_(Items(formula, 1))
        else:
            index = _index(part)
            members = and_(present(part), All(named(part), formula))
            items = and_(Items(TRUE, index + 1), Idx(index, index + 1, formula)) if index is not None else FALSE
        formula = or_(and_(Type(OBJECT), members), and_(Type(ARRAY), items))
    return formula


def _index(part: str) -> int | None:
    return int(part) if _IS_INDEX(part) and int(part) < MAX_COUNT else None
