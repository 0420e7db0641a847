"""Files of arrays: a head that is checked, then the arrays as they are. Small files are read, large ones are mapped."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
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
MAPPED_FROM = 64 << 20
"""Bytes from which a file is mapped. What is smaller is read: what happens to the file then, does not matter."""
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
    """Open a file. Time grows with what is read, which for large files is the head.

    Args:
        path: of the file.
        kind: what it must be.
        wanted: dtypes of the arrays that it must have, by name.

    Raises:
        ConstraintError: it cannot be read, is no such file, of another version, or truncated.
    """
    try:
        size = os.stat(path).st_size
        with open(path, "rb") as file:
            begun = file.read(min(size, _PREFIX + MAX_HEAD) if size < MAPPED_FROM else _PREFIX)
            head = _head(path, begun, file)
        whole = np.fromfile(path, np.uint8) if size < MAPPED_FROM else np.memmap(path, np.uint8, "r")
    except (OSError, ValueError) as error:
        raise ConstraintError(f"{os.fspath(path)} cannot be read: {error}") from error
    if head.get("kind") != kind:
        _refuse(path, f"holds {head.get('kind')!r}; expected {kind!r}")
    return ArrayFile(kind, str(head["digest"]), head["facts"], _arrays(path, whole, head, wanted))


def _head(path: str | os.PathLike[str], begun: bytes, file: Any) -> dict[str, Any]:
    """The head of a file, of which the first bytes are ``begun``."""
    if begun[: len(MAGIC)] != MAGIC:
        _refuse(path, "is no file of names or documents (NameSet.save, Corpus.save)")
    if len(begun) < _PREFIX:
        _refuse(path, "is truncated in its head")
    version, length = np.frombuffer(begun, np.uint32, 2, len(MAGIC)).tolist()
    if version != VERSION:
        _refuse(path, f"has version {version}; this structgen reads {VERSION}. Build it again")
    if length > MAX_HEAD:
        _refuse(path, f"has a head of {length:,} bytes; at most {MAX_HEAD:,} are read")
    file.seek(_PREFIX)
    data = file.read(length)
    if hashlib.blake2b(data, digest_size=16).digest() != begun[_PREFIX - 16 : _PREFIX]:
        _refuse(path, "is truncated or damaged in its head")
    head: dict[str, Any] = json.loads(data)
    head["begin"] = _PREFIX + length
    return head


def _arrays(path: str | os.PathLike[str], whole: Array, head: dict[str, Any], wanted: dict[str, str]) -> Arrays:
    """The arrays that a head lists."""
    arrays: Arrays = {}
    offset = int(head["begin"])
    for name, dtype, count in head["arrays"]:
        offset += -offset % _ALIGNED
        size = int(count) * np.dtype(dtype).itemsize
        if offset + size > len(whole):
            _refuse(path, f"is truncated: it ends at byte {len(whole):,}, within the array {name!r}")
        arrays[name] = np.frombuffer(whole, dtype, int(count), offset)
        offset += size
    if {name: each.dtype.str for name, each in arrays.items()} != wanted:
        _refuse(path, f"has the arrays {sorted(arrays)}; expected {sorted(wanted)}")
    return arrays


def _refuse(path: str | os.PathLike[str], what: str) -> NoReturn:
    raise ConstraintError(f"{Path(path)} {what}")
