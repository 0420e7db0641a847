"""The random numbers of draws: a function of the row's seed and its place in the output, on every device alike.

So a row's tokens do not depend on the rows beside it, nor on how many tokens one forward gave.
"""

from __future__ import annotations

import secrets

import numpy as np
import numpy.typing as npt

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_GOLDEN, _FIRST, _SECOND = map(np.uint64, (GOLDEN, FIRST, SECOND))
_ONE, _ELEVEN, _TWENTY_SEVEN, _THIRTY, _THIRTY_ONE = map(np.uint64, (1, 11, 27, 30, 31))
_ALL = (1 << 64) - 1
_TO_UNIT = 2.0**-53


def seed_or_entropy(seed: int | None) -> int:
    """A seed below 2**64: one that is longer is folded, none is drawn from the system's entropy."""
    if seed is None:
        return secrets.randbits(64)
    while seed >> 64:
        seed = (seed & _ALL) ^ (seed >> 64) * GOLDEN
    return seed


def uniforms(seeds: npt.ArrayLike, positions: npt.ArrayLike, attempt: int = 0) -> npt.NDArray[np.float64]:
    """Floats in [0, 1), float64 [R]: number ``position`` of the generator SplitMix64 (Steele, Lea, Flood 2014) that
    starts where mixing ``seed`` and ``attempt`` leads.

    Args:
        seeds: uint64 [R].
        positions: int64 [R], tokens of the output before the one that is drawn.
        attempt: how many draws for the same position were turned down.
    """
    turned = np.uint64(attempt * SECOND & _ALL)  # sums and products of arrays wrap without a word
    start = _mixed(np.asarray(seeds, np.uint64) + turned)
    state = start + (np.asarray(positions, np.int64).astype(np.uint64) + _ONE) * _GOLDEN
    return np.asarray((_mixed(state) >> _ELEVEN) * _TO_UNIT)


def uniform(seed: int, position: int, attempt: int = 0) -> float:
    """One of ``uniforms``, in a tenth of the time. ``seed`` is below 2**64."""
    start = _mixed_int(seed + attempt * SECOND & _ALL)
    return (_mixed_int(start + (position + 1) * GOLDEN & _ALL) >> 11) * _TO_UNIT


def generator(seed: int, position: int) -> np.random.Generator:
    """A generator for a position that needs more than one number (rules that verify random drafts). 20 µs."""
    return np.random.Generator(np.random.Philox(key=seed, counter=position))


def _mixed(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    state = (state ^ (state >> _THIRTY)) * _FIRST
    state = (state ^ (state >> _TWENTY_SEVEN)) * _SECOND
    return np.asarray(state ^ (state >> _THIRTY_ONE))


def _mixed_int(state: int) -> int:
    state = (state ^ state >> 30) * FIRST & _ALL
    state = (state ^ state >> 27) * SECOND & _ALL
    return state ^ state >> 31
