"""Bitmasks over rows of logits, and rows that allow few tokens."""

from structgen.core.kernels.bits import count_bits, lowest_bit
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import mask_word, set_word, word_array
from structgen.core.kernels.sampling.lanes import forbid, forbid_one
from structgen.core.kernels.sampling.layout import *
from structgen.core.kernels.sampling.logits_rows import width_of

ALL = 0xFFFFFFFF
FEW_FORBIDDEN = 4  # tokens of a word up to which each is written by itself: the others need not be read


@internal
def _apply_row(kind, logits, masks, words):
    """Write -inf over what whole words forbid: over each token where they are few, over whole vectors else."""
    width = width_of(kind)
    done = 0
    while done < words:
        first = done
        while done < words and count_bits(mask_word(masks, done) ^ ALL) > FEW_FORBIDDEN:
            done += 1
        if done > first:
            forbid(kind, logits + WORD * width * first, masks + 4 * first, done - first)
        while done < words:
            forbidden = mask_word(masks, done) ^ ALL
            if count_bits(forbidden) > FEW_FORBIDDEN:
                break
            while forbidden:
                forbid_one(kind, logits, WORD * done + lowest_bit(forbidden))
                forbidden &= forbidden - 1
            done += 1


@internal
def apply(m, columns, words, kind):
    """Write -inf over the tokens that the masks do not allow; what lies behind the masks' width is not allowed."""
    rows, masks = word_array(m, A_LOGITS), word_array(m, A_MASKS)
    whole = min(words, columns // WORD)
    for r in range(rows.size):
        _apply_row(kind, rows[r], masks[r], whole)
        for i in range(WORD * whole, columns):
            if i >> 5 >= words or not mask_word(masks[r], i >> 5) >> (i & 31) & 1:
                forbid_one(kind, rows[r], i)


@internal
def few(masks, words, most, out):
    """The first tokens that a row allows, to int64 at ``out``, as long as there are at most ``most``: how many, or one
    more. Stops there, so a row that allows much is told by its first words."""
    count = 0
    for i in range(words):
        word = mask_word(masks, i)
        while word:
            if count == most:
                return most + 1
            set_word(out, count, WORD * i + lowest_bit(word))
            count += 1
            word &= word - 1
    return count
