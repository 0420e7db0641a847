"""Names of special tokens in the literals of grammars and expressions, read as these tokens.

A model writes ``<|sep|>`` as one token without text, and so no text of a grammar matches it. Where a literal run of an
expression or a string of a grammar holds the name of a special token, that token is meant, and the spelled name is not.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import zip_longest

from structgen.core.grammars.ebnf_tree import EbnfRule, EbnfTree, TokenUse, choice_of, repeat_of, sequence_of
from structgen.core.grammars.ebnf_writer import EbnfWriter
from structgen.core.grammars.normal_form import ContextFreeGrammar, Place
from structgen.core.grammars.python_regex import parse
from structgen.core.grammars.token_terminals import TokenPattern
from structgen.core.json_text import EXACT_DECODER
from structgen.core.regex import charset
from structgen.core.regex.ecma_ast import Alternate, Anchor, Boundary, Chars, Concat, Look, Repeat
from structgen.errors import UnsupportedPatternError

NOWHERE = Place()


def split_names(text: str, names: Collection[str]) -> list[str]:
    """The text cut at the names in it, of which the longest counts where one begins another. Without empty pieces."""
    return [piece for piece in _cuts(frozenset(names)).split(text) if piece]


@lru_cache(16)
def _cuts(names: frozenset[str]) -> re.Pattern[str]:
    ordered = sorted(map(re.escape, filter(None, names)), key=len, reverse=True)
    return re.compile(f"({'|'.join(ordered)})" if ordered else "(?!)")


def token_named(name: str, position: Place = NOWHERE) -> TokenUse:
    """The token of this name as a leaf of a tree."""
    return TokenUse(TokenPattern(name, name=name), position)


def literal(text: str) -> Concat:
    """The tree of a text."""
    return Concat(tuple(Chars(charset.single(ord(c))) for c in text))


def text_tree(text: str, names: Collection[str]) -> EbnfTree:
    """The tree of a text whose names are tokens."""
    pieces = split_names(text, names)
    return sequence_of([token_named(piece) if piece in names else literal(piece) for piece in pieces])


def by_token(tree: EbnfTree, names: Collection[str], position: Place = NOWHERE) -> EbnfTree:
    """The tree with tokens in place of their names in its literal runs; the same object where there are none."""
    if isinstance(tree, Concat):
        return _sequence(tree, names, position)
    if isinstance(tree, Alternate):
        options = [by_token(option, names, position) for option in tree.options]
        return choice_of(options) if _differ(options, tree.options) else tree
    if isinstance(tree, Repeat):
        body = by_token(tree.body, names, position)
        return tree if body is tree.body else repeat_of(body, tree.low, tree.high)
    return tree


def rules_by_token(rules: Mapping[str, EbnfRule], names: Collection[str]) -> dict[str, EbnfRule]:
    """Rules whose literals hold tokens in place of their names."""
    return {name: replace(rule, tree=by_token(rule.tree, names, rule.position)) for name, rule in rules.items()}


def text_by_token(text: str, names: Collection[str]) -> ContextFreeGrammar:
    """The grammar of one text whose names are tokens."""
    return EbnfWriter(text, {"root": EbnfRule(text_tree(text, names), Place())}).write("root")


def regex_by_token(pattern: str, names: Collection[str]) -> ContextFreeGrammar | None:
    """The grammar of an expression (of Python) in which names are tokens; None where it holds none.

    Raises:
        PatternError: it is no expression, or has lookarounds or anchors inside beside tokens.
    """
    result = by_token(parse(_without_anchors(pattern)), names)
    if not _has_token(result):
        return None
    if _looks(result):
        raise UnsupportedPatternError(
            "lookarounds, \\b and anchors within an expression cannot stand in an expression with special tokens",
            pattern=pattern,
        )
    return EbnfWriter(pattern, {"root": EbnfRule(result, Place())}).write("root")


def _sequence(tree: Concat, names: Collection[str], position: Place) -> EbnfTree:
    """What stands side by side without a token in it is one part, so that it is one terminal."""
    kept: list[EbnfTree] = []
    plain: list[EbnfTree] = []
    changed = False
    for piece in _with_beginnings(list(_runs(_flat(tree))), names):
        result = [text_tree(piece, names)] if isinstance(piece, str) else [by_token(piece, names, position)]
        is_plain = not _has_token(result[0])
        changed |= not is_plain
        if is_plain:
            plain += result
        else:
            kept += [*_grouped(plain), *result]
            plain = []
    return sequence_of([*kept, *_grouped(plain)]) if changed else tree


def _with_beginnings(pieces: list[str | EbnfTree], names: Collection[str]) -> Iterator[str | EbnfTree]:
    """Pieces, where what may begin a name stands inside the options that follow: Python's parser takes out of them
    what they have in common."""
    carried = False
    for piece, following in zip_longest(pieces, pieces[1:]):
        begun = _beginning(piece, names) if isinstance(piece, str) and isinstance(following, Alternate) else ""
        if isinstance(piece, str):
            if len(begun) < len(piece):
                yield piece[: len(piece) - len(begun)]
            if begun:
                assert isinstance(following, Alternate)
                yield choice_of([sequence_of([*literal(begun).parts, option]) for option in following.options])
            carried = bool(begun)
        elif not (isinstance(piece, Alternate) and carried):
            yield piece
            carried = False
        else:
            carried = False


def _beginning(text: str, names: Collection[str]) -> str:
    """The longest end of a text that begins a name."""
    ends = (text[begin:] for begin in range(len(text)))
    return next((end for end in ends if any(name.startswith(end) for name in names)), "")


def _grouped(parts: list[EbnfTree]) -> list[EbnfTree]:
    return [sequence_of(parts)] if parts else []


def _flat(tree: Concat) -> Iterator[EbnfTree]:
    for part in tree.parts:
        if isinstance(part, Concat):
            yield from _flat(part)
        else:
            yield part


def _runs(parts: Iterable[EbnfTree]) -> Iterator[str | EbnfTree]:
    """Single characters side by side as strings; other parts as they are."""
    text = ""
    for part in parts:
        is_single = isinstance(part, Chars) and len(part.charset) == 1 and part.charset[0][0] == part.charset[0][1]
        if is_single and not 0xD800 <= part.charset[0][0] < 0xE000:  # type: ignore[union-attr]
            text += chr(part.charset[0][0])  # type: ignore[union-attr]
            continue
        if text:
            yield text
        text = ""
        yield part
    if text:
        yield text


def _differ(result: list[EbnfTree], given: tuple[EbnfTree, ...]) -> bool:
    return any(new is not old for new, old in zip(result, given, strict=True))


def _without_anchors(pattern: str) -> str:
    """Without ``^`` and ``$`` around an expression, which must match as a whole anyway."""
    begun = pattern.removeprefix("^")
    ended = begun.removesuffix("$")
    return begun if (len(ended) - len(ended.rstrip("\\"))) % 2 else ended


def _children(tree: EbnfTree) -> tuple[EbnfTree, ...]:
    if isinstance(tree, Concat):
        return tree.parts
    if isinstance(tree, Alternate):
        return tree.options
    return (tree.body,) if isinstance(tree, Repeat | Look) else ()


def _has_token(tree: EbnfTree) -> bool:
    return isinstance(tree, TokenUse) or any(map(_has_token, _children(tree)))


def _looks(tree: EbnfTree) -> bool:
    return isinstance(tree, Look | Anchor | Boundary) or any(map(_looks, _children(tree)))


# --- grammars in Lark's language ---
_STRING = r'"(?:\\.|[^"\\\n])*"'
_LARK = re.compile(
    rf"//[^\n]*|#[^\n]*|=\s*{_STRING}|(?P<text>{_STRING})(?P<flag>i?)|/(?!/)(?:\\.|[^/\\])+/|%(?:json|regex)\s*"
)
"""Comments, attributes of rules, which are text, strings, expressions, and what JSON follows."""


def lark_by_token(source: str, names: Mapping[str, int]) -> str:
    """A grammar whose strings name tokens, as Lark's readers here write these; the same where none does.

    Args:
        source: in Lark's language or llguidance's.
        names: special tokens and their ids.
    """
    if not any(name in source for name in names):
        return source
    pieces, done, skipped = [], 0, 0
    for result in _LARK.finditer(source):
        if result.start() < skipped:
            continue
        if result.group().startswith("%"):  # strings of what follows are JSON's, no part of the grammar
            try:
                skipped = EXACT_DECODER.raw_decode(source, result.end())[1]
            except (ValueError, RecursionError):  # the reader refuses it
                return source
            continue
        text = None if result["text"] is None or result["flag"] else _unquoted(result["text"])
        if text is None or not any(name in text for name in names):
            continue
        parts = [
            _lark_token(p, names) if p in names else json.dumps(p, ensure_ascii=False) for p in split_names(text, names)
        ]
        pieces += [source[done : result.start()], f"({' '.join(parts)})" if len(parts) > 1 else parts[0]]
        done = result.end()
    return "".join([*pieces, source[done:]])


def _unquoted(text: str) -> str | None:
    try:
        result = json.loads(text)
    except ValueError:  # escapes that JSON does not have
        return None
    return str(result)


def _lark_token(name: str, names: Mapping[str, int]) -> str:
    """A token as grammars name it: by its name, by which texts can be taken apart, where that can be written."""
    if _NAME.fullmatch(name):
        return name
    return f"<{name}>" if _BRACKETS.fullmatch(name) else f"<[{names[name]}]>"


_NAME = re.compile(r"<[^\s<>\[\]]+>")
_BRACKETS = re.compile(r"\[[^\s<>\[\]]*[^\s<>\[\]0-9^*,-][^\s<>\[\]]*\]")
