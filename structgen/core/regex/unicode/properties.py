"""Unicode character properties from the shipped table ``tables.npz``, read when first needed.

The table is written by ``generate.py`` beside this file and pins the Unicode version.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib.resources import as_file, files

import numpy as np
import numpy.typing as npt

from structgen.core.regex.charset import CharSet, normalise


@cache
def _tables() -> tuple[dict[str, int], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64], str]:
    with as_file(files(__package__).joinpath("tables.npz")) as path, np.load(path) as data:
        index = dict(zip(data["names"].tolist(), data["set_of_name"].tolist(), strict=True))
        return index, data["first"], np.cumsum(data["steps"]), np.cumsum(data["orbits"]), str(data["version"])


def unicode_version() -> str:
    """The Unicode version of the tables."""
    return _tables()[4]


def property_names() -> tuple[str, ...]:
    """All that `property_set` knows, each as ``kind/value``."""
    return tuple(_tables()[0])


@lru_cache(maxsize=512)
def property_set(kind: str, value: str) -> CharSet | None:
    """The characters with a property, None if there is none of that exact name.

    ``kind`` is ``gc`` (General_Category), ``sc`` (Script), ``scx`` (Script_Extensions) or ``binary``.
    """
    index, first, bounds, _, _ = _tables()
    number = index.get(f"{kind}/{value}")
    if number is None:
        return None
    # Every set is stored from its own zero: bounds are (low, past) pairs.
    ends = bounds[first[number] : first[number + 1]] - (bounds[first[number] - 1] if first[number] else 0)
    return normalise((low, past - 1) for low, past in ends.reshape(-1, 2).tolist())


@cache
def case_orbits() -> tuple[tuple[int, ...], ...]:
    """The groups of two or more characters with equal simple case folding."""
    numbers = _tables()[3].tolist()
    orbits: list[tuple[int, ...]] = []
    index = 0
    while index < len(numbers):
        orbits.append(tuple(numbers[index + 1 : index + 1 + numbers[index]]))
        index += 1 + numbers[index]
    return tuple(orbits)
