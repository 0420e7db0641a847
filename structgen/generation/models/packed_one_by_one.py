"""Rows of a transformers model whose tokens are read one by one, so that nothing beside them shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from structgen.errors import ModelError
from structgen.generation.models.model_runner import NO_DRAFTS, Part, Reading
from structgen.generation.models.packed_model import PackedModel


class PackedOneByOne(PackedModel):
    """A ``PackedModel`` that reads a token a call: its logits depend on the tokens before it only, bit for bit."""

    def read(self, parts: Sequence[Part]) -> Reading:
        """See ``RaggedReader.read``.

        Raises:
            ModelError: a tree is to be read.
        """
        import torch

        logits, starts = list[Any](), list[int]()
        for part in parts:
            if part.parents is not None:
                raise ModelError(NO_DRAFTS)
            starts.append(len(logits))
            for place, token in enumerate(part.tokens, 1):
                read = super().read([Part(part.row, [token])]).logits
                if not part.last_only or place == len(part.tokens):
                    logits.append(read)
        return Reading(torch.cat(logits), starts, [len(part.tokens) for part in parts])
