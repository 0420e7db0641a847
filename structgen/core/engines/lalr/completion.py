"""Completions of configurations and parsers, kept step by step: what has made them live."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from structgen.core.engines.lalr.heap import LalrHeap
from structgen.core.engines.lalr.lexer_simulation import Lexemes
from structgen.core.engines.lalr.stack_completion import StackCompletions
from structgen.core.kernels.lalr import machine as k

Step = tuple[str, int]
"""A text, and the parser that is reached if it ends cleanly there; `END` if the text may end."""
END = 0
LONGEST = 100
"""Terminals of a stack's completion that are followed one by one before a search takes over."""
Passed = tuple[int, str, int]
"""A parser, a text that may come after any clean lexeme, and the parser after it."""


class Completions:
    """Completions in one machine.

    Each leads to a parser that was known to be live before, so none goes round. (Where no parser runs into a dead end,
    the completions of stacks lead on: they are exact then.)
    """

    def __init__(
        self,
        machine: LalrHeap,
        lexemes: Lexemes,
        stacks: StackCompletions,
        is_known_live: Callable[[int], bool],
        find: Callable[[int], Step | None],
    ) -> None:
        self._machine = machine
        self._tables = machine.tables
        self._lexemes = lexemes
        self._stacks = stacks
        self._is_live = is_known_live  # of parsers: without a search
        self._find = find  # of parsers that proofs show to be live: one that is kept then
        self._configs: dict[int, Step] = {}
        self._parsers: dict[int, Step] = {}
        self._chosen: dict[int, tuple[Step, int]] = {}  # of configurations: the first step, bytes to the end
        self._lengths: dict[int, tuple[Step, int]] = {END: (("", END), 0)}  # of parsers, likewise
        self._gap = lexemes.characters[lexemes.separator] if lexemes.separator >= 0 else ""

    def keep(self, config: int, text: str, step: Step | None) -> None:
        """Keep a text that leads from a configuration to a live one, and that one's first step."""
        if step is not None:
            self._configs.setdefault(config, (text + step[0], step[1]))

    def keep_parser(self, parser: int, text: str, after: int) -> None:
        """Keep what a parser is live by: ``text`` may come after any clean lexeme."""
        self._parsers.setdefault(parser, (text, after))

    def of_known(self, parser: int) -> Step | None:
        """The step of a parser where the text may end, or for which one is kept."""
        if self._machine.call(k.ENDS_PARSER, parser):
            return "", END
        return self._parsers.get(parser)

    def text(self, config: int) -> str | None:
        """The text of a step that is kept."""
        step = self._configs.get(config)
        return step[0] if step else None

    def clean_word(self, parser: int, terminal: int) -> str | None:
        """A word of a terminal that may come after any clean lexeme and ends cleanly."""
        word = self._lexemes.clean_start(self._machine.lexer_of(parser)).get(terminal)
        return None if word is None else self._gap + self._lexemes.text(word)

    def of_config(self, config: int) -> Step | None:
        """The step of a live configuration; None if none is known."""
        if self._machine.call(k.ENDS, config):
            return "", END
        while config:
            if config in self._configs:
                return self._configs[config]
            parser, d, fallback, _ = self._machine.config(config)
            if d == 0:
                return ("", parser) if self._is_live(parser) else None
            lexer, threads = self._machine.lexer(d)
            for terminal, word in self._lexemes.clean_within(lexer, threads).items():
                after = parser if terminal < 0 else self._machine.call(k.FEED_TERMINAL, parser, terminal, k.NO_COLUMN)
                if after != k.DEAD and self._is_live(after):
                    return self._lexemes.text(word), after
            if self._machine.heap[d + k.LEX_RESETS] == k.YES and (step := self._next_line(parser)):
                return step
            if not self._lexemes.yields(threads):
                return None
            config = fallback
        return None

    def length(self, config: int) -> int | None:
        """Bytes of what `complete` writes; None if it writes nothing. The step is chosen once and for all.

        Lengths are kept with the steps, so each parser is looked at once: O(1) where the step leads to a known one.
        """
        chosen = self._chosen.get(config)
        if chosen is None:
            step = self.of_config(config)
            if step is None or not self._choose_after(step[1]):
                return None
            chosen = self._chosen[config] = step, self._bytes(step)
        return chosen[1]

    def choose(self, config: int, text: str) -> int:
        """Keep a whole text for a configuration whose step is not known. Its bytes."""
        return self._chosen.setdefault(config, ((text, END), len(text.encode())))[1]

    def _choose_after(self, parser: int) -> bool:
        """Choose steps from a parser to the end; False if one is not known, or they go round."""
        path: dict[int, Step] = {}
        while parser not in self._lengths:
            step = None if parser in path else self._of_parser(parser)
            if step is None:
                return False
            path[parser] = step
            parser = step[1]
        for passed, step in reversed(path.items()):
            self._lengths[passed] = step, self._bytes(step)
        return True

    def _bytes(self, step: Step) -> int:
        """Bytes of a step and of what comes after it."""
        (following, _), remaining = self._lengths[step[1]]
        written = self._after(step[0], following)
        return len(step[0].encode()) + remaining - len(following.encode()) + len(written.encode())

    def _after(self, text: str, following: str) -> str:
        """The text of a step as it is written after another: blanks would indent a line."""
        at_line = self._tables.newline >= 0 and text.startswith("\n")
        return following.removeprefix(self._gap) if at_line else following

    def complete(self, config: int) -> str | None:
        """The text from a live configuration to the end; None if its step is not known."""
        if self.length(config) is None:
            return None
        (text, parser), _ = self._chosen[config]
        parts = [text]
        while parser != END:
            (following, parser), _ = self._lengths[parser]
            parts.append(self._after(text, following))
            text = following
        return "".join(parts)

    def _next_line(self, parser: int) -> Step | None:
        """A newline token of some indentation that leads on."""
        for column in self._stacks.columns(parser):
            after = self._machine.call(k.FEED_TERMINAL, parser, self._tables.newline, column)
            if after != k.DEAD and self._is_live(after):
                return "\n" + " " * column, after
        return None

    def _of_parser(self, parser: int) -> Step | None:
        if step := self.of_known(parser):
            return step
        if self._tables.distrust and self._machine.heap[k.H_PROVED]:
            return self._find(parser)
        if self._tables.distrust:
            terminal = int(self._machine.heap[parser + k.PARSER_COMPLETION]) - 1
        else:
            terminal = next(self._stacks.terminals(self._machine.parser(parser)[0]), -1)
        return self.by_terminal(parser, terminal)

    def by_terminal(self, parser: int, terminal: int) -> Step | None:
        """A word of a terminal, and the parser after it; None if it cannot be read for sure or does not fit."""
        column, word = k.NO_COLUMN, self.clean_word(parser, terminal) if terminal >= 0 else None
        if terminal == self._tables.newline >= 0:
            column = self._stacks.next_column(parser)
            word = "\n" + " " * column
        if word is None:
            return None
        after = self._machine.call(k.FEED_TERMINAL, parser, terminal, column)
        return None if after == k.DEAD else (word, after)


