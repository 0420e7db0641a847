"""How long the completion of one kind of object is, whatever it has so far: see `completion.lengths`.

What is chosen is what `cheapest_values.Values.plan` and `completion.remaining_text` choose. Where that is plain (the
members that are required, one more, a key that was begun), it is found here, from prices that are kept; else `plan` is
asked.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

from structgen.core.engines.json.completion.cheapest_values import Values
from structgen.core.engines.json.completion.cheapest_words import spelled
from structgen.core.engines.json.completion.completion_tables import ObjectForm, Open, bits_of, key_hash
from structgen.core.engines.json.completion.memo import keep
from structgen.core.engines.json.completion.remaining_text import hashes_below
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.scalars import NEVER
from structgen.core.engines.protocols import TOO_LONG
from structgen.core.kernels.json import layout

MAX_FRESH = 4  # undeclared keys that are kept for each state: most likely the object has not got all of them

TextLength = Callable[[ValueNode, int], int]
Summary = tuple[int, int, int | tuple[int, ...], bool, int, int]
Separators = Callable[[int, int, int], int]


class ObjectState(NamedTuple):
    """An object under way: ``others`` is the root of its undeclared keys' tree, ``fresh`` the hash of one more."""

    size: int
    seen: int
    met: int
    others: int
    depth: int
    arena: array[int]
    fresh: int | None = None

    @property
    def has_others(self) -> bool:
        return self.others >= 0 or self.fresh is not None

    def has(self, hashed: int) -> bool:
        """Whether it has the undeclared key with this hash."""
        node, turn = self.others, hashed
        while node >= 0 and self.arena[node + layout.K_HASH] != hashed:
            node = self.arena[node + layout.K_LEFT + (turn & 1)]
            turn >>= 1
        return node >= 0 or hashed == self.fresh

    def used(self) -> set[int]:
        """The hashes of its undeclared keys."""
        hashes = hashes_below(self.arena, self.others)
        return hashes if self.fresh is None else {*hashes, self.fresh}


class BegunKey(NamedTuple):
    """An undeclared key that was begun: state of their automaton, hash, and the text if declared ones begin so, too."""

    state: int
    hashed: int
    text: bytes | None = None


class KeyRemainder(NamedTuple):
    """The rest of an undeclared key: its price with the value, text, length up to the value, and the value's node."""

    price: int
    text: bytes
    length: int
    node: ValueNode


NOTHING_BEGUN = BegunKey(0, layout.HASH_START, b"")


