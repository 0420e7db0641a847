"""Words of terminals, and whether a lexer ends them cleanly: a simulation of the lexers, one character at a time."""

from __future__ import annotations

from collections import deque
from functools import cached_property

from structgen.core.engines.lalr.tables import LalrTables
from structgen.core.engines.lalr.terminals import ALIVE
from structgen.core.kernels.lalr.layout import FINAL, PENDING_END

WORDS, SEARCHED = 4, 5_000
UNSURE, IGNORED = -1, -2
"""What a lexeme ends as: it depends on what comes next; nothing to the parser."""
ABSORBED = 16
"""States that a lexeme which takes blanks after it may pass through."""
Threads = list[tuple[int, int]]
Outcome = tuple[int, int] | None
"""Terminal and keywords of a lexeme that has ended."""


class Lexemes:
    """Words of one grammar's terminals, as tuples of classes of characters."""

    def __init__(self, tables: LalrTables) -> None:
        automata = tables.automata
        self._tables = tables
        self._rows: list[list[int]] = automata.transitions.tolist()
        self._flags: list[int] = automata.flags.tolist()
        self._keywords: list[int] = automata.keywords.tolist()
        self._words: dict[int, list[tuple[int, ...]]] = {}
        self._ignored = frozenset(tables.ignored)
        self.characters = _representatives(tables)
        self._order = sorted(range(automata.classes), key=lambda m: _plainness(self.characters[m]))
        self.class_of = {ord(character): m for m, character in enumerate(self.characters)}
        self._starts: dict[int, dict[int, tuple[int, ...]]] = {}
        self._inherited: dict[tuple[int, tuple[tuple[int, int], ...]], dict[int, tuple[int, ...]]] = {}
        self._within: set[tuple[int, tuple[tuple[int, int], ...]]] = set()
        self.separator = self._find_separator()
        self.followers = self._find_followers()

    def text(self, word: tuple[int, ...]) -> str:
        """A word in characters."""
        return "".join(self.characters[m] for m in word)

    def classes(self, text: str) -> tuple[int, ...]:
        """A text in classes of characters."""
        return tuple(self._class(ord(character)) for character in text)

    def _class(self, point: int) -> int:
        class_number = self.class_of.get(point)
        if class_number is None:
            class_number = next(m for first, last, m in self._tables.automata.segments if first <= point <= last)
            self.class_of[point] = class_number
        return class_number

    def words(self, q: int) -> list[tuple[int, ...]]:
        """A few shortest words that complete a terminal from a state of its automaton on."""
        texts = self._words.get(q)
        if texts is None:
            texts = self._words[q] = self._search(q)
        return texts

    def _search(self, q: int) -> list[tuple[int, ...]]:
        """Breadth first; the first word of each accepting state."""
        words: list[tuple[int, ...]] = [()] if self._flags[q] & (FINAL | PENDING_END) else []
        queue: deque[tuple[int, tuple[int, ...]]] = deque([(q, ())])
        seen = {q}
        while queue and len(words) < WORDS and len(seen) < SEARCHED:
            state, word = queue.popleft()
            row = self._rows[state]
            for m in self._order:
                after = row[m] >> 1
                if after == 0 or after in seen:
                    continue
                seen.add(after)
                longer = (*word, m)
                if self._flags[after] & (FINAL | PENDING_END):
                    words.append(longer)
                if self._flags[after] & ALIVE:
                    queue.append((after, longer))
        if not words and any(row & 1 for row in self._rows[q]):
            words.append(())  # a lookahead that any right character satisfies
        return words[:WORDS]

    def pending(self, q: int) -> bool:
        """Whether a match ends at a state if what comes next (or the end) is right."""
        return bool(self._flags[q] & PENDING_END) or any(entry & 1 for entry in self._rows[q])

    def pending_type(self, lexer: int, terminal: int, q: int) -> int:
        """What a lexeme that ends at a state is to the parser; -1 if it is ignored."""
        return self.type_of(lexer, terminal, self._keywords[q])

    def start(self, lexer: int) -> Threads:
        """The threads at the start of a lexeme."""
        return [(terminal, self._tables.automata.starts[terminal]) for terminal in self._tables.lexers[lexer]]

    def scan(self, threads: Threads, m: int) -> tuple[Threads, int, int, int]:
        """The threads after a character, the event, its terminal and keywords (`structgen.core.kernels.lalr.lexer`)."""
        left: Threads = []
        for terminal, q in threads:
            entry = self._rows[q][m]
            if not entry:
                continue
            after = entry >> 1
            if self._flags[after] & ALIVE:
                left.append((terminal, after))
            if self._flags[after] & FINAL:
                return left, 1, terminal, self._keywords[after]
            if entry & 1:
                return left, 2, terminal, self._keywords[q]
        return left, 0, -1, 0

    def ends_as(self, lexer: int, threads: Threads, word: tuple[int, ...]) -> int:
        """The terminal that a word makes after some threads; IGNORED; or UNSURE.

        That is so whether the text ends there, or what comes next is one of ``followers`` (and after the separator,
        which the lexeme may take in, one of ``openers``).
        """
        ended = self._ended(threads)
        for m in word:
            if not threads:
                return UNSURE
            threads, event, terminal, keyword = self.scan(threads, m)
            ended = (terminal, keyword) if event == 1 else None
        outcomes = self._outcomes(threads, ended)
        if len(outcomes) != 1 or None in outcomes:
            return UNSURE
        ((terminal, keyword),) = (outcome for outcome in outcomes if outcome)
        return IGNORED if terminal in self._ignored else self.type_of(lexer, terminal, keyword)

    def _ended(self, threads: Threads) -> Outcome:
        """The lexeme that has ended where some threads stand."""
        if threads and self._flags[threads[-1][1]] & FINAL:  # what it prefers less has been cut off
            terminal, q = threads[-1]
            return terminal, self._keywords[q]
        return None

    def _outcomes(self, threads: Threads, ended: Outcome) -> set[Outcome]:
        """What the lexeme may end as; None among it if it does not, or goes on."""
        outcomes = {self._at_the_end(threads, ended)}
        for m in self.followers if threads else ():
            left, event, terminal, keyword = self.scan(threads, m)
            if event == 1 and ended == (terminal, keyword) and self.separator >= 0:
                outcomes |= self._absorbed(left, ended)
            else:
                outcomes.add(None if left or event == 1 else (terminal, keyword) if event else ended)
        return outcomes

    def _at_the_end(self, threads: Threads, ended: Outcome) -> Outcome:
        """What a lexeme is if the text ends."""
        for terminal, q in threads:
            if self._flags[q] & PENDING_END:
                return terminal, self._keywords[q]
        return ended

    def _absorbed(self, threads: Threads, ended: Outcome) -> set[Outcome]:
        """The outcomes of a lexeme that has taken in what should have ended it: the next word must."""
        outcomes: set[Outcome] = set()
        states = [threads]
        for now in states:
            outcomes.add(self._at_the_end(now, ended))
            for m in self.openers | set(self.followers):
                left, event, terminal, keyword = self.scan(now, m)
                if event == 1 and ended == (terminal, keyword) and m in self.followers:
                    if left and left not in states:
                        states.append(left)
                else:
                    outcomes.add(None if left or event == 1 else (terminal, keyword) if event else ended)
            if None in outcomes or len(states) > ABSORBED:
                return {None}
        return outcomes

    def yields(self, threads: Threads) -> bool:
        """Whether all threads are given up, without a match, at the end of the text and before any of ``followers``."""
        return self._outcomes(threads, (-1, -1)) == {(-1, -1)}

    def can_begin_lines(self, threads: Threads) -> bool:
        """Whether a newline and any blanks make an indenter's newline token that ends before a word."""
        newline = self._tables.newline
        if newline < 0 or all(terminal != newline for terminal, _ in threads):
            return False
        for text in ("\n", "\n ", "\n  "):
            now, event, terminal = threads, 0, -1
            for m in self.classes(text):
                now, event, terminal, _ = self.scan(now, m)
            if event != 1 or terminal != newline or any(t != newline for t, _ in now):
                return False
            left, then, _, _ = self.scan(now, self.classes("a")[0])
            if left or then:
                return False
        return True

    def possible(self, lexer: int, threads: Threads) -> set[int]:
        """What a lexeme may end as after some threads; IGNORED stands for all terminals that are."""
        owners = {self._own(terminal) for terminal, _ in threads}
        for number, (terminal, _) in enumerate(self._tables.automata.keyword_sets):
            if terminal in owners and self._tables.retyped[lexer, number] >= 0:
                owners.add(int(self._tables.retyped[lexer, number]))
        return owners

    def type_of(self, lexer: int, terminal: int, keyword: int) -> int:
        """What a lexeme is to the parser; -1 if it is ignored."""
        if terminal in self._ignored:
            return -1
        retyped = int(self._tables.retyped[lexer, keyword])
        return retyped if retyped >= 0 else terminal

    def _find_separator(self) -> int:
        """The character that most lexers ignore at the start of a lexeme; -1 if none does."""
        ignored = [self.words(self._tables.automata.starts[terminal])[:1] for terminal in self._tables.ignored]
        candidates = dict.fromkeys(word[0] for words in ignored for word in words if len(word) == 1)
        counts = {m: sum(self._ignores(lexer, m) for lexer in range(len(self._tables.lexers))) for m in candidates}
        return max((m for m in counts if counts[m]), key=lambda m: counts[m], default=-1)

    def _ignores(self, lexer: int, m: int) -> bool:
        _, event, terminal, _ = self.scan(self.start(lexer), m)
        return event == 1 and terminal in self._ignored

    def _stands_apart(self, lexer: int, word: tuple[int, ...]) -> bool:
        """Whether a word can be read at the start of a lexeme after the separator; without one, if it may follow."""
        if self.separator < 0:
            return word[0] in self.followers
        threads, event, terminal, _ = self.scan(self.start(lexer), self.separator)
        left, then, _, _ = self.scan(threads, word[0])
        return event == 1 and terminal in self._ignored and not left and not then

    def _find_followers(self) -> list[int]:
        """The characters that may follow a word: the separator, or the first ones of all terminals' words."""
        if self.separator < 0:
            return sorted(self._firsts())
        return [self.separator, *(self.classes("\n") if self._tables.newline >= 0 else ())]

    @cached_property
    def openers(self) -> frozenset[int]:
        """The characters that words of terminals begin with."""
        firsts = set()
        for terminal, start in enumerate(self._tables.automata.starts):
            if start and terminal not in self._ignored and terminal != self._tables.newline:
                firsts |= {word[0] for word in self.words(start) if word}
        return frozenset(firsts)

    @cached_property
    def beginnings(self) -> list[tuple[int, ...]]:
        """What texts begin with that may come after any lexeme that ends cleanly."""
        if self.separator < 0:
            return [(m,) for m in self.followers]
        lines = [self.classes("\n")] if self._tables.newline >= 0 else []
        return [*((self.separator, m) for m in sorted(self.openers)), *lines]

    def _firsts(self) -> set[int]:
        """What the shortest words of the terminals begin with, ignored ones aside."""
        starts = enumerate(self._tables.automata.starts)
        words = [self.words(start)[:1] for terminal, start in starts if start and terminal not in self._ignored]
        return {word[0] for result in words for word in result if word}

    @cached_property
    def gaps(self) -> list[str]:
        """Ignored texts that may stand between words; the empty one first."""
        if self.separator >= 0:
            return ["", self.characters[self.separator]]
        words = (self.words(self._tables.automata.starts[terminal])[:1] for terminal in self._tables.ignored)
        return ["", *dict.fromkeys(self.text(word) for result in words for word in result)]

    def clean_start(self, lexer: int) -> dict[int, tuple[int, ...]]:
        """The terminals that can be finished cleanly from the start of a lexeme, newlines of an indenter aside.

        Each with a word that does so after the separator (without one: after any word).
        """
        starts = self._starts.get(lexer)
        if starts is not None:
            return starts
        begin = self.start(lexer)
        starts = self._starts[lexer] = {}
        wanted = set(self._tables.lexers[lexer]) | {int(t) for t in self._tables.retyped[lexer] if t >= 0}
        for terminal in wanted - self._ignored - {self._tables.newline}:
            for word in self.words(self._tables.automata.starts[terminal]):
                if word and self._stands_apart(lexer, word) and self.ends_as(lexer, begin, word) == terminal:
                    starts[terminal] = word
                    self._inherit(lexer, begin, word, terminal)
                    break
        return starts

    def clean_within(self, lexer: int, threads: Threads) -> dict[int, tuple[int, ...]]:
        """The terminals that can be finished cleanly after some threads, newlines of an indenter aside.

        Each with a word that does so; IGNORED stands for all that are ignored. What is left of a word that finishes a
        terminal cleanly is found again after its first characters.
        """
        key = lexer, tuple(threads)
        clean = self._inherited.setdefault(key, {})
        if key in self._within:
            return clean
        self._within.add(key)
        wanted = self.possible(lexer, threads) - {self._tables.newline}
        # Threads whose terminal is known last, and only if others have left something open: words may be long.
        for _, q in sorted(threads, key=lambda thread: self._own(thread[0]) in clean):
            if wanted <= clean.keys():
                break
            for word in self.words(q):
                terminal = self.ends_as(lexer, threads, word)
                if terminal not in (UNSURE, self._tables.newline) and terminal not in clean:
                    clean[terminal] = word
                    self._inherit(lexer, threads, word, terminal)
        return clean

    def _own(self, terminal: int) -> int:
        return IGNORED if terminal in self._ignored else terminal

    def _inherit(self, lexer: int, threads: Threads, word: tuple[int, ...], terminal: int) -> None:
        for i in range(1, len(word)):
            threads = self.scan(threads, word[i - 1])[0]
            self._inherited.setdefault((lexer, tuple(threads)), {}).setdefault(terminal, word[i:])


def _representatives(tables: LalrTables) -> list[str]:
    """A character of each class, the plainest."""
    best: dict[int, str] = {}
    for first, last, m in tables.automata.segments:
        for point in {first, last, *(p for p in (97, 65, 48, 32) if first <= p <= last)}:
            if m not in best or _plainness(chr(point)) < _plainness(best[m]):
                best[m] = chr(point)
    return [best[m] for m in range(tables.automata.classes)]


def _plainness(character: str) -> tuple[int, int]:
    point = ord(character)
    if character.isascii() and character.isalnum():
        return (0 if character.islower() else 1), point
    return (2 if 32 <= point < 127 else 3 if point in (9, 10) else 4 if point >= 128 else 5), point
