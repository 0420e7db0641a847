"""The cache folder: arrays that are expensive to make, named by the content hash of what they are made from.

The folder is ``platformdirs.user_cache_dir("structgen")`` unless the environment variable ``STRUCTGEN_CACHE_DIR`` names
another. It may be removed at any time. A cache never fails: a file that is missing, damaged or of another format is a
miss, and in a folder that cannot be written, or that others can write to (`core.cache_folder`), nothing is kept
and nothing is read. Each file holds a checksum of its name and content, so that what is read is what was written under
this name: kernels walk these arrays without looking, and a wrong one would be a wrong mask. Files appear whole or not
at all (temporary file, then rename), so processes may share the folder without locks; when two write one key, either
file serves.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from structgen.core.cache_folder import cache_folder, is_own, make_folder

# Part of every path: raise it when the meaning of any stored array changes; old files are then never looked at.
FORMAT = 2
_SEAL = 32
"""Bytes of the checksum after a file. (Readers of zip files do not look there.)"""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")


def load(kind: str, key: str) -> dict[str, NDArray[Any]] | None:
    """The arrays saved under ``kind`` and ``key``, or None if there are none or they are not what was saved.

    The caller checks dtypes and shapes. Raises ValueError if a name is not letters, digits, ``_``, ``.`` and ``-``.
    """
    path = _path(kind, key)
    if not is_own(path, cache_folder()):
        return None
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}  # which checks the CRC of what is read
            file.seek(-_SEAL, os.SEEK_END)
            return arrays if file.read() == _seal(kind, key, stored.zip, arrays) else None
    except Exception:  # numpy and zipfile raise errors of all kinds for what is damaged; objects are a ValueError
        return None


def _seal(kind: str, key: str, members: zipfile.ZipFile, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """The checksum of a file: its name, and of each array its name, type, shape and CRC. So it costs next to nothing,
    and all bytes of all arrays are those that were written. It is for damage and for what came here by mistake; no
    checksum could keep out those who may write here."""
    said = [(name, a.dtype.str, a.shape, members.getinfo(f"{name}.npy").CRC) for name, a in sorted(arrays.items())]
    return hashlib.blake2b(repr((kind, key, said)).encode(), digest_size=_SEAL).digest()


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
        make_folder(path.parent)
        if not is_own(path.parent, cache_folder()):
            return False
        content = io.BytesIO()
        np.savez(content, **cast("dict[str, Any]", arrays))
        with zipfile.ZipFile(content) as members:
            seal = _seal(kind, key, members, arrays)
        handle, temporary = tempfile.mkstemp(prefix=f".{key[:32]}-", suffix=".tmp", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content.getvalue() + seal)
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
