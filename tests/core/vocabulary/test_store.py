"""The cache folder: what was saved comes back whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from structgen.core.cache_folder import cache_folder as cache_folder_of_user
from structgen.core.vocabulary import store

ARRAYS: dict[str, NDArray[Any]] = {
    "a": np.arange(5, dtype=np.int32),
    "b": np.array([[1, 2], [3, 4]], dtype=np.uint8),
    "none": np.empty(0),
}


def same(found: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]]) -> bool:
    return found.keys() == expected.keys() and all(
        found[name].dtype == array.dtype and np.array_equal(found[name], array) for name, array in expected.items()
    )


def only_file(folder: Path) -> Path:
    (path,) = (p for p in folder.rglob("*") if p.is_file())
    return path


def test_what_was_saved_is_loaded(cache_folder: Path) -> None:
    assert store.load("kind", "key") is None
    assert store.save("kind", "key", ARRAYS)
    found = store.load("kind", "key")
    assert found is not None and same(found, ARRAYS)
    assert store.load("kind", "other") is None and store.load("other", "key") is None
    assert only_file(cache_folder).suffix == ".npz"  # and no temporary file is left


def test_a_later_save_replaces(cache_folder: Path) -> None:
    store.save("kind", "key", ARRAYS)
    store.save("kind", "key", {"c": np.ones(3)})
    found = store.load("kind", "key")
    assert found is not None and same(found, {"c": np.ones(3)})


@pytest.mark.full
def test_a_damaged_file_is_a_miss_or_still_right(cache_folder: Path) -> None:
    store.save("kind", "key", ARRAYS)
    path = only_file(cache_folder)
    whole = path.read_bytes()
    damaged = [whole[:n] for n in range(0, len(whole), 7)]
    damaged += [whole[:i] + bytes([whole[i] ^ 0x55]) + whole[i + 1 :] for i in range(len(whole))]
    for content in damaged:
        path.write_bytes(content)
        found = store.load("kind", "key")
        assert found is None or same(found, ARRAYS)  # some bytes of a zip file, such as times, say nothing
    path.write_bytes(whole)
    found = store.load("kind", "key")
    assert found is not None and same(found, ARRAYS)


def test_a_file_is_read_under_its_own_name_only(cache_folder: Path) -> None:
    """As a copy of another would be well formed, and wrong."""
    store.save("kind", "key", ARRAYS)
    whole = only_file(cache_folder).read_bytes()
    for kind, key in (("kind", "other"), ("other", "key")):
        store.save(kind, key, {"a": np.zeros(1)})
        (path,) = (p for p in cache_folder.rglob(f"{key}.npz") if p.parent.name == kind)
        path.write_bytes(whole)
        assert store.load(kind, key) is None


def test_well_formed_arrays_that_were_not_saved_here_are_a_miss(cache_folder: Path) -> None:
    store.save("kind", "key", ARRAYS)
    np.savez(only_file(cache_folder), **ARRAYS)  # type: ignore[arg-type]
    assert store.load("kind", "key") is None


@pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX's here")
@pytest.mark.parametrize("mode", [0o777, 0o775, 0o757, 0o722, 0o1777])
@pytest.mark.parametrize("place", ["", "v{}", "v{}/kind", "v{}/kind/key.npz"])
def test_a_folder_that_others_can_write_is_not_read(cache_folder: Path, place: str, mode: int) -> None:
    store.save("kind", "key", ARRAYS)
    path = cache_folder / place.format(store.FORMAT)
    before = path.stat().st_mode
    path.chmod(mode)
    with pytest.warns(RuntimeWarning, match="not this user's alone: others can write to it") as told:
        assert store.load("kind", "key") is None
        assert store.load("kind", "key") is None
    assert len(told) == 1 and "\n" not in str(told[0].message) and "STRUCTGEN_CACHE_DIR" in str(told[0].message)
    if not place.endswith("npz"):
        assert not store.save("kind", "other", ARRAYS)
    path.chmod(before)
    assert store.load("kind", "key") is not None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("place", ["", "v{}", "v{}/kind", "v{}/kind/key.npz"])
def test_a_folder_of_somebody_else_is_not_read(cache_folder: Path, place: str) -> None:
    store.save("kind", "key", ARRAYS)
    os.chown(cache_folder / place.format(store.FORMAT), 12345, -1)
    with pytest.warns(RuntimeWarning, match="belongs to the user 12345"):
        assert store.load("kind", "key") is None


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's here")
def test_folders_are_made_so_that_nobody_else_can_write(cache_folder: Path) -> None:
    before = os.umask(0)
    try:
        assert store.save("kind", "key", ARRAYS)
    finally:
        os.umask(before)
    assert store.load("kind", "key") is not None
    assert all(not path.stat().st_mode & 0o022 for path in [cache_folder, *cache_folder.rglob("*")])


def test_pickled_objects_are_neither_stored_nor_loaded(cache_folder: Path) -> None:
    objects = np.array([{}], dtype=object)
    with pytest.raises(ValueError, match="holds Python objects"):
        store.save("kind", "key", {"a": objects})
    store.save("kind", "key", ARRAYS)
    np.savez(only_file(cache_folder), a=objects)
    assert store.load("kind", "key") is None


def test_a_folder_that_cannot_be_written_means_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path / "file"))
    assert not store.save("kind", "key", ARRAYS)
    assert store.load("kind", "key") is None


def test_a_write_that_fails_leaves_nothing(cache_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez", full)
    assert not store.save("kind", "key", ARRAYS)
    assert not [path for path in cache_folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a\\b", "x" * 200])
def test_names_that_leave_the_folder_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a cache entry"):
        store.load(name, "key")
    with pytest.raises(ValueError, match="cannot name a cache entry"):
        store.save("kind", name, ARRAYS)


def test_the_default_folder_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STRUCTGEN_CACHE_DIR")
    assert cache_folder_of_user().name == "structgen"


WRITER = """
import sys
import numpy as np
from structgen.core.cache_folder import cache_folder as cache_folder_of_user
from structgen.core.vocabulary import store
for i in range(150):
    assert store.save("kind", "key", {"a": np.full(20_000, int(sys.argv[1]) + 2 * i, dtype=np.int32)})
"""


def test_processes_that_write_one_key_never_show_half_a_file(cache_folder: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(i)]) for i in range(2)]
    seen: set[int] = set()
    while any(writer.poll() is None for writer in writers):
        found = store.load("kind", "key")
        if found is None:
            assert not seen
        else:
            assert len(found["a"]) == 20_000 and len(set(found["a"].tolist())) == 1
            seen.add(int(found["a"][0]))
    assert all(writer.returncode == 0 for writer in writers)
    assert len(seen) > 1
    only_file(cache_folder)
