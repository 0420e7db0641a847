"""XGrammar's EBNF: GBNF with other escapes and names, macros, and attributes of rules.

Source: docs/defining_structures/ebnf_grammar.md of XGrammar 0.2.8, and what that version does where it says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from structgen.core.grammars.ebnf_tree import (
    EbnfRule,
    EbnfText,
    EbnfTree,
    RuleUse,
    choice_of,
    repeat_of,
    rule_uses,
    sequence_of,
)
from structgen.core.grammars.xgrammar_macros import MACROS, MacroArguments, MacroValue
from structgen.core.regex import charset
from structgen.core.regex.charset import CharSet
from structgen.core.regex.ecma_ast import Chars, Concat
from structgen.core.regex.steps import check_time
from structgen.core.regions import TERMS, Region
from structgen.errors import TooComplexError


def read_xgrammar_rules(text: str, max_repetitions: int, names: Collection[str] = ()) -> dict[str, EbnfRule]:
    """Rules by name. Uses of rules that are not defined are left to the caller, and names of special tokens in
    literals; in the triggers of ``TagDispatch``, ``names`` are tokens.

    Raises:
        GrammarError: not legal, or an attribute that cannot be enforced (line, column and a caret).
        GrammarTooComplexError: nested too deeply, or a literal that is too long.
    """
    source = EbnfText(text, frozenset(names))
    return _XgrammarParser(source, max_repetitions, _scanned(source)).rules()


# --- scanning ---
_TOKEN = re.compile(
    r"""(?P<blank>(?:[ \t\r\n]|\#[^\r\n]*)+)|(?P<define>::=)|(?P<look>\(=)|(?P<name>[A-Za-z_.-][A-Za-z0-9_.-]*)
    |(?P<number>[0-9]+)|(?P<text>"(?:\\[^\r\n]|[^"\\\r\n])*")|(?P<class>\[(?:\\[^\r\n]|[^\]\\\r\n])*\])
    |(?P<sign>[|()*+?{},=])""",
    re.VERBOSE,
)
_ATTRIBUTES = re.compile(r'\[((?:"[^"\\\r\n]*"|[^\]"\r\n])*)\](?=[ \t]*::=)')
_ATTRIBUTE = re.compile(r'[ \t]*([A-Za-z_]+)[ \t]*(?:=[ \t]*(?:"([^"]*)"|([0-9][0-9.eE+-]*))[ \t]*)?(?:,|$)')
_CHARACTER = re.compile(r"\\x([0-9a-fA-F]+)|\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\(.)|(.)", re.DOTALL)
_ESCAPES = {**{sign: sign for sign in "\"\\/'?"}, "n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"} | {
    "a": "\a",
    "v": "\v",
    "0": "\0",
    "e": "\x1b",
}
_IN_CLASSES = _ESCAPES | {sign: sign for sign in "^$.*+()[]{}|-"}
_MORE_DIGITS = {"x": "hexadecimal digits", "u": "four hexadecimal digits", "U": "eight hexadecimal digits"}
_SHAPES = {
    "capture": 'capture or capture="name"',
    "lazy": "lazy",
    "max_chars": "max_chars=100",
    "max_tokens": "max_tokens=100",
    "temperature": "temperature=0.7",
}
_REFUSED = {
    "stop_capture": ("belongs to what XGrammar makes of Lark grammars", "Capture a rule: [capture]."),
}


@dataclass(frozen=True)
class _Piece:
    """A piece of the text: its kind, text and offset; of a name that is being defined, its attributes and where."""

    kind: str
    text: str
    offset: int
    attributes: str = ""
    inside: int = 0


def _scanned(source: EbnfText) -> list[_Piece]:
    """The pieces but for blanks, names before ``::=`` as "rule"."""
    pieces: list[_Piece] = []
    offset, text = 0, source.text
    while offset < len(text):
        match = _TOKEN.match(text, offset)
        if match is None:
            source.fail(_stray(text, offset), offset)
        kind, end = str(match.lastgroup), match.end()
        piece = _Piece(kind, match.group(), offset)
        if kind == "name" and (given := _ATTRIBUTES.match(text, end)) is not None:
            piece, end = _Piece(kind, match.group(), offset, given[1], given.start(1)), given.end()
        if kind == "define":
            _define(source, pieces, offset)
        if kind != "blank":
            pieces.append(piece)
        offset = end
    return pieces


def _stray(text: str, offset: int) -> str:
    kind = {'"': "a literal that does not end in its line", "[": "a class that does not end in its line"}
    return kind.get(text[offset], f"{text[offset]!r} is not expected here")


def _define(source: EbnfText, pieces: list[_Piece], offset: int) -> None:
    """Make the last piece the name of a rule."""
    if not pieces or pieces[-1].kind != "name" or pieces[-1].text in ("true", "false"):
        source.fail("expected a name before ::=", pieces[-1].offset if pieces else offset)
    name = pieces.pop()
    if pieces and not re.search("[\r\n]", source.text[pieces[-1].offset + len(pieces[-1].text) : name.offset]):
        source.fail(f"the name of a rule, {name.text!r}, must be the first in its line", name.offset)
    pieces.append(_Piece("rule", name.text, name.offset, name.attributes, name.inside))


# --- parsing ---
@dataclass
class _XgrammarParser:
    """Recursive descent over pieces."""

    source: EbnfText
    max_repetitions: int
    pieces: list[_Piece]
    index: int = 0
    depth: int = 0
    asserted: list[RuleUse] = field(default_factory=list)

    def rules(self) -> dict[str, EbnfRule]:
        result: dict[str, EbnfRule] = {}
        while self.index < len(self.pieces):
            name = self.pieces[self.index]
            if name.kind != "rule":
                self._unexpected("expected a rule: name ::= ...")
            if name.text in result:
                self.source.fail(f"the rule {name.text!r} is defined twice", name.offset)
            self.index += 2
            tree = self._choice()
            if self._kind() == "look":
                self._lookahead()
            result[name.text] = self._rule(name, tree)
        for use in self.asserted:
            if use.name not in result:
                self.source.fail_at(f"the rule {use.name!r} is not defined", use.position)
        return result

    def _rule(self, name: _Piece, tree: EbnfTree) -> EbnfRule:
        given: dict[str, str | None] = {}
        index = 0
        while index < len(name.attributes) or (index == 0 and name.inside):
            read = _ATTRIBUTE.match(name.attributes, index)
            if read is None:
                self.source.fail('expected attributes: name, name=number or name="text"', name.inside + index)
            offset = name.inside + read.start(1)
            self._check_attribute(read[1], read[2], read[3], offset)
            if read[1] in given:
                self.source.fail(f"the attribute {read[1]} is given twice", offset)
            given[read[1]] = read[2] if read[2] is not None else read[3]
            index = read.end()
        captures: tuple[str | Region, ...] = (given["capture"] or name.text,) if "capture" in given else ()
        if given.keys() & TERMS:
            captures += (self._region(given, name),)
        most = given.get("max_chars")
        return EbnfRule(
            tree, self.source.position(name.offset), captures, "lazy" in given, None if most is None else int(most)
        )

    def _region(self, given: dict[str, str | None], name: _Piece) -> Region:
        most, temperature = given.get("max_tokens"), given.get("temperature")
        try:
            return Region(float(temperature) if temperature else None, int(most) if most else None)
        except ValueError as error:
            self.source.fail(f"the rule {name.text!r}: {error}", name.inside)

    def _check_attribute(self, name: str, text: str | None, number: str | None, offset: int) -> None:
        if name in _REFUSED or name.startswith("capture_hidden_"):
            reason, hint = _REFUSED.get(name, _REFUSED["stop_capture"])
            self.source.fail(f"the attribute {name} {reason}", offset, hint)
        wanted = {
            "capture": number is None and text != "",
            "lazy": number is None and text is None,
            "max_chars": number is not None and number.isdecimal() and len(number) < 10,
            "max_tokens": number is not None and number.isdecimal() and len(number) < 10,
            "temperature": number is not None,
        }
        if name not in wanted:
            self.source.fail(f"there is no attribute {name}; there are {', '.join(_SHAPES)}", offset)
        if not wanted[name]:
            self.source.fail(f"the attribute {name} is written {_SHAPES[name]}", offset)

    def _lookahead(self) -> None:
        """``(= ...)`` after a rule: what its author knows to follow. It helps XGrammar's masks and changes no text."""
        opening = self.pieces[self.index].offset
        self.index += 1
        self.asserted += rule_uses(self._choice())
        self._close(opening)

    def _kind(self, ahead: int = 0) -> str:
        return self.pieces[self.index + ahead].kind if self.index + ahead < len(self.pieces) else ""

    def _sign(self, ahead: int = 0) -> str:
        return self.pieces[self.index + ahead].text if self._kind(ahead) == "sign" else ""

    def _unexpected(self, message: str) -> None:
        if self.index < len(self.pieces):
            piece = self.pieces[self.index]
            self.source.fail(f"{message}, not {piece.text!r:.60}", piece.offset)
        self.source.fail(f"{message}, and here the grammar ends", len(self.source.text))

    def _close(self, opening: int) -> None:
        if self._sign() != ")":
            self.source.fail("this group is not closed", opening)
        self.index += 1

    def _choice(self) -> EbnfTree:
        options = [self._sequence()]
        while self._sign() == "|":
            self.index += 1
            options.append(self._sequence())
        return choice_of(options)

    def _sequence(self) -> EbnfTree:
        parts = [self._repeated(self._element())]
        while self._kind() not in ("", "rule", "look") and self._sign() not in ("|", ")"):
            parts.append(self._repeated(self._element()))
        return sequence_of(parts)

    def _element(self) -> EbnfTree:
        check_time()
        check_time()
        kind = self._kind()
        if kind == "name":
            return self._name()
        if kind not in ("text", "class") and self._sign() != "(":
            self._unexpected('expected an element ("" is the empty text)')
        piece = self.pieces[self.index]
        self.index += 1
        self.source.check_length(len(piece.text), piece.offset)
        if kind == "text":
            return Concat(tuple(Chars(charset.single(point)) for point, _ in self._characters(piece, _ESCAPES)))
        if kind == "class":
            return Chars(self._class(piece))
        if self._sign() == ")":
            self.index += 1
            return Concat(())
        self.source.check_depth(self.depth, piece.offset)
        self.depth += 1
        inner = self._choice()
        self.depth -= 1
        self._close(piece.offset)
        return inner

    def _name(self) -> EbnfTree:
        name = self.pieces[self.index]
        self.index += 1
        if name.text in MACROS:
            if self._sign() != "(":
                self.source.fail(f"{name.text} is a macro, and is written {name.text}(...)", name.offset)
            try:
                return MACROS[name.text](self.source, self._arguments(name))
            except TooComplexError as error:
                raise self.source.too_complex(error, self.source.position(name.offset)) from None
        if name.text in ("true", "false"):
            self.source.fail(f"{name.text} is no name of a rule", name.offset)
        return RuleUse(name.text, self.source.position(name.offset))

    def _repeated(self, item: EbnfTree) -> EbnfTree:
        sign = self._sign()
        if sign == "{":
            low, high = self._bounds()
        elif sign and sign in "*+?":
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
            self.index += 1
        else:
            return item
        if (again := self._sign()) and again in "*+?{":
            self.source.fail("a repetition of a repetition needs parentheses: (x+)*", self.pieces[self.index].offset)
        return repeat_of(item, low, high)

    def _bounds(self) -> tuple[int, int | None]:
        begin = self.index + 1
        while self._sign() != "}":
            self.index += 1
            if self.index >= len(self.pieces) or self.index - begin > 3:
                self.source.fail("a repetition is {n}, {n,} or {n,m}", self.pieces[begin - 1].offset)
        pieces = self.pieces[begin : self.index]
        self.index += 1
        kinds = [piece.text if piece.kind == "sign" else piece.kind for piece in pieces]
        is_open = kinds == ["number", ","] or (kinds[:2] == ["number", ","] and pieces[2].text == "-1")
        if not is_open and kinds not in (["number"], ["number", ",", "number"]):
            self.source.fail("a repetition is {n}, {n,} or {n,m}", self.pieces[begin - 1].offset)
        numbers = [
            int(piece.text[-20:]) if len(piece.text.lstrip("0")) < 20 else 1 << 60
            for piece in pieces[::2][:2]
            if piece.kind == "number"
        ]
        low, high = numbers[0], None if is_open else numbers[-1]
        most = self.max_repetitions
        if low > most or (high is not None and not low <= high <= most):
            self.source.fail(
                f"a repetition must go up, to at most {most} (option max_repetitions)", self.pieces[begin - 1].offset
            )
        return low, high

    def _class(self, piece: _Piece) -> CharSet:
        begin = 2 if piece.text[1] == "^" else 1
        inside = _Piece(piece.kind, f" {piece.text[begin:]}", piece.offset + begin - 1)
        characters = self._characters(inside, _IN_CLASSES)
        ranges, index = [], 0
        while index < len(characters):
            low = high = characters[index][0]
            if index + 2 < len(characters) and characters[index + 1] == (ord("-"), False):
                high = characters[index + 2][0]
                index += 2
            if high < low:
                self.source.fail("a range in a class must go up", piece.offset)
            ranges.append((low, high))
            index += 1
        members = charset.normalise(ranges)
        return charset.complement(members) if begin == 2 else members

    def _characters(self, piece: _Piece, escapes: dict[str, str]) -> list[tuple[int, bool]]:
        """The code points between the delimiters of a literal or class, and whether each was escaped."""
        characters, index, end = [], 1, len(piece.text) - 1
        while index < end:
            match = _CHARACTER.match(piece.text, index)
            assert match is not None
            digits, escaped = match[1] or match[2] or match[3], match[4]
            if escaped is not None and escaped not in escapes:
                self._bad_escape(escaped, piece.offset + index)
            point = int(digits[-9:], 16) if digits else ord(escapes[escaped]) if escaped is not None else ord(match[5])
            if point > 0x10FFFF or (digits and len(digits.lstrip("0")) > 6):
                self.source.fail(f"{match[0]} is above the last code point, U+10FFFF", piece.offset + index)
            characters.append((point, match[5] is None))
            index = match.end()
        return characters

    def _bad_escape(self, sign: str, offset: int) -> None:
        if sign in _MORE_DIGITS:
            self.source.fail(f"\\{sign} needs {_MORE_DIGITS[sign]}", offset)
        escapes = r"there are \n \r \t \b \f \a \v \0 \e \xH... \uHHHH \UHHHHHHHH and some signs"
        self.source.fail(f"there is no escape \\{sign} here; {escapes}", offset)

    # --- arguments of macros ---
    def _arguments(self, name: _Piece) -> MacroArguments:
        """What stands in the parentheses after the name of a macro."""
        self.index += 1
        arguments = MacroArguments(name.text, name.offset, [], {})
        while self._sign() != ")":
            if arguments.positional or arguments.named:
                self._comma()
            if self._kind() == "name" and self._sign(1) == "=":
                key = self.pieces[self.index].text
                self.index += 2
                arguments.named[key] = self._value()
            else:
                arguments.positional.append(self._value())
        self.index += 1
        return arguments

    def _comma(self) -> None:
        if self._sign() != ",":
            self._unexpected("expected , or ) in the arguments of a macro")
        self.index += 1

    def _value(self) -> MacroValue:
        kind = self._kind()
        if kind not in ("text", "number", "name") and self._sign() != "(":
            self._unexpected("expected an argument: a text, a number, a name, true, false or (...)")
        piece = self.pieces[self.index]
        self.index += 1
        if kind == "text":
            self.source.check_length(len(piece.text), piece.offset)
            return MacroValue(
                "text", "".join(chr(point) for point, _ in self._characters(piece, _ESCAPES)), piece.offset
            )
        if kind == "number":
            return MacroValue("number", int(piece.text) if len(piece.text) < 16 else 1 << 60, piece.offset)
        if kind == "name":
            truth = {"true": True, "false": False}.get(piece.text)
            return MacroValue(
                "name" if truth is None else "truth", piece.text if truth is None else truth, piece.offset
            )
        return MacroValue("tuple", self._elements(piece), piece.offset)

    def _elements(self, opening: _Piece) -> tuple[MacroValue, ...]:
        self.source.check_depth(self.depth, opening.offset)
        self.depth += 1
        elements: list[MacroValue] = []
        while self._sign() != ")":
            if elements:
                self._comma()
                if self._sign() == ")":
                    break
            elements.append(self._value())
        self.index += 1
        self.depth -= 1
        return tuple(elements)
