"""The Triton kernel that applies masks. Import it only where Triton is."""

from __future__ import annotations

import triton
import triton.language as tl

BLOCK = 4096  # logits of a program


@triton.jit(do_not_specialize=["rows", "mask_rows", "columns", "words", "zero"])
def apply_kernel(
    logits, row_stride, bitmask, mask_stride, indices, rows, mask_rows, columns, words, zero,
    INDEXED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Store -inf where a bit is 0 or no word is. Program (b, r) has block b of row r, or of row ``indices[r]``.

    Logits are never loaded, and nothing is stored for a block that is allowed whole. A block that is forbidden whole
    is filled with wide stores. Otherwise neighbouring lanes store neighbouring logits: ``zero`` (0, which the compiler
    is not to know) hides the alignment, for which a lane would take several neighbours, each with a store of its own.
    """
    start = tl.program_id(0) * BLOCK
    row = tl.program_id(1).to(tl.int64)
    if INDEXED:
        row = tl.load(indices + row).to(tl.int64)
    if (row >= 0) & (row < rows) & (row < mask_rows):
        word = start // 32 + tl.arange(0, BLOCK // 32)
        bits = tl.load(bitmask + row * mask_stride + word, mask=word < words, other=0)
        inside = word < (columns + 31) // 32
        is_whole = tl.min(tl.where((bits == -1) | (word * 32 >= columns), 1, 0), 0) == 1
        is_empty = tl.max(tl.where(inside & (bits != 0), 1, 0), 0) == 0
        base = logits + row * row_stride
        if is_empty:
            column = start + tl.arange(0, BLOCK)
            tl.store(base + column, float("-inf"), mask=column < columns)
        elif not is_whole:
            bit = tl.arange(0, 32)[None, :]
            column = word[:, None] * 32 + bit + zero
            forbidden = ((bits[:, None] >> bit) & 1) == 0
            tl.store(base + column, float("-inf"), mask=forbidden & (column < columns))
