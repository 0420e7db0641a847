"""GBNF, the grammar notation of llama.cpp (and, with small differences, XGrammar's EBNF), in normal form.

``root ::= "a" b* [c-e] (d | "f"){2,3} # comment``. Rules work on characters. Those that do not refer to themselves are
regular: where such a rule is used by others it becomes a terminal, so that masks need not look at single characters.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, field

from structgen.automata import charset
from structgen.automata.charset import CharSet
from structgen.automata.dfa import Dfa
from structgen.automata.ecma_ast import EMPTY_TEXT, END, START, Alternate, Chars, Concat, Node, Repeat
from structgen.automata.pattern import search_dfa
from structgen.errors import GrammarError, GrammarWarning, TooComplexError
from structgen.grammar.normal_form import ContextFreeGrammar, Place, Rule, Terminal
from structgen.grammar.regular import without_empty

MAX_REPEAT = 2_000
MAX_TERMINAL_STATES = 5_000
"""A regular part whose automaton is larger becomes rules over its own parts."""


@dataclass(frozen=True)
class _Reference:
    """A use of a rule."""

    name: str
    place: Place


# A syntax tree is that of regular expressions, with references among its leaves.
_Tree = Node | _Reference


def read_gbnf(text: str, start: str = "root") -> ContextFreeGrammar:
    """Read a GBNF grammar.

    Args:
        text: the grammar.
        start: the rule that texts must match.

    Raises:
        GrammarError: not legal (line, column and a caret), an undefined rule, or no rule ``start``.

    Warns:
        GrammarWarning: rules that are never used.
    """
    rules, places = _Parser(text).rules()
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
        warnings.warn(f"rule {name!r} is never used (line {places[name].line})", GrammarWarning, stacklevel=2)
    return _Writer(rules, places).write(start)


# --- reading ---
_TOKEN = re.compile(
    r"""(?P<blank>(?:[ \t\r\n]|\#[^\n]*)+)|(?P<define>::=)|(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|(?P<text>"(?:\\.|[^"\\])*")
    |(?P<class>\[(?:\\.|[^\]\\])*\])|(?P<count>\{[ ]*\d*[ ]*,?[ ]*\d*[ ]*\})|(?P<sign>[|()*+?.])""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass
class _Parser:
    """Recursive descent over tokens (kind, text, place)."""

    text: str
    tokens: list[tuple[str, str, Place]] = field(default_factory=list)
    at: int = 0

    def rules(self) -> tuple[dict[str, _Tree], dict[str, Place]]:
        self._scan()
        rules: dict[str, _Tree] = {}
        places: dict[str, Place] = {}
        while self.at < len(self.tokens):
            kind, name, place = self.tokens[self.at]
            if kind != "name" or self._kind(1) != "define":
                self._fail("expected a rule: name ::= ...", place)
            if name in rules:
                self._fail(f"the rule {name!r} is defined twice", place)
            self.at += 2
            places[name] = place
            rules[name] = self._choice()
        return rules, places

    def _scan(self) -> None:
        offset = 0
        while offset < len(self.text):
            found = _TOKEN.match(self.text, offset)
            before = self.text[:offset]
            place = Place(before.count("\n") + 1, offset - before.rfind("\n"))
            if found is None:
                self._fail(f"{self.text[offset]!r} is not expected here", place)
                raise AssertionError
            if found.lastgroup != "blank":
                self.tokens.append((str(found.lastgroup), found.group(), place))
            offset = found.end()

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
        kind, text, place = self.tokens[self.at]
        self.at += 1
        if kind == "name":
            return _Reference(text, place)
        if kind == "text":
            characters = _characters(text[1:-1])
            return Concat(tuple(Chars(charset.single(ord(c))) for c, _ in characters))
        if kind == "class":
            return Chars(self._class(text[1:-1], place))
        if text == ".":
            return Chars(charset.ANY)
        if text == "(":
            inner = self._choice()
            if self._sign() != ")":
                self._fail("this group is not closed", place)
            self.at += 1
            return inner
        self._fail(f"{text!r} is not expected here", place)
        raise AssertionError

    def _repeated(self, item: _Tree) -> _Tree:
        while True:
            sign = self._sign()
            if sign and sign in "*+?":
                low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
            elif self._kind() == "count":
                low, high = self._bounds()
            else:
                return item
            self.at += 1
            item = Repeat(item, low, high)  # type: ignore[arg-type]

    def _bounds(self) -> tuple[int, int | None]:
        _, text, place = self.tokens[self.at]
        first, comma, last = text[1:-1].replace(" ", "").partition(",")
        if not first and not last:
            self._fail("a repetition needs a number", place)
        low = int(first or 0)
        high = (int(last) if last else None) if comma else low
        if (high is not None and (high < low or high > MAX_REPEAT)) or low > MAX_REPEAT:
            self._fail(f"a repetition must go up, to at most {MAX_REPEAT}", place)
        return low, high

    def _class(self, text: str, place: Place) -> CharSet:
        negated = text.startswith("^")
        characters = _characters(text[1:] if negated else text)
        ranges, at = [], 0
        while at < len(characters):
            low = high = ord(characters[at][0])
            if at + 2 < len(characters) and characters[at + 1] == ("-", False):
                high = ord(characters[at + 2][0])
                at += 2
            if high < low:
                self._fail("a range in a class must go up", place)
            ranges.append((low, high))
            at += 1
        found = charset.normalise(ranges)
        return charset.complement(found) if negated else found

    def _fail(self, message: str, place: Place) -> None:
        raise GrammarError(message, line=place.line, column=place.column, source=self.text)


def _characters(text: str) -> list[tuple[str, bool]]:
    """The characters that a literal or class stands for, and whether each was escaped."""
    found = []
    for match in re.finditer(r"\\x([0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\(.)|(.)", text, re.DOTALL):
        code = match.group(1) or match.group(2) or match.group(3)
        if code:
            found.append((chr(int(code, 16)), True))
        elif match.group(4):
            found.append((_ESCAPES.get(match.group(4), match.group(4)), True))
        else:
            found.append((match.group(5), False))
    return found


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

    def __init__(self, rules: dict[str, _Tree], places: dict[str, Place]) -> None:
        self._rules = rules
        self._places = places
        self._regular: dict[str, Node | None] = {}
        self._terminals: dict[bytes, int] = {}
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
        return ContextFreeGrammar(tuple(self._list), tuple(self._names), tuple(self._productions), 0)

    def _nonterminal(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        return number

    def _fresh(self, near: int) -> int:
        return self._nonterminal(f"{self._names[near]}:{len(self._names)}")

    def _productions_of(self, number: int, tree: _Tree) -> None:
        options = tree.options if isinstance(tree, Alternate) else (tree,)
        for option in options:
            self._productions.append(Rule(number, tuple(self._symbols(number, option)), self._place(number)))

    def _place(self, number: int) -> Place:
        return self._places.get(self._names[number].partition(":")[0], Place())

    def _symbols(self, number: int, tree: _Tree) -> list[int]:
        """A tree as symbols; what is regular in one piece is a terminal."""
        node = self._as_regular(tree, ())
        if node is not None:
            try:
                return self._terminal(number, node)
            except TooComplexError:
                pass  # its parts may be small
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
        """``number`` is the body ``low`` to ``high`` times: the required ones, then the optional ones nested."""
        place = self._place(number)
        body = self._fresh(number)
        self._productions_of(body, tree.body)
        rest: list[int] = []
        if tree.high is None:
            many = self._fresh(number)
            self._productions += [Rule(many, (), place), Rule(many, (many, body), place)]
            rest = [many]
        else:
            for _ in range(tree.high - tree.low):
                optional = self._fresh(number)
                self._productions += [Rule(optional, (), place), Rule(optional, (body, *rest), place)]
                rest = [optional]
        self._productions.append(Rule(number, (*([body] * tree.low), *rest), place))

    def _as_regular(self, tree: _Tree, path: tuple[str, ...]) -> Node | None:
        """The tree with regular rules put in place; None if it refers to itself."""
        if isinstance(tree, _Reference):
            if tree.name in path:
                return None
            if tree.name not in self._regular:
                self._regular[tree.name] = self._as_regular(self._rules[tree.name], (*path, tree.name))
            return self._regular[tree.name]
        if isinstance(tree, (Concat, Alternate)):
            inner = tree.parts if isinstance(tree, Concat) else tree.options
            parts = [self._as_regular(part, path) for part in inner]
            if any(part is None for part in parts):
                return None
            known = tuple(part for part in parts if part is not None)
            return Concat(known) if isinstance(tree, Concat) else Alternate(known)
        if isinstance(tree, Repeat):
            body = self._as_regular(tree.body, path)
            return None if body is None else Repeat(body, tree.low, tree.high)
        return tree

    def _terminal(self, number: int, node: Node) -> list[int]:
        """The symbols for a regular tree: nothing, a terminal, or a choice of both."""
        if node == EMPTY_TEXT:
            return []
        dfa = search_dfa(Concat((START, node, END)), MAX_TERMINAL_STATES)
        if dfa.is_empty:
            return [self._fresh(number)]  # without productions
        if not dfa.accepting[0]:
            return [~self._number(dfa, number)]
        optional = self._fresh(number)
        solid = without_empty(dfa)
        self._productions.append(Rule(optional, (), self._place(number)))
        if not solid.is_empty:
            self._productions.append(Rule(optional, (~self._number(solid, number),), self._place(number)))
        return [optional]

    def _number(self, dfa: Dfa, number: int) -> int:
        known = self._terminals.get(dfa.digest)
        if known is None:
            known = self._terminals[dfa.digest] = len(self._list)
            name = f"{self._names[number].partition(':')[0].upper()}_{known}"
            self._list.append(Terminal(name, dfa, name, 0, self._place(number)))
        return known
