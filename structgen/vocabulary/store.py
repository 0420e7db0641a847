"""The cache folder: arrays that are expensive to make, named by the content hash of what they are made from.

The folder is ``platformdirs.user_cache_dir("structgen")`` unless the environment variable ``STRUCTGEN_CACHE_DIR``
names another. It may be removed at any time. A cache never fails: a file that is missing, damaged or of another format
is a miss, and in a folder that cannot be written nothing is kept. Files appear whole or not at all (temporary file,
then rename), so processes may share the folder without locks; when two write one key, either file serves.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

# Part of every path: raise it when the meaning of any stored array changes; old files are then never looked at.
FORMAT = 1
# The array that lists the others: members are checksummed, but the directory of a zip file is not.
_NAMES = "__names__"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


def cache_folder() -> Path:
    """The folder that all caches of structgen live under; it may not exist yet."""
    override = os.environ.get("STRUCTGEN_CACHE_DIR")
    if override:
        return Path(override)
    import platformdirs

    return Path(platformdirs.user_cache_dir("structgen"))


def load(kind: str, key: str) -> dict[str, NDArray[Any]] | None:
    """The arrays saved under ``kind`` and ``key``, or None if there are none or they cannot be read whole.

    The caller checks dtypes and shapes. Raises ValueError if a name is not letters, digits, ``_``, ``.`` and ``-``.
    """
    path = _path(kind, key)
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored[_NAMES].tolist()}  # reading checks the CRC of each member
    except (OSError, EOFError, KeyError, ValueError, SyntaxError, zipfile.BadZipFile, NotImplementedError):
        return None  # ValueError: a damaged array header, or an array of pickled objects


def save(kind: str, key: str, arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Keep ``arrays`` under ``kind`` and ``key``, replacing what was there; False if the folder cannot be written.

    Raises ValueError for an illegal name, or for an array of Python objects.
    """
    path = _path(kind, key)
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise ValueError(f"array {name!r} holds Python objects (dtype {array.dtype}); only plain data is stored")
    temporary: str | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{key[:32]}-", suffix=".tmp", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **cast("dict[str, Any]", {**arrays, _NAMES: np.array(list(arrays), dtype=np.str_)}))
        os.replace(temporary, path)
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        return False
    return True


def trim(kind: str, most: int) -> None:
    """Remove the oldest entries of a kind beyond ``most``."""
    folder = cache_folder() / f"v{FORMAT}" / kind
    with contextlib.suppress(OSError):
        files = [(entry.stat().st_mtime_ns, entry.path) for entry in os.scandir(folder) if entry.name.endswith(".npz")]
        for _, path in sorted(files)[: max(0, len(files) - most)]:
            os.unlink(path)


def _path(kind: str, key: str) -> Path:
    for name in (kind, key):
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} cannot name a cache entry: expected letters, digits, '_', '.' and '-'")
    return cache_folder() / f"v{FORMAT}" / kind / f"{key}.npz"
