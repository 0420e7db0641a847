"""Sequences that are read after two prompts: what the model says after one, pushed away from what it says after the
other.

Whoever writes sees one sequence with one distribution: schedulers, drafts and samplers work as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from structgen.generation.models.model_runner import Part, RaggedReader, Reading
from structgen.generation.models.threads import share_turn
from structgen.generation.sampling import to_numpy

MARK = "\0guided "
LogProbs = npt.NDArray[np.float64]


def log_softmax(logits: Any) -> LogProbs:
    """Log-probabilities [..., V] of logits."""
    values = to_numpy(logits).astype(np.float64)
    values -= values.max(axis=-1, keepdims=True)
    return np.asarray(values - np.log(np.exp(values).sum(axis=-1, keepdims=True)))


def pushed(given: LogProbs, other: LogProbs, scale: float) -> LogProbs:
    """scale · given + (1 - scale) · other, not renormalised; what neither can write stays so."""
    with np.errstate(invalid="ignore"):
        result = other + scale * (given - other)
    result[np.isneginf(given) & np.isneginf(other)] = -np.inf
    return np.asarray(result)


@dataclass(slots=True)
class _Pair:
    """A sequence after the prompt, and its other one.

    Attributes:
        left: tokens of the prompt that the sequence does not hold yet.
        other: number of the sequence after the other prompt.
        waiting: what that one has to read before anything new.
        before: how much of ``waiting`` the last call read.
    """

    left: int
    other: int
    waiting: list[int] = field(default_factory=list)
    before: int = 0


class GuidedSequences:
    """A ``RaggedReader`` of guided sequences. Each takes two sequences of the reader that it wraps.

    Args:
        reader: of the model.
        model: whose turns its calls take.
        scale: 1 is the prompt alone, 0 the other one.
    """

    def __init__(self, reader: RaggedReader, model: Any, scale: float) -> None:
        self._reader, self._scale = reader, scale
        self._requests: WeakValueDictionary[str, Any] = WeakValueDictionary()  # by their salts
        self._number = 0
        self._pairs: dict[int, _Pair] = {}
        self.reads_apart, self.shares_prefixes = reader.reads_apart, reader.shares_prefixes
        self.max_sequences = None if reader.max_sequences is None else max(1, reader.max_sequences // 2)
        share_turn(self, model)

    def expecting(self, requests: Iterable[Any]) -> Iterator[Any]:
        """Requests whose sequences are known by their ``salt``, which is made the request's own from when it is taken:
        they begin with its ``prompt`` and are guided away from the one that it is ``without``."""
        for request in requests:
            if request is not None:
                self._number += 1
                request.salt = f"{request.salt}{MARK}{self._number}"
                self._requests[request.salt] = request
            yield request

    @property
    def token_bytes(self) -> int:
        """See ``RaggedReader.token_bytes``."""
        return 2 * self._reader.token_bytes

    @property
    def bytes(self) -> int:
        """See ``RaggedReader.bytes``."""
        return self._reader.bytes

    @property
    def max_bytes(self) -> int | None:
        """See ``RaggedReader.max_bytes``."""
        return self._reader.max_bytes

    def open(self, tokens: Sequence[int], salt: str = "") -> tuple[int, int]:
        """See ``RaggedReader.open``; ``salt``: of a request that was expected."""
        prompt, other = self._requests[salt].prompt, self._requests[salt].without
        sequence, held = self._reader.open(tokens, _shared(salt))
        text = [*other, *tokens[len(prompt) : held]]
        other_sequence, other_held = self._reader.open(text, _shared(salt))
        self._pairs[sequence] = _Pair(len(prompt) - held, other_sequence, text[other_held:])
        return sequence, held

    def read(self, parts: Sequence[Part]) -> Reading:
        """See ``RaggedReader.read``: in one call for all sequences and their other ones. The logits [N, V] are guided
        ones, float64; of a piece of a prompt, whose logits nobody looks at, the sequence's own."""
        both, numbers = list(parts), dict[int, int]()
        for part in parts:
            pair = self._pairs[part.sequence]
            new = len(part.tokens) - max(0, pair.left)
            if new >= 0:  # the prompt is read to its end
                numbers[part.sequence] = len(both)
                both.append(_other_part(pair, part, new))
        reading = self._reader.read(both)
        for sequence in numbers:
            self._pairs[sequence].waiting = []
        logits, starts = list[LogProbs](), list[int]()
        for number, part in enumerate(parts):
            count = reading.counts[number]
            after = _lines(reading, number, both)
            if part.sequence in numbers:
                other = _lines(reading, numbers[part.sequence], both)
                size = min(len(after), len(other) - (0 if part.last_only else self._pairs[part.sequence].before))
                after[len(after) - size :] = pushed(after[len(after) - size :], other[len(other) - size :], self._scale)
            if part.parents is None:
                self._pairs[part.sequence].left -= count
            starts.append(sum(map(len, logits)))
            logits.append(after)
        return Reading(np.concatenate(logits), starts, list(reading.counts[: len(parts)]))

    def keep(self, sequence: int, kept: Sequence[int]) -> None:
        """See ``RaggedReader.keep``."""
        pair = self._pairs[sequence]
        pair.left -= len(kept)
        self._reader.keep(sequence, kept)
        self._reader.keep(pair.other, [*range(pair.before), *(pair.before + index for index in kept)])

    def drop(self, sequence: int) -> None:
        """See ``RaggedReader.drop``."""
        self._reader.drop(sequence)
        self._reader.drop(self._pairs.pop(sequence).other)

    def remember(self, sequence: int, salt: str = "") -> None:
        """See ``RaggedReader.remember``."""
        self._reader.remember(sequence, _shared(salt))
        self._reader.remember(self._pairs[sequence].other, _shared(salt))

    def known(self, tokens: Sequence[int], salt: str = "") -> int:
        """See ``RaggedReader.known``."""
        return self._reader.known(tokens, _shared(salt))

    def kept_texts(self, salt: str = "") -> list[Sequence[int]]:
        """See ``RaggedReader.kept_texts``."""
        return self._reader.kept_texts(_shared(salt))

    def forget_prefixes(self, until: int = 0) -> None:
        """See ``RaggedReader.forget_prefixes``."""
        self._reader.forget_prefixes(until)


def _shared(salt: str) -> str:
    """Whom prefixes are shared with."""
    return salt.partition(MARK)[0]


def _other_part(pair: _Pair, part: Part, new: int) -> Part:
    """What the other sequence reads along with a part: what it waits for, and the ``new`` tokens after the prompt."""
    before = pair.before = len(pair.waiting)
    tokens = [*pair.waiting, *part.tokens[len(part.tokens) - new :]]
    if part.parents is None:
        return Part(pair.other, tokens, None, part.last_only)
    parents = [before + parent if parent >= 0 else before - 1 for parent in part.parents]
    return Part(pair.other, tokens, [*range(-1, before - 1), *parents], part.last_only)


def _lines(reading: Reading, number: int, parts: Sequence[Part]) -> LogProbs:
    """Log-probabilities [n, V] after the tokens of a part."""
    start = reading.starts[number]
    size = 1 if parts[number].last_only else len(parts[number].tokens)
    return log_softmax(reading.logits[start : start + size])
