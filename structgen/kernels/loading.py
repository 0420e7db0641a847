"""Where a kernel comes from: an object in the package, one in the cache folder, one made now, or numba's JIT.

``kernel(name)`` tries them in this order. Making objects takes half a minute of processor time, once per
installation, which is said while it goes on. ``STRUCTGEN_JIT=1`` forces the JIT, which debuggers see into.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from structgen.kernels import objects
from structgen.kernels.objects import Kernel
from structgen.progress import Wait, waiting

BUILDER = objects.FOLDER / "build.py"
KEPT = 6  # folders of objects of other versions of the sources that stay in the cache


@cache
def kernel(name: str) -> Kernel:
    """The entry of a kernel (a name of `structgen.kernels.objects.ENTRIES`), ready to be called."""
    if not objects.is_on("STRUCTGEN_JIT") and (path := _object(name)) is not None:
        try:
            return objects.load_object(path)
        except (OSError, RuntimeError) as error:
            warnings.warn(f"{path} could not be loaded ({error}); using numba's JIT", RuntimeWarning, stacklevel=2)
    return importlib.import_module(objects.ENTRIES[name]).run  # type: ignore[no-any-return]


def _object(name: str) -> Path | None:
    target, checked = objects.host_target(), objects.is_checked()
    if target is None:
        return None
    names = [name]
    if name in objects.VECTORS:
        names = [*(objects.wider_name(name, width) for width in objects.widths()), name]
    shipped = (objects.shipped_object(each, target, checked) for each in names)
    if (path := next(filter(None, shipped), None)) is not None:
        return path
    if not objects.object_path(cache_folder(), name, target, checked).is_file():
        build()
    made = (objects.object_path(cache_folder(), each, target, checked) for each in names)
    return next((path for path in made if path.is_file()), None)


@cache
def cache_folder() -> Path:
    """Where objects made on this machine lie, by the hash of the sources; a temporary folder if none can be written.

    Below the folder of all caches (``STRUCTGEN_CACHE_DIR``), or where ``STRUCTGEN_KERNELS_DIR`` says.
    """
    import platformdirs

    caches = os.environ.get("STRUCTGEN_CACHE_DIR") or platformdirs.user_cache_dir("structgen")
    folder = Path(os.environ.get("STRUCTGEN_KERNELS_DIR") or Path(caches) / "kernels")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder / objects.sources_hash()[:16]
    except OSError:
        pass
    import atexit

    temporary = tempfile.mkdtemp(prefix="structgen-kernels-")
    atexit.register(shutil.rmtree, temporary, ignore_errors=True)
    return Path(temporary) / objects.sources_hash()[:16]


def build(names: Sequence[str] | None = None) -> bool:
    """Make the objects that the cache lacks, as many at once as there are processors. Whether all are there now.

    Other processes that need them wait for this one (where the platform has file locks).
    """
    folder, target, checked = cache_folder(), objects.host_target(), objects.is_checked()
    if target is None:
        return False
    with _locked(folder):
        missing = [
            name for name in names or objects.ENTRIES
            if not objects.object_path(folder, name, target, checked).is_file()
        ]  # fmt: skip
        if not missing:
            return True
        with waiting("compiling structgen's kernels, once per installation", len(missing), once=True) as wait:
            failed = _run_builders(missing, folder, wait)
        _forget_old(folder)
    if failed:
        warnings.warn(f"kernels could not be compiled ahead; using numba's JIT: {failed}", RuntimeWarning, stacklevel=2)
    return not failed


SECONDS = {"json": 15, "cfg": 8, "automata": 5, "lalr": 4, "checks": 3, "tokens": 2, "aligned": 1, "sampling": 2}
"""About what each kernel takes to compile, to share them out."""


def _shares(names: Sequence[str], workers: int) -> list[list[str]]:
    """The names shared out so that all are done at about the same time: the longest first, each to the least busy."""
    shares: list[list[str]] = [[] for _ in range(min(workers, len(names)))]
    for name in sorted(names, key=lambda name: SECONDS.get(name, 1), reverse=True):
        min(shares, key=lambda share: sum(SECONDS.get(one, 1) for one in share)).append(name)
    return shares


def _run_builders(names: Sequence[str], folder: Path, wait: Wait) -> str:
    """Run a builder on each processor; what the first that failed said, or nothing."""
    running = []
    for share in _shares(names, os.cpu_count() or 1):
        kernels = [argument for name in share for argument in ("--kernel", name)]
        command = [sys.executable, str(BUILDER), "--out", str(folder), *kernels]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        running.append((process, len(share)))
    failed = ""
    for process, count in running:
        _, said = process.communicate()
        wait.advance(count)
        if process.returncode:
            failed = failed or said.strip()[-500:] or f"exit status {process.returncode}"
    return failed


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # not on Windows: processes that start together each build, and the last one's files stay
        yield
        return
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _forget_old(folder: Path) -> None:
    others = sorted((path for path in folder.parent.iterdir() if path != folder), key=lambda path: path.stat().st_mtime)
    for old in others[: max(0, len(others) - KEPT)]:
        shutil.rmtree(old, ignore_errors=True)
