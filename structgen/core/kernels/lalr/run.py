"""The entry of the LALR machine's kernel: one, so that all is optimised and linked once."""

from structgen.core.kernels.interning import lacks_room, rehash, set_word
from structgen.core.kernels.jit import entry, internal
from structgen.core.kernels.lalr.advance import advance
from structgen.core.kernels.lalr.layout import *
from structgen.core.kernels.lalr.lexer import step
from structgen.core.kernels.lalr.liveness import config_ends, live_config
from structgen.core.kernels.lalr.masks import classes_inside, fill, next_bytes
from structgen.core.kernels.lalr.parser import feed, parser_ends, stacked, start_config
from structgen.core.kernels.lalr.proofs import prove
from structgen.core.kernels.lalr.records import config_of, fresh_config, intern, lex_key, pair, put
from structgen.core.kernels.lalr.tables import *
from structgen.core.kernels.memory import address, size, within
from structgen.core.kernels.memory import word as word_at


@internal
def _accept(h, state, token):
    """The live state after a token; DEAD if there is none."""
    first = offset_of(h, token)
    count = offset_of(h, token + 1) - first
    within(first, count, size(h, byte_at))
    return advance(h, state, address(h, byte_at) + first, count) if count > 0 else DEAD


@internal
def _adopt(h, kind, key, n):
    """The record of a kind with a key at an address, which another heap's record has: what it refers to is here."""
    for i in range(n):
        put(h, i, word_at(key, i))
    if kind == NODE:
        return stacked(h, word_at(key, 0), word_at(key, 1))
    if kind == INDENT:
        return pair(h, INDENT, word_at(key, 0), word_at(key, 1))
    if kind == PARSER:
        return intern(h, PARSER, n, PARSER_KEY - 2)
    if kind == LEX:
        return intern(h, LEX, n, lex_key(h) - 2)
    return config_of(h, word_at(key, 0), word_at(key, 1), word_at(key, 2), word_at(key, 3))


@internal
def _asked(h, operation, x, y, z):
    """The operations that know whatever they need, but for room."""
    if operation == ENDS:
        return 1 if x >> STATE_BITS == 0 and config_ends(h, x) else 0
    if operation == START:
        return start_config(h, x)
    if operation == STEP:
        return step(h, x, y)
    if operation == FEED_TERMINAL:
        return feed(h, x, y, z)
    if operation == LIVE:
        return live_config(h, x)
    if operation == ADOPT:
        return _adopt(h, x, y, z)
    if operation == ENDS_PARSER:
        return 1 if parser_ends(h, x) else 0
    return fresh_config(h, x)


def _make(stamp):
    def run(root, operation, x, y, z):
        """Run an operation on the heap whose address stands at ``root`` (`structgen.core.kernels.lalr.machine`)."""
        h = word_at(root, 0)
        set_word(h, H_UNKNOWNS, 0)
        if operation == FILL:
            return fill(h, x, y)
        if operation == ACCEPT:
            return _accept(h, x, y)
        if operation == ADVANCE:
            return advance(h, x, y, z)
        if operation == NEXT_BYTES:
            return next_bytes(h, x, y)
        if operation == REHASH:
            return rehash(h, x, y)
        if operation == CLASSES_INSIDE:
            return classes_inside(h)
        if operation == PROVE:
            return prove(h)
        if operation > ADOPT:
            return stamp
        result = _asked(h, operation, x, y, z)
        return RETRY if lacks_room(h) else result

    return run


run = entry(_make)
