"""GBNF, the grammar notation of llama.cpp (and, with small differences, XGrammar's EBNF), in normal form.

``root ::= "a" b* [c-e] (d | "f"){2,3} # comment``. Rules work on characters. Those that do not refer to themselves are
regular: where such a rule is used by others it becomes a terminal, so that masks need not look at single characters.
"""

from __future__ import annotations

import itertools
import re
import warnings
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn

from structgen.automata import charset
from structgen.automata.charset import CharSet
from structgen.automata.dfa import Dfa, empty, from_strings
from structgen.automata.ecma_ast import END, START, Alternate, Chars, Concat, Node, Repeat
from structgen.automata.pattern import search_dfa
from structgen.errors import ConstraintError, GrammarError, GrammarWarning, TooComplexError
from structgen.grammar.captured import capture_symbols
from structgen.grammar.limits import MAX_STATES, check_text, grammar_refusal, limited
from structgen.grammar.normal_form import ContextFreeGrammar, Place, Rule, Terminal
from structgen.grammar.regular import without_empty, word_dfa
from structgen.grammar.token_terminals import TokenPattern, token_pattern

MAX_REPEAT = 2_000
"""Repetitions, where the option says nothing else; llama.cpp's own limit."""
MAX_TERMINAL_STATES = 5_000
"""A regular part whose automaton is larger becomes rules over its own parts."""
MAX_LITERAL = 100_000
"""Characters of a literal or class."""
MAX_DEPTH = 80
"""Groups may be nested, and quantifiers follow each other, this deep."""
MAX_TREE = 150, 20_000
"""Depth and size of a regular part that is one terminal; what is deeper or larger becomes rules over its own parts."""
MANY_WORDS = 16
"""So many options of a choice that are words become one terminal."""


@dataclass(frozen=True)
class _Reference:
    """A use of a rule."""

    name: str
    place: Place


@dataclass(frozen=True)
class _Token:
    """A special token, which is no text."""

    pattern: TokenPattern
    place: Place


# A syntax tree is that of regular expressions, with references and special tokens among its leaves.
_Tree = Node | _Reference | _Token


def read_gbnf(
    text: str,
    start: str = "root",
    max_repetitions: int = MAX_REPEAT,
    captures: Iterable[tuple[str, str]] = (),
) -> ContextFreeGrammar:
    """Read a GBNF grammar. Linear in its text, but for the automata of its regular parts.

    Args:
        text: the grammar.
        start: the rule that texts must match.
        max_repetitions: the largest number that ``{n,m}`` may have.
        captures: rules that are captured, and the names of what they capture.

    Raises:
        GrammarError: not legal (line, column and a caret), an undefined rule, or no rule ``start``.
        GrammarTooComplexError: too long, nested too deeply, or its automata are too large or take too long to make.
        OptionsError: ``captures`` names what is no rule, or none that is used.

    Warns:
        GrammarWarning: rules that are never used.
    """
    check_text(text)
    with limited(grammar_refusal(text)):
        return _read(text, start, max_repetitions, tuple(captures))


def _read(text: str, start: str, max_repetitions: int, captures: tuple[tuple[str, str], ...]) -> ContextFreeGrammar:
    rules, places = _Parser(text, max_repetitions).rules()
    if start not in rules:
        raise GrammarError(f"there is no rule {start!r} to start from", hint=f"The rules are {', '.join(rules)[:300]}.")
    for tree in rules.values():
        for reference in _references(tree):
            if reference.name not in rules:
                place = reference.place
                raise GrammarError(
                    f"the rule {reference.name!r} is not defined", line=place.line, column=place.column, source=text
                )
    for name in rules.keys() - _reached(rules, start):
        warnings.warn(f"rule {name!r} is never used (line {places[name].line})", GrammarWarning, stacklevel=4)
    return _Writer(text, rules, places, captures).write(start)


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


