"""The file that a batch is written to: lines of JSON, only ever appended, so that a run can be taken up again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from structgen.batch_files.rows import RowId
from structgen.errors import InputFileError


class OutputFile:
    """Rows that were written, and those to come. One process writes to it at a time.

    A last line that is not whole, as a killed run leaves it, is dropped. Each line that is added is flushed.

    Attributes:
        written: what was there: from each row's id to its key (see ``BatchJob.key``).
        failed: how many of these have an error.

    Raises:
        InputFileError: the file is no output of a batch (line named), cannot be written, or another run writes to it.
    """

    def __init__(self, path: Path) -> None:
        self.written: dict[RowId, str] = {}
        self.failed = 0
        self._path = path
        try:
            self._file: BinaryIO = path.open("a+b")
        except OSError as error:
            raise InputFileError(f"Cannot write {path}: {error.strerror or error}") from error
        try:
            _lock(self._file, path)
            self._take_up()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> OutputFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, line: str) -> None:
        """Append a line, given without its end."""
        self._file.write(encoded(line))
        self._file.flush()

    def _take_up(self) -> None:
        """Read what is there; the file is then positioned behind the last whole line."""
        whole = 0
        self._file.seek(0)
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            try:
                record: Any = json.loads(line)
                id, key = record["id"], record["key"]
                if not isinstance(id, (str, int)) or id in self.written:
                    raise ValueError("no id of its own")
            except (ValueError, KeyError, TypeError, RecursionError):
                raise InputFileError(
                    f"{self._path}, line {number} was not written by a batch: {line[:60]!r}; "
                    "name another file with -o, or remove this one.",
                    line=number,
                    text=line.decode(errors="replace"),
                ) from None
            self.written[id] = key
            self.failed += "error" in record
        self._file.truncate(whole)
        self._file.seek(0, os.SEEK_END)


def encoded(line: str) -> bytes:
    """The bytes of a line of JSON. Halves of surrogate pairs become escapes, which JSON has for them."""
    return f"{line}\n".encode("utf-8", "backslashreplace")


def _lock(file: BinaryIO, path: Path) -> None:
    """Keep others out, until the file is closed or the process is gone; where the platform has such locks."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InputFileError(f"Another run is writing to {path}.") from None
