"""Objects: existentials, conditions that some member must meet, and whether members still to come can meet them."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.frames import load
from structgen.core.kernels.json.keys import is_ordered, last_key_bit, missing_word, seen, spare_room
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.tables import *


@internal
def unmet_existentials(m, record, frame):
    """The existentials that no member has met yet."""
    existentials = grammar(m, record + O_EXISTENTIALS)
    if existentials == 0:
        return 0
    return existentials & ~load(m, frame + F_SEEN + grammar(m, record + O_WORDS) - 1)


@internal
def _met_by(m, choices, existential, number):
    """The bits of the ``number``-th of the choices that meet ``existential``, or 0."""
    for c in range(grammar(m, choices)):
        bits = grammar(m, choices + 2 + 2 * c)
        if bits & existential:
            if number == 0:
                return bits
            number -= 1
    return 0


@internal
def _class_choices(m, record, number):
    """The choices of class ``number`` (from 0) of undeclared keys."""
    child = grammar(m, record + O_CHILD)
    return grammar(m, child + 1 + number) if grammar(m, record + O_OTHERS) == CLASSES else child


@internal
def _source_bits(m, record, frame, source, existential, number, late, after, taken):
    """What the ``number``-th choice for ``existential`` of a declared key (or a class of others after these) meets."""
    declared = grammar(m, record + O_COUNT)
    if source >= declared:
        return _met_by(m, _class_choices(m, record, source - declared), existential, number)
    entry = grammar(m, record + O_ENTRIES) + E_SIZE * source
    bit = grammar(m, entry + E_BIT)
    choices = grammar(m, entry + E_CHILD)
    if late or choices < 0 or source == taken or bit <= after or seen(m, frame, bit):
        return 0
    return _met_by(m, choices, existential, number)


@internal
def _source_cost(m, record, frame, source):
    """How much of the room for members that are not required a member takes."""
    if source >= grammar(m, record + O_COUNT):
        return 1
    bit = grammar(m, grammar(m, record + O_ENTRIES) + E_SIZE * source + E_BIT)
    return 1 - ((missing_word(m, record, frame, -1, bit // SEEN_BITS) >> (bit % SEEN_BITS)) & 1)


@internal
def _on_path(m, depth, source):
    """Whether a shallower level of the search has chosen the source."""
    for level in range(depth):
        if nesting(m, 4 * level + 2) == source:
            return True
    return False


@internal
def _coverable(m, record, frame, unmet, room, late, after, taken):
    """Whether members still to come can meet the existentials ``unmet``, with ``room`` for those not required.

    ``late``: declared keys cannot come any more; else those behind bit ``after`` can, but for the entry ``taken``.
    Depth first; a level of the search is (unmet, room, source, its next choice). Each level meets one existential more,
    and a record has only a few (`structgen.core.engines.json.value_graph.key_classes.MAX_DUTIES`).
    """
    if room < 0:
        return False
    if unmet == 0:
        return True
    declared = grammar(m, record + O_COUNT)
    sources = declared
    if grammar(m, record + O_OTHERS) != NO_OTHERS:
        sources += grammar(m, record + O_CLASSES)
    depth = 0
    set_nesting(m, 0, unmet)
    set_nesting(m, 1, room)
    set_nesting(m, 2, 0)
    set_nesting(m, 3, 0)
    while depth >= 0:
        unmet, room = nesting(m, 4 * depth), nesting(m, 4 * depth + 1)
        source, number = nesting(m, 4 * depth + 2), nesting(m, 4 * depth + 3)
        if source >= sources:
            depth -= 1
            continue
        bits = _source_bits(m, record, frame, source, unmet & -unmet, number, late, after, taken)
        if bits == 0 or (source < declared and _on_path(m, depth, source)):
            set_nesting(m, 4 * depth + 2, source + 1)
            set_nesting(m, 4 * depth + 3, 0)
            continue
        set_nesting(m, 4 * depth + 3, number + 1)
        left = room - _source_cost(m, record, frame, source)
        if left < 0:
            continue
        if unmet & ~bits == 0:
            return True
        depth += 1
        set_nesting(m, 4 * depth, unmet & ~bits)
        set_nesting(m, 4 * depth + 1, left)
        set_nesting(m, 4 * depth + 2, 0)
        set_nesting(m, 4 * depth + 3, 0)
    return False


@internal
def _choice_alive(m, record, frame, bits, room, late, after, taken):
    """Whether a member that meets ``bits`` is worth choosing and leaves existentials that can be met."""
    unmet = unmet_existentials(m, record, frame)
    if bits and bits & unmet == 0:
        return False
    return _coverable(m, record, frame, unmet & ~bits, room, late, after, taken)


@internal
def declared_alive(m, record, frame, entry, c):
    """`_choice_alive` for choice ``c`` of a declared key."""
    bit = grammar(m, entry + E_BIT)
    count = (load(m, frame) >> 32) + 1
    bits = grammar(m, grammar(m, entry + E_CHILD) + 2 + 2 * c)
    room = spare_room(m, record, frame, bit, count)
    ordered = is_ordered(m)
    late = ordered and last_key_bit(m, record, frame) >= ALL_DECLARED
    number = (entry - grammar(m, record + O_ENTRIES)) // E_SIZE
    return _choice_alive(m, record, frame, bits, room, late, bit if ordered else -1, number)


@internal
def entry_alive(m, record, frame, entry):
    """Whether some choice of a declared key leaves existentials that can be met."""
    if grammar(m, record + O_EXISTENTIALS) == 0:
        return True
    for c in range(grammar(m, grammar(m, entry + E_CHILD))):
        if declared_alive(m, record, frame, entry, c):
            return True
    return False


@internal
def other_alive(m, record, frame, bits):
    """`_choice_alive` for an undeclared key that meets ``bits``."""
    room = spare_room(m, record, frame, -1, (load(m, frame) >> 32) + 1)
    return _choice_alive(m, record, frame, bits, room, is_ordered(m), -1, -1)


@internal
def class_alive(m, record, frame, number):
    """Whether some key of a class leaves existentials that can be met."""
    choices = _class_choices(m, record, number)
    for c in range(grammar(m, choices)):
        if other_alive(m, record, frame, grammar(m, choices + 2 + 2 * c)):
            return True
    return False


@internal
def others_alive(m, record, frame):
    """Whether some undeclared key leaves existentials that can be met."""
    if grammar(m, record + O_EXISTENTIALS) == 0:
        return True
    for number in range(grammar(m, record + O_CLASSES)):
        if class_alive(m, record, frame, number):
            return True
    return False


@internal
def all_classes_alive(m, record, frame):
    """Whether each class of undeclared keys has one that leaves existentials that can be met."""
    for number in range(grammar(m, record + O_CLASSES)):
        if not class_alive(m, record, frame, number):
            return False
    return True


@internal
def live_words(m, record, frame, state):
    """How many undeclared keys go on from a state of their automaton and leave existentials that can be met."""
    classes = grammar(m, record + O_CLASSES)
    offset = grammar(m, record + O_COUNTS) + (state - grammar(m, record + O_START)) * classes
    total = 0
    for number in range(classes):
        words = grammar(m, offset + number)
        if words and class_alive(m, record, frame, number):
            total = min(total + words, ENDLESS_WORDS)
    return total
