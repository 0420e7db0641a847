"""Structural tags, as XGrammar, vLLM and SGLang have them, as constraints: triggers with structures, and formats.

A string in them that holds the name of a special token means that token: a model writes it as one, and text never
spells it. Which names are special is said by the vocabulary, so it is passed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.combined import concat, union
from structgen.core.constraints.composed import tag_dispatch
from structgen.core.constraints.json import json_schema
from structgen.core.constraints.named_text import Names
from structgen.core.constraints.structural_tag_fields import (
    FIELDS,
    check_fields,
    count,
    list_of,
    objects,
    string,
    strings,
    wrong,
)
from structgen.core.constraints.structural_tag_styles import STYLES, JsonWithout, arguments, style_in
from structgen.core.constraints.structural_tag_text import MAX_CHARS, ExcludedWords, FreeText, TagsInText
from structgen.core.constraints.text import LarkConstraint, choice, regex
from structgen.core.grammars.named_tokens import split_names
from structgen.core.vocabulary.special_tokens import SpecialToken
from structgen.errors import Place
from structgen.options import JsonOptions


class Around(NamedTuple):
    """What stands around a format.

    Attributes:
        begin: what the tag around begins with, where that is a string.
        ends: strings that end tags around, and so cannot be in its text where that is free.
        tokens: tokens that do, by id.
        following: strings right after it in a sequence, which any text before them does not hold either.
    """

    begin: str = ""
    ends: tuple[str, ...] = ()
    tokens: tuple[int, ...] = ()
    following: tuple[str, ...] = ()


NOTHING = Around()


class StructuralTags:
    """Reads structural tags.

    Args:
        special_tokens: ids of special tokens by name; none where strings mean text alone.
        options: how JSON may be spelled.
    """

    def __init__(self, special_tokens: Mapping[str, int], options: JsonOptions) -> None:
        self._names = Names(special_tokens)
        self._options = options

    def read(self, value: Any, path: Place = ()) -> Constraint:
        """The constraint of a structural tag.

        Raises:
            SpecificationError: it is none, or has what is not supported; with its place.
        """
        if not isinstance(value, dict) or value.get("type", "structural_tag") != "structural_tag":
            raise wrong(path, 'structural_tag is an object {"type": "structural_tag", "structures": [...]}')
        if "format" in value and not value.get("structures"):
            check_fields(value, ["format"], path)
            return self._format(value["format"], (*path, "format"))
        check_fields(value, ["structures", "triggers", "at_least_one"], path)
        structures, triggers = list_of(value.get("structures"), dict), list_of(value.get("triggers"), str)
        if not structures or not triggers or not all(triggers):
            raise wrong(path, "structural_tag needs structures (objects) and triggers (strings), none empty")
        tags = []
        for number, structure in enumerate(structures):
            where = (*path, "structures", number)
            if not {"begin", "end"} <= structure.keys() <= {"begin", "end", "schema"}:
                raise wrong(where, "a structure has begin, schema and end, and nothing else")
            schema = structure.get("schema")
            content = {"type": "json_schema", "json_schema": True if schema is None else schema}
            tags.append({"begin": structure["begin"], "content": content, "end": structure["end"]})
        fields = {"triggers": triggers, "tags": tags, "at_least_one": value.get("at_least_one", False)}
        return self._triggered({"type": "triggered_tags", **fields}, path, "structures")

    def _format(self, given: Any, path: Place, around: Around = NOTHING) -> Constraint:
        """A format."""
        kind = given.get("type") if isinstance(given, dict) else None
        if kind not in FIELDS:
            kinds = ", ".join(sorted(FIELDS))
            raise wrong(path, f"a format of structural tags has one of the types {kinds}; not {kind!r:.60}")
        check_fields(given, FIELDS[kind], path)
        result: Constraint = getattr(self, f"_{kind}")(given, path, around)
        return result

    # --- texts ---
    def _const_string(self, given: Any, path: Place, around: Around) -> Constraint:
        return self._names.text(string(given, "value", path))

    def _regex(self, given: Any, path: Place, around: Around) -> Constraint:
        return self._names.regex(string(given, "pattern", path))

    def _grammar(self, given: Any, path: Place, around: Around) -> Constraint:
        return self._names.grammar(string(given, "grammar", path))

    def _any_text(self, given: Any, path: Place, around: Around) -> Constraint:
        most = count(given, "max_chars", path)
        if most is not None and most > MAX_CHARS:
            raise wrong((*path, "max_chars"), f"max_chars is at most {MAX_CHARS:,}", "unsupported_value")
        words = self._words(strings(given, "excludes", path))
        excluded = tuple(dict.fromkeys([*words.excluded, *self._ends(around)]))
        if not excluded and most is None:
            return regex("(?s:.*)")
        # Where characters are counted, tokens have none.
        allowed = words.allowed.difference(around.tokens) if most is None else frozenset[int]()
        return FreeText(replace(words, excluded=excluded, allowed=allowed), most)

    def _ends(self, around: Around) -> list[str]:
        """What comes after a format, as text."""
        return [*around.following, *around.ends, *(name for name, i in self._names.ids.items() if i in around.tokens)]

    def _words(self, excluded: list[str]) -> ExcludedWords:
        """What free text does not hold. It holds special tokens that are excluded only as parts of longer texts."""
        ids = self._names.ids
        parts = {piece for text in excluded for piece in split_names(text, ids) if piece != text}
        allowed = frozenset(ids[part] for part in parts - set(excluded) if part in ids)
        held = [name for name in ids if any(name in text for text in excluded)]
        return ExcludedWords(tuple((name, ids[name]) for name in held), tuple(excluded), allowed)

    # --- tokens ---
    def _token(self, given: Any, path: Place, around: Around) -> Constraint:
        return self._mark(given, path)

    def _exclude_token(self, given: Any, path: Place, around: Around) -> Constraint:
        return self._but(given, path, around, "")

    def _any_tokens(self, given: Any, path: Place, around: Around) -> Constraint:
        return self._but(given, path, around, "*")

    def _but(self, given: Any, path: Place, around: Around, times: str) -> Constraint:
        """One of all tokens but some, or so many of them. Of text it is a character, in whatever tokens it comes."""
        ids = [*self._token_ids(given, "exclude_tokens", path), *around.tokens]
        return LarkConstraint(f"start: {_all_but(ids)}{times}\n", dialect="llguidance")

    def _token_ids(self, given: Any, name: str, path: Place) -> list[int]:
        return [self._token_id(token, (*path, name, n)) for n, token in enumerate(list_of(given.get(name), (str, int)))]

    def _token_id(self, token: Any, path: Place) -> int:
        number = self._names.ids.get(token) if isinstance(token, str) else token
        if not isinstance(number, int) or isinstance(number, bool) or number < 0:
            raise wrong(path, f"there is no special token {token!r:.60}")
        return number

    def _mark(self, given: Any, path: Place) -> Constraint:
        """A string, or a token by name or id."""
        if isinstance(given, dict) and given.get("type", "token") == "token":
            token = given.get("token")
            number = self._token_id(token, path)
            result = self._names.token(token if isinstance(token, str) else number)
            assert result is not None
            return result
        if not isinstance(given, str):
            raise wrong(path, "what begins or ends a tag is a string or a token")
        return self._names.text(given)

    # --- schemas ---
    def _json_schema(self, given: Any, path: Place, around: Around) -> Constraint:
        style, schema = given.get("style", "json"), given.get("json_schema")
        if not isinstance(schema, dict | bool):
            raise wrong((*path, "json_schema"), "a schema is an object or a boolean")
        options = self._spelling(given, path)
        excluded = strings(given, "excludes", path)
        if style == "json":
            return self._json(schema, options, excluded, path)
        if style not in STYLES:
            kinds = ", ".join(map(repr, ["json", *STYLES]))
            raise wrong(
                (*path, "style"), f"the style {style!r:.60} is not supported; there are {kinds}", "unsupported_value"
            )
        result = style_in(style, around.begin, (*around.following, *around.ends))
        names = frozenset(self._names.ids)
        return arguments(result, schema, options, names, self._ends(around), excluded)

    def _json(self, schema: Any, options: JsonOptions, excluded: list[str], path: Place) -> Constraint:
        item = json_schema(schema, options)
        if not excluded:
            return item
        escaped = next((text for text in excluded if any(c in '"\\' or c < " " for c in text)), None)
        if escaped is not None:
            what = f"JSON escapes characters of {escaped!r:.60}, which is not supported here"
            raise wrong((*path, "excludes"), what, "unsupported_value")
        return JsonWithout(item, tuple(dict.fromkeys(excluded)))

    def _qwen_xml_parameter(self, given: Any, path: Place, around: Around) -> Constraint:
        return self._json_schema({**given, "style": "qwen_xml"}, path, around)

    def _spelling(self, given: Any, path: Place) -> JsonOptions:
        """How JSON may be spelled in a format."""
        options = self._options
        most = count(given, "max_whitespace_cnt", path)
        if most is not None:
            options = replace(options, whitespace="any" if most else "compact", max_whitespace_run=most or None)
        return replace(options, key_order="any") if given.get("any_order") is True else options

    # --- combinations ---
    def _sequence(self, given: Any, path: Place, around: Around) -> Constraint:
        elements = objects(given, "elements", path)
        following = [*(_first_text(element) for element in elements[1:]), None]
        parts = []
        for number, (element, ends) in enumerate(zip(elements, following, strict=True)):
            special = around if ends is None else around._replace(begin="", following=ends)
            parts.append(self._format(element, (*path, "elements", number), special))
        return concat(*parts) if len(parts) > 1 else parts[0]

    def _or(self, given: Any, path: Place, around: Around) -> Constraint:
        parts = [
            self._format(each, (*path, "elements", n), around)
            for n, each in enumerate(objects(given, "elements", path))
        ]
        return union(*parts) if len(parts) > 1 else parts[0]

    def _optional(self, given: Any, path: Place, around: Around) -> Constraint:
        return union(self._format(given.get("content"), (*path, "content"), around), choice([""]))

    def _star(self, given: Any, path: Place, around: Around) -> Constraint:
        return self._repeated(given, path, around, "*")

    def _plus(self, given: Any, path: Place, around: Around) -> Constraint:
        return self._repeated(given, path, around, "+")

    def _repeat(self, given: Any, path: Place, around: Around) -> Constraint:
        least, most = count(given, "min", path), given.get("max")
        most = None if most == -1 else count(given, "max", path)
        if least is None or given.get("max") is None or (most is not None and most < least):
            raise wrong(path, "repeat has counts min and max (-1: no limit), and max is not below min")
        if most == 0:
            self._format(given.get("content"), (*path, "content"))  # only checked
            return choice([""])
        return self._repeated(given, path, around, f"{{{least},{'' if most is None else most}}}")

    def _repeated(self, given: Any, path: Place, around: Around, times: str) -> Constraint:
        content = self._format(given.get("content"), (*path, "content"), around._replace(begin="", following=()))
        return LarkConstraint(f"start: @content{times}\n", dialect="llguidance", grammars=(("content", content),))

    # --- tags ---
    def _tag(self, given: Any, path: Place, around: Around) -> Constraint:
        begin = given.get("begin")
        return concat(self._mark(begin, (*path, "begin")), *self._after_begin(given, path))

    def _after_begin(self, given: Any, path: Place) -> list[Constraint]:
        """What follows the beginning of a tag."""
        ends = given.get("end")
        ends = ends if isinstance(ends, list) else [ends]
        if not ends:
            raise wrong((*path, "end"), "a tag has at least one end")
        texts = tuple(end for end in ends if isinstance(end, str) and end)
        tokens = tuple(self._token_id(end["token"], (*path, "end")) for end in ends if _is_token(end))
        begin = given.get("begin")
        around = Around(begin if isinstance(begin, str) else "", texts, tokens)
        content = self._format(given.get("content"), (*path, "content"), around)
        if _takes_line(given.get("content"), around):
            ends = [end.removeprefix("\n") if isinstance(end, str) else end for end in ends]
        marks = [self._mark(end, (*path, "end")) for end in ends]
        return [content, union(*marks) if len(marks) > 1 else marks[0]]

    def _triggered_tags(self, given: Any, path: Place, around: Around) -> Constraint:
        return self._triggered(given, path, "tags", around)

    def _triggered(self, given: Any, path: Place, name: str, around: Around = NOTHING) -> Constraint:
        triggers = [trigger for trigger in list_of(given.get("triggers"), str) if trigger]
        tags = objects(given, "tags", path)
        at_least, once = given.get("at_least_one") is True, given.get("stop_after_first") is True
        excluded = strings(given, "excludes", path)
        begun = []
        for number, tag in enumerate(tags):
            where = (*path, name, number)
            begin = string(tag, "begin", where)
            trigger = next((trigger for trigger in triggers if begin.startswith(trigger)), None)
            if trigger is None:
                raise wrong(where, f"no trigger begins {begin!r:.100}")
            begun.append((trigger, begin, self._after_begin(tag, where)))
        if at_least and once:  # there is no free text
            whole = [concat(self._names.text(begin), *after) for _, begin, after in begun]
            return union(*whole) if len(whole) > 1 else whole[0]
        words = self._words(excluded)
        # What ends the tag around ends the text, but for an end that a trigger holds: that could not be written.
        ends = self._ends(around._replace(following=()))
        unheld = [end for end in ends if not any(end in trigger for trigger, _, _ in begun)]
        excluded = list(dict.fromkeys([*excluded, *unheld]))
        words = replace(words, excluded=tuple(excluded), allowed=words.allowed.difference(around.tokens))
        text_first = name == "structures"
        if any(self._is_mixed(trigger) for trigger, _, _ in begun) or words.allowed:
            return self._among_tokens(begun, words, at_least, once, text_first)
        pairs = [self._with_trigger(begin, after) for _, begin, after in begun]
        return tag_dispatch(
            pairs,
            triggers=list(dict.fromkeys(self._trigger(trigger) for trigger, _, _ in begun)),
            min_uses=1 if at_least else 0,
            max_uses=1 if once else None,
            free_text="before" if once else "after" if at_least and not text_first else "anywhere",
            excludes=excluded,
            json_options=self._options,
        )

    def _is_mixed(self, trigger: str) -> bool:
        """Whether a trigger has a token behind text."""
        pieces = split_names(trigger, self._names.ids)
        return pieces[0] not in self._names.ids and len(pieces) > 1

    def _trigger(self, text: str) -> str | SpecialToken:
        """What a text begins with: a token, or the text up to one."""
        first = split_names(text, self._names.ids)[0]
        return SpecialToken(first) if first in self._names.ids else first

    def _with_trigger(self, begin: str, after: list[Constraint]) -> tuple[str | SpecialToken, Constraint]:
        mark = self._trigger(begin)
        return mark, concat(self._names.text(begin[len(str(mark)) :]), *after)

    def _among_tokens(
        self,
        begun: list[tuple[str, str, list[Constraint]]],
        words: ExcludedWords,
        at_least: bool,
        once: bool,
        text_first: bool,
    ) -> Constraint:
        """Tags in text that holds special tokens, or that begin with text and a token."""
        triggers = tuple(dict.fromkeys(trigger for trigger, _, _ in begun))
        held = dict(words.names) | {n: i for n, i in self._names.ids.items() if any(n in each for each in triggers)}
        tags = tuple(
            (triggers.index(trigger), concat(self._names.text(begin[len(trigger) :]), *after))
            for trigger, begin, after in begun
        )
        return TagsInText(replace(words, names=tuple(held.items())), triggers, tags, at_least, once, text_first)

    def _dispatch(self, given: Any, path: Place, around: Around) -> Constraint:
        """Texts that are followed by formats, in free text."""
        begun = []
        for n, rule in enumerate(self._rules(given, path)):
            if not isinstance(rule[0], str) or not rule[0]:
                raise wrong((*path, "rules", n, 0), "what begins a rule is a string, not empty")
            begun.append((rule[0], rule[0], [self._format(rule[1], (*path, "rules", n, 1))]))
        words = self._words(strings(given, "excludes", path))
        return self._among_tokens(begun, words, False, given.get("loop") is False, False)

    def _token_dispatch(self, given: Any, path: Place, around: Around) -> Constraint:
        """Tokens that are followed by formats, among any others."""
        tags: list[tuple[int, Constraint]] = []
        for n, rule in enumerate(self._rules(given, path)):
            where = (*path, "rules", n)
            token = self._token_id(rule[0], (*where, 0))
            tags.append((token, concat(self._mark({"token": token}, where), self._format(rule[1], (*where, 1)))))
        excluded = self._token_ids(given, "exclude_tokens", path)
        return self._among_any(tags, excluded, False, given.get("loop") is False)

    def _rules(self, given: Any, path: Place) -> list[Any]:
        rules = [rule for rule in list_of(given.get("rules"), (list, tuple)) if len(rule) == 2]
        if not rules or len(rules) != len(given["rules"]):
            raise wrong((*path, "rules"), "rules are pairs of what begins a format and the format, one at least")
        return rules

    def _token_triggered_tags(self, given: Any, path: Place, around: Around) -> Constraint:
        triggers = set(self._token_ids(given, "trigger_tokens", path))
        tags: list[tuple[int, Constraint]] = []
        for number, tag in enumerate(objects(given, "tags", path)):
            where = (*path, "tags", number)
            begin = tag.get("begin")
            token = self._token_id(begin.get("token"), where) if isinstance(begin, dict) else -1
            if token not in triggers:
                raise wrong(where, f"no trigger begins {begin!r:.100}")
            tags.append((token, self._tag(tag, where, NOTHING)))
        at_least, once = given.get("at_least_one") is True, given.get("stop_after_first") is True
        excluded = [*self._token_ids(given, "exclude_tokens", path), *around.tokens]
        return self._among_any(tags, excluded, at_least, once)

    def _among_any(
        self, tags: list[tuple[int, Constraint]], excluded: list[int], at_least: bool, once: bool
    ) -> Constraint:
        """Parts that tokens begin, among any others but those that are excluded."""
        other = _all_but([*(token for token, _ in tags), *excluded])
        first = "tag" if at_least else f"{other}* tag?" if once else ""
        whole = first if once else f"{first} {other}* (tag {other}*)*"
        parts = " | ".join(f"@part{number}" for number in range(len(tags)))
        grammars = tuple((f"part{number}", part) for number, (_, part) in enumerate(tags))
        return LarkConstraint(f"start: {whole}\ntag: {parts}\n", dialect="llguidance", grammars=grammars)

    def _tags_with_separator(self, given: Any, path: Place, around: Around) -> Constraint:
        tags = [self._tag(tag, (*path, "tags", n), NOTHING) for n, tag in enumerate(objects(given, "tags", path))]
        separator = self._names.text(string({"separator": "", **given}, "separator", path))
        names: dict[str, Constraint] = {"tag": union(*tags) if len(tags) > 1 else tags[0], "separator": separator}
        more = "" if given.get("stop_after_first") is True else " (@separator @tag)*"
        whole = f"@tag{more}" if given.get("at_least_one") is True else f"(@tag{more})?"
        used = tuple((name, names[name]) for name in names if f"@{name}" in whole)
        return LarkConstraint(f"start: {whole}\n", dialect="llguidance", grammars=used)


def _is_token(end: Any) -> bool:
    return isinstance(end, dict) and end.get("type", "token") == "token" and "token" in end


def _takes_line(content: Any, around: Around) -> bool:
    """Whether the line feed that the end begins with is part of the content."""
    if not isinstance(content, dict) or content.get("type") not in ("json_schema", "qwen_xml_parameter"):
        return False
    style = content.get("style", "qwen_xml" if content["type"] == "qwen_xml_parameter" else "json")
    return style in STYLES and style_in(style, around.begin, around.ends).takes_line


def _all_but(ids: list[int]) -> str:
    """Any token but some, as Lark grammars write it."""
    return f"<[^{','.join(map(str, sorted(set(ids))))}]>" if ids else "<[*]>"


def _first_text(format: Any) -> tuple[str, ...]:
    """The string that a format begins with, where it is one."""
    if format.get("type") == "const_string" and isinstance(format.get("value"), str) and format["value"]:
        return (format["value"],)
    if format.get("type") == "tag" and isinstance(format.get("begin"), str) and format["begin"]:
        return (format["begin"],)
    return ()
