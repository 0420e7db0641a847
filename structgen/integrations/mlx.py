"""structgen in mlx-lm: a logits processor for ``generate``, ``stream_generate`` and ``BatchGenerator``.

Nothing here imports mlx before it is used. Its arrays may live on Apple's GPU: what is fetched at each step is one
token, what is sent is one row of a bitmask, which the device expands.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.constraints.json import as_constraint
from structgen.core.constraints.rules import compile_masks
from structgen.core.engines.bitmask import allocate_token_bitmask
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, GenerationError, TokenizerError
from structgen.integrations.transformers.checks import vocabulary_of
from structgen.integrations.transformers.row import ConstrainedRow, check_budget
from structgen.options import check_count

# With a budget each token that is left is tried: the likeliest up to this share of the probability, so many at most.
SHARE, LEAST, MOST = 0.999, 16, 256


def processor(
    constraint: Any,
    tokenizer: Any,
    *,
    max_tokens: int | None = None,
    eos_token_ids: int | Iterable[int] | None = None,
) -> MlxProcessor:
    """What masks one sequence: ``generate(model, tokenizer, prompt, logits_processors=[processor(...)])``.

    One object a sequence: batches take one for each (``BatchGenerator.insert(..., logits_processors=[[p], [q]])``).
    With a draft model the same object sees the draft and its verification.

    Args:
        constraint: a constraint, or anything ``json_schema`` takes.
        tokenizer: the model's, as ``mlx_lm.load`` gives it, or a ``Vocabulary``, which takes a moment to make and can
            be used again.
        max_tokens: the budget that mlx-lm is given: the text is closed within it. None: it may be cut off.
        eos_token_ids: what ends a text; None: what the tokenizer says, of which there may be several.

    Raises:
        TokenizerError: ``tokenizer`` is none that can be read. OptionsError: ``max_tokens`` is no count.
        ConstraintError: the constraint is None, or cannot be used.
        IncompleteOutputError: not even the shortest text known fits in ``max_tokens``.
    """
    check_count("max_tokens", max_tokens, optional=True)
    checked = as_constraint(constraint)
    if checked is None:
        raise ConstraintError("the constraint is None; free text needs no processor")
    ends = getattr(tokenizer, "eos_token_ids", None) if eos_token_ids is None else eos_token_ids
    inner = getattr(tokenizer, "_tokenizer", tokenizer)  # mlx-lm wraps that of transformers
    vocabulary = vocabulary_of(inner, None, ends if isinstance(ends, int) or ends is None else sorted(ends))
    grammar = compile_masks(checked, vocabulary)
    if max_tokens is not None:
        check_budget(grammar, max_tokens)
    return MlxProcessor(grammar, vocabulary, max_tokens)


class MlxProcessor:
    """A logits processor of mlx-lm for one sequence. Make it with ``processor``.

    It follows whatever sequence it is shown: a token more, back to an earlier place after a draft was turned down, or
    another prompt, which begins a new text.
    """

    def __init__(self, grammar: Any, vocabulary: Vocabulary, max_tokens: int | None) -> None:
        self._grammar, self._vocabulary, self._budget = grammar, vocabulary, max_tokens
        self._mask = allocate_token_bitmask(1, vocabulary.size)
        self._prompt: list[int] = []
        self._written: list[int] = []
        self._row: ConstrainedRow | None = None

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """Masked logits.

        Args:
            tokens: mx.array, integers [n]: what came before. mlx-lm's first call may hold the end of the prompt alone.
            logits: mx.array, floating [1, V'].

        Raises:
            TokenizerError: the logits are those of another model's vocabulary.
        """
        if logits.shape[-1] < self._vocabulary.size:
            raise TokenizerError(
                f"the logits have {logits.shape[-1]} columns, the tokenizer {self._vocabulary.size} tokens: pass the "
                "tokenizer of this model"
            )
        row = self._followed(tokens)
        masked = _expand()(logits, self._words(row, logits.shape[-1]))
        return self._closable(row, masked) if row.has_budget and not row.may_only_end else masked

    def _followed(self, tokens: Any) -> ConstrainedRow:
        """The row at the end of the sequence. One token is fetched where the sequence has grown by one."""
        row, length = self._row, int(tokens.size)
        if row is not None and length == len(self._prompt) + len(self._written) + 1:
            token = int(tokens[-1].item())
            self._written.append(token)
            row.follow_one(token)
            return row
        ids = [int(one) for one in tokens.tolist()]
        start = len(self._prompt)
        if row is None or ids[:start] != self._prompt:
            row = self._row = ConstrainedRow(self._grammar.matcher(), self._budget)
            self._prompt, start = ids, length
        self._written = ids[start:]
        row.follow(np.array(self._written, np.int64))
        return row

    def _words(self, row: ConstrainedRow, columns: int) -> Any:
        """The mask as words on the device, zeros for columns that the vocabulary does not have."""
        import mlx.core as mx

        mask = self._mask
        if row.may_only_end:
            mask[:] = 0
            for token in self._vocabulary.eos_token_ids:
                mask[0, token // 32] |= np.uint32(1 << token % 32).view(np.int32)
        else:
            row.matcher.fill_next_token_bitmask(mask)
            if not mask.any():
                raise GenerationError(
                    "The constraint allows no token. The vocabulary may lack bytes that the constraint needs."
                )
        words = np.zeros(-(-columns // 32), np.uint32)
        words[: mask.shape[1]] = mask[0].view(np.uint32)
        return mx.array(words)

    def _closable(self, row: ConstrainedRow, masked: Any) -> Any:
        """Masked logits with only tokens left after which the text can be closed within the budget."""
        import mlx.core as mx

        values = np.array(masked.astype(mx.float32))[0]
        kept = np.full(len(values), -np.inf, np.float32)
        tokens = row.closable(_likeliest(values))
        kept[tokens] = np.maximum(values[tokens], np.finfo(np.float32).min)
        return mx.array(kept[None]).astype(masked.dtype)


def _likeliest(values: npt.NDArray[np.float32]) -> list[int]:
    """All allowed tokens, if they are few; else those of most of the probability. Likeliest first."""
    count = min(MOST, len(values))
    best = np.argpartition(-values, count - 1)[:count]
    best = best[np.argsort(-values[best], kind="stable")]
    allowed = best[values[best] > -np.inf]
    if len(allowed) < count:
        return [int(token) for token in allowed]
    weights = np.exp(values - values[best[0]])
    before = np.cumsum(weights[best]) - weights[best]
    return [int(token) for token in best[: max(LEAST, int((before < SHARE * weights.sum()).sum()))]]


@cache
def _expand() -> Any:
    """``(logits, words)``: -inf where a bit is 0, on the device, compiled for each shape."""
    import mlx.core as mx

    @mx.compile
    def expand(logits: Any, words: Any) -> Any:
        bits = (words[:, None] >> mx.arange(32, dtype=mx.uint32)) & 1
        allowed = bits.reshape(-1)[: logits.shape[-1]]
        return mx.where(allowed.astype(mx.bool_), logits, mx.array(-float("inf"), dtype=logits.dtype))

    return expand
