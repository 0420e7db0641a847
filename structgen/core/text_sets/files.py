"""Files of arrays: a head that is checked, then the arrays as they are.

Files are read, not mapped: a process that reads pages of a mapped file which somebody has truncated is ended by the
system. What happens to a file that was opened does not matter.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from structgen.core.whole_files import replacing
from structgen.errors import ConstraintError

Array = npt.NDArray[Any]
Arrays = dict[str, Array]
MAGIC = b"structgen texts\n"
VERSION = 1
MAX_HEAD = 64 << 20
_ALIGNED = 64
_PREFIX = len(MAGIC) + 8 + 16


@dataclass(frozen=True)
class ArrayFile:
    """What a file holds.

    Attributes:
        kind: of what.
        digest: of the content, as its writer computed it.
        facts: what else the writer noted.
        arrays: by name.
    """

    kind: str
    digest: str
    facts: dict[str, Any]
    arrays: Arrays


def content_digest(kind: str, facts: Any, *arrays: Array) -> str:
    """Content hash, 32 hexadecimal digits."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps([kind, facts]).encode())
    for each in arrays:
        digest.update(f"{each.dtype.str} {each.size};".encode())
        digest.update(np.ascontiguousarray(each).view(np.uint8).data)
    return digest.hexdigest()


def write_arrays(path: str | os.PathLike[str], file: ArrayFile) -> None:
    """Write a file; the old one stays until the new one is whole, also for those who have it open.

    Raises:
        OSError: it cannot be written.
    """
    listed = [[name, each.dtype.str, each.size] for name, each in file.arrays.items()]
    head = json.dumps({"kind": file.kind, "digest": file.digest, "facts": file.facts, "arrays": listed}).encode()
    with replacing(path) as out:
        out.write(MAGIC + VERSION.to_bytes(4, "little") + len(head).to_bytes(4, "little"))
        out.write(hashlib.blake2b(head, digest_size=16).digest() + head)
        size = _PREFIX + len(head)
        for each in file.arrays.values():
            out.write(bytes(-size % _ALIGNED))
            data = np.ascontiguousarray(each).view(np.uint8).data
            out.write(data)
            size += -size % _ALIGNED + len(data)


def read_arrays(path: str | os.PathLike[str], kind: str, wanted: dict[str, str]) -> ArrayFile:
    """Read a file. Linear in its size.

    Args:
        path: of the file.
        kind: what it must be.
        wanted: dtypes of the arrays that it must have, by name.

    Raises:
        ConstraintError: it cannot be read, is no such file, of another version, truncated or damaged.
    """
    with _opened(path) as (file, head):
        if head["kind"] != kind:
            _refuse(path, f"holds {head['kind']!r}; expected {kind!r}")
        return ArrayFile(kind, head["digest"], head["facts"], _arrays(path, file, head, wanted))


def read_kind(path: str | os.PathLike[str]) -> str:
    """What a file's arrays are of.

    Raises:
        ConstraintError: as `read_arrays`.
    """
    with _opened(path) as (_, head):
        return str(head["kind"])


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[tuple[BufferedReader, dict[str, Any]]]:
    """A file after its head, and the head."""
    try:
        with open(path, "rb") as file:
            yield file, _head(path, file)
    except (OSError, ValueError) as error:
        raise ConstraintError(f"{os.fspath(path)} cannot be read: {error}") from error


def _head(path: str | os.PathLike[str], file: BufferedReader) -> dict[str, Any]:
    """The head of a file."""
    begun = file.read(_PREFIX)
    if begun[: len(MAGIC)] != MAGIC:
        _refuse(path, "is no file of names or documents (NameSet.save, Corpus.save)")
    if len(begun) < _PREFIX:
        _refuse(path, "is truncated in its head")
    version, length = np.frombuffer(begun, np.uint32, 2, len(MAGIC)).tolist()
    if version != VERSION:
        _refuse(path, f"has version {version}; this structgen reads {VERSION}. Build it again")
    if length > MAX_HEAD:
        _refuse(path, f"has a head of {length:,} bytes; at most {MAX_HEAD:,} are read")
    data = file.read(length)
    if hashlib.blake2b(data, digest_size=16).digest() != begun[_PREFIX - 16 :]:
        _refuse(path, "is truncated or damaged in its head")
    try:
        head: dict[str, Any] = json.loads(data)
        types = {"kind": str, "digest": str, "facts": dict, "arrays": list}
        if all(isinstance(head[name], type) for name, type in types.items()):
            return head
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    _refuse(path, "is damaged: its head is not what was written")


def _arrays(path: str | os.PathLike[str], file: BufferedReader, head: dict[str, Any], wanted: dict[str, str]) -> Arrays:
    """The arrays that follow a head."""
    listed = {str(name): (dtype, count) for name, dtype, count in head["arrays"]}
    if {name: dtype for name, (dtype, _) in listed.items()} != wanted:
        _refuse(path, f"has the arrays {sorted(listed)}; expected {sorted(wanted)}")
    size, arrays = os.fstat(file.fileno()).st_size, Arrays()
    for name, (dtype, count) in listed.items():
        offset = file.tell() + -file.tell() % _ALIGNED
        if type(count) is not int or not 0 <= count * np.dtype(dtype).itemsize <= size - offset:
            _refuse(path, f"is truncated: it ends at byte {size:,}, within the array {name!r}")
        file.seek(offset)
        arrays[name] = np.empty(count, dtype)
        if file.readinto(arrays[name].view(np.uint8).data) != arrays[name].nbytes:
            _refuse(path, f"was truncated while it was read, within the array {name!r}")
    return arrays


def _refuse(path: str | os.PathLike[str], what: str) -> NoReturn:
    raise ConstraintError(f"{Path(path)} {what}")
