"""How records are declared: each field is one line, its place and what it may hold.

A record is a run of words that others name by where it begins. Kernels read its fields by their numbers
(``NODE_FLAGS = _node.whole()`` is one); `structgen.core.kernels.checks` follows all records of a table from its roots,
field by field, as they are described here. This module does not import numba, so that engines need none.
"""

from __future__ import annotations

from collections.abc import Mapping

MOST = (1 << 31) - 1
# --- what a field holds ---
INT, REF, LIST, POOL, WORDS, TEXT = range(6)
# INT: least, most. REF: kind, the value that stands for none. LIST: kind of the elements, field of their number, how
# far behind the value they begin. POOL: one of the next line. WORDS, TEXT: field of the length.
STRING_START, NUMBER_START, CLASSES_START = range(3)
HERE = -1  # in place of a field: the record itself is where the elements of a list are
NOTHING = -(1 << 31)  # in place of "the value that stands for none": there is no such value
OTHERWISE = -1


class KernelRecord:
    """Hands out the fields of a record, one after another; of a field given as ``at``, it says what it holds here.

    Args:
        name: by which others refer to it.
        meaning: what it is to the checks beyond its fields, a number of theirs; -1: nothing.
        like: a record whose fields this one has, too.

    Attributes:
        size: its words so far.
        fields: for each thing that is checked the field, what it holds, and three arguments of that.
        select: the field by whose value it is told which record this is, by name; None: it is this one.
    """

    def __init__(self, name: str, meaning: int = -1, like: KernelRecord | None = None) -> None:
        self.name, self.meaning = name, meaning
        self.size = like.size if like else 0
        self.fields: list[tuple[int, int, int | str, int, int]] = list(like.fields) if like else []
        self.select: tuple[int, Mapping[int, str]] | None = None

    def word(self) -> int:
        """A field that is not checked, or differently in each record that begins like this one."""
        self.size += 1
        return self.size - 1

    def whole(self, least: int = 0, most: int = MOST, offset: int | None = None) -> int:
        """A number from ``least`` to ``most``."""
        return self._holds(offset, INT, least, most)

    def ref(self, kind: str, none: int = NOTHING, offset: int | None = None) -> int:
        """The place of a record, or ``none``."""
        return self._holds(offset, REF, kind, none)

    def start(self, what: int, offset: int | None = None) -> int:
        """The pool state in which an automaton of a kind starts."""
        return self._holds(offset, POOL, what)

    def bits(self, number: int) -> int:
        """The place of words, whose number another field holds."""
        return self._holds(None, WORDS, number)

    def many(self, kind: str, number: int, begin: int = 0, offset: int | None = None) -> int:
        """The place of records, which begin ``begin`` behind it and whose number another field holds."""
        return self._holds(offset, LIST, kind, number, begin)

    def list_of(self, kind: str) -> tuple[int, int]:
        """Two fields: the place of records, and their number."""
        return self.many(kind, self.size + 1), self.word()

    def text(self) -> tuple[int, int]:
        """Two fields: the place of a text, and its length."""
        return self._holds(None, TEXT, self.size + 1), self.word()

    def followed_by(self, kind: str) -> int:
        """A field that holds how many records come behind it."""
        number = self.whole(1)
        self._holds(HERE, LIST, kind, number, self.size)
        return number

    def _holds(self, offset: int | None, what: int, one: int | str, two: int = 0, three: int = 0) -> int:
        field = self.word() if offset is None else offset
        self.fields.append((field, what, one, two, three))
        return field
