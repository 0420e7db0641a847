"""Asking the model about many prefixes of one prompt at once: logits after each, in one call.

Who asks knows prefixes, never sequences of a cache. `TreeReader` keeps the keys and values of every prefix read so far
in one sequence of a cache and says to the model what is on a prefix's path (`VisibleLanguageModel`): a new prefix costs
one token. `BranchReader` lets a `RaggedReader` keep the prefixes; one that it has forgotten is read again.
`BatchReader` works with any `LanguageModel`: prefixes that go on from those of the last call are read on, others from
    the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from structgen.errors import GenerationError
from structgen.generation.models.capabilities import capabilities_of, prepare_for_trees
from structgen.generation.models.model_runner import Part, RaggedReader
from structgen.generation.sampling import to_numpy

Logits = npt.NDArray[np.floating[Any]]
Prefix = tuple[int, ...]

# A forward of more sequences or tokens than this gains nothing on a CPU and needs memory for V logits each.
MAX_BATCH = 64
# Prefixes whose keys and values are kept (46 kB each for a model of 135 million parameters, 512 kB for one of 8
# billion); beyond, those used least recently are forgotten, and read again when asked for.
MAX_SLOTS = 4096
# Forgotten tokens stand in the way of attention until they are closed up, which copies the cache.
MOST_UNUSED = 64


class PromptReader(Protocol):
    """Counts and one call.

    Attributes:
        reads_chains: whether prefixes of which one begins another are read together for the price of the longest.
    """

    reads_chains: bool

    @property
    def tokens(self) -> int:
        """Tokens read, the prompt not included."""
        ...

    @property
    def calls(self) -> int:
        """Calls of the model, the prompt's included."""
        ...

    def read(self, prefixes: Sequence[Prefix]) -> Logits:
        """Logits [len(prefixes), V] after the prompt and each prefix; equal prefixes are read once."""
        ...

    def retain(self, prefixes: Iterable[Prefix]) -> None:
        """What is read from now on goes on from these; others may be forgotten."""
        ...


def make_reader(
    model: Any, prompt_ids: Sequence[int], max_tokens: int, salt: str = "", *, states: bool = False
) -> PromptReader:
    """The best reader for the model.

    Args:
        salt: whom prefixes are shared with.
        states: whether hidden states are wanted (``TreeReader.states``).

    Raises:
        GenerationError: the prompt and ``max_tokens`` do not fit in the model's context, or it gives no hidden states.
    """
    limit = model.context_length
    if limit is not None and len(prompt_ids) + max_tokens > limit:
        raise GenerationError(
            f"The prompt has {len(prompt_ids)} tokens and texts have up to {max_tokens}, but the model reads {limit}; "
            "shorten the prompt or lower max_tokens."
        )
    can = capabilities_of(model)
    if states and (can.forward_visible is None or can.hidden_states is None):
        raise GenerationError(
            f"Hidden states are wanted, which {type(model).__name__} does not give; load the model with transformers "
            "(backend='transformers'), one whose layers all attend to the whole text."
        )
    if can.forward_visible is not None:
        return TreeReader(model, prompt_ids, can.hidden_states if states else None)
    model_reader = None if can.ragged_reader is None else can.ragged_reader()
    if model_reader is not None and model_reader.reads_apart and model_reader.shares_prefixes:
        return BranchReader(model_reader, prompt_ids, salt)
    return BatchReader(model, prompt_ids)


class BatchReader:
    """Every prefix is a sequence of a batch; for any ``LanguageModel``."""

    reads_chains = False

    def __init__(self, model: Any, prompt_ids: Sequence[int]) -> None:
        self._model, self._prompt = model, list(prompt_ids)
        self.tokens = self.calls = 0
        self._cache: Any = None
        self._read_last: dict[Prefix, int] = {}  # the prefixes of the last call, and where they are in the cache

    def read(self, prefixes: Sequence[Prefix]) -> Logits:
        """See ``PromptReader.read``."""
        distinct = list(dict.fromkeys(prefixes))
        batches = [distinct[start : start + MAX_BATCH] for start in range(0, len(distinct), MAX_BATCH)]
        logits = np.concatenate([self._read(batch) for batch in batches])
        if len(distinct) == len(prefixes):
            return logits
        numbers = {prefix: number for number, prefix in enumerate(distinct)}
        return logits[[numbers[prefix] for prefix in prefixes]]

    def retain(self, prefixes: Iterable[Prefix]) -> None:
        """See ``PromptReader.retain``: the last call's are kept."""

    def _read(self, prefixes: list[Prefix]) -> Logits:
        count = self._new_tokens(prefixes)
        if count:
            parents = [self._read_last[prefix[:-count]] for prefix in prefixes]
            if parents != list(range(len(self._read_last))):  # it would copy the cache
                self._cache.select(parents)
            logits = to_numpy(self._model.forward([prefix[-count:] for prefix in prefixes], self._cache)[:, -1])
        else:
            logits, self._cache = self._model.prefill([[*self._prompt, *prefix] for prefix in prefixes])
            logits = to_numpy(logits)
        self.calls += 1
        self.tokens += sum(count or len(prefix) for prefix in prefixes)
        self._read_last = {prefix: number for number, prefix in enumerate(prefixes)}
        return logits

    def _new_tokens(self, prefixes: list[Prefix]) -> int:
        """How many tokens each prefix has more than one that was just read; 0: they differ in that."""
        lengths = {len(prefix) for prefix in self._read_last}
        if self._cache is None or not lengths:
            return 0
        counts = {next((n for n in self._lengths_beyond(prefix, lengths)), 0) for prefix in prefixes}
        return counts.pop() if len(counts) == 1 else 0

    def _lengths_beyond(self, prefix: Prefix, lengths: set[int]) -> list[int]:
        shared = (length for length in sorted(lengths, reverse=True) if length < len(prefix))
        return [len(prefix) - length for length in shared if prefix[:length] in self._read_last]


