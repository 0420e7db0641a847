"""What is still to be written from a configuration of the machine: its own rest, then what each open container lacks.

Texts are pieces of `completion.cheapest_values`, innermost first.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from structgen.core.engines.json.completion.cheapest_values import MAX_BYTES, Values
from structgen.core.engines.json.completion.cheapest_words import spelled
from structgen.core.engines.json.completion.completion_tables import (
    EnumForm,
    Member,
    ObjectForm,
    Open,
    QuoteForm,
    key_hash,
)
from structgen.core.engines.json.completion.memo import keep
from structgen.core.engines.json.tables.arrays import JsonTables
from structgen.core.engines.json.tables.pool import AutomatonPool
from structgen.core.engines.json.value_graph.items import ArraySpec, CountedSpec
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.scalars import StringSpec
from structgen.core.kernels.json import layout
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import CompletionTooLongError

Arena = npt.NDArray[np.int64]
MAX_KEYS = 1_000  # undeclared keys that are looked at, to find one that is not used and leads on
LITERALS = (b"null", b"true", b"false")


class _Rows(Protocol):
    @property
    def pool(self) -> AutomatonPool: ...


class Tabled(Protocol):
    @property
    def tables(self) -> JsonTables: ...
    @property
    def rows(self) -> _Rows: ...
    @property
    def vocabulary(self) -> Vocabulary: ...


class Index:
    """What the places in a grammar's tables stand for."""

    def __init__(self, root: ValueNode, grammar: Tabled, values: Values) -> None:
        self.table = grammar.tables.grammar
        self.pool = grammar.rows.pool
        self.nodes: dict[int, ValueNode] = {}
        self.strings: dict[int, StringSpec | EnumForm | QuoteForm] = {}
        self.frames: dict[int, ObjectForm | ArraySpec | Counted] = {}
        self.kept: dict[tuple[int | bytes | bool, ...], bytes | None] = {}
        self._places = grammar.tables.places
        self.nodes[self._places[root]] = root
        reached = [root]
        for node in reached:
            for record, string in zip(self._records(node, layout.NODE_STRINGS), node.strings, strict=True):
                self.strings[record] = string if isinstance(string, StringSpec) else values.string_form(string)
            for record, spec in zip(self._records(node, layout.NODE_OBJECTS), node.objects, strict=True):
                self.frames[record] = values.object_form(spec)
            self._arrays(node)
            for child in node.children():
                if child.live and self._places[child] not in self.nodes:
                    self.nodes[self._places[child]] = child
                    reached.append(child)

    def _arrays(self, node: ValueNode) -> None:
        """A counted array has a record for each of its first choices, and further ones for its states."""
        records = iter(self._records(node, layout.NODE_ARRAYS))
        for spec in node.arrays:
            if isinstance(spec, ArraySpec):
                position = next(records)
                self.frames[position] = spec
                if spec.distinct is False:
                    self.frames[int(self.table[position + layout.A_PAIRED])] = spec
                continue
            choices = [after for _, after in spec.live_choices(0)]
            starts = [next(records) for _ in choices or [0]]
            reached = dict.fromkeys(starts, 0)
            waiting = list(reached)
            for position in waiting:
                self.frames[position] = Counted(spec, reached[position])
                first, count = int(self.table[position + layout.T_CHOICES]), int(self.table[position + layout.T_COUNT])
                afters = [after for _, after in spec.live_choices(reached[position])]
                if position in starts and choices:
                    afters = [choices[starts.index(position)]]
                for number, after in enumerate(afters[:count]):
                    record = int(self.table[first + 2 * number + 1])
                    if record not in reached:
                        reached[record] = after
                        waiting.append(record)

    def _records(self, node: ValueNode, field: int) -> list[int]:
        field_at = self._places[node] + field
        first, count = self.table[field_at : field_at + 2].tolist()
        records: list[int] = self.table[first : first + count].tolist()
        return records


class Counted(NamedTuple):
    """A state of a counted array."""

    spec: CountedSpec
    state: int


