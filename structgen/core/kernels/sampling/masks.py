"""Bitmasks over rows of logits, and rows that allow few tokens."""

from structgen.core.kernels.bits import count_bits, lowest_bit
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import mask_word, set_word, word_array
from structgen.core.kernels.sampling.lanes import (
    choose,
    copy_one,
    forbid_all,
    forbid_one,
    is_forbidden,
    prefetch_one,
)
from structgen.core.kernels.sampling.layout import *
from structgen.core.kernels.sampling.logits_rows import width_of

ALL = 0xFFFFFFFF
AHEAD = 16  # words


@internal
def _is_few(word, few):
    """Whether a word forbids few tokens."""
    return count_bits(word ^ ALL) <= few


@internal
def _forbid_few(kind, target, masks, i, words, few):
    """Write -inf over each token that words from ``i`` on forbid, as long as these are few: the first word of more, or
    ``words``. Mostly none is in the cache: those to come are asked for."""
    while i < words:
        forbidden = mask_word(masks, i) ^ ALL
        if forbidden:
            if count_bits(forbidden) > few:
                break
            while forbidden:
                forbid_one(kind, target, WORD * i + lowest_bit(forbidden))
                forbidden &= forbidden - 1
        ahead = mask_word(masks, i + AHEAD) ^ ALL if i + AHEAD < words else 0
        if ahead:
            prefetch_one(kind, target, WORD * (i + AHEAD) + lowest_bit(ahead))
        i += 1
    return i


@internal
def _mask_row(kind, target, masks, words, few):
    """Mask whole words in place, by runs: those that allow nothing are not read, of those that forbid few tokens only
    these are written, in the others vectors are chosen from."""
    width, i = WORD * width_of(kind), 0
    while i < words:
        first, word = i, mask_word(masks, i)
        if not word:
            while i < words and not mask_word(masks, i):
                i += 1
            forbid_all(kind, target + width * first, i - first)
        elif _is_few(word, few):
            i = _forbid_few(kind, target, masks, i, words, few)
        else:
            while i < words and mask_word(masks, i) and not _is_few(mask_word(masks, i), few):
                i += 1
            choose(kind, target + width * first, target + width * first, masks + 4 * first, i - first)


@internal
def _copy_row(kind, target, source, masks, words):
    """The same into other memory, where all is written and only what may be allowed is read."""
    width, i = WORD * width_of(kind), 0
    while i < words:
        first = i
        if not mask_word(masks, i):
            while i < words and not mask_word(masks, i):
                i += 1
            forbid_all(kind, target + width * first, i - first)
        else:
            while i < words and mask_word(masks, i):
                i += 1
            choose(kind, target + width * first, source + width * first, masks + 4 * first, i - first)


@internal
def _allows_nothing(kind, logits, masks, columns, words):
    """Whether no allowed token has a logit above -inf. Mostly the first has: one look."""
    for i in range(words):
        word = mask_word(masks, i)
        while word:
            token = WORD * i + lowest_bit(word)
            if token < columns and not is_forbidden(kind, logits, token):
                return 0
            word &= word - 1
    return 1


@internal
def apply(m, columns, words, kind, few):
    """Write each row's logits to its target, -inf for the tokens that its mask does not allow; what is beyond the
    masks' width is not allowed. Which rows have nothing left is written to A_EMPTY.

    In place, of words that forbid at most ``few`` tokens only these are written.
    """
    rows, masks, targets = word_array(m, A_LOGITS), word_array(m, A_MASKS), word_array(m, A_TARGETS)
    empty, whole = word_array(m, A_EMPTY), min(words, columns // WORD)
    for r in range(rows.size):
        empty[r] = _allows_nothing(kind, rows[r], masks[r], columns, words)
        if targets[r] == rows[r]:
            _mask_row(kind, rows[r], masks[r], whole, few)
        else:
            _copy_row(kind, targets[r], rows[r], masks[r], whole)
        for i in range(WORD * whole, columns):
            if i >> 5 >= words or not mask_word(masks[r], i >> 5) >> (i & 31) & 1:
                forbid_one(kind, targets[r], i)
            elif targets[r] != rows[r]:
                copy_one(kind, targets[r], rows[r], i)


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
