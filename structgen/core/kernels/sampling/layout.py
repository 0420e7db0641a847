"""Operations, arguments and numbers of the sampling kernel. No code is here."""

DRAW, GATHER, APPLY, FEW = range(4)  # operations

# --- arguments of DRAW and GATHER, as far as they use them ---
(
    A_LOGITS,  # int64 [R]: address of each row of logits
    A_MASKS,  # int64 [R]: address of each row of the bitmask
    A_SCALES,  # float64 [R]: 1 / temperature; 0 is greedy. Of GATHER: the least logit that is looked for
    A_UNIFORMS,  # float64 [R]
    A_TOKENS,  # int64 [R]: the token, or BAD. Of GATHER: how many were found
    A_FOUND,  # float64 [R, FOUND]: the columns below
    A_BLOCKS,  # float64 [R, 3 · blocks]: the columns below, of each block
    A_SCRATCH,  # float64 [SCRATCH]
    A_KEYS,  # int64 [columns]: what GATHER found
) = range(9)
# --- arguments of APPLY, each int64 [R]: addresses of logits, masks and what is written, which may be the logits
# themselves; and for each, written: 1 where no allowed token has a logit above -inf ---
A_TARGETS, A_EMPTY = 2, 3
FEW_FORBIDDEN = 4  # tokens of a word up to which, in place, each is written by itself: the others need not be read
CACHED_BYTES = 1 << 24  # of logits, beyond which this does not pay: memory is read by whole lines, one after the other
# F_TOTAL: logarithm of the sum of exp(x); F_SUM: the sum of exp((x - highest) · scale); both over the allowed.
F_LOG_PROB, F_KEPT, F_HIGHEST, F_TOTAL, F_SUM, FOUND = range(6)
B_HIGHEST, B_SUM, B_SCALED, B_SIZE = range(4)  # highest allowed logit; sums relative to it, as it is and scaled

# --- shape, beside the operation: x is columns and flags, y words of a mask row ---
FLOAT32, FLOAT16, BFLOAT16, FLOAT64 = range(4)  # kinds of logits
KIND_SHIFT, WITH_KEPT = 48, 1 << 52
COLUMNS_MASK = (1 << KIND_SHIFT) - 1

LANES = 16
WORD = 32  # tokens of a word of the bitmask
BLOCK_WORDS = 32
BLOCK = WORD * BLOCK_WORDS  # tokens
# Scratch, in float64: a block of float32, another one, words that allow all, and the end of a row, padded to a word.
S_VALUES, S_WEIGHTS, S_ALL = 0, BLOCK // 2, BLOCK
S_TAIL = S_ALL + BLOCK_WORDS // 2
S_TAIL_WORD = S_TAIL + WORD
SCRATCH = S_TAIL_WORD + 1
BAD = -1  # NaN, +inf, nothing but -inf, or no token allowed