class ProvedCompletions:
    """Finds completions in one machine with proofs, and keeps them.

    What a live stack has begun on top can be completed by terminals that are surely read as meant, and each such
    terminal that it may take leaves a live stack. So a search over these never comes to a dead end, and it ends: at the
    end of a text, or at a stack that is lower than the first, from where the next search begins.
    """

    def __init__(self, machine: LalrHeap, lexemes: Lexemes, stacks: StackCompletions, completions: Completions) -> None:
        self._machine = machine
        self._tables = machine.tables
        self._lexemes = lexemes
        self._stacks = stacks
        self._completions = completions
        self._heights: dict[int, int] = {0: 0}

    def find(self, parser: int) -> Step | None:
        """The step of a live parser. None if it is not live."""
        steps: list[Passed] = []
        current = parser
        while self._completions.of_known(current) is None:
            more = self._planned(current) or self._searched(current)
            if not more:
                return None
            steps += more
            current = more[-1][2]
        for passed, text, after in reversed(steps):
            self._completions.keep_parser(passed, text, after)
        return self._completions.of_known(parser)

    def _height(self, parser: int) -> int:
        node = self._machine.parser(parser)[0]
        path = []
        while node not in self._heights:
            path.append(node)
            node = self._machine.pair(node)[0]
        height = self._heights[node]
        for passed in reversed(path):
            height += 1
            self._heights[passed] = height
        return height

    def _is_target(self, parser: int, height: int) -> bool:
        return self._height(parser) < height or self._completions.of_known(parser) is not None

    def _planned(self, parser: int) -> list[Passed]:
        """The steps of a stack's completion down to a goal; none if it cannot be written."""
        steps: list[Passed] = []
        passed, current, height = {parser}, parser, self._height(parser)
        while len(steps) < LONGEST:
            terminal = next(self._stacks.terminals(self._machine.parser(current)[0]), -1)
            step = self._completions.by_terminal(current, terminal)
            if step is None or step[1] in passed or not self._is_proved(step[1]):
                return []
            steps.append((current, *step))
            current = step[1]
            passed.add(current)
            if self._is_target(current, height):
                return steps
        return []

    def _searched(self, parser: int) -> list[Passed]:
        """The steps to a goal that a best-first search finds."""
        height, count = self._height(parser), 0
        queue = [(0, 0, 0, parser)]
        came: dict[int, Passed | None] = {parser: None}
        while queue:
            _, _, length, current = heapq.heappop(queue)
            if current != parser and self._is_target(current, height):
                steps = []
                while (step := came[current]) is not None:
                    steps.append(step)
                    current = step[0]
                return steps[::-1]
            for text, after in self._following(current):
                if after not in came:
                    came[after] = current, text, after
                    count += 1
                    longer = length + len(text)
                    far = longer + self._stacks.cost(self._machine.parser(after)[0])
                    heapq.heappush(queue, (far, count, longer, after))
        return []

    def _following(self, parser: int) -> Iterator[Step]:
        """The live parsers after each terminal that may be read for sure, and its text."""
        tables = self._tables
        for terminal in self._lexemes.clean_start(self._machine.lexer_of(parser)):
            if (step := self._completions.by_terminal(parser, terminal)) and self._is_proved(step[1]):
                yield step
        if tables.newline >= 0:
            for column in self._stacks.columns(parser):
                after = self._machine.call(k.FEED_TERMINAL, parser, tables.newline, column)
                if after not in (k.DEAD, parser) and self._is_proved(after):
                    yield "\n" + " " * column, after

    def _is_proved(self, parser: int) -> bool:
        group = int(self._machine.heap[self._machine.parser(parser)[0] + k.NODE_CLASS])
        return int(self._machine.heap[group + k.CLASS_LIVE]) == k.YES
