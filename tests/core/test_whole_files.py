"""Files are written whole or not at all, and stay what they were: a link, permissions."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from structgen.core.whole_files import replacing


def test_what_is_there_stays_until_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"new, and longer")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new, and longer" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_what_fails_leaves_nothing(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"old")
    for place in (path, tmp_path / "other.bin"):
        with pytest.raises(type(error)), replacing(place) as file:
            file.write(b"half")
            raise error
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


def test_permissions_and_links_stay(tmp_path: Path) -> None:
    path, link, new = tmp_path / "x.bin", tmp_path / "link", tmp_path / "new.bin"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    before = os.umask(0o022)
    try:
        for place in (link, new):
            with replacing(place) as file:
                file.write(b"new")
    finally:
        os.umask(before)
    assert link.is_symlink() and path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640 and stat.S_IMODE(new.stat().st_mode) == 0o644


def test_a_pipe_is_written_to(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with replacing(pipe) as file:
        file.write(b"text")
    assert os.read(reader, 9) == b"text" and stat.S_ISFIFO(pipe.stat().st_mode)
    os.close(reader)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "no" / "x"):
        pass
