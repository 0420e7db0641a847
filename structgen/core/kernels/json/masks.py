"""Masks: which tokens may come next in a set of configurations."""

from structgen.core.kernels.bits import set_bit
from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.containers import item_node
from structgen.core.kernels.json.distinct import count_values, step
from structgen.core.kernels.json.emit import and_row, or_row, ready
from structgen.core.kernels.json.ends import key_done, value_done
from structgen.core.kernels.json.frames import depth, load, new_frame
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.limits import FULL_WALK, cut, cut_key
from structgen.core.kernels.json.mask_cache import keep, recall
from structgen.core.kernels.json.plans import among_distinct, endless_here, key_plan, may_repeat, string_plan
from structgen.core.kernels.json.registers import (
    load_configuration,
    restore_cross,
    restore_start,
    save_cross,
    save_start,
    set_string,
)
from structgen.core.kernels.json.sorted_strings import fill_sorted
from structgen.core.kernels.json.strings import replay
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.json.unique_items_candidates import is_only_rivalled, unrivalled
from structgen.core.kernels.json.walks import along_rivals, declared_keys, exact, set_group, walk
from structgen.core.kernels.memory import address, clear_words, or_words, size


@internal
def _numbers_of(m):
    """The node whose numbers may begin here, or -1."""
    if reg(m, Q) == VALUE:
        return reg(m, A)
    if reg(m, Q) == ARRAY_FIRST and grammar(m, H_WHITESPACE) != INDENT:
        return item_node(m, load(m, reg(m, FRAME)) & LOW32, 0, 0)
    return -1


@internal
def _stay_row(m, state, string_state, out):
    """Or in the tokens that stay inside a string, or number, from pool state ``state`` on."""
    if slot_of(m, 2 * state + string_state) < 0:
        set_reg(m, MISSING, state)
        set_reg(m, ALTERNATIVES, string_state)
        return MISS_ROW
    or_row(m, slot_of(m, 2 * state + string_state), out)
    return ALIVE


@internal
def _digit_row(m, state, distinct, out):
    """Or in the tokens that are wholly digits from a number state on, as the row says that.

    Where items must be ``distinct`` it does if there are as many values as one likes behind each of them: else DEAD.
    """
    if distinct:
        count = count_values(m, state, 0)
        if count <= MANY:
            return DEAD if count else MISS_COUNT
    return _stay_row(m, state, BODY, out)


@internal
def _digit_rows(m, distinct, out):
    """Or in the tokens that are wholly digits: ALIVE. DEAD if not all are in, see `_digit_row`."""
    status, node = ALIVE, _numbers_of(m)
    if reg(m, Q) == NUMBER:
        return _digit_row(m, reg(m, B), distinct, out)
    if node >= 0:
        for alt in range(grammar(m, node + NODE_NUMBERS + 1)):
            status = _digit_row(m, grammar(m, grammar(m, node + NODE_NUMBERS) + alt), distinct, out)
            if status != ALIVE:
                return status
    return status


@internal
def _structure_rows(m, distinct, out):
    """The tokens of blanks and those of digits, from rows where these are known and exact.

    Where items must be ``distinct``, a blank that ends a number ends an item perhaps; others change nothing.
    """
    status = _digit_rows(m, distinct, out)
    if status == DEAD:
        status = exact(m, trie_field(m, 2 * DIGITS), trie_field(m, 2 * DIGITS + 1), out)
        if status == ALIVE:
            restore_start(m, 0)
    if status >= MISS:
        return status
    if grammar(m, H_WHITESPACE) != ANY or grammar(m, H_RUN) >= 0:
        status = exact(m, trie_field(m, 2 * BLANK), trie_field(m, 2 * BLANK + 1), out)
        if status == ALIVE:
            restore_start(m, 0)
        return status
    if reg(m, Q) == NUMBER and distinct:
        set_reg(m, POSITION, reg(m, WRITTEN))
        status = step(m, 0x20, 0)
        restore_start(m, 0)
    elif reg(m, Q) == NUMBER:
        status = ALIVE if flags(m, reg(m, B)) & ACCEPTING else DEAD
    else:
        status = DEAD if reg(m, Q) == LITERAL else ALIVE
    if status == ALIVE:
        or_row(m, ROW_BLANK, out)
    return status


