"""Operations of the tokens' kernel, and the numbers that its results are made of. No code is here."""

ADD_ROWS, TOKEN_KINDS, SUBTREE_KINDS, PATH_KINDS, KIND_OF, COMMON_PREFIXES, FILL_NODES, FILTER_CHAINS = range(8)

PARTIAL_FLAG = 4
# Kinds of characters, one bit each; a state never loops on NEVER: quote, backslash, control characters.
NON_ASCII, NEVER = 26, 27
# Flags of tokens.
QUOTE, BACKSLASH, CONTROL_FIRST, BLANK, DIGITS, STRUCTURE = 1, 2, 4, 8, 16, 32
