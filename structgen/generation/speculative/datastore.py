"""A datastore of tokenised texts and the drafter that copies from it (REST, RASD): earlier outputs for a schema, files.

The index is an array of the places of all tokens, sorted by what stands before each, read backwards. One binary search
finds the places with the longest common end with a given text: they are neighbours of where it would stand.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.core.whole_files import replacing
from structgen.errors import GenerationError
from structgen.generation.decoding.output import Output
from structgen.generation.speculative.drafter import Proposal, Source
from structgen.generation.speculative.tree import TAIL, Node

NAME = "retrieval"
SUFFIX = ".draft.npz"
SEPARATOR = 0xFFFFFFFF  # between texts; no token id
NEIGHBOURS = 16  # places looked at on each side
BRANCHES = 4
WIDTH = 4  # bytes of an encoded token


class Datastore:
    """Texts to copy from, tokens of one vocabulary. Immutable; build with ``build``.

    Memory: 12 bytes a token. Building: O(n log n) comparisons of 64 bytes.
    """

    def __init__(self, tokens: npt.NDArray[np.uint32], order: npt.NDArray[np.int32], vocabulary: str) -> None:
        self.tokens, self.order, self.vocabulary = tokens, order, vocabulary
        self._backwards = tokens[::-1].astype(">u4").tobytes()
        self._order: list[int] = order.tolist()

    def __len__(self) -> int:
        """Tokens, separators included."""
        return len(self.tokens)

    @classmethod
    def build(cls, texts: Iterable[Sequence[int]], vocabulary: Vocabulary) -> Datastore:
        """Index texts given as token ids of ``vocabulary``."""
        flat: list[int] = [SEPARATOR]
        for text in texts:
            flat += [*text, SEPARATOR]
        tokens = np.array(flat, dtype=np.uint32)
        backwards = tokens[::-1].astype(">u4").tobytes()
        count, size = len(tokens), TAIL * WIDTH
        places = [position for position in range(1, count) if flat[position] != SEPARATOR]
        places.sort(key=lambda position: backwards[WIDTH * (count - position) : WIDTH * (count - position) + size])
        return cls(tokens, np.array(places, dtype=np.int32), fingerprint(vocabulary))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to a file (numpy's npz), whole or not at all; the name should end in ``.draft.npz``."""
        with replacing(path) as file:
            np.savez_compressed(file, tokens=self.tokens, order=self.order, vocabulary=np.array(self.vocabulary))

    @classmethod
    def load(cls, path: str | os.PathLike[str], vocabulary: Vocabulary) -> Datastore:
        """Read from a file.

        Raises:
            GenerationError: no datastore, or one of another vocabulary.
        """
        try:
            with np.load(path, allow_pickle=False) as data:
                tokens, order, digest = data["tokens"], data["order"], str(data["vocabulary"])
        except Exception as error:  # numpy and zipfile raise errors of all kinds
            raise GenerationError(f"{path} is no datastore ({error}); make one with: structgen datastore") from error
        if digest != fingerprint(vocabulary):
            raise GenerationError(
                f"The datastore {path} holds tokens of another vocabulary; build it with this model: "
                "structgen datastore --model ..."
            )
        is_layout = tokens.ndim == order.ndim == 1 and tokens.dtype == np.uint32 and order.dtype == np.int32
        if not is_layout or not (
            ((tokens < vocabulary.size) | (tokens == SEPARATOR)).all() and ((order >= 0) & (order < len(tokens))).all()
        ):
            raise GenerationError(f"The datastore {path} is damaged; make it anew with: structgen datastore")
        return cls(tokens, order, digest)

    def following(self, tail: Sequence[int]) -> tuple[int, Counter[int]]:
        """The longest end of ``tail`` that occurs (its length, at most ``TAIL``), and how often each token follows it
        (among up to ``2 · NEIGHBOURS`` places)."""
        key = b"".join(token.to_bytes(WIDTH, "big") for token in reversed(tail[-TAIL:]))
        middle = bisect_left(self._order, key, key=self._before)
        places = self._order[max(0, middle - NEIGHBOURS) : middle + NEIGHBOURS]
        lengths = [_common(key, self._before(position)) for position in places]
        best = max(lengths, default=0)
        if best == 0:
            return 0, Counter()
        return best, Counter(
            int(self.tokens[position]) for position, length in zip(places, lengths, strict=True) if length == best
        )

    def _before(self, position: int) -> bytes:
        """The tokens before a place, backwards."""
        start = WIDTH * (len(self.tokens) - position)
        return self._backwards[start : start + TAIL * WIDTH]


class RetrievalDrafter:
    """Proposes what follows the longest end of the text that a datastore holds."""

    name = NAME

    def __init__(self, store: Datastore) -> None:
        self.store = store
        self.following = lru_cache(maxsize=4096)(self._following)

    def start(self, prompt: Sequence[int], output: Output) -> Source:
        """See ``Drafter.start``."""
        return _RetrievalSource(self)

    def _following(self, tail: tuple[int, ...]) -> list[Proposal]:
        length, counts = self.store.following(tail)
        total = counts.total()
        proposals = []
        for rank, (token, times) in enumerate(counts.most_common(BRANCHES)):
            share = times / total
            prior = share * length / (length + 1.0)
            proposals.append(Proposal(token, (NAME, min(length, 12), min(rank, 2), int(4 * share)), prior))
        return proposals


class _RetrievalSource(Source):
    name = NAME

    def __init__(self, drafter: RetrievalDrafter) -> None:
        self._drafter, self._written = drafter, 0

    def extend(self, tokens: Sequence[int]) -> None:
        self._written += len(tokens)

    def propose(self, node: Node) -> list[Proposal]:
        output_length = self._written + node.depth  # tokens of the output: what it begins with is what texts begin with
        return self._drafter.following(
            node.tail if output_length >= TAIL else (SEPARATOR, *node.tail[len(node.tail) - output_length :])
        )


def is_datastore(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a datastore, of any vocabulary; nothing of its arrays is read."""
    try:
        with np.load(path, allow_pickle=False) as data:
            return {*data.files} == {"tokens", "order", "vocabulary"}
    except Exception:  # numpy and zipfile raise errors of all kinds
        return False


def fingerprint(vocabulary: Vocabulary) -> str:
    """Of the bytes of all tokens; not of padding and of what ends a sequence, which models with one tokenizer set
    differently."""
    return hashlib.blake2b(vocabulary.token_bytes.tobytes(), digest_size=16).hexdigest()


def _common(one: bytes, other: bytes) -> int:
    """Tokens that two encoded texts have in common at their start."""
    length = min(len(one), len(other))
    offset = 0
    while offset < length and one[offset : offset + WIDTH] == other[offset : offset + WIDTH]:
        offset += WIDTH
    return offset // WIDTH
