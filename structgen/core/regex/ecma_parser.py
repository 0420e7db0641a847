"""Parser of ECMA-262 regular expressions (15th edition, section 22.2.1), as JSON Schema's ``pattern`` has them.

The ``u`` grammar is tried first and Annex B.1.2 (the lax web grammar) after it. In both readings a character is a code
point. What cannot change the language (captures, laziness) is dropped; a backreference is refused.
"""

from __future__ import annotations

from functools import lru_cache

from structgen.core.regex.charset import ANY, CharSet, complement, single, union
from structgen.core.regex.ecma_ast import END, START, Alternate, Boundary, Chars, Concat, Look, Node, Repeat
from structgen.core.regex.ecma_classes import (
    CONTROLS,
    LINE_END,
    NOT_LINE_END,
    SHORTHANDS,
    WORD,
    fold,
    property_class,
)
from structgen.core.regex.steps import check_time
from structgen.errors import PatternError, UnsupportedPatternError

MAX_DEPTH = 100
"""Groups may be nested this deep."""

_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
_ENDS_ALTERNATIVE = frozenset("|)")
_HEX = frozenset("0123456789abcdefABCDEF")
_DECIMAL = frozenset("0123456789")
_OCTAL = frozenset("01234567")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


class _HardError(PatternError):
    """An error that the lax grammar must not explain away."""


class _Backreference(_HardError, UnsupportedPatternError):
    """The expression is legal, and not regular."""


def parse(pattern: str) -> Node:
    """The syntax tree of ``pattern``.

    Raises PatternError with the position if it is legal neither with the ``u`` flag nor under Annex B (the error is
    that of the ``u`` grammar), or if it has an unknown Unicode property; UnsupportedPatternError for a backreference.
    """
    try:
        return _Parser(pattern, strict=True).parse()
    except PatternError as strict_error:
        error = strict_error
    if not isinstance(error, _HardError):
        try:
            return _Parser(pattern, strict=False).parse()
        except _HardError as hard_error:
            error = hard_error
        except PatternError:
            pass  # report what the strict grammar says
    kind = UnsupportedPatternError if isinstance(error, UnsupportedPatternError) else PatternError
    raise kind(error.message, pattern=pattern, position=error.position)


@lru_cache(maxsize=4_096)
def is_regular(pattern: str) -> bool:
    """False for a legal expression with a backreference; whether an expression is legal is not said."""
    try:
        parse(pattern)
    except UnsupportedPatternError:
        return False
    except PatternError:
        pass
    return True


