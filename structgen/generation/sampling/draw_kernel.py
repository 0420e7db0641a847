"""The Triton kernels that draw tokens. Import them only where Triton is.

The vocabulary is split into blocks, so that a single row fills the device: ``block_kernel`` reads each logit once and
leaves a few sums a block, ``token_kernel`` combines a row's and looks again at the one block where the token is. Their
split does not depend on the batch, so neither do a row's tokens. Within a block sums are float32, across blocks
float64; no sum depends on the order in which programs run.

A row's adjusted logits (bias, penalties) are kept beside its logits, which are not written to: lists of entries by mask
word, made by ``adjust_kernel``. Entry 0 ends a list.
"""

from __future__ import annotations

import triton
import triton.language as tl

from structgen.generation.sampling.kernel_parts import (
    choose,
    choose_among,
    flat_max,
    flat_min,
    flat_sum,
    load_block,
    powers,
    row_sums,
    sum_at,
)


@triton.jit(do_not_specialize=["count", "width"])
def adjust_kernel(
    logits, row_stride, logits_rows, entry_rows, entry_heads, token_ids, bias, factor, minus, values, following,
    heads, width, count, SIZE: tl.constexpr,
):  # fmt: skip
    """Compute adjusted logits, and list them by their row and mask word. ``entry_heads`` is the row of ``heads``."""
    entry = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    inside = entry < count
    token = tl.load(token_ids + entry, mask=inside, other=0)
    row = tl.load(logits_rows + tl.load(entry_rows + entry, mask=inside, other=0)).to(tl.int64)
    value = tl.load(logits + row * row_stride + token, mask=inside, other=0.0).to(tl.float32)
    value += tl.load(bias + entry, mask=inside, other=0.0)
    by = tl.load(factor + entry, mask=inside, other=1.0)
    value = tl.where(value > 0, tl.div_rn(value, by), value * by)
    tl.store(values + entry, value - tl.load(minus + entry, mask=inside, other=0.0), mask=inside)
    head = heads + tl.load(entry_heads + entry, mask=inside, other=0).to(tl.int64) * width + token // 32
    tl.store(following + entry, tl.atomic_xchg(head, entry + 1, mask=inside), mask=inside)


