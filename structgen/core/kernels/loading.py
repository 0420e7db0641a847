"""Where a kernel comes from: a library in the package, an object in the cache folder, one made now, or numba's JIT.

``kernel(name)`` tries them in this order. A library needs nothing; all that comes behind it needs numba, and is the
only way to it. Making objects takes half a minute of processor time, once per installation, which is said while it
goes on. ``STRUCTGEN_JIT=1`` forces the JIT, which debuggers see into.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from structgen.core import cache_folder as caches
from structgen.core.kernels import functions, objects
from structgen.core.kernels.objects import Kernel
from structgen.errors import KernelError
from structgen.progress import Wait, waiting

BUILDER = objects.FOLDER / "build.py"
KEPT = 6  # folders of objects of other versions of the sources that stay in the cache


@cache
def kernel(name: str) -> Kernel:
    """The entry of a kernel (a name of `structgen.core.kernels.objects.ENTRIES`), ready to be called.

    Raises:
        KernelError: it is not compiled, and numba is not installed.
    """
    target = None if objects.is_on("STRUCTGEN_JIT") else objects.host_target()
    loaded = None if target is None else _shipped(name, target) or _made(name, target)
    return loaded or _translated(name, target)


def _shipped(name: str, target: str) -> Kernel | None:
    """From libraries of this package, if they were made from these sources."""
    if objects.is_checked():
        return None
    paths = {each: objects.shipped_library(each, target) for each in objects.variants(name, target)}
    if paths[name] is None:
        return None
    try:
        return _widest(name, {each: path for each, path in paths.items() if path}, functions.load_library)
    except (OSError, RuntimeError) as error:
        if not functions.has_compiler():
            raise KernelError(f"{paths[name]} could not be loaded ({error}); {_INSTALL}") from error
        return None  # an object is made, as if there were no library


def _made(name: str, target: str) -> Kernel | None:
    """From objects in the cache folder, which are made if they are not there, and made anew if they are damaged."""
    if not functions.has_compiler():
        return None
    said = ""
    for _ in range(2):
        paths = _cached(name, target)
        if not all(path.is_file() for path in paths.values()):
            build()
        if not paths[name].is_file():
            return None  # and `build` has said why
        try:
            return _widest(name, paths, functions.load_object)
        except (OSError, RuntimeError) as error:
            said = f"{paths[name]} could not be loaded ({error}); using numba's JIT"
            damaged = [path for path in paths.values() if not is_whole(path)]
            if not damaged:
                break
            for path in damaged:
                with contextlib.suppress(OSError):
                    path.unlink()
    warnings.warn(said, RuntimeWarning, stacklevel=4)
    return None


def _widest(name: str, paths: dict[str, Path], load: Callable[[Path], functions.Loaded]) -> Kernel:
    """The best of a kernel's variants that this processor runs; that for all of its platform tells which."""
    base = load(paths[name])
    wider = [path for each, path in paths.items() if each != name]
    return load(wider[-base.level]).run if 0 < base.level <= len(wider) else base.run


_INSTALL = "install what compiles it: pip install 'structgen-lm[jit]'"


def _translated(name: str, target: str | None) -> Kernel:
    """By numba's JIT. The one way to numba in this process."""
    if not functions.has_compiler():
        if objects.is_on("STRUCTGEN_JIT"):
            why = "STRUCTGEN_JIT=1 asks for numba's JIT"
        elif target is None:
            why = f"no wheel has kernels for this platform ({sys.platform}, {platform.machine()})"
        elif objects.is_checked():
            why = "wheels have no kernels that check their accesses (NUMBA_BOUNDSCHECK=1)"
        else:
            why = f"{objects.SHIPPED} has no library of these sources for {target}"
        raise KernelError(f"The kernel {name} is not compiled: {why}, and numba is not installed; {_INSTALL}")
    return importlib.import_module(objects.ENTRIES[name]).run  # type: ignore[no-any-return]


def is_whole(path: Path) -> bool:
    """Whether an object is as it was written."""
    try:
        return objects.unsealed(path.read_bytes()) is not None
    except OSError:
        return False


def _cached(name: str, target: str) -> dict[str, Path]:
    """Where the objects of a kernel lie in the cache folder."""
    folder, checked = cache_folder(), objects.is_checked()
    return {each: objects.object_path(folder, each, target, checked) for each in objects.variants(name, target)}


@cache
def cache_folder() -> Path:
    """Where objects made on this machine lie, by the hash of the sources; a temporary folder if none can be written, or
    if others can write there.

    Below the folder of all caches (``STRUCTGEN_CACHE_DIR``), or where ``STRUCTGEN_KERNELS_DIR`` says.
    """
    override = os.environ.get("STRUCTGEN_KERNELS_DIR")
    folder = Path(override) if override else caches.cache_folder() / "kernels"
    kernels = folder / objects.sources_hash()[:16]
    try:
        caches.make_folder(folder)
        root = folder if override else caches.cache_folder()
        objects_there = kernels.glob("*/*.o")
        if os.access(folder, os.W_OK) and all(caches.is_own(path, root) for path in (folder, kernels, *objects_there)):
            return kernels
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
    folder, target = cache_folder(), objects.host_target()
    if target is None:
        return False
    with _locked(folder):
        missing = [
            name for name in names or objects.ENTRIES
            if not all(path.is_file() for path in _cached(name, target).values())
        ]  # fmt: skip
        if not missing:
            return True
        caches.make_folder(_cached(missing[0], target)[missing[0]].parent)
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
    caches.make_folder(folder)
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
