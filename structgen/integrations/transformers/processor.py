"""A logits processor for ``model.generate``, whatever way it decodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from structgen.errors import OptionsError, TokenizerError
from structgen.integrations.transformers.callers import owns_its_scores
from structgen.integrations.transformers.calls import Generation, HostIds, Ids
from structgen.integrations.transformers.checks import grammars_of, grammars_of_rows, rows_of_a_prompt, vocabulary_of
from structgen.integrations.transformers.masking import Masker
from structgen.integrations.transformers.row import ConstrainedRow, check_budget
from structgen.options import check_count

if TYPE_CHECKING:
    from torch import Tensor

# Calls of `generate` that a processor may be in at once: an assistant with a tokenizer of its own has other prompts.
REMEMBERED = 4


class GrammarLogitsProcessor:
    """Masks what a constraint does not allow: ``model.generate(**inputs, logits_processor=[processor])``.

    Right for greedy decoding, sampling, beams, several sequences a prompt, batches with padding on the left, assisted
    decoding and prompt lookup. What a row may write depends on its sequence alone, so a processor may be used again and
    again, for any prompts; not from two threads at once. A prompt that is exactly what the last call returned goes on
    with it; ``reset`` makes it a prompt like any other.

    A text that is complete and cannot go on may only end, and so may rows that have ended, and sequences that the
    constraint does not allow: drafts that are about to be turned down, beams whose score is -inf.

    Args:
        constraint: a constraint, or anything ``json_schema`` takes; a list: one for each prompt of the batch. None:
            free text.
        tokenizer: the model's tokenizer, or its ``Vocabulary``, which takes a moment to make and can be used again.
        vocab_size: width of the model's logits. Only needed where an assistant has another: its logits are then left
            alone.
        eos_token_ids: what ends a text: ``model.generation_config.eos_token_id``, which may name several. None: the
            tokenizer's own. A ``Vocabulary`` has its own.
        max_new_tokens: the budget that is given to ``generate``: tokens after which the text could not be closed within
            it are masked too. Every token that stays allowed is then tried first, so of many only the likeliest stay
            (99.9 % of the probability, at least 16, at most 256). None: a text may be cut off by ``generate``.
        in_place: whether the scores are masked where they lie, which saves writing all of them again. None: where
            ``generate`` hands over scores that nobody looks at again, that is, without ``output_logits``. True: always;
            the caller's own are changed then. False: never.

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
        in_place: bool | None = None,
    ) -> None:
        check_count("max_new_tokens", max_new_tokens, optional=True)
        self.vocabulary = vocabulary_of(tokenizer, vocab_size, eos_token_ids)
        self._width = vocab_size
        self._grammars = grammars_of(constraint, self.vocabulary)
        self._budget = max_new_tokens
        for grammar in self._grammars:
            if grammar is not None and max_new_tokens is not None:
                check_budget(grammar, max_new_tokens)
        if in_place not in (None, True, False):
            raise OptionsError(f"in_place must be True, False or None, not {in_place!r:.100}", option="in_place")
        self._in_place = in_place
        self._generations: deque[tuple[Generation, list[ConstrainedRow | None]]] = deque(maxlen=REMEMBERED)
        self._masker, self._host = Masker(self.vocabulary), HostIds()

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Scores with -inf for tokens that the constraint does not allow: new ones, or ``scores`` (see ``in_place``).

        Args:
            input_ids: integers [rows, length], prompts included.
            scores: floating [rows, width], on any device.

        Raises:
            TokenizerError: the scores are those of another model's vocabulary.
            ConstraintError: the rows are not those of as many prompts as there are constraints.
        """
        if not self._is_ours(scores.shape[1]):
            return scores
        is_part = input_ids.stride(0) > input_ids.shape[1]  # a view of what is verified
        rows = self._rows(self._host.of(input_ids), is_part)
        in_place = owns_its_scores(1) if self._in_place is None else self._in_place
        return self._masker.masked(scores, rows, in_place=in_place)

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

    def _rows(self, ids: Ids, is_part: bool) -> list[ConstrainedRow | None]:
        """The rows at the ends of their sequences."""
        for index, (generation, last_rows) in enumerate(self._generations):
            parents = generation.parents(ids, is_part)
            if parents is None:
                continue
            rows = last_rows if generation.went_on else _moved(last_rows, parents)
            if generation.went_on:
                self._masker.step(rows, ids[:, -1].tolist())
            else:
                for row, text in zip(rows, ids[:, generation.prompt.shape[1] :], strict=True):
                    if row is not None:
                        row.follow(text)
            if generation.jumped and rows[0] is not None and rows[0].is_dead:
                break  # the model's token is always allowed: a prompt that begins like the last text
            if index or rows is not last_rows:
                del self._generations[index]
                self._generations.appendleft((generation, rows))
            if len(rows) == 1 and rows[0] is not None and rows[0].is_overrun and generation.verified is None:
                self._masker.say(
                    "The text has ended, but generation goes on: the model's settings do not name its end. Pass "
                    f"eos_token_id={list(self.vocabulary.eos_token_ids)} to generate, or to the processor the "
                    "eos_token_ids of the model's generation_config."
                )
            return rows
        return self._begun(ids, is_part)

    def _begun(self, ids: Ids, is_part: bool) -> list[ConstrainedRow | None]:
        """Rows at the beginning of their texts, after new prompts."""
        if self._width is None and ids.size and ids.max() >= self.vocabulary.size:
            raise TokenizerError(
                f"the prompt has the token {ids.max()}, the tokenizer {self.vocabulary.size} tokens: pass the "
                "tokenizer of this model"
            )
        copies = rows_of_a_prompt(ids, len(self._grammars))
        grammars = grammars_of_rows(self._grammars, len(ids), copies)
        rows = [None if grammar is None else ConstrainedRow(grammar.matcher(), self._budget) for grammar in grammars]
        prompt = ids.copy()
        generation = Generation(prompt, copies, prompt, is_part, 0 if is_part else None)
        self._generations.appendleft((generation, rows))
        return rows


def _moved(rows: list[ConstrainedRow | None], parents: list[int]) -> list[ConstrainedRow | None]:
    """Rows that go on from others: one takes its parent over, its siblings copies."""
    moved = list[ConstrainedRow | None]()
    taken = set[int]()
    for parent in parents:
        row = rows[parent]
        moved.append(row.fork() if row is not None and parent in taken else row)
        taken.add(parent)
    return moved
