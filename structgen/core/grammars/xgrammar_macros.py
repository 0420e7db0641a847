"""The macros of XGrammar's EBNF (``Regex``, ``Substring``, ``TagDispatch``, ``Token``, ...) as trees; expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from structgen.core.grammars.ebnf_tree import (
    AutomatonUse,
    EbnfText,
    EbnfTree,
    RuleUse,
    TokenUse,
    choice_of,
    repeat_of,
    sequence_of,
)
from structgen.core.grammars.named_tokens import text_tree
from structgen.core.grammars.regular import word_dfa
from structgen.core.grammars.token_terminals import MAX_TOKENS, TokenPattern
from structgen.core.regex.dfa import Dfa, intersect
from structgen.core.regex.ecma_ast import Alternate, Anchor, Boundary, Concat, Look, Node, Repeat
from structgen.core.regex.ecma_parser import parse
from structgen.core.regex.free_text import can_join, free_text_dfa, word_search
from structgen.core.regex.pattern import full_match_dfa, search_dfa
from structgen.core.regex.substrings import substring_dfa
from structgen.errors import PatternError


@dataclass(frozen=True)
class MacroValue:
    """An argument: a text, a number, the name of a rule, true or false, or several values. Offset as in the text."""

    kind: Literal["text", "number", "name", "truth", "tuple"]
    value: Any
    offset: int


@dataclass(frozen=True)
class MacroArguments:
    """What is between the parentheses of a macro, whose name stands at ``offset``."""

    macro: str
    offset: int
    positional: list[MacroValue]
    named: dict[str, MacroValue]


@dataclass(frozen=True)
class _Call:
    """A macro with its arguments, checked as they are asked for."""

    source: EbnfText
    given: MacroArguments

    def fail(self, message: str, value: MacroValue | None = None) -> Any:
        self.source.fail(f"{self.given.macro}: {message}", self.given.offset if value is None else value.offset)

    def only_named(self, *names: str) -> None:
        for name, value in self.given.named.items():
            if name not in names:
                self.fail(f"there is no argument {name}" + (f"; there are {', '.join(names)}" if names else ""), value)

    def of_kind(self, kind: str, values: list[MacroValue] | tuple[MacroValue, ...], expected: str) -> list[Any]:
        for value in values:
            if value.kind != kind:
                self.fail(f"expected {expected}", value)
        return [value.value for value in values]

    def texts(self, values: list[MacroValue] | tuple[MacroValue, ...]) -> list[str]:
        result = self.of_kind("text", values, "texts")
        for value, text in zip(values, result, strict=True):
            if any(0xD800 <= ord(c) < 0xE000 for c in text):
                self.fail(f"{text!r} holds half of a surrogate pair, which is not a character", value)
        return result

    def truth(self, name: str, default: bool) -> bool:
        value = self.given.named.get(name)
        return default if value is None else bool(self.of_kind("truth", [value], f"{name}=true or {name}=false")[0])

    def elements(self, name: str) -> tuple[MacroValue, ...]:
        value = self.given.named.get(name)
        if value is None:
            return ()
        result: tuple[MacroValue, ...] = self.of_kind("tuple", [value], f"{name}=(..., ...)")[0]
        return result

    def pairs(self, what: str) -> list[tuple[MacroValue, RuleUse]]:
        """Triggers and the rules after them."""
        result = []
        for value, elements in zip(
            self.given.positional, self.of_kind("tuple", self.given.positional, f"({what}, rule)"), strict=True
        ):
            if len(elements) != 2 or elements[1].kind != "name":
                self.fail(f"expected ({what}, rule)", value)
            result.append((elements[0], RuleUse(elements[1].value, self.source.position(elements[1].offset))))
        return result


def _regex(source: EbnfText, given: MacroArguments) -> EbnfTree:
    call = _Call(source, given)
    call.only_named("json_string", "flags")
    if len(given.positional) != 1:
        call.fail("expected one argument, a regular expression")
    pattern = call.texts(given.positional)[0]
    flags = None
    if "flags" in given.named:
        flags = call.texts([given.named["flags"]])[0]
        if not set(flags) <= set("isu"):
            call.fail("the flags are i, s and u", given.named["flags"])
    try:
        tree = regex_tree(pattern, flags)
        if call.truth("json_string", False):
            tree = AutomatonUse(intersect(regex_dfa(pattern, flags), full_match_dfa(_JSON_CHARACTERS)))
    except PatternError as error:
        call.fail(str(error), given.positional[0])
    return tree


_JSON_CHARACTERS = r'[^"\\\x00-\x1f]*'
"""What may stand in a JSON string as it is."""


def _substring(source: EbnfText, given: MacroArguments) -> EbnfTree:
    call = _Call(source, given)
    call.only_named()
    return AutomatonUse(substring_dfa(tuple(call.texts(given.positional))))


def _tag_dispatch(source: EbnfText, given: MacroArguments) -> EbnfTree:
    """Free text, then a trigger and its rule, and so on (or once)."""
    call = _Call(source, given)
    call.only_named("loop_after_dispatch", "excludes")
    pairs = call.pairs("text")
    triggers = call.texts([trigger for trigger, _ in pairs])
    excluded = call.texts(call.elements("excludes"))
    _check_words(call, triggers, excluded)
    words = [word.encode() for word in dict.fromkeys([*excluded, *triggers])]
    search = word_search(words)
    text = AutomatonUse(free_text_dfa(search, is_empty=True))
    after_text: list[EbnfTree] = []  # a trigger and its rule, with free text before it
    parts: list[EbnfTree] = []
    for word, (_, use) in zip(triggers, pairs, strict=True):
        data = word.encode()
        if any(name in word for name in source.names):  # free text holds no tokens, and so cannot begin it
            after_text.append(sequence_of([text_tree(word, source.names), use]))
        elif can_join(words, data):
            parts.append(sequence_of([AutomatonUse(free_text_dfa(search, words.index(data))), use]))
        else:
            after_text.append(sequence_of([AutomatonUse(word_dfa(word)), use]))
    if after_text:
        parts.append(sequence_of([text, choice_of(after_text)]))
    return _dispatched(text, parts, call.truth("loop_after_dispatch", True))


def _check_words(call: _Call, triggers: list[str], excluded: list[str]) -> None:
    if not all((*triggers, *excluded)):
        call.fail("an empty text would match everywhere")
    for trigger in triggers:
        for other in {*triggers, *excluded} - {trigger}:
            if other in trigger:
                call.fail(
                    f"the trigger {trigger!r} holds {other!r}, and could never be written. Make them differ, "
                    "or use the shorter one and let its rule distinguish what follows it"
                )
        if trigger in excluded:
            call.fail(f"the trigger {trigger!r} is excluded")


def _dispatched(text: EbnfTree, parts: list[EbnfTree], loops: bool) -> EbnfTree:
    """Parts, each with the text before it, and then text; or a part once, or text."""
    if not parts:
        return text
    if not loops:
        return choice_of([text, *parts])
    return sequence_of([repeat_of(choice_of(parts), 0, None), text])


def _token(source: EbnfText, given: MacroArguments) -> EbnfTree:
    call = _Call(source, given)
    call.only_named()
    if not given.positional:
        call.fail("expected ids of tokens")
    return _one_of(call, given.positional, negated=given.macro == "ExcludeToken")


def _one_of(call: _Call, values: list[MacroValue], *, negated: bool) -> TokenUse:
    ids = sorted(set(call.of_kind("number", values, "an id of a token")))
    if len(ids) > MAX_TOKENS or (ids and ids[-1] >= 1 << 31):
        call.fail(f"too many tokens, or ids that no vocabulary has (from {1 << 31})")
    sign = "^" if negated else ""
    source = f"<[{sign}{','.join(map(str, ids))}]>" if ids else "<[*]>"
    return TokenUse(
        TokenPattern(source, ranges=tuple((i, i) for i in ids), negated=negated),
        call.source.position(call.given.offset),
    )


def _token_tag_dispatch(source: EbnfText, given: MacroArguments) -> EbnfTree:
    """Any text and tokens but for triggers and what is excluded, then a trigger and its rule, and so on (or once)."""
    call = _Call(source, given)
    call.only_named("loop_after_dispatch", "excludes")
    pairs = call.pairs("id")
    excluded = list(call.elements("excludes"))
    triggers = [trigger for trigger, _ in pairs]
    call.of_kind("number", [*triggers, *excluded], "an id of a token")
    for value in excluded:
        if value.value in {trigger.value for trigger in triggers}:
            call.fail("an excluded id cannot be a trigger", value)
    text = repeat_of(_one_of(call, [*triggers, *excluded], negated=True), 0, None)
    parts = [sequence_of([_one_of(call, [trigger], negated=False), use]) for trigger, use in pairs]
    return _dispatched(
        text, [sequence_of([text, choice_of(parts)])] if parts else [], call.truth("loop_after_dispatch", True)
    )


MACROS: Mapping[str, Callable[[EbnfText, MacroArguments], EbnfTree]] = {
    "ExcludeToken": _token,
    "Regex": _regex,
    "Substring": _substring,
    "TagDispatch": _tag_dispatch,
    "Token": _token,
    "TokenTagDispatch": _token_tag_dispatch,
}


_PIECE = re.compile(r"\\u\{(?P<point>[0-9a-fA-F]{1,6})\}|\\(?P<escaped>.)|\(\?P<|\[\^?|.", re.DOTALL)
_SPACE = r"\t-\r "
_NOT_SPACE = r"\0-\x08\x0e-\x1f!-" + chr(0x10FFFF)
_ESCAPES = {"a": r"\x07", "e": r"\x1b"}
_KNOWN = frozenset("^$\\.*+?()[]{}|/-0123456789dDwWbBfnrtvcxukpP")  # others stand for themselves


def regex_tree(pattern: str, flags: str | None = None) -> Node | AutomatonUse:
    """A tree for the texts that a pattern matches as a whole.

    Args:
        pattern: the expression.
        flags: of ``i``, ``s`` and ``u``; None: none are given.

    Raises:
        PatternError: not legal, or not regular.
        TooComplexError: its automaton is too large.
    """
    node = parse(_as_ecma(pattern, flags))
    if isinstance(node, Concat) and node.parts:  # anchors that say what is so anyway
        begin, end = node.parts[0] == Anchor(False), node.parts[-1] == Anchor(True)
        node = Concat(node.parts[begin : len(node.parts) - end])
    return node if _is_plain(node) else AutomatonUse(_dfa(node))


def regex_dfa(pattern: str, flags: str | None = None) -> Dfa:
    """The automaton of the same texts."""
    return _dfa(parse(_as_ecma(pattern, flags)))


def _dfa(node: Node) -> Dfa:
    return search_dfa(Concat((Anchor(False), node, Anchor(True))))


def _is_plain(node: Node) -> bool:
    """Whether a tree looks at no text but its own."""
    if isinstance(node, Concat):
        return all(map(_is_plain, node.parts))
    if isinstance(node, Alternate):
        return all(map(_is_plain, node.options))
    if isinstance(node, Repeat):
        return _is_plain(node.body)
    return not isinstance(node, Anchor | Look | Boundary)


def _as_ecma(pattern: str, flags: str | None) -> str:
    """The expression that says the same in ECMA-262."""
    ignores_case = pattern.startswith("(?i)")
    pattern = pattern.removeprefix("(?i)")
    dot = "[^]" if flags is None or "s" in flags else r"[^\n]"
    pieces, in_class = [], False
    for piece in _PIECE.finditer(pattern):
        text, escaped = piece.group(), piece["escaped"]
        if piece["point"]:  # without braces, which are not read so in all expressions
            point = int(piece["point"], 16)
            text = f"\\u{point:04x}" if point < 0x10000 else chr(min(point, 0x10FFFF))
        elif escaped in ("s", "S"):
            inside = _SPACE if escaped == "s" else _NOT_SPACE
            text = inside if in_class else f"[{_SPACE}]" if escaped == "s" else f"[^{_SPACE}]"
        elif escaped is not None:
            stands = escaped in _KNOWN and (in_class or escaped != "-")
            text = _ESCAPES.get(escaped, text if stands else escaped)
        elif text == "(?P<" and not in_class:
            text = "(?<"
        elif text.startswith("["):
            in_class = True
        elif text == "]":
            in_class = False
        elif text == "." and not in_class:
            text = dot
        pieces.append(text)
    joined = "".join(pieces)
    return f"(?i:{joined})" if ignores_case or "i" in (flags or "") else joined
