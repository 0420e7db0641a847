"""What the drawing kernels share. Import it only where Triton is."""

from __future__ import annotations

import triton
import triton.language as tl

BLOCK = 2048
"""Logits of a block; a multiple of 32."""
SUMS = 5
"""Of each block, float32: the highest allowed logit h; Σ exp(x - h), Σ exp((x - h) / T) over the allowed; the highest
of all g; Σ exp(x - g) over all."""


@triton.jit
def adjusted(x, token, word, words, head, token_ids, values, following):
    """A block's logits with the entries of its words in their places."""
    entry = tl.load(head + word, mask=word < words, other=0)
    while tl.max(entry, 0) > 0:
        some = entry > 0
        entry_token = tl.load(token_ids + entry - 1, mask=some, other=-1)
        value = tl.load(values + entry - 1, mask=some, other=0.0)
        x = tl.where(token == entry_token[:, None], value[:, None], x)
        entry = tl.load(following + entry - 1, mask=some, other=0)
    return x


@triton.jit
def load_block(
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
            x = adjusted(x, token, word, words, heads + head_row.to(tl.int64) * width, token_ids, values, following)
    return x, allowed, token


@triton.jit
def flat_sum(x):
    return tl.sum(tl.sum(x, 1), 0)


@triton.jit
def flat_max(x):
    return tl.max(tl.max(x, 1), 0)


@triton.jit
def flat_min(x):
    return tl.min(tl.min(x, 1), 0)


@triton.jit
def powers(x, highest, rate):
    """exp((x - highest) · rate); 0 for -inf whatever the rate and the highest."""
    return tl.where(x == float("-inf"), 0.0, tl.exp((x - highest) * rate))


@triton.jit
def sum_at(index, chosen_index, x):
    """x[place], whatever the others hold."""
    return tl.sum(tl.where(index == chosen_index, x, 0), 0)


@triton.jit
def choose(index, weights, target, SIZE: tl.constexpr):
    """The first place with a weight whose cumulative weight exceeds ``target``, else the last with a weight; and the
    sum of those before it."""
    weights = weights.to(tl.float64)
    some = weights > 0
    first = tl.min(tl.where(some & (tl.cumsum(weights, 0) > target), index, SIZE), 0)
    last = tl.max(tl.where(some, index, 0), 0)
    chosen_index = tl.where(first < SIZE, first, last)
    return chosen_index, tl.sum(tl.where(index < chosen_index, weights, 0.0), 0)


@triton.jit
def choose_among(weights, target, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The row and the column of [ROWS, COLUMNS] that ``target`` chooses, in their order."""
    rows = tl.arange(0, ROWS)
    weights = weights.to(tl.float64)
    row, before = choose(rows, tl.sum(weights, 1), target, ROWS)
    columns = tl.arange(0, COLUMNS)
    inside = tl.sum(tl.where(rows[:, None] == row, weights, 0.0), 0)
    column, before_column = choose(columns, inside, target - before, COLUMNS)
    return row, column


@triton.jit
def rank_of(some, before):
    """Of each place of [rows, columns] in their order, how many of ``some`` (0 or 1) come before it, and ``before``."""
    rows = tl.sum(some, 1)
    return before + (tl.cumsum(rows, 0) - rows)[:, None] + tl.cumsum(some, 1) - some


@triton.jit
def key_of(x):
    """An int32 that orders as the float32 does; both zeros alike."""
    bits = tl.where(x == 0.0, 0.0, x).to(tl.int32, bitcast=True)
    return tl.where(bits >= 0, bits, bits ^ 0x7FFFFFFF)


@triton.jit
def value_of(key):
    """The float32 of a key, in float64, finite."""
    bits = tl.where(key >= 0, key, key ^ 0x7FFFFFFF)
    return tl.maximum(bits.to(tl.float32, bitcast=True).to(tl.float64), -3.4028234663852886e38)


@triton.jit
def row_sums(sums, rate, blocks, BLOCKS: tl.constexpr):
    """Of a row's blocks: the highest logit, whether a token can be drawn, log Σ exp(x - highest), and
    Σ exp((x - highest) / T); the latter in float64."""
    index = tl.arange(0, BLOCKS)
    there = index < blocks
    highest = tl.load(sums + index * 5, mask=there, other=float("-inf"))
    mass = tl.load(sums + index * 5 + 1, mask=there, other=0.0).to(tl.float64)
    cooled = tl.load(sums + index * 5 + 2, mask=there, other=0.0).to(tl.float64)
    top = tl.max(highest, 0)
    below = (highest - top).to(tl.float64)
    total = tl.sum(mass * tl.exp(below), 0)
    usable = (total == total) & (top > float("-inf")) & (top < float("inf"))
    log_mass = tl.where(usable, tl.log(total), 0.0)
    return top, usable, log_mass, tl.sum(cooled * tl.exp(below * rate.to(tl.float64)), 0)
