"""Texts drawn from a grammar: derivations, and words of its terminals."""

from __future__ import annotations

from collections.abc import Sequence

from structgen.core.answers.picking.picks import Picks
from structgen.core.answers.picking.readable import readable_steps, usual_words
from structgen.core.answers.texts.rules import GrammarRules
from structgen.core.regex.dfa import Dfa, shortest

WISHES = (1, 2, 3, 5, 8, 13)
"""Characters that a word of a terminal is wished to have."""
LONG = 64
"""Characters of one where bounds are looked for."""
_USUAL, _GAP = 0.7, 0.15


class TextDrawing:
    """Draws texts of a grammar. The first ones reach every rule, each on a route of its own.

    Args:
        picks: who chooses.
        size: about how many bytes optional parts may take.
        has_routes: whether rules that were not met are gone to.
    """

    def __init__(self, rules: GrammarRules, picks: Picks, size: int, *, has_routes: bool = True) -> None:
        self._rules, self.picks, self._size = rules, picks, size
        self._bodies = [sorted(alternatives, key=rules.cost) for alternatives in rules.bodies]
        self._unmet = {
            (number, body): None for number, alternatives in enumerate(self._bodies) for body in alternatives
        }
        self._has_routes = has_routes
        self._space = b"" if rules.gap is None else shortest(rules.gap) or b""

    def text(self) -> str:
        """One text. O(its derivation)."""
        route = self._route() if self._has_routes else {}
        written, todo = bytearray(), [(self._rules.start, self._size)]
        while todo:
            symbol, room = todo.pop()
            if symbol < 0:
                self._write(written, self._word(~symbol))
                continue
            body = route.pop(symbol, None) or self._chosen(symbol, room)
            self._unmet.pop((symbol, body), None)
            left = max(room - self._rules.cost(body), 0)
            share = left // max(sum(inner >= 0 for inner in body), 1)
            parts = [(inner, self._rules.cost((inner,)) + share) for inner in body]
            todo += reversed(parts)
        if self._rules.gap is not None and self.picks.chance("end", _GAP / 3):
            written += self._space
        return written.decode(errors="replace")

    def _chosen(self, symbol: int, room: int) -> tuple[int, ...]:
        """A rule that has room; the cheapest if none has."""
        bodies = self._bodies[symbol]
        fitting = sum(self._rules.cost(body) <= room for body in bodies)
        return bodies[self.picks.one(("rule", symbol), fitting)] if fitting > 1 else bodies[0]

    def _route(self) -> dict[int, tuple[int, ...]]:
        """GrammarRules to take at the nonterminals on the way to one that was not met yet."""
        if not self._unmet:
            return {}
        symbol, body = next(iter(self._unmet))
        return {symbol: body} | {owner: around for owner, around, _ in self._rules.path(symbol) if owner != symbol}

    # --- words ---
    def _write(self, written: bytearray, word: bytes) -> None:
        if self._space:
            is_joined = bool(written) and _is_wordy(written[-1]) and _is_wordy(word[0])
            if is_joined or self.picks.chance("gap", _GAP):
                written += self._space
        written += word

    def _word(self, terminal: int) -> bytes:
        dfa = self._rules.terminals[terminal].dfa
        usual = usual_words(dfa) if self.picks.manner == "readable" else ()
        if usual and self.picks.chance(("usual", terminal), _USUAL):
            return usual[self.picks.number(0, len(usual) - 1)].encode()
        return self._walked(dfa, terminal)

    def _walked(self, dfa: Dfa, terminal: int) -> bytes:
        """A walk through the automaton, ended on a shortest way when it is long enough."""
        wish = WISHES[self.picks.number(0, len(WISHES) - 1)]
        if self.picks.manner == "corners":
            wish = (0, LONG)[self.picks.one(("length", terminal), 2)]
        state, text = 0, bytearray()
        for _ in range(wish):
            steps: Sequence[tuple[int, int]] = readable_steps(dfa, state)
            if not steps:
                break
            byte, state = steps[self.picks.one(("byte", dfa.digest, state), len(steps))]
            text.append(byte)
        return bytes(text) + (shortest(dfa, state) or b"")


def _is_wordy(byte: int) -> bool:
    return chr(byte).isalnum() or byte == ord("_") or byte >= 0x80
