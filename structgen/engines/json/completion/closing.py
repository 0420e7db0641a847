"""Short completions of an output from any state of its matcher.

A configuration of the machine (`structgen.kernels.json`) is read as what is still to be written: the rest of a
string, number or key, then what each open container lacks, innermost first. Each piece is a shortest one
(`completion.cheapest_values`); of several configurations the one with the shortest text decides. What comes out
is fed to the matcher before it is returned.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from structgen.engines.json.completion.cheapest_values import EnumForm, Member, ObjectForm, Open, Values, key_hash
from structgen.engines.json.completion.cheapest_words import spelled
from structgen.engines.json.goals.liveness import array_live, children, is_live, object_live
from structgen.engines.json.goals.node import GoalNode
from structgen.engines.json.goals.number_values import symbols
from structgen.engines.json.goals.specs import ArraySpec, CountedSpec, EnumSpec, StringSpec
from structgen.engines.json.tables.arrays import JsonTables
from structgen.engines.json.tables.pool import AutomatonPool
from structgen.errors import CompletionTooLongError, InternalError
from structgen.kernels.json import layout
from structgen.options import JsonOptions

Arena = npt.NDArray[np.int64]
# Rests of containers that are kept: of those whose text does not depend on which undeclared keys they have.
MAX_KEPT = 20_000
MAX_STEPS = 10_000
MAX_KEYS = 1_000  # undeclared keys that are looked at, to find one that is not used and leads on
_LITERALS = (b"null", b"true", b"false")
# Bytes to try inside an escape, in this order: any live one can be completed; "d" may begin a surrogate pair.
_ESCAPE_BYTES = [bytes([byte]) for byte in b'"\\/nrt0123456789abcefud']
# Bytes in the order in which one is taken where the cheapest value is an item already: what ends things first, blanks
# and what only respells a number or character last.
_PREFERRED = (
    b'"}],:1234567890tfnabcdeghijklmopqrsuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_/'
    + bytes(byte for byte in range(0x21, 0x5C) if not chr(byte).isalnum() and byte not in b'",-.+/:[')
    + bytes(byte for byte in range(0x5E, 0x7F) if not chr(byte).isalpha() and byte not in b"_{}")
    + bytes(range(0x80, 0x100))
    + b"{[.+\\ \n"
)
# Values that are tried for an item, beyond those that the array may have already, before it is written byte by byte.
MORE_TRIED = 64


class _Rows(Protocol):
    @property
    def pool(self) -> AutomatonPool: ...


class _Grammar(Protocol):
    @property
    def tables(self) -> JsonTables: ...
    @property
    def rows(self) -> _Rows: ...


class OpenOutput(Protocol):
    """What is needed of a `matcher.JsonMatcher`."""

    dropped: int

    @property
    def grammar(self) -> _Grammar: ...
    def configurations(self) -> tuple[npt.NDArray[np.int64], Arena]: ...
    def accept_bytes(self, data: bytes) -> bool: ...
    def is_accepting(self) -> bool: ...
    def next_bytes(self) -> npt.NDArray[np.bool_]: ...
    def rollback(self, steps: int = 1) -> None: ...


class JsonCompletions:
    """Completions of the outputs of one grammar. Threads may share it."""

    def __init__(self, root: GoalNode, options: JsonOptions) -> None:
        self._root = root
        self._values = Values(options)
        self._index: _Index | None = None

    def complete(self, matcher: OpenOutput) -> bytes:
        """A short text that completes the output: ``matcher.accept_bytes`` takes it and then the text may stop.

        Close to the shortest: see `completion.cheapest_values` for what is approximate, and of an escape that
        was begun any character may come that does. The matcher is left as it was. O(depth) for values whose goals
        were completed before.

        Raises:
            CompletionTooLongError: every text needs more characters, items or members than are written.
        """
        if self._index is None:
            self._index = _Index(self._root, matcher.grammar, self._values)
        text, steps, dropped = b"", 0, matcher.dropped
        cursors: dict[GoalNode, Iterator[bytes]] = {}
        try:
            while not matcher.is_accepting():
                threads, arena = matcher.configurations()
                if threads[0, 0] > layout.STRING and threads[0, 0] & 15:
                    pieces = list(self._escape_rests(threads, arena))
                else:
                    pieces = self._texts(threads, arena)
                piece = next((piece for piece in pieces if matcher.accept_bytes(piece)), None)
                if piece is None:  # most likely an item is there already
                    piece = self._other_item(matcher, threads, arena, cursors)
                piece = piece or _first_items(matcher, pieces) or self._next_byte(matcher, threads)
                if piece is None or steps > MAX_STEPS:
                    raise InternalError(f"no completion of {text!r:.200} from configurations {threads.tolist()}")
                text, steps = text + piece, steps + 1
            return text
        finally:
            matcher.rollback(steps)
            matcher.dropped = dropped

    def _texts(self, threads: npt.NDArray[np.int64], arena: Arena) -> list[bytes]:
        """A completion for each configuration, shortest first."""
        assert self._index is not None
        reader = _Reader(self._index, self._values, arena)
        texts = []
        for thread in threads.tolist():
            with suppress(CompletionTooLongError):
                texts.append(reader.completion(*thread))
        found = sorted((text for text in texts if text is not None), key=len)
        if not found:
            raise CompletionTooLongError("every text that completes the output is too long to be written to the end")
        return found

    def _other_item(
        self,
        matcher: OpenOutput,
        threads: npt.NDArray[np.int64],
        arena: Arena,
        cursors: dict[GoalNode, Iterator[bytes]],
    ) -> bytes | None:
        """Accept another value than the cheapest for the next item, by the configuration that is nearest to its end.

        ``cursors`` go on behind the values that were tried for earlier items, which repeat one of these.
        """
        assert self._index is not None
        reader = _Reader(self._index, self._values, arena)
        order = threads.tolist()
        if len(order) > 1:
            order.sort(key=lambda thread: len(reader.completion(*thread) or b"") or layout.LOW32)
        for thread in order:
            following = reader.next_item(*thread)
            if following is not None:
                node, lead, used, depth = following
                values = cursors.setdefault(node, self._values.distinct(node, depth))
                for value in islice(values, used + MORE_TRIED):
                    if matcher.accept_bytes(lead + value):
                        if _may_end(matcher, value):
                            return lead + value
                        matcher.rollback()
        return None

    def _next_byte(self, matcher: OpenOutput, threads: npt.NDArray[np.int64]) -> bytes | None:
        """Accept one byte, of those that end things first, and of a number one that leads to another value.

        For arrays of distinct items, where the cheapest repeats one.
        """
        following = matcher.next_bytes()
        if (threads[:, 0] == layout.NUMBER).all():
            pool, led = matcher.grammar.rows.pool, np.ones(256, np.bool_)
            led[list(b"0123456789+-.eE")] = False
            for state in threads[:, 2].tolist():
                led[list(symbols(*pool.number_at(state)))] = True
            following = following & led if (following & led).any() else following
        byte = next((bytes([byte]) for byte in _PREFERRED if following[byte]), None)
        return byte if byte is not None and matcher.accept_bytes(byte) else None

    def _escape_rests(self, threads: npt.NDArray[np.int64], arena: Arena) -> Iterator[bytes]:
        """What to try inside an escape: the rest of one for the character that is wanted most, then any next byte."""
        bodies = threads.copy()
        bodies[:, 0] &= ~15
        bodies[:, 1] &= layout.LOW32
        place, read = int(threads[0, 0]) & 15, int(threads[0, 1]) >> 32
        for text in self._texts(bodies, arena):
            for escape in _escapes_of(text):
                begun = _begun(place, read)
                if begun is not None and escape.startswith(begun):
                    yield escape[len(begun) :]
        yield from _ESCAPE_BYTES


def _may_end(matcher: OpenOutput, value: bytes) -> bool:
    """Whether a value that was accepted may end: a number that is there already can be the beginning of another."""
    return not value[-1:].isdigit() or bool(matcher.next_bytes()[list(b",]\n")].any())


def _first_items(matcher: OpenOutput, pieces: list[bytes]) -> bytes | None:
    """Accept of the first text that begins well as much as comes before the item that is there already."""
    for piece in pieces:
        taken, size = 0, 1
        while size:
            if matcher.accept_bytes(piece[: taken + size]):
                matcher.rollback()
                taken = min(taken + size, len(piece))
                size *= 2
            else:
                size //= 2
        start = max(piece.rfind(b",", 0, taken), piece.rfind(b"[", 0, taken)) + 1
        text = piece[: start or taken]
        if text and matcher.accept_bytes(text):
            return text
    return None


def _escapes_of(text: bytes) -> Iterator[bytes]:
    """Escapes of the first character of a string's rest (none if it ends there)."""
    if text[:1] == b'"':
        return
    if text[:1] == b"\\":
        first = text[: 6 if text[1:2] == b"u" else 2]
        yield first
        character = json.loads(b'"' + first + b'"')
    else:
        character = text[:4].decode(errors="ignore")[:1]
    units = character.encode("utf-16-be").hex()
    if units:
        yield "".join(f"\\u{units[place : place + 4]}" for place in range(0, len(units), 4)).encode()


