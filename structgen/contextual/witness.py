"""Witnesses: texts that complete an output. They decide what is live where no local rule does, and close outputs.

A parser's stack is completed by a shortest plan of terminals (a search over what its states may reduce to); a
configuration by a best-first search over pieces of text, words of the terminals that plans ask for.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from structgen.contextual.lexemes import Lexemes
from structgen.contextual.plans import FAR, Plans
from structgen.kernels import lalr_machine as k

if TYPE_CHECKING:
    from structgen.contextual.machine import LalrMachine

EXPANSIONS, EXHAUSTED = 300, 2_000


class Witnesses:
    """Completions of the configurations of one machine."""

    def __init__(self, machine: LalrMachine) -> None:
        self._machine = machine
        self._tables = machine.tables
        self.undecided = 0

    @cached_property
    def lexemes(self) -> Lexemes:
        """Words of the terminals."""
        return Lexemes(self._tables)

    @cached_property
    def plans(self) -> Plans:
        """Shortest ways from stacks to the end."""
        return Plans(self._machine, self.lexemes)

    # --- liveness ---
    def is_live(self, config: int) -> bool:
        """Whether some text completes a configuration. What is found about its parts stays with them."""
        machine = self._machine
        parser, d, _, _ = machine.config(config)
        self._prepare(parser, d)
        self._prepare_newline(parser, d)
        live = machine.live(config)
        if live == k.UNKNOWN and self._tables.distrust and d:
            bits, _ = self._clean(d)
            if any(self._fits(parser, terminal) for terminal in bits):
                return True
        if live == k.UNKNOWN and d == 0 and self._parser_is_live(parser):
            return True
        if live == k.UNKNOWN:
            return self._search(config, self._is_known_live) is not None
        return live == k.YES

    def _is_known_live(self, config: int) -> bool:
        """Whether that needs no search."""
        parser, d, _, _ = self._machine.config(config)
        self._prepare(parser, d)
        return self._machine.live(config) == k.YES or self._ends(config)

    def _ends(self, config: int) -> bool:
        return bool(self._machine.call(k.ENDS, config))

    def _prepare(self, parser: int, d: int) -> None:
        """Say what can be finished cleanly from a lexer, and from a lexer state."""
        machine = self._machine
        node = machine.parser(parser)[0]
        lexer = int(self._tables.lexer_of[machine.pair(node)[1]])
        if lexer not in self._clean_starts:
            clean = self._clean_starts[lexer] = self.lexemes.clean_start(lexer)
            machine.set_clean(lexer, clean)
        if d:
            self._clean(d)

    def _prepare_newline(self, parser: int, d: int) -> None:
        """Say whether the parser takes a newline, where one can be finished."""
        if d and self._resets(d) and self._machine.heap[parser + k.PARSER_NEWLINE] == 0:
            found = any(self._newline_fits(parser, column) for column in self._columns(parser))
            self._machine.heap[parser + k.PARSER_NEWLINE] = k.YES if found else k.NO

    @cached_property
    def _clean_starts(self) -> dict[int, set[int]]:
        return {}

    @cached_property
    def _clean_states(self) -> dict[int, tuple[set[int], bool]]:
        return {}

    def _clean(self, d: int) -> tuple[set[int], bool]:
        """The terminals that a lexer state can finish cleanly, and whether it can begin a line of any indentation."""
        known = self._clean_states.get(d)
        if known is None:
            lexer, threads = self._machine.lexer(d)
            bits = self.lexemes.clean_within(lexer, threads)
            resets = self._can_begin_lines(threads)
            self._machine.set_bits(d + k.LEX_CLEAN, bits)
            self._machine.heap[d + k.LEX_RESETS] = k.YES if resets else k.NO
            known = self._clean_states[d] = bits, resets
        return known

    def _resets(self, d: int) -> bool:
        return self._clean(d)[1]

    def _can_begin_lines(self, threads: list[tuple[int, int]]) -> bool:
        """Whether a newline and any blanks make a newline token that ends before a word."""
        newline = self._tables.newline
        if newline < 0 or all(terminal != newline for terminal, _ in threads):
            return False
        for text in ("\n", "\n ", "\n  "):
            now, event, terminal = threads, 0, -1
            for m in self.lexemes.classes(text):
                now, event, terminal, _ = self.lexemes.scan(now, m)
            if event != 1 or terminal != newline or any(t != newline for t, _ in now):
                return False
            left, then, _, _ = self.lexemes.scan(now, self.lexemes.classes("a")[0])
            if left or then:
                return False
        return True

    def _columns(self, parser: int) -> list[int]:
        """The columns that a next line may sensibly have."""
        levels = self._machine.levels(self._machine.parser(parser)[1])
        return [*reversed(levels), levels[-1] + 1] if levels else []

    def _newline_fits(self, parser: int, column: int) -> bool:
        after = self._machine.call(k.FEED_TERMINAL, parser, self._tables.newline, column)
        return after != k.DEAD and self._parser_is_live(after)

    def _fits(self, parser: int, terminal: int) -> bool:
        after = self._machine.call(k.FEED_TERMINAL, parser, terminal, k.NO_COLUMN)
        return after != k.DEAD and self._parser_is_live(after)

    def _parser_is_live(self, parser: int) -> bool:
        """Whether a text completes a parser at the start of a lexeme: a plan that can be followed, else a search."""
        machine = self._machine
        path: dict[int, None] = {}
        current = parser
        while (known := int(machine.heap[current + k.PARSER_LIVE])) == 0:
            self._prepare(current, 0)
            if machine.live(machine.call(k.FRESH, current)) == k.YES:
                known = k.YES
            else:
                following = self._follow_plan(current)
                if following != k.DEAD and following not in path:
                    path[current] = None
                    current = following
                    continue
                found = self._search(machine.call(k.FRESH, current), self._is_known_live)
                known = k.NO if found is None else k.YES
            machine.heap[current + k.PARSER_LIVE] = known
            break
        if known == k.YES:
            for passed in path:
                machine.heap[passed + k.PARSER_LIVE] = k.YES
            return True
        if path:  # the plan has failed, other ways may not
            found = self._search(machine.call(k.FRESH, parser), self._is_known_live)
            machine.heap[parser + k.PARSER_LIVE] = k.NO if found is None else k.YES
            return found is not None
        return False

    def _follow_plan(self, parser: int) -> int:
        """The parser after the first terminal of its plan; DEAD if that cannot be read for sure."""
        node, indent, _ = self._machine.parser(parser)
        first = next(self.plans.terminals(node), -1)
        if first < 0:
            return k.DEAD
        if first == self._tables.newline:
            return self._machine.call(k.FEED_TERMINAL, parser, first, self._planned_column(node, indent))
        self._prepare(parser, 0)
        if first not in self._clean_starts[int(self._tables.lexer_of[self._machine.pair(node)[1]])]:
            return k.DEAD
        return self._machine.call(k.FEED_TERMINAL, parser, first, k.NO_COLUMN)

    # --- completions ---
    def complete(self, config: int) -> str | None:
        """A short text after which the configuration may end; None if there is none, or none was found."""
        return self._search(config, self._ends)

    def _search(self, config: int, is_goal: Callable[[int], bool]) -> str | None:
        """A text that leads to a goal, from which there is one to the end; None if there is none, or none was found."""
        if self._is_hopeless(config):
            return None
        found = self._best_first(config, is_goal)
        if found is None:
            found, decided = self._every_text(config, is_goal)
            self.undecided += not decided
        return found

    def _is_hopeless(self, config: int) -> bool:
        """Whether the parser can take nothing of what the lexer may find."""
        while config:
            parser, d, config, _ = self._machine.config(config)
            if self.plans.cost(self._machine.parser(parser)[0]) >= FAR:
                continue
            if d == 0 and self._may_take_anything(parser):
                return False
            lexer, threads = self._machine.lexer(d) if d else (0, [])
            if any(self._may_take(parser, lexer, terminal) for terminal, _ in threads):
                return False
        return True

    def _may_take_anything(self, parser: int) -> bool:
        """Whether the text may end, or the parser has a use for some lexeme (none after a line indented wrongly)."""
        lexer = int(self._tables.lexer_of[self._machine.pair(self._machine.parser(parser)[0])[1]])
        wanted = [t for t in self._tables.lexers[lexer] if t not in self._tables.ignored]
        return bool(self._machine.call(k.ENDS_PARSER, parser)) or any(
            self._may_take(parser, lexer, terminal) for terminal in wanted
        )

    def _may_take(self, parser: int, lexer: int, terminal: int) -> bool:
        """Whether the parser has a use for a lexeme of a terminal, or of a keyword that it may be retyped to."""
        tables, machine = self._tables, self._machine
        if terminal in tables.ignored or (terminal == tables.newline and machine.parser(parser)[2] > 0):
            return True
        columns = self._columns(parser) if terminal == tables.newline else [k.NO_COLUMN]
        words = [
            int(tables.retyped[lexer, number])
            for number, (own, _) in enumerate(tables.automata.keyword_sets)
            if own == terminal and tables.retyped[lexer, number] >= 0
        ]
        return any(
            machine.call(k.FEED_TERMINAL, parser, kind, column) != k.DEAD
            for kind in [terminal, *words]
            for column in columns
        )

    def _best_first(self, config: int, is_goal: Callable[[int], bool]) -> str | None:
        """Search over words; marks what it finds live. Gives up after so many steps that bring the end no nearer."""
        queue: list[tuple[int, int, int, int, str]] = [(0, self._estimate(config), 0, config, "")]
        came: dict[int, int] = {config: -1}
        count, nearest, left = 0, FAR, EXPANSIONS
        while queue and left:
            _, far, _, current, text = heapq.heappop(queue)
            left -= 1
            if far < nearest:
                nearest, left = far, EXPANSIONS
            if is_goal(current):
                self._mark(current, came)
                return text
            for piece in self._pieces(current):
                after = self._read(current, piece)
                if after != k.DEAD and after not in came:
                    came[after] = current
                    count += 1
                    far = self._estimate(after)
                    heapq.heappush(queue, (len(text) + len(piece) + far, far, count, after, text + piece))
        return None

    def _mark(self, config: int, came: dict[int, int]) -> None:
        while config != -1:
            self._machine.heap[config + k.CONFIG_LIVE] = k.YES
            config = came[config]

    def _read(self, config: int, text: str) -> int:
        for m in self.lexemes.classes(text):
            if config == k.DEAD:
                break
            config = self._machine.call(k.STEP, config, m)
        return config

    def _pieces(self, config: int) -> list[str]:
        """Texts that may lead on: ends of the lexeme that is being read, and beginnings of the next."""
        machine, lexemes = self._machine, self.lexemes
        pieces: dict[str, None] = {}
        current = config
        while current:
            parser, d, fallback, _ = machine.config(current)
            if d == 0:
                self._add_next_words(pieces, parser)
            else:
                lexer, threads = machine.lexer(d)
                for terminal, q in threads:
                    for ending in lexemes.words(q):
                        if ending:
                            pieces.setdefault(lexemes.text(ending))
                    if terminal == self._tables.newline:
                        self._add_lines(pieces, current)
                    elif lexemes.pending(q):
                        kind = lexemes.pending_type(lexer, terminal, q)
                        after = parser if kind < 0 else machine.call(k.FEED_TERMINAL, parser, kind, k.NO_COLUMN)
                        if after != k.DEAD:
                            self._add_next_words(pieces, after)
            current = fallback
        return list(pieces)

    def _add_next_words(self, pieces: dict[str, None], parser: int) -> None:
        """What a plan begins with, with and without a gap before it."""
        for word in self._next_words(parser):
            for gap in self.lexemes.gaps:
                pieces.setdefault(gap + word)

    def _add_lines(self, pieces: dict[str, None], config: int) -> None:
        """More of a newline token, up to the columns that the next line may have."""
        parser, _, _, column = self._machine.config(config)
        for wanted in self._columns(parser):
            pieces.setdefault("\n" + " " * wanted)
            if 0 <= column < wanted:
                pieces.setdefault(" " * (wanted - column))

    def _next_words(self, parser: int) -> list[str]:
        """Words of the first terminal of a plan."""
        node, indent, _ = self._machine.parser(parser)
        first = next(self.plans.terminals(node), -1)
        if first < 0:
            return []
        if first == self._tables.newline:
            return ["\n" + " " * self._planned_column(node, indent)]
        if first in (self.plans.indent, self.plans.dedent):  # lines have been indented already: another lexeme
            return self._other_words(parser)
        start = self._tables.automata.starts[first]
        return [self.lexemes.text(choice) for choice in self.lexemes.words(start)] if start else []

    def _other_words(self, parser: int) -> list[str]:
        """Words of the terminals that the parser takes and that are nearest to the end then."""
        machine = self._machine
        lexer = int(self._tables.lexer_of[machine.pair(machine.parser(parser)[0])[1]])
        found = []
        for terminal in self.lexemes.clean_start(lexer):
            after = machine.call(k.FEED_TERMINAL, parser, terminal, k.NO_COLUMN)
            if after != k.DEAD:
                cost = self.plans.terminal_cost(terminal) + self.plans.cost(machine.parser(after)[0])
                word = self.lexemes.words(self._tables.automata.starts[terminal])[0]
                found.append((cost, self.lexemes.text(word)))
        return [word for _, word in sorted(found)[:3]]

    def _planned_column(self, node: int, indent: int) -> int:
        """The column of the line that a stack's plan begins with."""
        levels, dedents = self._machine.levels(indent), 0
        for terminal in islice(self.plans.terminals(node), 1, None):
            if terminal == self.plans.indent:
                return levels[-1] + 1
            if terminal != self.plans.dedent or dedents + 1 == len(levels):
                break
            dedents += 1
        return levels[-1 - dedents]

    def _estimate(self, config: int) -> int:
        """About how many characters are still needed."""
        best = FAR
        while config:
            parser, d, fallback, _ = self._machine.config(config)
            if d == 0:
                return min(best, self.plans.cost(self._machine.parser(parser)[0]))
            best = min(best, self.plans.cost(self._machine.parser(parser)[0]))
            config = fallback
        return best

    def _every_text(self, config: int, is_goal: Callable[[int], bool]) -> tuple[str | None, bool]:
        """Search over all texts in order of length; and whether that decides: False if there are too many."""
        queue = [(config, "")]
        came = {config: -1}
        for current, text in queue:
            if is_goal(current):
                self._mark(current, came)
                return text, True
            if len(queue) > EXHAUSTED:
                return None, False
            for m, character in enumerate(self.lexemes.characters):
                after = self._machine.call(k.STEP, current, m)
                if after != k.DEAD and after not in came:
                    came[after] = current
                    queue.append((after, text + character))
        return None, True
