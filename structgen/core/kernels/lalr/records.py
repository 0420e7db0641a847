"""Records of the LALR machine: stacks, parsers, configurations; their keys lie on the scratch."""

from structgen.core.kernels.interning import intern_key, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.lalr.layout import *
from structgen.core.kernels.lalr.tables import *


@internal
def bit_words(h):
    """Words of a row of bits by terminal."""
    return (word(h, H_TERMINALS) + 63) >> 6


@internal
def lex_key(h):
    """Where the key of a lexer state begins in its record: its lexer, then its threads."""
    return LEX_CLEAN + 2 * bit_words(h)


@internal
def put(h, i, value):
    """Write a word of a key to be."""
    set_scratch_at(h, i, value)


@internal
def intern(h, kind, n, payload):
    """The record of a kind whose key is the first ``n`` words of the scratch. A new one's payload is zero."""
    return intern_key(h, kind, H_SCRATCH, 0, n, payload, 0)


@internal
def pair(h, kind, below, value):
    """A stack or a stack of indentations: what is below, and the state or column on top."""
    put(h, 0, below)
    put(h, 1, value)
    return intern(h, kind, 2, PAIR_KEY - 2)


@internal
def parser_of(h, node, indent, brackets):
    """A parser: stack, indentations, open brackets."""
    put(h, 0, node)
    put(h, 1, indent)
    put(h, 2, brackets)
    return intern(h, PARSER, 3, PARSER_KEY - 2)


@internal
def config_of(h, parser, d, fallback, column):
    """A configuration. The word behind its key is for `structgen.core.kernels.lalr.lexer`."""
    put(h, 0, parser)
    put(h, 1, d)
    put(h, 2, fallback)
    put(h, 3, column)
    return intern_key(h, CONFIG, H_SCRATCH, 0, 4, CONFIG_KEY - 2, 1)


@internal
def fresh_config(h, parser):
    """A configuration of which nothing of the next lexeme is read."""
    return config_of(h, parser, 0, 0, NO_COLUMN)


@internal
def lexer_of(h, parser):
    """The lexer of a parser's next lexeme."""
    return lexer_at(h, word(h, word(h, parser + PARSER_KEY) + PAIR_KEY + 1))