class RemainderWriter:
    """Texts for the configurations of one matcher, at one moment."""

    def __init__(self, index: Index, values: Values, arena: Arena) -> None:
        self._index = index
        self._values = values
        self._arena = arena
        self._outer: dict[int, bytes | None] = {-1: b""}

    def completion(self, q: int, a: int, b: int, frame: int) -> bytes | None:
        """What completes the output after a configuration; None if nothing does."""
        if q >= layout.KEY:
            return self._key(q, a, b, frame)
        if q in (layout.OBJECT_FIRST, layout.ARRAY_FIRST, layout.KEY_NEXT):
            piece, outer = self._inner(q, frame), self._after(self._parent(frame))
        elif q in (layout.PAD, layout.NEWLINE):
            spaces, target, node = b" " * b, a >> 40, a & ((1 << 40) - 1)
            piece, outer = b"\n" * (q == layout.NEWLINE) + spaces, self.completion(target, node, 1, frame)
        elif q == layout.CLOSE:
            closing = b"}" if isinstance(self._form(frame), ObjectForm) else b"]"
            piece, outer = closing, self._after(self._parent(frame))
        else:
            piece, outer = self._value(q, a, b, frame), self._after(frame)
        return None if piece is None or outer is None else joined((piece, outer))

    def next_item(self, q: int, a: int, b: int, frame: int) -> tuple[ValueNode, bytes, int, int] | None:
        """Of an array of distinct items: the next one's node, the text before it, how many there are, the depth."""
        if q in (layout.PAD, layout.NEWLINE):
            inner = self.next_item(a >> 40, a & ((1 << 40) - 1), 1, frame)
            lead = b"\n" * (q == layout.NEWLINE) + b" " * b
            return None if inner is None else (inner[0], lead + inner[1], *inner[2:])
        if frame < 0 or q not in (layout.VALUE, layout.AFTER, layout.ARRAY_FIRST):
            return None
        form, depth = self._form(frame), self._depth(frame)
        if isinstance(form, ObjectForm) or (form.spec if isinstance(form, Counted) else form).distinct is not True:
            return None
        count = int(self._arena[frame]) >> 32
        if q == layout.VALUE:
            return self._index.nodes[a], b"", count, depth
        spec, start = form if isinstance(form, Counted) else (form, count)
        nodes = self._values.items(spec, start=start)
        if not nodes:
            return None
        return nodes[0], (b"," if q == layout.AFTER else b"") + self._values.line(depth), count, depth

    def _value(self, q: int, a: int, b: int, frame: int) -> bytes:
        """The rest of a value."""
        index, values = self._index, self._values
        if q >= layout.STRING:
            string = index.strings[a & layout.LOW32]
            if isinstance(string, EnumForm):
                return string.remaining(b & layout.MASK20, b >> 20 & layout.MASK20, b >> 40) + b'"'
            if isinstance(string, QuoteForm):
                return string.completion(b) + b'"'
            start = int(index.table[(a & layout.LOW32) + layout.S_START])
            return values.string_remainder(string, (b & layout.LOW32) - start, b >> 32) + b'"'
        if q == layout.NUMBER:
            automaton, state = index.pool.number_at(b)
            return automaton.shortest(state)
        if q == layout.LITERAL:
            return LITERALS[a][b:]
        if q == layout.AFTER:
            return b""
        text = values.text(index.nodes[a], self._depth(frame))
        return text if q == layout.VALUE else values.colon + text

    # --- containers ---
    def _after(self, frame: int) -> bytes | None:
        """What follows a finished value in ``frame``, to the end of the output."""
        chain = []
        while frame not in self._outer:
            chain.append(frame)
            frame = self._parent(frame)
        for inner in reversed(chain):
            remaining, outer = self._inner(layout.AFTER, inner), self._outer[self._parent(inner)]
            self._outer[inner] = None if remaining is None or outer is None else joined((remaining, outer))
        return self._outer[chain[0] if chain else frame]

    def _inner(self, q: int, frame: int) -> bytes | None:
        """What completes the innermost container, closing bracket included."""
        form, depth = self._form(frame), self._depth(frame)
        lead = self._values.line(depth) if q != layout.KEY_NEXT else b""
        if q == layout.AFTER:
            lead = b"," + lead
        if not isinstance(form, ObjectForm):
            return self._array(form, int(self._arena[frame]) >> 32, q != layout.ARRAY_FIRST, depth, lead)
        return self._object(self._open(form, frame), depth, lead, q == layout.KEY_NEXT)

    def _array(self, form: ArraySpec | Counted, count: int, begun: bool, depth: int, lead: bytes) -> bytes | None:
        values = self._values
        spec, start = form if isinstance(form, Counted) else (form, count)
        nodes = values.items(spec, start=start)
        if nodes is None:
            return None
        if spec.distinct and sum(map(values.cost, nodes)) > MAX_BYTES:
            raise CompletionTooLongError.whole()
        if spec.distinct:
            items = values.distinct.texts(spec, start, nodes, depth)
        else:
            items = [values.text(node, depth) for node in nodes]
        text = lead + joined(items, b"," + values.line(depth)) if items else b""
        return text + (values.line(depth - 1) if begun or items else b"") + b"]"

    def _object(self, state: Open, depth: int, lead: bytes, forced: bool) -> bytes | None:
        values = self._values
        key = (id(state.form), state.size, state.seen, state.others, state.met, lead, forced, values.line(depth))
        try:
            return self._index.kept[key]
        except KeyError:
            plan = values.objects.plan(state, forced)
        text = None
        if plan is not None:
            members = [values.member(member, depth) for member in plan.members]
            text = lead + joined(members, b"," + values.line(depth)) if members else b""
            text += (values.line(depth - 1) if state.size or members else b"") + b"}"
        if plan is not None and (plan.declared or not state.others):
            keep(self._index.kept, key, text)
        return text

    # --- keys ---
    def _key(self, q: int, a: int, b: int, frame: int) -> bytes | None:
        """The rest of a key, its value, and all that follows."""
        form = self._form(frame)
        assert isinstance(form, ObjectForm)
        state = self._open(form, frame)
        outer = self._after(self._parent(frame))
        if outer is None:
            return None
        if q >= layout.OTHER_KEY:
            start = int(self._index.table[(int(self._arena[frame]) & layout.LOW32) + layout.O_START])
            text = self._undeclared(state, (a & layout.LOW32) - start, b, None, frame)
        else:
            lo, hi, offset = b & layout.MASK20, b >> 20 & layout.MASK20, b >> 40
            bits, missing = form.entries[lo:hi], form.missing(state.seen)
            # What is required has to be written anyway, so it comes before all that is only cheap.
            text = self._declared(state, sorted(bit for bit in bits if missing >> bit & 1), offset, frame)
            if text is None:
                by_price = self._values.objects.by_price(form, bits, state.seen, missing)
                declared = self._declared(state, by_price, offset, frame)
                begun = form.texts[form.entries[lo]][:offset] if offset else b""
                texts = (declared, self._begun_undeclared(state, begun, frame))
                text = min((text for text in texts if text is not None), key=len, default=None)
        return None if text is None else joined((text, outer))

    def _declared(self, state: Open, bits: list[int], offset: int, frame: int) -> bytes | None:
        """Complete the first of these declared keys that can be added; ``offset`` bytes of it are read."""
        form = state.form
        for bit in bits:
            if self._values.ordered and (state.others or state.seen >> bit):
                continue
            remaining = spelled(form.texts[bit][offset:]) + b'":'
            for node, meets in form.choices(bit):
                after = state._replace(size=state.size + 1, seen=state.seen | 1 << bit, met=state.met | meets)
                text = self._member(Member(remaining, node), after, frame)
                if text is not None:
                    return text
        return None

    def _begun_undeclared(self, state: Open, begun: bytes, frame: int) -> bytes | None:
        """Complete an undeclared key that so far spells the beginning of declared ones."""
        key_state = state.form.begun(begun)
        return None if key_state < 0 else self._undeclared(state, key_state, key_hash(begun), begun, frame)

    def _undeclared(self, state: Open, key_state: int, hashed: int, begun: bytes | None, frame: int) -> bytes | None:
        """Complete an undeclared key in state ``key_state`` of its automaton; ``begun``: text that declared ones
        share."""
        used = state.used()
        for text, label in self._fresh_keys(state, key_state, hashed, begun):
            for node, bits in state.form.other_choices(label):
                after = state._replace(size=state.size + 1, others=True, met=state.met | bits)
                after = after._replace(used=partial(frozenset, {*used, key_hash(text, hashed)}))
                member = self._member(Member(spelled(text) + b'":', node), after, frame)
                if member is not None:
                    return member
        return None

    def _fresh_keys(self, state: Open, key_state: int, hashed: int, begun: bytes | None) -> Iterator[tuple[bytes, int]]:
        """Rests of undeclared keys that the object does not have, with their class: the cheapest, or with existentials
        the shortest of each class, since one may lead on where another does not."""
        form, used, values = state.form, state.used(), self._values

        def is_fresh(text: bytes) -> bool:
            return key_hash(text, hashed) not in used and (begun is None or begun + text not in form.names)

        if not form.spec.existentials:
            keys = ((text, label) for _, text, label in islice(values.objects.other_keys(form, key_state), MAX_KEYS))
            yield from islice((key for key in keys if is_fresh(key[0])), 1)
            return
        assert form.others is not None
        others = []
        for label in range(1, len(form.others.nodes) + 1):
            texts = (text for _, text, _ in islice(form.keys_of_class(label).by_cost(key_state), MAX_KEYS))
            others += [(len(text), text, label) for text in islice(filter(is_fresh, texts), 1)]
        yield from ((text, label) for _, text, label in sorted(others))

    def _member(self, member: Member, after: Open, frame: int) -> bytes | None:
        """A member and what completes the object ``after`` it; None: nothing does, or it is too long."""
        depth = self._depth(frame)
        with suppress(CompletionTooLongError):
            remaining = self._object(after, depth, b"," + self._values.line(depth), False)
            return None if remaining is None else joined((self._values.member(member, depth), remaining))
        return None

    # --- frames ---
    def _form(self, frame: int) -> ObjectForm | ArraySpec | Counted:
        return self._index.frames[int(self._arena[frame]) & layout.LOW32]

    def _parent(self, frame: int) -> int:
        return int(self._arena[frame + layout.F_PARENT])

    def _depth(self, frame: int) -> int:
        return int(self._arena[frame + layout.F_DEPTH]) if frame >= 0 else 0

    def _open(self, form: ObjectForm, frame: int) -> Open:
        words = max(1, -(-len(form.keys) // layout.SEEN_BITS))
        head, _, _, _, others, *seen = self._arena[frame : frame + layout.F_SEEN + words].tolist()
        mask = sum(word << layout.SEEN_BITS * number for number, word in enumerate(seen))
        met = int(self._arena[frame + layout.F_SEEN + words]) if form.spec.existentials else 0
        return Open(form, head >> 32, mask, others >= 0, met, partial(hashes_below, self._arena, others))


def joined(texts: Sequence[bytes], separator: bytes = b"") -> bytes:
    """The texts, one after the other.

    Raises:
        CompletionTooLongError: they have more than `MAX_BYTES`, and are not put together.
    """
    if sum(map(len, texts)) + len(separator) * len(texts) > MAX_BYTES:
        raise CompletionTooLongError.whole()
    return separator.join(texts)


def hashes_below(arena: Arena | array[int], node: int) -> set[int]:
    """The undeclared keys of an object, from the root of their tree on."""
    hashes, waiting = set(), [node]
    while waiting:
        node = waiting.pop()
        if node >= 0:
            left, right, hashed = arena[node : node + layout.K_START].tolist()
            hashes.add(hashed)
            waiting += (left, right)
    return hashes
