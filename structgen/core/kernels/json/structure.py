"""Structure: what is outside strings, numbers and literals included."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.containers import can_close, item_choices, item_node
from structgen.core.kernels.json.ends import string_step, value_done
from structgen.core.kernels.json.frames import depth, has_list, load, new_frame
from structgen.core.kernels.json.items import add_item, is_pair
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.objects import can_add
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.sorted.layout import START


@internal
def literal_byte(literal, position):
    """Byte ``position`` of null, true, false; 0 past the end."""
    if literal == 0:
        return (0x6E, 0x75, 0x6C, 0x6C, 0)[position]
    if literal == 1:
        return (0x74, 0x72, 0x75, 0x65, 0)[position]
    return (0x66, 0x61, 0x6C, 0x73, 0x65, 0)[position]


@internal
def _whitespace(m, byte):
    """Take a whitespace byte in a structural state, if the options allow it here."""
    mode = grammar(m, H_WHITESPACE)
    if mode == SINGLE:
        if byte != 0x20 or reg(m, B) != 0:
            return DEAD
        set_reg(m, B, 1)
        return ALIVE
    if mode != ANY:
        return DEAD
    if grammar(m, H_RUN) >= 0:
        if reg(m, B) >= grammar(m, H_RUN):
            return DEAD
        set_reg(m, B, reg(m, B) + 1)
    return ALIVE


@internal
def _start_value(m, node, byte, alt):
    """The first byte of a value of ``node``; alternative ``alt`` of the kind that the byte begins."""
    if byte == 0x22:
        set_reg(m, ALTERNATIVES, grammar(m, node + NODE_STRINGS + 1))
        if alt >= reg(m, ALTERNATIVES):
            return DEAD
        record = grammar(m, grammar(m, node + NODE_STRINGS) + alt)
        set_reg(m, A, record)
        if grammar(m, record + S_KIND) == S_ENUM:
            set_reg(m, Q, ENUM)
            set_reg(m, B, grammar(m, record + S_COUNT) << 20)
        elif grammar(m, record + S_KIND) == S_SORTED:
            set_reg(m, Q, SORTED)
            set_reg(m, B, START)
        else:
            set_reg(m, Q, STRING)
            set_reg(m, B, grammar(m, record + S_START))
        return ALIVE
    if byte == 0x7B or byte == 0x5B:
        kind = NODE_OBJECTS if byte == 0x7B else NODE_ARRAYS
        set_reg(m, ALTERNATIVES, grammar(m, node + kind + 1))
        if alt >= reg(m, ALTERNATIVES):
            return DEAD
        record = grammar(m, grammar(m, node + kind) + alt)
        frame = new_frame(m, record, 0, reg(m, FRAME), -1)
        if frame < 0:
            return FULL
        if kind == NODE_ARRAYS and grammar(m, record + A_UNIQUE):
            set_scratch(m, frame - SCRATCH + F_START, reg(m, POSITION) + 1)
        set_reg(m, Q, OBJECT_FIRST if byte == 0x7B else ARRAY_FIRST)
        set_reg(m, A, 0)
        set_reg(m, B, 0 if grammar(m, H_WHITESPACE) == ANY else 1)
        set_reg(m, FRAME, frame)
        return ALIVE
    if byte == 0x2D or 0x30 <= byte <= 0x39:
        set_reg(m, ALTERNATIVES, grammar(m, node + NODE_NUMBERS + 1))
        if alt >= reg(m, ALTERNATIVES):
            return DEAD
        return number_byte(m, grammar(m, grammar(m, node + NODE_NUMBERS) + alt), byte)
    literal = 0 if byte == 0x6E else 1 if byte == 0x74 else 2 if byte == 0x66 else -1
    if literal < 0 or not (grammar(m, node + NODE_FLAGS) >> literal) & 1:
        return DEAD
    set_reg(m, Q, LITERAL)
    set_reg(m, A, literal)
    set_reg(m, B, 1)
    return ALIVE


@internal
def number_byte(m, state, byte):
    """A byte of a number: its next pool state in register B, or DEAD, or MISS for a state that is not filled yet."""
    if flags(m, state) & LAZY:
        set_reg(m, MISSING, state)
        return MISS
    following = pool(m, state * 256 + byte)
    if following < 0:
        return DEAD
    set_reg(m, Q, NUMBER)
    set_reg(m, A, 0)
    set_reg(m, B, following)
    return ALIVE


@internal
def _pad(m, target, node, spaces):
    """Expect ``spaces`` spaces, then state ``target``."""
    if spaces == 0:
        set_reg(m, Q, target)
        set_reg(m, A, node)
        set_reg(m, B, 1)
    else:
        set_reg(m, Q, PAD)
        set_reg(m, A, node | (target << 40))
        set_reg(m, B, spaces)
    return ALIVE


@internal
def _separated(m, target, node):
    """After a comma: the whitespace that the options ask for, then ``target``."""
    if grammar(m, H_WHITESPACE) == INDENT:
        set_reg(m, Q, NEWLINE)
        set_reg(m, A, node | (target << 40))
        set_reg(m, B, grammar(m, H_INDENT) * depth(m, reg(m, FRAME)))
    else:
        set_reg(m, Q, target)
        set_reg(m, A, node)
        set_reg(m, B, 0 if grammar(m, H_WHITESPACE) != COMPACT else 1)
    return ALIVE


@internal
def _close_container(m):
    """Close the innermost container: its parent's frame is the innermost one."""
    parent = load(m, reg(m, FRAME) + F_PARENT)
    set_reg(m, FRAME, parent)
    set_reg(m, SHALLOWEST, min(reg(m, SHALLOWEST), depth(m, parent) if parent >= 0 else 0))
    return value_done(m)


