"""``apply_bitmask``: one call for a batch, on the device where the logits are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from structgen.core.engines.apply.triton_here import current, triton_runs_on
from structgen.errors import BitmaskError

if TYPE_CHECKING:
    from torch import Tensor

# Logits whose bits are unpacked at once where there is no kernel.
_MOST_ELEMENTS = 1 << 24


def apply_bitmask(logits: Tensor, bitmask: Any, indices: Sequence[int] | Tensor | None = None) -> None:
    """Set the logits of disallowed tokens to -inf, in place, on their device.

    Nothing waits for the device. Only forbidden entries are written, so this costs what storing these costs.

    Args:
        logits: floating [V'] or [B, V'] with any row stride and adjacent columns. Columns from the mask's width on are
            disallowed.
        bitmask: int32 [W] or [M, W], a numpy array or a tensor on any device.
        indices: the rows of ``logits`` to mask, each with the mask row of the same number, as integers or a tensor of
            them; None: all. Rows out of range raise, but those in a tensor on a device are passed over: asking for
            them would wait.

    Raises:
        BitmaskError: shapes or dtypes that do not fit.
    """
    import torch

    batch = logits[None] if logits.ndim == 1 else logits
    if batch.ndim != 2 or not batch.is_floating_point() or (batch.shape[1] > 1 and batch.stride(1) != 1):
        raise BitmaskError(
            f"logits are {logits.dtype} of shape {tuple(logits.shape)}, strides {logits.stride()}; "
            f"wanted a floating tensor [batch, vocabulary] with adjacent columns"
        )
    mask = _mask(bitmask, batch.device)
    rows = None if indices is None else _rows(indices, min(len(batch), len(mask)), batch.device)
    if rows is None and len(mask) < len(batch):
        raise BitmaskError(f"rows {len(mask)} to {len(batch) - 1} of the logits have no row in the bitmask")
    if (len(batch) if rows is None else len(rows)) == 0 or batch.shape[1] == 0:
        return
    if triton_runs_on(batch.device.type):
        with current(batch.device):
            _launch(batch, mask, rows)
        return
    with torch.no_grad():
        _fill(batch, mask, rows)


def free_blocked(logits: Tensor, bitmask: Any) -> Tensor:
    """Give allowed tokens the logit 0 in rows that have nothing but -inf, on their device. Nothing waits for it.

    Args:
        logits: floating [B, V'], as ``apply_bitmask`` has left them; mutated.
        bitmask: int32 [B or more, W], as there.

    Returns:
        Integers [B] on the device: 0 in rows that had nothing.
    """
    import torch

    mask, covered = _mask(bitmask, logits.device)[: len(logits)], min(logits.shape[1], 32 * bitmask.shape[1])
    if triton_runs_on(logits.device.type):
        from structgen.core.engines.apply.kernel import BLOCK, free_kernel, look_kernel

        blocks, live = -(-covered // BLOCK), torch.zeros(len(logits), dtype=torch.int32, device=logits.device)
        rows = (logits, logits.stride(0), mask, mask.stride(0), live, covered, mask.shape[1], blocks)
        with current(logits.device):
            look_kernel[blocks * len(logits),](*rows, BLOCK=BLOCK)
            free_kernel[blocks * len(logits),](*rows, BLOCK=BLOCK)
        return live
    with torch.no_grad():
        live = (~torch.isneginf(logits)).any(dim=1)
        allowed = unpacked(mask, covered)
        logits[:, :covered].masked_fill_(allowed & ~live[:, None], 0.0)
    return live.to(torch.int32)


def _mask(bitmask: Any, device: Any) -> Tensor:
    import torch

    if isinstance(bitmask, np.ndarray):
        fits = bitmask.dtype == np.int32 and bitmask.ndim in (1, 2)
        mask = torch.from_numpy(bitmask if bitmask.flags.writeable else bitmask.copy()) if fits else None
    else:
        fits = isinstance(bitmask, torch.Tensor) and bitmask.dtype == torch.int32 and bitmask.ndim in (1, 2)
        mask = bitmask if fits else None
    if mask is None:
        what = f"{getattr(bitmask, 'dtype', type(bitmask).__name__)} with shape {tuple(getattr(bitmask, 'shape', ()))}"
        raise BitmaskError(f"the bitmask is {what}; wanted int32 [batch, words]")
    mask = mask[None] if mask.ndim == 1 else mask
    mask = mask if mask.shape[1] < 2 or mask.stride(1) == 1 else mask.contiguous()
    return _brought(mask, device)


def _brought(tensor: Tensor, device: Any) -> Tensor:
    """On the device; from pinned memory, so that the host does not wait for it."""
    if tensor.device == device:
        return tensor
    pinned = tensor.pin_memory() if device.type == "cuda" and tensor.device.type == "cpu" else tensor
    return pinned.to(device, non_blocking=True)


def _rows(indices: Sequence[int] | Tensor, bound: int, device: Any) -> Tensor:
    import torch

    rows = indices if isinstance(indices, torch.Tensor) else torch.tensor(list(indices), dtype=torch.int64)
    if rows.ndim != 1 or rows.is_floating_point():
        raise BitmaskError(f"indices are {rows.dtype} with shape {tuple(rows.shape)}; wanted integers [rows]")
    if rows.device.type == "cpu" and len(rows) and not (int(rows.min()) >= 0 and int(rows.max()) < bound):
        raise BitmaskError(f"rows {rows.tolist()} do not fit {bound} rows of logits and mask")
    return _brought(rows, device)


def _launch(batch: Tensor, mask: Tensor, rows: Tensor | None) -> None:
    from structgen.core.engines.apply.kernel import BLOCK, apply_kernel

    count, columns = len(batch) if rows is None else len(rows), batch.shape[1]
    blocks = -(-columns // BLOCK)
    apply_kernel[blocks * count,](
        batch, batch.stride(0), mask, mask.stride(0), mask if rows is None else rows, len(batch), len(mask), columns,
        mask.shape[1], blocks, 0, INDEXED=rows is not None, BLOCK=BLOCK,
    )  # fmt: skip


def unpacked(words: Tensor, columns: int) -> Tensor:
    """Bitmask rows, int32 [n, W], as Booleans [n, columns]; columns is at most 32 · W."""
    import torch

    bits = torch.arange(32, dtype=torch.int32, device=words.device)
    return ((words[:, :, None] >> bits) & 1).bool().flatten(1)[:, :columns]


def _fill(batch: Tensor, mask: Tensor, rows: Tensor | None) -> None:
    """The same without a kernel. O(rows · V)."""
    import torch

    covered = min(batch.shape[1], 32 * mask.shape[1])
    count = len(batch) if rows is None else len(rows)
    step = max(1, _MOST_ELEMENTS // batch.shape[1])
    for start in range(0, count, step):
        part = slice(start, min(start + step, count)) if rows is None else rows[start : start + step].long()
        forbidden = ~unpacked(mask[part], covered)
        if isinstance(part, slice):
            batch[part, :covered].masked_fill_(forbidden, -torch.inf)
            batch[part, covered:] = -torch.inf
        else:
            kept = batch[part]
            kept[:, :covered].masked_fill_(forbidden, -torch.inf)
            kept[:, covered:] = -torch.inf
            batch[part] = kept
