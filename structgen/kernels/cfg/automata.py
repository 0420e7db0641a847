"""Automata of terminals, as positions and edges."""

from structgen.kernels.cfg.buffers import push
from structgen.kernels.cfg.kinds import kind_of
from structgen.kernels.cfg.layout import *
from structgen.kernels.cfg.tables import edge_at, edges_from, known_stays, set_known_stays
from structgen.kernels.interning import lacks_room, word
from structgen.kernels.jit import internal
from structgen.kernels.memory import element_reader
from structgen.kernels.memory import word as word_at
from structgen.kernels.utf8 import count, highest, lowest, next_expected

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
    known = known_stays(h, p)
    if known != 0:
        return known
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
