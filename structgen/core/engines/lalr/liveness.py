"""Liveness: which configurations some text completes, decided by such a text where no local rule decides.

A parser's stack is completed by the cheapest sequence of terminals (`stack_completion`); a configuration by a
best-first search over pieces of text, words of these terminals (`completion_search`). Whatever is said to be live has a
next character after which that is found again: the words that rules count on, and the texts that searches have found,
are kept (`completion`).
"""

from __future__ import annotations

import weakref
from functools import cached_property

from structgen.core.engines.lalr.completion import END, LONGEST, Completions, ProvedCompletions, Step
from structgen.core.engines.lalr.completion_search import EXHAUSTED, CompletionSearch
from structgen.core.engines.lalr.heap import LalrHeap
from structgen.core.engines.lalr.lexer_simulation import IGNORED, Lexemes
from structgen.core.engines.lalr.stack_completion import StackCompletions
from structgen.core.kernels.lalr import machine as k

FAR_EFFORT = 20
FAR_STEPS = FAR_EFFORT * EXHAUSTED


class Liveness:
    """Liveness of the configurations of one machine, and their completions."""

    def __init__(self, machine: LalrHeap) -> None:
        self._machine: LalrHeap = weakref.proxy(machine)  # which goes with its last matcher, and takes these along
        self._tables = machine.tables
        self.undecided = 0
        self._prepared: set[int] = set()
        self._clean_states: dict[int, tuple[set[int], bool]] = {}

    @cached_property
    def lexemes(self) -> Lexemes:
        """Words of the terminals."""
        return Lexemes(self._tables)

    @cached_property
    def stacks(self) -> StackCompletions:
        """Cheapest completions of stacks."""
        return StackCompletions(self._machine, self.lexemes)

    @cached_property
    def _search(self) -> CompletionSearch:
        return CompletionSearch(self._machine, self.lexemes, self.stacks, self._completions)

    @cached_property
    def _completions(self) -> Completions:
        return Completions(
            self._machine, self.lexemes, self.stacks, lambda parser: self._known_of(parser) == k.YES, self._find_step
        )

    @cached_property
    def _proved(self) -> ProvedCompletions:
        return ProvedCompletions(self._machine, self.lexemes, self.stacks, self._completions)

    # --- liveness ---
    def is_live(self, config: int) -> bool:
        """Whether some text completes a configuration. What is found about its parts stays with them.

        False too if the search for one gives up, which is counted.
        """
        machine = self._machine
        self.prepare(config)
        if (live := machine.live(config)) != k.UNKNOWN:
            return live == k.YES
        parser, d, _, _ = machine.config(config)
        self._prepare_newline(parser, d)
        live = machine.live(config)
        if live != k.UNKNOWN:
            return live == k.YES
        if self._is_cleanly_live(config):
            return True
        text, decided = self._search.find({config: ""}, self._is_known_live)
        self.undecided += not decided
        return text is not None

    def _is_cleanly_live(self, config: int) -> bool:
        """Whether a word ends the lexeme cleanly, or the next character does, and the parser after it is live."""
        while config:
            parser, d, config, _ = self._machine.config(config)
            if d == 0:
                return self._parser_is_live(parser)
            lexer, threads = self._machine.lexer(d)
            if any(self._fits(parser, terminal) for terminal in self.lexemes.clean_within(lexer, threads)):
                return True
            if not self.lexemes.yields(threads):
                return False
        return False

    def _is_known_live(self, config: int) -> bool:
        """Whether that needs no search."""
        parser, d, _, _ = self._machine.config(config)
        self._prepare(parser, d)
        return self._machine.live(config) == k.YES or self._ends(config)

    def _ends(self, config: int) -> bool:
        return bool(self._machine.call(k.ENDS, config))

    def prepare(self, config: int) -> None:
        """Say what the lexer states of a configuration and its fallbacks can be finished as."""
        while config and config != k.BELOW:
            parser, d, config, _ = self._machine.config(config)
            self._prepare(parser, d)

    def _prepare(self, parser: int, d: int) -> None:
        """Say what can be finished cleanly from a lexer, and from a lexer state."""
        machine = self._machine
        lexer = machine.lexer_of(parser)
        if lexer not in self._prepared:
            self._prepared.add(lexer)
            machine.set_clean(lexer, set(self.lexemes.clean_start(lexer)))
        if d:
            self._clean(d)

    def _prepare_newline(self, parser: int, d: int) -> None:
        """Say whether the parser takes a newline, where one can be finished."""
        if d and self._resets(d) and self._machine.heap[parser + k.PARSER_NEWLINE] == 0:
            fits = any(self._newline_fits(parser, column) for column in self.stacks.columns(parser))
            self._machine.heap[parser + k.PARSER_NEWLINE] = k.YES if fits else k.NO

    def _clean(self, d: int) -> tuple[set[int], bool]:
        """The terminals that a lexer state can finish cleanly, and whether it can begin a line of any indentation."""
        clean = self._clean_states.get(d)
        if clean is None:
            lexer, threads = self._machine.lexer(d)
            bits = set(self.lexemes.clean_within(lexer, threads))
            resets = self.lexemes.can_begin_lines(threads)
            self._machine.set_bits(d + k.LEX_CLEAN, self._numbers(bits) | ({self._tables.newline} if resets else set()))
            possible = self._numbers(self.lexemes.possible(lexer, threads))
            self._machine.set_bits(d + k.LEX_CLEAN + self._machine.bit_words, possible)
            self._machine.heap[d + k.LEX_YIELDS] = k.YES if self.lexemes.yields(threads) else k.NO
            self._machine.heap[d + k.LEX_RESETS] = k.YES if resets else k.NO
            clean = self._clean_states[d] = bits, resets
        return clean

    def _resets(self, d: int) -> bool:
        return self._clean(d)[1]

    def _numbers(self, terminals: set[int]) -> set[int]:
        """Terminals as the kernel has them: the end of the text stands for those that are ignored."""
        return {len(self._tables.terminals) - 1 if terminal == IGNORED else terminal for terminal in terminals}

    def _newline_fits(self, parser: int, column: int) -> bool:
        after = self._machine.call(k.FEED_TERMINAL, parser, self._tables.newline, column)
        return after != k.DEAD and self._parser_is_live(after)

    def _fits(self, parser: int, terminal: int) -> bool:
        after = parser if terminal == IGNORED else self._search.fed(parser, terminal)
        return after != k.DEAD and self._parser_is_live(after)

    def _parser_is_live(self, parser: int) -> bool:
        """Whether a text that may come after any clean lexeme leads from a parser to the end.

        There is one if the completion of the stack can be written for sure; else a search looks for it.
        """
        path: dict[int, Step] = {}
        current = parser
        while (verdict := self._known_of(current)) == 0:
            step = self._first_step(current) if len(path) < LONGEST else None
            if step is None or step[1] in path:
                break
            path[current] = step
            current = step[1]
        if verdict == 0:
            verdict = self._searched(current)
        if verdict == k.YES:
            for passed, (text, after) in reversed(path.items()):
                self._machine.heap[passed + k.PARSER_LIVE] = k.YES
                self._keep(passed, text, after)
        elif path:  # that completion has failed, others may not
            verdict = self._searched(parser)
        return verdict == k.YES

    def _known_of(self, parser: int) -> int:
        """YES or NO; 0 if the parser's liveness is not known yet."""
        self._prepare(parser, 0)
        machine = self._machine
        if machine.heap[parser + k.PARSER_LIVE] == 0:
            machine.live(machine.call(k.FRESH, parser))  # which says so if it is
        return int(machine.heap[parser + k.PARSER_LIVE])

    def _searched(self, parser: int) -> int:
        starts = self._search.beginnings(parser)
        completing, _ = self._search.find(starts, self._is_known_live)
        for config, text in starts.items():
            if completing is not None and completing.startswith(text) and (step := self._completions.of_config(config)):
                self._keep(parser, text + step[0], step[1])
        verdict = k.NO if completing is None else k.YES
        self._machine.heap[parser + k.PARSER_LIVE] = verdict
        return verdict

    def _keep(self, parser: int, text: str, after: int) -> None:
        """Keep a step for a parser; where proofs tell what is live, only once one is kept for the parser after it."""
        if self._machine.heap[k.H_PROVED] == 0 or after == END or self._find_step(after):
            self._completions.keep_parser(parser, text, after)

    def _find_step(self, parser: int) -> Step | None:
        """A step for a parser that proofs show to be live; see `ProvedCompletions`."""
        return self._proved.find(parser)

    def _first_step(self, parser: int) -> Step | None:
        """The parser after the first terminal of its completion, and a word; None if that cannot be read for sure."""
        return self._completions.by_terminal(parser, next(self.stacks.terminals(self._machine.parser(parser)[0]), -1))

    # --- completions ---
    def complete(self, config: int) -> str | None:
        """A short text after which the configuration may end; None if there is none, or none was found.

        The shorter of what a search finds and of the step that is kept.
        """
        searched, _ = self._search.find({config: ""}, self._ends)
        texts = [text for text in (searched, self._completions.complete(config)) if text is not None]
        return min(texts, key=lambda text: len(text.encode()), default=None)

    def bound(self, config: int) -> int | None:
        """Bytes of what `complete` writes, or more: those of the step that is kept. None if nothing is written."""
        length = self._completions.length(config)
        if length is None and (text := self.complete(config)) is not None:
            length = self._completions.choose(config, text)
        return length

    def search_far(self, config: int) -> bool:
        """Whether a long search finds a text that completes a configuration which was given up."""
        text, _ = self._search.find({config: ""}, self._is_known_live, FAR_EFFORT)
        self.undecided -= text is not None
        return text is not None
