"""Operations of the tokens' kernel, and the numbers that its results are made of. No code is here."""

(
    ADD_ROWS, TOKEN_KINDS, SUBTREE_KINDS, PATH_KINDS, KIND_OF, COMMON_PREFIXES, FILL_NODES, FILTER_CHAINS,
    SUBTREE_RISES, NODE_KINDS,
) = range(10)  # fmt: skip

PARTIAL_FLAG = 4
# Kinds of characters, one bit each; a state never loops on NEVER: quote, backslash, control characters. WIDE_SPACE:
# beyond ASCII, white space. BROKEN stands for text that is not UTF-8.
NON_ASCII, WIDE_SPACE, NEVER, BROKEN = 26, 27, 28, 29
# Where the characters beyond ASCII lead from a state, if not all to one other: all are dead; they lead apart; not known
# yet. SOME - n: some to state n, the others are dead.
NOWHERE, APART, UNSEEN, SOME = -1, -2, -3, -4
# Flags of tokens.
QUOTE, BACKSLASH, CONTROL_FIRST, BLANK, DIGITS, STRUCTURE = 1, 2, 4, 8, 16, 32
