"""Models that read sequences apart: what a scheduler needs, whose sequences come and go at every step.

One call reads parts of many sequences: the next token of one, a piece of another's prompt, a tree of drafts after a
    third.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from structgen.generation.models.language_model import LanguageModel, Logits

NO_DRAFTS = "With deterministic=True every token is read in a call of its own, so that drafts save nothing; leave them."


@dataclass(frozen=True, slots=True)
class Part:
    """Tokens of one sequence that are read in a call.

    Attributes:
        sequence: its number, of ``RaggedReader.open``.
        tokens: what is read, at least one.
        parents: index of each token's parent among them, smaller than its own, or -1 for what follows the sequence;
            None: a chain, each token after the one before. Trees are followed by ``keep``.
        last_only: whether only the logits after the last token are wanted.
    """

    sequence: int
    tokens: Sequence[int]
    parents: Sequence[int] | None = None
    last_only: bool = True


@dataclass(frozen=True, slots=True)
class Reading:
    """What a call gave.

    Attributes:
        logits: [N, V], after the tokens that logits were wanted of, part by part.
        starts: the first sequence of ``logits`` of each part.
        counts: how many of each part's tokens were read: all, or fewer where sequences cannot be read apart; a part
            that was not read whole has no logits.
    """

    logits: Logits
    starts: Sequence[int]
    counts: Sequence[int]


class RaggedReader(Protocol):
    """Reads parts of sequences, and keeps what it has read of each."""

    @property
    def reads_apart(self) -> bool:
        """Whether sequences share nothing, so that any of them may be read at any step. Else sequences whose texts were
        read whole in one call are read together in every call from then on; one whose text is read in pieces is
        alone."""
        ...

    @property
    def shares_prefixes(self) -> bool:
        """Whether sequences can begin with what others have read."""
        ...

    @property
    def token_bytes(self) -> int:
        """What a token of a sequence takes; 0 where it is not known."""
        ...

    @property
    def bytes(self) -> int:
        """What all sequences take, unused room included."""
        ...

    @property
    def max_bytes(self) -> int | None:
        """What all sequences may take: a call that needs more raises ``MemoryError``. None: no limit is known."""
        ...

    @property
    def max_sequences(self) -> int | None:
        """How many sequences may be open at once; None: any number."""
        ...

    def open(self, tokens: Sequence[int], salt: str = "") -> tuple[int, int]:
        """A new sequence that begins with the longest known prefix of ``tokens``, at most all but the last: its number,
        and how many tokens it holds. Prefixes are shared under equal ``salt`` only."""
        ...

    def remember(self, sequence: int, salt: str = "") -> None:
        """Let sequences that are opened later begin with what this one holds."""
        ...

    def known(self, tokens: Sequence[int], salt: str = "") -> int:
        """How many tokens a sequence that is opened now would hold."""
        ...

    def kept_texts(self, salt: str = "") -> list[Sequence[int]]:
        """The tokens of all that is kept for sequences to come. From any thread."""
        ...

    def forget_prefixes(self, until: int = 0) -> None:
        """Give back what is kept for sequences to come, the least recently used first, as long as ``bytes`` is more
        than ``until``."""
        ...

    def read(self, parts: Sequence[Part]) -> Reading:
        """Append the parts' tokens to their sequences, one part a sequence, in one call of the model where it can
        be."""
        ...

    def keep(self, sequence: int, kept: Sequence[int]) -> None:
        """Of the tokens that the last call appended to a sequence, keep these (indices, ascending)."""
        ...

    def drop(self, sequence: int) -> None:
        """Forget a sequence."""
        ...


class RaggedLanguageModel(LanguageModel, Protocol):
    """A language model that reads sequences apart by itself."""

    def ragged_reader(self) -> RaggedReader:
        """Its reader: one a model."""
        ...
