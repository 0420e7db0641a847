"""What decoders and servers see of a constraint: a compiled grammar, and matchers of it. Both machines provide it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from structgen.vocabulary.vocabulary import Vocabulary


class Matcher(Protocol):
    """One output in progress; what the methods promise stands at ``structgen.engines.json.matcher.GrammarMatcher``."""

    def fill_next_token_bitmask(self, bitmask: npt.NDArray[np.int32], index: int = 0) -> None:
        """Write the mask of the next token, end of sequence included, into a row of ``bitmask``."""
        ...

    def accept_token(self, token_id: int) -> bool:
        """Advance by a token; False, and nothing changes, if it is not allowed."""
        ...

    def accept_bytes(self, data: bytes) -> bool:
        """Advance by text as one step; False, and nothing changes, if it is not allowed."""
        ...

    def rollback(self, steps: int = 1) -> None:
        """Undo the last steps."""
        ...

    def fork(self) -> Matcher:
        """An independent matcher in the same state, which can be rolled back as far."""
        ...

    def copy(self) -> Matcher:
        """An independent matcher in the same state, without the history."""
        ...

    def reset(self) -> None:
        """Back to the start of the text."""
        ...

    def is_accepting(self) -> bool:
        """Whether the text may stop here."""
        ...

    def is_terminated(self) -> bool:
        """Whether the end of sequence was accepted."""
        ...

    def next_bytes(self) -> npt.NDArray[np.bool_]:
        """Which bytes may come next, bool[256]."""
        ...

    def forced_bytes(self) -> bytes:
        """The longest text that every completion starts with (empty where the text may stop)."""
        ...

    def shortest_completion(self) -> bytes:
        """A short text that completes the output.

        Raises:
            CompletionTooLongError: it would need more characters, items or members than are written.
        """
        ...

    def state_key(self, *, own: bool = False) -> Hashable:
        """Equal for matchers of one grammar in the same state; None where that cannot be told.

        With ``own``, only states of this matcher are compared, between which it was not rolled back.
        """
        ...

    @property
    def stats(self) -> dict[str, int]:
        """Counts of what budgets gave up; all zero where masks are exact."""
        ...


class Grammar(Protocol):
    """A constraint compiled for a vocabulary: immutable, shared by its matchers."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens that masks are over."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Bytes of its own arrays."""
        ...

    def matcher(self) -> Matcher:
        """A matcher at the start of the text."""
        ...
