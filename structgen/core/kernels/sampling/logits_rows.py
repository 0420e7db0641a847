"""A row of logits: its blocks read once, the token drawn from one of them."""

import math

from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import (
    address,
    element_reader,
    element_writer,
    float_array,
    float_matrix,
    mask_word,
    set_mask_word,
    size,
    within,
    word_array,
)
from structgen.core.kernels.sampling.lanes import exp_each, exp_sum, float_at, float_bits, masked_block
from structgen.core.kernels.sampling.layout import *
from structgen.core.kernels.tables import ARGUMENT_WORDS

_byte, _set_byte = element_reader(8, signed=False), element_writer(8)


@internal
def scratch(m, index):
    """The address of a place in scratch."""
    within(0, SCRATCH, size(m, ARGUMENT_WORDS * A_SCRATCH))
    return address(m, ARGUMENT_WORDS * A_SCRATCH) + 8 * index


@internal
def width_of(kind):
    """Bytes of an element."""
    if kind == FLOAT32:
        return 4
    return 8 if kind == FLOAT64 else 2


@internal
def _tail(base, kind, logits, masks, columns, first):
    """Copy the last tokens of a row, fewer than a word, to scratch; masked as they are, and not beyond."""
    width = width_of(kind)
    count = columns - first
    for i in range(WORD * width):
        _set_byte(base + 8 * S_TAIL, i, _byte(logits + first * width, i) if i < count * width else 0)
    set_mask_word(base + 8 * S_TAIL_WORD, 0, mask_word(masks, 0) & ((1 << count) - 1))