def _begun(place: int, read: int) -> bytes | None:
    """The text of an escape so far, from its place and the digits read; None past a high surrogate."""
    if place == layout.ESCAPE:
        return b"\\"
    if place < layout.LOW_BACKSLASH:
        digits = place - layout.HEX
        return b"\\u" + (b"%04x" % read)[4 - digits :]
    return None


class _Index:
    """What the places in a grammar's tables stand for."""

    def __init__(self, root: GoalNode, grammar: _Grammar, values: Values) -> None:
        self.table = grammar.tables.grammar
        self.pool = grammar.rows.pool
        self.nodes: dict[int, GoalNode] = {}
        self.strings: dict[int, StringSpec | EnumForm] = {}
        self.frames: dict[int, ObjectForm | ArraySpec | Counted] = {}
        self.kept: dict[tuple[int | bytes | bool, ...], bytes | None] = {}
        self.nodes[root.offset] = root
        found = [root]
        for node in found:
            for place, string in zip(self._records(node, layout.NODE_STRINGS), node.strings, strict=True):
                self.strings[place] = values.enum_form(string) if isinstance(string, EnumSpec) else string
            objects = [spec for spec in node.objects if object_live(spec, is_live)]
            for place, spec in zip(self._records(node, layout.NODE_OBJECTS), objects, strict=True):
                self.frames[place] = values.object_form(spec)
            self._arrays(node)
            for child in children(node):
                if child.live and child.offset not in self.nodes:
                    self.nodes[child.offset] = child
                    found.append(child)

    def _arrays(self, node: GoalNode) -> None:
        """A counted array has a record for each of its first choices, and further ones for its states."""
        records = iter(self._records(node, layout.NODE_ARRAYS))
        for spec in node.arrays:
            if not array_live(spec, is_live):
                continue
            if isinstance(spec, ArraySpec):
                place = next(records)
                self.frames[place] = spec
                if spec.distinct is False:
                    self.frames[int(self.table[place + layout.A_PAIRED])] = spec
                continue
            choices = [after for child, after in spec.states[0].choices if child.live and spec.live[after]]
            starts = [next(records) for _ in choices or [0]]
            reached = dict.fromkeys(starts, 0)
            waiting = list(reached)
            for place in waiting:
                self.frames[place] = Counted(spec, reached[place])
                first, count = int(self.table[place + layout.T_CHOICES]), int(self.table[place + layout.T_COUNT])
                afters = [a for child, a in spec.states[reached[place]].choices if child.live and spec.live[a]]
                if place in starts and choices:
                    afters = [choices[starts.index(place)]]
                for number, after in enumerate(afters[:count]):
                    record = int(self.table[first + 2 * number + 1])
                    if record not in reached:
                        reached[record] = after
                        waiting.append(record)

    def _records(self, node: GoalNode, field: int) -> list[int]:
        first, count = self.table[node.offset + field : node.offset + field + 2].tolist()
        records: list[int] = self.table[first : first + count].tolist()
        return records

    def keep(self, key: tuple[int | bytes | bool, ...], text: bytes | None) -> None:
        if len(self.kept) >= MAX_KEPT:
            self.kept = {}
        self.kept[key] = text


