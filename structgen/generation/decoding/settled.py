"""How much of an unfinished text later tokens cannot change."""

from __future__ import annotations

from collections.abc import Sequence

from structgen.core.vocabulary.special_tokens import STAND_IN_BYTES


def settled_end(data: bytearray, stops: Sequence[bytes]) -> int:
    """Where what is settled ends: before a cut character, and before the beginning of a stop string."""
    end = len(data)
    for stop in stops:
        overlaps = (n for n in range(min(len(stop) - 1, end), 0, -1) if data.endswith(stop[:n]))
        end = min(end, len(data) - next(overlaps, 0))
    return _whole_characters(data, end)


def _whole_characters(data: bytearray, end: int) -> int:
    """The end of the last whole UTF-8 character in ``data[:end]`` (RFC 3629: at most 3 bytes can be a cut one)."""
    for back in range(1, min(3, end) + 1):
        byte = data[end - back]
        if byte in STAND_IN_BYTES:
            return end
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return end if back >= length else end - back
        if byte < 0x80:
            return end
    return end
