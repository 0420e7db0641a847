"""What objects and enumerations may hold, as completions read it: keys as bits, texts in byte order, plans."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from structgen.core.engines.json.completion.cheapest_words import Words, spelled
from structgen.core.engines.json.value_graph.key_classes import settle
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.objects import Choice, ObjectSpec
from structgen.core.engines.json.value_graph.scalars import NEVER, EnumSpec, QuoteSpec
from structgen.core.json_text import utf8
from structgen.core.kernels.json.layout import HASH_PRIME, HASH_START

_WORD = 1 << 64


def bits_of(mask: int) -> Iterator[int]:
    """The places of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def key_hash(text: bytes, start: int = HASH_START) -> int:
    """The hash by which the machine remembers undeclared keys: FNV-1a as int64, continued from ``start``."""
    value = start % _WORD
    for byte in text:
        value = (value ^ byte) * HASH_PRIME % _WORD
    return value - _WORD if value >= _WORD >> 1 else value


class EnumForm:
    """An enumeration as its table has it: UTF-8 in byte order, and how long each is when spelled."""

    def __init__(self, spec: EnumSpec) -> None:
        self.texts = sorted(value.encode() for value in spec.values)
        self.lengths = np.array([len(spelled(text)) for text in self.texts], np.int64)

    def remaining(self, lo: int, hi: int, offset: int) -> bytes:
        """The shortest rest (spelled, without the quote) of the strings ``lo`` to ``hi`` - 1 after byte ``offset``."""
        return spelled(self.texts[lo + int(self.lengths[lo:hi].argmin())][offset:])


class QuoteForm:
    """A quote of documents, as the machine's states name it."""

    def __init__(self, spec: QuoteSpec) -> None:
        self._corpus = spec.corpus
        self._reader = spec.corpus.reader(spec.least, spec.most)

    def completion(self, state: int) -> bytes:
        """A short text (spelled, without the quote) that completes a state."""
        return spelled(self._reader.completion(state))

    def continuations(self, state: int) -> list[bytes]:
        """What the documents go on with where few places are left (spelled)."""
        return [spelled(text) for text in self._corpus.continuations(state)]


class ObjectForm:
    """An object spec with its keys as bits: bit i is the i-th key in declared order.

    Attributes:
        keys: ``"name":`` as JSON spells it; ``texts`` the names in UTF-8; ``nodes`` their values' nodes.
        entries: bits by name in byte order, as in the machine's table. ``others``: the undeclared keys, if any.
        allowed, required: sets of bits; ``dependents[bit]`` is the set that the key asks for.
    """

    def __init__(self, spec: ObjectSpec, max_states: int) -> None:
        self.spec = spec
        self.others = settle(spec, max_states)
        self.texts = [utf8(name) or b"" for name in spec.keys]
        self.nodes = list(spec.keys.values())
        self.keys = [b'"' + spelled(text) + b'":' for text in self.texts]
        bits = {name: bit for bit, name in enumerate(spec.keys)}
        spellable = [bits[name] for name in spec.keys if utf8(name) is not None]
        self.entries = sorted(spellable, key=self.texts.__getitem__)
        self.allowed = sum(1 << bit for name, bit in bits.items() if name not in spec.forbidden and bit in spellable)
        self.required = sum(1 << bits[name] for name in spec.required)
        self.dependents = {bits[k]: sum(1 << bits[name] for name in names) for k, names in spec.dependents.items()}
        self.words: tuple[tuple[int, ...], Words] | None = None
        self._of_class: dict[int, Words] = {}

    def keys_of_class(self, label: int) -> Words:
        """The undeclared keys of one class."""
        words = self._of_class.get(label)
        if words is None:
            assert self.others is not None
            final = np.where(self.others.automaton.labels == label, 0, NEVER).astype(np.int64)
            words = self._of_class[label] = Words(self.others.automaton.transitions, final)
        return words

    def begun(self, text: bytes) -> int:
        """The state of the automaton of undeclared keys after the beginning of a key; -1: none begins so."""
        state = -1 if self.others is None else 0
        for byte in text:
            state = int(self.others.automaton.transitions[state, byte]) if self.others and state >= 0 else -1
        return state

    @cached_property
    def names(self) -> frozenset[bytes]:
        """The declared names."""
        return frozenset(self.texts)

    def choices(self, bit: int) -> list[Choice]:
        """The plain value of a declared key, then those that meet existentials."""
        choices = self.spec.choices.get(list(self.spec.keys)[bit], []) if self.spec.existentials else []
        return [(self.nodes[bit], 0), *(choice for choice in choices if choice[0].live)]

    def other_choices(self, label: int) -> list[Choice]:
        """The same of a class of undeclared keys, numbered from 1."""
        assert self.others is not None
        choices = self.others.choices[label - 1] if self.spec.existentials else []
        return [(self.others.nodes[label - 1], 0), *(choice for choice in choices if choice[0].live)]

    def missing(self, seen: int) -> int:
        """Required keys that are not ``seen``, by the schema or by a key that is."""
        need = self.required
        for bit, names in self.dependents.items():
            if seen >> bit & 1:
                need |= names
        return need & ~seen


class Open(NamedTuple):
    """An object under way: members so far, declared keys seen, whether there are undeclared ones, their hashes."""

    form: ObjectForm
    size: int = 0
    seen: int = 0
    others: bool = False
    met: int = 0  # existentials
    used: Callable[[], Collection[int]] = frozenset


class Member(NamedTuple):
    """A member to write: ``"key":`` and the node of its value."""

    key: bytes
    node: ValueNode


class ValuePlan(NamedTuple):
    """Members that complete an object, what they cost with their separators, whether all are declared ones.

    ``existential``: whether some members are there to meet existentials.
    """

    cost: int
    members: tuple[Member, ...]
    declared: bool
    existential: bool