class Counted(NamedTuple):
    """A state of a counted array."""

    spec: CountedSpec
    state: int


class _Reader:
    """Texts for the configurations of one matcher, at one moment."""

    def __init__(self, index: _Index, values: Values, arena: Arena) -> None:
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
        return None if piece is None or outer is None else piece + outer

    def next_item(self, q: int, a: int, b: int, frame: int) -> tuple[GoalNode, bytes, int, int] | None:
        """Of an array of distinct items: the next one's node, the text before it, how many there are, the depth."""
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
                return string.rest(b & layout.MASK20, b >> 20 & layout.MASK20, b >> 40) + b'"'
            start = int(index.table[(a & layout.LOW32) + layout.S_START])
            return values.string_rest(string, (b & layout.LOW32) - start, b >> 32) + b'"'
        if q == layout.NUMBER:
            automaton, state = index.pool.number_at(b)
            return automaton.shortest(state)
        if q == layout.LITERAL:
            return _LITERALS[a][b:]
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
            rest, outer = self._inner(layout.AFTER, inner), self._outer[self._parent(inner)]
            self._outer[inner] = None if rest is None or outer is None else rest + outer
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
        items = values.distinct_texts(nodes, depth) if spec.distinct else [values.text(node, depth) for node in nodes]
        text = lead + (b"," + values.line(depth)).join(items) if items else b""
        return text + (values.line(depth - 1) if begun or items else b"") + b"]"

    def _object(self, state: Open, depth: int, lead: bytes, forced: bool) -> bytes | None:
        values = self._values
        key = (id(state.form), state.size, state.seen, state.others, state.met, lead, forced, values.line(depth))
        try:
            return self._index.kept[key]
        except KeyError:
            plan = values.plan(state, forced)
        text = None
        if plan is not None:
            members = [values.member(member, depth) for member in plan.members]
            text = lead + (b"," + values.line(depth)).join(members) if members else b""
            text += (values.line(depth - 1) if state.size or members else b"") + b"}"
        if plan is not None and (plan.declared or not state.others):
            self._index.keep(key, text)
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
            lo, hi, at = b & layout.MASK20, b >> 20 & layout.MASK20, b >> 40
            bits, missing = form.entries[lo:hi], form.missing(state.seen)
            # What is required has to be written anyway, so it comes before all that is only cheap.
            text = self._declared(state, sorted(bit for bit in bits if missing >> bit & 1), at, frame)
            if text is None:
                declared = self._declared(state, self._by_price(state, bits, missing), at, frame)
                begun = form.texts[form.entries[lo]][:at] if at else b""
                found = (declared, self._begun_undeclared(state, begun, frame))
                text = min((text for text in found if text is not None), key=len, default=None)
        return None if text is None else text + outer

    def _by_price(self, state: Open, bits: list[int], missing: int) -> list[int]:
        """The optional ones among ``bits``, by what each adds with the keys that it asks for."""
        form = state.form
        free = form.allowed & ~state.seen & ~missing
        optional = [bit for bit in bits if free >> bit & 1]
        added = {bit: (1 << bit | form.dependents.get(bit, 0)) & free for bit in optional}
        return sorted(optional, key=lambda bit: self._values.price(form, added[bit]))

    def _declared(self, state: Open, bits: list[int], at: int, frame: int) -> bytes | None:
        """Complete the first of these declared keys that can be added; ``at`` bytes of it are read."""
        form = state.form
        for bit in bits:
            if self._values.ordered and (state.others or state.seen >> bit):
                continue
            rest = spelled(form.texts[bit][at:]) + b'":'
            for node, meets in form.ways(bit):
                after = state._replace(size=state.size + 1, seen=state.seen | 1 << bit, met=state.met | meets)
                text = self._member(Member(rest, node), after, frame)
                if text is not None:
                    return text
        return None

    def _begun_undeclared(self, state: Open, begun: bytes, frame: int) -> bytes | None:
        """Complete an undeclared key that so far spells the beginning of declared ones."""
        others = state.form.others
        if others is None:
            return None
        place = 0
        for byte in begun:
            place = int(others.transitions[place, byte])
            if place < 0:
                return None
        return self._undeclared(state, place, key_hash(begun), begun, frame)

    def _undeclared(self, state: Open, place: int, hashed: int, begun: bytes | None, frame: int) -> bytes | None:
        """Complete an undeclared key in state ``place`` of its automaton; ``begun``: text that declared ones share."""
        used = state.used()
        for text, label in self._fresh_keys(state, place, hashed, begun):
            for node, bits in state.form.other_ways(label):
                after = state._replace(size=state.size + 1, others=True, met=state.met | bits)
                after = after._replace(used=partial(frozenset, {*used, key_hash(text, hashed)}))
                found = self._member(Member(spelled(text) + b'":', node), after, frame)
                if found is not None:
                    return found
        return None

    def _fresh_keys(self, state: Open, place: int, hashed: int, begun: bytes | None) -> Iterator[tuple[bytes, int]]:
        """Rests of undeclared keys that the object does not have, with their class: the cheapest, or with obligations
        the shortest of each class, since one may lead on where another does not."""
        form, used, values = state.form, state.used(), self._values

        def is_fresh(text: bytes) -> bool:
            return key_hash(text, hashed) not in used and (begun is None or begun + text not in form.names)

        if not form.spec.duties:
            keys = ((text, label) for _, text, label in islice(values.other_keys(form, place), MAX_KEYS))
            yield from islice((key for key in keys if is_fresh(key[0])), 1)
            return
        assert form.others is not None
        found = []
        for label in range(1, len(form.others.nodes) + 1):
            texts = (text for _, text, _ in islice(form.keys_of_class(label).by_cost(place), MAX_KEYS))
            found += [(len(text), text, label) for text in islice(filter(is_fresh, texts), 1)]
        yield from ((text, label) for _, text, label in sorted(found))

    def _member(self, member: Member, after: Open, frame: int) -> bytes | None:
        """A member and what completes the object ``after`` it."""
        depth = self._depth(frame)
        rest = self._object(after, depth, b"," + self._values.line(depth), False)
        return None if rest is None else self._values.member(member, depth) + rest

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
        mask = sum(word << layout.SEEN_BITS * place for place, word in enumerate(seen))
        met = int(self._arena[frame + layout.F_SEEN + words]) if form.spec.duties else 0
        return Open(form, head >> 32, mask, others >= 0, met, partial(self._hashes, others))

    def _hashes(self, place: int) -> set[int]:
        """The undeclared keys of an object."""
        found, waiting = set(), [place]
        while waiting:
            place = waiting.pop()
            if place >= 0:
                left, right, hashed = self._arena[place : place + layout.K_START].tolist()
                found.add(hashed)
                waiting += (left, right)
        return found
