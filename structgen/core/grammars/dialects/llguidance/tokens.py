"""The text of a grammar as llguidance writes it, cut into tokens."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, NoReturn

from structgen.core.grammars.embedded_schema import read_json, read_schema
from structgen.core.grammars.limits import Refusal, grammar_refusal
from structgen.core.grammars.normal_form import Place
from structgen.errors import GrammarError
from structgen.options import JsonOptions

_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+|(?:\#|//)[^\n]*)
    |(?P<newline>(?:\r?\n)+[ \t]*)
    |(?P<string>"(?:\\.|[^"\\\x00-\x1f\x7f])*"i?)
    |(?P<regexp>/(?:\\.|[^/\\])+/[imslux]*)
    |(?P<name>_?[A-Za-z](?:\w|-(?!>))*)
    |(?P<number>0[xX][0-9a-fA-F]+|[+-]?[0-9]+(?:\.(?!\.)[0-9]*)?(?:[eE][+-]?[0-9]+)?)
    |(?P<token><[^<>\s]+>)
    |(?P<reference>@[A-Za-z0-9_-]+)
    |(?P<keyword>%[a-z_]+)
    |(?P<sign>::|->|\.\.|[:=,.(){}\[\]~|&+*?!_])""",
    re.VERBOSE,
)
_KEYWORDS = ("%declare", "%extend", "%if", "%ignore", "%import", "%json", "%lark", "%llguidance", "%override", "%regex")
_WITH_JSON = ("%json", "%regex", "%llguidance")


class LarkToken(NamedTuple):
    """A token: its kind (a sign or keyword is its own), its text, its offset, and the JSON value after a keyword."""

    kind: str
    text: str
    offset: int
    value: Any = None


@dataclass(frozen=True)
class GrammarText:
    """A grammar's text, to say where in it something is wrong."""

    text: str

    @cached_property
    def _lines(self) -> list[int]:
        return [0, *(line_end.end() for line_end in re.finditer("\n", self.text))]

    def position(self, offset: int) -> Place:
        """The line and column of an offset."""
        line = bisect_right(self._lines, offset)
        return Place(line, offset - self._lines[line - 1] + 1)

    def fail(self, offset: int, message: str, hint: str | None = None) -> NoReturn:
        """Raise GrammarError for a place."""
        position = self.position(offset)
        raise GrammarError(message, line=position.line, column=position.column, source=self.text, hint=hint)

    def refusal(self, offset: int) -> Refusal:
        """What makes errors of what is too much at a place."""
        position = self.position(offset)
        return grammar_refusal(self.text, position.line, position.column)


def tokens_of(source: GrammarText, options: JsonOptions) -> list[LarkToken]:
    """The tokens, a line feed and the end.

    Args:
        source: the grammar's text.
        options: how the JSON of ``%json`` may be spelled.

    Raises:
        GrammarError: something that is no token, or no JSON where it must be.
    """
    text, offset, tokens = source.text, 0, []
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            _explain(source, offset)
        kind, piece = match.lastgroup or "", match.group()
        if kind == "keyword":
            if piece not in _KEYWORDS:
                source.fail(offset, f"there is no {piece}", f"There are {', '.join(_KEYWORDS)}.")
            kind = piece
        elif kind == "sign":
            kind = piece
        elif kind == "name":
            kind = _kind_of_name(source, piece, offset)
        end, value = match.end(), None
        if kind in _WITH_JSON:
            value, end = _json_after(source, kind, end, options)
        if kind != "blank":
            tokens.append(LarkToken(kind, piece, offset, value))
        offset = end
    return [*tokens, LarkToken("newline", "", len(text)), LarkToken("end", "", len(text))]


def _kind_of_name(source: GrammarText, name: str, offset: int) -> str:
    if re.fullmatch(r"_?[a-z][_a-z0-9-]*", name):
        return "rule"
    if re.fullmatch(r"_?[A-Z][_A-Z0-9-]*", name):
        return "terminal"
    source.fail(
        offset,
        f"{name!r} is no name",
        "Names of rules are in lower case, those of terminals in upper case, of ASCII letters, digits, _ and -.",
    )


def _json_after(source: GrammarText, keyword: str, offset: int, options: JsonOptions) -> tuple[Any, int]:
    while source.text[offset : offset + 1].isspace():
        offset += 1
    if keyword == "%json":
        return read_schema(source.text, offset, options)
    return read_json(source.text, offset, f"{keyword} is not followed by JSON")


def _explain(source: GrammarText, offset: int) -> NoReturn:
    character = source.text[offset]
    if character == '"':
        source.fail(
            offset, "this text is not closed, or has a line feed or a control character", "Write it as \\n or \\u...."
        )
    if character == "/":
        source.fail(offset, "this regular expression is empty or not closed", "A slash in it is written as \\/.")
    if character == "<":
        source.fail(offset, "this is no special token", "Special tokens are <name>, without spaces, or <[7]>.")
    source.fail(offset, f"{character!r} has no meaning here")


class Cursor:
    """A place among tokens."""

    def __init__(self, source: GrammarText, tokens: list[LarkToken]) -> None:
        self.source = source
        self._tokens = tokens
        self._next = 0

    @property
    def token(self) -> LarkToken:
        """The next token."""
        return self._tokens[min(self._next, len(self._tokens) - 1)]

    def has(self, *kinds: str) -> bool:
        """Whether the next token is of one of the kinds."""
        return self.token.kind in kinds

    def following(self, ahead: int) -> str:
        """The kind of a token further on."""
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)].kind

    def take(self, *kinds: str) -> LarkToken | None:
        """The next token if it is of one of the kinds, and go on after it."""
        token = self.token
        if token.kind not in kinds:
            return None
        self._next += 1
        return token

    def expect(self, kind: str, what: str) -> LarkToken:
        """The next token, which must be of a kind.

        Raises:
            GrammarError: it is another; ``what`` says what is expected.
        """
        token = self.take(kind)
        if token is None:
            self.unexpected(what)
        return token

    def unexpected(self, what: str) -> NoReturn:
        """Raise GrammarError: something else is expected."""
        token = self.token
        met = {"newline": "the end of the line", "end": "the end of the grammar"}.get(token.kind, repr(token.text))
        self.source.fail(token.offset, f"expected {what}, not {met}")

    def whole_number(self, what: str, most: int = 2**31 - 1) -> int:
        """A number of digits.

        Raises:
            GrammarError: there is none, or it is too large.
        """
        token = self.expect("number", what)
        try:
            number = int(token.text, 16 if token.text[:2] in ("0x", "0X") else 10)
        except ValueError:
            number = -1
        if not 0 <= number <= most:
            self.source.fail(token.offset, f"{what} goes from 0 to {most}, which {token.text[:40]} does not")
        return number
