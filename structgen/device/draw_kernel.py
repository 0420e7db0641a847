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

BLOCK = 2048
"""Logits of a block; a multiple of 32."""
SUMS = 5
"""Of each block, float32: the highest allowed logit h; Σ exp(x - h), Σ exp((x - h) / T) over the allowed; the highest
of all g; Σ exp(x - g) over all."""

_LARGEST: tl.constexpr = tl.constexpr(2147483647)
_PIVOTS: tl.constexpr = tl.constexpr(8)
_UNDERFLOW: tl.constexpr = tl.constexpr(105.0)  # exp of less than minus this is 0 in float32


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


@triton.jit
def _adjusted(x, token, word, words, head, token_ids, values, following):
    """A block's logits with the entries of its words in their places."""
    entry = tl.load(head + word, mask=word < words, other=0)
    while tl.max(entry, 0) > 0:
        some = entry > 0
        at = tl.load(token_ids + entry - 1, mask=some, other=-1)
        value = tl.load(values + entry - 1, mask=some, other=0.0)
        x = tl.where(token == at[:, None], value[:, None], x)
        entry = tl.load(following + entry - 1, mask=some, other=0)
    return x


@triton.jit
def _block(
    logits, mask, block, columns, words, heads, head_row, width, token_ids, values, following,
    ALL: tl.constexpr, ADJUSTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Of a row's block, [BLOCK / 32, 32]: logits in float32 (words without an allowed one are only read if ALL), which
    are allowed, and token ids. Loads are masked by words, so that they stay wide."""
    word = block * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
    bit = tl.arange(0, 32)[None, :]
    bits = tl.load(mask + word, mask=word < words, other=0)
    token = word[:, None] * 32 + bit
    inside = token < columns
    allowed = (((bits[:, None] >> bit) & 1) != 0) & inside
    wanted = inside if ALL else inside & (bits != 0)[:, None]
    x = tl.load(logits + token, mask=wanted, other=float("-inf")).to(tl.float32)
    if ADJUSTED:
        if head_row >= 0:
            x = _adjusted(x, token, word, words, heads + head_row.to(tl.int64) * width, token_ids, values, following)
    return x, allowed, token


@triton.jit
def _flat_sum(x):
    return tl.sum(tl.sum(x, 1), 0)


@triton.jit
def _flat_max(x):
    return tl.max(tl.max(x, 1), 0)


@triton.jit
def _flat_min(x):
    return tl.min(tl.min(x, 1), 0)


@triton.jit
def _powers(x, highest, rate):
    """exp((x - highest) · rate); 0 for -inf whatever the rate and the highest."""
    return tl.where(x == float("-inf"), 0.0, tl.exp((x - highest) * rate))


@triton.jit(do_not_specialize=["words", "blocks", "width"])
def block_kernel(
    logits, row_stride, logits_rows, masks, mask_stride, mask_rows, rates, columns, words, blocks,
    heads, head_rows, width, token_ids, values, following, sums,
    KEPT: tl.constexpr, ADJUSTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sums of block b of request r, program (b, r): see ``SUMS``. ``rates`` are 1 / T, 0 for greedy rows. The first sum
    is NaN where an allowed logit is NaN or +inf."""
    block, request = tl.program_id(0), tl.program_id(1).to(tl.int64)
    mask = masks + tl.load(mask_rows + request).to(tl.int64) * mask_stride
    word = block * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
    is_open = tl.max((tl.load(mask + word, mask=word < words, other=0) != 0).to(tl.int32), 0) > 0
    out = sums + (request * blocks + block) * 5
    highest, mass, cooled = float("-inf"), 0.0, 0.0
    if KEPT or is_open:
        x, allowed, token = _block(
            logits + tl.load(logits_rows + request).to(tl.int64) * row_stride, mask, block, columns, words, heads,
            tl.load(head_rows + request), width, token_ids, values, following, KEPT, ADJUSTED, BLOCK,
        )  # fmt: skip
        y = tl.where(allowed, x, float("-inf"))
        highest = _flat_max(y)
        mass = _flat_sum(_powers(y, highest, 1.0))
        rate = tl.load(rates + request)
        cooled = mass
        if (rate != 0.0) & (rate != 1.0):
            cooled = _flat_sum(_powers(y, highest, rate))
        if KEPT:
            top = _flat_max(x)
            tl.store(out + 3, top)
            # +inf among those not allowed is no error: the mask keeps nothing then.
            tl.store(out + 4, tl.where(top == float("inf"), 1.0, _flat_sum(_powers(x, top, 1.0))))
    tl.store(out, highest)
    tl.store(out + 1, mass)
    tl.store(out + 2, cooled)


@triton.jit
def _sum_at(index, place, x):
    """x[place], whatever the others hold."""
    return tl.sum(tl.where(index == place, x, 0), 0)


@triton.jit
def _choose(index, weights, target, SIZE: tl.constexpr):
    """The first place with a weight whose cumulative weight exceeds ``target``, else the last with a weight; and the
    sum of those before it."""
    weights = weights.to(tl.float64)
    some = weights > 0
    first = tl.min(tl.where(some & (tl.cumsum(weights, 0) > target), index, SIZE), 0)
    last = tl.max(tl.where(some, index, 0), 0)
    place = tl.where(first < SIZE, first, last)
    return place, tl.sum(tl.where(index < place, weights, 0.0), 0)


@triton.jit
def _choose_in_block(weights, target, BLOCK: tl.constexpr):
    """The place in a block [BLOCK / 32, 32] that ``target`` chooses: its word first, then its bit."""
    words = tl.arange(0, BLOCK // 32)
    weights = weights.to(tl.float64)
    word, before = _choose(words, tl.sum(weights, 1), target, BLOCK // 32)
    bits = tl.arange(0, 32)
    bit, before_bit = _choose(bits, tl.sum(tl.where(words[:, None] == word, weights, 0.0), 0), target - before, 32)
    return word * 32 + bit


@triton.jit
def _key(x):
    """An int32 that orders as the float32 does; both zeros alike."""
    bits = tl.where(x == 0.0, 0.0, x).to(tl.int32, bitcast=True)
    return tl.where(bits >= 0, bits, bits ^ 0x7FFFFFFF)


@triton.jit
def _value(key):
    """The float32 of a key, in float64, finite."""
    bits = tl.where(key >= 0, key, key ^ 0x7FFFFFFF)
    return tl.maximum(bits.to(tl.float32, bitcast=True).to(tl.float64), -3.4028234663852886e38)


@triton.jit
def _pivots(low, high):
    """Keys strictly between two keys (at least one is), by even steps of the values."""
    step = (tl.arange(0, _PIVOTS) + 1).to(tl.float64) / (_PIVOTS + 1)
    value = _value(low) + (_value(high) - _value(low)) * step
    return tl.minimum(tl.maximum(_key(value.to(tl.float32)), low + 1), high - 1)


@triton.jit
def _threshold(
    need, low, high, top, rate, row, mask, sums, columns, words, blocks, heads, head_row, width, token_ids, values,
    following, MASS: tl.constexpr, ADJUSTED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The largest key t such that tokens with keys of at least t count (weigh, if MASS) at least ``need``, what those
    above t do, and whether there is a t: tokens above ``low`` may be too few. Those above ``high`` are.

    Each pass over the row tries several pivots, and skips blocks that are below all of them.
    """
    index = tl.arange(0, _PIVOTS)
    above_high = need * 0.0
    is_first = True
    reachable = True
    while reachable & (low + 1 < high):
        pivots = _pivots(low, high)
        if is_first:  # the lowest pivot asks whether there are enough at all
            pivots = tl.where(index == 0, low, pivots)
        above = tl.zeros([_PIVOTS], tl.float64)
        upper, lower = low, high
        for block in range(0, blocks):
            highest = tl.load(sums + block * 5)
            if _key(highest) > low:
                x, allowed, token = _block(
                    row, mask, block, columns, words, heads, head_row, width, token_ids, values, following,
                    False, ADJUSTED, BLOCK,
                )  # fmt: skip
                weights = _powers(tl.where(allowed, x, float("-inf")), top, rate)
                key = _key(x)
                inside = (weights > 0) & (key > low) & (key <= high)
                upper = tl.maximum(upper, _flat_max(tl.where(inside, key, low)))
                lower = tl.minimum(lower, _flat_min(tl.where(inside, key, high)))
                for place in tl.static_range(_PIVOTS):
                    counted = (weights > 0) & (key > _sum_at(index, place, pivots))
                    part = _flat_sum(tl.where(counted, weights if MASS else 1.0, 0.0)).to(tl.float64)
                    above = tl.where(index == place, above + part, above)
        enough = above >= need
        if is_first:
            reachable = tl.max(tl.where(enough & (index == 0), 1, 0), 0) > 0
        new_high = tl.min(tl.where(enough, high, pivots), 0)
        above_high = tl.where(new_high < high, tl.max(tl.where(enough, 0.0, above), 0), above_high)
        low = tl.maximum(tl.max(tl.where(enough, pivots, low), 0), tl.minimum(lower, new_high) - 1)
        high = tl.minimum(new_high, upper)
        is_first = False
    return high, above_high, reachable


@triton.jit
def _kept(x, allowed, before, threshold, ties, least, top, rate):
    """Weights of a block's tokens that the filters keep: those above the threshold, the first ``ties`` at it (of the
    row; ``before`` are in blocks before this one), and of these those of at least ``least``; the ties up to here."""
    weights = _powers(tl.where(allowed, x, float("-inf")), top, rate)
    key = _key(x)
    equal = (allowed & (key == threshold)).to(tl.int32)
    words = tl.sum(equal, 1)
    rank = before + (tl.cumsum(words, 0) - words)[:, None] + tl.cumsum(equal, 1) - equal
    stays = (key > threshold) | ((equal != 0) & (rank < ties))
    return tl.where(stays & (weights >= least), weights, 0.0), before + tl.sum(words, 0)


@triton.jit
def _kept_sums(
    threshold, ties, least, top, rate, row, mask, sums, columns, words, blocks, heads, head_row, width, token_ids,
    values, following, ADJUSTED: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """What the filters keep of each block, float64 [BLOCKS], and the ties in blocks before it."""
    index = tl.arange(0, BLOCKS)
    kept = tl.zeros([BLOCKS], tl.float64)
    ties_before = tl.zeros([BLOCKS], tl.int32)
    seen = ties * 0
    for block in range(0, blocks):
        highest = tl.load(sums + block * 5)
        ties_before = tl.where(index == block, seen, ties_before)
        if (highest > float("-inf")) & (_key(highest) >= threshold):
            x, allowed, token = _block(
                row, mask, block, columns, words, heads, head_row, width, token_ids, values, following,
                False, ADJUSTED, BLOCK,
            )  # fmt: skip
            weights, seen = _kept(x, allowed, seen, threshold, ties, least, top, rate)
            kept = tl.where(index == block, _flat_sum(weights).to(tl.float64), kept)
    return kept, ties_before


@triton.jit
def _cut(
    k, share, top, rate, total, row, mask, sums, columns, words, blocks, heads, head_row, width, token_ids, values,
    following, ADJUSTED: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """Where top_k, then top_p end: the key of the last token kept, and how many of its equals are (lowest ids)."""
    # In float64: 1 / T may be so small that the reach overflows float32, which is then minus infinity.
    low = _key((top.to(tl.float64) - _UNDERFLOW / rate.to(tl.float64)).to(tl.float32))
    high = _key(top)
    low = tl.minimum(low, high - 1)
    threshold = low
    ties = high * 0
    if k > 0:
        last, above, found = _threshold(
            k.to(tl.float64), low, high, top, rate, row, mask, sums, columns, words, blocks, heads, head_row, width,
            token_ids, values, following, False, ADJUSTED, BLOCK,
        )  # fmt: skip
        if found:
            threshold = last
            ties = k - above.to(tl.int32)
            low = last - 1
            if share < 1.0:
                kept, ties_before = _kept_sums(
                    threshold, ties, 0.0, top, rate, row, mask, sums, columns, words, blocks, heads, head_row, width,
                    token_ids, values, following, ADJUSTED, BLOCK, BLOCKS,
                )  # fmt: skip
                total = tl.sum(kept, 0)
    if share < 1.0:
        need = share * total
        last_of_mass, above_mass, found_mass = _threshold(
            need, low, high, top, rate, row, mask, sums, columns, words, blocks, heads, head_row, width, token_ids,
            values, following, True, ADJUSTED, BLOCK,
        )  # fmt: skip
        if found_mass:
            weight = tl.exp((_value(last_of_mass).to(tl.float32) - top) * rate).to(tl.float64)
            few = tl.minimum(tl.maximum(tl.ceil((need - above_mass) / weight), 1.0), 1.0e9).to(tl.int32)
            ties = tl.where(last_of_mass == threshold, tl.minimum(ties, few), few)
            threshold = last_of_mass
    return threshold, ties


@triton.jit(do_not_specialize=["words", "blocks", "width"])
def token_kernel(
    logits, row_stride, logits_rows, masks, mask_stride, mask_rows, rates, columns, words, blocks,
    heads, head_rows, width, token_ids, values, following, sums, uniforms, top_ks, top_ps, min_ps, out,
    KEPT: tl.constexpr, ADJUSTED: tl.constexpr, FILTERED: tl.constexpr, BLOCK: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """The token of request r, program (r): float64 [R, 3], its id or -1, its log-probability, log of what the mask
    kept. ``top_ks`` are 0, ``top_ps`` 1 and ``min_ps`` 0 where a row has no such filter."""
    request = tl.program_id(0).to(tl.int64)
    index = tl.arange(0, BLOCKS)
    there = index < blocks
    sums += request * blocks * 5
    highest = tl.load(sums + index * 5, mask=there, other=float("-inf"))
    mass = tl.load(sums + index * 5 + 1, mask=there, other=0.0).to(tl.float64)
    top = tl.max(highest, 0)
    below = (highest - top).to(tl.float64)
    total = tl.sum(mass * tl.exp(below), 0)
    usable = (total == total) & (top > float("-inf")) & (top < float("inf"))
    log_mass = tl.where(usable, tl.log(total), 0.0)
    mask = masks + tl.load(mask_rows + request).to(tl.int64) * mask_stride
    row = logits + tl.load(logits_rows + request).to(tl.int64) * row_stride
    head_row = tl.load(head_rows + request)
    rate = tl.load(rates + request)
    chosen = top
    token = tl.full([], -1, tl.int32)
    if usable & (rate == 0.0):
        x, allowed, ids = _block(
            row, mask, tl.min(tl.where(highest == top, index, BLOCKS), 0), columns, words, heads, head_row, width,
            token_ids, values, following, False, ADJUSTED, BLOCK,
        )  # fmt: skip
        token = _flat_min(tl.where(allowed & (x == top), ids, 2147483647))
    elif usable:
        uniform = tl.load(uniforms + request)
        cooled = tl.load(sums + index * 5 + 2, mask=there, other=0.0).to(tl.float64)
        weights = cooled * tl.exp(below * rate.to(tl.float64))
        threshold = tl.full([], -2147483648, tl.int32)
        ties = tl.full([], 0, tl.int32)
        ties_before = index * 0
        least = tl.full([], 0.0, tl.float32)
        is_filtered = False
        if FILTERED:
            k, share = tl.load(top_ks + request), tl.load(top_ps + request)
            least = tl.load(min_ps + request)
            is_filtered = (k > 0) | (share < 1.0) | (least > 0.0)
            if is_filtered:
                threshold, ties = _cut(
                    k, share, top, rate, tl.sum(weights, 0), row, mask, sums, columns, words, blocks, heads, head_row,
                    width, token_ids, values, following, ADJUSTED, BLOCK, BLOCKS,
                )  # fmt: skip
                weights, ties_before = _kept_sums(
                    threshold, ties, least, top, rate, row, mask, sums, columns, words, blocks, heads, head_row, width,
                    token_ids, values, following, ADJUSTED, BLOCK, BLOCKS,
                )  # fmt: skip
        target = uniform * tl.sum(weights, 0)
        block, before = _choose(index, weights, target, BLOCKS)
        x, allowed, ids = _block(
            row, mask, block, columns, words, heads, head_row, width, token_ids, values, following,
            False, ADJUSTED, BLOCK,
        )  # fmt: skip
        y = tl.where(allowed, x, float("-inf"))
        # Not filtered: as ``block_kernel`` has summed them, relative to the block's highest, which is never 0.
        scale = tl.exp(_sum_at(index, block, below) * rate.to(tl.float64))
        inside = _powers(y, _sum_at(index, block, highest), rate)
        if is_filtered:
            scale = scale * 0 + 1
            inside, seen = _kept(x, allowed, _sum_at(index, block, ties_before), threshold, ties, least, top, rate)
        token = block * BLOCK + _choose_in_block(inside, (target - before) / scale, BLOCK)
        chosen = _flat_sum(tl.where(ids == token, y, 0.0))
    out += request * 3
    tl.store(out, token.to(tl.float64))
    tl.store(out + 1, tl.where(usable, (chosen - top).to(tl.float64) - log_mass, float("nan")))
    if KEPT:
        tops = tl.load(sums + index * 5 + 3, mask=there, other=float("-inf"))
        all_mass = tl.load(sums + index * 5 + 4, mask=there, other=0.0).to(tl.float64)
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
        found = drawn + (start + node).to(tl.int64) * 3
        choice = tl.load(found)
        at = row + 1 + 3 * length
        tl.store(at, node.to(tl.float64))
        tl.store(at + 1, choice)
        tl.store(at + 2, tl.load(found + 1))
        length += 1
        following = tl.min(tl.where(inside & (parent == node) & (token == choice.to(tl.int32)), index, SIZE), 0)
        going = following < SIZE
        node = tl.where(going, following, node)
    tl.store(row, length.to(tl.float64))
