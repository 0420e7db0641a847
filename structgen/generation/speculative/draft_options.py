"""From ``draft=...`` to a ``Speculator``."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError, OptionsError
from structgen.generation.models.capabilities import check_reads_trees, prepare_for_trees
from structgen.generation.speculative.copying import CopyDrafter
from structgen.generation.speculative.cost import Cost, cost_of
from structgen.generation.speculative.datastore import Datastore, RetrievalDrafter, fingerprint
from structgen.generation.speculative.drafter import Drafter
from structgen.generation.speculative.followed import NAMES as WITHOUT_MODEL
from structgen.generation.speculative.followed import ClosingDrafter
from structgen.generation.speculative.forced import CanonicalTokens, ForcedDrafter
from structgen.generation.speculative.layer_skip import LayerSkipDrafter
from structgen.generation.speculative.length import CostAware
from structgen.generation.speculative.lookahead import LookaheadDrafter
from structgen.generation.speculative.model_drafter import ModelDrafter
from structgen.generation.speculative.ngram import MemoryDrafter, NgramDrafter
from structgen.generation.speculative.recycling import RecyclingDrafter
from structgen.generation.speculative.shape import ShapeDrafter
from structgen.generation.speculative.speculator import Speculator
from structgen.generation.speculative.structure import StructureDrafter
from structgen.progress import waiting

Maker = Callable[[Any, Any, Vocabulary], Drafter]
"""Makes a drafter for a target, its tokenizer and vocabulary."""

MAKERS: dict[str, Maker] = {
    ForcedDrafter.name: lambda _, tokenizer, vocabulary: ForcedDrafter(CanonicalTokens(tokenizer, vocabulary)),
    StructureDrafter.name: lambda _, tokenizer, vocabulary: StructureDrafter(CanonicalTokens(tokenizer, vocabulary)),
    ShapeDrafter.name: lambda _, __, vocabulary: ShapeDrafter(vocabulary),
    CopyDrafter.name: lambda _, tokens, vocabulary: CopyDrafter(CanonicalTokens(tokens, vocabulary), vocabulary),
    ClosingDrafter.name: lambda *_: ClosingDrafter(),
    NgramDrafter.name: lambda *_: NgramDrafter(),
    RecyclingDrafter.name: lambda model, *_: RecyclingDrafter(model.vocab_size),
    MemoryDrafter.name: lambda *_: MemoryDrafter(),
    LookaheadDrafter.name: lambda *_: LookaheadDrafter(),
    LayerSkipDrafter.name: lambda model, *_: LayerSkipDrafter(model),
}
"""Drafters that need no other weights, by their names."""
AUTO = (*WITHOUT_MODEL, RecyclingDrafter.name, MemoryDrafter.name)
NAMES = ("auto", *MAKERS)


@waiting("preparing drafts")
def make_speculator(
    draft: Any, model: Any, tokenizer: Any, vocabulary: Vocabulary, cost: Cost | None = None
) -> Speculator:
    """A speculator for what a user passes as ``draft``: one of these, or a list of them.

    - a name of ``NAMES``; "auto" stands for ``AUTO``;
    - a ``Datastore``, or the path of one;
    - a draft model with the target's vocabulary: a ``LanguageModel``, a loaded transformers model, a Hugging Face id,
      a folder or a GGUF file;
    - a ``Drafter``; or, alone, a ``Speculator`` or None: no drafters, for requests that bring a prediction.

    The policy is ``CostAware`` with what steps of the target cost; None: that is learned.

    Raises:
        ModelError: a draft model cannot be loaded or used, or the target cannot read trees.
        GenerationError: a file is no datastore of this vocabulary.
        OptionsError: ``draft`` is empty, or none of these.
    """
    if isinstance(draft, Speculator):
        return draft
    if draft is None:
        check_reads_trees(model)
        prepare_for_trees(model)
        return Speculator([], CostAware(cost or cost_of(model)))
    parts = list(draft) if isinstance(draft, (list, tuple)) else [draft]
    parts = [each for part in parts for each in (AUTO if isinstance(part, str) and part == "auto" else (part,))]
    if not parts:
        raise OptionsError(f"draft is empty; use None for no drafts, or some of {', '.join(NAMES)}.")
    for part in parts:  # before a model is loaded
        if not isinstance(part, Hashable):
            raise _no_draft(part)
        _check_name(part)
    check_reads_trees(model)
    drafters = [
        MAKERS[part](model, tokenizer, vocabulary)
        if isinstance(part, str) and part in MAKERS
        else _drafter(part, vocabulary)
        for part in dict.fromkeys(parts)
    ]
    prepare_for_trees(model)
    return Speculator(drafters, CostAware(cost or cost_of(model)))


def _check_name(part: Any) -> None:
    """Refuse a misspelt name, rather than look for a model of that name in the network."""
    if isinstance(part, str) and part not in NAMES and not Path(part).exists():
        near = get_close_matches(part, NAMES, 1, 0.7)
        if near:
            raise OptionsError(
                f"draft={part!r:.80}: did you mean {near[0]!r}? There are {', '.join(NAMES)}.",
                option="draft",
                value=part,
            )


def _drafter(part: Any, vocabulary: Vocabulary) -> Drafter:
    """A drafter of anything but a name."""
    if isinstance(part, Datastore):
        if part.vocabulary != fingerprint(vocabulary):
            raise GenerationError("The datastore holds tokens of another vocabulary; build it with this model.")
        return RetrievalDrafter(part)
    if isinstance(part, (str, os.PathLike)):
        from structgen.generation.loading import is_gguf, load_model

        if Path(part).is_file() and not is_gguf(part):
            return RetrievalDrafter(Datastore.load(part, vocabulary))
        return ModelDrafter(load_model(part)[0])
    if hasattr(part, "start"):
        drafter: Drafter = part
        return drafter
    if hasattr(part, "prefill"):
        return ModelDrafter(part)
    if hasattr(part, "get_output_embeddings"):
        from structgen.generation.models.transformers_model import TransformersModel

        return ModelDrafter(TransformersModel(part))
    raise _no_draft(part)


def _no_draft(part: Any) -> OptionsError:
    return OptionsError(
        f"draft={part!r:.80} is no draft; use some of {', '.join(NAMES)}, a datastore or a model.",
        option="draft",
        value=part,
    )
