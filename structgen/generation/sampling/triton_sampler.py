"""``TritonSampler``: tokens drawn by fused kernels, for logits on devices that Triton compiles for.

Each logit is read once (and its block again where a token is drawn); filters of other kinds or in other orders, and
float64 logits, are left to ``TorchSampler``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from structgen.core.engines.apply.triton_here import current
from structgen.generation.sampling.device_batch import Batch, transfer
from structgen.generation.sampling.device_masks import SentMasks
from structgen.generation.sampling.params import keeps_a_prefix
from structgen.generation.sampling.torch_sampler import TorchSampler, check_logits

_COMPILED = {"enable_fp_fusion": False}  # products and sums are rounded one by one, as elsewhere
_ENTRIES = 256  # entries that a program adjusts
_WARPS, _FILTER_WARPS = 4, 16
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_LEAST_RATE, _MOST_RATE = 1e-37, 3e38  # 1 / T in float32, neither 0 (greedy) nor infinite


class TritonSampler(TorchSampler):
    """A ``TokenSampler`` whose draws are kernels; parameters as ``TorchSampler``."""

    def drawn(self, logits: Tensor, masks: SentMasks, batch: Batch, *, kept: bool = False) -> Tensor:
        """What ``draw`` finds, still on the device; see ``TorchSampler.drawn``."""
        check_logits(logits, self.device)
        with current(logits.device):
            return self._drawn(logits, masks, batch, kept)

    def _drawn(self, logits: Tensor, masks: SentMasks, batch: Batch, kept: bool) -> Tensor:
        if logits.dtype not in _DTYPES or (logits.shape[1] > 1 and logits.stride(1) != 1):
            return super().drawn(logits, masks, batch, kept=kept)
        is_fused = np.array([keeps_a_prefix(params) for params in batch.params], bool)[batch.which]
        if is_fused.all():
            return self._fused(logits, masks, batch, kept)
        if not is_fused.any():
            return super().drawn(logits, masks, batch, kept=kept)
        there, others = np.flatnonzero(is_fused), np.flatnonzero(~is_fused)
        first = self._fused(logits, masks, batch.take(there), kept)
        second = super().drawn(logits, masks, batch.take(others), kept=kept)
        (places,), size = transfer([np.argsort(np.concatenate([there, others]))], self.device)
        self.transferred += size
        return torch.cat([first, second]).index_select(0, places)

    def _fused(self, logits: Tensor, masks: SentMasks, batch: Batch, kept: bool) -> Tensor:
        from structgen.generation.sampling.draw_kernel import block_kernel, token_kernel
        from structgen.generation.sampling.kernel_parts import BLOCK, SUMS

        columns = min(logits.shape[1], 32 * masks.words)
        batch = batch.checked(len(logits), len(masks.slots), columns)
        count, blocks = len(batch), -(-columns // BLOCK)
        out = torch.zeros(count, 3, dtype=torch.float64, device=self.device)
        if not count or not blocks:
            out[:, 0] = -1
            return out
        rates, *filters = _parameters(batch)
        heads_of, arrays = _entry_arrays(batch)
        sent, size = transfer(
            [batch.logits_rows, masks.slots[batch.mask_rows], rates, batch.uniforms, *filters, heads_of, *arrays],
            self.device,
        )
        self.transferred += size
        logits_rows, mask_rows, rate, uniforms, *there, head_rows = sent[:8]
        sums = torch.empty(count, blocks, SUMS, dtype=torch.float32, device=self.device)
        lists = _lists(logits, logits_rows, sent[8:], int(heads_of.max()) + 1, masks.words)
        common = (
            logits, logits.stride(0), logits_rows, masks.rows, masks.rows.stride(0), mask_rows, rate, columns,
            masks.words, blocks, lists[0], head_rows, masks.words, *lists[1:], sums,
        )  # fmt: skip
        options = {"ADJUSTED": bool(arrays), "BLOCK": BLOCK, **_COMPILED}
        width = {"BLOCKS": 1 << (blocks - 1).bit_length()}
        masks.wait()
        block_kernel[count * blocks,](*common, **options, KEPT=kept, num_warps=_WARPS)
        token_kernel[count,](*common, uniforms, out, **options, **width, KEPT=kept, num_warps=_WARPS)
        if _has_filters(filters, rates).any():
            self._filter(common, there, uniforms, out, {**options, **width})
        masks.used()
        return out

    def _filter(
        self, common: tuple[Any, ...], filters: list[Tensor], uniforms: Tensor, out: Tensor, options: dict[str, Any]
    ) -> None:
        """Draw the rows with filters again, into ``out``."""
        from structgen.generation.sampling.filter_kernel import (
            BINS,
            SEGMENT,
            bin_kernel,
            candidate_kernel,
            filtered_kernel,
        )

        count, blocks = len(out), common[9]
        counts = torch.zeros(count, BINS, dtype=torch.int32, device=self.device)
        sizes = torch.empty(count, blocks, dtype=torch.int32, device=self.device)
        buffers = torch.empty(2, count, blocks, SEGMENT, dtype=torch.int32, device=self.device)
        candidates = (sizes, buffers[0], buffers[1].view(torch.float32))
        bin_kernel[count * blocks,](*common, *filters, counts, **options, num_warps=_WARPS)
        candidate_kernel[count * blocks,](
            *common, *filters, counts, *candidates, **options, SEGMENT=SEGMENT, num_warps=_WARPS
        )
        filtered_kernel[count,](
            *common, *filters, *candidates, uniforms, out, **options, SEGMENT=SEGMENT, num_warps=_FILTER_WARPS
        )


def _parameters(batch: Batch) -> tuple[npt.NDArray[Any], ...]:
    """Of each row 1 / T (0: greedy), top_k (0: none), top_p and min_p."""
    temperature = batch.column("temperature")
    is_greedy = temperature == 0
    rates = np.clip(1 / np.where(is_greedy, 1, temperature), _LEAST_RATE, _MOST_RATE)
    top_ks = np.minimum(batch.column("top_k"), (1 << 31) - 1).astype(np.int32)
    min_ps = batch.column("min_p").astype(np.float32)
    return np.where(is_greedy, 0, rates).astype(np.float32), top_ks, batch.column("top_p"), min_ps


def _has_filters(filters: list[npt.NDArray[Any]], rates: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    top_ks, top_ps, min_ps = filters
    return np.asarray(((top_ks > 0) | (top_ps < 1) | (min_ps > 0)) & (rates != 0))


def _entry_arrays(batch: Batch) -> tuple[npt.NDArray[np.int32], list[npt.NDArray[Any]]]:
    """Each row's list of entries, -1 for none, and the entries as ``adjust_kernel`` takes them."""
    heads_of = np.full(len(batch), -1, np.int32)
    entries = batch.entries
    if entries is None:
        return heads_of, []
    rows, heads = np.unique(entries.rows, return_inverse=True)
    heads_of[rows] = np.arange(len(rows), dtype=np.int32)
    arrays = [entries.rows, heads.astype(np.int32), entries.token_ids, entries.bias, entries.factor, entries.minus]
    return heads_of, arrays


def _lists(
    logits: Tensor, logits_rows: Tensor, entries: list[Tensor], rows: int, words: int
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The lists of adjusted logits: heads [rows, words], token ids, values, the following entries."""
    from structgen.generation.sampling.draw_kernel import adjust_kernel

    if not entries:
        nothing = torch.empty(1, dtype=torch.int32, device=logits.device)
        return nothing, nothing, nothing.view(torch.float32), nothing
    count = len(entries[0])
    heads = torch.zeros(rows, words, dtype=torch.int32, device=logits.device)
    values = torch.empty(count, dtype=torch.float32, device=logits.device)
    following = torch.empty(count, dtype=torch.int32, device=logits.device)
    adjust_kernel[-(-count // _ENTRIES),](
        logits,
        logits.stride(0),
        logits_rows,
        *entries,
        values,
        following,
        heads,
        words,
        count,
        SIZE=_ENTRIES,
        **_COMPILED,
    )
    return heads, entries[2], values, following
