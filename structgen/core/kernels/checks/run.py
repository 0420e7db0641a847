"""The entry of the checks' kernel."""

from structgen.core.kernels.checks.descriptions import layout
from structgen.core.kernels.checks.layout import *
from structgen.core.kernels.checks.liveness import spread
from structgen.core.kernels.checks.reach import follow, reach
from structgen.core.kernels.checks.records import check_lengths, check_object, is_sorted
from structgen.core.kernels.checks.tables import *
from structgen.core.kernels.jit import entry, internal
from structgen.core.kernels.json.layout import A_UNIQUE, H_UNIQUE, S_COUNT, S_ENTRIES
from structgen.core.kernels.memory import byte_array, int_matrix


@internal
def _reach_all(m, roots):
    """Check the fields of all records that the roots lead to; (verdict, how many there are)."""
    count = 0
    for r in range(roots):
        offset, kind = where(m, 2 * r), where(m, 2 * r + 1)
        verdict, count = reach(m, count, kind, offset)
        if verdict != FINE:
            set_where(m, 0, offset)
            set_where(m, 1, 0)
            return verdict, count
    done = 0
    while done < count:
        offset = order(m, done)
        kind = seen(m, offset) - 1
        done += 1
        set_where(m, 0, offset)
        set_where(m, 1, 0)
        for row in range(first_row(m, kind), first_row(m, kind + 1)):
            set_where(m, 1, layout(m, row, 1))
            verdict, count = follow(m, count, offset, row)
            if verdict != FINE:
                return verdict, count
    return FINE, count


@internal
def _check_all(m, count, universal):
    """Check each record by itself."""
    for number in range(count):
        offset = order(m, number)
        meaning = meanings(m, seen(m, offset) - 1)
        set_where(m, 0, offset)
        set_where(m, 1, 0)
        verdict = FINE
        if meaning == OBJECT:
            verdict = check_object(m, offset)
        elif meaning == ARRAY or meaning == COUNTED:
            verdict = BAD_DISTINCT if grammar(m, offset + A_UNIQUE) and grammar(m, H_UNIQUE) == 0 else FINE
        elif meaning == DFA_STRING:
            verdict = check_lengths(m, offset, universal, count)
        elif meaning == ENUM_STRING and not is_sorted(m, grammar(m, offset + S_ENTRIES), grammar(m, offset + S_COUNT)):
            verdict = NOT_IN_ORDER
        if verdict != FINE:
            return verdict
    return FINE


@internal
def check_tables(m, roots, universal):
    """Check tables from ``roots`` on; a verdict."""
    verdict, count = _reach_all(m, roots)
    if verdict == FINE:
        verdict = _check_all(m, count, universal)
    if verdict != FINE:
        return verdict
    set_where(m, 0, spread(m, count))
    set_where(m, 1, 0)
    return FINE if where(m, 0) < 0 else NO_VALUE


@internal
def check_automaton(m):
    """-1, or a state that leads out of the table or to no accepting state; see `core.kernels.checks.calls`."""
    transitions, accepting, live = int_matrix(m, 0), byte_array(m, 1), byte_array(m, 2)
    count = len(accepting)
    for state in range(count):
        live[state] = accepting[state]
        for byte in range(256):
            if transitions[state, byte] < -1 or transitions[state, byte] >= count:
                return state
    changed = True
    dead = -1
    while changed:
        changed, dead = False, -1
        for state in range(count - 1, -1, -1):
            if live[state]:
                continue
            for byte in range(256):
                after = transitions[state, byte]
                if after >= 0 and live[after]:
                    live[state] = 1
                    changed = True
                    break
            if not live[state]:
                dead = state
    return dead if count else 0


def _make(stamp):
    def run(m, operation, x, y, z):
        """Run an operation on the arguments at address ``m``; `structgen.core.kernels.checks.calls` says which."""
        if operation == CHECK_TABLES:
            return check_tables(m, x, y)
        if operation == CHECK_AUTOMATON:
            return check_automaton(m)
        return stamp

    return run


run = entry(_make)
