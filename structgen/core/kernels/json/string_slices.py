"""Safe text: which characters may follow a pool state in a string, and how many, whatever the text that they make.

A pattern's states are many, but what tokens see of them is coarse: from most, any text of some kinds of characters may
go on, for as long as a token is or up to a number of code points. Tokens of such text are copied from kept rows
(slices, cut by length), and subtrees of it need no walk.
"""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.memory import address, clear_words, size

MAX_STATES, FEW_STATES = 200, 48  # that a search looks at; what it knows by then holds
MAX_TRIES = 6  # kinds that are given up, one after the other, to get further with the rest
GIVEN_UP = 31  # in place of the kind that ends the search
NOTED = 1 << 62  # in place of the number of code points: any


@internal
def slice_within(m, kinds):
    """The largest slice of these kinds, or -1. (Slices are in falling order of their tokens.)"""
    for number in range(size(m, slice_kinds)):
        if slice_kinds(m, number) & ~kinds == 0:
            return number
    return -1


@internal
def _worth(m, kinds, points):
    """How many tokens of a slice are text of these kinds, of at most that many code points."""
    number = slice_within(m, kinds)
    return slice_size(m, number * (limit(m, L_TEXT) + 1) + points) if number >= 0 else 0


@internal
def _live_kinds(m, state):
    """The kinds all of whose characters may come next."""
    kinds = (1 << NON_ASCII_KIND) - 1
    for byte in range(0x20, 0x80):
        if pool(m, state * 256 + byte) < 0:
            kinds &= ~(1 << kind(m, byte))
    for spaces in range(2):
        if wide(m, 2 * state + spaces) >= 0:
            kinds |= 1 << (NON_ASCII_KIND + spaces)
    return kinds


@internal
def begin_states(m, state):
    """Begin a search with one state in ``search``, in which there is room for `SEARCH_STATES`."""
    clear_words(address(m, search) + 8 * SEARCH_STATES, 2 * SEARCH_SLOTS)
    add_state(m, 0, state)


@internal
def add_state(m, count, state):
    """Add a state to the first ``count`` of ``search``; the new count. Behind them lie their places, by hash."""
    slot = SEARCH_STATES + (state & (SEARCH_SLOTS - 1))
    while search(m, slot) != 0:
        if search(m, search(m, slot) - 1) == state:
            return count
        slot = slot + 1 if slot + 1 < SEARCH_STATES + SEARCH_SLOTS else SEARCH_STATES
    set_search(m, slot, count + 1)
    set_search(m, count, state)
    return count + 1


@internal
def _note_closed(m, count, kinds):
    """Note of the ``count`` states of ``search`` that these kinds lead from them to none but them."""
    for i in range(count):
        if safe(m, search(m, i)) == 0:
            set_safe(m, search(m, i), kinds | NOTED)


@internal
def _reach(m, state, kinds, most, states):
    """How many code points of these kinds may follow whatever they are, at most ``most``: 32 times that number.

    Added to it: the kind that has a dead character behind so many. Breadth first, over that many states at most.
    """
    begin_states(m, state)
    count, done, points = 1, 0, 0
    while points < most and done < count:
        level_end = count
        while done < level_end:
            current, last = search(m, done), -1
            done += 1
            for byte in range(0x20, 0x82):  # the last two stand for the characters beyond ASCII
                byte_kind = kind(m, byte) if byte < 0x80 else NON_ASCII_KIND + byte - 0x80
                if kinds >> byte_kind & 1 == 0:
                    continue
                following = pool(m, current * 256 + byte) if byte < 0x80 else wide(m, 2 * current + byte - 0x80)
                if following < 0:
                    return 32 * points + byte_kind
                if following != last:
                    last = following
                    count = add_state(m, count, following)
            if count > states:
                return 32 * points + GIVEN_UP
        points += 1
    if done == count:
        _note_closed(m, count, kinds)
    return 32 * most + GIVEN_UP


@internal
def _find(m, state, states):
    """What is safe behind a state: of what is tried, that which most tokens of a slice are.

    A search looks at so many ``states`` at most.
    """
    if flags(m, state) & PARTIAL:
        return 1 << 32
    most = limit(m, L_TEXT)
    best, worth = (loop(m, state) | most << 32, _worth(m, loop(m, state), most))
    kinds = _live_kinds(m, state)
    for _ in range(MAX_TRIES):
        if _worth(m, kinds, most) <= worth:
            break
        reached = _reach(m, state, kinds, most, states)
        points, ends = reached >> 5, reached & 31
        if _worth(m, kinds, points) > worth:
            best, worth = kinds | points << 32, _worth(m, kinds, points)
        if ends == GIVEN_UP:
            break
        kinds &= ~(1 << ends)
    return best


@internal
def safe_text(m, state):
    """Kinds of characters, and behind bit 32 how many code points of them may follow a state whatever they are.

    At least 1 (of no kinds); the number of code points of the longest token, or more, stands for any. Kept in the pool:
    callers hold its lock. Of states that a search came by it knows something, but perhaps not the most (`NOTED`).
    """
    safe_kinds = safe(m, state)
    if safe_kinds == 0:
        safe_kinds = _find(m, state, FEW_STATES)
        set_safe(m, state, safe_kinds)
    return safe_kinds


@internal
def safest_text(m, state):
    """The same for a state whose row is made: looked for further."""
    safe_kinds = _find(m, state, MAX_STATES)
    set_safe(m, state, safe_kinds)
    return safe_kinds
