"""One row of a batch under a constraint: a matcher that follows whatever sequence it is shown."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from structgen.engines.protocols import Matcher


class Row:
    """The text that one row has written behind its prompt, and where its constraint stands.

    Attributes:
        matcher: at the end of the text, or of as much of it as the constraint allows.
    """

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self._taken: list[int] = []
        self._length = 0  # of the text; beyond what was taken once it is finished or dead

    def fork(self) -> Row:
        """An independent row in the same state."""
        other = Row(self.matcher.fork())
        other._taken, other._length = self._taken.copy(), self._length
        return other

    @property
    def is_finished(self) -> bool:
        """Whether the text has ended; what comes behind its end is padding."""
        return self.matcher.is_terminated()

    @property
    def is_overrun(self) -> bool:
        """Whether something was written behind its end."""
        return self.is_finished and self._length > len(self._taken)

    @property
    def is_dead(self) -> bool:
        """Whether the constraint does not allow the text (a draft that is about to be turned down)."""
        return self._length > len(self._taken) and not self.is_finished

    def follow(self, text: npt.NDArray[np.int64]) -> None:
        """Go to this text from wherever the row is: back to what they share, then on. O(tokens that differ), and one
        comparison of arrays where it is not the last text and a token."""
        taken = self._taken
        if len(text) != self._length + 1:
            shared = _shared(np.array(taken, np.int64), text)
            self.matcher.rollback(len(taken) - shared)
            del taken[shared:]
            self._length = shared
        for token in text[self._length :].tolist():
            if self._length == len(taken) and not self.matcher.is_terminated() and self._takes(token):
                taken.append(token)
            self._length += 1

    def _takes(self, token: int) -> bool:
        """Drafts may hold ids that the constraint's vocabulary does not have."""
        return 0 <= token < self.matcher.grammar.vocabulary.size and self.matcher.accept_token(token)


def _shared(one: npt.NDArray[np.int64], two: npt.NDArray[np.int64]) -> int:
    """How many tokens two texts begin alike in."""
    least = min(len(one), len(two))
    differ = np.flatnonzero(one[:least] != two[:least])
    return int(differ[0]) if len(differ) else least