@dataclass
class _Parser:
    """Recursive descent over tokens (kind, text, offset)."""

    text: str
    max_repetitions: int = MAX_REPEAT
    tokens: list[tuple[str, str, int]] = field(default_factory=list)
    at: int = 0
    depth: int = 0
    lines: list[int] = field(default_factory=list)

    def rules(self) -> tuple[dict[str, _Tree], dict[str, Place]]:
        self._scan()
        rules: dict[str, _Tree] = {}
        places: dict[str, Place] = {}
        while self.at < len(self.tokens):
            kind, name, offset = self.tokens[self.at]
            if kind != "name" or self._kind(1) != "define":
                self._fail("expected a rule: name ::= ...", offset)
            if name in rules:
                self._fail(f"the rule {name!r} is defined twice", offset)
            self.at += 2
            places[name] = self._place(offset)
            rules[name] = self._choice()
        return rules, places

    def _scan(self) -> None:
        self.lines = [0, *(found.end() for found in re.finditer("\n", self.text))]
        offset = 0
        while offset < len(self.text):
            found = _TOKEN.match(self.text, offset)
            if found is None:
                self._fail(f"{self.text[offset]!r} is not expected here", offset)
            if found.lastgroup != "blank":
                self.tokens.append((str(found.lastgroup), found.group(), offset))
            offset = found.end()

    def _place(self, offset: int) -> Place:
        line = bisect_right(self.lines, offset)
        return Place(line, offset - self.lines[line - 1] + 1)

    def _kind(self, ahead: int = 0) -> str:
        return self.tokens[self.at + ahead][0] if self.at + ahead < len(self.tokens) else ""

    def _sign(self) -> str:
        return self.tokens[self.at][1] if self._kind() == "sign" else ""

    def _choice(self) -> _Tree:
        options = [self._sequence()]
        while self._sign() == "|":
            self.at += 1
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Alternate(tuple(options))  # type: ignore[arg-type]

    def _sequence(self) -> _Tree:
        parts: list[_Tree] = []
        while (kind := self._kind()) and self._sign() not in ("|", ")") and kind != "define":
            if kind == "name" and self._kind(1) == "define":
                break
            parts.append(self._repeated(self._item()))
        return parts[0] if len(parts) == 1 else Concat(tuple(parts))  # type: ignore[arg-type]

    def _item(self) -> _Tree:
        kind, text, offset = self.tokens[self.at]
        self.at += 1
        if kind == "name":
            return _Reference(text, self._place(offset))
        if kind == "token":
            return self._token(text, offset)
        if len(text) > MAX_LITERAL:
            raise self._too_much("a literal or class is too long", "characters", MAX_LITERAL, offset)
        if kind == "text":
            characters = self._characters(text[1:-1], offset + 1)
            return Concat(tuple(Chars(charset.single(ord(c))) for c, _, _ in characters))
        if kind == "class":
            return Chars(self._class(text[1:-1], offset + 1))
        if text == ".":
            return Chars(charset.ANY)
        if text == "(":
            self._descend(self.depth, offset)
            self.depth += 1
            inner = self._choice()
            self.depth -= 1
            if self._sign() != ")":
                self._fail("this group is not closed", offset)
            self.at += 1
            return inner
        self._fail(f"{text!r} is not expected here", offset)

    def _token(self, text: str, offset: int) -> _Token:
        try:
            pattern = token_pattern(text)
        except ConstraintError as error:
            self._fail(str(error), offset)
        return _Token(pattern, self._place(offset))

    def _descend(self, depth: int, offset: int) -> None:
        if depth >= MAX_DEPTH:
            raise self._too_much("groups or quantifiers are nested too deeply", "depth", MAX_DEPTH, offset)

    def _too_much(self, message: str, budget: str, limit: int, offset: int) -> Exception:
        place = self._place(offset)
        return grammar_refusal(self.text, place.line, place.column)(message, budget, limit)

    def _repeated(self, item: _Tree) -> _Tree:
        for count in itertools.count():
            if self.at < len(self.tokens):
                self._descend(count, self.tokens[self.at][2])
            sign = self._sign()
            if sign and sign in "*+?":
                low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
            elif self._kind() == "count":
                low, high = self._bounds()
            else:
                return item
            self.at += 1
            item = Repeat(item, low, high)  # type: ignore[arg-type]
        raise AssertionError

    def _bounds(self) -> tuple[int, int | None]:
        _, text, offset = self.tokens[self.at]
        first, comma, last = text[1:-1].replace(" ", "").partition(",")
        if not first and not last:
            self._fail("a repetition needs a number", offset)
        low = int(first[-20:] or 0) if len(first.lstrip("0")) < 20 else 1 << 60
        high = (int(last[-20:]) if len(last.lstrip("0")) < 20 else 1 << 60) if last else None if comma else low
        most = self.max_repetitions
        if (high is not None and (high < low or high > most)) or low > most:
            self._fail(f"a repetition must go up, to at most {most} (option max_repetitions)", offset)
        return low, high

    def _class(self, text: str, offset: int) -> CharSet:
        negated = text.startswith("^")
        characters = self._characters(text[negated:], offset + negated)
        ranges, at = [], 0
        while at < len(characters):
            low = high = ord(characters[at][0])
            if at + 2 < len(characters) and characters[at + 1][:2] == ("-", False):
                high = ord(characters[at + 2][0])
                at += 2
            if high < low:
                self._fail("a range in a class must go up", offset - 1)
            ranges.append((low, high))
            at += 1
        found = charset.normalise(ranges)
        return charset.complement(found) if negated else found

    def _characters(self, text: str, offset: int) -> list[tuple[str, bool, int]]:
        """The characters that a literal or class stands for, whether each was escaped, and its offset."""
        found, at = [], 0
        while at < len(text):
            match = _CHARACTER.match(text, at)
            assert match is not None
            kind, digits, escaped, plain = match.groups()
            end = match.end()
            if kind:
                size = _HEX[kind]
                if len(digits) < size:
                    self._fail(f"\\{kind} needs {size} hexadecimal digits, not {digits!r}", offset + at)
                if int(digits[:size], 16) > 0x10FFFF:
                    self._fail(f"\\{kind}{digits[:size]} is above the last code point, U+10FFFF", offset + at)
                found.append((chr(int(digits[:size], 16)), True, offset + at))
                end = at + 2 + size
            elif escaped:
                if escaped.isascii() and escaped.isalnum() and escaped not in _ESCAPES:
                    self._fail(f"there is no escape \\{escaped}; {_KNOWN_ESCAPES}", offset + at)
                found.append((_ESCAPES.get(escaped, escaped), True, offset + at))
            else:
                found.append((plain, False, offset + at))
            at = end
        return found

    def _fail(self, message: str, offset: int) -> NoReturn:
        place = self._place(offset)
        raise GrammarError(message, line=place.line, column=place.column, source=self.text)


