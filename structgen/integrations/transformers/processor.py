"""A logits processor for ``model.generate``, whatever way it decodes."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structgen.engines.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace, fill_next_token_bitmasks
from structgen.errors import GenerationError, TokenizerError
from structgen.integrations.transformers.calls import Generation, Ids
from structgen.integrations.transformers.checks import grammar_of_row, grammars_of, vocabulary_of
from structgen.integrations.transformers.row import Row, check_budget
from structgen.options import check_count

if TYPE_CHECKING:
    from torch import Tensor

# Calls of `generate` that a processor may be in at once: an assistant with a tokenizer of its own has other prompts.
REMEMBERED = 4
# With a budget each token that is left allowed is tried: of many, the likeliest up to this share of the probability.
SHARE, LEAST, MOST = 0.999, 64, 256


class GrammarLogitsProcessor:
    """Masks what a constraint does not allow: ``model.generate(**inputs, logits_processor=[processor])``.

    Right for greedy decoding, sampling, beams, several sequences a prompt, batches with padding on the left, assisted
    decoding and prompt lookup. What a row may write depends on its sequence alone, so a processor may be used again and
    again, for any prompts; not from two threads at once. A prompt that is exactly what the last call returned goes on
    with it; ``reset`` makes it a prompt like any other.

    A text that is complete and cannot go on may only end, and so may rows that have ended. Sequences that the constraint
    does not allow (drafts that are about to be turned down) are left as they are.

    Args:
        constraint: a constraint, or anything ``json_schema`` takes; a list: one for each prompt of the batch. None: free
            text.
        tokenizer: the model's tokenizer, or its ``Vocabulary``, which takes a moment to make and can be used again.
        vocab_size: width of the model's logits. Only needed where an assistant has another: its logits are then left
            alone.
        eos_token_ids: what ends a text: ``model.generation_config.eos_token_id``, which may name several. None: the
            tokenizer's own. A ``Vocabulary`` has its own.
        max_new_tokens: the budget that is given to ``generate``: tokens after which the text could not be closed within
            it are masked too. Every token that stays allowed is then tried first, so of many only the likeliest stay
            (99.9 % of the probability, at least 64, at most 256). None: a text may be cut off by ``generate``.

    Raises:
        TokenizerError: ``tokenizer`` is none that can be read.
        OptionsError: ``vocab_size`` is less than the tokenizer's, or ``max_new_tokens`` no count.
        ConstraintError: the constraint cannot be used.
        IncompleteOutputError: not even the shortest text known fits in ``max_new_tokens``.
    """

    supports_continuous_batching = False  # see `continuous_batching`

    def __init__(
        self,
        constraint: Any,
        tokenizer: Any,
        vocab_size: int | None = None,
        *,
        eos_token_ids: int | Iterable[int] | None = None,
        max_new_tokens: int | None = None,
    ) -> None:
        check_count("max_new_tokens", max_new_tokens, optional=True)
        self.vocabulary = vocabulary_of(tokenizer, vocab_size, eos_token_ids)
        self._width = vocab_size
        self._grammars = grammars_of(constraint, self.vocabulary)
        self._budget = max_new_tokens
        for grammar in self._grammars:
            if grammar is not None and max_new_tokens is not None:
                check_budget(grammar, max_new_tokens)
        self._generations: deque[tuple[Generation, list[Row | None]]] = deque(maxlen=REMEMBERED)
        self._bitmask = allocate_token_bitmask(1, self.vocabulary.size)
        self._said = set[str]()

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """New scores, with -inf for tokens that the constraint does not allow; the given ones stay as they are.

        Args:
            input_ids: integers [rows, length], prompts included.
            scores: floating [rows, width], on any device.

        Raises:
            TokenizerError: the scores are those of another model's vocabulary.
            ConstraintError: the number of rows does not fit that of the constraints.
        """
        if not self._is_ours(scores.shape[1]):
            return scores
        ids = input_ids.detach().cpu().numpy()
        is_part = input_ids.stride(0) > input_ids.shape[1]  # a view of what is verified
        rows = self._rows(ids, is_part)
        return self._masked(scores, rows)

    def reset(self) -> None:
        """Forget all sequences: the next call is taken for the first of a `generate`."""
        self._generations.clear()

    def _is_ours(self, width: int) -> bool:
        """Whether scores are the model's and not those of an assistant with another vocabulary."""
        if self._width is not None:
            return width == self._width
        if width < self.vocabulary.size:
            raise TokenizerError(
                f"the scores have {width} columns, the tokenizer {self.vocabulary.size} tokens: pass the tokenizer of "
                "this model, or vocab_size, the width of its logits, if these are the scores of an assistant"
            )
        return True

    def _rows(self, ids: Ids, is_part: bool) -> list[Row | None]:
        """The rows at the ends of their sequences."""
        for place, (generation, known) in enumerate(self._generations):
            parents = generation.parents(ids, is_part)
            if parents is None:
                continue
            rows = _moved(known, parents)
            for row, text in zip(rows, ids[:, generation.prompt.shape[1] :], strict=True):
                if row is not None:
                    row.follow(text)
            del self._generations[place]
            self._generations.appendleft((generation, rows))
            if len(rows) == 1 and rows[0] is not None and rows[0].is_overrun and not generation.verified:
                self._warn(
                    "The text has ended, but generation goes on: the model's settings do not name its end. Pass "
                    f"eos_token_id={list(self.vocabulary.eos_token_ids)} to generate, or to the processor the "
                    "eos_token_ids of the model's generation_config."
                )
            return rows
        return self._begun(ids, is_part)

    def _begun(self, ids: Ids, is_part: bool) -> list[Row | None]:
        """Rows at the beginning of their texts, behind new prompts."""
        if self._width is None and ids.size and ids.max() >= self.vocabulary.size:
            raise TokenizerError(
                f"the prompt has the token {ids.max()}, the tokenizer {self.vocabulary.size} tokens: pass the "
                "tokenizer of this model"
            )
        nothing = np.zeros((len(ids), 0), np.int64)
        grammars = [grammar_of_row(row, len(ids), self._grammars) for row in range(len(ids))]
        rows = [None if grammar is None else Row(grammar.matcher(), self._budget) for grammar in grammars]
        generation = Generation(ids.copy(), nothing, is_part, is_part)
        self._generations.appendleft((generation, rows))
        return rows

    def _masked(self, scores: Tensor, rows: list[Row | None]) -> Tensor:
        bitmask = self._filled(rows)
        places = [place for place, row in enumerate(rows) if row is not None and not row.is_dead]
        if not places:
            return scores
        masked = scores.clone()
        apply_token_bitmask_inplace(masked, bitmask, None if len(places) == len(rows) else places)
        blocked = masked.amax(dim=1) == -float("inf")
        if bool(blocked.any()):
            masked[blocked] = self._unblocked(masked[blocked], bitmask[blocked.cpu().numpy()])
        return masked if self._budget is None else _closable(masked, rows)

    def _filled(self, rows: list[Row | None]) -> npt.NDArray[np.int32]:
        """The masks of all rows; those without are arbitrary."""
        if len(self._bitmask) != len(rows):
            self._bitmask = allocate_token_bitmask(len(rows), self.vocabulary.size)
        masks = self._bitmask
        fill_next_token_bitmasks(
            [None if row is None or row.is_dead or row.is_finished else row.matcher for row in rows], masks
        )
        for place, row in enumerate(rows):
            if row is not None and row.is_finished:
                masks[place] = 0
                for token in row.matcher.grammar.vocabulary.eos_token_ids:
                    masks[place, token // 32] |= np.uint32(1 << token % 32).view(np.int32)
            elif row is not None and not row.is_dead and not masks[place].any():
                raise GenerationError(
                    "The constraint allows no token. The vocabulary may lack bytes that the constraint needs."
                )
        return masks

    def _unblocked(self, scores: Tensor, masks: npt.NDArray[np.int32]) -> Tensor:
        """Scores of rows in which other processors have forbidden all that the constraint allows: it wins."""
        self._warn(
            "Other logits processors (min_new_tokens, bad_words_ids, no_repeat_ngram_size, ...) forbid every token "
            "that the constraint allows; the constraint is kept, and its tokens are equally likely there."
        )
        allowed = scores.new_zeros(scores.shape)
        apply_token_bitmask_inplace(allowed, masks)
        return allowed

    def _warn(self, message: str) -> None:
        """Say each thing once."""
        if message not in self._said:
            self._said.add(message)
            warnings.warn(message, RuntimeWarning, stacklevel=2)


def _closable(scores: Tensor, rows: list[Row | None]) -> Tensor:
    """Masked scores with only tokens left after which the text can be closed within the budget."""
    import torch

    best, ids = scores.topk(min(MOST, scores.shape[1]), dim=1)
    probs = (best - scores.logsumexp(dim=1, keepdim=True)).exp()
    wanted = (probs.cumsum(dim=1) - probs < SHARE).sum(dim=1).clamp(min=LEAST).tolist()
    kept = torch.full_like(scores, -float("inf"))
    for place, row in enumerate(rows):
        if row is None or row.is_dead or row.is_finished:
            kept[place] = scores[place]
            continue
        allowed = ids[place][best[place] > -float("inf")].tolist()
        tokens = row.closable(allowed if len(allowed) < len(ids[place]) else allowed[: wanted[place]])
        kept[place, tokens] = scores[place, tokens].clamp(min=torch.finfo(scores.dtype).min)
    return kept


def _moved(rows: list[Row | None], parents: list[int]) -> list[Row | None]:
    """Rows that go on from others: one takes its parent over, its siblings copies."""
    moved = list[Row | None]()
    taken = set[int]()
    for parent in parents:
        row = rows[parent]
        moved.append(row.fork() if row is not None and parent in taken else row)
        taken.add(parent)
    return moved
