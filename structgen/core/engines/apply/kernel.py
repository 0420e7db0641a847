"""The Triton kernel that applies masks. Import it only where Triton is."""

from __future__ import annotations

import triton
import triton.language as tl

BLOCK = 2048  # logits of a program


@triton.jit(do_not_specialize=["rows", "mask_rows", "words", "blocks", "zero"])
def apply_kernel(
    logits, row_stride, bitmask, mask_stride, indices, rows, mask_rows, columns, words, blocks, zero,
    INDEXED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Store -inf where a bit is 0 or no word is. Program r · blocks + b has block b of row r, or of row ``indices[r]``.

    Logits are never loaded. Words that forbid all get wide stores, words that allow all none. For the others,
    neighbouring lanes store neighbouring logits: ``zero`` (0, which the compiler is not to know) hides the alignment,
    for which each lane would take several neighbours, with a store for each.
    """
    start = tl.program_id(0) % blocks * BLOCK
    row = (tl.program_id(0) // blocks).to(tl.int64)
    if INDEXED:
        row = tl.load(indices + row).to(tl.int64)
    if (row >= 0) & (row < rows) & (row < mask_rows):
        word = start // 32 + tl.arange(0, BLOCK // 32)
        bits = tl.load(bitmask + row * mask_stride + word, mask=word < words, other=0)
        bit = tl.arange(0, 32)[None, :]
        column = word[:, None] * 32 + bit
        base = logits + row * row_stride
        tl.store(base + column, float("-inf"), mask=(bits == 0)[:, None] & (column < columns))
        is_mixed = (bits != 0) & (bits != -1)
        if tl.max(is_mixed.to(tl.int32), 0) > 0:
            forbidden = is_mixed[:, None] & (((bits[:, None] >> bit) & 1) == 0)
            tl.store(base + column + zero, float("-inf"), mask=forbidden & (column < columns))
