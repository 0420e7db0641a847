"""Guesses of continuations, so that several prefixes of one text are read in one call. They never change a target."""

from __future__ import annotations

from collections.abc import Sequence


class PromptCopy:
    """What followed the last tokens where they occurred in the prompt: examples are often copied, at least in part.

    Args:
        prompt_ids: the prompt.
        length: most tokens of a guess.
        match: tokens that must agree.
    """

    def __init__(self, prompt_ids: Sequence[int], length: int = 8, match: int = 3) -> None:
        self._prompt, self._length, self._match = list(prompt_ids), length, match
        self._after: dict[tuple[int, ...], int] = {}
        for end in range(match, len(self._prompt)):  # the last occurrence wins
            self._after[tuple(self._prompt[end - match : end])] = end

    def __call__(self, prefix: Sequence[int]) -> Sequence[int]:
        """The guess after a prefix of the text; empty for none. O(match)."""
        last = [*self._prompt[len(self._prompt) - self._match :], *prefix][-self._match :]
        start = self._after.get(tuple(last))
        return () if start is None else self._prompt[start : start + self._length]
