"""GBNF, the grammar notation of llama.cpp, and its dialects, in normal form.

``root ::= "a" b* [c-e] (d | "f"){2,3} # comment``. Rules work on characters. Those that do not refer to themselves are
regular: where such a rule is used by others it becomes a terminal, so that masks need not look at single characters.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from structgen.core.grammars.captured import Captured, capture_symbols
from structgen.core.grammars.ebnf_tree import (
    EbnfRule,
    EbnfText,
    EbnfTree,
    GivenUse,
    RuleUse,
    TokenUse,
    choice_of,
    reached_rules,
    repeat_of,
    rule_uses,
    sequence_of,
)
from structgen.core.grammars.ebnf_writer import EbnfWriter
from structgen.core.grammars.limits import check_text, grammar_refusal, limited
from structgen.core.grammars.named_tokens import rules_by_token
from structgen.core.grammars.normal_form import ContextFreeGrammar, Place
from structgen.core.grammars.token_terminals import token_pattern
from structgen.core.grammars.xgrammar_ebnf import read_xgrammar_rules
from structgen.core.regex import charset
from structgen.core.regex.charset import CharSet
from structgen.core.regex.ecma_ast import Chars, Concat
from structgen.core.regex.steps import check_time
from structgen.errors import ConstraintError, GrammarError, GrammarWarning

GbnfDialect: TypeAlias = Literal["llama.cpp", "xgrammar"]
"""Whose notation: that of llama.cpp, or XGrammar's EBNF."""
MAX_REPEAT: dict[GbnfDialect, int] = {"llama.cpp": 2_000, "xgrammar": (1 << 31) - 1}
"""Repetitions, where the option says nothing else: what the dialect's own engine takes."""


def read_gbnf(
    text: str,
    start: str = "root",
    max_repetitions: int | None = None,
    *,
    dialect: GbnfDialect = "llama.cpp",
    captures: Captured = (),
    names: Collection[str] = (),
) -> ContextFreeGrammar:
    """`read_gbnf_with` without grammars that are given."""
    return read_gbnf_with(text, start, max_repetitions, dialect=dialect, captures=captures, names=names)[0]


def read_gbnf_with(
    text: str,
    start: str = "root",
    max_repetitions: int | None = None,
    *,
    dialect: GbnfDialect = "llama.cpp",
    captures: Captured = (),
    given: Collection[str] = (),
    names: Collection[str] = (),
) -> tuple[ContextFreeGrammar, dict[int, str]]:
    """Read a GBNF grammar: the grammar, and the names of those given, by terminal number.

    Linear in its text, but for the automata of its regular parts.

    Args:
        text: the grammar.
        start: the rule that texts must match.
        max_repetitions: the largest number that ``{n,m}`` may have; None: the dialect's own limit (``MAX_REPEAT``).
        dialect: whose notation it is.
        captures: rules that are captured besides those that say so, and the names of what they capture.
        given: names that stand for texts of other grammars.
        names: special tokens that are meant where a literal holds their names.

    Raises:
        GrammarError: not legal (line, column and a caret), an undefined rule, or no rule ``start``.
        GrammarTooComplexError: too long, nested too deeply, or its automata are too large or take too long to make.
        OptionsError: ``captures`` names what is no rule, or none that is used.

    Warns:
        GrammarWarning: rules that are never used.
    """
    check_text(text)
    most = MAX_REPEAT[dialect] if max_repetitions is None else max_repetitions
    with limited(grammar_refusal(text)):
        is_gbnf = dialect == "llama.cpp"
        rules = _Parser(EbnfText(text), most).rules() if is_gbnf else read_xgrammar_rules(text, most, names)
        rules = rules_by_token(rules, names) if names else rules
        for name in given:
            if name in rules:
                EbnfText(text).fail_at(f"the rule {name!r} is defined, and given as a terminal", rules[name].position)
            rules[name] = EbnfRule(GivenUse(name), Place())
        return _written(text, rules, start, captures)


