"""Special tokens by name or id, and the bytes that stand for them in machines that read bytes.

A token such as ``<think>`` is one id without text. Where a constraint names it, machines read a **stand-in** in its
place: ``FF`` and some digits, all of them bytes that UTF-8 never has (RFC 3629, section 4). So no text spells it;
tries, automata and completions work on it as on text; and its bytes are told from those of text wherever they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from structgen.errors import ConstraintError
from structgen.options import near_or_known

LEAD = 0xFF
MOST_SHOWN = 12  # names in a message
DIGITS = bytes([0xC0, 0xC1, *range(0xF5, 0xFF)])
"""Digits of a stand-in, the most significant one first."""
STAND_IN_BYTES = frozenset((LEAD, *DIGITS))


@dataclass(frozen=True, slots=True)
class SpecialToken:
    """One token of the vocabulary that a constraint names: ``SpecialToken("<|call|>")``, or by id.

    It stands for this id and no other tokens, whatever these spell. Text of an output shows its name.

    Attributes:
        token: name, as the tokenizer has it, or id.

    Raises:
        ConstraintError: neither a name nor an id.
    """

    token: str | int

    def __post_init__(self) -> None:
        is_id = isinstance(self.token, int) and not isinstance(self.token, bool) and self.token >= 0
        if not (is_id or (isinstance(self.token, str) and self.token)):
            raise ConstraintError(f"a special token is a name or an id, not {self.token!r:.100}")

    def __str__(self) -> str:
        return written(self.token)


def written(token: str | int) -> str:
    """A token as text shows it: its name, or ``<[id]>`` where it has none."""
    return token if isinstance(token, str) else f"<[{token}]>"


def stand_in_length(size: int) -> int:
    """Bytes of the stand-ins of a vocabulary of ``size`` ids: all have as many."""
    digits = 1
    while len(DIGITS) ** digits < size:
        digits += 1
    return 1 + digits


def stand_in(token_id: int, size: int) -> bytes:
    """The bytes that stand for an id of a vocabulary of ``size`` ids."""
    digits = bytearray()
    for _ in range(stand_in_length(size) - 1):
        token_id, digit = divmod(token_id, len(DIGITS))
        digits.append(DIGITS[digit])
    return bytes([LEAD, *reversed(digits)])


def pieces(data: bytes, size: int) -> Iterator[bytes | int]:
    """Text and ids of stand-ins, in order. A stand-in that is cut at the end is left out."""
    length, offset = stand_in_length(size), 0
    while offset < len(data):
        lead = data.find(LEAD, offset)
        if lead < 0:
            yield data[offset:]
            return
        if lead > offset:
            yield data[offset:lead]
        offset = lead + length
        if offset <= len(data):
            token_id = 0
            for byte in data[lead + 1 : offset]:
                token_id = token_id * len(DIGITS) + DIGITS.index(byte)
            yield token_id


def unknown_name(name: str, names: Mapping[str, int]) -> str:
    """That no special token has this name, with the nearest that there is."""
    if names:
        return f"the vocabulary has no special token {name!r}; {near_or_known(name, names, MOST_SHOWN)}"
    return (
        f"the vocabulary has no special token {name!r}, nor any other name: make it with "
        "Vocabulary.from_transformers, or with special_tokens={name: id}; or name the token by its id"
    )
