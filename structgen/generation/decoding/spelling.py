"""One output in canonical spelling: its tokens are those that the tokenizer makes of its text.

The mask of each token is the constraint's and that of the spelling. A token that both allow may still lead nowhere: a
constraint may want a text that the tokenizer spells in other tokens. So what is kept is a *witness*, a text that
completes the output and whose canonical spelling goes on from the tokens so far, within the budget. A token is taken
only if there is a witness after it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from structgen.core.engines.protocols import Matcher
from structgen.core.tokenization.canonical import AT_START, CanonicalSpelling, SpelledSoFar
from structgen.core.vocabulary.special_tokens import LEAD, pieces, stand_in_length
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError
from structgen.generation.decoding.closing_budget import Closer, shared_end, shortest_completion
from structgen.generation.decoding.few_tokens import allow_all
from structgen.generation.sampling import allowed_token_ids

MOST_TRIED = 256
"""Tokens that are looked at in search of a witness where the constraint's own completion is none: mostly few are."""
_NEVER = 1 << 40


@dataclass(slots=True)
class _Open:
    """A text's end that is being spelled."""

    position: SpelledSoFar
    remaining: int
    candidates: Iterator[tuple[int, SpelledSoFar, int]]
    candidate: tuple[int, SpelledSoFar, int] | None = None


class CanonicalSpeller:
    """The canonical spelling of texts that go on from where an output stands: what ``Speller`` is asked, of the only
    spelling that there is. What was found of a text's end is kept while texts end alike.

    Attributes:
        position: after the tokens so far.

    Args:
        spelling: of the tokenizer.
        vocabulary: of the grammar, with the special tokens that it names.
        position: where the output begins.
    """

    def __init__(self, spelling: CanonicalSpelling, vocabulary: Vocabulary, position: SpelledSoFar = AT_START) -> None:
        self.position = position
        self._spelling, self._size = spelling, vocabulary.size
        self._text = b""
        # of the last n bytes, from each position: how many tokens, and the first of them
        self._found: list[dict[SpelledSoFar, tuple[int, int]]] = [{}]

    def narrow(self, bitmask: NDArray[np.int32], position: SpelledSoFar | None = None) -> None:
        """Take out of a mask, int32 [1, ceil(V / 32)], what is not canonical here, or at a ``position``."""
        bitmask[0] &= self._spelling.row(self.position if position is None else position)

    def after(self, position: SpelledSoFar, token: int) -> SpelledSoFar | None:
        """See ``CanonicalSpelling.after``."""
        return self._spelling.after(position, token)

    def follow(self, token: int) -> None:
        """A token is taken.

        Raises:
            GenerationError: it is not canonical.
        """
        position = self._spelling.after(self.position, token)
        if position is None:
            raise GenerationError(f"Token {token} is not canonical here, and was allowed. Please report this as a bug.")
        self.position = position

    def fewest(self, text: bytes) -> list[int] | None:
        """The tokens of a text; None: it has no canonical spelling from here."""
        if self._count(self.position, text) >= _NEVER:
            return None
        tokens, position, remaining = list[int](), self.position, len(text)
        while remaining:
            token = self._found[remaining][position][1]
            following = self._spelling.after(position, token)
            assert following is not None
            tokens.append(token)
            position, remaining = following, remaining - self._bytes(text, remaining, token)
        return tokens

    def fits(self, text: bytes, budget: int) -> bool:
        """Whether it has a canonical spelling from here, in so many tokens."""
        return self.fits_from(self.position, text, budget)

    def fits_from(self, position: SpelledSoFar, text: bytes, budget: int) -> bool:
        """The same from another position."""
        return self._count(position, text) <= budget

    def _count(self, position: SpelledSoFar, text: bytes) -> int:
        """How many tokens spell a text; ``_NEVER``: none do."""
        shared = shared_end(self._text, text)
        del self._found[shared + 1 :]
        self._found += [{} for _ in range(len(text) - shared)]
        self._text = text
        cached = self._counted(position, len(text))
        stack = [] if cached is not None else [_Open(position, len(text), self._candidates(position, len(text)))]
        while stack:
            top = stack[-1]
            if top.candidate is None:
                top.candidate = next(top.candidates, None)
            if top.candidate is None:
                self._found[top.remaining][top.position] = _NEVER, -1
                stack.pop()
                continue
            token, following, remaining = top.candidate
            count = self._counted(following, remaining)
            if count is None:
                stack.append(_Open(following, remaining, self._candidates(following, remaining)))
            elif count >= _NEVER:
                top.candidate = None
            else:
                self._found[top.remaining][top.position] = count + 1, token
                stack.pop()
        count = self._counted(position, len(text))
        assert count is not None
        return count

    def _counted(self, position: SpelledSoFar, remaining: int) -> int | None:
        if not remaining:
            return 0 if self._spelling.may_end(position) else _NEVER
        result = self._found[remaining].get(position)
        return None if result is None else result[0]

    def _candidates(self, position: SpelledSoFar, remaining: int) -> Iterator[tuple[int, SpelledSoFar, int]]:
        """Canonical tokens with which the last ``remaining`` bytes may begin, the longest first."""
        text = self._text
        start = len(text) - remaining
        if text[start] == LEAD:
            special = next(pieces(text[start : start + stand_in_length(self._size)], self._size), None)
            candidates = [special] if isinstance(special, int) else []
        else:
            candidates = self._spelling.beginning(text[start : start + self._spelling.longest])
        for token in candidates:
            following = self._spelling.after(position, token)
            if following is not None:
                yield token, following, remaining - self._bytes(text, remaining, token)

    def _bytes(self, text: bytes, remaining: int, token: int) -> int:
        if text[len(text) - remaining] == LEAD:
            return stand_in_length(self._size)
        return len(self._spelling.texts[token])