def _written(
    text: str, rules: dict[str, EbnfRule], start: str, captures: Captured
) -> tuple[ContextFreeGrammar, dict[int, str]]:
    if start not in rules:
        hint = f"The rules are {', '.join(rules)[:300]}." if rules else "The grammar is empty."
        raise GrammarError(f"there is no rule {start!r} to start from", hint=hint)
    for rule in rules.values():
        for use in rule_uses(rule.tree):
            if use.name not in rules:
                EbnfText(text).fail_at(f"the rule {use.name!r} is not defined", use.position)
    reached = reached_rules(rules, start)
    for name in rules.keys() - reached:
        warnings.warn(f"rule {name!r} is never used (line {rules[name].position.line})", GrammarWarning, stacklevel=5)
    capture_symbols(captures, dict.fromkeys(reached, 0), {}, dict.fromkeys(rules, f"{start!r} never uses"))
    for symbol, captured in captures:
        rules[symbol] = replace(rules[symbol], captures=(*rules[symbol].captures, captured))
    writer = EbnfWriter(text, rules)
    return writer.write(start), writer.references


# --- reading ---
_TOKEN = re.compile(
    r"""(?P<blank>(?:[ \t\r\n]|\#[^\n]*)+)|(?P<define>::=)|(?P<name>[A-Za-z0-9_-]+)|(?P<text>"(?:\\.|[^"\\])*")
    |(?P<token>!?<[^<>\n]+>)|(?P<class>\[(?:\\.|[^\]\\])*\])|(?P<count>\{[ ]*\d*[ ]*,?[ ]*\d*[ ]*\})
    |(?P<sign>[|()*+?.])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_KNOWN_ESCAPES = r"there are \n \r \t \xHH \uHHHH \UHHHHHHHH, and signs may be escaped"
_HEX = {"x": 2, "u": 4, "U": 8}
_CHARACTER = re.compile(r"\\([xuU])([0-9a-fA-F]*)|\\(.)|(.)", re.DOTALL)


_MEANT = {
    "'": "Texts stand in double quotes.",
    '"': "This text is not closed: its second quote is missing.",
    "[": "This class is not closed: its ] is missing.",
    "=": "A rule is: name ::= ...",
    ":": "A rule is: name ::= ...",
    "/": "A comment begins with #, and an expression is written with classes: [0-9]+",
}


def _meant(text: str, offset: int) -> str | None:
    """What to do about a sign that begins nothing; None: nothing is known."""
    return _MEANT.get(text[offset])


@dataclass
class _Parser:
    """Recursive descent over tokens (kind, text, offset)."""

    source: EbnfText
    max_repetitions: int
    tokens: list[tuple[str, str, int]] = field(default_factory=list)
    index: int = 0
    depth: int = 0

    def rules(self) -> dict[str, EbnfRule]:
        self._scan()
        rules: dict[str, EbnfRule] = {}
        while self.index < len(self.tokens):
            kind, name, offset = self.tokens[self.index]
            if kind != "name" or self._kind(1) != "define":
                one_line = self.source.text.strip()
                is_name = one_line.endswith((".gbnf", ".ebnf")) and not re.search(r"\s", one_line)
                file = f"A file is given as a path: Path({one_line!r:.80})" if is_name else None
                self.source.fail("expected a rule: name ::= ...", offset, file)
            if name in rules:
                self.source.fail(f"the rule {name!r} is defined twice", offset)
            self.index += 2
            rules[name] = EbnfRule(self._choice(), self.source.position(offset))
        return rules

    def _scan(self) -> None:
        offset, text = 0, self.source.text
        while offset < len(text):
            match = _TOKEN.match(text, offset)
            if match is None:
                self.source.fail(f"{text[offset]!r} is not expected here", offset, _meant(text, offset))
            if match.lastgroup != "blank":
                self.tokens.append((str(match.lastgroup), match.group(), offset))
            offset = match.end()

    def _kind(self, ahead: int = 0) -> str:
        return self.tokens[self.index + ahead][0] if self.index + ahead < len(self.tokens) else ""

    def _sign(self) -> str:
        return self.tokens[self.index][1] if self._kind() == "sign" else ""

    def _choice(self) -> EbnfTree:
        options = [self._sequence()]
        while self._sign() == "|":
            self.index += 1
            options.append(self._sequence())
        return choice_of(options)

    def _sequence(self) -> EbnfTree:
        parts: list[EbnfTree] = []
        while (kind := self._kind()) and self._sign() not in ("|", ")") and kind != "define":
            if kind == "name" and self._kind(1) == "define":
                break
            parts.append(self._repeated(self._item()))
        return sequence_of(parts)

    def _item(self) -> EbnfTree:
        check_time()
        check_time()
        kind, text, offset = self.tokens[self.index]
        self.index += 1
        if kind == "name":
            return RuleUse(text, self.source.position(offset))
        if kind == "token":
            return self._token(text, offset)
        self.source.check_length(len(text), offset)
        if kind == "text":
            characters = self._characters(text[1:-1], offset + 1)
            return Concat(tuple(Chars(charset.single(ord(c))) for c, _, _ in characters))
        if kind == "class":
            return Chars(self._class(text[1:-1], offset + 1))
        if text == ".":
            return Chars(charset.ANY)
        if text == "(":
            self.source.check_depth(self.depth, offset)
            self.depth += 1
            inner = self._choice()
            self.depth -= 1
            if self._sign() != ")":
                self.source.fail("this group is not closed", offset)
            self.index += 1
            return inner
        self.source.fail(f"{text!r} is not expected here", offset)

    def _token(self, text: str, offset: int) -> TokenUse:
        try:
            pattern = token_pattern(text)
        except ConstraintError as error:
            self.source.fail(str(error), offset)
        return TokenUse(pattern, self.source.position(offset))

    def _repeated(self, item: EbnfTree) -> EbnfTree:
        for count in itertools.count():
            if self.index < len(self.tokens):
                self.source.check_depth(count, self.tokens[self.index][2])
            sign = self._sign()
            if sign and sign in "*+?":
                low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
            elif self._kind() == "count":
                low, high = self._bounds()
            else:
                return item
            self.index += 1
            item = repeat_of(item, low, high)
        raise AssertionError

    def _bounds(self) -> tuple[int, int | None]:
        _, text, offset = self.tokens[self.index]
        first, comma, last = text[1:-1].replace(" ", "").partition(",")
        if not first and not last:
            self.source.fail("a repetition needs a number", offset)
        low = int(first[-20:] or 0) if len(first.lstrip("0")) < 20 else 1 << 60
        high = (int(last[-20:]) if len(last.lstrip("0")) < 20 else 1 << 60) if last else None if comma else low
        most = self.max_repetitions
        if (high is not None and (high < low or high > most)) or low > most:
            self.source.fail(f"a repetition must go up, to at most {most} (option max_repetitions)", offset)
        return low, high

    def _class(self, text: str, offset: int) -> CharSet:
        negated = text.startswith("^")
        characters = self._characters(text[negated:], offset + negated)
        ranges, index = [], 0
        while index < len(characters):
            low = high = ord(characters[index][0])
            if index + 2 < len(characters) and characters[index + 1][:2] == ("-", False):
                high = ord(characters[index + 2][0])
                index += 2
            if high < low:
                self.source.fail("a range in a class must go up", offset - 1)
            ranges.append((low, high))
            index += 1
        members = charset.normalise(ranges)
        return charset.complement(members) if negated else members

    def _characters(self, text: str, offset: int) -> list[tuple[str, bool, int]]:
        """The characters that a literal or class stands for, whether each was escaped, and its offset."""
        members, index = [], 0
        while index < len(text):
            match = _CHARACTER.match(text, index)
            assert match is not None
            kind, digits, escaped, plain = match.groups()
            end = match.end()
            if kind:
                size = _HEX[kind]
                if len(digits) < size:
                    self.source.fail(f"\\{kind} needs {size} hexadecimal digits, not {digits!r}", offset + index)
                if int(digits[:size], 16) > 0x10FFFF:
                    self.source.fail(f"\\{kind}{digits[:size]} is above the last code point, U+10FFFF", offset + index)
                members.append((chr(int(digits[:size], 16)), True, offset + index))
                end = index + 2 + size
            elif escaped:
                if escaped.isascii() and escaped.isalnum() and escaped not in _ESCAPES:
                    self.source.fail(f"there is no escape \\{escaped}; {_KNOWN_ESCAPES}", offset + index)
                members.append((_ESCAPES.get(escaped, escaped), True, offset + index))
            else:
                members.append((plain, False, offset + index))
            index = end
        return members
