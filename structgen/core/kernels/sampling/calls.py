"""What others call of the sampling kernel: tokens drawn from rows of logits, -inf written over them, narrow masks.

Rows are given by their addresses, so that they may lie anywhere; who calls keeps them alive.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from structgen.core.kernels.calls import Function
from structgen.core.kernels.loading import kernel
from structgen.core.kernels.sampling.layout import *

Addresses = npt.NDArray[np.int64]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
_I8, _F8 = np.dtype(np.int64), np.dtype(np.float64)

run = kernel("sampling")
_draw = Function(run, DRAW, [_I8, _I8, _F8, _F8], [_I8, _F8, _F8, _F8])
_gather = Function(run, GATHER, [_I8, _I8, _F8, _F8], [_I8, _F8, _F8, _F8, _I8])
_NO_FLOATS, _NO_FOUND = np.zeros(0, _F8), np.zeros((0, FOUND), _F8)


def blocks_of(words: int) -> int:
    """How many blocks a row of so many mask words has."""
    return -(-words // BLOCK_WORDS)


def draw(
    logits: Addresses, masks: Addresses, scales: Float64, uniforms: Float64, tokens: Int64, statistics: Float64,
    blocks: Float64, *, columns: int, words: int, kind: int, kept: bool = False,
) -> None:  # fmt: skip
    """Draw a token from each of R rows.

    Args:
        logits, masks: addresses of rows of ``columns`` logits of a ``kind`` and of ``words`` int32.
        scales: 1 / temperature, or 0 to take the highest; finite.
        uniforms: in [0, 1).
        tokens: int64 [R], written: the token, or ``BAD``.
        found: float64 [R, FOUND], written: see ``F_...``; nats. ``F_KEPT`` only if asked for.
        blocks: float64 [R, B_SIZE · blocks], written: see ``B_...``.
    """
    shape = columns | kind << KIND_SHIFT | (WITH_KEPT if kept else 0)
    _draw(logits, masks, scales, uniforms, tokens, statistics, blocks, np.empty(SCRATCH, _F8), x=shape, y=words)


def gather(logits: int, mask: int, blocks: Float64, least: float, *, columns: int, words: int, kind: int) -> Int64:
    """Keys of the allowed tokens of a row whose logit is at least ``least``, as they come; see `logits_of`.

    ``blocks``: float64 [1, B_SIZE · blocks], as ``draw`` wrote them for the row.
    """
    keys, count = np.empty(32 * words, _I8), np.zeros(1, _I8)
    rows = (np.array([logits], _I8), np.array([mask], _I8), np.array([least], _F8), _NO_FLOATS)
    scratch = np.empty(SCRATCH, _F8)
    _gather(*rows, count, _NO_FOUND, blocks, scratch, keys, x=columns | kind << KIND_SHIFT, y=words)
    return keys[: count[0]]


def logits_of(keys: Int64) -> tuple[npt.NDArray[np.float32], Int64]:
    """Logits and tokens of keys."""
    ordered = (keys >> 32).astype(np.int32)
    bits = np.where(ordered >= 0, ordered, np.int32(-(2**31)) - ordered)  # sign and magnitude
    return bits.astype(np.int32).view(np.float32), 0xFFFFFFFF - (keys & 0xFFFFFFFF)


def apply(
    logits: Iterable[int], masks: Iterable[int], targets: Iterable[int], columns: int, words: int, kind: int,
    few: int = FEW_FORBIDDEN,
) -> list[int]:  # fmt: skip
    """Write R rows of ``columns`` logits of a ``kind`` to their targets, -inf where their masks of ``words`` forbid.

    Rows are addresses. Targets may be the logits themselves, row by row, and overlap them nowhere else; then, of words
    that forbid at most ``few`` tokens, only these are written. Returns R numbers: 1 where no allowed token has a logit
    above -inf.
    """
    rows = array("q", logits)
    count = len(rows)
    rows.extend(masks)
    rows.extend(targets)
    rows.frombytes(bytes(8 * count))
    start, size = rows.buffer_info()[0], 8 * count
    tables = array("q", (
        start, count, count, start + size, count, count,
        start + 2 * size, count, count, start + 3 * size, count, count,
    ))  # fmt: skip
    run(tables.buffer_info()[0], APPLY, columns | kind << KIND_SHIFT, words, few)
    return rows[3 * count :].tolist()
