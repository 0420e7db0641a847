"""Which tokens may follow so that a tokenizer would spell the text the same: encode(decode(t)) = t.

The tokens of a text are those of its pretokens, each merged by itself. So before each token there is a border, or the
pair with the token before it is not blocked. Which of the two often is known later, so that a position in a text holds
*guesses*: states of the automaton of borders. A token is canonical if a guess survives it, and a text may end where
one of them may.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from structgen.core.bounded_cache import BoundedCache
from structgen.core.regex.charset import CharSet
from structgen.core.regex.ecma_ast import Node
from structgen.core.tokenization.last_border import last_border
from structgen.core.tokenization.merges import BlockedPairs, Merges
from structgen.core.tokenization.names import NAMELESS, NamesInText, Pending
from structgen.core.tokenization.pretokens import pretokens
from structgen.core.tokenization.shapes import TokenShapes
from structgen.core.vocabulary.sorted_tokens import SortedTokens
from structgen.errors import TokenizerError

MAX_BYTES = 64 << 20
START, WHOLE, NONE = 0, -2, -1
"""Nodes: nothing of a pretoken yet; one that is a single token; one that is spelled as no token is."""


@dataclass(frozen=True)
class BytePairEncoding:
    """What a tokenizer with byte pair encoding does with a text.

    Attributes:
        tokens: bytes of each id that merging makes; empty for all others.
        merges: of these ids.
        patterns: what it cuts texts by, one within the pieces of the other.
        takes_whole: whether a pretoken that is a token is that token, whatever merging makes of it.
        added: ids that are cut out of a text before all else, by their names.
        spelled: those of them that are text themselves.
        unknown: characters that are never written, since where texts with them are cut is not known.
    """

    tokens: Sequence[bytes]
    merges: Merges
    patterns: tuple[Node, ...]
    takes_whole: bool = False
    added: Mapping[bytes, int] = field(default_factory=dict)
    spelled: frozenset[int] = frozenset()
    unknown: CharSet = ()


@dataclass(frozen=True, slots=True)
class Guess:
    """One way to set the borders so far.

    Attributes:
        state: of the automaton of borders.
        cut: the beginning of a character; ``border``: whether a border stands before it.
        node: where the tokens of the pretoken stand among the spellings that are never used.
    """

    state: int
    cut: bytes = b""
    border: bool = False
    node: int = START


@dataclass(frozen=True, slots=True)
class SpelledSoFar:
    """After some tokens of a text, all of them canonical.

    Attributes:
        last: the last token; -1: there is none, or none that could merge with what follows.
        guesses: at least one.
        pending: beginnings of names with which the text ends.
    """

    last: int = -1
    guesses: frozenset[Guess] = frozenset({Guess(0)})
    pending: Pending = NAMELESS


AT_START = SpelledSoFar()


class CanonicalSpelling:
    """Canonical spelling in one vocabulary. Safe for several threads.

    Args:
        encoding: of the tokenizer.
        size: V, the width of masks.
        ends: ids without text, before which a text ends.

    Attributes:
        texts: bytes of each id that is text.
        longest: bytes of the longest token that is ever written.
    """

    def __init__(self, encoding: BytePairEncoding, size: int, ends: Iterable[int]) -> None:
        self.size, tokens = size, encoding.tokens
        self._words = -(-size // 32)
        self._borders = pretokens(encoding.patterns, encoding.unknown)
        self._blocked, self._shapes = BlockedPairs(tokens, encoding.merges), TokenShapes(tokens, self._borders)
        self._takes_whole, self._spelled = encoding.takes_whole, encoding.spelled
        spelled = {token: name for name, token in encoding.added.items() if token in encoding.spelled}
        self.texts = [spelled.get(token, text) for token, text in enumerate(tokens)]
        self._names = NamesInText(self.texts, encoding.added, encoding.spelled)
        written = sorted(self._written(), key=self._blocked.is_made.__getitem__)
        self._ids = {self.texts[token]: token for token in written}
        self.longest = max(map(len, self._ids), default=1)
        self._ends = frozenset(ends) | encoding.spelled
        self._nodes, self._unused = _unused_spellings(self._blocked.spelled if encoding.takes_whole else {})
        self._rows: BoundedCache[SpelledSoFar, NDArray[np.int32]] = BoundedCache(MAX_BYTES, _bytes)
        self._pairs: BoundedCache[int, NDArray[np.bool_]] = BoundedCache(MAX_BYTES, _bytes)
        self._live: BoundedCache[tuple[int, bytes, bool], NDArray[np.bool_]] = BoundedCache(MAX_BYTES, _bytes)

    @cached_property
    def by_text(self) -> SortedTokens:
        """Its tokens, by their texts."""
        return SortedTokens(self.texts)

    def row(self, position: SpelledSoFar) -> NDArray[np.int32]:
        """int32[ceil(V / 32)], the tokens that may follow; not to be written to. O(V) for a position that is new."""
        cached = self._rows.get(position)
        return self._rows.put(position, self._packed(position)) if cached is None else cached

    def after(self, position: SpelledSoFar, token: int) -> SpelledSoFar | None:
        """After one more token; None: it is not canonical."""
        if self._names.completes(position.pending, token):
            return None
        if token in self._ends:
            pending = self._names.after(position.pending, token) if token in self._spelled else NAMELESS
            return SpelledSoFar(pending=pending) if self.may_end(position) else None
        guesses = frozenset(guess for before in position.guesses for guess in self._moved(before, position.last, token))
        return SpelledSoFar(token, guesses, self._names.after(position.pending, token)) if guesses else None

    def beginning(self, text: bytes) -> list[int]:
        """Tokens that are ever written and that a text begins with, the longest first."""
        result = (self._ids.get(text[:size]) for size in range(min(len(text), self.longest), 0, -1))
        return [token for token in result if token is not None]

    def may_end(self, position: SpelledSoFar) -> bool:
        """Whether a canonical text may end."""
        return position.last < 0 or any(
            not guess.cut and guess.node not in self._unused and self._borders.may_end[guess.state]
            for guess in position.guesses
        )

    def spells(self, tokens: Iterable[int]) -> bool:
        """Whether these are the tokens of their text."""
        position: SpelledSoFar | None = AT_START
        for token in tokens:
            if position is None or not self.row(position)[token >> 5] >> (token & 31) & 1:
                return False
            position = self.after(position, token)
        return position is not None and self.may_end(position)

    def settled(self, tokens: Sequence[int]) -> tuple[int, SpelledSoFar]:
        """How many tokens of a text that goes on are its tokens whatever follows, and where the text stands after them.

        Args:
            tokens: what the tokenizer makes of the text so far.

        Raises:
            TokenizerError: they are not cut where the tokenizer's expression cuts the text.
        """
        first = next((n for n in range(len(tokens), 0, -1) if self._is_cut_out(tokens[n - 1])), 0)
        texts = [self.texts[token] for token in tokens[first:]]
        text = b"".join(texts).decode(errors="replace")
        characters, states = last_border(self._borders, text)
        count, left = first, len(text[:characters].encode())
        while left > 0:
            left -= len(texts[count - first])
            count += 1
        if left:
            raise TokenizerError(f"The tokenizer spells {text[:characters][-40:]!r} unlike its expression says")
        pending = NAMELESS
        for token in tokens[max(first - 1, count - self._names.longest, 0) : count]:
            pending = self._names.after(pending, token) if token < len(self.texts) else NAMELESS
        if count == first:
            return count, SpelledSoFar(pending=pending)
        return count, SpelledSoFar(tokens[count - 1], frozenset(map(Guess, states)), pending)

    def _is_cut_out(self, token: int) -> bool:
        """Whether it stands apart in any text: it is the name of an added token, or no text."""
        return token in self._ends or token >= len(self.texts) or not self.texts[token]

    def _packed(self, position: SpelledSoFar) -> NDArray[np.int32]:
        made = self._blocked.is_made
        apart, joined = np.zeros(len(made), bool), np.zeros(len(made), bool)
        for guess in position.guesses:
            if self._may_have_border(guess, position.last):
                apart |= self._readable(guess.state, b"", True)
            if guess.node != WHOLE:
                joined |= self._readable(guess.state, guess.cut, guess.border)
        whole = self._wholes(position, apart, joined)
        if position.last >= 0:
            joined &= ~self._after(position.last)
        allowed = ((apart | joined) & made) | whole
        bits = np.zeros(max(32 * self._words, len(allowed)), bool)
        bits[: len(allowed)] = allowed
        bits[[token for token in self._ends if token < self.size]] = self.may_end(position)
        bits[self._names.completing(position.pending)] = False
        bits = bits[: 32 * self._words]
        bits[self.size :] = False
        return np.packbits(bits, bitorder="little").view(np.int32)

    def _written(self) -> list[int]:
        """Tokens that are ever written: what merging makes, whole pretokens, and added text."""
        made = self._blocked.is_made
        return [
            token
            for token, text in enumerate(self.texts)
            if text and (token in self._spelled or self._takes_whole or made[token])
        ]

    def _wholes(self, position: SpelledSoFar, apart: NDArray[np.bool_], joined: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Tokens that merging never makes, where a pretoken begins."""
        unmade = ~self._blocked.is_made
        if not self._takes_whole:
            return np.zeros(len(unmade), bool)
        return unmade & (apart | joined if position.last < 0 else apart)

    def _moved(self, guess: Guess, last: int, token: int) -> Iterable[Guess]:
        made = bool(self._blocked.is_made[token])
        begins = last < 0
        candidates = [True] * self._may_have_border(guess, last)
        if guess.node != WHOLE and (begins or (made and not self._after(last)[token])):
            candidates.append(False)
        for border in candidates:
            result = self._shapes.walk(guess.state, guess.cut, border or guess.border, token)
            if result is not None and (made or (self._takes_whole and not result[1])):
                node = self._nodes.get((START if border or begins else guess.node, token), NONE)
                yield Guess(*result, node if made else WHOLE)

    def _may_have_border(self, guess: Guess, last: int) -> bool:
        return last >= 0 and not guess.cut and guess.node not in self._unused

    def _after(self, token: int) -> NDArray[np.bool_]:
        """See ``BlockedPairs.after``."""
        cached = self._pairs.get(token)
        return self._pairs.put(token, self._blocked.after(token)) if cached is None else cached

    def _readable(self, state: int, cut: bytes, border: bool) -> NDArray[np.bool_]:
        """bool[V]: the tokens that the automaton can read."""
        key = state, cut, border
        cached = self._live.get(key)
        if cached is not None:
            return cached
        if not cut:
            return self._live.put(key, self._shapes.live(state, border))
        result = np.zeros(len(self._blocked.is_made), bool)
        result[[token for token in self._shapes.leads if self._shapes.walk(state, cut, border, token)]] = True
        return self._live.put(key, result)


def _bytes(array: NDArray[np.generic]) -> int:
    return array.nbytes


def _unused_spellings(spelled: Mapping[int, Sequence[int]]) -> tuple[dict[tuple[int, int], int], set[int]]:
    """A tree of the spellings that whole pretokens never have, and its ends."""
    nodes: dict[tuple[int, int], int] = {}
    ends: set[int] = set()
    for tokens in spelled.values():
        node = START
        for token in tokens:
            node = nodes.setdefault((node, token), len(nodes) + 1)
        ends.add(node)
    return nodes, ends
