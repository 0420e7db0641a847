"""Sets of configurations: a step of all over text, equal ones merged, and frames settled in the arena."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.distinct import step
from structgen.core.kernels.json.frames import frame_size, has_list, load
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.registers import push
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.memory import size


@internal
def _same_others(m, one, two):
    """Whether two trees hold the same in the same places. (What was added in one order is; others may look different.)

    ``search`` holds the pairs of nodes still to compare.
    """
    set_search(m, 0, one)
    set_search(m, 1, two)
    depth = 2
    while depth > 0:
        depth -= 2
        one, two = search(m, depth), search(m, depth + 1)
        if one == two:
            continue
        if one < 0 or two < 0 or depth + 4 > size(m, search):
            return False
        if load(m, one + K_HASH) != load(m, two + K_HASH) or load(m, one + K_START) != load(m, two + K_START):
            return False
        for side in range(2):
            set_search(m, depth + 2 * side, load(m, one + K_LEFT + side))
            set_search(m, depth + 2 * side + 1, load(m, two + K_LEFT + side))
        depth += 4
    return True


@internal
def _same_frames(m, one, two):
    """Whether two stacks say the same, wherever they lie. O(1) if they do not, but for hashes that agree by chance."""
    while one != two:
        if one < 0 or two < 0 or load(m, one) != load(m, two) or load(m, one + F_BELOW) != load(m, two + F_BELOW):
            return False
        record = load(m, one) & LOW32
        if has_list(m, record):
            for w in range(F_SEEN, frame_size(m, record)):
                if load(m, one + w) != load(m, two + w):
                    return False
            others = load(m, one + F_OTHERS)
            if not _same_others(m, others, load(m, two + F_OTHERS)):
                return False
        one, two = load(m, one + F_PARENT), load(m, two + F_PARENT)
    return True


@internal
def _add_configuration(m, count):
    """Add the configuration in ``regs`` to the first ``count`` of ``result``. The new count; -1: no room."""
    for t in range(count):
        if (
            result(m, 4 * t) == reg(m, Q)
            and result(m, 4 * t + 1) == reg(m, A)
            and result(m, 4 * t + 2) == reg(m, B)
            and _same_frames(m, result(m, 4 * t + 3), reg(m, FRAME))
        ):
            return count
    if 4 * count + 4 > size(m, result):
        return -1
    for i in range(4):
        set_result(m, 4 * count + i, reg(m, i))
    return count + 1


@internal
def advance(m, count, start, end):
    """All configurations after the bytes ``data[start:end]``, into ``result``.

    ``regs[ALTERNATIVES]`` becomes their number and ``regs[MISSING]`` that of the ones left out for want of room.
    """
    set_reg(m, TOP, 0)
    set_reg(m, UNRIVALLED, 0)
    live_count, dropped = 0, 0
    for t in range(count):
        for i in range(4):
            set_stack(m, i, configuration(m, 4 * t + i))
        set_stack(m, 4, start)
        set_stack(m, 5, 0)
        depth = 1
        while depth > 0:
            depth -= 1
            for i in range(4):
                set_reg(m, i, stack(m, 6 * depth + i))
            position, alt = stack(m, 6 * depth + 4), stack(m, 6 * depth + 5)
            status = ALIVE
            while position < end:
                q, a, b, f = reg(m, Q), reg(m, A), reg(m, B), reg(m, FRAME)
                set_reg(m, POSITION, reg(m, WRITTEN) + position - start)
                status = step(m, data(m, position), alt)
                if status >= MISS:
                    return status
                if alt + 1 < reg(m, ALTERNATIVES):
                    if 6 * depth + 6 > size(m, stack):
                        return FULL
                    push(m, 6 * depth, q, a, b, f)
                    set_stack(m, 6 * depth + 4, position)
                    set_stack(m, 6 * depth + 5, alt + 1)
                    depth += 1
                if status == DEAD:
                    break
                alt = 0
                position += 1
            if status == ALIVE:
                added = _add_configuration(m, live_count)
                if added < 0:
                    dropped += 1
                else:
                    live_count = added
    set_reg(m, ALTERNATIVES, live_count)
    set_reg(m, MISSING, dropped)
    return ALIVE if live_count else DEAD


@internal
def _settle_node(m, top, slot):
    """Copy the node of a tree that a place in the arena refers to from scratch, if it lies there. The new top."""
    source = arena(m, slot) - SCRATCH
    if source < 0:
        return top
    if scratch(m, source - 1) < 0:
        set_scratch(m, source - 1, top + 1)
        set_arena(m, top, -1)
        for i in range(K_SIZE):
            set_arena(m, top + 1 + i, scratch(m, source + i))
        top += K_SIZE + 1
    set_arena(m, slot, scratch(m, source - 1))
    return top


@internal
def _settle_others(m, top, frame):
    """Copy the tree of a settled frame from scratch to the arena, breadth first (Cheney's algorithm). The new top."""
    done = top
    top = _settle_node(m, top, frame + F_OTHERS)
    while done < top:
        top = _settle_node(m, top, done + 1 + K_LEFT)
        top = _settle_node(m, top, done + 2 + K_LEFT)
        done += K_SIZE + 1
    return top


@internal
def settle(m, top, count):
    """Copy the frames that ``result`` refers to from scratch to the arena from ``top`` on. The new top."""
    for t in range(count):
        pointer = result(m, 4 * t + 3)
        patch = -1
        while pointer >= SCRATCH:
            source = pointer - SCRATCH
            moved_to = scratch(m, source - 1)
            if moved_to >= 0:
                new = moved_to
            else:
                record = scratch(m, source) & LOW32
                size = frame_size(m, record)
                new = top + 1
                set_arena(m, top, -1)
                for i in range(size):
                    set_arena(m, new + i, scratch(m, source + i))
                set_scratch(m, source - 1, new)
                top = new + size
                if has_list(m, record):
                    top = _settle_others(m, top, new)
            if patch < 0:
                set_result(m, 4 * t + 3, new)
            else:
                set_arena(m, patch + F_PARENT, new)
            if moved_to >= 0:
                break
            patch = new
            pointer = scratch(m, source + F_PARENT)
    return top