class CanonicalCloser(Closer):
    """See ``Closer``; its plan is always a witness."""

    def __init__(self, matcher: Matcher, speller: CanonicalSpeller) -> None:
        super().__init__(matcher, speller)
        self._canonical = speller
        self._bitmask = allow_all(matcher.grammar.vocabulary)

    def closes(self, budget: int) -> bool:
        """Whether a witness is known that fits in so many tokens."""
        text = shortest_completion(self._matcher)
        if text is None or not self._canonical.fits(text, budget):
            return self._finds(budget) if self.plan is None else False
        self.plan = text
        return True

    def closes_after(self, token: int, budget: int) -> bool:
        """See ``Closer``; where neither completion is a witness, one is searched for."""
        return super().closes_after(token, budget) or self._finds(budget)

    def lacks_budget(self) -> bool:
        """See ``Closer``: of what has a canonical spelling."""
        text = shortest_completion(self._matcher)
        return text is None or self._canonical.fewest(text) is not None

    def check_spelled(self) -> None:
        """See ``Closer``.

        Raises:
            GenerationError: so it is.
        """
        if not self.lacks_budget():
            raise GenerationError(
                f"No canonical spelling was found for what the constraint allows, such as "
                f"{self._matcher.shortest_completion()[:60]!r}: the names of special tokens as text have none. "
                "Leave spelling out."
            )

    def _finds(self, budget: int) -> bool:
        """Search for a witness, breadth first, among the texts that go on with allowed canonical tokens."""
        speller, tokens = self._canonical, self._matcher.grammar.vocabulary.tokens
        ends = self._matcher.grammar.vocabulary.eos_token_ids
        queue, tried = deque([(self._matcher.copy(), speller.position, b"", budget)]), 0
        while queue:
            matcher, position, text, left = queue.popleft()
            for token in self._allowed(matcher, position) if left > 0 else ():
                following = speller.after(position, token)
                if token in ends or following is None:
                    continue
                if tried == MOST_TRIED:
                    return False
                tried += 1
                after = matcher.copy()
                after.accept_token(token)
                completion = shortest_completion(after)
                if completion is not None and speller.fits_from(following, completion, left - 1):
                    self.plan = text + tokens[token] + completion
                    return True
                queue.append((after, following, text + tokens[token], left - 1))
        return False

    def _allowed(self, matcher: Matcher, position: SpelledSoFar) -> list[int]:
        matcher.fill_next_token_bitmask(self._bitmask, 0)
        self._canonical.narrow(self._bitmask, position)
        ids: list[int] = allowed_token_ids(self._bitmask[0], matcher.grammar.vocabulary.size).tolist()
        return ids
