"""The file that a batch is written to: lines of JSON, only ever appended, so that a run can be taken up again."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from structgen.errors import InputFileError
from structgen.generation.batch_files.lines import MAX_LINE, LineId

BEGINNING = re.compile(rb'\s*\{\s*"(?:id|key|value|text|error|finish_reason|tokens)"\s*:')
"""How the lines of a batch begin, those that went through a tool that writes JSON its own way included."""
FIRST_BYTES = 64


class OutputFile:
    """Rows that were written, and those to come. One process writes to it at a time.

    A last line that is not whole, as a killed run leaves it, is dropped if it is the beginning of a line of this batch.
    Nothing else is ever cut: where the file holds anything else, it is refused and stays as it is. Each line that is
    added is flushed.

    Args:
        path: the file; made if there is none.
        heads: how the lines of the batch's rows begin (see ``BatchJob.head``); asked for where a line is not whole.

    Attributes:
        written: what was there: from each row's id to its key (see ``BatchJob.key``).
        failed: how many of these have an error.

    Raises:
        InputFileError: the file is no output of this batch (line named), cannot be written, is no regular file, or
            another run writes to it.
    """

    def __init__(self, path: Path, heads: Iterable[str] = ()) -> None:
        self.written: dict[LineId, str] = {}
        self.failed = 0
        self._path = path
        self._file = _opened(path)
        try:
            _lock(self._file, path)
            self._take_up(heads)
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

    def _take_up(self, heads: Iterable[str]) -> None:
        """Read what is there; the file is then positioned after the last whole line."""
        number, whole = 1, 0
        self._file.seek(0)
        while line := self._file.readline(FIRST_BYTES):
            if not line.endswith(b"\n") and len(line) == FIRST_BYTES:
                if not BEGINNING.match(line):  # told before more of it is read
                    raise self._foreign(number, line)
                line += self._file.readline(MAX_LINE)
            if not line.endswith(b"\n"):
                break
            self._take(number, line)
            number, whole = number + 1, whole + len(line)
        if line:
            if self._file.read(1) or not _begins_any(line, heads):
                raise self._foreign(number, line)
            self._file.truncate(whole)
        self._file.seek(0, os.SEEK_END)

    def _take(self, number: int, line: bytes) -> None:
        """Note the row that a whole line is."""
        try:
            record: Any = json.loads(line)
            id, key = record["id"], record["key"]
            if not isinstance(id, (str, int)) or id in self.written:
                raise ValueError("no id of its own")
        except (ValueError, KeyError, TypeError, RecursionError):
            raise self._foreign(number, line) from None
        self.written[id] = key
        self.failed += "error" in record

    def _foreign(self, number: int, line: bytes) -> InputFileError:
        return InputFileError(
            f"{self._path}, line {number} was not written by a batch of these prompts: {line[:60]!r}. It was left as "
            "it is; name another file with -o, or remove this one.",
            line=number,
            text=line[:MAX_SHOWN].decode(errors="replace"),
        )


MAX_SHOWN = 1 << 16
"""Bytes of a foreign line that its error carries."""


def encoded(line: str) -> bytes:
    """The bytes of a line of JSON. Halves of surrogate pairs become escapes, which JSON has for them."""
    return f"{line}\n".encode("utf-8", "backslashreplace")


def _begins_any(line: bytes, heads: Iterable[str]) -> bool:
    """Whether a line that is not whole is the beginning of one with one of these heads."""
    return any(line.startswith(head[: len(line)]) for head in (encoded(head)[:-1] for head in heads))


def _opened(path: Path) -> BinaryIO:
    """The file, to be read and appended to."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # opening a device may do something
            raise InputFileError(_irregular(path))
        file: BinaryIO = path.open("a+b")
    except OSError as error:
        raise InputFileError(f"Cannot write {path}: {error.strerror or error}") from error
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise InputFileError(_irregular(path))
    return file


def _irregular(path: Path) -> str:
    return f"Cannot write {path}: it is no regular file. Name one, or leave out -o for standard output."


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
