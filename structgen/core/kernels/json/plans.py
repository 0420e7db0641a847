"""Masks: how to make the one of a string or key, by rows where they are exact."""

from structgen.core.kernels.jit import internal
from structgen.core.kernels.json.distinct import endless_frame, values_here
from structgen.core.kernels.json.escapes import table_inside_sequence
from structgen.core.kernels.json.existentials import all_classes_alive
from structgen.core.kernels.json.frames import load
from structgen.core.kernels.json.items import is_distinct
from structgen.core.kernels.json.layout import *
from structgen.core.kernels.json.limits import words_last
from structgen.core.kernels.json.objects import others_admissible
from structgen.core.kernels.json.strings import replay
from structgen.core.kernels.json.tables import *
from structgen.core.kernels.json.unique_items_candidates import may_repeat_from


@internal
def among_distinct(m):
    """Whether some open array has distinct items, so that masks depend on the text of what is being written."""
    if grammar(m, H_UNIQUE) == 0:
        return False
    frame = reg(m, FRAME)
    while frame >= 0:
        record = load(m, frame) & LOW32
        if grammar(m, record + R_KIND) != R_OBJECT and grammar(m, record + A_UNIQUE):
            return True
        frame = load(m, frame + F_PARENT)
    return False


@internal
def may_repeat(m):
    """Whether what is being written may still become an item, or part of one, that some open array has already."""
    return may_repeat_from(m, reg(m, FRAME))


@internal
def _longest(m):
    """More code points than any token of text stands for here: behind a backslash its own escapes may be text."""
    return limit(m, L_TEXT if reg(m, Q) & 15 == BODY else L_WRITTEN)


@internal
def _stays_endless(m):
    """Whether a string or key has endlessly many completions after every token that stays inside it."""
    mode = reg(m, Q) & ~15
    if mode == OTHER_KEY:
        return values_here(m) == MANY
    if mode != STRING:
        return False
    record = reg(m, A) & LOW32
    if record == 0:
        return True
    most = grammar(m, record + S_MAX)
    if most >= 0 and most - (reg(m, B) >> 32) <= _longest(m):
        return False
    if grammar(m, record + S_DISTANCES) == 0 and (reg(m, B) & LOW32) == limit(m, L_UNIVERSAL):
        return True
    return most < 0 and count_of(m, 2 * (reg(m, B) & LOW32)) > MANY


@internal
def endless_here(m):
    """Whether the string or key, or a container around it within an array of distinct items, can go on endlessly."""
    if _stays_endless(m):
        return True
    frame = reg(m, FRAME)
    while frame >= 0:
        record = load(m, frame) & LOW32
        if is_distinct(m, record):
            return False
        if endless_frame(m, frame):
            return True
        frame = load(m, frame + F_PARENT)
    return True


@internal
def string_plan(m):
    """How to make the mask of a value string.

    0: walk all text. 1: stay row, then walk what has a quote. 2: stay row and remainders. 3: length row and remainders
    (a limit is near). 4: stay row cut by length row, then walk what has a quote. 5: the same, but that limits matter
    before the row is cut, so that longer tokens are walked.
    """
    string_state = reg(m, Q) & 15
    record = reg(m, A) & LOW32
    universal = (reg(m, B) & LOW32) == limit(m, L_UNIVERSAL)
    if string_state > ESCAPE:
        return 0
    if record == 0:
        return 2 if universal and string_state == BODY else 1
    least, most = grammar(m, record + S_MIN), grammar(m, record + S_MAX)
    room = most - (reg(m, B) >> 32) if most >= 0 else 1 << 30
    longest = _longest(m)
    table = grammar(m, record + S_DISTANCES)
    if table == 0:
        if room >= longest:
            return 2 if universal and string_state == BODY else 1
        return 3 if universal and string_state == BODY else 0
    slack = grammar(m, table + D_SLACK)
    possible = slack >= 0 and (most < 0 or least + slack <= most)
    if possible and slack <= room - longest:
        return 1
    if string_state != BODY or flags(m, reg(m, B) & LOW32) & PARTIAL:
        return 0
    return 4 if possible and slack == 0 else 5


@internal
def _may_run_out(m, record):
    """Whether what may follow depends on which of few undeclared keys the object has."""
    if grammar(m, record + O_COUNTS) != 0:
        return True
    state = reg(m, A) & LOW32
    if reg(m, Q) & ~15 == KEY:
        state, _ = replay(m, record, reg(m, B))
    return state >= 0 and not words_last(m, record, reg(m, FRAME), state)


@internal
def key_plan(m):
    """How to make the mask of a key.

    0: walk all text. 1: stay row and walk. 2: stay row and remainders (undeclared). 5: stay row, but that longer tokens
    are read, since undeclared keys may run out; and walk.
    """
    record = load(m, reg(m, FRAME)) & LOW32
    string_state = reg(m, Q) & 15
    if string_state > ESCAPE:
        return 0
    runs_out = grammar(m, record + O_NARROW) != 0 and _may_run_out(m, record)
    if runs_out and (string_state != BODY or grammar(m, record + O_COUNTS) != 0):
        return 0
    if grammar(m, record + O_COUNTS) and not all_classes_alive(m, record, reg(m, FRAME)):
        return 0
    simple = grammar(m, record + O_OTHERS) == ONE_CLASS and grammar(m, record + O_EXISTENTIALS) == 0
    if reg(m, Q) & ~15 == OTHER_KEY:
        if runs_out:
            return 0 if flags(m, reg(m, A) & LOW32) & PARTIAL else 5
        if simple and (reg(m, A) & LOW32) == limit(m, L_UNIVERSAL) and string_state == BODY:
            return 2
        return 1
    if string_state != BODY or not others_admissible(m, record, reg(m, FRAME)):
        return 0
    if grammar(m, record + O_COUNT) > 0 and table_inside_sequence(m, grammar(m, record + O_ENTRIES), reg(m, B)):
        return 0
    if runs_out:
        return 5
    return 2 if simple else 1
