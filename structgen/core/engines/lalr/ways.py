"""Ways to the end: what has made configurations and parsers live, kept so that each can be completed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from structgen.core.engines.lalr.lexer_simulation import Lexemes
from structgen.core.engines.lalr.plans import Plans
from structgen.core.kernels.lalr import machine as k

if TYPE_CHECKING:
    from structgen.core.engines.lalr.machine import LalrMachine

Way = tuple[str, int]
"""A text, and the parser that is reached if it ends cleanly there; `END` if the text may end."""
END = 0


class Ways:
    """Ways to the end in one machine.

    Each leads to a parser that was known to be live before, so none goes round. (Where the machine trusts its parsers,
    plans lead on: they are exact then.)
    """

    def __init__(
        self,
        machine: LalrMachine,
        lexemes: Lexemes,
        plans: Plans,
        is_known_live: Callable[[int], bool],
        find: Callable[[int], Way | None],
    ) -> None:
        self._machine = machine
        self._tables = machine.tables
        self._lexemes = lexemes
        self._plans = plans
        self._is_live = is_known_live  # of parsers: without a search
        self._find = find  # of parsers that proofs show to be live: one that is kept then
        self._configs: dict[int, Way] = {}
        self._parsers: dict[int, Way] = {}
        self._chosen: dict[int, tuple[Way, int]] = {}  # of configurations: a way, bytes to the end
        self._lengths: dict[int, tuple[Way, int]] = {END: (("", END), 0)}  # of parsers, likewise
        self._gap = lexemes.characters[lexemes.separator] if lexemes.separator >= 0 else ""

    def keep(self, config: int, text: str, goal: Way | None) -> None:
        """Keep a way that leads from a configuration to a live one, and that one's."""
        if goal is not None:
            self._configs.setdefault(config, (text + goal[0], goal[1]))

    def keep_parser(self, parser: int, text: str, after: int) -> None:
        """Keep what a parser is live by: ``text`` may come behind any clean lexeme."""
        self._parsers.setdefault(parser, (text, after))

    def of_known(self, parser: int) -> Way | None:
        """The way of a parser where the text may end, or for which one is kept."""
        if self._machine.call(k.ENDS_PARSER, parser):
            return "", END
        return self._parsers.get(parser)

    def text(self, config: int) -> str | None:
        """The text of a way that is kept."""
        way = self._configs.get(config)
        return way[0] if way else None

    def clean_word(self, parser: int, terminal: int) -> str | None:
        """A word of a terminal that may come behind any clean lexeme and ends cleanly."""
        word = self._lexemes.clean_start(self._machine.lexer_of(parser)).get(terminal)
        return None if word is None else self._gap + self._lexemes.text(word)

    def of_config(self, config: int) -> Way | None:
        """The way of a live configuration; None if none is known."""
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
            if self._machine.heap[d + k.LEX_RESETS] == k.YES and (way := self._next_line(parser)):
                return way
            if not self._lexemes.yields(threads):
                return None
            config = fallback
        return None

    def length(self, config: int) -> int | None:
        """Bytes of what `complete` writes; None if it writes nothing. The way is chosen once and for all.

        Lengths are kept with the ways, so each parser is looked at once: O(1) where the way leads to a known one.
        """
        known = self._chosen.get(config)
        if known is None:
            way = self.of_config(config)
            if way is None or not self._choose_behind(way[1]):
                return None
            known = self._chosen[config] = way, self._bytes(way)
        return known[1]

    def choose(self, config: int, text: str) -> int:
        """Keep a whole text for a configuration whose way is not known. Its bytes."""
        return self._chosen.setdefault(config, ((text, END), len(text.encode())))[1]

    def _choose_behind(self, parser: int) -> bool:
        """Choose ways from a parser to the end; False if one is not known, or they go round."""
        path: dict[int, Way] = {}
        while parser not in self._lengths:
            way = None if parser in path else self._of_parser(parser)
            if way is None:
                return False
            path[parser] = way
            parser = way[1]
        for passed, way in reversed(path.items()):
            self._lengths[passed] = way, self._bytes(way)
        return True

    def _bytes(self, way: Way) -> int:
        """Bytes of a way and of what comes behind it."""
        (following, _), rest = self._lengths[way[1]]
        written = self._behind(way[0], following)
        return len(way[0].encode()) + rest - len(following.encode()) + len(written.encode())

    def _behind(self, text: str, following: str) -> str:
        """The text of a way as it is written behind another: blanks would indent a line."""
        at_line = self._tables.newline >= 0 and text.startswith("\n")
        return following.removeprefix(self._gap) if at_line else following

    def complete(self, config: int) -> str | None:
        """The text from a live configuration to the end; None if its way is not known."""
        if self.length(config) is None:
            return None
        (text, parser), _ = self._chosen[config]
        parts = [text]
        while parser != END:
            (following, parser), _ = self._lengths[parser]
            parts.append(self._behind(text, following))
            text = following
        return "".join(parts)

    def _next_line(self, parser: int) -> Way | None:
        """A newline token of some indentation that leads on."""
        for column in self._plans.columns(parser):
            after = self._machine.call(k.FEED_TERMINAL, parser, self._tables.newline, column)
            if after != k.DEAD and self._is_live(after):
                return "\n" + " " * column, after
        return None

    def _of_parser(self, parser: int) -> Way | None:
        if way := self.of_known(parser):
            return way
        if self._tables.distrust and self._machine.heap[k.H_PROVED]:
            return self._find(parser)
        if self._tables.distrust:
            terminal = int(self._machine.heap[parser + k.PARSER_WAY]) - 1
        else:
            terminal = next(self._plans.terminals(self._machine.parser(parser)[0]), -1)
        return self.by_terminal(parser, terminal)

    def by_terminal(self, parser: int, terminal: int) -> Way | None:
        """A word of a terminal, and the parser after it; None if it cannot be read for sure or does not fit."""
        column, word = k.NO_COLUMN, self.clean_word(parser, terminal) if terminal >= 0 else None
        if terminal == self._tables.newline >= 0:
            column = self._plans.next_column(parser)
            word = "\n" + " " * column
        if word is None:
            return None
        after = self._machine.call(k.FEED_TERMINAL, parser, terminal, column)
        return None if after == k.DEAD else (word, after)
