"""Matchers: their arrays into the context, their steps, and the mask behind a step.

A matcher is a block of addresses and a trail of states (`structgen.core.kernels.json.layout`). A step writes its state
behind the present one, so that one rolled back to is still there.
"""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.configurations import advance, settle
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.masks import fill
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.memory import clear_words, prefetch, set_table, set_word, size, within, word

LINE = 64  # bytes of a cache line


@internal
def is_stale(m):
    """Whether arrays of the pool or rows have been replaced since the context took them up."""
    return word(word(m, VERSION), 0) != word(m, VERSION_TAKEN)


@internal
def _state(block):
    """The address of a matcher's present state."""
    within(word(block, B_PLACE), STATE_CONFIGURATIONS, word(block, B_TRAIL_SIZE))
    return word(block, B_TRAIL) + 8 * word(block, B_PLACE)


@internal
def enter(m, block):
    """Work on a matcher: its arrays into the context. How many configurations it has."""
    tables = word(block, B_TABLES)
    for i in range(TABLES_SIZE):
        set_word(m, i, word(tables, i))
    set_table(m, arena, word(block, B_ARENA), word(block, B_ARENA_SIZE))
    set_table(m, written, word(block, B_TEXT), word(block, B_TEXT_SIZE))
    state = _state(block)
    count = word(state, STATE_COUNT)
    set_table(m, configuration, state + 8 * STATE_CONFIGURATIONS, 4 * count)
    set_reg(m, WRITTEN, word(state, STATE_LENGTH))
    set_reg(m, GIVEN_UP, 0)
    set_reg(m, REMEMBERS, word(block, B_REMEMBERS))
    return count


@internal
def read(m, block, start, end):
    """Advance a matcher by ``data[start:end]`` as one step. ALIVE: it stands behind it; else nothing has changed."""
    status = advance(m, enter(m, block), start, end)
    if status != ALIVE:
        return status
    if reg(m, MISSING) > 0 and size(m, result) < 4 * MAX_CONFIGURATIONS:
        return CROWDED
    state, offset, count = _state(block), word(block, B_PLACE), reg(m, ALTERNATIVES)
    top, length = word(state, STATE_TOP), word(state, STATE_LENGTH)
    following = offset + STATE_CONFIGURATIONS + 4 * word(state, STATE_COUNT)
    grows = grammar(m, H_UNIQUE) != 0
    set_reg(m, USED, reg(m, TOP))
    if following + STATE_CONFIGURATIONS + 4 * count > word(block, B_TRAIL_SIZE) or top + reg(m, TOP) > size(m, arena):
        return SHORT
    if grows:
        for i in range(start, end):  # searches have written other bytes there
            set_written(m, length + i - start, data(m, i))
    if reg(m, TOP):
        top = settle(m, top, count)
    new = word(block, B_TRAIL) + 8 * following
    set_word(new, STATE_BEFORE, offset)
    set_word(new, STATE_STEPS, word(state, STATE_STEPS) + 1)
    set_word(new, STATE_TOP, top)
    set_word(new, STATE_LENGTH, length + end - start if grows else 0)
    set_word(new, STATE_ENDED, 0)
    set_word(new, STATE_COUNT, count)
    for i in range(4 * count):
        set_word(new, STATE_CONFIGURATIONS + i, result(m, i))
    set_word(block, B_DROPPED, word(block, B_DROPPED) + reg(m, MISSING))
    set_word(block, B_PLACE, following)
    return ALIVE


@internal
def mask(m, block, out, first):
    """The mask of a matcher into the row at address ``out``, see `structgen.core.kernels.json.masks.fill`."""
    status = fill(m, enter(m, block), out, first)
    if status < MISS:
        set_word(block, B_SEARCHES, word(block, B_SEARCHES) + reg(m, GIVEN_UP))
    return status


@internal
def step(m, block, token, out):
    """Advance a matcher by a token, and write the `mask` behind it unless ``out`` is 0.

    FILLING is added to what the mask lacks: the step is taken.
    """
    start, end = offset(m, token), offset(m, token + 1)
    status = read(m, block, start, end) if start < end else DEAD
    if status != ALIVE or out == 0:
        return status
    status = mask(m, block, out, 0)
    return status + FILLING if status >= MISS else ALIVE


