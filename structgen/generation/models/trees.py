"""Trees of tokens as what each token sees and where it stands: how ``forward_tree`` becomes ``forward_visible``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def tree_attention(
    parents: Sequence[int], width: int | None = None
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Which nodes each node attends to (bool [width, width], itself included) and its depth (int64 [width]).

    Args:
        parents: index of each node's parent, smaller than its own; -1 for what follows the cache directly.
        width: pads with nodes that attend to themselves.
    """
    width = len(parents) if width is None else width
    attends = np.eye(width, dtype=np.bool_)
    depths = np.zeros(width, dtype=np.int64)
    for node, parent in enumerate(parents):
        if parent >= 0:
            attends[node] |= attends[parent]
            depths[node] = depths[parent] + 1
    return attends, depths


def forward_tree(model: Any, token_ids: Sequence[Sequence[int]], parents: Sequence[Sequence[int]], cache: Any) -> Any:
    """``TreeLanguageModel.forward_tree`` by the ``forward_visible`` of a ``VisibleLanguageModel``."""
    width, sequences, past = max(map(len, token_ids)), len(token_ids), cache.length
    attention = [tree_attention(sequence, width) for sequence in parents]
    visible = np.empty((sequences, width, past + width), dtype=np.bool_)
    visible[:, :, :past] = np.asarray(cache.held())[:, None]
    visible[:, :, past:] = [attends for attends, _ in attention]
    positions = visible[:, :1, :past].sum(axis=2) + [depths for _, depths in attention]
    padded = [[*sequence, *[0] * (width - len(sequence))] for sequence in token_ids]
    return model.forward_visible(padded, visible, positions, cache)
