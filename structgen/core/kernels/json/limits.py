"""Where a limit is near: how long a text may be before it can matter, and the walk over the tokens that are longer.

The tokens that stay inside a string or key, by its automaton alone, are a row. A limit (of the length, or of how many
keys there are) takes some of them away: only those that are longer than what is sure.
"""

from structgen.core.kernels.bits import lowest_bit, set_bit
from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.distinct import step
from structgen.core.kernels.json.emit import and_row, emit_subtree, ready, row_address, set_tokens
from structgen.core.kernels.json.frames import load
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.objects import undeclared_count
from structgen.core.kernels.json.registers import node, push, restore_stack, save_stack, set_string
from structgen.core.kernels.json.string_slices import add_state, begin_states
from structgen.core.kernels.json.strings import feed_string, hash_byte, string_alive, unused_word
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.memory import mask_word, size

MAX_STATES = 160  # that a search looks at; what lies behind is not sure


@internal
def _add_successors(m, done, count):
    """Add to the ``count`` states of ``search`` those a character behind that of place ``done``; -1: not known."""
    current, last = search(m, done), -1
    for byte in range(0x82):  # the last two stand for the characters beyond ASCII
        following = pool(m, current * 256 + byte) if byte < 0x80 else wide(m, 2 * current + byte - 0x80)
        if following <= SOME_BEYOND:  # and the others are dead
            following = SOME_BEYOND - following
        elif following < -1:
            return -1
        if following >= 0 and following != last:
            last = following
            count = add_state(m, count, following)
    return count if count <= MAX_STATES else -1


@internal
def _level(m, done, count):
    """Add to the ``count`` states of ``search`` those a character behind those from ``done`` on; -1: not known."""
    reached = count
    while done < reached and count >= 0:
        count = _add_successors(m, done, count)
        done += 1
    return count


@internal
def _grown(m, record, length, points):
    """The length that a value string has in its register after so many code points more."""
    if grammar(m, record + S_MAX) >= 0:
        return length + points
    return min(length + points, max(length, grammar(m, record + S_MIN)))


@internal
def _all_alive(m, record, count, length):
    """Whether a value string of that length can be completed from each of the ``count`` states of ``search``."""
    for i in range(count):
        if not string_alive(m, record, search(m, i), length):
            return False
    return True


@internal
def sure_points(m, record, value):
    """How many code points the value string at register b ``value`` may go on with before its bounds can matter.

    Whatever its automaton takes of at most so many, the string can be completed behind it. Breadth first over the
    automaton; at most the length of the longest token.
    """
    begin_states(m, value & LOW32)
    count, done, points = 1, 0, 0
    while points < limit(m, L_TEXT):
        count, done = _level(m, done, count), count
        if count < 0:
            return points
        if not _all_alive(m, record, count, _grown(m, record, value >> 32, points + 1)):
            return points
        points += 1
    return points


@internal
def lasting_points(m, record, frame, state):
    """How many code points an undeclared key may go on with from a pool state so that, whatever they are, there are
    more words behind them than keys that the object has. -1: not even none; at most one more than any token has."""
    have = undeclared_count(m, record, frame)
    longest = limit(m, L_WRITTEN) + 1
    if have == 0:  # from each state there is one word
        return longest
    begin_states(m, state)
    count, done, points = 1, 0, 0
    while points < longest:
        for i in range(done, count):
            if 0 <= words_left(m, search(m, i)) <= have:
                return points - 1
        if done == count:
            return longest
        count, done = _level(m, done, count), count
        if count < 0:
            return points
        points += 1
    return longest


@internal
def words_last(m, record, frame, state):
    """Whether undeclared keys do not run out within any token from pool state ``state`` on, many as the object has."""
    return lasting_points(m, record, frame, state) > limit(m, L_WRITTEN)


# Tokens that are read one by one rather than as a trie, at most.
FEW_TOKENS = 20_000
FULL_WALK = -1


@internal
def _read(m, a, value, token):
    """Whether a value string at register b ``value`` goes on with a token."""
    record = a & LOW32
    set_string(m, STRING, a, value)
    for position in range(offset(m, token), offset(m, token + 1)):
        byte = data(m, position)
        if reg(m, Q) == STRING and byte != 0x22 and byte != 0x5C and byte >= 0x20:
            value = feed_string(m, record, reg(m, B), byte)
            if value < 0:
                return DEAD
            set_reg(m, B, value)
            continue
        set_reg(m, POSITION, reg(m, WRITTEN) + position - offset(m, token))
        status = step(m, byte, 0)
        if status != ALIVE or reg(m, Q) < STRING:
            return status if status >= MISS else DEAD
    return ALIVE


@internal
def _read_beyond(m, out, row, sure, most):
    """`_walk_beyond` for the tokens of a kept row that have more than ``sure`` and at most ``most`` code points."""
    a, value, width = reg(m, A), reg(m, B), limit(m, L_WIDTH)
    inside, shorter, longer = (
        row_address(m, row),
        row_address(m, ROW_LENGTHS + sure),
        row_address(m, ROW_LENGTHS + most),
    )
    for i in range(width):
        bits = mask_word(inside, i) & mask_word(longer, i) & ~mask_word(shorter, i)
        while bits:
            token = 32 * i + lowest_bit(bits)
            bits &= bits - 1
            status = _read(m, a, value, token)
            if status >= MISS:
                return status
            if status == ALIVE:
                set_bit(out, width, token)
    return ALIVE


