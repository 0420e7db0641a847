"""Files that are written whole or not at all: who reads one, or is cut off writing it, never meets half a file."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, beside ``path``; it takes its place when all is written, and is gone when something fails.

    A link stays: what it leads to is replaced. What is there keeps its permissions; a new file has the usual ones. What
    is no regular file (a pipe, a device) cannot be replaced and is written to.

    Raises:
        OSError: the folder is not there, or cannot be written to.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    handle, name = tempfile.mkstemp(prefix=f".{target.name[:32]}-", suffix=".tmp", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        os.chmod(name, _mode(target))
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced, or those of a new file: mkstemp's are for its owner alone."""
    with contextlib.suppress(OSError):
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