class ObjectLengths:
    """Objects of one form. ``text`` gives the length of a node's text, ``separators`` of what stands around members,
    ``bytes_of`` of a piece."""

    def __init__(
        self,
        form: ObjectForm,
        start: int,
        values: Values,
        text: TextLength,
        separators: Separators,
        bytes_of: Callable[[bytes], int],
    ) -> None:
        self._form, self._start, self._values, self._bytes_of = form, start, values, bytes_of
        self._text, self._separators = text, separators
        spec = form.spec
        self._colon = len(values.colon)
        self._words = max(1, -(-len(form.keys) // layout.SEEN_BITS))
        self._least, self._most = spec.least, spec.most
        self._existentials = (1 << spec.existentials) - 1
        self._dependents = bool(spec.dependents)
        self._counts = bool(spec.least or spec.most is not None)
        self._required: dict[tuple[int, int, int], int] = {}
        self._planned: dict[tuple[int, ...], int] = {}
        self._keys: dict[Summary, tuple[int, BegunKey | None]] = {}
        self._inners: dict[Summary, int] = {}
        self._fresh: dict[int, list[KeyRemainder]] = {}
        self._masks: dict[tuple[int, int], int] = {}
        self._cheapest: dict[tuple[int, int], tuple[int, int]] = {}
        self._begun: dict[bytes, BegunKey | None] = {}

    def state(self, frame: int, depth: int, arena: array[int]) -> ObjectState:
        """The object of a frame."""
        first = frame + layout.F_SEEN
        seen = arena[first]
        for word in range(1, self._words):
            seen |= arena[first + word] << layout.SEEN_BITS * word
        met = arena[first + self._words] if self._form.spec.existentials else 0
        return ObjectState(arena[frame] >> 32, seen, met, arena[frame + layout.F_OTHERS], depth, arena)

    def _summary(self, q: int, b: int, frame: int, depth: int, arena: array[int]) -> Summary:
        """What lengths depend on, but for the names of undeclared keys and existentials."""
        first = frame + layout.F_SEEN
        seen = arena[first] if self._words == 1 else tuple(arena[first : first + self._words])
        size = arena[frame] >> 32 if self._counts else 0
        return q, b, seen, arena[frame + layout.F_OTHERS] >= 0, size, depth

    # --- members to come ---
    def inner(self, q: int, frame: int, depth: int, arena: array[int]) -> int:
        """What completes the object of a frame, the closing bracket included."""
        if self._existentials:
            return self.remaining(self.state(frame, depth, arena), q)
        key = self._summary(q, 0, frame, depth, arena)
        length = self._inners.get(key)
        if length is None:
            length = self.remaining(self.state(frame, depth, arena), q)
            if arena[frame + layout.F_OTHERS] < 0 or (q == layout.AFTER and not self._least):
                keep(self._inners, key, length)  # else it may depend on the names of undeclared keys
        return length

    def remaining(self, state: ObjectState, q: int) -> int:
        """The same of any state."""
        if state.met != self._existentials:
            return TOO_LONG
        missing = self._missing(state.seen)
        size = state.size + missing.bit_count()
        lacking = max(self._least, state.size + 1 if q == layout.KEY_NEXT else 0) - size
        if lacking > 0:
            one = lacking == 1 and not missing and not self._dependents
            return self._one_more(state, q) if one else self._plan(state, q)
        if (self._most is not None and size > self._most) or missing & ~self._free(state):
            return TOO_LONG
        key = missing, q, state.depth
        length = self._required.get(key)
        if length is None:
            members = [self._member(bit, state.depth) for bit in bits_of(missing)]
            length = sum(members) + self._separators(len(members), q, state.depth)
            keep(self._required, key, length)
        return length

    def _missing(self, seen: int) -> int:
        return self._form.missing(seen) if self._dependents else self._form.required & ~seen

    def _free(self, state: ObjectState) -> int:
        """The declared keys that may still come."""
        free = self._form.allowed & ~state.seen
        if not self._values.ordered:
            return free
        return 0 if state.has_others else free >> state.seen.bit_length() << state.seen.bit_length()

    def _member(self, bit: int, depth: int) -> int:
        return self._bytes_of(self._form.keys[bit]) + self._colon - 1 + self._text(self._form.nodes[bit], depth)

    def _one_more(self, state: ObjectState, q: int) -> int:
        """The cheapest member more, where none is required."""
        key = self._free(state), state.depth
        cheapest = self._cheapest.get(key)
        if cheapest is None:
            pairs = ((price, self._member(bit, state.depth)) for price, bit in self._by_price if key[0] >> bit & 1)
            cheapest = next(pairs, (NEVER, TOO_LONG))
            keep(self._cheapest, key, cheapest)
        price, length = cheapest
        if self._form.others is not None:
            fresh = self._first_fresh(state, NOTHING_BEGUN)
            if fresh is None:
                return self._plan(state, q)
            if fresh.price + 3 <= price:
                length = 1 + fresh.length + self._text(fresh.node, state.depth)
        return length + self._separators(1, q, state.depth)

    def _plan(self, state: ObjectState, q: int) -> int:
        """The same as `rest`, by `Values.plan`."""
        key = (state.size, state.seen, state.has_others, state.depth, q)
        length = self._planned.get(key)
        if length is None:
            opened = Open(self._form, state.size, state.seen, state.has_others, state.met, state.used)
            plan = self._values.objects.plan(opened, q == layout.KEY_NEXT)
            if plan is None:
                return TOO_LONG
            length = self._separators(len(plan.members), q, state.depth)
            for member in plan.members:
                length += self._bytes_of(member.key) + self._colon - 1 + self._text(member.node, state.depth)
            if plan.declared or not state.has_others:
                keep(self._planned, key, length)
        return length

    # --- keys ---
    @cached_property
    def _by_price(self) -> list[tuple[int, int]]:
        """The declared keys as (price, bit), cheapest first; of equal prices in declared order, as `Values.plan`."""
        prices = [(self._values.objects.price(self._form, 1 << bit), bit) for bit in bits_of(self._form.allowed)]
        return sorted(pair for pair in prices if pair[0] < NEVER)

    @cached_property
    def _names_by_price(self) -> list[int]:
        """The bits of all declared keys, cheapest first; of equal prices by name, as `Values.by_price`."""
        return self._values.objects.by_price(self._form, self._form.entries, 0, 0)

    def key(self, q: int, a: int, b: int, frame: int, depth: int, arena: array[int]) -> int:
        """The rest of a key, its value, and what completes the object of a frame."""
        if self._existentials:
            return TOO_LONG
        if q >= layout.OTHER_KEY:
            begun = BegunKey((a & layout.LOW32) - self._start, b)
            return self._undeclared(self.state(frame, depth, arena), begun)
        key = self._summary(q, b, frame, depth, arena)
        lengths = self._keys.get(key)
        if lengths is None:
            state = self.state(frame, depth, arena)
            lengths = self._declared(state, b)
            if lengths[1] is not None and not state.has_others:
                lengths = min(lengths[0], self._undeclared(state, lengths[1])), None
            if not state.has_others or not self._least:  # else it may depend on their names
                keep(self._keys, key, lengths)
        length, maybe = lengths
        return length if maybe is None else min(length, self._undeclared(self.state(frame, depth, arena), maybe))

    def _declared(self, state: ObjectState, b: int) -> tuple[int, BegunKey | None]:
        """The length with a declared key, and what an undeclared one that may be shorter has begun with."""
        lo, hi, offset = b & layout.MASK20, b >> 20 & layout.MASK20, b >> 40
        form, mask = self._form, self._mask(lo, hi)
        missing = self._missing(state.seen)
        for bit in bits_of(mask & missing):
            length = self._with(state, bit, offset)
            if length < TOO_LONG:
                return length, None
        optional = mask & form.allowed & ~state.seen & ~missing
        by_price: Iterator[int] = (bit for bit in self._names_by_price if optional >> bit & 1)
        if self._dependents:
            by_price = iter(self._values.objects.by_price(form, form.entries[lo:hi], state.seen, missing))
        lengths = (self._with(state, bit, offset) for bit in by_price)
        shortest = next((length for length in lengths if length < TOO_LONG), TOO_LONG)
        if form.others is None:
            return shortest, None
        return shortest, self._undeclared_from(form.texts[form.entries[lo]][:offset] if offset else b"")

    def _undeclared_from(self, text: bytes) -> BegunKey | None:
        """An undeclared key that has begun as declared ones do; None: there is none."""
        try:
            return self._begun[text]
        except KeyError:
            state = self._form.begun(text)
        key = None if state < 0 else BegunKey(state, key_hash(text), text)
        keep(self._begun, text, key)
        return key

    def _mask(self, lo: int, hi: int) -> int:
        """The bits of a range of entries."""
        mask = self._masks.get((lo, hi))
        if mask is None:
            mask = sum(1 << bit for bit in self._form.entries[lo:hi])
            keep(self._masks, (lo, hi), mask)
        return mask

    def _with(self, state: ObjectState, bit: int, offset: int) -> int:
        """The rest of a declared key, after byte ``offset``, its value, and what completes the object then."""
        if self._values.ordered and (state.has_others or state.seen >> bit):
            return TOO_LONG
        size, seen, met, others, depth, arena, fresh = state
        text = self._form.texts[bit]
        plain = len(text) == len(self._form.keys[bit]) - 3
        key = self._bytes_of(text[offset:] if plain else spelled(text[offset:])) + 1 + self._colon
        remaining = self.remaining(
            ObjectState(size + 1, seen | 1 << bit, met, others, depth, arena, fresh), layout.AFTER
        )
        return key + self._text(self._form.nodes[bit], depth) + remaining

    def _undeclared(self, state: ObjectState, begun: BegunKey) -> int:
        """The same with the cheapest undeclared key that begins so and is not there yet."""
        fresh = self._first_fresh(state, begun)
        if fresh is None:
            return TOO_LONG
        hashed = key_hash(fresh.text, begun.hashed) if fresh.text else begun.hashed
        size, seen, met, others, depth, arena, _ = state
        after = ObjectState(size + 1, seen, met, others, depth, arena, hashed)
        return fresh.length + self._text(fresh.node, state.depth) + self.remaining(after, layout.AFTER)

    def _first_fresh(self, state: ObjectState, begun: BegunKey) -> KeyRemainder | None:
        """The cheapest rest of an undeclared key that the object does not have, if it is one of the cheapest."""
        if self._form.others is None:
            return None
        for fresh in self._cheapest_keys(begun.state, 1):
            if self._is_fresh(state, begun, fresh.text):
                return fresh
        more = self._cheapest_keys(begun.state, MAX_FRESH)
        return next((fresh for fresh in more if self._is_fresh(state, begun, fresh.text)), None)

    def _is_fresh(self, state: ObjectState, begun: BegunKey, text: bytes) -> bool:
        hashed = key_hash(text, begun.hashed) if text else begun.hashed
        return not state.has(hashed) and (begun.text is None or begun.text + text not in self._form.names)

    def _cheapest_keys(self, state: int, count: int) -> list[KeyRemainder]:
        """Rests of undeclared keys from a state of their automaton, cheapest first, at least ``count`` if there are."""
        cheapest = self._fresh.get(state)
        if cheapest is None or len(cheapest) < count:
            others = self._form.others
            assert others is not None
            cheapest = [
                KeyRemainder(price, text, self._bytes_of(spelled(text)) + 1 + self._colon, others.nodes[label - 1])
                for price, text, label in self._values.objects.cheapest_keys(self._form, state, count)
            ]
            keep(self._fresh, state, cheapest)
        return cheapest