@internal
def _fill_configuration(m, out):
    """Or the mask of the configuration in ``regs`` into ``out``, which may be all zero before."""
    save_start(m, 0)
    mode = reg(m, Q) & ~15 if reg(m, Q) >= STRING else 0
    trie = TEXT
    if mode == 0:
        status = _structure_rows(m, among_distinct(m) and may_repeat(m), out)
        if status >= MISS:
            return status
        trie = STRUCTURE
    if reg(m, Q) == SORTED + BODY and not among_distinct(m):
        return fill_sorted(m, out)
    plan = 0
    if mode == STRING:
        plan = string_plan(m)
    elif mode == KEY or mode == OTHER_KEY:
        plan = key_plan(m)
    distinct = plan != 0 and among_distinct(m)
    if distinct and may_repeat(m):
        if plan <= 2 and endless_here(m):
            plan = 1
        elif mode == STRING and is_only_rivalled(m):
            return _fill_rivalled(m, out, plan)
        else:
            plan = 0
    if plan == 0:
        return exact(m, trie_field(m, 2 * trie + 0), trie_field(m, 2 * trie + 1), out)
    return _fill_text(m, out, mode, plan, distinct)


@internal
def _fill_rivalled(m, out, plan):
    """The mask inside a string that is an item and may still become one before it: first as if it could not.

    Then what that says of the tokens along these items is made anew.
    """
    unrivalled, level = reg(m, UNRIVALLED), depth(m, reg(m, FRAME))
    set_reg(m, UNRIVALLED, unrivalled | 1 << level)
    status = _fill_text(m, out, STRING, plan, True)
    set_reg(m, UNRIVALLED, unrivalled)
    if status >= MISS:
        return status
    restore_start(m, 0)
    return along_rivals(m, trie_field(m, 2 * TEXT), trie_field(m, 2 * TEXT + 1), out)


@internal
def _fill_text(m, out, mode, plan, distinct):
    """The mask inside a string or key by rows: tokens that stay inside it, and those that cross its end.

    Where items must be ``distinct`` these are read whole: remainders would do without the text before the quote.
    """
    state = reg(m, B) & LOW32
    length, least, most = 0, 0, -1
    frame, hashed = -1, 0
    if mode == STRING:
        record = reg(m, A) & LOW32
        if record != 0:
            length, least, most = (reg(m, B) >> 32, grammar(m, record + S_MIN), grammar(m, record + S_MAX))
    else:
        frame = reg(m, FRAME)
        record = load(m, frame) & LOW32
        state, hashed = reg(m, A) & LOW32, reg(m, B)
        if mode == KEY:
            state, hashed = replay(m, record, reg(m, B))
            set_string(m, OTHER_KEY, state, hashed)
    status = ALIVE
    if plan == 3:
        or_row(m, ROW_LENGTHS + most - length, out)
    elif state >= 0:
        status = _stay_row(m, state, start(m, Q) & 15, out)
        if status >= MISS:
            return status
        if plan == 4:
            and_row(m, ROW_LENGTHS + most - length, out)
        if plan == 5:
            status = _cut(m, out, mode, state, hashed)
            if status >= MISS:
                return status
    if (plan == 2 or plan == 3) and not distinct:
        status = _fill_remainders(m, out, mode, length, least, most, frame, hashed)
    elif state >= 0:
        status = exact(m, trie_field(m, 2 * QUOTED), trie_field(m, 2 * QUOTED + 1), out)
    if status >= MISS or mode != KEY:
        return status
    restore_start(m, 0)
    # Any text may begin an undeclared key unless these have classes, so only tokens that end the key can differ.
    trie = TEXT if grammar(m, record + O_OTHERS) == CLASSES else QUOTED
    return declared_keys(m, trie_field(m, 2 * trie), trie_field(m, 2 * trie + 1), out)


