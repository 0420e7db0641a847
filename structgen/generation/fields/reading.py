"""The model's logits after many short token paths, each after some prefix of one output, in as few calls as can be."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from structgen.generation.fields.walk import Path
from structgen.generation.models.model_runner import Part, RaggedReader
from structgen.generation.models.prefix_cache import common
from structgen.generation.models.prefix_reader import PromptReader
from structgen.generation.sampling import to_numpy

Asked = Mapping[int, Sequence[Path]]
"""Paths by how many tokens of the output they come after."""
Answers = dict[int, dict[Path, npt.NDArray[np.floating[Any]]]]
_Placed = dict[int, dict[Path, list[tuple[int, Path]]]]
"""What is read after a prefix of the output, by its length and path, and for which of what was asked."""
MAX_LEAVES = 24  # branches of the trees of one call: llama.cpp has a sequence for each
MAX_OPEN = 8  # prefixes that are kept open at once


class PathReader(Protocol):
    """What reads paths; used within ``with``."""

    @property
    def tokens(self) -> int:
        """Tokens that were read so far."""
        ...

    @property
    def calls(self) -> int:
        """Calls of the model so far."""
        ...

    def read(self, asked: Asked) -> Answers:
        """The logits after each path."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class PrefixPaths:
    """A ``PathReader`` over a reader of prefixes, which any model has."""

    def __init__(self, reader: PromptReader, output: Sequence[int]) -> None:
        self._reader, self._output = reader, tuple(output)

    @property
    def tokens(self) -> int:
        """See ``PathReader``."""
        return self._reader.tokens

    @property
    def calls(self) -> int:
        """See ``PathReader``."""
        return self._reader.calls

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is held."""

    def read(self, asked: Asked) -> Answers:
        """See ``PathReader.read``."""
        pairs = [(length, path) for length, paths in asked.items() for path in paths]
        logits = self._reader.read([(*self._output[:length], *path) for length, path in pairs])
        answers: Answers = {}
        for index, (length, path) in enumerate(pairs):
            answers.setdefault(length, {})[path] = to_numpy(logits[index])
        return answers


class TreePaths:
    """A ``PathReader`` over rows that are read apart: the paths after a prefix are one tree."""

    def __init__(self, reader: RaggedReader, prompt: Sequence[int], output: Sequence[int], salt: str = "") -> None:
        self._reader, self._prompt, self._output, self._salt = reader, list(prompt), list(output), salt
        self._open: dict[int, int] = {}  # of the reader, by the length of their prefix of the output
        self.tokens = self.calls = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the rows back."""
        for number in self._open.values():
            self._reader.drop(number)
        self._open.clear()

    def read(self, asked: Asked) -> Answers:
        """See ``PathReader.read``."""
        self._know(max(asked, default=0))
        answers: Answers = {length: {} for length in asked}
        placed = self._placed(asked)
        trees, leaves = list[_Tree](), 0
        for length, paths in placed.items():
            for tree in _Tree.of(length, list(paths)):
                is_full = len(trees) == MAX_OPEN or leaves + tree.leaves > MAX_LEAVES
                if trees and (is_full or any(each.length == length for each in trees)):
                    self._call(trees, placed, answers)
                    trees, leaves = [], 0
                trees.append(tree)
                leaves += tree.leaves
        if trees:
            self._call(trees, placed, answers)
        return answers

    def _placed(self, asked: Asked) -> _Placed:
        """The paths after the longest prefixes that they have in common with the output: what these share with it
        is not read again."""
        placed: _Placed = {}
        for length, paths in asked.items():
            following = self._output[length:]
            shift = min((common(following, path) for path in paths), default=len(following))
            for path in paths:
                placed.setdefault(length + shift, {}).setdefault(path[shift:], []).append((length, path))
        return placed

    def _know(self, length: int) -> None:
        """Have the output's beginning read, so that rows can begin with it; mostly the scheduler has left it."""
        text = [*self._prompt, *self._output[:length]]
        if self._reader.known(text, self._salt) >= len(text) - 1:
            return
        number, held = self._reader.open(text, self._salt)
        try:
            self._reader.read([Part(number, text[held:])])
            self._reader.remember(number, self._salt)
        finally:
            self._reader.drop(number)
        self.tokens += len(text) - held
        self.calls += 1

    def _call(self, trees: Sequence[_Tree], placed: _Placed, answers: Answers) -> None:
        """One call of the model for trees of different prefixes, ``MAX_OPEN`` at most."""
        parts, chains = list[Part](), list[int]()
        needed = {tree.length for tree in trees}
        for tree in trees:
            chain = self._chain(tree, needed)
            shift = len(chain)
            parents = [*range(-1, shift - 1), *(each + shift if each >= 0 else shift - 1 for each in tree.parents)]
            parts.append(Part(self._open[tree.length], [*chain, *tree.tokens], parents, last_only=False))
            chains.append(shift)
        reading = self._reader.read(parts)
        for tree, part, start, shift in zip(trees, parts, reading.starts, chains, strict=True):
            for path, node in tree.nodes.items():
                index = shift + node if path else shift - 1
                if index >= 0:
                    logits = np.array(to_numpy(reading.logits[start + index]))
                    for length, whole in placed[tree.length][path]:
                        answers[length][whole] = logits
            self._reader.keep(part.sequence, range(shift))
        self.tokens += sum(len(part.tokens) for part in parts)
        self.calls += 1

    def _chain(self, tree: _Tree, needed: Container[int]) -> list[int]:
        """The tokens of a tree's prefix that its row lacks; opens the row, in place of one that is not needed."""
        length = tree.length
        if length in self._open and () not in tree.nodes:
            return []
        if length in self._open:  # its last token is read again, for what comes after it
            self._reader.drop(self._open.pop(length))
        elif len(self._open) >= MAX_OPEN:
            self._reader.drop(self._open.pop(next(each for each in self._open if each not in needed)))
        text = [*self._prompt, *self._output[:length]]
        following = [] if () in tree.nodes else tree.tokens[:1]  # of the last token, what comes after it is not asked
        self._open[length], held = self._reader.open([*text, *following], self._salt)
        return text[held:]


class _Tree:
    """Paths after one prefix as a tree of tokens.

    Attributes:
        length: of the prefix.
        tokens, parents: of the nodes, as ``Part`` has them.
        nodes: the node of each path that is asked for; the empty one has none.
        leaves: how many branches there are.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self.nodes: dict[Path, int] = {}
        self._known: dict[Path, int] = {(): -1}

    @classmethod
    def of(cls, length: int, paths: Sequence[Path]) -> list[_Tree]:
        """Trees of few enough leaves, the one that has the empty path first."""
        trees = [cls(length)]
        for path in sorted(paths):
            if trees[-1].leaves >= MAX_LEAVES and path[:-1] not in trees[-1]._known:
                trees.append(cls(length))
            trees[-1]._add(path)
        return trees

    @property
    def leaves(self) -> int:
        """How many branches there are."""
        return len(self.tokens) - len({parent for parent in self.parents if parent >= 0})

    def _add(self, path: Path) -> None:
        node = -1
        for depth, token in enumerate(path):
            beginning = path[: depth + 1]
            if beginning not in self._known:
                self._known[beginning] = len(self.tokens)
                self.tokens.append(token)
                self.parents.append(node)
            node = self._known[beginning]
        self.nodes[path] = node
