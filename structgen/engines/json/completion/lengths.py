"""How long the completion of an output is, as a number that is kept and not as a text that is written.

What `completion.rests` writes is pieces: the rest of a value or key, then what each open container lacks. Here are the
lengths of the same pieces, chosen alike, each kept by what it depends on; so a token costs a few look-ups.

Where the text may not be the first that is tried (an item may repeat one, an escape was begun), or where it takes more
thought (the key of an object with obligations), the length is `TOO_LONG`: not known here.
"""

from __future__ import annotations

from array import array
from itertools import islice
from typing import NamedTuple, TypeVar

from structgen.engines.json.completion.cheapest_values import EnumForm, ObjectForm, Open, Values, key_hash
from structgen.engines.json.completion.cheapest_words import code_points, spelled
from structgen.engines.json.completion.rests import LITERALS, MAX_KEPT, Counted, Index, hashes_below
from structgen.engines.json.goals.node import GoalNode
from structgen.engines.json.goals.specs import ArraySpec, StringSpec
from structgen.engines.protocols import TOO_LONG
from structgen.errors import CompletionTooLongError
from structgen.kernels.json import layout

# Configurations that are looked at: of the others, one may have a shorter text.
MAX_LOOKED = 16
MAX_FRESH = 4  # undeclared keys that are kept for each state: most likely the object has not got all of them
K = TypeVar("K")
V = TypeVar("V")


class _Object(NamedTuple):
    """An object under way, as `Open` has it: ``others`` is the root of its undeclared keys, ``fresh`` one more."""

    form: ObjectForm
    size: int
    seen: int
    met: int
    others: int
    depth: int
    arena: array[int]
    fresh: int | None = None

    @property
    def summary(self) -> tuple[int, ...]:
        """What the cheapest members depend on that complete it, but for the names of undeclared keys."""
        spec = self.form.spec
        size = self.size if spec.least or spec.most is not None or spec.duties else -1
        return id(self.form), size, self.seen, self.met, self.has_others, self.depth

    @property
    def has_others(self) -> bool:
        return self.others >= 0 or self.fresh is not None

    def has(self, hashed: int) -> bool:
        """Whether it has the undeclared key with this hash."""
        place, turn = self.others, hashed
        while place >= 0 and self.arena[place + layout.K_HASH] != hashed:
            place = self.arena[place + layout.K_LEFT + (turn & 1)]
            turn >>= 1
        return place >= 0

    def used(self) -> set[int]:
        """The hashes of its undeclared keys."""
        found = hashes_below(self.arena, self.others)
        return found if self.fresh is None else {*found, self.fresh}


class _Begun(NamedTuple):
    """The beginning of an undeclared key: state of their automaton, hash, and the text if it may be a declared's."""

    state: int
    hashed: int
    text: bytes = b""