def _reached(rules: dict[str, _Tree], start: str) -> set[str]:
    """The rules that ``start`` uses, itself included."""
    reached, todo = {start}, [start]
    while todo:
        used = {reference.name for reference in _references(rules[todo.pop()])} - reached
        reached |= used
        todo += used
    return reached


def _references(tree: _Tree) -> list[_Reference]:
    if isinstance(tree, _Reference):
        return [tree]
    if isinstance(tree, Concat):
        return [found for part in tree.parts for found in _references(part)]
    if isinstance(tree, Alternate):
        return [found for part in tree.options for found in _references(part)]
    return _references(tree.body) if isinstance(tree, Repeat) else []


# --- writing ---
class _Writer:
    """Rules to terminals where they are regular, else to productions."""

    def __init__(
        self, text: str, rules: dict[str, _Tree], places: dict[str, Place], captures: tuple[tuple[str, str], ...]
    ) -> None:
        self._captures = captures
        self._captured = {name for name, _ in captures}  # rules that must stay rules
        self._text = text
        self._rules = rules
        self._places = places
        self._regular: dict[str, _Regular | None] = {}
        self._made: dict[CharSet, list[int]] = {}
        self._states = 0
        self._terminals: dict[bytes | TokenPattern, int] = {}
        self._list: list[Terminal] = []
        self._names: list[str] = []
        self._productions: list[Rule] = []
        self._numbers: dict[str, int] = {}

    def write(self, start: str) -> ContextFreeGrammar:
        self._nonterminal(start)
        done = 0
        while done < len(self._names):
            name = self._names[done]
            if name in self._rules:
                self._productions_of(done, self._rules[name])
            done += 1
        used = {name: self._numbers[name] for name in self._rules if name in self._numbers}
        captures = capture_symbols(self._captures, used, {}, dict.fromkeys(self._rules, f"{start!r} never uses"))
        return ContextFreeGrammar(tuple(self._list), tuple(self._names), tuple(self._productions), 0, (), captures)

    def _nonterminal(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        return number

    def _fresh(self, near: int) -> int:
        return self._nonterminal(f"{self._names[near]}:{len(self._names)}")

    def _productions_of(self, number: int, tree: _Tree) -> None:
        options: tuple[_Tree, ...] = tree.options if isinstance(tree, Alternate) else (tree,)
        words = [word for option in options if (word := _word(option)) is not None]
        if len(words) >= MANY_WORDS and (len(words) == len(options) or not self._captures):  # whose order then counts
            options = tuple(option for option in options if _word(option) is None)
            symbols = self._of_dfa(number, from_strings(words, MAX_STATES))
            self._productions.append(Rule(number, tuple(symbols), self._place(number)))
        for option in options:
            self._productions.append(Rule(number, tuple(self._symbols(number, option)), self._place(number)))

    def _place(self, number: int) -> Place:
        return self._places.get(self._names[number].partition(":")[0], Place())

    def _symbols(self, number: int, tree: _Tree) -> list[int]:
        """A tree as symbols; what is regular in one piece is a terminal."""
        if isinstance(tree, _Token):
            return [~self._token(tree)]
        if (word := _word(tree)) is not None:
            return self._of_dfa(number, word_dfa(word)) if word else []
        if isinstance(tree, Chars) and tree.charset in self._made:
            return self._made[tree.charset]
        regular = self._as_regular(tree, (), 0)
        if regular is not None:
            try:
                symbols = self._of_dfa(number, search_dfa(Concat((START, regular.node, END)), MAX_TERMINAL_STATES))
            except TooComplexError:
                pass  # its parts may be small
            else:
                if isinstance(tree, Chars):
                    self._made[tree.charset] = symbols
                return symbols
        if isinstance(tree, _Reference):
            return [self._nonterminal(tree.name)]
        if isinstance(tree, Concat):
            return [symbol for part in tree.parts for symbol in self._symbols(number, part)]
        fresh = self._fresh(number)
        if isinstance(tree, Alternate):
            self._productions_of(fresh, tree)
        else:
            assert isinstance(tree, Repeat)
            self._repeat(fresh, tree)
        return [fresh]

    def _repeat(self, number: int, tree: Repeat) -> None:
        """``number`` is the body ``low`` to ``high`` times."""
        place = self._place(number)
        body = self._fresh(number)
        self._productions_of(body, tree.body)
        if tree.high is None:
            many = self._fresh(number)
            self._productions += [Rule(many, (), place), Rule(many, (many, body), place)]
            rest = [many]
        else:
            rest = self._up_to(number, body, tree.high - tree.low)
        self._productions.append(Rule(number, (*self._times(number, body, tree.low), *rest), place))

    def _times(self, number: int, body: int, count: int) -> list[int]:
        """Symbols for ``body`` so many times; of very many, by powers of two."""
        if count <= MAX_REPEAT:
            return [body] * count
        powers = self._powers(number, body, count.bit_length())
        return [power for bit, power in enumerate(powers) if count >> bit & 1]

    def _up_to(self, number: int, body: int, count: int) -> list[int]:
        """Symbols for ``body`` at most so many times: one optional inside the other; of very many, by powers of two.

        Up to n, where m is the largest power of two in n, is less than m, or m and then up to n - m. Every count is
        written in one way, and behind a given number of bodies there are as many places to be as powers, at most.
        """
        place = self._place(number)
        rest: list[int] = []
        if count <= MAX_REPEAT:
            for _ in range(count):
                optional = self._fresh(number)
                self._productions += [Rule(optional, (), place), Rule(optional, (body, *rest), place)]
                rest = [optional]
            return rest
        powers = self._powers(number, body, count.bit_length())
        less: list[list[int]] = [[]]  # symbols for fewer than each power
        for power in powers:
            fewer = self._fresh(number)
            self._productions += [Rule(fewer, tuple(less[-1]), place), Rule(fewer, (power, *less[-1]), place)]
            less.append([fewer])
        for bit, power in enumerate(powers):
            if count >> bit & 1:
                some = self._fresh(number)
                self._productions += [Rule(some, tuple(less[bit]), place), Rule(some, (power, *rest), place)]
                rest = [some]
        return rest

    def _powers(self, number: int, body: int, bits: int) -> list[int]:
        """Symbols for ``body`` once, twice, four times, ..."""
        powers = [body]
        for _ in range(bits - 1):
            power = self._fresh(number)
            self._productions.append(Rule(power, (powers[-1], powers[-1]), self._place(number)))
            powers.append(power)
        return powers

    def _as_regular(self, tree: _Tree, path: tuple[str, ...], depth: int) -> _Regular | None:
        """The tree with regular rules put in place; None if it refers to itself, is too deep or too large, or
        has special tokens."""
        if depth > MAX_TREE[0]:
            return None
        if isinstance(tree, _Token):
            return None
        if isinstance(tree, _Reference):
            if tree.name in path or tree.name in self._captured:
                return None
            if tree.name not in self._regular:
                found = self._as_regular(self._rules[tree.name], (*path, tree.name), depth + 1)
                self._regular[tree.name] = found
            return self._regular[tree.name]
        if isinstance(tree, (Concat, Alternate)):
            parts = []
            for part in tree.parts if isinstance(tree, Concat) else tree.options:
                regular = self._as_regular(part, path, depth + 1)
                if regular is None:
                    return None
                parts.append(regular)
            nodes = tuple(part.node for part in parts)
            node = Concat(nodes) if isinstance(tree, Concat) else Alternate(nodes)
            return _checked(node, max((p.depth for p in parts), default=0), sum(p.size for p in parts))
        if isinstance(tree, Repeat):
            body = self._as_regular(tree.body, path, depth + 1)
            if body is None:
                return None
            copies = max(tree.low, (tree.low + 1) if tree.high is None else tree.high)
            return _checked(Repeat(body.node, tree.low, tree.high), body.depth, body.size * copies)
        return _Regular(tree, 1, 1)

    def _of_dfa(self, number: int, dfa: Dfa) -> list[int]:
        """The symbols for a regular language: nothing, a terminal, or a choice of both."""
        if dfa.is_empty:
            return [self._fresh(number)]  # without productions
        if not dfa.accepting[0]:
            return [~self._number(dfa, number)]
        solid = without_empty(dfa)
        if solid.is_empty:
            return []
        optional = self._fresh(number)
        self._productions.append(Rule(optional, (), self._place(number)))
        self._productions.append(Rule(optional, (~self._number(solid, number),), self._place(number)))
        return [optional]

    def _token(self, tree: _Token) -> int:
        known = self._terminals.get(tree.pattern)
        if known is None:
            known = self._terminals[tree.pattern] = len(self._list)
            source = tree.pattern.source
            self._list.append(Terminal(source, empty(), source, 0, tree.place, tree.pattern))
        return known

    def _number(self, dfa: Dfa, number: int) -> int:
        known = self._terminals.get(dfa.digest)
        if known is None:
            place = self._place(number)
            self._states += len(dfa)
            if self._states > MAX_STATES:
                refuse = grammar_refusal(self._text, place.line, place.column)
                raise refuse("the automata of all terminals are too large in sum", "states", MAX_STATES)
            known = self._terminals[dfa.digest] = len(self._list)
            name = f"{self._names[number].partition(':')[0].upper()}_{known}"
            self._list.append(Terminal(name, dfa, name, 0, place))
        return known


@dataclass(frozen=True, slots=True)
class _Regular:
    """A regular tree without references, and how deep and large it is with all that it holds."""

    node: Node
    depth: int
    size: int


def _checked(node: Node, depth: int, size: int) -> _Regular | None:
    """The tree of parts that are as deep and large in sum; None if that is too much."""
    return _Regular(node, depth + 1, size + 1) if depth < MAX_TREE[0] and size < MAX_TREE[1] else None


def _word(tree: _Tree) -> str | None:
    """The text that is all that a literal matches; None of others, and of those with half of a surrogate pair."""
    if not isinstance(tree, Concat):
        return None
    points: list[int] = []
    for part in tree.parts:
        if not isinstance(part, Chars) or len(part.charset) != 1 or part.charset[0][0] != part.charset[0][1]:
            return None
        points.append(part.charset[0][0])
    return "".join(map(chr, points))
