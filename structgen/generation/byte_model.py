"""What a model says of the next byte of a text, whatever tokens it would spell it in.

A text's probability is the sum over its covers (see ``Covers``), so a text may end anywhere, within a token too. Only
canonical tokens count: the tokens that the tokenizer makes of some text. So it is the model's distribution over texts,
restricted to these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from structgen.core.tokenization.canonical import CanonicalSpelling
from structgen.errors import GenerationError
from structgen.generation.decoding.covers import Covers, SpelledBeginning
from structgen.generation.models.prefix_reader import make_reader
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
        reader = make_reader(prepared.model, prepared._prompt_ids(prompt, None, None), max_bytes)
        self._covers = Covers(self._spelling, lambda prefixes: reader.read(list(prefixes)))
        self._ends = sorted(prepared.vocabulary.eos_token_ids)

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
            self._covers.follow(data)
        masses = np.zeros(257)
        for start in range(max(0, len(data) - self._spelling.longest + 1), len(data) + 1):
            for spelled in self._covers.spelled[start].values():
                self._add(masses, spelled, data[start:])
        whole = self._mass(data)
        if not whole:
            raise GenerationError(f"The text is spelled by no canonical tokens, or with probability 0: {text[-80:]!r}")
        with np.errstate(divide="ignore"):
            return NextBytes(np.log(masses / whole), max(0.0, 1.0 - float(masses.sum()) / whole), math.log(whole))

    def _add(self, masses: npt.NDArray[np.float64], spelled: SpelledBeginning, left: bytes) -> None:
        """Add what the tokens after a beginning say of the byte after ``left``, which they begin with."""
        ids, log_probs = self._covers.following(spelled, left)
        probs = np.exp(log_probs)
        for number in np.flatnonzero(probs).tolist():
            key = self._spelling.texts[ids[number]]
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
            for spelled in self._covers.spelled[start].values():
                self._add(masses, spelled, data[start:-1])
        return float(masses[data[-1]])
