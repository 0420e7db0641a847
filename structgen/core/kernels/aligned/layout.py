"""Operations and arguments of the walks' kernel, what became of a walk, and its columns. No code is here."""

REFRESH, WALK, UNIFORM = range(3)  # operations

UNSEEN, COMPLETE = -1, -2
# What became of a walk.
RUNNING, WAITING, FINISHED, REJECTED, STUCK = 0, 1, 2, 3, 4
# A walk's columns of integers and of floats.
W_NODE, W_EDGE, W_STATUS, W_STEPS = 0, 1, 2, 3  # the edge by its number among the node's; -1: at the node itself
W_BOUND, W_WEIGHT, W_LOGP = 0, 1, 2
# --- arguments: a field of the store's arrays each, of the same number in every operation ---
(
    A_WHOLE, A_REAL, A_STATES,
    A_PARENT, A_START, A_COUNT, A_HIGH, A_LOW, A_MASS, A_USED, A_LOGP, A_CHILD,
) = range(12)  # fmt: skip
