"""The Triton kernels that draw after top_k, top_p and min_p, without a sort. Import them only where Triton is.

``bin_kernel`` counts a row's tokens by how far they are below the highest; the counts say where the filters end at the
latest. ``candidate_kernel`` writes the tokens down to there in segments, one a block. ``filtered_kernel`` finds exactly
where the filters end, and draws: among the candidates if they fit, which are then read once; else in passes over the
row. The end is the key of the last token kept, and how many of its equals are, in the order of their ids.
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
    key_of,
    load_block,
    powers,
    rank_of,
    row_sums,
    sum_at,
    value_of,
)

BINS = 256
"""An eighth of a nat each; the last has what is lower, or not allowed."""
SEGMENT = 64
"""Candidates of a block that are kept."""

_BINS: tl.constexpr = tl.constexpr(BINS)
_PIVOTS: tl.constexpr = tl.constexpr(8)
_UNDERFLOW: tl.constexpr = tl.constexpr(105.0)  # exp of less than minus this is 0 in float32


@triton.jit
def _bins_of(x, top, rate):
    steps = (top - x) * rate * 8.0
    return tl.where(steps < _BINS - 1, steps, _BINS - 1.0).to(tl.int32)


@triton.jit(do_not_specialize=["words", "blocks", "width"])
def bin_kernel(
    logits, row_stride, logits_rows, masks, mask_stride, mask_rows, rates, columns, words, blocks,
    heads, head_rows, width, token_ids, values, following, sums, top_ks, top_ps, min_ps, counts,
    ADJUSTED: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Add block b of request r, program r · blocks + b, to the row's counts, int32 [R, BINS]; the last stays 0."""
    block, request = tl.program_id(0) % blocks, (tl.program_id(0) // blocks).to(tl.int64)
    rate = tl.load(rates + request)
    filters = (tl.load(top_ks + request) > 0) | (tl.load(top_ps + request) < 1.0) | (tl.load(min_ps + request) > 0.0)
    if filters & (rate != 0.0):
        sums += request * blocks * 5
        top, usable, log_mass, total = row_sums(sums, rate, blocks, BLOCKS)
        highest = tl.load(sums + block * 5)
        if usable & (highest > float("-inf")):
            x, allowed, token = load_block(
                logits + tl.load(logits_rows + request).to(tl.int64) * row_stride,
                masks + tl.load(mask_rows + request).to(tl.int64) * mask_stride, block, columns, words, heads,
                tl.load(head_rows + request), width, token_ids, values, following, False, ADJUSTED, BLOCK,
            )  # fmt: skip
            bins = tl.reshape(tl.where(allowed, _bins_of(x, top, rate), _BINS - 1), [BLOCK])
            index = tl.arange(0, _BINS)
            counted = tl.histogram(bins, _BINS)
            tl.atomic_add(counts + request * _BINS + index, counted, mask=(counted > 0) & (index < _BINS - 1))


@triton.jit
def _last_bin(counts, k, share, least, total, columns):
    """A bin at or after the end of the filters: k tokens are up to it; else all that is after weighs less than what
    top_p leaves out. Or min_p keeps nothing after it: but top_p after top_k must see all that this has left."""
    index = tl.arange(0, _BINS)
    count = tl.load(counts + index)
    last = tl.full([], _BINS - 1, tl.int32)
    if k > 0:
        last = tl.min(tl.where(tl.cumsum(count, 0) >= k, index, last), 0)
    elif share < 1.0:
        most = count.to(tl.float64) * tl.exp(index.to(tl.float64) * -0.125)
        lowest = columns.to(tl.float64) * 1.5e-14  # the last bin, exp(-255 / 8) each
        beyond = tl.cumsum(most, 0, reverse=True) - most + lowest
        last = tl.min(tl.where(beyond < (1.0 - share) * total * 0.999, index, last), 0)
    if (least > 0.0) & ((k == 0) | (share >= 1.0)):
        last = tl.minimum(last, (tl.minimum(-tl.log(least), 31.0) * 8.0).to(tl.int32) + 1)
    return last


@triton.jit(do_not_specialize=["words", "blocks", "width"])
def candidate_kernel(
    logits, row_stride, logits_rows, masks, mask_stride, mask_rows, rates, columns, words, blocks,
    heads, head_rows, width, token_ids, values, following, sums, top_ks, top_ps, min_ps, counts,
    sizes, found_ids, found_logits,
    ADJUSTED: tl.constexpr, SEGMENT: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Write the tokens of block b of request r, program r · blocks + b, that the filters may keep, by rising ids:
    [R, blocks, SEGMENT], and how many there are, more than fit perhaps, int32 [R, blocks]."""
    block, request = tl.program_id(0) % blocks, (tl.program_id(0) // blocks).to(tl.int64)
    rate = tl.load(rates + request)
    k, share, least = tl.load(top_ks + request), tl.load(top_ps + request), tl.load(min_ps + request)
    if ((k > 0) | (share < 1.0) | (least > 0.0)) & (rate != 0.0):
        sums += request * blocks * 5
        top, usable, log_mass, total = row_sums(sums, rate, blocks, BLOCKS)
        highest = tl.load(sums + block * 5)
        size = tl.full([], 0, tl.int32)
        if usable & (highest > float("-inf")):
            last = _last_bin(counts + request * _BINS, k, share, least, total, columns)
            if _bins_of(highest, top, rate) <= last:
                x, allowed, token = load_block(
                    logits + tl.load(logits_rows + request).to(tl.int64) * row_stride,
                    masks + tl.load(mask_rows + request).to(tl.int64) * mask_stride, block, columns, words, heads,
                    tl.load(head_rows + request), width, token_ids, values, following, False, ADJUSTED, BLOCK,
                )  # fmt: skip
                is_found = allowed & (x > float("-inf")) & (_bins_of(x, top, rate) <= last)
                some = is_found.to(tl.int32)
                rank = rank_of(some, 0)
                size = flat_sum(some)
                start = (request * blocks + block) * SEGMENT
                fits = is_found & (rank < SEGMENT)
                tl.store(found_ids + start + rank, token, mask=fits)
                tl.store(found_logits + start + rank, x, mask=fits)
        tl.store(sizes + request * blocks + block, size)


@triton.jit
def _pivots(low, high):
    """Keys strictly between two keys (at least one is), by even steps of the values."""
    step = (tl.arange(0, _PIVOTS) + 1).to(tl.float64) / (_PIVOTS + 1)
    value = value_of(low) + (value_of(high) - value_of(low)) * step
    return tl.minimum(tl.maximum(key_of(value.to(tl.float32)), low + 1), high - 1)


@triton.jit
def _above(x, weights, pivots, low, high, MASS: tl.constexpr):
    """Of [rows, columns] with weights: how many are above each pivot (how much they weigh, if MASS), float64; the
    highest and the lowest key between two."""
    index = tl.arange(0, _PIVOTS)
    above = tl.zeros([_PIVOTS], tl.float64)
    key = key_of(x)
    inside = (weights > 0) & (key > low) & (key <= high)
    upper, lower = flat_max(tl.where(inside, key, low)), flat_min(tl.where(inside, key, high))
    for pivot in range(0, _PIVOTS):  # not unrolled: eight times the code takes ten seconds to compile
        counted = (weights > 0) & (key > sum_at(index, pivot, pivots))
        part = flat_sum(tl.where(counted, weights if MASS else 1.0, 0.0))
        above = tl.where(index == pivot, part.to(tl.float64), above)
    return above, upper, lower


@triton.jit
def _row_above(
    pivots, low, high, top, rate, row, mask, sums, columns, words, blocks, heads, head_row, width, token_ids, values,
    following, MASS: tl.constexpr, ADJUSTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """``_above`` of a row; blocks below ``low`` are not read."""
    above = tl.zeros([_PIVOTS], tl.float64)
    upper, lower = low, high
    for block in range(0, blocks):
        if key_of(tl.load(sums + block * 5)) > low:
            x, allowed, token = load_block(
                row, mask, block, columns, words, heads, head_row, width, token_ids, values, following,
                False, ADJUSTED, BLOCK,
            )  # fmt: skip
            weights = powers(tl.where(allowed, x, float("-inf")), top, rate)
            more, block_upper, block_lower = _above(x, weights, pivots, low, high, MASS)
            above += more
            upper, lower = tl.maximum(upper, block_upper), tl.minimum(lower, block_lower)
    return above, upper, lower


@triton.jit
def _threshold(
    need, low, high, top, rate, candidates, weights, row, mask, sums, columns, words, blocks, heads, head_row, width,
    token_ids, values, following, FOUND: tl.constexpr, MASS: tl.constexpr, ADJUSTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The largest key t such that tokens with keys of at least t count (weigh, if MASS) at least ``need``, what those
    above t do, and whether there is a t: tokens above ``low`` may be too few. Those above ``high`` are.

    Among candidates if FOUND, else in passes over the row. Steps are even in values, so few of them do where logits are
    spread as models spread them; each makes progress, so they end for any logits.
    """
    index = tl.arange(0, _PIVOTS)
    above_high = need * 0.0
    asks = index == 0  # the lowest pivot of the first step asks whether there are enough at all
    reachable = True
    while reachable & (low + 1 < high):
        pivots = tl.where(asks, low, _pivots(low, high))
        if FOUND:
            above, upper, lower = _above(candidates, weights, pivots, low, high, MASS)
        else:
            above, upper, lower = _row_above(
                pivots, low, high, top, rate, row, mask, sums, columns, words, blocks, heads, head_row, width,
                token_ids, values, following, MASS, ADJUSTED, BLOCK,
            )  # fmt: skip
        enough = above >= need
        reachable = tl.max((asks & ~enough).to(tl.int32), 0) == 0
        new_high = tl.min(tl.where(enough, high, pivots), 0)
        above_high = tl.where(new_high < high, tl.max(tl.where(enough, 0.0, above), 0), above_high)
        low = tl.maximum(tl.max(tl.where(enough, pivots, low), 0), tl.minimum(lower, new_high) - 1)
        high = tl.minimum(new_high, upper)
        asks = index < 0
    return high, above_high, reachable


@triton.jit
def _keep(x, weights, before, threshold, ties, least):
    """Weights of what the filters keep of [rows, columns]: above the threshold, the first ``ties`` at it (``before``
    came before these), and of them those of at least ``least``; the ties up to here."""
    key = key_of(x)
    equal = ((weights > 0) & (key == threshold)).to(tl.int32)
    stays = (key > threshold) | ((equal != 0) & (rank_of(equal, before) < ties))
    return tl.where(stays & (weights >= least), weights, 0.0), before + flat_sum(equal)


@triton.jit
def _row_keep(
    threshold, ties, least, top, rate, row, mask, sums, columns, words, blocks, heads, head_row, width, token_ids,
    values, following, ADJUSTED: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """What the filters keep of each block of a row, float64 [BLOCKS], and the ties in blocks before it."""
    index = tl.arange(0, BLOCKS)
    kept = tl.zeros([BLOCKS], tl.float64)
    ties_before = tl.zeros([BLOCKS], tl.int32)
    seen = ties * 0
    for block in range(0, blocks):
        highest = tl.load(sums + block * 5)
        ties_before = tl.where(index == block, seen, ties_before)
        if (highest > float("-inf")) & (key_of(highest) >= threshold):
            x, allowed, token = load_block(
                row, mask, block, columns, words, heads, head_row, width, token_ids, values, following,
                False, ADJUSTED, BLOCK,
            )  # fmt: skip
            weights = powers(tl.where(allowed, x, float("-inf")), top, rate)
            weights, seen = _keep(x, weights, seen, threshold, ties, least)
            kept = tl.where(index == block, flat_sum(weights).to(tl.float64), kept)
    return kept, ties_before


@triton.jit
def _end(
    k, share, top, rate, total, candidates, weights, row, mask, sums, columns, words, blocks, heads, head_row, width,
    token_ids, values, following, FOUND: tl.constexpr, ADJUSTED: tl.constexpr, BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
):  # fmt: skip
    """Where top_k, then top_p end: the key of the last token kept, and how many of its equals are."""
    # In float64: 1 / T may be so small that the reach overflows float32, which is then minus infinity.
    low = key_of((top.to(tl.float64) - _UNDERFLOW / rate.to(tl.float64)).to(tl.float32))
    high = key_of(top)
    low = tl.minimum(low, high - 1)
    threshold = low
    ties = high * 0
    if k > 0:
        last, above, reachable = _threshold(
            k.to(tl.float64), low, high, top, rate, candidates, weights, row, mask, sums, columns, words, blocks, heads,
            head_row, width, token_ids, values, following, FOUND, False, ADJUSTED, BLOCK,
        )  # fmt: skip
        if reachable:
            threshold = last
            ties = k - above.to(tl.int32)
            low = last - 1
            if share < 1.0:
                if FOUND:
                    some, seen = _keep(candidates, weights, 0, threshold, ties, 0.0)
                    total = tl.sum(tl.sum(some.to(tl.float64), 1), 0)
                else:
                    kept, ties_before = _row_keep(
                        threshold, ties, 0.0, top, rate, row, mask, sums, columns, words, blocks, heads, head_row,
                        width, token_ids, values, following, ADJUSTED, BLOCK, BLOCKS,
                    )  # fmt: skip
                    total = tl.sum(kept, 0)
    if share < 1.0:
        need = share * total
        last_of_mass, above_mass, reachable_mass = _threshold(
            need, low, high, top, rate, candidates, weights, row, mask, sums, columns, words, blocks, heads, head_row,
            width, token_ids, values, following, FOUND, True, ADJUSTED, BLOCK,
        )  # fmt: skip
        if reachable_mass:
            weight = tl.exp((value_of(last_of_mass).to(tl.float32) - top) * rate).to(tl.float64)
            few = tl.minimum(tl.maximum(tl.ceil((need - above_mass) / weight), 1.0), 1.0e9).to(tl.int32)
            ties = tl.where(last_of_mass == threshold, tl.minimum(ties, few), few)
            threshold = last_of_mass
    return threshold, ties


@triton.jit(do_not_specialize=["words", "blocks", "width"])
def filtered_kernel(
    logits, row_stride, logits_rows, masks, mask_stride, mask_rows, rates, columns, words, blocks,
    heads, head_rows, width, token_ids, values, following, sums, top_ks, top_ps, min_ps,
    sizes, found_ids, found_logits, uniforms, out,
    ADJUSTED: tl.constexpr, SEGMENT: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Draw again the token of request r, program (r), if it has filters: into ``out``, float64 [R, 3], as
    ``token_kernel`` did without them."""
    request = tl.program_id(0).to(tl.int64)
    rate = tl.load(rates + request)
    k, share, least = tl.load(top_ks + request), tl.load(top_ps + request), tl.load(min_ps + request)
    sums += request * blocks * 5
    out += request * 3
    drawn = tl.load(out)
    if ((k > 0) | (share < 1.0) | (least > 0.0)) & (rate != 0.0) & (drawn >= 0.0):
        mask = masks + tl.load(mask_rows + request).to(tl.int64) * mask_stride
        row = logits + tl.load(logits_rows + request).to(tl.int64) * row_stride
        head_row = tl.load(head_rows + request)
        top, usable, log_mass, total = row_sums(sums, rate, blocks, BLOCKS)
        index = tl.arange(0, BLOCKS)
        size = tl.load(sizes + request * blocks + index, mask=index < blocks, other=0)
        uniform = tl.load(uniforms + request)
        if tl.max(size, 0) <= SEGMENT:
            slot = tl.arange(0, SEGMENT)[None, :]
            slots = (request * blocks + index)[:, None] * SEGMENT + slot
            x = tl.load(found_logits + slots, mask=slot < size[:, None], other=float("-inf"))
            weights = powers(x, top, rate)
            threshold, ties = _end(
                k, share, top, rate, total, x, weights, row, mask, sums, columns, words, blocks, heads, head_row,
                width, token_ids, values, following, True, ADJUSTED, BLOCK, BLOCKS,
            )  # fmt: skip
            kept, seen = _keep(x, weights, 0, threshold, ties, least)
            mass = tl.sum(tl.sum(kept.to(tl.float64), 1), 0)
            block, column = choose_among(kept, uniform * mass, BLOCKS, SEGMENT)
            chosen_slot = (request * blocks + block) * SEGMENT + column
            token, chosen = tl.load(found_ids + chosen_slot), tl.load(found_logits + chosen_slot)
        else:
            nothing = tl.zeros([1, 1], tl.float32)
            threshold, ties = _end(
                k, share, top, rate, total, nothing, nothing, row, mask, sums, columns, words, blocks, heads,
                head_row, width, token_ids, values, following, False, ADJUSTED, BLOCK, BLOCKS,
            )  # fmt: skip
            in_blocks, ties_before = _row_keep(
                threshold, ties, least, top, rate, row, mask, sums, columns, words, blocks, heads, head_row, width,
                token_ids, values, following, ADJUSTED, BLOCK, BLOCKS,
            )  # fmt: skip
            target = uniform * tl.sum(in_blocks, 0)
            block, before = choose(index, in_blocks, target, BLOCKS)
            y, allowed, ids = load_block(
                row, mask, block, columns, words, heads, head_row, width, token_ids, values, following,
                False, ADJUSTED, BLOCK,
            )  # fmt: skip
            y = tl.where(allowed, y, float("-inf"))
            inside, seen = _keep(y, powers(y, top, rate), sum_at(index, block, ties_before), threshold, ties, least)
            word, bit = choose_among(inside, target - before, BLOCK // 32, 32)
            token = block * BLOCK + word * 32 + bit
            chosen = flat_sum(tl.where(ids == token, y, 0.0))
        tl.store(out + 1, (chosen - top).to(tl.float64) - log_mass)
        tl.store(out, token.to(tl.float64))
