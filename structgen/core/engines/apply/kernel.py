"""The Triton kernels that apply masks. Import them only where Triton is."""

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


@triton.jit
def _bits(bitmask, mask_stride, row, start, columns, words, BLOCK: tl.constexpr):
    """The columns of a block, and which of them a row of the bitmask allows."""
    column = start + tl.arange(0, BLOCK)
    word = tl.load(bitmask + row * mask_stride + column // 32, mask=column // 32 < words, other=0)
    return column, (((word >> (column % 32)) & 1) != 0) & (column < columns)


@triton.jit(do_not_specialize=["columns", "words", "blocks"])
def look_kernel(logits, row_stride, bitmask, mask_stride, live, columns, words, blocks, BLOCK: tl.constexpr):
    """Set ``live[r]`` if an allowed logit of row r is above -inf. Program r · blocks + b looks at block b of row r."""
    row = (tl.program_id(0) // blocks).to(tl.int64)
    start = tl.program_id(0) % blocks * BLOCK
    column, allowed = _bits(bitmask, mask_stride, row, start, columns, words, BLOCK)
    values = tl.load(logits + row * row_stride + column, mask=allowed, other=float("-inf")).to(tl.float32)
    if tl.max((values != float("-inf")).to(tl.int32), 0) > 0:
        tl.store(live + row, 1)


@triton.jit(do_not_specialize=["columns", "words", "blocks"])
def free_kernel(logits, row_stride, bitmask, mask_stride, live, columns, words, blocks, BLOCK: tl.constexpr):
    """Store 0 where a bit is 1, in rows that are not live. The programs are those of ``look_kernel``."""
    row = (tl.program_id(0) // blocks).to(tl.int64)
    if tl.load(live + row) == 0:
        start = tl.program_id(0) % blocks * BLOCK
        column, allowed = _bits(bitmask, mask_stride, row, start, columns, words, BLOCK)
        tl.store(logits + row * row_stride + column, 0.0, mask=allowed)
