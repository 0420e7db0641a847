"""Automata of terminals, as positions and edges."""

from structgen.core.kernels.cfg.buffers import push
from structgen.core.kernels.cfg.kinds import first_of_kind, kind_of, last_of_kind
from structgen.core.kernels.cfg.layout import *
from structgen.core.kernels.cfg.tables import *
from structgen.core.kernels.interning import lacks_room, set_word, word
from structgen.core.kernels.jit import internal
from structgen.core.kernels.memory import element_reader
from structgen.core.kernels.memory import word as word_at
from structgen.core.kernels.utf8 import count, highest, lowest, next_expected

_byte, _int = element_reader(8, signed=False), element_reader(32)


@internal
def next_position(h, p, byte):
    """The position after a byte, or -1."""
    for e in range(edges_from(h, p), edges_from(h, p + 1)):
        if byte <= edge_at(h, 3 * e + 1):
            return edge_at(h, 3 * e + 2) if byte >= edge_at(h, 3 * e) else -1
    return -1


@internal
def same_edges(h, p, q):
    """Whether two positions have the same edges."""
    first, other = 3 * edges_from(h, p), 3 * edges_from(h, q)
    count = 3 * edges_from(h, p + 1) - first
    if 3 * edges_from(h, q + 1) - other != count:
        return False
    for i in range(count):
        if edge_at(h, first + i) != edge_at(h, other + i):
            return False
    return True


@internal
def _target_of_all(h, p, lo, hi):
    """Where all bytes of a range lead from a position, or -1."""
    for e in range(edges_from(h, p), edges_from(h, p + 1)):
        if lo <= edge_at(h, 3 * e + 1):
            return edge_at(h, 3 * e + 2) if edge_at(h, 3 * e) <= lo and hi <= edge_at(h, 3 * e + 1) else -1
    return -1


@internal
def _stays_in_text(h, p):
    """Whether each character beyond ASCII leads from a position back to it."""
    for lead in range(0xC2, 0xF5):
        expected, q = next_expected(0, lead), _target_of_all(h, p, lead, lead)
        lo, hi = lowest(expected), highest(expected)
        for _ in range(count(expected)):
            q = _target_of_all(h, q, lo, hi) if q >= 0 else -1
            lo, hi = 0x80, 0xBF
        if q != p:
            return False
    return True


@internal
def stays(h, p):
    """The kinds of bytes (`kind_of`) that leave a position of a terminal as it is."""
    cached = known_stays(h, p)
    if cached != 0:
        return cached
    kinds, back = (1 << INVALID) - 1, False
    byte = 0
    for e in range(edges_from(h, p), edges_from(h, p + 1)):
        if edge_at(h, 3 * e + 2) == p:
            back = True
            while byte < min(edge_at(h, 3 * e), 128):
                kinds &= ~(1 << kind_of(byte))
                byte += 1
            byte = max(byte, edge_at(h, 3 * e + 1) + 1)
    while back and byte < 128:
        kinds &= ~(1 << kind_of(byte))
        byte += 1
    if not back:
        kinds &= 1 << NON_ASCII
    if not _stays_in_text(h, p):
        kinds &= ~(1 << NON_ASCII)
    set_known_stays(h, p, kinds | KNOWN)
    return kinds | KNOWN


@internal
def _spelled(h, p, kind):
    """Whether each byte of a kind below LETTERS has an edge from a position."""
    byte, last = first_of_kind(kind), last_of_kind(kind)
    for e in range(edges_from(h, p), edges_from(h, p + 1)):
        if edge_at(h, 3 * e) > byte:
            return False
        byte = max(byte, edge_at(h, 3 * e + 1) + 1)
        if byte > last:
            return True
    return False


@internal
def lasts(h, p):
    """Kinds of bytes any text of which can be read from a position of a terminal, however long it is.

    Those that leave it as it is; where there are none, of letters and digits also those that lead to such positions
    (hexadecimal digits at the begin of an escape, say). Some may be missing.
    """
    cached = known_lasts(h, p)
    if cached != 0:
        return cached
    kinds = stays(h, p)
    if kinds == KNOWN:
        kinds |= _closed_kinds(h, p)
    if not lacks_room(h):
        set_known_lasts(h, p, kinds)
    return kinds


@internal
def _closed_kinds(h, p):
    """Kinds below LETTERS that the positions which they lead to from ``p`` all go on with."""
    a, kinds, i = word(h, H_ATOP), (1 << LETTERS) - 1, 0
    push(h, H_A, p)
    while kinds != 0 and a + i < word(h, H_ATOP):
        q, before = a_at(h, a + i), kinds
        for kind in range(LETTERS):
            if kinds >> kind & 1 and not _spelled(h, q, kind):
                kinds &= ~(1 << kind)
        if kinds != before:  # what was found so far may be out of reach
            set_word(h, H_ATOP, a + 1)
            i = 0
            continue
        _push_targets(h, a, q, kinds)
        i += 1
        if i > CLOSED_POSITIONS:
            kinds = 0
    set_word(h, H_ATOP, a)
    return kinds


@internal
def _push_targets(h, a, q, kinds):
    """Push on A the positions that bytes of some kinds lead to, where they are not on it from ``a`` on."""
    for e in range(edges_from(h, q), edges_from(h, q + 1)):
        lo, hi, meets = edge_at(h, 3 * e), edge_at(h, 3 * e + 1), False
        for kind in range(LETTERS):
            meets |= kinds >> kind & 1 != 0 and lo <= last_of_kind(kind) and hi >= first_of_kind(kind)
        for i in range(a, word(h, H_ATOP)):
            meets &= a_at(h, i) != edge_at(h, 3 * e + 2)
        if meets:
            push(h, H_A, edge_at(h, 3 * e + 2))


@internal
def read_automata(h, addresses, number):
    """Automata of terminals as positions and edges.

    ``addresses`` holds for each the address of its transitions, of its accepting flags, its states, its class. Buffer
    A gets ``class, accepting, edges before`` of each position, B the edges ``first byte, last byte, target``.
    """
    base = 0
    for i in range(number):
        table, accepting = word_at(addresses, 4 * i), word_at(addresses, 4 * i + 1)
        states, kind = word_at(addresses, 4 * i + 2), word_at(addresses, 4 * i + 3)
        for s in range(states):
            push(h, H_A, kind)
            push(h, H_A, _byte(accepting, s))
            push(h, H_A, word(h, H_BTOP) // 3)
            byte = 0
            while byte < 256:
                target = _int(table, 256 * s + byte)
                first = byte
                byte += 1
                while byte < 256 and _int(table, 256 * s + byte) == target:
                    byte += 1
                if target >= 0:
                    push(h, H_B, first)
                    push(h, H_B, byte - 1)
                    push(h, H_B, base + target)
        base += states
    return RETRY if lacks_room(h) else base
