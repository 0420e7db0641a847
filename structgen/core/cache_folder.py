"""The cache folder: where it is, and whether what lies there may be read.

Arrays and object code are kept between processes in one folder. Whoever can write there can have any program of this
user run, so it is read only if nobody else can: each folder and file from the cache folder down belongs to this user
or to root, and neither its group nor others may write to it. Where a system does not tell (Windows), the folder of the
user is as safe as the system makes it.
"""

from __future__ import annotations

import os
import stat
import warnings
from functools import cache
from pathlib import Path

VARIABLE = "STRUCTGEN_CACHE_DIR"
_MODE = 0o755  # for others to read, as in an image that root has prepared; whatever the umask allows


def cache_folder() -> Path:
    """The folder that all caches of structgen live under; it may not exist yet."""
    override = os.environ.get(VARIABLE)
    if override:
        return Path(override)
    import platformdirs

    return Path(platformdirs.user_cache_dir("structgen"))


def make_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, so that only this user can write to them.

    Raises:
        OSError: it cannot be made.
    """
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(_MODE, exist_ok=True)


def is_own(path: Path, root: Path) -> bool:
    """Whether nobody else can have written ``path``, a file or folder below (or at) ``root``. What does not exist
    nobody has written. A folder that others can write to is reported once, in a warning."""
    if not hasattr(os, "geteuid"):
        return True
    for ancestor in (path, *path.parents):
        try:
            reason = _reason(ancestor.stat())
        except OSError:  # not there
            reason = ""
        if reason:
            _warn(root, ancestor, reason)
            return False
        if ancestor == root:
            break
    return True


def _reason(status: os.stat_result) -> str:
    """Why others may have written what is there; "": they cannot."""
    if status.st_uid not in (os.geteuid(), 0):
        return f"it belongs to the user {status.st_uid}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others can write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return ""


@cache
def _warn(root: Path, unsafe: Path, reason: str) -> None:
    warnings.warn(
        f"structgen keeps nothing in {root} and reads nothing there, as {unsafe} is not this user's alone: {reason}. "
        f"Remove it, or set {VARIABLE} to a folder that only this user can write to.",
        RuntimeWarning,
        stacklevel=3,
    )
