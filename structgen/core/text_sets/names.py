"""Sets of names: of millions, in some 20 bytes each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from itertools import accumulate, pairwise

import numpy as np

from structgen.core.kernels.sorted import calls as k
from structgen.core.text_sets.encoding import encoded
from structgen.core.text_sets.files import ArrayFile, content_digest, read_arrays, write_arrays
from structgen.core.text_sets.sorted_texts import MAX_TEXT, Bytes, Int32, SortedTexts
from structgen.errors import ConstraintError

_KIND = "names"
_ARRAYS = {"text": "|u1", "starts": "<i4"}


class NameSet(SortedTexts):
    """Names, each once, in the order of their bytes. Immutable; equal and hashed by content.

    Make one with `build` or `open`; `structgen.one_of` is the constraint. ``name in names`` and iteration work as of a
    set of strings.
    """

    kind = k.NAMES
    boundary = k.CHAR
    border: Bytes = np.zeros(0, np.uint8)
    longest = 0
    steps = (np.zeros(0, np.int64),) * 3

    def __init__(self, text: Bytes, starts: Int32, digest: str | None = None) -> None:
        """Of the arrays as they are; see `SortedTexts`."""
        self.text, self.starts = text, starts
        self.digest = digest or content_digest(_KIND, None, text, starts)

    @classmethod
    def build(cls, names: Iterable[str]) -> NameSet:
        """The set of these names; one that comes again counts once. O(bytes × log names).

        Raises:
            ConstraintError: there is none, something is no text, empty or too long, or has half of a surrogate pair.
        """
        return cls._of(_encoded_names(names))

    @classmethod
    def of_texts(cls, texts: Iterable[str]) -> NameSet | None:
        """Of the options of a choice: one may be empty, those with half of a surrogate pair are left out; None: all."""
        names = set()
        for text in texts:
            with suppress(UnicodeEncodeError):
                names.add(text.encode())
        return cls._of(names) if names else None

    @classmethod
    def _of(cls, names: Iterable[bytes]) -> NameSet:
        """Of names in UTF-8, which may be repeated."""
        return cls._in_order(sorted(set(names)))

    @classmethod
    def _in_order(cls, names: list[bytes]) -> NameSet:
        if not names:
            raise ConstraintError("a set of names needs at least one name")
        text = np.frombuffer(b"".join(names), np.uint8)
        if len(text) > MAX_TEXT:
            raise ConstraintError(f"the names have {len(text):,} bytes; at most {MAX_TEXT:,} fit into one set")
        starts = np.fromiter(accumulate(map(len, names), initial=0), np.int32, len(names) + 1)
        longest = int(np.diff(starts).max())
        if longest > k.DEPTH_MASK:
            raise ConstraintError(f"a name has {longest:,} bytes; at most {k.DEPTH_MASK:,} are written")
        return cls(text, starts)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, verify: bool = False) -> NameSet:
        """A set that was saved. It is read whole: what happens to the file then does not matter.

        Args:
            path: of the file.
            verify: whether the content is read and compared with its hash.

        Raises:
            ConstraintError: it cannot be read, is no file of names, of another version, truncated or damaged.
        """
        file = read_arrays(path, _KIND, _ARRAYS)
        text, starts = file.arrays["text"], file.arrays["starts"]
        if len(starts) < 2 or starts[0] != 0 or starts[-1] != len(text):
            raise ConstraintError(f"{os.fspath(path)} is damaged: the names do not fill their text")
        if verify and (content_digest(_KIND, None, text, starts) != file.digest or not (np.diff(starts) > 0).all()):
            raise ConstraintError(f"{os.fspath(path)} is damaged: its content is not what its hash says")
        return cls(text, starts, file.digest)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the set to a file, which takes the place of what is there when it is whole.

        Raises:
            OSError: it cannot be written.
        """
        write_arrays(path, ArrayFile(_KIND, self.digest, {}, {"text": self.text, "starts": self.starts}))

    def changed(self, add: Iterable[str] = (), remove: Iterable[str] = ()) -> NameSet:
        """A new set with some names more and some less (those in both are added). O(bytes).

        Raises:
            ConstraintError: as `build`; a name is to be removed that is not there.
        """
        gone = set(_encoded_names(remove))
        missing = next((name for name in gone if name.decode() not in self), None)
        if missing is not None:
            raise ConstraintError(f"{missing.decode()!r:.100} cannot be removed: it is not among the names")
        added = set(_encoded_names(add))
        return self._of(added.union(name for name in self._names() if name not in gone))

    def kept(self, chosen: Callable[[bytes], bool]) -> NameSet | None:
        """The names, in UTF-8, that are chosen; None: none is."""
        kept = [name for name in self._names() if chosen(name)]
        return self._in_order(kept) if kept else None

    def without_bytes(self, missing: Iterable[int]) -> NameSet | None:
        """The names that have none of some bytes; None: all have some."""
        gone = frozenset(missing)
        return self.kept(gone.isdisjoint)

    @cached_property
    def shortest(self) -> Int32:  # type: ignore[override]
        """int32, the shortest of each `BLOCK` names."""
        lengths = np.diff(self.starts)
        return np.minimum.reduceat(lengths, np.arange(0, len(lengths), k.BLOCK)).astype(np.int32)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        data = name.encode(errors="surrogatepass")
        first, end = self.interval(data)
        return first < end and int(self.starts[first + 1] - self.starts[first]) == len(data)

    def __len__(self) -> int:
        return self.entries

    def __iter__(self) -> Iterator[str]:
        return (name.decode(errors="replace") for name in self._names())

    def __repr__(self) -> str:
        return f"NameSet({len(self):,} names, digest={self.digest!r})"

    def listed(self, first: int, end: int) -> list[str]:
        """The names of some entries, in order."""
        ends = self.starts[first : end + 1].tolist()
        return [self.text[begin:end].tobytes().decode(errors="replace") for begin, end in pairwise(ends)]

    def _names(self) -> Iterator[bytes]:
        data, ends = self.text.tobytes(), self.starts.tolist()
        return (data[begin:end] for begin, end in pairwise(ends))


def _encoded_names(names: Iterable[str]) -> list[bytes]:
    """The names in UTF-8.

    Raises:
        ConstraintError: see `NameSet.build`.
    """
    if isinstance(names, str) or not isinstance(names, Iterable):
        what = "one text: " if isinstance(names, str) else ""
        raise ConstraintError(f"names are texts in a list, not {what}{names!r:.100}")
    listed = list(names)
    try:
        data = list(map(str.encode, listed))
    except (TypeError, UnicodeEncodeError):
        data = [encoded(name, f"name {number}") for number, name in enumerate(listed)]
    if b"" in data:
        raise ConstraintError(f"name {data.index(b'')} is empty; leave it out")
    return data
