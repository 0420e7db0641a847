"""Where texts may end, how many code points they have, and which states lead to an end."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import set_word, size
from structgen.core.kernels.sorted.intervals import after_alike, byte_at, byte_of
from structgen.core.kernels.sorted.layout import *
from structgen.core.kernels.sorted.tables import *


@internal
def is_inside(byte):
    """Whether a byte goes on with a character."""
    return byte & 0xC0 == 0x80


@internal
def points_of(m, entry, depth):
    """How many code points begin in the first bytes of an entry; where nobody asks, 1 if any do."""
    if setting(m, S_LIMITED) == 0:
        return min(depth, 1)
    offset, count, stop = start_of(m, entry), 0, start_of(m, entry) + depth
    while offset < stop:
        steps = _whole_steps(m, offset, stop)
        if steps:
            count += _points_in(m, offset, steps)
            offset += steps * STEP
        else:
            count += not is_inside(byte_at(m, offset))
            offset += 1
    return count


@internal
def _whole_steps(m, offset, stop):
    """How many whole steps lie from a place to another; none if the place does not begin one."""
    if offset < 0 or offset & (STEP - 1) or offset // STEP >= size(m, points_before):
        return 0
    return max(min(stop // STEP, size(m, points_before) - 1) - offset // STEP, 0)


@internal
def _points_in(m, offset, steps):
    """How many code points begin in some steps from a place on, which begins one."""
    return points_before(m, offset // STEP + steps) - points_before(m, offset // STEP)


@internal
def _is_border(m, offset):
    """Whether a quote may end before a place in the text, where a character begins or the document ends."""
    if setting(m, S_BOUNDARY) == CHAR or not 0 <= offset < size(m, text):
        return True
    return border(m, offset >> 3) >> (offset & 7) & 1 != 0 if offset >> 3 < size(m, border) else True


@internal
def _character_bytes(byte):
    """Bytes of a character, by its first."""
    return 1 + (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0) if byte < END else 1


@internal
def _steps_without_end(m, offset, points):
    """How many whole steps from a place on hold no end, of the quote that has so many code points up to there."""
    if offset < 0 or offset & (STEP - 1) or offset // STEP >= size(m, points_before):
        return 0
    over, needed = next_over(m, offset // STEP), setting(m, S_LEAST) - points
    if needed <= 0:
        return _whole_steps(m, offset, min(next_border(m, offset // STEP), over))
    most, fewest = _whole_steps(m, offset, over), 0
    while fewest < most:
        middle = (fewest + most + 1) >> 1
        if _points_in(m, offset, middle) <= needed:
            fewest = middle
        else:
            most = middle - 1
    return fewest


@internal
def _next_end(m, offset, points):
    """The first place from ``offset`` on where the quote, of so many code points up to there, may end.

    Else, below 0, ``~count``: entries that go on with the same ``count`` bytes have none either.
    """
    begin, least, most = offset, setting(m, S_LEAST), setting(m, S_MOST)
    while True:
        steps = _steps_without_end(m, offset, points)
        if steps:
            points += _points_in(m, offset, steps)
            offset += steps * STEP
            if points > most:
                return ~(offset - begin)
        byte = byte_at(m, offset)
        if not is_inside(byte):
            if least <= points <= most and _is_border(m, offset):
                return offset
            points += 1
            if byte == END or points > most:
                return ~(offset - begin + _character_bytes(byte))
        offset += 1


@internal
def may_stop(m, entry, last, depth, points):
    """Whether what is written is a name, or a quote that may end here in some document."""
    if entry >= last:
        return False
    if setting(m, S_KIND) == NAMES:
        return byte_of(m, entry, depth) == ENDED
    if depth == 0 or (setting(m, S_LIMITED) and not setting(m, S_LEAST) <= points <= setting(m, S_MOST)):
        return False
    while entry < last:
        offset = start_of(m, entry) + depth
        byte = byte_at(m, offset)
        if is_inside(byte):
            return False
        if _is_border(m, offset):
            return True
        entry = after_alike(m, entry, last, depth, _character_bytes(byte))
    return False


@internal
def is_live(m, entry, last, depth, points):
    """Whether some text of an interval has an end here or later. O(distinct continuations without one)."""
    if setting(m, S_LIMITED) == 0:
        return True
    if points > setting(m, S_MOST):
        return False
    while entry < last:
        end = _next_end(m, start_of(m, entry) + depth, points)
        if end >= 0:
            return True
        entry = after_alike(m, entry, last, depth, ~end)
    return False


@internal
def ends_from(m, entry, depth, points, most):
    """How many ends an entry has behind its first ``depth`` bytes, which have so many code points; at most ``most``."""
    offset, count = start_of(m, entry) + depth, 0
    least, longest = setting(m, S_LEAST), setting(m, S_MOST)
    while count < most:
        byte = byte_at(m, offset)
        if not is_inside(byte):
            count += least <= points <= longest and _is_border(m, offset)
            points += 1
            if byte == END or points > longest:
                break
        offset += 1
    return count


@internal
def _shortest_name(m, entry, last):
    """(entry, bytes) of a shortest name of an interval."""
    best, fewest = entry, MANY
    while entry < last:
        if entry % BLOCK == 0 and entry + BLOCK <= last and shortest(m, entry // BLOCK) >= fewest:
            entry += BLOCK
            continue
        length = start_of(m, entry + 1) - start_of(m, entry)
        if length < fewest:
            best, fewest = entry, length
        entry += 1
    return best, fewest


@internal
def shortest_end(m, entry, last, depth, points, out):
    """The place and the number of the bytes that complete what is written, as two int64 at address ``out``.

    Of names the fewest; of quotes the fewest of the first `LOOKED_AT` continuations.
    """
    if setting(m, S_KIND) == NAMES:
        best, length = _shortest_name(m, entry, last)
        set_word(out, 0, start_of(m, best) + depth)
        set_word(out, 1, max(length - depth, 0))
        return
    fewest, seen = MANY, 0
    while entry < last and not (seen >= LOOKED_AT and fewest < MANY):
        begin = start_of(m, entry) + depth
        end = _next_end(m, begin, points)
        if end >= 0 and end - begin < fewest:
            fewest = end - begin
            set_word(out, 0, begin)
            set_word(out, 1, fewest)
        alike = ~end if end < 0 else end - begin + _character_bytes(byte_at(m, end))
        entry = after_alike(m, entry, last, depth, alike)
        seen += 1
