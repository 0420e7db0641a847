"""How likely a model finds each of some texts as its whole reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.models.language_model import LanguageModel
from structgen.generation.sampling import masked_log_probs, to_numpy

_Option = TypeVar("_Option", bound=str)


def option_log_probs(
    model: LanguageModel, tokenizer: Any, vocabulary: Vocabulary, prompt_ids: list[int], options: Sequence[_Option]
) -> dict[_Option, float]:
    """Nats of each text, as the tokenizer spells it, with end of sequence after it; the prompt is read once."""
    logits, cache = model.prefill([prompt_ids])
    first, length = masked_log_probs(to_numpy(logits[0]), None), cache.length
    log_probs: dict[_Option, float] = {}
    for option in options:
        tokens = list(tokenizer.encode(option, add_special_tokens=False))
        rows = to_numpy(model.forward([tokens], cache)[0])
        cache.crop(length)
        steps = [first, *(masked_log_probs(row, None) for row in rows)]
        end = np.logaddexp.reduce(steps[-1][list(vocabulary.eos_token_ids)])
        log_probs[option] = float(sum(step[token] for step, token in zip(steps, tokens, strict=False)) + end)
    return log_probs
