"""Rows of automata for the pool against plain Python, which walks every character."""

from __future__ import annotations

import unicodedata

import numpy as np
import numpy.typing as npt
import pytest

from structgen.core.kernels.tokens import calls as c
from structgen.core.regex.pattern import pattern_dfa
from tests.many import nightly

Int32 = npt.NDArray[np.int32]
SPACES = [p for p in range(0x80, 0x110000) if unicodedata.category(chr(p)) in ("Zs", "Zl", "Zp")] + [0xFEFF]


def sequences(spaces: bool) -> list[Int32]:
    """The UTF-8 of the scalar values beyond ASCII, white space or not, by length: int32[bytes, characters]."""
    found = []
    for first, last in ((0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x10FFFF)):
        points = np.arange(first, last + 1)
        points = points[((points < 0xD800) | (points > 0xDFFF)) & (np.isin(points, SPACES) == spaces)]
        text = "".join(map(chr, points.tolist())).encode()
        if text:
            length = 2 if last < 0x800 else 3 if last < 0x10000 else 4
            found.append(np.frombuffer(text, np.uint8).reshape(-1, length).T.astype(np.int32))
    return found


SEQUENCES = [sequences(False), sequences(True)]


def wide(table: Int32, state: int, spaces: int) -> int:
    """Where every character beyond ASCII leads from a state, that is no white space or that is."""
    dead = len(table)
    total = np.vstack([np.where(table < 0, dead, table), np.full((1, 256), dead)])
    reached: set[int] = set()
    for columns in SEQUENCES[spaces]:
        places = np.full(columns.shape[1], state)
        for column in columns:
            places = total[places, column]
        reached |= set(places.tolist())
    live = reached - {dead}
    if len(live) != 1:
        return c.APART if live else c.NOWHERE
    return live.pop() if len(reached) == 1 else c.SOME - live.pop()


def loops(table: Int32, state: int) -> int:
    """Kinds all of whose characters lead from ``state`` back to it."""
    groups: dict[int, list[int]] = {}
    for byte in range(0x80):
        groups.setdefault(c.kind_of(byte), []).append(byte)
    del groups[c.NEVER]
    bits = sum(1 << kind for kind, group in groups.items() if all(table[state, byte] == state for byte in group))
    return bits | sum(1 << c.NON_ASCII + spaces for spaces in range(2) if wide(table, state, spaces) == state)


def tables() -> list[Int32]:
    patterns = [
        "", "^[a-z0-9_]*$", "^[^/]+$", "^[^é]*$", "^[^😀]*$", "^[\\u0800-\\u{10FFFF}]*$", "^a{3}", "^\\S+$", "^\\s*$",
        ".", "^.*$", "^[^\\u2009]*$",
        "^(?:\\S+\\s+){0,3}\\S+$", "^[\\u00a1-\\uffff]+$", "push", "^[\\u00c0-\\u00ff]{2}",
    ]  # fmt: skip
    found = [pattern_dfa(pattern).transitions for pattern in patterns]
    random = np.random.default_rng(0)
    found += [random.integers(-1, 4, (4, 256), dtype=np.int32) for _ in range(4)]
    every = np.zeros((1, 256), np.int32)  # not UTF-8: each byte leads back
    return [*found, every]


@pytest.mark.first_case
@pytest.mark.parametrize(
    "table",
    [pytest.param(table, marks=nightly if len(table) > 100 else ()) for table in tables()],
    ids=lambda table: f"{len(table)} states",
)
def test_add_rows(table: Int32) -> None:
    count, base = len(table), 3
    pool, flags, looping, wides = (
        np.zeros(size, np.int32) for size in (256 * (base + count), base + count, base + count, 2 * (base + count))
    )
    flags[base] = 1
    c.add_rows(np.ascontiguousarray(table), base, pool, flags, looping, wides)
    rows = pool.reshape(-1, 256)
    assert (rows[base:] == np.where(table < 0, -1, table + base)).all() and not rows[:base].any()
    inside = (table[:, 0x80:0xC0] >= 0).any(axis=1)
    assert ((flags[base:] & c.PARTIAL_FLAG != 0) == inside).all() and flags[base] & 1
    assert looping[base:].tolist() == [loops(table, state) for state in range(count)]
    ends = [wide(table, state, spaces) for state in range(count) for spaces in range(2)]
    moved = [end + base if end >= 0 else end - base if end <= c.SOME else end for end in ends]
    assert wides[2 * base :].tolist() == moved
