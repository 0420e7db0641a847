"""Rules of GBNF and XGrammar's EBNF to the normal form: what is regular becomes terminals, the rest productions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from structgen.core.grammars.ebnf_tree import AutomatonUse, EbnfRule, EbnfText, EbnfTree, GivenUse, RuleUse, TokenUse
from structgen.core.grammars.limits import MAX_STATES, grammar_refusal
from structgen.core.grammars.normal_form import ContextFreeGrammar, Place, Rule, Terminal
from structgen.core.grammars.regular import without_empty, word_dfa
from structgen.core.grammars.token_terminals import TokenPattern
from structgen.core.regex import charset
from structgen.core.regex.charset import CharSet
from structgen.core.regex.dfa import Dfa, empty, from_strings, intersect
from structgen.core.regex.ecma_ast import END, START, Alternate, Chars, Concat, Node, Repeat
from structgen.core.regex.joining import alternation, concatenation, repetition, shortest_matches
from structgen.core.regex.pattern import search_dfa
from structgen.core.regex.steps import check_time
from structgen.errors import TooComplexError

MAX_COPIES = 2_000
"""Repetitions that are written out; more are written by powers of two."""
MAX_TERMINAL_STATES = 5_000
"""A regular part whose automaton is larger becomes rules over its own parts."""
MAX_TREE = 150, 20_000
"""Depth and size of a regular part that is one terminal; what is deeper or larger becomes rules over its own parts."""
MANY_WORDS = 16
"""So many options of a choice that are words become one terminal."""


class EbnfWriter:
    """Rules to terminals where they are regular, else to productions.

    Attributes:
        references: grammars that are given, by the numbers of the terminals that they read.
    """

    def __init__(self, text: str, rules: Mapping[str, EbnfRule]) -> None:
        self._text = text
        self._rules = rules
        self._has_captures = any(rule.captures for rule in rules.values())  # the order of options counts for them
        self._regular: dict[str, _Regular | None] = {}
        self._made: dict[CharSet, list[int]] = {}
        self._states = 0
        self._terminals: dict[bytes | TokenPattern, int] = {}
        self._list: list[Terminal] = []
        self._names: list[str] = []
        self._productions: list[Rule] = []
        self._numbers: dict[str, int] = {}
        self.references: dict[int, str] = {}

    def write(self, start: str) -> ContextFreeGrammar:
        """The normal form of what ``start`` uses."""
        self._nonterminal(start)
        done = 0
        while done < len(self._names):
            rule = self._rules.get(self._names[done])
            if rule is not None and (rule.is_lazy or rule.max_chars is not None):
                self._productions.append(Rule(done, tuple(self._of_dfa(done, self._cut(rule, ()))), rule.position))
            elif rule is not None:
                self._productions_of(done, rule.tree)
            done += 1
        captures = tuple(
            (number, capture)
            for number, name in enumerate(self._names)
            if name in self._rules
            for capture in self._rules[name].captures
        )
        terminals, productions = tuple(self._list), tuple(self._productions)
        return ContextFreeGrammar(terminals, tuple(self._names), productions, 0, captures=captures)

    def _cut(self, rule: EbnfRule, path: tuple[EbnfRule, ...]) -> Dfa:
        """The texts of a rule that ends where it first can, or has so many characters at most."""
        position = rule.position
        try:
            dfa = self._as_dfa(rule.tree, (*path, rule))
            if dfa is None:
                option = "lazy" if rule.is_lazy else "max_chars"
                EbnfText(self._text).fail_at(
                    f"{option} is for regular rules, and this one refers to itself, uses special tokens or rules that "
                    "are captured, or is nested too deeply",
                    position,
                )
            if rule.is_lazy:
                dfa = shortest_matches(dfa)
            if rule.max_chars is not None:
                dfa = intersect(dfa, search_dfa(Concat((START, Repeat(Chars(charset.ANY), 0, rule.max_chars), END))))
        except TooComplexError as error:
            raise EbnfText(self._text).too_complex(error, position) from None
        return dfa

    def _as_dfa(self, tree: EbnfTree, path: tuple[EbnfRule, ...]) -> Dfa | None:
        """The texts of a tree inside these rules; None where it is not regular."""
        regular = self._as_regular(tree, (), 0)
        if regular is not None:
            return search_dfa(Concat((START, regular.node, END)))
        if isinstance(tree, AutomatonUse):
            return tree.dfa
        if isinstance(tree, RuleUse):
            rule = self._rules[tree.name]
            if any(rule is other for other in path) or rule.captures or len(path) > MAX_TREE[0]:
                return None
            return self._as_dfa(rule.tree, (*path, rule)) if rule.is_plain else self._cut(rule, path)
        if isinstance(tree, Repeat):
            body = self._as_dfa(tree.body, path)
            return None if body is None else repetition(body, tree.low, tree.high)
        if isinstance(tree, Concat | Alternate):
            parts: list[Dfa] = []
            for part in tree.parts if isinstance(tree, Concat) else tree.options:
                dfa = self._as_dfa(part, path)
                if dfa is None:
                    return None
                parts.append(dfa)
            return concatenation(parts) if isinstance(tree, Concat) else alternation(parts)
        return None

    def _nonterminal(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._names)
            self._names.append(name)
        return number

    def _fresh(self, near: int) -> int:
        return self._nonterminal(f"{self._names[near]}:{len(self._names)}")

    def _productions_of(self, number: int, tree: EbnfTree) -> None:
        options: tuple[EbnfTree, ...] = tree.options if isinstance(tree, Alternate) else (tree,)
        words = [word for option in options if (word := _word(option)) is not None]
        if len(words) >= MANY_WORDS and (len(words) == len(options) or not self._has_captures):
            options = tuple(option for option in options if _word(option) is None)
            symbols = self._of_dfa(number, from_strings(words, MAX_STATES))
            self._productions.append(Rule(number, tuple(symbols), self._place(number)))
        for option in options:
            self._productions.append(Rule(number, tuple(self._symbols(number, option)), self._place(number)))

    def _place(self, number: int) -> Place:
        rule = self._rules.get(self._names[number].partition(":")[0])
        return Place() if rule is None else rule.position

    def _symbols(self, number: int, tree: EbnfTree) -> list[int]:
        check_time()
        """A tree as symbols; what is regular in one piece is a terminal."""
        check_time()
        if isinstance(tree, TokenUse):
            return [~self._token(tree)]
        if isinstance(tree, AutomatonUse):
            return self._of_dfa(number, tree.dfa)
        if isinstance(tree, GivenUse):
            return [~self._reference(tree.name)]
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
        if isinstance(tree, RuleUse):
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
        position = self._place(number)
        body = self._fresh(number)
        self._productions_of(body, tree.body)
        if tree.high is None:
            many = self._fresh(number)
            self._productions += [Rule(many, (), position), Rule(many, (many, body), position)]
            remaining = [many]
        else:
            remaining = self._up_to(number, body, tree.high - tree.low)
        self._productions.append(Rule(number, (*self._times(number, body, tree.low), *remaining), position))

    def _times(self, number: int, body: int, count: int) -> list[int]:
        """Symbols for ``body`` so many times; of very many, by powers of two."""
        if count <= MAX_COPIES:
            return [body] * count
        powers = self._powers(number, body, count.bit_length())
        return [power for bit, power in enumerate(powers) if count >> bit & 1]

    def _up_to(self, number: int, body: int, count: int) -> list[int]:
        """Symbols for ``body`` at most so many times: one optional inside the other; of very many, by powers of two.

        Up to n, where m is the largest power of two in n, is less than m, or m and then up to n - m. Every count is
        written in one way, and after a given number of bodies there are as many places to be as powers, at most.
        """
        position = self._place(number)
        remaining: list[int] = []
        if count <= MAX_COPIES:
            for _ in range(count):
                optional = self._fresh(number)
                self._productions += [Rule(optional, (), position), Rule(optional, (body, *remaining), position)]
                remaining = [optional]
            return remaining
        powers = self._powers(number, body, count.bit_length())
        less: list[list[int]] = [[]]  # symbols for fewer than each power
        for power in powers:
            fewer = self._fresh(number)
            self._productions += [Rule(fewer, tuple(less[-1]), position), Rule(fewer, (power, *less[-1]), position)]
            less.append([fewer])
        for bit, power in enumerate(powers):
            if count >> bit & 1:
                some = self._fresh(number)
                self._productions += [Rule(some, tuple(less[bit]), position), Rule(some, (power, *remaining), position)]
                remaining = [some]
        return remaining

    def _powers(self, number: int, body: int, bits: int) -> list[int]:
        """Symbols for ``body`` once, twice, four times, ..."""
        powers = [body]
        for _ in range(bits - 1):
            power = self._fresh(number)
            self._productions.append(Rule(power, (powers[-1], powers[-1]), self._place(number)))
            powers.append(power)
        return powers

    def _as_regular(self, tree: EbnfTree, path: tuple[str, ...], depth: int) -> _Regular | None:
        check_time()
        """The tree with regular rules put in place; None if it refers to itself, is too deep or too large, or
        has special tokens, automata or rules that are more than their trees."""
        check_time()
        if depth > MAX_TREE[0] or isinstance(tree, TokenUse | AutomatonUse | GivenUse):
            return None
        if isinstance(tree, RuleUse):
            if tree.name in path or not self._rules[tree.name].is_plain:
                return None
            if tree.name not in self._regular:
                result = self._as_regular(self._rules[tree.name].tree, (*path, tree.name), depth + 1)
                self._regular[tree.name] = result
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

    def _token(self, tree: TokenUse) -> int:
        number = self._terminals.get(tree.pattern)
        if number is None:
            number = self._terminals[tree.pattern] = len(self._list)
            source = tree.pattern.source
            self._list.append(Terminal(source, empty(), source, 0, tree.position, tree.pattern))
        return number

    def _reference(self, name: str) -> int:
        """The terminal of a grammar that is given."""
        for number, other in self.references.items():
            if other == name:
                return number
        self.references[len(self._list)] = name
        self._list.append(Terminal(name, empty(), name, 0, Place()))
        return len(self._list) - 1

    def _number(self, dfa: Dfa, number: int) -> int:
        cached = self._terminals.get(dfa.digest)
        if cached is None:
            position = self._place(number)
            self._states += len(dfa)
            if self._states > MAX_STATES:
                refuse = grammar_refusal(self._text, position.line, position.column)
                raise refuse("the automata of all terminals are too large in sum", "states", MAX_STATES)
            cached = self._terminals[dfa.digest] = len(self._list)
            name = f"{self._names[number].partition(':')[0].upper()}_{cached}"
            self._list.append(Terminal(name, dfa, name, 0, position))
        return cached


@dataclass(frozen=True, slots=True)
class _Regular:
    """A regular tree without references, and how deep and large it is with all that it holds."""

    node: Node
    depth: int
    size: int


def _checked(node: Node, depth: int, size: int) -> _Regular | None:
    """The tree of parts that are as deep and large in sum; None if that is too much."""
    return _Regular(node, depth + 1, size + 1) if depth < MAX_TREE[0] and size < MAX_TREE[1] else None


def _word(tree: EbnfTree) -> str | None:
    """The text that is all that a literal matches; None of others, and of those with half of a surrogate pair."""
    if not isinstance(tree, Concat):
        return None
    points: list[int] = []
    for part in tree.parts:
        if not isinstance(part, Chars) or len(part.charset) != 1 or part.charset[0][0] != part.charset[0][1]:
            return None
        points.append(part.charset[0][0])
    return "".join(map(chr, points))
