"""Texts of a llama.cpp context: each is a sequence, what texts share is held once, branches of a tree are sequences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from structgen.errors import ModelError
from structgen.generation.models.llamacpp.binding import BATCH, LlamaContext
from structgen.generation.models.model_runner import NO_DRAFTS, Part, Reading


class Cells:
    """Counts of the holders of each cell. The numbers are ours: llama.cpp has its own for the same tokens."""

    def __init__(self, count: int) -> None:
        self._holders: npt.NDArray[np.int32] = np.zeros(count, np.int32)
        self._free = list(range(count))[::-1]

    @property
    def free(self) -> int:
        """How many nobody holds."""
        return len(self._free)

    @property
    def taken(self) -> int:
        """How many somebody holds."""
        return len(self._holders) - len(self._free)

    def take(self, count: int) -> list[int]:
        """Cells that were free, for one holder. O(count).

        Raises:
            MemoryError: there are not so many.
        """
        left = len(self._free) - count
        if left < 0:
            raise MemoryError(f"{count} tokens need room, there is room for {len(self._free)}")
        taken = self._free[left:]
        del self._free[left:]
        self._holders[taken] = 1
        return taken

    def share(self, cells: Sequence[int]) -> None:
        """One holder more. O(cells)."""
        self._holders[list(cells)] += 1

    def release(self, cells: Sequence[int]) -> None:
        """One holder less. O(cells)."""
        held = np.asarray(cells, np.intp)
        self._holders[held] -= 1
        self._free += held[self._holders[held] == 0].tolist()


NO_TREES = "A recurrent model's state cannot be taken back, so that it reads no drafts; pass draft=None."

# Tokens that are read till a prefix that nobody used is forgotten. Every call looks at all cells, also those of others:
# after so many tokens that has cost what reading the prefix again does (SmolLM2-135M: 1 us a cell and token, 6 ms).
UNUSED = 6000


@dataclass(eq=False, slots=True)
class _Held:
    """What a sequence holds.

    Attributes:
        sequence: its number in the context.
        tokens, cells: one of each for every position.
        appended: how many tokens the last call added.
        paths: of the tree that was read last, a sequence that each node is of.
        borrowed: sequences of its branches but the first, which is the text's own.
        ids: of a prefix, ``tokens`` once more.
        used: of a prefix, how many tokens the context had read when it was used last.
    """

    sequence: int
    tokens: list[int] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)
    appended: int = 0
    paths: list[int] = field(default_factory=list)
    ids: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    used: int = 0
    borrowed: list[int] = field(default_factory=list)


class LlamaCppReader:
    """A ``RaggedReader`` over one context, whose cells texts and prefixes share. Not for several threads at once.

    Attributes:
        max_sequences, max_bytes: see ``RaggedReader``.

    Args:
        context: nothing else may use it.
        cells: how many it has.
        sequences: how many it has.
        token_bytes: of the keys and values of a token.
        crops: whether tokens can be taken back; else texts only grow, and begin with whole prefixes.
        apart: whether the context's sequences are (see ``ModelFile.start``). Then every token is read in a call of its
            own, and its logits depend on the tokens before it only, to the last bit: on nothing that is read beside it,
            on no prefix that it shares and no pieces in which its text was read.
    """

    reads_apart = True
    shares_prefixes = True

    def __init__(
        self, context: LlamaContext, cells: int, sequences: int, token_bytes: int, crops: bool, apart: bool = False
    ) -> None:
        self.token_bytes = token_bytes
        self.max_bytes = cells * token_bytes or None
        # The rest is for prefixes, and for branches of trees, which sequences that are apart do not have.
        self.max_sequences = max(1, sequences // 2 if not apart else sequences - 1 - sequences // 8)
        self._context, self._crops, self._apart = context, crops, apart
        self._most = 1 if apart else BATCH
        self._cells = Cells(cells)
        self._idle = list(range(sequences))[::-1]
        self._texts: dict[int, _Held] = {}
        self._prefixes: list[tuple[str, _Held]] = []  # with their salts; the least recently used first
        self._opened = self._read = 0

    @property
    def bytes(self) -> int:
        """See ``RaggedReader.bytes``."""
        return self._cells.taken * self.token_bytes

    def length(self, sequence: int) -> int:
        """Tokens that a text holds."""
        return len(self._texts[sequence].tokens)

    def open(self, tokens: Sequence[int], salt: str = "") -> tuple[int, int]:
        """See ``RaggedReader.open``. O(cells).

        Raises:
            ModelError: ``max_sequences`` texts are open.
        """
        if len(self._texts) >= self.max_sequences:
            held = len(self._texts)
            raise ModelError(f"{held} texts are being read, the most that llama.cpp has sequences for here.")
        match, count = self._match(tokens, salt)
        if match is not None:  # first: making room must not take it
            self._prefixes.append(self._prefixes.pop(match))
            self._prefixes[-1][1].used = self._read
        opened = _Held(self._sequence(spare=0 if match is None else 1))
        if match is not None:
            self._share(self._prefixes[-1][1], opened, count)
        self._opened += 1
        self._texts[self._opened] = opened
        return self._opened, count

    def known(self, tokens: Sequence[int], salt: str = "") -> int:
        """See ``RaggedReader.known``."""
        return self._match(tokens, salt)[1]

    def remember(self, sequence: int, salt: str = "") -> None:
        """See ``RaggedReader.remember``: the tokens stay where they are. O(cells)."""
        remembered = self._texts[sequence]
        alike = [
            index
            for index, (of, held) in enumerate(self._prefixes)
            if of == salt and held.tokens == remembered.tokens[: len(held.tokens)]
        ]
        if any(len(self._prefixes[index][1].tokens) == len(remembered.tokens) for index in alike):
            return
        if self._crops:  # the longer one serves in their place
            for index in reversed(alike):
                self._drop_prefix(index)
        kept = _Held(self._sequence(), ids=np.asarray(remembered.tokens, np.int32), used=self._read)
        self._share(remembered, kept, len(remembered.tokens))
        self._prefixes.append((salt, kept))

    def kept_texts(self, salt: str = "") -> list[Sequence[int]]:
        """See ``RaggedReader.kept_texts``."""
        return [held.tokens for of, held in list(self._prefixes) if of == salt]

    def forget_prefixes(self, until: int = 0) -> None:
        """See ``RaggedReader.forget_prefixes``."""
        while self._prefixes and self.bytes > until:
            self._drop_prefix(0)

    def read(self, parts: Sequence[Part]) -> Reading:
        """See ``RaggedReader.read``; all parts are read whole, in calls of ``BATCH`` tokens, or of one.

        Raises:
            MemoryError: no room for the tokens, or no sequences for the branches; nothing was read.
            ModelError: llama.cpp failed; what the texts held before is as it was.
        """
        self._make_room(parts)
        tokens, positions, sequences, wanted, starts = list[int](), list[int](), list[list[int]](), list[bool](), []
        for part in parts:
            held, count = self._texts[part.sequence], len(part.tokens)
            starts.append(sum(wanted))
            depths, of = self._branch(held, part.parents) if part.parents is not None else (range(count), None)
            tokens += part.tokens
            positions += [len(held.tokens) + depth for depth in depths]
            sequences += of or [[held.sequence]] * count
            wanted += [False] * (count - 1) + [True] if part.last_only else [True] * count
        try:
            logits = []
            for start in range(0, len(tokens), self._most):
                span = slice(start, start + self._most)
                logits.append(self._context.decode(tokens[span], positions[span], sequences[span], wanted[span]))
        except BaseException:
            for part in parts:
                self._take_back(self._texts[part.sequence])
            raise
        self._read += len(tokens)
        for part in parts:
            held = self._texts[part.sequence]
            held.appended = len(part.tokens)
            held.tokens += part.tokens
            held.cells += self._cells.take(len(part.tokens))
        whole = logits[0] if len(logits) == 1 else np.concatenate(logits)
        return Reading(whole, starts, [len(part.tokens) for part in parts])

    def keep(self, sequence: int, kept: Sequence[int]) -> None:
        """See ``RaggedReader.keep``: ``kept`` is a path from the first tokens on. O(cells).

        Raises:
            ModelError: tokens would be taken back, which this model's state cannot.
        """
        held = self._texts[sequence]
        base, count = len(held.tokens) - held.appended, len(kept)
        if held.paths and kept and held.paths[kept[-1]] != held.sequence:
            self._context.remove(held.sequence, base)
            self._context.copy(held.paths[kept[-1]], held.sequence, base, base + count)
        elif count < held.appended:
            self._context.remove(held.sequence, base + count)
        self._end_branches(held)
        cells = held.cells[base:]
        chosen = set(kept)
        self._cells.release([cell for index, cell in enumerate(cells) if index not in chosen])
        held.tokens[base:] = [held.tokens[base + index] for index in kept]
        held.cells[base:] = [cells[index] for index in kept]
        held.appended = 0

    def crop(self, sequence: int, length: int) -> None:
        """Forget all but the first ``length`` tokens of a text. O(cells).

        Raises:
            ModelError: this model's state cannot be cut back.
        """
        held = self._texts[sequence]
        if length < len(held.tokens):
            self._context.remove(held.sequence, length)
            self._cells.release(held.cells[length:])
            del held.tokens[length:], held.cells[length:]
        held.appended = 0

    def fork(self, sequence: int) -> int:
        """A new text that holds what this one does. O(cells)."""
        source, twin = self._texts[sequence], _Held(self._sequence())
        self._share(source, twin, len(source.tokens))
        self._opened += 1
        self._texts[self._opened] = twin
        return self._opened

    def drop(self, sequence: int) -> None:
        """See ``RaggedReader.drop``."""
        held = self._texts.pop(sequence)
        self._end_branches(held)
        self._clear(held)

    def _match(self, tokens: Sequence[int], salt: str) -> tuple[int | None, int]:
        """The place of the prefix that has most in common with all but the last token, and how many tokens that is."""
        whole, best, most = np.asarray(tokens[:-1], np.int32), None, 0
        for index, (of, held) in enumerate(self._prefixes):
            count = _agreed(held.ids, whole) if of == salt else 0
            if count > most and (self._crops or count == len(held.tokens)):
                best, most = index, count
        return best, most

    def _share(self, source: _Held, target: _Held, count: int) -> None:
        """Let the first tokens of one be those of another, which is empty."""
        whole = self._apart or count == len(source.tokens)
        self._context.copy(source.sequence, target.sequence, end=-1 if whole else count)
        if self._apart and count < len(source.tokens):
            self._context.remove(target.sequence, count)
        target.tokens, target.cells = source.tokens[:count], source.cells[:count]
        self._cells.share(target.cells)

    def _clear(self, held: _Held) -> None:
        self._context.remove(held.sequence, 0)
        self._idle.append(held.sequence)
        self._cells.release(held.cells)

    def _drop_prefix(self, index: int) -> None:
        self._clear(self._prefixes.pop(index)[1])

    def _sequence(self, spare: int = 0) -> int:
        """An idle sequence, if need be of the prefix used least recently; ``spare`` of those used last are kept.

        Raises:
            MemoryError: there is none.
        """
        if not self._idle and len(self._prefixes) > spare:
            self._drop_prefix(0)
        if not self._idle:
            raise MemoryError("llama.cpp has no more sequences; read fewer texts or smaller trees at once")
        return self._idle.pop()

    def _make_room(self, parts: Sequence[Part]) -> None:
        needed = sum(len(part.tokens) for part in parts)
        branches = sum(len(_leaves(part.parents)) - 1 for part in parts if part.parents is not None)
        while self._prefixes and self._read - self._prefixes[0][1].used > UNUSED:
            self._drop_prefix(0)
        while self._prefixes and (self._cells.free < needed or len(self._idle) < branches):
            self._drop_prefix(0)
        if self._cells.free < needed:
            raise MemoryError(f"{needed} tokens need room, llama.cpp has room for {self._cells.free}")
        if len(self._idle) < branches:
            raise MemoryError(f"trees of drafts have {branches} branches, llama.cpp has {len(self._idle)} sequences")

    def _branch(self, held: _Held, parents: Sequence[int]) -> tuple[list[int], list[list[int]]]:
        """The depth of each node of a tree, and the sequences it is of: those of all leaves below it."""
        if self._apart or not self._crops:
            raise ModelError(NO_DRAFTS if self._apart else NO_TREES)
        depths = list[int]()
        for parent in parents:
            depths.append(0 if parent < 0 else depths[parent] + 1)
        of: list[list[int]] = [[] for _ in parents]
        for number, leaf in enumerate(_leaves(parents)):
            sequence = held.sequence
            if number:
                sequence = self._sequence()
                held.borrowed.append(sequence)
                self._context.copy(held.sequence, sequence)
            node = leaf
            while node >= 0:
                of[node].append(sequence)
                node = parents[node]
        held.paths = [sequences[0] for sequences in of]
        return depths, of

    def _end_branches(self, held: _Held) -> None:
        for sequence in held.borrowed:
            self._context.remove(sequence, 0)
        self._idle += held.borrowed
        held.borrowed, held.paths = [], []

    def _take_back(self, held: _Held) -> None:
        """Undo a call that failed midway."""
        self._end_branches(held)
        if self._crops:
            self._context.remove(held.sequence, len(held.tokens))


def _leaves(parents: Sequence[int]) -> list[int]:
    """The nodes that nothing follows."""
    inner = set(parents)
    return [node for node in range(len(parents)) if node not in inner]


def _agreed(one: npt.NDArray[np.int32], other: npt.NDArray[np.int32]) -> int:
    """How many tokens two sequences have in common at their start."""
    count = min(len(one), len(other))
    apart = one[:count] != other[:count]
    return int(apart.argmax()) if apart.any() else count
