"""Structural tags, as XGrammar, vLLM and SGLang have them, as constraints: triggers with structures, and formats.

A string in them that holds the name of a special token means that token: a model writes it as one, and text never
spells it. Which names are special is said by the vocabulary, so it is passed in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.combined import concat, union
from structgen.core.constraints.composed import tag_dispatch
from structgen.core.constraints.json import json_schema
from structgen.core.constraints.text import LarkConstraint, TextConstraint, WrittenGrammar, choice, regex
from structgen.core.vocabulary.special_tokens import SpecialToken
from structgen.errors import Place, SpecificationError
from structgen.options import JsonOptions


class StructuralTags:
    """Reads structural tags.

    Args:
        special_tokens: ids of special tokens by name; none where strings mean text alone.
        options: how JSON may be spelled.
    """

    def __init__(self, special_tokens: Mapping[str, int], options: JsonOptions) -> None:
        self._specials = special_tokens
        self._options = options
        names = sorted(map(re.escape, special_tokens), key=len, reverse=True)
        self._split = re.compile(f"({'|'.join(names)})" if names else r"(?!)")

    def read(self, value: Any, place: Place = ()) -> Constraint:
        """The constraint of a structural tag.

        Raises:
            SpecificationError: it is none, or has what is not supported; with its place.
        """
        if not isinstance(value, dict) or value.get("type", "structural_tag") != "structural_tag":
            raise _wrong(place, 'structural_tag is an object {"type": "structural_tag", "structures": [...]}')
        if "format" in value and not value.get("structures"):
            self._check_fields({name: value[name] for name in value if name != "type"}, {"format"}, place)
            return self._format(value["format"], (*place, "format"))
        self._check_fields(value, {"type", "structures", "triggers", "at_least_one"}, place)
        structures, triggers = _list_of(value.get("structures"), dict), _list_of(value.get("triggers"), str)
        if not structures or not triggers or not all(triggers):
            raise _wrong(place, "structural_tag needs structures (objects) and triggers (strings), none empty")
        tags = []
        for number, structure in enumerate(structures):
            where = (*place, "structures", number)
            if not {"begin", "end"} <= structure.keys() <= {"begin", "end", "schema"}:
                raise _wrong(where, "a structure has begin, schema and end, and nothing else")
            schema = structure.get("schema")
            tags.append(
                {
                    "begin": structure["begin"],
                    "content": {"type": "json_schema", "json_schema": True if schema is None else schema},
                    "end": structure["end"],
                }
            )
        fields = {"triggers": triggers, "tags": tags, "at_least_one": value.get("at_least_one", False)}
        return self._triggered({"type": "triggered_tags", **fields}, place, "structures")

    def _format(self, given: Any, place: Place, ends: tuple[str, ...] = ()) -> Constraint:
        """A format; ``ends`` are what follows it, and so cannot be in its text where that is free."""
        kind = given.get("type") if isinstance(given, dict) else None
        reader = getattr(self, f"_{kind}", None) if kind in _FIELDS else None
        if reader is None:
            known = ", ".join(sorted(_FIELDS))
            raise _wrong(place, f"a format of structural tags has one of the types {known}; not {kind!r:.60}")
        self._check_fields(given, {"type", *_FIELDS[kind]}, place)
        found: Constraint = reader(given, place, ends) if kind in ("any_text", "sequence") else reader(given, place)
        return found

    def _const_string(self, given: Any, place: Place) -> Constraint:
        return self._text(_string(given, "value", place))

    def _json_schema(self, given: Any, place: Place) -> Constraint:
        if given.get("style", "json") != "json":
            raise _wrong(
                (*place, "style"),
                f"the style {given['style']!r:.60} is not supported; only 'json' is",
                "unsupported_value",
            )
        schema = given.get("json_schema")
        if not isinstance(schema, dict | bool):
            raise _wrong((*place, "json_schema"), "a schema is an object or a boolean")
        return json_schema(schema, self._options)

    def _regex(self, given: Any, place: Place) -> Constraint:
        return regex(_string(given, "pattern", place))

    def _grammar(self, given: Any, place: Place) -> Constraint:
        return WrittenGrammar(_string(given, "grammar", place))

    def _any_text(self, given: Any, place: Place, ends: tuple[str, ...]) -> Constraint:
        excluded = [*_list_of(given.get("excludes", []), str), *ends]
        if not excluded:
            return regex("(?s:.*)")
        words = "|".join(re.escape(word).replace("/", r"\/") for word in excluded)
        return LarkConstraint(f"start: T\nT: /(?s:.*)/ & ~/(?s:.*(?:{words}).*)/\n", dialect="llguidance")

    def _sequence(self, given: Any, place: Place, ends: tuple[str, ...]) -> Constraint:
        elements = self._elements(given, place)
        last = len(elements) - 1
        following = [_first_text(element) for element in elements[1:]]
        parts = []
        for number, element in enumerate(elements):
            own = ends if number == last else following[number]
            parts.append(self._format(element, (*place, "elements", number), own))
        return concat(*parts) if len(parts) > 1 else parts[0]

    def _or(self, given: Any, place: Place) -> Constraint:
        parts = [self._format(each, (*place, "elements", n)) for n, each in enumerate(self._elements(given, place))]
        return union(*parts) if len(parts) > 1 else parts[0]

    def _optional(self, given: Any, place: Place) -> Constraint:
        return union(self._format(given.get("content"), (*place, "content")), choice([""]))

    def _star(self, given: Any, place: Place) -> Constraint:
        return self._repeated(given, place, "*")

    def _plus(self, given: Any, place: Place) -> Constraint:
        return self._repeated(given, place, "+")

    def _repeat(self, given: Any, place: Place) -> Constraint:
        least, most = given.get("min"), given.get("max")
        if not isinstance(least, int) or not isinstance(most, int) or least < 0 or most < -1:
            raise _wrong(place, "repeat has counts min and max (-1: no limit)")
        return self._repeated(given, place, f"{{{least},{'' if most < 0 else most}}}")

    def _repeated(self, given: Any, place: Place, times: str) -> Constraint:
        content = self._format(given.get("content"), (*place, "content"))
        return LarkConstraint(f"start: @content{times}\n", dialect="llguidance", grammars=(("content", content),))

    def _tag(self, given: Any, place: Place) -> Constraint:
        return concat(self._mark(given.get("begin"), (*place, "begin")), *self._after_begin(given, place))

    def _after_begin(self, given: Any, place: Place) -> list[Constraint]:
        """What follows the beginning of a tag."""
        ends = given.get("end")
        ends = ends if isinstance(ends, list) else [ends]
        if not ends:
            raise _wrong((*place, "end"), "a tag has at least one end")
        marks = [self._mark(end, (*place, "end")) for end in ends]
        texts = tuple(end for end in ends if isinstance(end, str) and end)
        content = self._format(given.get("content"), (*place, "content"), texts)
        return [content, union(*marks) if len(marks) > 1 else marks[0]]

    def _triggered_tags(self, given: Any, place: Place) -> Constraint:
        return self._triggered(given, place, "tags")

    def _triggered(self, given: Any, place: Place, name: str) -> Constraint:
        triggers = _list_of(given.get("triggers"), str)
        tags = self._tags(given, place, name)
        marks, contents = [], []
        for number, tag in enumerate(tags):
            where = (*place, name, number)
            begin = _string(tag, "begin", where)
            if not begin.startswith(tuple(triggers) or ("\0",)):
                raise _wrong(where, f"no trigger begins {begin!r:.100}")
            first, *others = [piece for piece in self._split.split(begin) if piece]
            marks.append(SpecialToken(first) if first in self._specials else first)
            contents.append(concat(self._text("".join(others)), *self._after_begin(tag, where)))
        pieces = [next(piece for piece in self._split.split(trigger) if piece) for trigger in triggers if trigger]
        wanted = list(dict.fromkeys(SpecialToken(p) if p in self._specials else p for p in pieces))
        only_one = given.get("at_least_one") is True and given.get("stop_after_first") is True
        at_least, once = given.get("at_least_one") is True, given.get("stop_after_first") is True
        return tag_dispatch(
            list(zip(marks, contents, strict=True)),
            triggers=None if only_one else wanted,
            min_uses=1 if at_least else 0,
            max_uses=1 if once else None,
            free_text=("none" if at_least else "before")
            if once
            else "after"
            if at_least and name == "tags"
            else "anywhere",
            excludes=_list_of(given.get("excludes", []), str),
            json_options=self._options,
        )

    def _tags_with_separator(self, given: Any, place: Place) -> Constraint:
        tags = [self._tag(tag, (*place, "tags", n)) for n, tag in enumerate(self._tags(given, place, "tags"))]
        separator = self._text(_string({"separator": "", **given}, "separator", place))
        names: dict[str, Constraint] = {"tag": union(*tags) if len(tags) > 1 else tags[0], "separator": separator}
        more = "" if given.get("stop_after_first") is True else " (@separator @tag)*"
        whole = f"@tag{more}" if given.get("at_least_one") is True else f"(@tag{more})?"
        used = tuple((name, names[name]) for name in names if f"@{name}" in whole)
        return LarkConstraint(f"start: {whole}\n", dialect="llguidance", grammars=used)

    def _token(self, given: Any, place: Place) -> Constraint:
        return self._mark({"type": "token", **given}, place)

    def _mark(self, given: Any, place: Place) -> Constraint:
        """A string, or a token by name or id."""
        if isinstance(given, dict) and given.get("type") == "token":
            token = given.get("token")
            number = self._specials.get(token) if isinstance(token, str) else token
            if not isinstance(number, int):
                raise _wrong(place, f"there is no special token {token!r:.60}")
            return LarkConstraint(f"start: {self._written(number)}\n", dialect="llguidance")
        if not isinstance(given, str):
            raise _wrong(place, "what begins or ends a tag is a string or a token")
        return self._text(given)

    def _text(self, text: str) -> TextConstraint:
        """This text, in which names of special tokens mean these."""
        pieces = [piece for piece in self._split.split(text) if piece]
        if not any(piece in self._specials for piece in pieces):
            return choice([text])
        specials = self._specials
        written = [self._written(specials[piece]) if piece in specials else json.dumps(piece) for piece in pieces]
        return LarkConstraint(f"start: {' '.join(written)}\n", dialect="llguidance")

    def _written(self, token_id: int) -> str:
        """A token as grammars name it: by its name, by which texts can be taken apart, where they have such names."""
        names = (name for name, number in self._specials.items() if number == token_id)
        return next((name for name in names if _NAME.fullmatch(name)), f"<[{token_id}]>")

    def _elements(self, given: Any, place: Place) -> list[Any]:
        elements = _list_of(given.get("elements"), dict)
        if not elements:
            raise _wrong((*place, "elements"), "a list of formats, at least one")
        return elements

    def _tags(self, given: Any, place: Place, name: str) -> list[Any]:
        tags = _list_of(given.get("tags"), dict)
        if not tags:
            raise _wrong((*place, name), "a list of tags, at least one")
        return tags

    def _check_fields(self, given: Mapping[str, Any], known: set[str], place: Place) -> None:
        unknown = sorted(name for name in given.keys() - known if given[name] not in (None, [], False))
        if unknown:
            raise _wrong(
                (*place, unknown[0]),
                f"The field {unknown[0]!r} of structural tags is not supported; there are {', '.join(sorted(known))}",
                "unsupported_parameter",
            )


_NAME = re.compile(r"<[^\s<>\[\]]+>")
_FIELDS: dict[Any, tuple[str, ...]] = {
    "const_string": ("value",),
    "json_schema": ("json_schema", "style"),
    "regex": ("pattern",),
    "grammar": ("grammar",),
    "any_text": ("excludes",),
    "sequence": ("elements",),
    "or": ("elements",),
    "optional": ("content",),
    "star": ("content",),
    "plus": ("content",),
    "repeat": ("content", "min", "max"),
    "tag": ("begin", "content", "end"),
    "token": ("token",),
    "triggered_tags": ("triggers", "tags", "at_least_one", "stop_after_first", "excludes"),
    "tags_with_separator": ("tags", "separator", "at_least_one", "stop_after_first"),
}
"""What is read of each type of format; others are refused."""


def _wrong(place: Place, message: str, code: str = "invalid_value") -> SpecificationError:
    return SpecificationError(message, place, code)


def _first_text(format: Any) -> tuple[str, ...]:
    """The string that a format begins with, where it is one."""
    if format.get("type") == "const_string" and isinstance(format.get("value"), str) and format["value"]:
        return (format["value"],)
    if format.get("type") == "tag" and isinstance(format.get("begin"), str) and format["begin"]:
        return (format["begin"],)
    return ()


def _string(given: Any, name: str, place: Place) -> str:
    found = given.get(name)
    if not isinstance(found, str):
        raise _wrong((*place, name), f"{name} is a string")
    return found


def _list_of(value: Any, kind: type) -> list[Any]:
    """A list of such things; empty if it is none."""
    return value if isinstance(value, list) and all(isinstance(item, kind) for item in value) else []