@internal
def _read_key(m, state, hashed, token):
    """Whether an undeclared key goes on with a token: an escape is read byte by byte, other text at once."""
    frame, first, last = reg(m, FRAME), offset(m, token), offset(m, token + 1)
    position = first
    while position < last and data(m, position) != BACKSLASH:
        state = pool(m, state * 256 + data(m, position))
        if state < 0:
            return DEAD
        hashed = hash_byte(hashed, data(m, position))
        position += 1
    if not unused_word(m, load(m, frame) & LOW32, frame, state, hashed):
        return DEAD
    set_string(m, OTHER_KEY, state, hashed)
    while position < last:
        set_reg(m, POSITION, reg(m, WRITTEN) + position - first)
        status = step(m, data(m, position), 0)
        if status != ALIVE:
            return status
        position += 1
    return ALIVE


@internal
def cut_key(m, out, row):
    """Leave of a row, which ``out`` holds, the tokens behind which there is a word that is no key of the object yet.

    The undeclared key stands in ``regs`` (place BODY). FULL_WALK where that would be to read too many tokens.
    """
    frame, state, hashed, width = reg(m, FRAME), reg(m, A) & LOW32, reg(m, B), limit(m, L_WIDTH)
    sure = max(lasting_points(m, load(m, frame) & LOW32, frame, state), 0)
    if sure >= limit(m, L_TEXT):
        return ALIVE
    inside, shorter = row_address(m, row), row_address(m, ROW_LENGTHS + sure)
    and_row(m, ROW_LENGTHS + sure, out)
    left = FEW_TOKENS
    for i in range(width):
        bits = mask_word(inside, i) & ~mask_word(shorter, i)
        while bits:
            token = 32 * i + lowest_bit(bits)
            bits &= bits - 1
            left -= 1
            if left < 0:
                return FULL_WALK
            status = _read_key(m, state, hashed, token)
            if status >= MISS:
                return status
            if status == ALIVE:
                set_bit(out, width, token)
    return ALIVE


@internal
def cut(m, out, row):
    """Leave of a row, which ``out`` holds, the tokens behind which the value string in ``regs`` can be completed."""
    record, value = reg(m, A) & LOW32, reg(m, B)
    sure, most = sure_points(m, record, value), limit(m, L_TEXT)
    if sure >= most:
        return ALIVE
    if grammar(m, record + S_MAX) >= 0:
        most = min(most, grammar(m, record + S_MAX) - (value >> 32))
    and_row(m, ROW_LENGTHS + sure, out)
    if sure >= most:
        return ALIVE
    if slice_size(m, most) - slice_size(m, sure) <= FEW_TOKENS:
        return _read_beyond(m, out, row, sure, most)
    return _walk_beyond(m, out, sure)


@internal
def _walk_beyond(m, out, sure):
    """Set the tokens of more than ``sure`` code points that stay inside the value string in ``regs`` (place BODY)."""
    i, hi = trie_field(m, 2 * TEXT), trie_field(m, 2 * TEXT + 1)
    ready(m, out)
    a = reg(m, A)
    record = a & LOW32
    save_stack(m, 0)
    set_stack(m, 4, 0)  # in place of the top of scratch, unused here: code points of the path
    while i < hi:
        level = 5 * node(m, i, NODE_DEPTH)
        if level + 10 > size(m, stack):
            return FULL
        byte = node(m, i, NODE_BYTE)
        points = stack(m, level + 4) + (1 if byte & 0xC0 != 0x80 else 0)
        if points + rise(m, i) <= sure:
            i = node(m, i, NODE_END)
            continue
        if stack(m, level) == STRING and byte != 0x22 and byte != 0x5C and byte >= 0x20:
            value = feed_string(m, record, stack(m, level + 2), byte)
            if value < 0:
                i = node(m, i, NODE_END)
                continue
            push(m, level + 5, STRING, a, value, stack(m, 3))
            state = value & LOW32
            if class_of(m, i) & ~loop(m, state) == 0:
                if string_alive(m, record, state, _grown(m, record, value >> 32, rise(m, i))):
                    emit_subtree(m, i, node(m, i, NODE_END), out)
                    i = node(m, i, NODE_END)
                    continue
        else:
            restore_stack(m, level)
            set_reg(m, TOP, 0)
            set_reg(m, POSITION, reg(m, WRITTEN) + node(m, i, NODE_DEPTH))
            status = step(m, byte, 0)
            if status >= MISS:
                return status
            if status == DEAD or reg(m, Q) < STRING:
                i = node(m, i, NODE_END)
                continue
            save_stack(m, level + 5)
        set_stack(m, level + 9, points)
        set_tokens(m, node(m, i, NODE_TOKEN), out)
        i += 1
    return ALIVE