@internal
def _mask_or_none(m, block, out):
    """`mask`, or no token where the output has ended."""
    if word(_state(block), STATE_ENDED) == 0:
        return mask(m, block, out, 0)
    clear_words(out, limit(m, L_WIDTH))
    return DEAD


@internal
def _ask_ahead(jobs, i, last):
    """Ask for the memory of the matchers of jobs to come, each step of the way a job earlier: many matchers are not in
    the cache, which masks fill."""
    if i + 3 < last:
        block = word(jobs + 8 * JOB_SIZE * (i + 3), J_BLOCK)
        prefetch(block)
        prefetch(block + LINE)
    if i + 2 < last:
        block = word(jobs + 8 * JOB_SIZE * (i + 2), J_BLOCK)
        state = _state(block)
        prefetch(state)
        prefetch(state + LINE)
    if i + 1 < last:
        block = word(jobs + 8 * JOB_SIZE * (i + 1), J_BLOCK)
        frame = word(_state(block), STATE_CONFIGURATIONS + 3)
        if frame >= 0:
            prefetch(word(block, B_ARENA) + 8 * frame)
            prefetch(word(block, B_ARENA) + 8 * frame + LINE)


@internal
def fills(m, jobs, first, last):
    """`mask` for the jobs first..last. The number of the one that lacks something, or ``last``: all are done.

    Where the output has ended, no token is allowed.
    """
    for i in range(first, last):
        job = jobs + 8 * JOB_SIZE * i
        _ask_ahead(jobs, i, last)
        status = STALE
        if not is_stale(m):
            status = _mask_or_none(m, word(job, J_BLOCK), word(job, J_OUT))
        set_word(job, J_STATUS, status)
        if status >= MISS:
            return i
    return last


@internal
def steps(m, jobs, first, last):
    """`step` for the jobs first..last. The number of the one that lacks something, or ``last``: all are done."""
    for i in range(first, last):
        job = jobs + 8 * JOB_SIZE * i
        status = STALE
        if not is_stale(m):
            status = step(m, word(job, J_BLOCK), word(job, J_TOKEN), word(job, J_OUT))
        set_word(job, J_STATUS, status)
        if status >= MISS:
            return i
    return last


@internal
def _visit(m, jobs, job):
    """Go on to a job of a tree from the one before it, which was taken, and write the mask there; none if it is not
    taken. The first of a tree is where its matcher stands."""
    block, out, before = word(job, J_BLOCK), word(job, J_OUT), word(job, J_PARENT)
    if word(job, J_TOKEN) == NO_TOKEN:
        return _mask_or_none(m, block, out)
    set_word(block, B_PLACE, word(jobs + 8 * JOB_SIZE * before, J_PLACE))
    status = step(m, block, word(job, J_TOKEN), out) if word(job, J_TOKEN) >= 0 else DEAD
    if status == ALIVE:
        set_word(job, J_PLACE, word(block, B_PLACE))
    elif status == DEAD:
        clear_words(out, limit(m, L_WIDTH))
    return status


@internal
def _following(jobs, i):
    """The job to go to after job ``i`` is done: the first that follows on it if it was taken, else the next one of
    those on its path that have one. -1: there is none."""
    job = jobs + 8 * JOB_SIZE * i
    to, before = word(job, J_CHILD), i
    if to < 0 or word(job, J_STATUS) != ALIVE:
        to, before = word(job, J_SIBLING), word(job, J_PARENT)
        while to < 0 and before >= 0:
            job = jobs + 8 * JOB_SIZE * before
            to, before = word(job, J_SIBLING), word(job, J_PARENT)
    if to >= 0:
        set_word(jobs + 8 * JOB_SIZE * to, J_PARENT, before)
    return to


@internal
def trees(m, jobs, first):
    """Visit the jobs of trees, from one on that was begun or is done. The number of the one that lacks something, or
    -1: all are done that can be. (The first job of a tree has that of the next tree as its sibling.)"""
    i = first
    while i >= 0:
        job = jobs + 8 * JOB_SIZE * i
        if word(job, J_STATUS) == NOT_YET:
            status = STALE if is_stale(m) else _visit(m, jobs, job)
            set_word(job, J_STATUS, status)
            if status >= MISS:
                return i
        i = _following(jobs, i)
    return -1
