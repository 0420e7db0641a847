"""Rows of bits and UTF-8 a byte at a time, against Python's own."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
from numba import njit

from structgen.core.kernels import bits, utf8

compiled: Any = njit


@compiled
def change(row: int, width: int, i: int, wanted: bool) -> None:
    if wanted:
        bits.set_bit(row, width, i)
    else:
        bits.clear_bit(row, width, i)


@compiled
def expected_after(expected: int, byte: int) -> int:
    return utf8.next_expected(expected, byte)


def test_bits() -> None:
    rng = random.Random(3)
    row = np.zeros(5, np.int32)
    members: set[int] = set()
    for _ in range(400):
        i = rng.randrange(160)
        wanted = rng.random() < 0.5
        change(row.ctypes.data, 5, i, wanted)
        (members.add if wanted else members.discard)(i)
        assert np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist() == sorted(members)


def judge(data: bytes) -> bool | None:
    """Whether bytes are whole characters; None: they begin some, and may be gone on with."""
    try:
        data.decode()
        return True
    except UnicodeDecodeError as error:
        return None if error.reason == "unexpected end of data" and error.end == len(data) else False


def test_utf8() -> None:
    edges = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF]
    edges += [0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]
    for n in (1, 2, 3):
        for data in itertools.product(edges, repeat=n):
            expected = 0
            for byte in data:
                expected = expected_after(expected, byte)
            found = False if expected < 0 else None if expected else True
            assert found == judge(bytes(data)), bytes(data)
    for lead in range(0xC2, 0xF5):  # how many are to come, and where the next one lies
        expected = expected_after(0, lead)
        assert expected & 255 == (1 if lead < 0xE0 else 2 if lead < 0xF0 else 3)
        rest = bytes([0x80] * ((expected & 255) - 1))
        fits = [byte for byte in range(256) if judge(bytes([lead, byte]) + rest)]
        assert [(expected >> 8) & 255, expected >> 16] == [min(fits), max(fits)]