@triton.jit(do_not_specialize=["words", "blocks", "width"])
def block_kernel(
    logits, row_stride, logits_rows, masks, mask_stride, mask_rows, rates, columns, words, blocks,
    heads, head_rows, width, token_ids, values, following, sums,
    KEPT: tl.constexpr, ADJUSTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sums of block b of request r, program r · blocks + b: see ``SUMS``. ``rates`` are 1 / T, 0 for greedy rows. The
    first sum is NaN where an allowed logit is NaN or +inf."""
    block, request = tl.program_id(0) % blocks, (tl.program_id(0) // blocks).to(tl.int64)
    mask = masks + tl.load(mask_rows + request).to(tl.int64) * mask_stride
    word = block * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
    is_open = tl.max((tl.load(mask + word, mask=word < words, other=0) != 0).to(tl.int32), 0) > 0
    out = sums + (request * blocks + block) * 5
    highest, mass, cooled = float("-inf"), 0.0, 0.0
    if KEPT or is_open:
        x, allowed, token = load_block(
            logits + tl.load(logits_rows + request).to(tl.int64) * row_stride, mask, block, columns, words, heads,
            tl.load(head_rows + request), width, token_ids, values, following, KEPT, ADJUSTED, BLOCK,
        )  # fmt: skip
        y = tl.where(allowed, x, float("-inf"))
        highest = flat_max(y)
        mass = flat_sum(powers(y, highest, 1.0))
        rate = tl.load(rates + request)
        cooled = mass
        if (rate != 0.0) & (rate != 1.0):
            cooled = flat_sum(powers(y, highest, rate))
        if KEPT:
            top = flat_max(x)
            tl.store(out + 3, top)
            # +inf among those not allowed is no error: the mask keeps nothing then.
            tl.store(out + 4, tl.where(top == float("inf"), 1.0, flat_sum(powers(x, top, 1.0))))
    tl.store(out, highest)
    tl.store(out + 1, mass)
    tl.store(out + 2, cooled)


@triton.jit(do_not_specialize=["words", "blocks", "width"])
def token_kernel(
    logits, row_stride, logits_rows, masks, mask_stride, mask_rows, rates, columns, words, blocks,
    heads, head_rows, width, token_ids, values, following, sums, uniforms, out,
    KEPT: tl.constexpr, ADJUSTED: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """The token of request r, program (r), without filters: float64 [R, 3], its id or -1, its log-probability, log of
    what the mask kept."""
    request = tl.program_id(0).to(tl.int64)
    rate = tl.load(rates + request)
    sums += request * blocks * 5
    top, usable, log_mass, total = row_sums(sums, rate, blocks, BLOCKS)
    index = tl.arange(0, BLOCKS)
    highest = tl.load(sums + index * 5, mask=index < blocks, other=float("-inf"))
    chosen = top
    token = tl.full([], -1, tl.int32)
    if usable:
        block = tl.min(tl.where(highest == top, index, BLOCKS), 0)
        target = tl.load(uniforms + request) * total
        if rate != 0.0:
            # Relative to the block's highest, as they were summed: else a block's weights might all be 0.
            scales = tl.exp((highest - top).to(tl.float64) * rate.to(tl.float64))
            cooled = tl.load(sums + index * 5 + 2, mask=index < blocks, other=0.0).to(tl.float64)
            block, before = choose(index, cooled * scales, target, BLOCKS)
            target = (target - before) / sum_at(index, block, scales)
        x, allowed, ids = load_block(
            logits + tl.load(logits_rows + request).to(tl.int64) * row_stride,
            masks + tl.load(mask_rows + request).to(tl.int64) * mask_stride, block, columns, words, heads,
            tl.load(head_rows + request), width, token_ids, values, following, False, ADJUSTED, BLOCK,
        )  # fmt: skip
        if rate == 0.0:
            token = flat_min(tl.where(allowed & (x == top), ids, 2147483647))
        else:
            y = tl.where(allowed, x, float("-inf"))
            weights = powers(y, sum_at(index, block, highest), rate)
            word, bit = choose_among(weights, target, BLOCK // 32, 32)
            token = block * BLOCK + word * 32 + bit
            chosen = flat_sum(tl.where(ids == token, y, 0.0))
    out += request * 3
    tl.store(out, token.to(tl.float64))
    tl.store(out + 1, tl.where(usable, (chosen - top).to(tl.float64) - log_mass, float("nan")))
    if KEPT:
        tops = tl.load(sums + index * 5 + 3, mask=index < blocks, other=float("-inf"))
        all_mass = tl.load(sums + index * 5 + 4, mask=index < blocks, other=0.0).to(tl.float64)
        all_top = tl.max(tops, 0)
        scale = tl.where(tops == all_top, 1.0, tl.exp((tops - all_top).to(tl.float64)))
        kept = (top - all_top).to(tl.float64) + log_mass - tl.log(tl.sum(all_mass * scale, 0))
        tl.store(out + 2, tl.where(kept > 0, 0.0, kept))


@triton.jit(do_not_specialize=["row_stride"])
def path_kernel(drawn, tokens, parents, starts, out, row_stride, SIZE: tl.constexpr):
    """From the root of tree t, program (t), follow the child whose token was drawn at its parent; float64
    [trees, 1 + 3 · longest]: nodes on the path, then of each its place in the tree, its token, its log-probability."""
    tree = tl.program_id(0)
    start, end = tl.load(starts + tree), tl.load(starts + tree + 1)
    index = tl.arange(0, SIZE)
    inside = index < end - start
    token = tl.load(tokens + start + index, mask=inside, other=-1)
    parent = tl.load(parents + start + index, mask=inside, other=-1)
    row = out + tree.to(tl.int64) * row_stride
    node = start * 0
    length = start * 0
    going = end > start
    while going:
        drawn_at = drawn + (start + node).to(tl.int64) * 3
        choice = tl.load(drawn_at)
        target = row + 1 + 3 * length
        tl.store(target, node.to(tl.float64))
        tl.store(target + 1, choice)
        tl.store(target + 2, tl.load(drawn_at + 1))
        length += 1
        following = tl.min(tl.where(inside & (parent == node) & (token == choice.to(tl.int32)), index, SIZE), 0)
        going = following < SIZE
        node = tl.where(going, following, node)
    tl.store(row, length.to(tl.float64))
