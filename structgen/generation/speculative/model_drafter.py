"""Drafts of a second, cheaper model with the same vocabulary, masked like the target's.

The draft model reads a node only once the node is in the tree, so the tree's policy also says how long it drafts.
Greedy outputs, and samples if asked for, are drafted as its likeliest tokens (right or wrong, no rule needed); else
tokens are drawn from its distribution, after the same mask, temperature, top-k and top-p as the target's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from structgen.errors import ModelError
from structgen.generation.decoding.output import Output
from structgen.generation.models.language_model import LanguageModel
from structgen.generation.models.prefix_cache import common
from structgen.generation.sampling import (
    Ids,
    LogProbs,
    allowed_token_ids,
    deviation,
    filtered_probs,
    masked_log_probs,
    to_numpy,
)
from structgen.generation.speculative import rules
from structgen.generation.speculative.drafter import Proposal, Source
from structgen.generation.speculative.rules import Draws
from structgen.generation.speculative.tree import Node
from structgen.options import check_choice, check_count

Drawing = Literal["likeliest", "chain", "with replacement", "without replacement"]


class ModelDrafter:
    """Proposes what a draft model says.

    Args:
        model: over the same token ids as the target.
        drawing: how tokens are chosen when the output is sampled: the likeliest ``branches``, or drawn at random: one
            (``rules.chain``), several with replacement (``rules.k_sequential``) or without (``rules.recursive``).
        branches: tokens proposed at each place (1 for "chain").
        length: tokens drafted in a row at most.
        stop: a token that is accepted with a smaller chance than this is not continued.
        seed: of the draws.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        name: str = "model",
        drawing: Drawing = "likeliest",
        branches: int = 1,
        length: int = 8,
        stop: float = 0.3,
        seed: int = 0,
    ) -> None:
        check_choice("drawing", drawing, get_args(Drawing))
        for option, value, least in (("branches", branches, 1), ("length", length, 1), ("seed", seed, 0)):
            check_count(option, value, least)
        self.model, self.name, self.drawing = model, name, drawing
        self.branches = 1 if drawing == "chain" else branches
        self.length, self.stop = length, stop
        self.rng = np.random.default_rng(seed)

    def start(self, prompt: Sequence[int], output: Output) -> Source:
        """See ``Drafter.start``.

        Raises:
            ModelError: the draft model has fewer tokens than the vocabulary.
        """
        if self.model.vocab_size < output.vocabulary.size:
            raise ModelError(
                f"The draft model has {self.model.vocab_size} tokens, the vocabulary {output.vocabulary.size}; "
                "take a draft model with the target's tokenizer."
            )
        return _ModelSource(self, prompt, output)


class _ModelSource(Source):
    def __init__(self, drafter: ModelDrafter, prompt: Sequence[int], output: Output) -> None:
        self.name = drafter.name
        self._drafter, self._params, self._size = drafter, output.params, output.vocabulary.size
        self._reader = DraftReader(drafter.model, prompt)
        self._bitmask = np.zeros((1, (self._size + 31) // 32), dtype=np.int32)

    def extend(self, tokens: Sequence[int]) -> None:
        self._reader.extend(tokens)

    def propose(self, node: Node) -> list[Proposal]:
        drafter = self._drafter
        is_drafted_here = any(evidence[0] == self.name for evidence in node.evidence)
        if node.depth >= drafter.length or (
            node.parent is not None and not (is_drafted_here and node.chance >= drafter.stop)
        ):
            return []
        allowed = self._allowed(node)
        logits = to_numpy(self._reader.logits(node.path()))[: self._size]
        log_probs = masked_log_probs(logits, allowed)
        if self._params.temperature == 0 or drafter.drawing == "likeliest" or node.draws is not None:
            positions = np.argsort(-log_probs, kind="stable")[: drafter.branches].tolist()
            return self._proposals(positions, np.exp(log_probs), allowed)
        probs = filtered_probs(log_probs, self._params, deviation(logits, self._params))
        node.draws = self._draw(probs)
        return self._proposals(node.draws.positions, probs, allowed)

    def _draw(self, probs: LogProbs) -> Draws:
        drafter = self._drafter
        if drafter.drawing == "without replacement":
            return Draws(probs, rules.draw_without_replacement(probs, drafter.branches, drafter.rng), rules.recursive)
        rule = rules.chain if drafter.drawing == "chain" else rules.k_sequential
        return Draws(probs, rules.draw_with_replacement(probs, drafter.branches, drafter.rng), rule)

    def _proposals(self, positions: Sequence[int], probs: LogProbs, allowed: Ids | None) -> list[Proposal]:
        proposals = []
        for rank, position in enumerate(dict.fromkeys(positions)):
            token = position if allowed is None else int(allowed[position])
            prob = float(probs[position])
            proposals.append(Proposal(token, (self.name, rank, int(8 * prob)), min(0.95, prob)))
        return proposals

    def _allowed(self, node: Node) -> Ids | None:
        if node.matcher is None:
            return None
        node.matcher.fill_next_token_bitmask(self._bitmask, 0)
        return allowed_token_ids(self._bitmask[0], self._size)


class DraftReader:
    """A model reading a text and continuations of it, each token once as far as paths agree.

    Attributes:
        drafted, accepted: tokens read beyond the text, and those of them that became text.
    """

    def __init__(self, model: LanguageModel, prompt: Sequence[int]) -> None:
        self._model = model
        self._text, self._read = list(prompt), 0
        self._path: tuple[int, ...] = ()
        self._cache: Any = None
        self.drafted, self.accepted = 0, 0

    def extend(self, tokens: Sequence[int]) -> None:
        """Add tokens to the text; what was read of them as a path stays read."""
        self._text += tokens
        shared = common(self._path, tokens)
        self.drafted += len(self._path)
        self.accepted += shared
        self._crop(shared)
        self._read, self._path = self._read + shared, ()

    def logits(self, path: tuple[int, ...]) -> Any:
        """The logits [V] after the text and ``path``."""
        shared = common(self._path, path)
        new = [*self._text[self._read :], *path[shared:]]
        if self._cache is None:
            first, self._cache = self._model.prefill([new])
            self._read, self._path = len(self._text), path
            return first[0]
        if not new:  # all read already: once more, for the logits
            new = [(path or self._text)[-1]]
            self._crop(shared - 1)
        else:
            self._crop(shared)
        self._read, self._path = len(self._text), path
        return self._model.forward([new], self._cache)[0, -1]

    def _crop(self, path: int) -> None:
        """Forget what was read beyond the first ``path`` tokens of the path."""
        if self._cache is not None:
            self._cache.crop(self._read + path)