@internal
def _start_key(m, record):
    """A key begins: a prefix of all declared ones, or an undeclared one."""
    set_reg(m, Q, KEY)
    set_reg(m, A, 0)
    set_reg(m, B, grammar(m, record + O_COUNT) << 20)
    return ALIVE


@internal
def _next_item(m, record, count, choice):
    """The frame of the array with one more item begun, or -2 (scratch is full)."""
    frame = reg(m, FRAME)
    after, number = record, count + 1
    if grammar(m, record + R_KIND) == R_COUNTED:
        after = grammar(m, grammar(m, record + T_CHOICES) + 2 * choice + 1)
        number = count + 1 if grammar(m, record + A_UNIQUE) else 0  # else equal states would not be the same
    elif grammar(m, record + A_UNIQUE) == PAIRED and count > 0 and is_pair(m, frame, reg(m, POSITION)):
        after = grammar(m, record + A_PAIRED)
    return new_frame(m, after, number, load(m, frame + F_PARENT), frame)


@internal
def _first_step(m, byte, alt):
    """A byte right after an opening bracket."""
    frame = reg(m, FRAME)
    head = load(m, frame)
    record = head & LOW32
    is_object = reg(m, Q) == OBJECT_FIRST
    if byte == (0x7D if is_object else 0x5D):
        if not can_close(m, frame):
            return DEAD
        return _close_container(m)
    indent = grammar(m, H_WHITESPACE) == INDENT
    if is_object:
        if byte != (0x0A if indent else 0x22) or not can_add(m, record, frame):
            return DEAD
        if indent:
            return _pad(m, KEY_NEXT, 0, grammar(m, H_INDENT) * depth(m, frame))
        return _start_key(m, record)
    node = item_node(m, record, 0, 0)  # the first states of counted arrays have one choice each
    if node < 0 or (indent and byte != 0x0A):
        return DEAD
    new = _next_item(m, record, 0, 0)
    if new < 0:
        return FULL
    set_reg(m, FRAME, new)
    if indent:
        return _pad(m, VALUE, node, grammar(m, H_INDENT) * depth(m, frame))
    return _start_value(m, node, byte, alt)