class Lengths:
    """Lengths for the outputs of one grammar. Threads may share it: a race computes the same number twice."""

    def __init__(self, index: Index, values: Values) -> None:
        self._index, self._values = index, values
        self._indented = values.line(0) != b""
        self._step = len(values.line(1)) - len(values.line(0))  # spaces of a level
        self._colon = len(values.colon)
        self._distinct = index.table[layout.H_UNIQUE] != 0
        self._nodes: dict[tuple[int, int], int] = {}
        self._scalars: dict[tuple[int, int], int] = {}
        self._suffixes: dict[tuple[int, int], tuple[int, int]] = {}
        self._arrays: dict[tuple[int, int, int], int] = {}
        self._objects: dict[tuple[int, ...], int] = {}
        self._keys: dict[tuple[int, ...], tuple[int, _Begun | None]] = {}
        self._fresh: dict[tuple[int, int], list[tuple[bytes, int]]] = {}

    def least(self, threads: array[int], arena: array[int], rests: dict[int, int]) -> int:
        """Bytes of the shortest text that completes one of the first configurations; `TOO_LONG` or more: not known.

        ``rests`` keeps what follows a finished value in a frame, for as long as the arena holds the frame.
        """
        best = TOO_LONG
        for place in range(0, min(len(threads), 4 * MAX_LOOKED), 4):
            q, a, b, frame = threads[place : place + 4]
            length = self._completion(q, a, b, frame, arena, rests)
            if length < best:
                best = length
        return best

    def _completion(self, q: int, a: int, b: int, frame: int, arena: array[int], rests: dict[int, int]) -> int:
        if q >= layout.STRING:
            if q & 15:
                return TOO_LONG
            if q >= layout.KEY:
                return self._key(q, a, b, frame, arena) + self._after(arena[frame + layout.F_PARENT], arena, rests)
            rest = self._scalars.get((a, b)) or self._scalar(q, a, b)
        elif q == layout.AFTER:
            if self._distinct and frame >= 0:  # the item is finished, and is none of those before it
                return self._inner(q, frame, arena) + self._after(arena[frame + layout.F_PARENT], arena, rests)
            rest = 0
        elif q == layout.NUMBER:
            rest = self._number(b)
        elif q in (layout.VALUE, layout.COLON):
            rest = self._node(a, arena[frame + layout.F_DEPTH] if frame >= 0 else 0)
            rest += self._colon if q == layout.COLON else 0
        elif q == layout.LITERAL:
            rest = len(LITERALS[a]) - b
        elif q in (layout.OBJECT_FIRST, layout.ARRAY_FIRST, layout.KEY_NEXT):
            return self._inner(q, frame, arena) + self._after(arena[frame + layout.F_PARENT], arena, rests)
        elif q == layout.CLOSE:
            return 1 + self._after(arena[frame + layout.F_PARENT], arena, rests)
        else:  # spaces, perhaps behind a newline
            target, node = a >> 40, a & ((1 << 40) - 1)
            return b + (q == layout.NEWLINE) + self._completion(target, node, 1, frame, arena, rests)
        return rest + self._after(frame, arena, rests)

    # --- values ---
    def _node(self, place: int, depth: int) -> int:
        """A value of the node at a place of the tables, whose container is at ``depth``."""
        key = place, depth if self._indented else 0
        found = self._nodes.get(key)
        if found is None:
            found = self._text(self._index.nodes[place], depth)
            _keep(self._nodes, key, found)
        return found

    def _text(self, node: GoalNode, depth: int) -> int:
        try:
            text = self._values.text(node, depth)
        except CompletionTooLongError:
            return TOO_LONG
        return TOO_LONG if self._distinct and self._values.may_repeat(node) else len(text)

    def _number(self, state: int) -> int:
        """The rest of a number."""
        found = self._scalars.get((-1, state))
        if found is None:
            automaton, local = self._index.pool.number_at(state)
            found = len(automaton.shortest(local))
            _keep(self._scalars, (-1, state), found)
        return found

    def _scalar(self, q: int, record: int, b: int) -> int:
        """The rest of a string, quote included, that is not known yet."""
        string = self._index.strings[record]
        if isinstance(string, EnumForm):
            found = len(string.rest(b & layout.MASK20, b >> 20 & layout.MASK20, b >> 40)) + 1
        else:
            found = self._string(string, record, b)
        if isinstance(string, EnumForm) or b >> 32 == 0 or string.distances is not None:
            _keep(self._scalars, (record, b), found)
        return found

    def _string(self, spec: StringSpec, record: int, b: int) -> int:
        values, state, read = self._values, (b & layout.LOW32) - self._index.table[record + layout.S_START], b >> 32
        known = self._suffixes.get((record, state))
        if known is None:
            text = values.words(spec.dfa).suffix(state)
            known = len(spelled(text)) + 1, code_points(text)
            _keep(self._suffixes, (record, state), known)
        length, total = known[0], known[1] + read
        if spec.least <= total and (spec.distances is None or spec.most is None or total <= spec.most):
            return length
        try:
            return len(values.string_rest(spec, state, read)) + 1
        except CompletionTooLongError:
            return TOO_LONG

    # --- containers ---
    def _after(self, frame: int, arena: array[int], rests: dict[int, int]) -> int:
        """What follows a finished value in ``frame``, to the end of the output."""
        if frame < 0:
            return 0
        found = rests.get(frame)
        if found is not None:
            return found
        chain, rest = [frame], 0
        while (frame := arena[frame + layout.F_PARENT]) >= 0:
            known = rests.get(frame)
            if known is not None:
                rest = known
                break
            chain.append(frame)
        for inner in reversed(chain):
            rest += (
                TOO_LONG
                if self._distinct and self._may_repeat(inner, arena)
                else self._inner(layout.AFTER, inner, arena)
            )
            _keep(rests, inner, rest)
        return rest

    def _may_repeat(self, frame: int, arena: array[int]) -> bool:
        """Whether there are items that the one that was begun may not be equal to."""
        record, table = arena[frame] & layout.LOW32, self._index.table
        if table[record + layout.R_KIND] == layout.R_OBJECT:
            return False
        return table[record + layout.A_UNIQUE] != 0 and arena[frame + layout.F_OTHERS] >= 0

    def _inner(self, q: int, frame: int, arena: array[int]) -> int:
        """What completes the innermost container, closing bracket included."""
        head = arena[frame]
        record = head & layout.LOW32
        form = self._index.frames[record]
        if isinstance(form, ObjectForm):
            return self._object(self._open(form, frame, arena), q)
        start = form.state if isinstance(form, Counted) else min(head >> 32, form.least)
        depth = arena[frame + layout.F_DEPTH] if self._indented else 0
        key = record, -1 if q == layout.ARRAY_FIRST else start, depth
        found = self._arrays.get(key)
        if found is None:
            found = self._array(record, form, start, q, depth)
            _keep(self._arrays, key, found)
        return found

    def _array(self, record: int, form: ArraySpec | Counted, start: int, q: int, depth: int) -> int:
        nodes = self._values.items(form.spec if isinstance(form, Counted) else form, start=start)
        unique = self._index.table[record + layout.A_UNIQUE]
        if nodes is None or unique == layout.PAIRED or (unique and nodes and (q == layout.AFTER or len(nodes) > 1)):
            return TOO_LONG
        return sum(self._text(node, depth) for node in nodes) + self._separators(len(nodes), q, depth)

    def _separators(self, parts: int, q: int, depth: int) -> int:
        """Commas, lines and the closing bracket around so many parts more of a container at ``depth``."""
        commas = parts if q == layout.AFTER else max(parts - 1, 0)
        if not self._indented:
            return commas + 1
        lines = (max(parts - 1, 0) if q == layout.KEY_NEXT else parts) * (1 + self._step * depth)
        return commas + lines + (1 + self._step * (depth - 1) if parts or q == layout.AFTER else 0) + 1

    # --- objects ---
    def _open(self, form: ObjectForm, frame: int, arena: array[int]) -> _Object:
        """The object of a frame."""
        first, words = frame + layout.F_SEEN, max(1, -(-len(form.keys) // layout.SEEN_BITS))
        seen = arena[first]
        for place in range(1, words):
            seen |= arena[first + place] << layout.SEEN_BITS * place
        met = arena[first + words] if form.spec.duties else 0
        depth = arena[frame + layout.F_DEPTH] if self._indented else 0
        return _Object(form, arena[frame] >> 32, seen, met, arena[frame + layout.F_OTHERS], depth, arena)

    def _object(self, state: _Object, q: int) -> int:
        """What completes an object."""
        key = (*state.summary, q)
        found = self._objects.get(key)
        if found is None:
            opened = Open(state.form, state.size, state.seen, state.has_others, state.met, state.used)
            plan = self._values.plan(opened, q == layout.KEY_NEXT)
            if plan is None:
                return TOO_LONG
            found = self._separators(len(plan.members), q, state.depth)
            for member in plan.members:
                found += len(member.key) + self._colon - 1 + self._text(member.node, state.depth)
            if plan.declared or not state.has_others:
                _keep(self._objects, key, found)
        return found

    # --- keys ---
    def _key(self, q: int, a: int, b: int, frame: int, arena: array[int]) -> int:
        """The rest of a key, its value, and what completes the object."""
        record = arena[frame] & layout.LOW32
        form = self._index.frames[record]
        assert isinstance(form, ObjectForm)
        if form.spec.duties:
            return TOO_LONG
        state = self._open(form, frame, arena)
        if q >= layout.OTHER_KEY:
            return self._undeclared(state, _Begun((a & layout.LOW32) - self._index.table[record + layout.O_START], b))
        key = (*state.summary, b)
        found = self._keys.get(key)
        if found is None:
            found = self._declared(state, b)
            _keep(self._keys, key, found)
        length, begun = found
        return length if begun is None else min(length, self._undeclared(state, begun))

    def _declared(self, state: _Object, b: int) -> tuple[int, _Begun | None]:
        """The length with a declared key, and what an undeclared one that may be shorter has begun with."""
        lo, hi, at = b & layout.MASK20, b >> 20 & layout.MASK20, b >> 40
        form = state.form
        bits, missing = form.entries[lo:hi], form.missing(state.seen)
        for bit in sorted(bit for bit in bits if missing >> bit & 1):
            length = self._member(state, bit, at)
            if length < TOO_LONG:
                return length, None
        by_price = self._values.by_price(form, bits, state.seen, missing)
        lengths = (self._member(state, bit, at) for bit in by_price)
        shortest = next((length for length in lengths if length < TOO_LONG), TOO_LONG)
        begun = form.texts[form.entries[lo]][:at] if at else b""
        place = form.begun(begun)
        return shortest, None if place < 0 else _Begun(place, key_hash(begun), begun)

    def _member(self, state: _Object, bit: int, at: int) -> int:
        """The rest of a declared key, behind byte ``at``, its value, and what completes the object then."""
        form = state.form
        if self._values.ordered and (state.has_others or state.seen >> bit):
            return TOO_LONG
        after = state._replace(size=state.size + 1, seen=state.seen | 1 << bit)
        value = self._text(form.nodes[bit], state.depth)
        return len(spelled(form.texts[bit][at:])) + 1 + self._colon + value + self._object(after, layout.AFTER)

    def _undeclared(self, state: _Object, begun: _Begun) -> int:
        """The same with the cheapest undeclared key that begins so and is not there yet."""
        form = state.form
        assert form.others is not None
        key = id(form), begun.state
        known = self._fresh.get(key)
        if known is None:
            words = islice(self._values.other_keys(form, begun.state), MAX_FRESH)
            known = [(text, label) for _, text, label in words]
            _keep(self._fresh, key, known)
        for text, label in known:
            hashed = key_hash(text, begun.hashed)
            if not state.has(hashed) and begun.text + text not in form.names:
                value = self._text(form.others.nodes[label - 1], state.depth)
                after = state._replace(size=state.size + 1, fresh=hashed)
                return len(spelled(text)) + 1 + self._colon + value + self._object(after, layout.AFTER)
        return TOO_LONG


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    if len(kept) >= MAX_KEPT:
        kept.clear()
    kept[key] = value