class BranchReader:
    """Every prefix is a sequence of a `RaggedReader` that begins with the longest one known."""

    reads_chains = True

    def __init__(self, reader: RaggedReader, prompt_ids: Sequence[int], salt: str = "") -> None:
        self._reader, self._prompt, self._salt = reader, list(prompt_ids), salt
        self._batch = MAX_BATCH if reader.max_sequences is None else max(1, min(MAX_BATCH, reader.max_sequences // 2))
        self.tokens = self.calls = 0

    def read(self, prefixes: Sequence[Prefix]) -> Logits:
        """See ``PromptReader.read``."""
        if not self.calls:
            self._read([()])
            self.tokens = 0  # the prompt does not count
        longest_first = sorted(dict.fromkeys(prefixes), key=len, reverse=True)
        logits = dict[Prefix, Logits]()
        while waiting := [prefix for prefix in longest_first if prefix not in logits]:
            logits |= self._read(waiting)
        return np.stack([logits[prefix] for prefix in prefixes])

    def retain(self, prefixes: Iterable[Prefix]) -> None:
        """See ``PromptReader.retain``: the `RaggedReader` forgets what was not used for longest."""

    def _read(self, prefixes: Sequence[Prefix]) -> dict[Prefix, Logits]:
        """As many of these, the longest first, as one call has sequences for."""
        parts, wanted = list[Part](), list[list[Prefix]]()
        try:
            left = list(prefixes)
            while left and len(parts) < self._batch:
                prefix = left.pop(0)
                text = [*self._prompt, *prefix]
                number, held = self._reader.open(text, self._salt)
                first = max(0, held + 1 - len(self._prompt))  # prefixes from this length on are read with it
                within = [other for other in left if len(other) >= first and prefix[: len(other)] == other]
                left = [other for other in left if other not in within]
                parts.append(Part(number, text[held:], last_only=not within))
                wanted.append([prefix, *within])
            reading = self._reader.read(parts)
            logits = to_numpy(reading.logits)
            for part in parts:
                self._reader.remember(part.sequence, self._salt)
        finally:
            for part in parts:
                self._reader.drop(part.sequence)
        self.calls += 1
        self.tokens += sum(len(part.tokens) for part in parts)
        read = dict[Prefix, Logits]()
        for part, start, of in zip(parts, reading.starts, wanted, strict=True):
            last = start + (0 if part.last_only else len(part.tokens) - 1)
            read |= {prefix: logits[last - (len(of[0]) - len(prefix))] for prefix in of}
        return read


class TreeReader:
    """A trie of prefixes in one sequence of a cache of a ``VisibleLanguageModel``. A slot is a token of it.

    Args:
        hidden_states: of the model's capabilities, where states are kept; None: they are not.
    """

    reads_chains = True

    def __init__(
        self,
        model: Any,
        prompt_ids: Sequence[int],
        hidden_states: Callable[[], AbstractContextManager[list[Any]]] | None = None,
    ) -> None:
        prepare_for_trees(model)
        self._recording = hidden_states or (lambda: nullcontext([]))
        self._prompt_states: list[Logits] = []  # of the last layer, after the prompt's tokens [1][P, H]
        self._states: list[Logits] = []  # after each slot
        self._model, self._prompt = model, list(prompt_ids)
        self.tokens = self.calls = 0
        self._cache: Any = None
        self._first: Logits | None = None  # logits after the prompt
        self._slots: dict[tuple[int, int], int] = {}  # (parent's slot or -1, token): slot
        self._keys: list[tuple[int, int]] = []  # the same by slot
        self._used: list[int] = []  # the call that a slot was last asked for in
        self._sees = np.zeros((MOST_UNUSED, MOST_UNUSED), np.bool_)  # which slots each slot sees: its path

    def read(self, prefixes: Sequence[Prefix]) -> Logits:
        """See ``PromptReader.read``. Missing beginnings of the prefixes are read too."""
        if self._cache is None:
            with self._recording() as states:
                logits, self._cache = self._model.prefill([self._prompt])
            self._first = to_numpy(logits)
            self._prompt_states = [to_numpy(each)[0] for each in states]
            self.calls += 1
        assert self._first is not None
        logits = np.empty((len(prefixes), self._first.shape[1]), dtype=self._first.dtype)
        for start in range(0, len(prefixes), MAX_BATCH):
            self._read(prefixes[start : start + MAX_BATCH], logits[start:])
        return logits

    def retain(self, prefixes: Iterable[Prefix]) -> None:
        """See ``PromptReader.retain``: the others' tokens are closed up where they are many."""
        live = np.zeros(len(self._keys), np.bool_)
        for prefix in prefixes:
            slot = -1
            for token in prefix:
                slot = self._slots.get((slot, token), -1)
                if slot < 0:
                    break
                live[slot] = True
        if len(live) > MOST_UNUSED + 2 * int(live.sum()):
            self._keep(np.flatnonzero(live))

    def states(self, prefix: Prefix) -> Logits:
        """The last layer's hidden states [prompt + n, H] after each token of the prompt and of a prefix of n tokens
        that was read, where they are kept."""
        slot, result = -1, list[Logits]()
        for token in prefix:
            slot = self._slots[slot, token]
            result.append(self._states[slot][None])
        return np.concatenate([*self._prompt_states, *result])

    def _read(self, prefixes: Sequence[Prefix], out: Logits) -> None:
        if len(self._keys) + sum(map(len, prefixes)) > MAX_SLOTS:
            self._make_room(MAX_SLOTS - sum(map(len, prefixes)))
        past, tokens, depths, wanted = len(self._keys), list[int](), list[int](), []
        for prefix in prefixes:
            slot = -1
            for depth, token in enumerate(prefix):
                parent, slot = slot, self._slots.get((slot, token), -1)
                # What is in the cache has no logits left: the end of a prefix is read again, in a slot of its own.
                if slot < 0 or (slot < past and depth == len(prefix) - 1):
                    slot = self._add(parent, token)
                    tokens.append(token)
                    depths.append(depth)
                self._used[slot] = self.calls
            wanted.append(slot)
        if tokens:
            logits = self._forward(tokens, depths, past)
        for line, slot in zip(out, wanted, strict=False):
            line[:] = self._first[0] if slot < 0 else logits[slot - past]  # type: ignore[index]

    def _add(self, parent: int, token: int) -> int:
        """A slot for a token after another. It sees what that sees, and itself."""
        slot = self._slots[parent, token] = len(self._keys)
        if slot == len(self._sees):
            self._sees = np.pad(self._sees, (0, slot))
        self._keys.append((parent, token))
        self._used.append(self.calls)
        self._sees[slot] = self._sees[parent] if parent >= 0 else False
        self._sees[slot, slot] = True
        return slot

    def _make_room(self, slots: int) -> None:
        """Forget the slots used least recently, until half of these are free; what comes before a used one is used."""
        order = np.argsort(-np.array(self._used, np.int64), kind="stable")
        self._keep(np.sort(order[: max(0, slots) // 2]))

    def _keep(self, slots: npt.NDArray[np.int64]) -> None:
        """Forget all slots but these (ascending), whose parents are among them."""
        if not len(self._keys):
            return
        self._cache.close_up(len(self._prompt), slots.tolist())
        number = {-1: -1} | {int(slot): new for new, slot in enumerate(slots)}
        keys = [self._keys[slot] for slot in slots]
        self._keys = [(number[parent], token) for parent, token in keys]
        self._used = [self._used[slot] for slot in slots]
        self._states = [self._states[slot] for slot in slots] if self._states else []
        self._slots = {key: slot for slot, key in enumerate(self._keys)}
        sees = np.zeros_like(self._sees)
        sees[: len(slots), : len(slots)] = self._sees[np.ix_(slots, slots)]
        self._sees = sees

    def _forward(self, tokens: list[int], depths: list[int], past: int) -> Logits:
        """Append tokens to the sequence, each seeing the prompt, its ancestors and itself."""
        prompt, total = len(self._prompt), past + len(tokens)
        visible = np.ones((len(tokens), prompt + total), dtype=np.bool_)
        visible[:, prompt:] = self._sees[past:total, :total]
        positions = np.array([[prompt + depth for depth in depths]])
        with self._recording() as states:
            logits = self._model.forward_visible([tokens], visible[None], positions, self._cache)
        for each in states:
            self._states += list(to_numpy(each)[0])
        self.calls += 1
        self.tokens += len(tokens)
        return to_numpy(logits[0])