@internal
def _after_step(m, byte, alt):
    """A byte after a finished value inside a container."""
    frame = reg(m, FRAME)
    if frame < 0:
        return DEAD
    head = load(m, frame)
    record = head & LOW32
    count = head >> 32
    is_object = grammar(m, record + R_KIND) == R_OBJECT
    indent = grammar(m, H_WHITESPACE) == INDENT
    if byte == 0x2C:
        if is_object:
            if not can_add(m, record, frame):
                return DEAD
            return _separated(m, KEY_NEXT, 0)
        set_reg(m, ALTERNATIVES, item_choices(m, record))
        node = item_node(m, record, count, alt)
        if node < 0:
            return DEAD
        new = _next_item(m, record, count, alt)
        if new < 0:
            return FULL
        if grammar(m, record + A_UNIQUE) and has_list(m, load(m, new) & LOW32):
            if not add_item(m, new, load(m, frame + F_START), reg(m, POSITION)):
                return FULL
            set_scratch(m, new - SCRATCH + F_START, reg(m, POSITION) + 1)
        set_reg(m, FRAME, new)
        return _separated(m, VALUE, node)
    closing = reg(m, Q) == CLOSE or not indent
    if closing and byte == (0x7D if is_object else 0x5D):
        if not can_close(m, frame):
            return DEAD
        return _close_container(m)
    if indent and byte == 0x0A and reg(m, Q) == AFTER and can_close(m, frame):
        return _pad(m, CLOSE, 0, grammar(m, H_INDENT) * (depth(m, frame) - 1))
    return DEAD


@internal
def _structure_step(m, byte, alt):
    """One byte outside strings and keys."""
    q = reg(m, Q)
    if q == NUMBER:
        status = number_byte(m, reg(m, B), byte)
        if status != DEAD or not flags(m, reg(m, B)) & ACCEPTING:
            return status
        if value_done(m) == DEAD:
            return DEAD
        q = AFTER
    elif q == LITERAL:
        if byte != literal_byte(reg(m, A), reg(m, B)):
            return DEAD
        set_reg(m, B, reg(m, B) + 1)
        if literal_byte(reg(m, A), reg(m, B)) == 0:
            return value_done(m)
        return ALIVE
    elif q == PAD:
        if byte != 0x20:
            return DEAD
        return _pad(m, reg(m, A) >> 40, reg(m, A) & ((1 << 40) - 1), reg(m, B) - 1)
    elif q == NEWLINE:
        if byte != 0x0A:
            return DEAD
        return _pad(m, reg(m, A) >> 40, reg(m, A) & ((1 << 40) - 1), reg(m, B))
    if (byte == 0x20 or byte == 0x0A or byte == 0x0D or byte == 0x09) and grammar(m, H_WHITESPACE) != INDENT:
        return _whitespace(m, byte)
    if q == VALUE:
        return _start_value(m, reg(m, A), byte, alt)
    if q == AFTER or q == CLOSE:
        if q == CLOSE and byte == 0x2C:
            return DEAD
        return _after_step(m, byte, alt)
    if q == COLON:
        if byte != 0x3A:
            return DEAD
        if grammar(m, H_WHITESPACE) == INDENT:
            return _pad(m, VALUE, reg(m, A), 1)
        set_reg(m, Q, VALUE)
        set_reg(m, B, 0 if grammar(m, H_WHITESPACE) != COMPACT else 1)
        return ALIVE
    if q == KEY_NEXT:
        if byte != 0x22:
            return DEAD
        return _start_key(m, load(m, reg(m, FRAME)) & LOW32)
    return _first_step(m, byte, alt)


@internal
def plain_step(m, byte, alt):
    """`step`, but that what it leads to may have only completions that repeat an item."""
    set_reg(m, ALTERNATIVES, 1)
    if reg(m, Q) >= STRING:
        return string_step(m, byte, alt)
    return _structure_step(m, byte, alt)