@internal
def read_block(base, kind, logits, masks, columns, words, block):
    """The logits of a block, float32 at the start of scratch, -inf where they are not allowed: how many words, highest.

    ``masks`` is the address of the row's words, or 0 if all columns are allowed.
    """
    first = block * BLOCK_WORDS
    count = min(BLOCK_WORDS, words - first)
    whole = min(count, columns // WORD - first)
    pointer = masks + 4 * first if masks else base + 8 * S_ALL
    highest = masked_block(kind, logits + first * WORD * width_of(kind), pointer, whole, base)
    if whole < count:  # the row ends within a word
        _tail(base, kind, logits, pointer + 4 * whole, columns, WORD * (first + whole))
        last = masked_block(kind, base + 8 * S_TAIL, base + 8 * S_TAIL_WORD, 1, base + 4 * WORD * whole)
        highest = max(highest, last)
        count = whole + 1
    return count, highest


@internal
def _is_empty(masks, first, count):
    """Whether some words allow nothing."""
    for i in range(first, first + count):
        if mask_word(masks, i):
            return False
    return True


@internal
def _plus(highest, total, value, more):
    """Sums of exponentials ``total`` and ``more``, relative to their highest logits, as one."""
    if value == -math.inf:
        return highest, total
    if value > highest:
        return value, more + (total * math.exp(highest - value) if total else 0.0)
    return highest, total + more * math.exp(value - highest)


@internal
def read_row(m, r, columns, words, kind, kept):
    """Read a row once: the highest logit and the sums of each block. The highest logit, NaN if there is one."""
    base, blocks = scratch(m, 0), float_matrix(m, A_BLOCKS)
    logits, masks = word_array(m, A_LOGITS)[r], word_array(m, A_MASKS)[r]
    scale = float_array(m, A_SCALES)[r]
    highest, all_highest, all_sum = -math.inf, -math.inf, 0.0
    for block in range((words + BLOCK_WORDS - 1) // BLOCK_WORDS):
        count, top, total, scaled = min(BLOCK_WORDS, words - block * BLOCK_WORDS), -math.inf, 0.0, 0.0
        if not _is_empty(masks, block * BLOCK_WORDS, count):
            count, top = read_block(base, kind, logits, masks, columns, words, block)
            if top == math.inf:
                return top
            scaled = total = exp_sum(base, count, top if top > -math.inf else 0.0, 1.0)
            if total != total:
                return total
        if top > -math.inf:
            if scale > 0 and scale != 1:
                scaled = exp_sum(base, count, top, scale)
        blocks[r, B_SIZE * block + B_HIGHEST] = top
        blocks[r, B_SIZE * block + B_SUM] = total
        blocks[r, B_SIZE * block + B_SCALED] = scaled
        highest = max(highest, top)
        if kept:
            count, top = read_block(base, kind, logits, 0, columns, words, block)
            if top > -math.inf:
                all_highest, all_sum = _plus(all_highest, all_sum, top, exp_sum(base, count, top, 1.0))
    if kept:
        float_matrix(m, A_FOUND)[r, F_KEPT] = all_highest + math.log(all_sum) if all_sum > 0 else -math.inf
    return highest


@internal
def _place(m, r, columns, words, kind, highest, total):
    """The token that is drawn, and its logit; ``total``: the scaled sum over the row."""
    base, blocks, scale = scratch(m, 0), float_matrix(m, A_BLOCKS), float_array(m, A_SCALES)[r]
    logits, masks = word_array(m, A_LOGITS)[r], word_array(m, A_MASKS)[r]
    target, before, chosen, remaining = float_array(m, A_UNIFORMS)[r] * total, 0.0, 0, math.inf
    for block in range((words + BLOCK_WORDS - 1) // BLOCK_WORDS):
        top = blocks[r, B_SIZE * block + B_HIGHEST]
        if scale == 0:
            if top == highest:
                chosen = block
                break
        elif top > -math.inf:
            factor = math.exp((top - highest) * scale)
            more = blocks[r, B_SIZE * block + B_SCALED] * factor
            if more > 0:  # the last that weighs anything, should rounding lead past the end
                chosen, remaining = block, (target - before) / factor
            if before + more > target:
                break
            before += more
    count, top = read_block(base, kind, logits, masks, columns, words, chosen)
    if scale > 0:
        exp_each(base, count, top, scale, base + 8 * S_WEIGHTS)
    index, reached = 0, 0.0
    for i in range(WORD * count):
        if scale == 0:
            if float_at(base, i) == highest:
                index = i
                break
        else:
            weight = float_at(base + 8 * S_WEIGHTS, i)
            if weight > 0:
                index = i
                reached += weight
                if reached > remaining:
                    break
    return BLOCK * chosen + index, float_at(base, index)


@internal
def draw(m, columns, words, kind, kept):
    """Draw a token for each row. Writes A_TOKENS, A_FOUND and A_BLOCKS."""
    statistics, blocks, scales = float_matrix(m, A_FOUND), float_matrix(m, A_BLOCKS), float_array(m, A_SCALES)
    tokens, base = word_array(m, A_TOKENS), scratch(m, 0)
    for i in range(BLOCK_WORDS):
        set_mask_word(base + 8 * S_ALL, i, -1)
    for r in range(tokens.size):
        highest = read_row(m, r, columns, words, kind, kept)
        statistics[r, F_HIGHEST] = highest
        if highest != highest or highest == math.inf or highest == -math.inf:
            tokens[r] = BAD
            continue
        total, scaled = 0.0, 0.0
        for block in range((words + BLOCK_WORDS - 1) // BLOCK_WORDS):
            top = blocks[r, B_SIZE * block + B_HIGHEST]
            if top > -math.inf:
                total += blocks[r, B_SIZE * block + B_SUM] * math.exp(top - highest)
                scaled += blocks[r, B_SIZE * block + B_SCALED] * math.exp((top - highest) * scales[r])
        tokens[r], logit = _place(m, r, columns, words, kind, highest, scaled)
        statistics[r, F_LOG_PROB] = logit - highest - math.log(total)
        statistics[r, F_TOTAL] = highest + math.log(total)
        statistics[r, F_SUM] = scaled
        if kept:
            statistics[r, F_KEPT] = statistics[r, F_TOTAL] - statistics[r, F_KEPT]


@internal
def gather(m, columns, words, kind):
    """Keys of the allowed tokens of row 0 whose logit is at least A_SCALES[0]: A_KEYS, and A_TOKENS[0] of them.

    A key is a logit as integer in the order of logits, then the token's complement: falling keys are falling logits,
    and of equal ones rising tokens.
    """
    base, blocks, keys = scratch(m, 0), float_matrix(m, A_BLOCKS), word_array(m, A_KEYS)
    logits, masks, least = word_array(m, A_LOGITS)[0], word_array(m, A_MASKS)[0], float_array(m, A_SCALES)[0]
    count = 0
    for block in range((words + BLOCK_WORDS - 1) // BLOCK_WORDS):
        if blocks[0, B_SIZE * block + B_HIGHEST] < least or blocks[0, B_SIZE * block + B_HIGHEST] == -math.inf:
            continue
        read, _ = read_block(base, kind, logits, masks, columns, words, block)
        for i in range(WORD * read):
            value = float_at(base, i)
            if value >= least and value > -math.inf:
                bits = float_bits(value)
                ordered = bits if bits >> 31 == 0 else -(bits & 0x7FFFFFFF)
                keys[count] = (ordered << 32) | (0xFFFFFFFF - (BLOCK * block + i))
                count += 1
    word_array(m, A_TOKENS)[0] = count