@internal
def _cut(m, out, mode, state, hashed):
    """Leave of a stay row the tokens that no limit forbids. The configuration is in the registers before and after."""
    row = slot_of(m, 2 * state + BODY)
    if mode == STRING:
        status = cut(m, out, row)
        restore_start(m, 0)
        return status
    status = cut_key(m, out, row)
    if status == FULL_WALK:
        set_string(m, OTHER_KEY, state, hashed)
        status = exact(m, trie_field(m, 2 * TEXT), trie_field(m, 2 * TEXT + 1), out)
    restore_start(m, 0)
    set_string(m, OTHER_KEY, state, hashed)
    return status


@internal
def _fill_remainders(m, out, mode, length, least, most, frame, hashed):
    """Tokens that close a free string (or undeclared key) here: walk what follows the quote once for all of them."""
    save_cross(m, 0)
    status = exact(m, trie_field(m, 2 * HARD + 0), trie_field(m, 2 * HARD + 1), out)
    if status >= MISS:
        return status
    restore_cross(m, 0)
    if mode == STRING:
        value_done(m)
    else:
        record = load(m, frame) & LOW32
        parent = load(m, frame + F_PARENT)
        count = (load(m, frame) >> 32) + 1
        new = new_frame(m, record, count, parent, frame)
        if new < 0:
            return FULL
        key_done(m, new, grammar(m, record + O_CHILD))
        if load(m, frame + F_OTHERS) < 0:
            frame = -1  # no undeclared key yet, so none can be repeated
    # Group 0: nothing follows the quote.
    set_group(m, 0, out, length, least, most, frame, hashed)
    return walk(
        m,
        trie_field(m, 2 * REMAINDERS + 0),
        trie_field(m, 2 * REMAINDERS + 1),
        out,
        True,
        length,
        least,
        most,
        frame,
        hashed,
    )


@internal
def accepting(m, count):
    """Whether the text may stop after one of the ``count`` configurations before a step."""
    for t in range(count):
        if configuration(m, 4 * t + 3) < 0:
            q = configuration(m, 4 * t)
            if q == AFTER or (q == NUMBER and flags(m, configuration(m, 4 * t + 2)) & ACCEPTING):
                return True
    return False


@internal
def fill(m, count, out, first):
    """The mask of ``count`` configurations into the row at address ``out``, end-of-sequence tokens included.

    Where something is missing, ``regs[RESUME]`` is the configuration to go on with, as ``first``, when it is there:
    else many configurations that each miss something would all be done again each time.
    """
    width = limit(m, L_WIDTH)
    other = address(m, spare)
    set_reg(m, JOINED, 0)
    for t in range(first, count):
        row = out if t == 0 else other
        load_configuration(m, t)
        if recall(m, out, t > 0):
            continue
        set_reg(m, TOP, 0)
        set_reg(m, FRESH, 1)
        set_reg(m, KNOWN, out if t > 0 and reg(m, ASKED) else 0)  # a mask that is kept is made whole
        set_reg(m, UNRIVALLED, unrivalled(m) if grammar(m, H_UNIQUE) else 0)
        status = _fill_configuration(m, row)
        if status >= MISS:
            set_reg(m, RESUME, t)
            return status
        ready(m, row)
        load_configuration(m, t)
        keep(m, row)
        if t > 0:
            or_words(other, out, width)
    if accepting(m, count):
        for e in range(size(m, end_token)):
            set_bit(out, width, end_token(m, e))
    return ALIVE


@internal
def next_bytes(m, count, out):
    """Set bit ``byte`` of the 256 bits at address ``out`` if the byte may come next."""
    clear_words(out, 8)
    set_reg(m, UNRIVALLED, 0)
    for t in range(count):
        for byte in range(256):
            alt = 0
            while True:
                set_reg(m, POSITION, reg(m, WRITTEN))
                load_configuration(m, t)
                set_reg(m, TOP, 0)
                status = step(m, byte, alt)
                if status >= MISS:
                    return status
                if status == ALIVE:
                    set_bit(out, 8, byte)
                    break
                alt += 1
                if alt >= reg(m, ALTERNATIVES):
                    break
    return ALIVE
