"""Records as JSON lines: one a schema and engine, appended as they come, so that a run goes on where it stopped.

The first line of each run says how it was made: ``{"run": {...}, "versions": {...}, "machine": "..."}``.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self, TextIO


class RecordFile:
    """A file of records that an interrupted run left, or a new one; use it as a context manager to append.

    Args:
        path: the file; made with its folder when the first line is written.
        run: what must agree between two runs for their records to stand in one file.

    Attributes:
        records: those of earlier runs. A last line that an interruption cut short is dropped from the file; nothing
            is cut from a file that does not begin as a run of this kind.
        versions: of the engines, as the earlier runs noted them.

    Raises:
        ValueError: the file holds a run of another kind, or is no file of records.
    """

    def __init__(self, path: Path, run: Mapping[str, Any]) -> None:
        self.path, self.records = path, []
        self.versions: dict[str, str] = {}
        self._run = json.loads(json.dumps(run))
        self._file: TextIO | None = None
        self._lock = threading.Lock()
        if path.is_file():
            self._read()
        elif path.exists() and path != Path(os.devnull):
            raise ValueError(f"{path} is no regular file; choose another --out")

    records: list[dict[str, Any]]

    def _read(self) -> None:
        head = json.dumps({"run": self._run}, ensure_ascii=False, separators=(",", ":")).encode()[:-1]
        with self.path.open("rb") as file:
            begun = file.read(len(head))
            if not (begun == head or (head.startswith(begun) and b"\n" not in begun) or begun.startswith(b'{"run":')):
                raise ValueError(f"{self.path}:1 is no record of a run: {begun[:60]!r}; choose another --out")
            lines = (begun + file.read()).split(b"\n")
        for number, line in enumerate(lines[:-1], 1):
            self._take(number, line)
        tail = lines[-1]
        if tail and not (tail.startswith(b"{") if lines[:-1] else head.startswith(tail) or tail.startswith(head)):
            raise ValueError(f"{self.path}:{len(lines)} is no record: {tail[:60]!r}; choose another --out")
        if tail:
            os.truncate(self.path, self.path.stat().st_size - len(tail))

    def _take(self, number: int, line: bytes) -> None:
        """Note what a whole line says."""
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{self.path}:{number} is no record: {error}; choose another --out") from error
        if not isinstance(entry, dict):
            raise ValueError(f"{self.path}:{number} is no record: {line[:60]!r}; choose another --out")
        if "run" not in entry:
            self.records.append(entry)
        elif entry["run"] != self._run:
            raise ValueError(f"{self.path} holds a run with {entry['run']}, not {self._run}: choose another --out")
        else:
            self.versions.update(entry.get("versions", {}))

    def __enter__(self) -> Self:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("a", encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def begin(self, versions: Mapping[str, str], machine: str) -> None:
        """Write the line that says how the records after it were made."""
        self.versions.update(versions)
        self._write({"run": self._run, "versions": dict(versions), "machine": machine})

    def append(self, *records: Mapping[str, Any]) -> None:
        """Write records; they are on disk when this returns. Safe from several threads."""
        for record in records:
            self._write(record)

    def _write(self, entry: Mapping[str, Any]) -> None:
        assert self._file is not None, "use RecordFile as a context manager"
        with self._lock:
            self._file.write(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n")
            self._file.flush()
