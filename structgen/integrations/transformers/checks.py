"""What is given to the integration, checked: tokenizers, widths, constraints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.constraints.json import as_constraint
from structgen.core.constraints.rules import compile_masks
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, OptionsError, TokenizerError
from structgen.options import check_count


def vocabulary_of(tokenizer: Any, vocab_size: int | None, eos_token_ids: int | Iterable[int] | None) -> Vocabulary:
    """The vocabulary of a tokenizer, or a vocabulary as it is.

    Raises:
        TokenizerError: no tokenizer (a model, a name), or one that cannot be read.
        OptionsError: ``vocab_size`` is less than the tokenizer's.
    """
    check_count("vocab_size", vocab_size, optional=True)
    if isinstance(tokenizer, Vocabulary):
        vocabulary = tokenizer
    elif hasattr(tokenizer, "get_output_embeddings"):
        raise TokenizerError(
            f"tokenizer is a model ({type(tokenizer).__name__}); pass its tokenizer: "
            "AutoTokenizer.from_pretrained(model.config.name_or_path)"
        )
    elif isinstance(tokenizer, str):
        raise TokenizerError(
            f"tokenizer is the name {tokenizer!r:.100}; pass the tokenizer: AutoTokenizer.from_pretrained(...)"
        )
    else:
        vocabulary = Vocabulary.from_transformers(tokenizer, eos_token_ids=eos_token_ids)
    if vocab_size is None or vocab_size == vocabulary.size:
        return vocabulary
    if vocab_size < vocabulary.size:
        raise OptionsError(
            f"vocab_size is {vocab_size}, less than the tokenizer's {vocabulary.size} tokens; pass the width of the "
            "model's logits (model.get_output_embeddings().weight.shape[0]), and the tokenizer of this model"
        )
    return Vocabulary(
        vocabulary.tokens,
        eos_token_ids=vocabulary.eos_token_ids,
        special_token_ids=vocabulary.special_token_ids,
        special_tokens=vocabulary.special_tokens,
        size=vocab_size,
    )


def grammars_of(constraints: Any, vocabulary: Vocabulary) -> list[Grammar | None]:
    """One grammar for all rows, or one a row where ``constraints`` is a list of them; None: free text.

    Raises:
        ConstraintError: an empty list, or what is no constraint.
    """
    each = constraints if isinstance(constraints, (list, tuple)) else [constraints]
    if not each:
        raise ConstraintError("the list of constraints is empty; give one, or one a prompt (None: free text)")
    checked = [as_constraint(constraint) for constraint in each]
    return [None if constraint is None else compile_masks(constraint, vocabulary) for constraint in checked]


def grammars_of_rows(grammars: Sequence[Grammar | None], rows: int, copies: int) -> list[Grammar | None]:
    """One for each row of a batch that holds so many copies of each prompt, side by side.

    Raises:
        ConstraintError: there are several constraints, and not one a prompt.
    """
    if len(grammars) == 1:
        return [grammars[0]] * rows
    if len(grammars) * copies != rows:
        raise ConstraintError(
            f"{len(grammars)} constraints for {rows // copies} prompts; give one for all, or one a prompt of the batch"
        )
    return [grammar for grammar in grammars for _ in range(copies)]


def rows_of_a_prompt(prompts: npt.NDArray[np.int64], constraints: int) -> int:
    """How many rows `generate` has made of each prompt, where each has a constraint: its beams, or the sequences that
    are to be returned, lie side by side. Where one constraint is for all it is not said; then all rows.

    Args:
        prompts: [rows, n], as the first call has them.

    Raises:
        ConstraintError: the rows are no multiple of the constraints, or those of one constraint are of several prompts.
    """
    rows = len(prompts)
    if rows % constraints:
        raise ConstraintError(
            f"{constraints} constraints for {rows} sequences; give one for all, or one a prompt of the batch"
        )
    copies = rows // constraints
    if constraints > 1 and (prompts != np.repeat(prompts[::copies], copies, axis=0)).any():
        raise ConstraintError(
            f"{constraints} constraints for {rows} sequences, but each {copies} that lie side by side are not of one "
            "prompt; give one constraint for all, or one a prompt of the batch"
        )
    return copies