class _Parser:
    """Recursive descent; ``at`` is the next character. ``strict`` is the ``u`` grammar, else Annex B."""

    def __init__(self, pattern: str, strict: bool) -> None:
        self.text = pattern
        self.at = 0
        self.strict = strict
        self.depth = 0
        self.ignore_case = self.multiline = self.dot_all = False
        self.named_groups = "(?<" in pattern and _has_named_group(pattern)
        self.names: set[str] = set()
        self.reference: PatternError | None = None

    def parse(self) -> Node:
        node = self.disjunction()
        if self.at < len(self.text):
            raise self.error("Unmatched ')'")
        if self.reference is not None:
            raise self.reference
        return node

    def error(self, message: str, offset: int | None = None, *, hard: bool = False) -> PatternError:
        kind = _HardError if hard else PatternError
        return kind(message, pattern=self.text, position=self.at if offset is None else offset)

    def backreference(self, begin: int, end: int) -> tuple[Node, bool]:
        """Note the first reference, and go on: the rest may not be legal."""
        if self.reference is None:
            message = "Backreferences are not regular and not supported"
            self.reference = _Backreference(message, pattern=self.text, position=begin)
        self.at = end
        return Concat(()), True

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def eat(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def expect(self, token: str, message: str) -> None:
        if not self.eat(token):
            raise self.error(message)

    # Disjunction, Alternative, Term

    def disjunction(self) -> Node:
        options = [self.alternative()]
        while self.eat("|"):
            options.append(self.alternative())
        return options[0] if len(options) == 1 else Alternate(tuple(options))

    def alternative(self) -> Node:
        parts: list[Node] = []
        text, size = self.text, len(self.text)
        while self.at < size and text[self.at] not in _ENDS_ALTERNATIVE:
            parts.append(self.term())
        return parts[0] if len(parts) == 1 else Concat(tuple(parts))

    def term(self) -> Node:
        check_time()
        check_time()
        begin = self.at
        char = self.text[begin]
        atom: Node
        quantifiable = True
        if char not in _SYNTAX:
            self.at += 1
            atom = self.chars(single(ord(char)))
        else:
            atom, quantifiable = self.special(char)
        if self.peek() in ("*", "+", "?", "{"):
            return self.quantified(atom, begin, quantifiable)
        return atom

    def special(self, char: str) -> tuple[Node, bool]:
        """An assertion, group, class, escape or dot, and whether a quantifier may follow."""
        begin = self.at
        if char == "\\":
            return self.escape_term()
        if char == "(":
            return self.group()
        self.at += 1
        if char == "[":
            return self.character_class(), True
        if char == ".":
            return Chars(ANY if self.dot_all else NOT_LINE_END), True
        if char == "^":
            return (_line_start() if self.multiline else START), False
        if char == "$":
            return (_line_end() if self.multiline else END), False
        if char in "*+?" or (char == "{" and (self.strict or self.braces(begin) is not None)):
            raise self.error("Nothing to repeat", begin)
        if self.strict and char != "/":
            raise self.error(f"Unescaped {char!r}", begin)
        return self.chars(single(ord(char))), True

    def quantified(self, atom: Node, begin: int, quantifiable: bool) -> Node:
        bounds = self.quantifier()
        if bounds is None:
            return atom
        if not quantifiable:
            raise self.error("Nothing to repeat", begin)
        self.eat("?")
        low, high = bounds
        if high is not None and low > high:
            raise self.error("Numbers out of order in quantifier", begin)
        return Repeat(atom, low, high)

    def quantifier(self) -> tuple[int, int | None] | None:
        char = self.peek()
        if char != "{":
            self.at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        bounds = self.braces(self.at)
        if bounds is None:
            if self.strict:
                raise self.error("Incomplete quantifier")
            return None
        self.at = self.text.index("}", self.at) + 1
        return bounds

    def braces(self, offset: int) -> tuple[int, int | None] | None:
        """The bounds of ``{n}``, ``{n,}`` or ``{n,m}`` at this place, None if it is none of them."""
        close = self.text.find("}", offset)
        low, comma, high = self.text[offset + 1 : close].partition(",")
        if close < 0 or not low or not _DECIMAL.issuperset(low) or not _DECIMAL.issuperset(high):
            return None
        low_count = min(int(low[:18]), 1 << 40)
        if not comma:
            return low_count, low_count
        return low_count, min(int(high[:18]), 1 << 40) if high else None

    # Groups

    def group(self) -> tuple[Node, bool]:
        begin = self.at
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"Groups nested more than {MAX_DEPTH} deep", hard=True)
        self.at += 1
        saved = self.ignore_case, self.multiline, self.dot_all
        look: tuple[bool, bool] | None = None
        if self.eat("?"):
            look = self.group_kind(begin)
        node = self.disjunction()
        self.expect(")", "Unterminated group")
        self.ignore_case, self.multiline, self.dot_all = saved
        self.depth -= 1
        if look is None:
            return node, True
        lookbehind, negative = look
        return Look(node, lookbehind, negative), not (self.strict or lookbehind)

    def group_kind(self, begin: int) -> tuple[bool, bool] | None:
        """What follows ``(?``: None for a group, (lookbehind, negative) for a lookaround."""
        for token, look in (
            (":", None),
            ("=", (False, False)),
            ("!", (False, True)),
            ("<=", (True, False)),
            ("<!", (True, True)),
        ):
            if self.eat(token):
                return look
        if self.eat("<"):
            self.group_name()
            return None
        self.modifiers(begin)
        return None

    def group_name(self) -> str:
        close = self.text.find(">", self.at)
        name = self.text[self.at : close] if close >= 0 else ""
        if not name.replace("$", "_").replace("\u200c", "_").replace("\u200d", "_").isidentifier():
            raise self.error("Invalid group name")
        self.at = close + 1
        return name

    def modifiers(self, begin: int) -> None:
        """``(?ims-ims:``, ECMAScript 2025."""
        close = self.text.find(":", self.at)
        add, _, remove = self.text[self.at : close].partition("-") if close >= 0 else ("", "", "")
        flags = add + remove
        if not flags or len(set(flags)) < len(flags) or not set(flags) <= set("ims"):
            raise self.error("Invalid group", begin)
        for flag, name in (("i", "ignore_case"), ("m", "multiline"), ("s", "dot_all")):
            if flag in flags:
                setattr(self, name, flag in add)
        self.at = close + 1

    # Escapes

    def escape_term(self) -> tuple[Node, bool]:
        begin = self.at
        char = self.text[begin + 1 : begin + 2]
        if char in ("b", "B"):
            self.at += 2
            return Boundary(fold(WORD) if self.ignore_case else WORD, char == "B"), False
        if char == "k" and (self.strict or self.named_groups):
            if not self.named_groups:  # then the lax grammar reads a letter
                raise self.error("Invalid named reference", begin)
            self.at += 2
            self.expect("<", "Invalid named reference")
            end = self.text.find(">", self.at)
            name = self.text[self.at : end]
            if end < 0 or f"(?<{name}>" not in self.text:
                raise self.error("Reference to a group that does not exist", begin)
            return self.backreference(begin, end + 1)
        if char in _DECIMAL and char != "0" and char:
            digits = self.at + 1
            while digits < len(self.text) and self.text[digits] in _DECIMAL:
                digits += 1
            number = int(self.text[self.at + 1 : digits][:18])
            if number <= _count_groups(self.text):
                return self.backreference(begin, digits)
            if self.strict:
                raise self.error("Reference to a group that does not exist", begin)
        return self.chars(self.class_escape(in_class=False)), True

    def class_escape(self, *, in_class: bool) -> CharSet:
        """The escape at ``\\``: a class such as ``\\d`` or one character."""
        begin = self.at
        char = self.text[begin + 1 : begin + 2]
        if char in SHORTHANDS:
            self.at += 2
            if self.ignore_case and char in "wW":
                return fold(WORD) if char == "w" else complement(fold(WORD))
            return SHORTHANDS[char]
        if char in ("p", "P") and self.strict:
            return self.property_escape()
        return single(self.character_escape(in_class))

    def property_escape(self) -> CharSet:
        begin = self.at
        negative = self.text[begin + 1] == "P"
        close = self.text.find("}", begin)
        if self.text[begin + 2 : begin + 3] != "{" or close < 0:
            raise self.error("Invalid property name", begin)
        name = self.text[begin + 3 : close]
        charset = property_class(name)
        if charset is None:
            raise self.error(f"Unknown Unicode property {name!r}", begin, hard=True)
        self.at = close + 1
        return complement(charset) if negative else charset

    def character_escape(self, in_class: bool) -> int:
        """The code point of the escape at ``\\``."""
        begin = self.at
        char = self.text[begin + 1 : begin + 2]
        self.at += 2
        if not char:
            raise self.error("\\ at end of pattern", begin, hard=True)
        if char in CONTROLS:
            return CONTROLS[char]
        if char == "b" and in_class:
            return 0x08
        if char == "c":
            return self.control_letter(begin, in_class)
        if char == "0" and self.peek() not in _DECIMAL:
            return 0
        if char == "x" and (code := self.hex_digits(2)) is not None:
            return code
        if char == "u" and (code := self.unicode_escape()) is not None:
            return code
        if self.strict:
            if char in _SYNTAX or (char == "-" and in_class):
                return ord(char)
            raise self.error("Invalid escape", begin)
        return self.lax_escape(char)

    def control_letter(self, begin: int, in_class: bool) -> int:
        letter = self.peek()
        if letter and (letter in _LETTERS or (in_class and not self.strict and letter in _DECIMAL | {"_"})):
            self.at += 1
            return ord(letter) & 31
        if self.strict:
            raise self.error("Invalid control escape", begin)
        self.at = begin + 1  # Annex B: the backslash is a character, the c the next one
        return ord("\\")

    def hex_digits(self, count: int) -> int | None:
        digits = self.text[self.at : self.at + count]
        if len(digits) < count or not _HEX.issuperset(digits):
            return None
        self.at += count
        return int(digits, 16)

    def unicode_escape(self) -> int | None:
        """After ``\\u``: four digits, a pair of surrogates, or ``{…}`` in the ``u`` grammar."""
        code = self.hex_digits(4)
        if code is not None:
            if 0xD800 <= code < 0xDC00 and self.text.startswith("\\u", self.at):
                self.at += 2
                low = self.hex_digits(4)
                if low is not None and 0xDC00 <= low < 0xE000:
                    return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
                self.at -= 2 if low is None else 6
            return code
        close = self.text.find("}", self.at)
        digits = self.text[self.at + 1 : close]
        if not self.strict or self.peek() != "{" or not digits or not _HEX.issuperset(digits):
            return None
        if int(digits, 16) > 0x10FFFF:
            raise self.error("Code point above U+10FFFF")
        self.at = close + 1
        return int(digits, 16)

    def lax_escape(self, char: str) -> int:
        """Annex B: legacy octal escapes, else the character itself."""
        if char not in _OCTAL:
            return ord(char)
        digits = char
        limit = 3 if char in "0123" else 2
        while len(digits) < limit and self.peek() and self.peek() in _OCTAL:
            digits += self.peek()
            self.at += 1
        return int(digits, 8)

    # Character classes

    def character_class(self) -> Node:
        begin = self.at - 1
        negative = self.eat("^")
        sets: list[CharSet] = []
        while not self.eat("]"):
            if self.at >= len(self.text):
                raise self.error("Unterminated character class", begin)
            sets.append(self.class_item())
        charset = union(*sets)
        if self.ignore_case:
            charset = fold(charset)
        return Chars(complement(charset) if negative else charset)

    def class_item(self) -> CharSet:
        """A class atom, or a range of two."""
        begin = self.at
        low = self.class_atom()
        if self.peek() != "-" or self.text[self.at + 1 : self.at + 2] in ("]", ""):
            return single(low) if isinstance(low, int) else low
        self.at += 1
        high = self.class_atom()
        if isinstance(low, int) and isinstance(high, int):
            if low > high:
                raise self.error("Range out of order in character class", begin)
            return union(((low, high),))
        if self.strict:
            raise self.error("Character class as the end of a range", begin)
        ends = (single(end) if isinstance(end, int) else end for end in (low, high))
        return union(*ends, single(ord("-")))

    def class_atom(self) -> int | CharSet:
        if self.at >= len(self.text):
            raise self.error("Unterminated character class")
        char = self.text[self.at]
        if char != "\\":
            self.at += 1
            return ord(char)
        following = self.text[self.at + 1 : self.at + 2]
        if following in SHORTHANDS or (following in ("p", "P") and self.strict):
            return self.class_escape(in_class=True)
        return self.character_escape(in_class=True)

    # Pieces

    def chars(self, charset: CharSet) -> Chars:
        return Chars(fold(charset) if self.ignore_case else charset)


def _line_start() -> Node:
    return Look(Alternate((START, Chars(LINE_END))), True, False)


def _line_end() -> Node:
    return Look(Alternate((END, Chars(LINE_END))), False, False)


def _has_named_group(pattern: str) -> bool:
    offset = pattern.find("(?<")
    while offset >= 0:
        if pattern[offset + 3 : offset + 4] not in ("=", "!"):
            return True
        offset = pattern.find("(?<", offset + 1)
    return False


def _count_groups(pattern: str) -> int:
    """The number of capturing groups (escapes and classes skipped)."""
    count, offset, in_class = 0, 0, False
    while offset < len(pattern):
        char = pattern[offset]
        if char == "\\":
            offset += 1
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char == "(" and (
            pattern[offset + 1 : offset + 2] != "?" or _has_named_group(pattern[offset : offset + 4])
        ):
            count += 1
        offset += 1
    return count
