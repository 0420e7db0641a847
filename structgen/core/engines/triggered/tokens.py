"""The tokens of a vocabulary by the names that they begin with, and where triggers end in them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from structgen.core.vocabulary.sorted_tokens import SortedTokens
from structgen.core.vocabulary.special_tokens import STAND_IN_BYTES

IN_NAMES = np.zeros(256, np.bool_)
"""Which bytes names consist of: ASCII letters, digits, the underscore, and all characters beyond ASCII."""
IN_NAMES[[*range(48, 58), *range(65, 91), 95, *range(97, 123), *range(128, 256)]] = True
IN_NAMES[[*STAND_IN_BYTES]] = False
_NAME = re.compile(b"[" + re.escape(bytes(np.flatnonzero(IN_NAMES).tolist())) + b"]*")


def name_end(data: bytes, start: int = 0) -> int:
    """Where the name ends that begins at ``start``; there, if none does."""
    match = _NAME.match(data, start)
    assert match is not None
    return match.end()


class Triggers:
    """Texts after which names come.

    Args:
        texts: none of them empty, none ending with a byte of names.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = tuple(text.encode() for text in texts)
        self.longest = max(map(len, self.texts))

    def end_after(self, data: bytes, start: int) -> int:
        """The first end of a trigger after ``start``, perhaps begun before it; -1: none ends."""
        ends = []
        for text in self.texts:
            begin = data.find(text, max(0, start + 1 - len(text)))
            if begin >= 0:
                ends.append(begin + len(text))
        return min(ends, default=-1)

    def begun(self, text: bytes) -> set[bytes]:
        """What would end triggers that a text ends with the beginnings of."""
        return {each[n:] for each in self.texts for n in range(1, len(each)) if text.endswith(each[:n])}


class TokenNames:
    """Tokens that share a beginning, by the names after it.

    Args:
        ids, texts: of the tokens.
        start: bytes of the beginning.

    Attributes:
        ids: of all.
        crossing: those in which a trigger ends after the beginning and before the token does.
    """

    def __init__(self, ids: Sequence[int], texts: Sequence[bytes], start: int, triggers: Triggers) -> None:
        self.ids = np.array(ids, np.int64)
        pairs = zip(ids, texts, strict=True)
        crossing = [token for token, text in pairs if 0 < triggers.end_after(text, start) < len(text)]
        self.crossing = np.array(sorted(crossing), np.int64)
        parts: defaultdict[bytes, list[int]] = defaultdict(list)
        whole: defaultdict[bytes, list[int]] = defaultdict(list)
        for token, text in zip(ids, texts, strict=True):
            end = name_end(text, start)
            (parts if end == len(text) else whole)[text[start:end]].append(token)
        self._parts, self._whole = dict(parts), {name: np.array(those) for name, those in whole.items()}

    def fitting(self, names: Iterable[bytes]) -> npt.NDArray[np.int64]:
        """Tokens that write one of these names, or a beginning of one, after their beginning."""
        ids, arrays = set[int](), []
        for name in names:
            for length in range(1, len(name) + 1):
                ids.update(self._parts.get(name[:length], ()))
            if name in self._whole:
                arrays.append(self._whole[name])
        return np.concatenate([np.array(sorted(ids), np.int64), *arrays])


class TriggerTokens:
    """The tokens of a vocabulary, as triggers see them.

    Attributes:
        triggers: what they are seen by.
        all: every token that has bytes.
        after: tokens that go on after a trigger that they hold, by what they have up to the end of the first.
    """

    def __init__(self, tokens: Sequence[bytes], triggers: Triggers) -> None:
        self.triggers = triggers
        self._by_text = SortedTokens(tokens)
        groups: defaultdict[bytes, list[int]] = defaultdict(list)
        for text, token in zip(self._by_text.texts, self._by_text.ids.tolist(), strict=True):
            end = triggers.end_after(text, 0)
            if 0 < end < len(text):
                groups[text[:end]].append(token)
        self.all = TokenNames(self._by_text.ids.tolist(), self._by_text.texts, 0, triggers)
        self.after = {
            piece: TokenNames(ids, [tokens[token] for token in ids], len(piece), triggers)
            for piece, ids in groups.items()
        }

    def beginning(self, piece: bytes) -> list[int]:
        """Tokens that begin with a piece and go on."""
        return self._by_text.beginning_with(piece)[len(self._by_text.spelling(piece)) :].tolist()
