"""Texts of an automaton with bounds on their characters, compiled for a vocabulary.

A bound of 10,000 characters is 10,000 times the states as an automaton. Here the state is one of the automaton without
bounds, and the number of characters so far; `CountedMachine` has all that does not depend on how large the bounds are.
"""

from __future__ import annotations

from typing import Any

from structgen.core.engines.counted.lengths import CharacterCounts
from structgen.core.engines.counted.machine import CountedMachine, machine_of
from structgen.core.engines.counted.matcher import CountedMatcher
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError


class CountedTexts:
    """Texts of an automaton that have from ``least`` to ``most`` characters.

    Attributes:
        lengths: the automaton, and what completes its states.
        least, most: the bounds; ``most`` None: any number.
        vocabulary: the tokens.
        machine: what is shared with other bounds.

    Args:
        lengths: of an automaton without the empty text, whose bytes are all tokens.

    Raises:
        EmptyLanguageError: no text has as many characters.
    """

    completions_are_shortest = False
    is_outdated = False
    machine: CountedMachine

    def __init__(self, lengths: CharacterCounts, least: int, most: int | None, vocabulary: Vocabulary) -> None:
        assert lengths.are_spelled_by(vocabulary), "a byte of the texts is no token"
        self.lengths, self.least, self.most, self.vocabulary = lengths, least, most, vocabulary
        if not lengths.complete(0, least, least + lengths.regular if most is None else most):
            raise EmptyLanguageError(f"no text has from {least:,} to {most} characters")
        self.machine = machine_of(lengths, vocabulary)

    def __getstate__(self) -> dict[str, Any]:
        """All but the machine."""
        return {name: value for name, value in vars(self).items() if name != "machine"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The same grammar with the machine of this process."""
        vars(self).update(state)
        self.machine = machine_of(self.lengths, self.vocabulary)

    def matcher(self) -> CountedMatcher:
        """See `Grammar.matcher`. O(1)."""
        return CountedMatcher(self)

    def last_bytes(self) -> int:
        """See `Grammar.last_bytes`."""
        return self.machine.last_bytes

    def normal_form(self) -> None:
        """See `Grammar.normal_form`: there is none."""

    @property
    def memory_bytes(self) -> int:
        """Bytes of the automaton; the machine is shared."""
        return self.lengths.dfa.held_bytes

    def bounds(self, count: int) -> tuple[int, int]:
        """The characters that must come, and that may, after so many: as far as they can matter to one token."""
        far = self.machine.far
        return min(max(self.least - count, 0), far), far if self.most is None else min(self.most - count, far)
