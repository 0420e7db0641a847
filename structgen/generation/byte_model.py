"""What a model says of the next byte of a text, whatever tokens it would spell it in.

A *cover* of a text is canonical tokens that spell all of it but for the last one, which goes beyond its end or up to
it: of its beginnings that are spelled to the end, each goes on with all tokens that begin with what is left. A text's
probability is the sum over its covers, so a text may end anywhere, within a token too. Only canonical tokens count:
the tokens that the tokenizer makes of some text. So it is the model's distribution over texts, restricted to these.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structgen.core.tokenization.canonical import AT_START, CanonicalSpelling, SpelledSoFar
from structgen.errors import GenerationError
from structgen.generation.models.prefix_reader import Prefix, make_reader
from structgen.generation.models.threads import turn_of
from structgen.options import check_count

if TYPE_CHECKING:
    from structgen.generation.decoding.prompts import Prompt
    from structgen.generation.prepared_model import PreparedModel

END = 256
"""Stands for the end of the text among bytes."""


@dataclass(frozen=True)
class NextBytes:
    """What may come after a text.

    Attributes:
        log_probs: float64[257], of each byte, and, last, of the end, given the text; they sum to 1 without ``lost``.
        lost: of what comes after the text, the probability of tokens that the tokenizer would not make there.
        log_prob: of the text, as the beginning of an answer.
    """

    log_probs: npt.NDArray[np.float64]
    lost: float
    log_prob: float


@dataclass(frozen=True, slots=True)
class _Spelled:
    """A beginning of the text in canonical tokens; ``log_probs``: of what comes next."""

    tokens: Prefix
    position: SpelledSoFar
    log_prob: float
    log_probs: npt.NDArray[np.float64]


class ByteModel:
    """A model with a prompt, asked for bytes. Not for several threads at once.

    Args:
        prepared: a ``Generator``.
        prompt: what it is asked; the text begins after it.
        max_bytes: that a text may have, and so tokens that are kept.

    Raises:
        TokenizerError: of its tokenizer it cannot be said which tokens are canonical.
        GenerationError: there is no room for the prompt and such a text.
    """

    def __init__(self, prepared: PreparedModel, prompt: Prompt, *, max_bytes: int = 1_000) -> None:
        check_count("max_bytes", max_bytes)
        self._prepared, self._max_bytes = prepared, max_bytes
        self._spelling: CanonicalSpelling = prepared.spelling()
        self._reader = make_reader(prepared.model, prepared._prompt_ids(prompt, None, None), max_bytes)
        self._texts = sorted((text, token) for token, text in enumerate(self._spelling.texts) if text)
        self._keys = [text for text, _ in self._texts]
        self._ids = np.array([token for _, token in self._texts])
        self._ends = sorted(prepared.vocabulary.eos_token_ids)
        self._text = b""
        self._spelled: list[list[_Spelled]] = []

    def next_byte_logprobs(self, text: str | bytes) -> NextBytes:
        """What may come after a text that the answer has so far. Reads each beginning in canonical tokens once.

        Raises:
            GenerationError: no canonical tokens spell it, or it is too long.
        """
        data = text.encode() if isinstance(text, str) else bytes(text)
        if len(data) >= self._max_bytes:
            raise GenerationError(
                f"The text has {len(data)} bytes; at most {self._max_bytes - 1} are read (max_bytes)."
            )
        with turn_of(self._prepared.reader):
            self._follow(data)
        masses = np.zeros(257)
        for start in range(max(0, len(data) - self._spelling.longest + 1), len(data) + 1):
            for spelled in self._spelled[start]:
                self._add(masses, spelled, data[start:])
        whole = self._mass(data)
        if not whole:
            raise GenerationError(f"The text is spelled by no canonical tokens, or with probability 0: {text[-80:]!r}")
        with np.errstate(divide="ignore"):
            return NextBytes(np.log(masses / whole), max(0.0, 1.0 - float(masses.sum()) / whole), math.log(whole))

    def _follow(self, data: bytes) -> None:
        """Spell a text's beginnings; what an earlier text has in common with it is kept."""
        shared = next((n for n, (a, b) in enumerate(zip(data, self._text, strict=False)) if a != b), None)
        shared = min(len(data), len(self._text)) if shared is None else shared
        if not self._spelled:
            self._spelled = [[self._read([((), AT_START, 0.0)])[0]]]
        del self._spelled[shared + 1 :]
        self._text = data
        for end in range(len(self._spelled), len(data) + 1):
            self._spelled.append(self._read(list(self._endings(data, end))) if end else self._spelled[0])

    def _endings(self, data: bytes, end: int) -> list[tuple[Prefix, SpelledSoFar, float]]:
        """The beginnings of the text that are spelled up to ``end``."""
        endings = []
        for start in range(max(0, end - self._spelling.longest), end):
            for spelled in self._spelled[start]:
                for token in self._with_text(data[start:end]):
                    position = self._after(spelled.position, token)
                    log_prob = spelled.log_prob + float(spelled.log_probs[token])
                    if position is not None and log_prob > -math.inf:
                        endings.append(((*spelled.tokens, token), position, log_prob))
        return endings

    def _with_text(self, text: bytes) -> list[int]:
        """The tokens that spell a text by themselves."""
        low = high = bisect_left(self._keys, text)
        while high < len(self._keys) and self._keys[high] == text:
            high += 1
        return [token for _, token in self._texts[low:high]]

    def _after(self, position: SpelledSoFar, token: int) -> SpelledSoFar | None:
        row = self._spelling.row(position)
        return self._spelling.after(position, token) if row[token >> 5] >> (token & 31) & 1 else None

    def _read(self, prefixes: list[tuple[Prefix, SpelledSoFar, float]]) -> list[_Spelled]:
        if not prefixes:
            return []
        logits = self._reader.read([tokens for tokens, _, _ in prefixes])
        return [_Spelled(*prefix, _log_probs(each)) for prefix, each in zip(prefixes, logits, strict=True)]

    def _add(self, masses: npt.NDArray[np.float64], spelled: _Spelled, left: bytes) -> None:
        """Add what the tokens after a beginning say of the byte after ``left``, which they begin with."""
        low = bisect_left(self._keys, left)
        high = bisect_left(self._keys, left + b"\xff" * (self._spelling.longest + 1)) if left else len(self._keys)
        ids = self._ids[low:high]
        row = self._spelling.row(spelled.position).view(np.uint32)
        allowed = (row[ids >> 5] >> (ids & 31).astype(np.uint32)) & 1
        probs = np.exp(spelled.log_prob + spelled.log_probs[ids]) * allowed
        for number in np.flatnonzero(probs).tolist():
            key = self._keys[low + number]
            if len(key) > len(left):
                masses[key[len(left)]] += probs[number]
        if not left and self._spelling.may_end(spelled.position):
            masses[END] += sum(math.exp(spelled.log_prob + float(spelled.log_probs[end])) for end in self._ends)

    def _mass(self, data: bytes) -> float:
        """The probability of the text as a beginning: of all its covers."""
        if not data:
            return 1.0
        masses = np.zeros(257)
        for start in range(max(0, len(data) - self._spelling.longest), len(data)):
            for spelled in self._spelled[start]:
                self._add(masses, spelled, data[start:-1])
        return float(masses[data[-1]])


def _log_probs(logits: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    shifted = np.asarray(logits, np.float64) - float(np.max(logits))
    return shifted - math.log(float(np.exp(shifted).sum()))
