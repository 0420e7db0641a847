"""Searches for texts that complete an output, where no local rule tells whether there is one. All are bounded."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator

from structgen.core.engines.lalr.completion import Completions
from structgen.core.engines.lalr.heap import LalrHeap
from structgen.core.engines.lalr.lexer_simulation import Lexemes
from structgen.core.engines.lalr.stack_completion import FAR, StackCompletions
from structgen.core.kernels.lalr import machine as k

EXPANSIONS, EXHAUSTED = 300, 2_000
"""Configurations that a search over words looks at without coming nearer to the end; over all texts, altogether."""
OTHERS = 6
"""Terminals that are tried besides the one that the completion of a stack begins with."""
TargetTest = Callable[[int], bool]
Starts = dict[int, str]
"""Configurations to search from, with what has been read to get there."""


class CompletionSearch:
    """Searches over the configurations of one machine. What they find is marked live, and how it goes on is kept."""

    def __init__(self, machine: LalrHeap, lexemes: Lexemes, stacks: StackCompletions, completions: Completions) -> None:
        self._machine = machine
        self._tables = machine.tables
        self._lexemes = lexemes
        self._stacks = stacks
        self._completions = completions
        self._words: dict[int, list[str]] = {}

    def find(self, starts: Starts, is_target: TargetTest, effort: int = 1) -> tuple[str | None, bool]:
        """A text from the starts to a goal; and whether that is decided: False if the search has given up.

        Args:
            effort: by how much the bounds are larger.
        """
        hopeful = {config: text for config, text in starts.items() if not self._is_hopeless(config)}
        if not hopeful:
            return None, True
        spelled_text = self._best_first(hopeful, is_target, EXPANSIONS * effort)
        return (
            (spelled_text, True)
            if spelled_text is not None
            else self._every_text(hopeful, is_target, EXHAUSTED * effort)
        )

    def fed(self, parser: int, terminal: int) -> int:
        """The parser after a terminal that is no newline; DEAD if it does not take it."""
        return self._machine.call(k.FEED_TERMINAL, parser, terminal, k.NO_COLUMN)

    # --- what is hopeless ---
    def _is_hopeless(self, config: int) -> bool:
        """Whether the parser can take nothing of what the lexer may find."""
        while config:
            parser, d, config, _ = self._machine.config(config)
            if self._stacks.cost(self._machine.parser(parser)[0]) >= FAR:
                continue
            if d == 0 and self._may_take_anything(parser):
                return False
            lexer, threads = self._machine.lexer(d) if d else (0, [])
            if any(self._may_take(parser, lexer, terminal) for terminal, _ in threads):
                return False
        return True

    def _may_take_anything(self, parser: int) -> bool:
        """Whether the text may end, or the parser has a use for some lexeme (none after a line indented wrongly)."""
        lexer = self._machine.lexer_of(parser)
        wanted = [t for t in self._tables.lexers[lexer] if t not in self._tables.ignored]
        return bool(self._machine.call(k.ENDS_PARSER, parser)) or any(
            self._may_take(parser, lexer, terminal) for terminal in wanted
        )

    def _may_take(self, parser: int, lexer: int, terminal: int) -> bool:
        """Whether the parser has a use for a lexeme of a terminal, or of a keyword that it may be retyped to."""
        tables, machine = self._tables, self._machine
        if terminal in tables.ignored or (terminal == tables.newline and machine.parser(parser)[2] > 0):
            return True
        columns = self._stacks.columns(parser) if terminal == tables.newline else [k.NO_COLUMN]
        return any(
            machine.call(k.FEED_TERMINAL, parser, kind, column) != k.DEAD
            for kind in [terminal, *self._keywords(lexer, terminal)]
            for column in columns
        )

    def _keywords(self, lexer: int, terminal: int) -> list[int]:
        """The keywords that a lexeme of a terminal may be retyped to."""
        retyped = self._tables.retyped[lexer]
        sets = enumerate(self._tables.automata.keyword_sets)
        return [int(retyped[number]) for number, (owner, _) in sets if owner == terminal and retyped[number] >= 0]

    # --- searches ---
    def _best_first(self, starts: Starts, is_target: TargetTest, most: int) -> str | None:
        """Search over words. Gives up after so many steps that bring the end no nearer."""
        queue = [(0, self._estimate(config), i, config, text) for i, (config, text) in enumerate(starts.items())]
        heapq.heapify(queue)
        came: dict[int, tuple[int, str]] = {config: (-1, text) for config, text in starts.items()}
        count, nearest, left = len(queue), FAR, most
        while queue and left:
            _, far, _, current, text = heapq.heappop(queue)
            left -= 1
            if far < nearest:
                nearest, left = far, most
            if is_target(current):
                self._mark(current, came)
                return text
            for piece in self._pieces(current):
                after = self._read(current, piece)
                if after != k.DEAD and after not in came:
                    came[after] = current, piece
                    count += 1
                    far = self._estimate(after)
                    heapq.heappush(queue, (len(text) + len(piece) + far, far, count, after, text + piece))
        return None

    def _every_text(self, starts: Starts, is_target: TargetTest, most: int) -> tuple[str | None, bool]:
        """Search over all texts in order of length; and whether that decides: False if there are too many."""
        queue = list(starts.items())
        came: dict[int, tuple[int, str]] = {config: (-1, text) for config, text in queue}
        for current, text in queue:
            if is_target(current):
                self._mark(current, came)
                return text, True
            if len(queue) > most:
                return None, False
            for m, character in enumerate(self._lexemes.characters):
                after = self._machine.call(k.STEP, current, m)
                if after != k.DEAD and after not in came:
                    came[after] = current, character
                    queue.append((after, text + character))
        return None, True

    def _mark(self, config: int, came: dict[int, tuple[int, str]]) -> None:
        """Mark what lies before a live configuration, and keep how it goes on."""
        remaining, step = "", self._completions.of_config(config)
        while config != -1:
            self._machine.heap[config + k.CONFIG_LIVE] = k.YES
            self._completions.keep(config, remaining, step)
            before, piece = came[config]
            for i in range(1, len(piece) if before != -1 else 0):  # within the piece
                passed = self._read(before, piece[:i])
                self._machine.heap[passed + k.CONFIG_LIVE] = k.YES
                self._completions.keep(passed, piece[i:] + remaining, step)
            config, remaining = before, piece + remaining

    def _read(self, config: int, text: str) -> int:
        for m in self._lexemes.classes(text):
            if config == k.DEAD:
                break
            config = self._machine.call(k.STEP, config, m)
        return config

    def _estimate(self, config: int) -> int:
        """About how many characters are still needed."""
        best = FAR
        while config:
            parser, d, fallback, _ = self._machine.config(config)
            best = min(best, self._stacks.cost(self._machine.parser(parser)[0]))
            if d == 0:
                break
            config = fallback
        return best

    def beginnings(self, parser: int) -> Starts:
        """The configurations after what texts begin with that may come after any clean lexeme."""
        fresh = self._machine.call(k.FRESH, parser)
        starts: Starts = {}
        for word in self._lexemes.beginnings:
            text = self._lexemes.text(word)
            after = self._read(fresh, text)
            if after != k.DEAD:
                starts.setdefault(after, text)
        return starts

    # --- what may lead on ---
    def _pieces(self, config: int) -> list[str]:
        """Texts that may lead on: ends of the lexeme that is being read, and beginnings of the next."""
        machine, lexemes = self._machine, self._lexemes
        pieces: dict[str, None] = {}
        current = config
        while current:
            parser, d, fallback, _ = machine.config(current)
            self._add_step(pieces, current)
            if d == 0:
                self._add_next_words(pieces, parser)
                break
            lexer, threads = machine.lexer(d)
            for terminal, q in threads:
                for ending in lexemes.words(q):
                    if ending:
                        pieces.setdefault(lexemes.text(ending))
                if terminal == self._tables.newline:
                    self._add_lines(pieces, current)
                elif lexemes.pending(q):
                    kind = lexemes.pending_type(lexer, terminal, q)
                    after = parser if kind < 0 else self.fed(parser, kind)
                    if after != k.DEAD:
                        self._add_next_words(pieces, after)
            current = fallback
        return list(pieces)

    def _add_next_words(self, pieces: dict[str, None], parser: int) -> None:
        """What the completion of a stack begins with, with and without a gap before it."""
        if parser not in self._words:
            self._words[parser] = list(self._next_words(parser))
        for word in self._words[parser]:
            for gap in self._lexemes.gaps:
                pieces.setdefault(gap + word)
        self._add_step(pieces, self._machine.call(k.FRESH, parser))

    def _add_step(self, pieces: dict[str, None], config: int) -> None:
        if text := self._completions.text(config):
            pieces.setdefault(text)

    def _add_lines(self, pieces: dict[str, None], config: int) -> None:
        """More of a newline token, up to the columns that the next line may have."""
        parser, _, _, column = self._machine.config(config)
        for wanted in self._stacks.columns(parser):
            pieces.setdefault("\n" + " " * wanted)
            if 0 <= column < wanted:
                pieces.setdefault(" " * (wanted - column))

    def _next_words(self, parser: int) -> Iterable[str]:
        """Words of the first terminal of a completion; where that may lead nowhere, of others too."""
        first = next(self._stacks.terminals(self._machine.parser(parser)[0]), -1)
        words: dict[str, None] = {}
        if first == self._tables.newline >= 0:
            words["\n" + " " * self._stacks.next_column(parser)] = None
        elif first >= 0 and first not in (self._stacks.indent, self._stacks.dedent):
            start = self._tables.automata.starts[first]
            words.update((self._lexemes.text(choice), None) for choice in (self._lexemes.words(start) if start else ()))
        elif first < 0 and not self._tables.distrust:
            return []
        # lines have been indented already, so an indentation is another lexeme
        if self._tables.distrust or first in (self._stacks.indent, self._stacks.dedent):
            words.update((word, None) for word in self._other_words(parser))
        return words

    def _other_words(self, parser: int) -> Iterator[str]:
        """Words of the terminals that the parser takes and that are nearest to the end then."""
        lexer, starts = self._machine.lexer_of(parser), self._tables.automata.starts
        choices = []
        terminals = set(self._tables.lexers[lexer]) | {int(t) for t in self._tables.retyped[lexer] if t >= 0}
        for terminal in terminals - set(self._tables.ignored) - {self._tables.newline}:
            after = self.fed(parser, terminal)
            if after != k.DEAD:
                cost = self._stacks.terminal_cost(terminal) + self._stacks.cost(self._machine.parser(after)[0])
                if cost < FAR:
                    choices.append((cost, terminal))
        clean = self._lexemes.clean_start(lexer)
        for _, terminal in sorted(choices)[:OTHERS]:
            for word in {clean.get(terminal, ()): 0, **dict.fromkeys(self._lexemes.words(starts[terminal])[:2])}:
                if word:
                    yield self._lexemes.text(word)
