"""Where a text that goes on is cut for certain: the last border of pretokens that is there whatever follows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from structgen.core.tokenization.pretokens import Pretokens

FIRST_WINDOW = 64
"""Characters at a text's end in which a border is looked for first; if there is none, in four times as many."""


def last_border(borders: Pretokens, text: str) -> tuple[int, frozenset[int]]:
    """How many characters stand before the last border that is certain, and the states in front of it.

    The start of the text, 0 and the state 0, is certain.
    """
    classes = borders.classes_of(np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.int64))
    size = FIRST_WINDOW
    while True:
        first = max(0, len(text) - size)
        result = _last_in(borders.steps, classes[first:], is_start=not first)
        if result is not None:
            return first + result[0], result[1]
        if not first:
            return 0, frozenset({0})
        size *= 4


def _last_in(
    steps: NDArray[np.int32], classes: NDArray[np.int64], *, is_start: bool
) -> tuple[int, frozenset[int]] | None:
    """The same in the end of a text, of whose beginning nothing is known but where it is the start.

    States in front that are only guessed do no harm where all of them go on alike after the border.
    """
    count = len(classes)
    before = np.zeros((count + 1, len(steps)), bool)  # states that may stand in front of each character
    before[0, 0 if is_start else slice(None)] = True
    for number, kind in enumerate(classes):
        targets = steps[before[number]][:, : 1 if is_start and not number else 2, kind]
        before[number + 1, targets[targets >= 0]] = True
    readable = np.ones((count + 1, len(steps)), bool)  # states from which the text can be read to its end
    for number in range(count - 1, -1, -1):
        targets = steps[:, :, classes[number]]
        readable[number] = ((targets >= 0) & readable[number + 1][targets]).any(axis=1)
    for number in range(count, 0, -1):
        states = np.flatnonzero(before[number])
        if not len(states):  # a character of which it is not known how it is cut
            continue
        columns = slice(None) if number == count else slice(classes[number], classes[number] + 1)
        targets = steps[states][:, :, columns]
        alive = targets >= 0
        if number < count:
            alive &= readable[number + 1][targets]
        following = np.unique(np.where(alive, targets, -1)[alive[:, 1].any(axis=1), 1], axis=0)
        if not alive[:, 0].any() and (is_start or len(following) == 1):
            return number, frozenset(states.tolist())
    return None
