"""``TorchSampler``: tokens drawn with torch operations, for many rows at once, on the device where the logits are.

Sums are float64 where the device has it, so tokens are those of the definition (`decoding.sampling`) but where a random
number falls within rounding of a token's boundary. A draw sends one packed transfer down and one up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from structgen.core.engines.apply.apply import unpacked
from structgen.errors import BitmaskError
from structgen.generation.filters.table import FILTER_NAMED
from structgen.generation.filters.tensor_rows import TensorRows, deviation, pick
from structgen.generation.sampling.device_batch import Batch, choices, transfer
from structgen.generation.sampling.device_masks import TABLE_BYTES, MaskTable, SentMasks, send_once
from structgen.generation.sampling.draws import needs_deviation
from structgen.generation.sampling.sampler import Bitmask, Choices, DrawRequest

# Elements of one temporary tensor: rows are drawn in parts where a batch has more.
_MOST_ELEMENTS = 1 << 26


class TorchSampler:
    """A ``TokenSampler`` for logits on one torch device.

    Args:
        device: where logits are.
        table_bytes: of the table of masks there; 0: no table. A CPU needs none.

    Attributes:
        transferred: bytes of parameters sent down so far; those of masks count with their tables.
    """

    def __init__(self, device: torch.device | str, *, table_bytes: int = TABLE_BYTES) -> None:
        self.device = torch.device(device)
        self.transferred = 0
        self._table_bytes = 0 if self.device.type == "cpu" else table_bytes
        self._tables: dict[int, MaskTable] = {}
        self._float = torch.float32 if self.device.type == "mps" else torch.float64

    def table(self, words: int) -> MaskTable:
        """The table for masks of so many words."""
        if words not in self._tables:
            self._tables[words] = MaskTable(words, self.device, max_bytes=self._table_bytes)
        return self._tables[words]

    def send(self, bitmask: Bitmask) -> SentMasks:
        """Begin to bring masks to the device, while what it was given before runs."""
        return self.table(bitmask.shape[-1]).send(bitmask) if self._table_bytes else send_once(bitmask, self.device)

    def draw(self, logits: Tensor, masks: SentMasks, requests: Sequence[DrawRequest], *, kept: bool = False) -> Choices:
        """Draw a token for each request; see ``TokenSampler``.

        Raises:
            BitmaskError: logits that are not floating [N, V'] on the sampler's device.
        """
        drawn = self.drawn(logits, masks, Batch.of(requests), kept=kept)
        return choices(drawn.cpu().numpy(), kept=kept)

    def drawn(self, logits: Tensor, masks: SentMasks, batch: Batch, *, kept: bool = False) -> Tensor:
        """What ``draw`` finds, still on the device: floating [R, 3], token id, log-probability, log of what was
        kept."""
        check_logits(logits, self.device)
        columns = min(logits.shape[1], 32 * masks.words)
        batch = batch.checked(len(logits), len(masks.slots), columns)
        masks.wait()
        out = torch.full((len(batch), 3), torch.nan, dtype=self._float, device=self.device)
        for steps, rows in _groups(batch, max(1, _MOST_ELEMENTS // max(columns, 1))):
            part = batch if len(rows) == len(batch) else batch.take(rows)
            drawn = self._draw_alike(logits[:, :columns], masks, part, steps, rows, kept)
            out[drawn[0]] = drawn[1]
        masks.used()
        return out

    def _draw_alike(
        self,
        logits: Tensor,
        masks: SentMasks,
        batch: Batch,
        steps: tuple[str, ...],
        rows: npt.NDArray[np.int64],
        kept: bool,
    ) -> tuple[Tensor, Tensor]:
        """Draw for rows of the same steps: where they stand in the whole batch, and floating [n, 3]."""
        precise = np.float32 if self._float == torch.float32 else np.float64
        names = [step for step in steps if step != "temperature"]
        named = [batch.column(step)[:, None].astype(precise) for step in ("temperature", *names)]
        numbers = batch.uniforms.astype(precise)
        if precise is np.float32:  # not up to 1, which no cumulative weight exceeds
            numbers = np.minimum(numbers, np.nextafter(np.float32(1), np.float32(0)))
        entries = batch.entries
        arrays: list[npt.NDArray[Any]] = [rows, batch.logits_rows, masks.slots[batch.mask_rows], numbers, *named]
        if entries is not None:
            arrays += [entries.rows, entries.token_ids, entries.bias, entries.factor, entries.minus]
        sent, size = transfer(arrays, self.device)
        self.transferred += size
        places, logits_rows, mask_rows, uniforms = sent[:4]
        values = dict(zip(("temperature", *names), sent[4 : 4 + len(named)], strict=True))
        taken = logits.index_select(0, logits_rows)
        if entries is not None:
            adjust(taken := taken.to(_adjusted_dtype(taken)), *sent[4 + len(named) :])
        all_of_it = taken.to(self._float)
        masked = all_of_it.masked_fill(~unpacked(masks.rows.index_select(0, mask_rows), logits.shape[1]), -torch.inf)
        sigma = deviation(all_of_it) if needs_deviation(steps) else None
        return places, _draw(masked, all_of_it if kept else None, steps, values, sigma, uniforms)


def check_logits(logits: Any, device: torch.device) -> None:
    """Raises ``BitmaskError`` unless logits are a floating tensor [N, V'] on a device."""
    if not (isinstance(logits, Tensor) and logits.ndim == 2 and logits.is_floating_point()):
        what = f"{getattr(logits, 'dtype', type(logits).__name__)} of shape {tuple(getattr(logits, 'shape', ()))}"
        raise BitmaskError(f"logits are {what}; wanted a floating torch tensor [rows, vocabulary]")
    if logits.device.type != device.type:
        raise BitmaskError(f"logits are on {logits.device}, and the sampler was made for {device}")


def adjust(logits: Tensor, rows: Tensor, ids: Tensor, bias: Tensor, factor: Tensor, minus: Tensor) -> None:
    """``Adjustments.apply`` for entries of several rows, in place. O(entries)."""
    rows, ids = rows.long(), ids.long()
    values = logits[rows, ids] + bias
    logits[rows, ids] = torch.where(values > 0, values / factor, values * factor) - minus


def _adjusted_dtype(logits: Tensor) -> torch.dtype:
    """Half precision is adjusted in float32, as numpy would."""
    return logits.dtype if logits.dtype == torch.float64 else torch.float32


def _groups(batch: Batch, most: int) -> Iterator[tuple[tuple[str, ...], npt.NDArray[np.int64]]]:
    """Rows by their steps, at most so many together."""
    steps_of = [params.steps for params in batch.params]
    for steps in dict.fromkeys(steps_of):
        alike = np.array([each == steps for each in steps_of])
        rows = np.flatnonzero(alike[batch.which])
        for start in range(0, len(rows), most):
            yield steps, rows[start : start + most]


def _filtered(log_probs: Tensor, steps: tuple[str, ...], values: dict[str, Tensor], sigma: Tensor | None) -> Tensor:
    """``draws.filtered_probs`` of rows of the same steps, floating [n, C], whose parameters are columns [n, 1]."""
    scores = log_probs
    for step in steps:
        if step == "temperature":
            scores = scores / values["temperature"]
        else:
            kept = FILTER_NAMED[step].keeps_rows(TensorRows(scores, log_probs, sigma), values[step])
            scores = scores.masked_fill(~kept, -torch.inf)
    return torch.softmax(scores, 1)


def _draw(
    masked: Tensor, all_of_it: Tensor | None, steps: tuple[str, ...], values: dict[str, Tensor], sigma: Tensor | None,
    uniforms: Tensor,
) -> Tensor:  # fmt: skip
    """Token ids, log-probabilities and what was kept, floating [n, 3], of rows of adjusted logits."""
    highest = masked.amax(1, keepdim=True)
    usable = torch.isfinite(highest)[:, 0]
    below = masked - highest
    log_mass = below.exp().sum(1, keepdim=True).log()
    log_probs = below - log_mass
    if steps:
        token = pick(_filtered(log_probs, steps, values, sigma), uniforms)
    else:  # not argmax: which of equals it gives is not the same on all devices
        ids = torch.arange(masked.shape[1], device=masked.device)
        token = torch.where(masked == highest, ids, masked.shape[1]).amin(1)
    token = torch.where(usable, token, -1)
    chosen = log_probs.gather(1, token.clamp(0, masked.shape[1] - 1)[:, None])[:, 0]
    out = torch.stack([token.to(masked.dtype), chosen.masked_fill(~usable, torch.nan), torch.zeros_like(chosen)], 1)
    if all_of_it is not None:
        top = all_of_it.amax(1, keepdim=True)
        all_mass = torch.where(torch.isinf(top), 0, (all_of_it - top).exp().sum(1, keepdim=True).log())
        out[:, 2] = (highest - top + torch.where(usable[:, None], log_mass, 0) - all_mass).clamp(max=0)[:, 0]
    return out
