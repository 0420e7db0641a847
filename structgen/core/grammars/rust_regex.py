"""Regular expressions as Rust's crate ``regex`` writes them, less what llguidance refuses, as syntax trees.

An expression stands for the texts that match it as a whole. Lookarounds, word boundaries and backreferences are
refused; an anchor may stand where the expression begins or ends, and says nothing there. Laziness (``*?``) says nothing
about whole texts, either; it is noted, since who writes it means something else. (docs.rs/regex, section "Syntax".)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NoReturn, TypeAlias

from structgen.core.grammars.rust_classes import ASCII_CLASSES, ascii_class, operated, perl_class, property_by_name
from structgen.core.regex import charset
from structgen.core.regex.charset import CharSet
from structgen.core.regex.ecma_ast import Alternate, Anchor, Boundary, Chars, Concat, Look, Node, Repeat
from structgen.core.regex.ecma_classes import fold
from structgen.core.regex.steps import check_time
from structgen.errors import PatternError

MAX_REPEAT = 2**31 - 1
"""The largest number of repetitions that can be written."""
_ESCAPES = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_HEX = {"x": 2, "u": 4, "U": 8}
_COUNT = re.compile(r"\{\s*(\d+)\s*(,?)\s*(\d*)\s*\}")
_GROUP = re.compile(r"\((?:\?(?:P?<(?P<name>[^>]*)>|(?P<flags>[a-zA-Z-]*)(?P<colon>[:)])))?")
_LOOK = re.compile(r"\(\?(<?)([=!])")
_BOUNDARY = re.compile(r"\\([bB])(?!\{)")
AskedClasses: TypeAlias = Callable[[str, CharSet], CharSet]
"""From an expression of one character and what our Unicode version says that it matches to what it does match."""
_NO_LOOKAROUND = "lookarounds and word boundaries are not supported, as in llguidance"


@dataclass(frozen=True)
class Flags:
    """What ``(?imsxuR)`` sets; ``u`` is on unless it is switched off."""

    i: bool = False
    m: bool = False
    s: bool = False
    x: bool = False
    u: bool = True
    R: bool = False
    U: bool = False


@dataclass
class RustRegex:
    """An expression as read: its tree, and where (offsets) it asks for lazy repetition."""

    node: Node
    lazy: list[int] = field(default_factory=list)


def parse_rust_regex(pattern: str, flags: str = "") -> RustRegex:
    """Read an expression.

    Args:
        pattern: the expression.
        flags: letters that apply to all of it, of ``imsux``.

    Raises:
        PatternError: not legal, or not supported; the position is an offset in the pattern.
    """
    parser = _Parser(pattern, replace(Flags(), **dict.fromkeys(flags, True)))
    return RustRegex(_without_anchors(parser.whole(), True, True, parser), parser.lazy)


def parse_rust_search(pattern: str, asked: AskedClasses | None = None) -> Node:
    """Read an expression that is searched for, as ``Regex::is_match`` does: anchors and word boundaries are kept.

    Args:
        pattern: the expression.
        asked: what says which characters a class matches where that depends on the version of Unicode (``\\w``,
            ``\\p{L}``, ``(?i)é``); without it, the version of our tables does.

    Raises:
        PatternError: as ``parse_rust_regex``, but for these.
    """
    parser = _Parser(pattern, Flags())
    parser.searches, parser.asked = True, asked
    return parser.whole()


def parse_fancy_regex(pattern: str, asked: AskedClasses | None = None) -> Node:
    """Read an expression that is searched for in which lookaheads and lookbehinds may stand, as the crate
    ``fancy-regex`` reads it (what tokenizers split texts with). ``asked``: see ``parse_rust_search``.

    Raises:
        PatternError: not legal; or it is lazy, or a repetition or group keeps what it has taken.
    """
    parser = _Parser(pattern, Flags())
    parser.searches = parser.looks = True
    parser.asked = asked
    node = parser.whole()
    if parser.lazy:
        parser.fail("lazy repetitions are not supported here", parser.lazy[0])
    return node


def _of_line(at_end: bool, crlf: bool) -> Node:
    """The anchors of the flag m: the start or the end of a line; with R by carriage returns too (not in CR LF)."""
    feed, carriage = Chars(charset.single(10)), Chars(charset.single(13))
    edges: list[Node] = [Anchor(at_end)]
    if not crlf:
        return Alternate((*edges, Look(feed, not at_end, False)))
    inside = Look(carriage if at_end else feed, at_end, True)
    outer, inner = (carriage, feed) if at_end else (feed, carriage)
    edges.append(Look(outer, not at_end, False))
    return Alternate((*edges, Concat((inside, Look(inner, not at_end, False)))))


def without_case(text: str) -> Node:
    """A text in any case."""
    return Concat(tuple(Chars(fold(charset.single(ord(c)))) for c in text))


class _Parser:
    def __init__(self, pattern: str, flags: Flags) -> None:
        self._text = pattern
        self._at = 0
        self._flags = flags
        self.searches = False  # what stands around the match is seen
        self.looks = False  # lookarounds are read
        self.asked: AskedClasses | None = None
        self._by_unicode = False  # whether the atom that is read depends on Unicode's tables
        self.lazy: list[int] = []
        self.anchors: list[int] = []  # offsets, from left to right

    def whole(self) -> Node:
        node = self._alternatives()
        if self._at < len(self._text):
            self.fail("a closing parenthesis without an opening one")
        return node

    def _alternatives(self) -> Node:
        outside = self._flags
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        self._flags = outside  # flags set inside end with the group
        return options[0] if len(options) == 1 else Alternate(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while True:
            self._skip()
            if self._at >= len(self._text) or self._text[self._at] in "|)":
                return parts[0] if len(parts) == 1 else Concat(tuple(parts))
            if self._text[self._at] in "*+?{":
                self.fail("a repetition of nothing")
            atom = self._atom()
            if atom is not None:
                parts.append(self._repeated(atom))

    def _skip(self) -> None:
        """White space and comments, where the flag x says that they mean nothing."""
        while self._flags.x and (match := re.compile(r"\s+|#[^\n]*").match(self._text, self._at)):
            self._at = match.end()

    def _repeated(self, node: Node) -> Node:
        while True:
            self._skip()
            sign = self._text[self._at : self._at + 1]
            if sign and sign in "*+?":
                self._at += 1
                low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
            elif sign == "{":
                low, high = self._bounds()
            else:
                return node
            if self._take("?"):
                self.lazy.append(self._at - 1)
            elif self.looks and self._text.startswith("+", self._at):
                self.fail("repetitions that keep what they have taken are not supported")
            node = Repeat(node, low, high)

    def _bounds(self) -> tuple[int, int | None]:
        match = _COUNT.match(self._text, self._at)
        if match is None:
            self.fail("a repetition is {n}, {n,} or {n,m}; a brace that stands for itself is \\{")
        low = min(int(match[1][-20:]), MAX_REPEAT + 1)
        high = None if match[2] and not match[3] else min(int((match[3] or match[1])[-20:]), MAX_REPEAT + 1)
        if low > MAX_REPEAT or (high is not None and (high > MAX_REPEAT or high < low)):
            self.fail("the numbers of a repetition must go up, and fit in 31 bits")
        self._at = match.end()
        return low, high

    def _atom(self) -> Node | None:
        """One atom; None for flags that are set from here on."""
        start, self._by_unicode = self._at, False
        node = self._plain_atom()
        if self.asked is not None and self._by_unicode and isinstance(node, Chars):
            return Chars(self._answer(self._text[start : self._at], node.charset, self.asked))
        return node

    def _answer(self, atom: str, expected: CharSet, asked: AskedClasses) -> CharSet:
        """What an atom matches under the flags that hold here."""
        switched = "".join(name for name in "isxR" if getattr(self._flags, name)) + ("" if self._flags.u else "-u")
        return asked(f"(?{switched}:{atom}" + ("\n)" if self._flags.x else ")"), expected)

    def _plain_atom(self) -> Node | None:
        check_time()
        check_time()
        character = self._text[self._at]
        if character == "(":
            return self._group()
        if character == "[":
            return Chars(self._class())
        if character == ".":
            self._at += 1
            ends = charset.normalise([(10, 10), (13, 13)] if self._flags.R else [(10, 10)])
            return Chars(self._bytes_too(charset.ANY if self._flags.s else charset.complement(ends), self._at - 1))
        if character in "^$":
            self._at += 1
            if self._flags.m and self.searches:
                return _of_line(character == "$", self._flags.R)
            if self._flags.m:
                self.fail(f"an anchor of lines, by the flag m: {_NO_LOOKAROUND}", self._at - 1)
            self.anchors.append(self._at - 1)
            return Anchor(character == "$")
        if character == "\\":
            if self._text[self._at + 1 : self._at + 2] in ("A", "z"):
                self.anchors.append(self._at)
                self._at += 2
                return Anchor(self._text[self._at - 1] == "z")
            if self.searches and (match := _BOUNDARY.match(self._text, self._at)):
                self._at = match.end()
                word = perl_class("w", self._flags.u)
                if self.asked is not None and self._flags.u:
                    word = self.asked(r"(?:\w)", word)
                return Boundary(word, match[1] == "B")
            return Chars(self._escape())
        self._at += 1
        return Chars(self._cased(charset.single(ord(character))))

    def _group(self) -> Node | None:
        if self.looks and (around := _LOOK.match(self._text, self._at)):
            start, self._at = self._at, around.end()
            body = self._alternatives()
            if not self._take(")"):
                self.fail("this lookaround is not closed", start)
            return Look(body, lookbehind=bool(around[1]), negative=around[2] == "!")
        match = _GROUP.match(self._text, self._at)
        assert match is not None
        start = self._at
        if match.group() == "(" and self._text.startswith("(?", self._at):
            look = self._text.startswith(("(?=", "(?!", "(?<=", "(?<!"), self._at)
            self.fail(_NO_LOOKAROUND if look else "this group is not known")
        outside = self._flags
        if match["name"] is not None and not re.fullmatch(r"[A-Za-z_][\w.\[\]]*", match["name"]):
            look = match["name"].startswith(("=", "!"))
            self.fail(_NO_LOOKAROUND if look else f"{match['name']!r} is no name for a group")
        if match["flags"] is not None:
            self._flags = self._changed(match["flags"], start + 2)
        self._at = match.end()
        if match["colon"] == ")":
            return None
        node = self._alternatives()
        if not self._take(")"):
            self.fail("this group is not closed", start)
        self._flags = outside
        return node

    def _changed(self, letters: str, offset: int) -> Flags:
        """The flags with those switched that ``ims-sx`` names."""
        flags, on = self._flags, True
        for i, letter in enumerate(letters):
            if letter == "-":
                on = False
            elif letter in "imsxuRU":
                flags = replace(flags, **{letter: on})
            else:
                self.fail(f"the flag {letter!r} is not known; flags are i, m, s, x, u, U and R", offset + i)
        return flags

    def _cased(self, members: CharSet) -> CharSet:
        if not self._flags.i:
            return members
        if self._flags.u:
            self._by_unicode = True
            return fold(members)
        small, large = charset.intersection(members, ((97, 122),)), charset.intersection(members, ((65, 90),))
        others = [(a - 32, b - 32) for a, b in small] + [(a + 32, b + 32) for a, b in large]
        return charset.union(members, charset.normalise(others))

    def _bytes_too(self, members: CharSet, offset: int) -> CharSet:
        """A set that without the flag u would hold single bytes, which are no text."""
        if not self._flags.u and members and members[-1][1] > 127:
            self.fail("without the flag u this matches bytes that are no UTF-8", offset)
        return members

    def _escape(self, in_class: bool = False) -> CharSet:
        """The characters of an escape, at the backslash."""
        start = self._at
        kind = self._text[start + 1 : start + 2]
        self._at += 2
        if not kind:
            self.fail("a backslash at the end", start)
        if kind in _ESCAPES:
            return charset.single(_ESCAPES[kind])
        if kind in _HEX:
            return self._cased(charset.single(self._code_point(kind, start)))
        if kind in "dwsDWS":
            members = perl_class(kind.lower(), self._flags.u)
            self._by_unicode |= self._flags.u
            return self._bytes_too(charset.complement(members), start) if kind.isupper() else members
        if kind in "pP":
            return self._property(kind == "P", start)
        if kind in "bB<>" and not in_class:
            self.fail(_NO_LOOKAROUND, start)
        if kind.isdigit():
            self.fail("backreferences are not supported", start)
        if not kind.isascii() or kind.isalpha() or kind in "<>":
            self.fail(f"there is no escape \\{kind}", start)
        return charset.single(ord(kind))

    def _code_point(self, kind: str, start: int) -> int:
        result = re.compile(rf"\{{\s*([0-9A-Fa-f]+)\s*\}}|([0-9A-Fa-f]{{{_HEX[kind]}}})").match(self._text, self._at)
        if result is None:
            self.fail(f"\\{kind} needs {_HEX[kind]} hexadecimal digits, or braces around digits", start)
        self._at = result.end()
        point = int((result[1] or result[2])[-12:], 16)
        if point > charset.MAX_CODE_POINT or 0xD800 <= point <= 0xDFFF:
            self.fail("this is no Unicode character", start)
        if not self._flags.u and point > 127:
            self.fail("without the flag u this matches bytes that are no UTF-8", start)
        return point

    def _property(self, negated: bool, start: int) -> CharSet:
        match = re.compile(r"\{([^}]*)\}|([A-Za-z])").match(self._text, self._at)
        if match is None or not self._flags.u:
            self.fail("\\p is followed by {a property}, and needs the flag u", start)
        self._at = match.end()
        wanted = match[1] if match[1] is not None else match[2]
        members = property_by_name(wanted)
        if members is None:
            self.fail(
                f"there is no Unicode property {wanted!r} here (general categories, scripts, script extensions and "
                "binary properties are known)",
                start,
            )
        self._by_unicode = True
        members = self._cased(members)
        return charset.complement(members) if negated else members

    # --- classes ---
    def _class(self) -> CharSet:
        """A class in brackets, at the bracket."""
        start = self._at
        self._at += 1
        negated = self._take("^")
        members, waiting = self._items(start, first=True), ""
        total: CharSet | None = None
        while True:
            total = members if total is None else operated(total, waiting, members)
            if self._take("]"):
                break
            waiting = self._text[self._at : self._at + 2]
            self._at += 2
            members = self._items(start, first=False)
        return self._bytes_too(charset.complement(total), start) if negated else total

    def _items(self, start: int, first: bool) -> CharSet:
        """The union of items up to an operator or the closing bracket."""
        sets: list[CharSet] = []
        while True:
            self._skip()
            if self._at >= len(self._text):
                self.fail("this class is not closed", start)
            here = self._text[self._at : self._at + 2]
            if here in ("&&", "--", "~~"):
                return charset.union(*sets)
            if here[0] == "]" and not first:
                return charset.union(*sets)
            first = False
            sets.append(self._item())

    def _item(self) -> CharSet:
        named = re.compile(r"\[:(\^?)(\w+):\]").match(self._text, self._at)
        if named and named[2] in ASCII_CLASSES:
            self._at = named.end()
            members = self._cased(ascii_class(named[2]))
            return self._bytes_too(charset.complement(members), named.start()) if named[1] else members
        if self._text[self._at] == "[":
            return self._class()
        low, start = self._member(), self._at
        self._skip()
        if self._text[self._at : self._at + 1] != "-" or self._text[self._at + 1 : self._at + 2] in ("]", "-", ""):
            return self._cased(low)
        self._at += 1
        self._skip()
        high = self._member()
        if len(low) != 1 or low[0][0] != low[0][1] or len(high) != 1 or high[0][0] != high[0][1]:
            self.fail("a range goes from one character to another", start)
        if high[0][0] < low[0][0]:
            self.fail("a range in a class must go up", start)
        return self._cased(charset.normalise([(low[0][0], high[0][0])]))

    def _member(self) -> CharSet:
        if self._text[self._at : self._at + 1] == "\\":
            flags, self._flags = self._flags, replace(self._flags, i=False)  # folded when the range is known
            escaped = self._escape(in_class=True)
            self._flags = flags
            return escaped
        if self._at >= len(self._text):
            self.fail("this class is not closed")
        self._at += 1
        return charset.single(ord(self._text[self._at - 1]))

    def _take(self, sign: str) -> bool:
        self._skip()
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        return True

    def fail(self, message: str, offset: int | None = None) -> NoReturn:
        """Raise PatternError, at an offset or where the parser is."""
        raise PatternError(message, pattern=self._text, position=self._at if offset is None else offset)


def _without_anchors(node: Node, at_start: bool, at_end: bool, parser: _Parser) -> Node:
    """The tree without anchors that hold by where they stand; others look around."""
    if isinstance(node, Anchor):
        offset = parser.anchors.pop(0)
        if not (at_end if node.at_end else at_start):
            parser.fail(f"an anchor inside of the expression; {_NO_LOOKAROUND}", offset)
        return Concat(())
    if isinstance(node, Alternate):
        return Alternate(tuple(_without_anchors(option, at_start, at_end, parser) for option in node.options))
    if isinstance(node, Repeat):
        once = node.high is not None and node.high <= 1
        return node._replace(body=_without_anchors(node.body, at_start and once, at_end and once, parser))
    if not isinstance(node, Concat):
        return node
    firsts = [True]  # whether only anchors stand before each part
    for part in node.parts:
        firsts.append(firsts[-1] and isinstance(part, Anchor))
    lasts = [True]
    for part in reversed(node.parts):
        lasts.append(lasts[-1] and isinstance(part, Anchor))
    lasts = lasts[-2::-1]
    return Concat(
        tuple(
            _without_anchors(part, at_start and first, at_end and last, parser)
            for part, first, last in zip(node.parts, firsts, lasts, strict=False)
        )
    )
