"""Several models that write one text together, byte by byte, whatever their tokens are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from structgen.core.constraints.base import value_of
from structgen.core.constraints.json import as_constraint
from structgen.core.constraints.parts import BYTES
from structgen.core.engines.protocols import Matcher
from structgen.errors import GenerationError, IncompleteOutputError, OptionsError
from structgen.generation.byte_model import END, ByteModel
from structgen.generation.sampling.uniforms import seed_or_entropy
from structgen.options import check_choice, check_count

if TYPE_CHECKING:
    from structgen.generation.decoding.prompts import Prompt
    from structgen.generation.prepared_model import PreparedModel

Rule = Literal["mixture", "product"]


@dataclass(frozen=True)
class ByteOutput:
    """What models have written together.

    Attributes:
        text: with the text that it was to begin with.
        value: of the constraint; the text where there is none.
        log_prob: of the bytes as they were drawn, the end's included.
    """

    text: str
    value: Any
    log_prob: float


class ByteEnsemble:
    """Models that write one text together: at each byte their distributions are combined.

    Args:
        generators: one or more, of any tokenizers with canonical spelling.
        weights: of each, above 0; None: alike. Their sum does not matter.
        rule: "mixture": the weighted mean of the probabilities; "product": their weighted geometric mean.

    Raises:
        OptionsError: no generators, other weights than generators, a weight that is none, or another rule.
    """

    def __init__(
        self, generators: Sequence[PreparedModel], weights: Sequence[float] | None = None, rule: Rule = "mixture"
    ) -> None:
        check_choice("rule", rule, ("mixture", "product"))
        self._generators, self._rule = list(generators), rule
        given = [1.0] * len(self._generators) if weights is None else list(weights)
        are_numbers = all(isinstance(weight, Real) and 0 < weight < float("inf") for weight in given)
        if not given or len(given) != len(self._generators) or not are_numbers:
            raise OptionsError(
                f"an ensemble needs generators and a weight above 0 for each, not {len(self._generators)} generators "
                f"and the weights {given!r:.100}",
                option="weights",
                value=weights,
            )
        self._weights = np.array(given, np.float64) / sum(given)

    def generate(
        self,
        prompt: Prompt,
        constraint: Any = None,
        *,
        start: str = "",
        max_bytes: int = 300,
        temperature: float = 1.0,
        seed: int | None = None,
    ) -> ByteOutput:
        """Write a text that a constraint allows, a byte at a time; masks are the constraint's.

        Args:
            constraint: what ``Generator.generate`` takes; None: any text.
            start: what the text begins with. It may end anywhere, within a token too: as if it had been written.
            max_bytes: of the whole text; from the point on at which only the shortest completion fits, that is written.
            temperature: 0: the likeliest byte.

        Raises:
            GenerationError: the constraint does not allow ``start``, or a model can write nothing that it allows.
            IncompleteOutputError: no text fits in ``max_bytes``, or, without a constraint, none ended.
        """
        check_count("max_bytes", max_bytes)
        check_count("seed", seed, 0, optional=True)
        checked = as_constraint(constraint)
        matcher = None if checked is None else checked.compile(BYTES).matcher()
        data, log_prob = start.encode(), 0.0
        if matcher is not None and not matcher.accept_bytes(data):
            raise GenerationError(f"The constraint allows no text that begins with {start[:80]!r}", text=start)
        models = [ByteModel(each, prompt, max_bytes=max_bytes + 1) for each in self._generators]
        rng = np.random.default_rng(seed_or_entropy(seed))
        while True:
            allowed = _allowed(matcher, max_bytes - len(data))
            if not allowed.any():
                text = data.decode(errors="replace")
                raise IncompleteOutputError(f"No text of {max_bytes} bytes ends here: {text[-80:]!r}", partial=text)
            log_probs = self.next_byte_logprobs(models, data)
            byte = _drawn(np.where(allowed, log_probs, -np.inf), temperature, rng, data)
            log_prob += float(log_probs[byte])
            if byte == END:
                text = data.decode()
                return ByteOutput(text, text if checked is None else value_of(checked, text), log_prob)
            data += bytes([byte])
            if matcher is not None:
                matcher.accept_bytes(data[-1:])

    def next_byte_logprobs(self, models: Sequence[ByteModel], text: bytes) -> npt.NDArray[np.float64]:
        """float64[257]: the combination of what models say of the next byte and, last, of the end."""
        said = np.array([model.next_byte_logprobs(text).log_probs for model in models])
        with np.errstate(divide="ignore"):
            if self._rule == "mixture":
                return np.asarray(np.log((np.exp(said) * self._weights[:, None]).sum(0)), np.float64)
        return _normalised((said * self._weights[:, None]).sum(0))


def _allowed(matcher: Matcher | None, room: int) -> npt.NDArray[np.bool_]:
    """bool[257]: the bytes after which the text can still be ended in so many bytes, and the end."""
    allowed = np.zeros(257, np.bool_)
    if matcher is None:
        allowed[:256], allowed[END] = room > 0, True
        return allowed
    allowed[END] = matcher.is_accepting()
    for byte in np.flatnonzero(matcher.next_bytes()).tolist() if room > 0 else ():
        after = matcher.copy()
        allowed[byte] = after.accept_bytes(bytes([byte])) and len(after.shortest_completion()) < room
    return allowed


def _drawn(log_probs: npt.NDArray[np.float64], temperature: float, rng: np.random.Generator, text: bytes) -> int:
    most = float(log_probs.max())
    if most == -np.inf:
        raise GenerationError(f"The models can write no byte that the constraint allows after {text[-80:]!r}")
    if temperature == 0:
        return int(log_probs.argmax())
    weights = np.exp((log_probs - most) / temperature)
    return int(rng.choice(257, p=weights / weights.sum()))


def _normalised(log_weights: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    most = float(log_weights.max())
    if most == -np.inf:
        return log_weights
    return np.asarray(log_weights - most - np.log(np.exp(log_weights - most).sum()), np.float64)
