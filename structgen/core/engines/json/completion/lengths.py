"""How long the completion of an output is, as a number that is kept and not as a text that is written.

What `completion.remaining_text` writes is pieces: the rest of a value or key, then what each open container lacks. Here
are the lengths of the same pieces, chosen alike, each kept by what it depends on; so a token costs a few look-ups.

Where the text may not be the first that is tried (an item may repeat one, an escape was begun), or where it takes more
thought (the key of an object with existentials), the length is `TOO_LONG`: not known here.
"""

from __future__ import annotations

from array import array

from structgen.core.engines.json.completion.cheapest_values import MAX_BYTES, Values
from structgen.core.engines.json.completion.cheapest_words import code_points, spelled
from structgen.core.engines.json.completion.completion_tables import EnumForm, ObjectForm, QuoteForm
from structgen.core.engines.json.completion.memo import keep
from structgen.core.engines.json.completion.object_lengths import ObjectLengths
from structgen.core.engines.json.completion.remaining_text import LITERALS, Counted, Index
from structgen.core.engines.json.value_graph.items import ArraySpec
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.scalars import StringSpec
from structgen.core.engines.protocols import TOO_LONG
from structgen.core.kernels.json import layout
from structgen.errors import CompletionTooLongError

# Configurations that are looked at: of the others, one may have a shorter text.
MAX_LOOKED = 16


class Lengths:
    """Lengths for the outputs of one grammar. Threads may share it: a race computes the same number twice.

    Args:
        missing: bytes that no token of the vocabulary spells alone.

    Attributes:
        all_spelled: whether no piece that was measured so far has such a byte.
    """

    def __init__(self, index: Index, values: Values, missing: bytes = b"") -> None:
        self._index, self._values, self._missing = index, values, missing
        self.all_spelled = True
        self._indented = values.line(0) != b""
        self._step = len(values.line(1)) - len(values.line(0))  # spaces of a level
        self._colon = len(values.colon)
        self._distinct = index.table[layout.H_UNIQUE] != 0
        self._nodes: dict[tuple[ValueNode, int], int] = {}
        self._scalars: dict[tuple[int, int], int] = {}
        self._suffixes: dict[tuple[int, int], tuple[int, int]] = {}
        self._arrays: dict[tuple[int, int, int], int] = {}
        self._objects: dict[int, ObjectLengths] = {}

    def bytes_of(self, text: bytes) -> int:
        """The length of a piece; notes what it is made of."""
        if self._missing and len(text.translate(None, self._missing)) < len(text):
            self.all_spelled = False
        return len(text)

    def least(self, threads: array[int], arena: array[int], remainders: dict[int, int]) -> int:
        """Bytes of the shortest text that completes one of the first configurations; `TOO_LONG` or more: not known.

        ``remainders`` keeps what follows a finished value in a frame, for as long as the arena holds the frame.
        """
        best = TOO_LONG
        for position in range(0, min(len(threads), 4 * MAX_LOOKED), 4):
            q, a, b, frame = threads[position : position + 4]
            length = self._completion(q, a, b, frame, arena, remainders)
            if length < best:
                best = length
        return best if best <= MAX_BYTES else TOO_LONG

    def _completion(self, q: int, a: int, b: int, frame: int, arena: array[int], remainders: dict[int, int]) -> int:
        if q >= layout.STRING:
            if q & 15:
                return TOO_LONG
            if q >= layout.KEY:
                return self._key(q, a, b, frame, arena) + self._after(arena[frame + layout.F_PARENT], arena, remainders)
            remaining = self._scalars.get((a, b)) or self._scalar(q, a, b)
        elif q == layout.AFTER:
            if self._distinct and frame >= 0:  # the item is finished, and is none of those before it
                return self._inner(q, frame, arena) + self._after(arena[frame + layout.F_PARENT], arena, remainders)
            remaining = 0
        elif q == layout.NUMBER:
            remaining = self._number(b)
        elif q in (layout.VALUE, layout.COLON):
            remaining = self._text(self._index.nodes[a], arena[frame + layout.F_DEPTH] if frame >= 0 else 0)
            remaining += self._colon if q == layout.COLON else 0
        elif q == layout.LITERAL:
            remaining = len(LITERALS[a]) - b
        elif q in (layout.OBJECT_FIRST, layout.ARRAY_FIRST, layout.KEY_NEXT):
            return self._inner(q, frame, arena) + self._after(arena[frame + layout.F_PARENT], arena, remainders)
        elif q == layout.CLOSE:
            return 1 + self._after(arena[frame + layout.F_PARENT], arena, remainders)
        else:  # spaces, perhaps after a newline
            target, node = a >> 40, a & ((1 << 40) - 1)
            return b + (q == layout.NEWLINE) + self._completion(target, node, 1, frame, arena, remainders)
        return remaining + self._after(frame, arena, remainders)

    # --- values ---
    def _text(self, node: ValueNode, depth: int) -> int:
        """A value of a node whose container is at ``depth``."""
        key = node, depth if self._indented else 0
        length = self._nodes.get(key)
        if length is None:
            try:
                length = self.bytes_of(self._values.text(node, depth))
            except CompletionTooLongError:
                length = TOO_LONG
            if length < TOO_LONG and not self._values.is_sure(node):
                length = TOO_LONG
            keep(self._nodes, key, length)
        return length

    def _number(self, state: int) -> int:
        """The rest of a number."""
        length = self._scalars.get((-1, state))
        if length is None:
            automaton, local = self._index.pool.number_at(state)
            length = self.bytes_of(automaton.shortest(local))
            keep(self._scalars, (-1, state), length)
        return length

    def _scalar(self, q: int, record: int, b: int) -> int:
        """The rest of a string, quote included, that is not known yet."""
        string = self._index.strings[record]
        if isinstance(string, EnumForm):
            length = self.bytes_of(string.remaining(b & layout.MASK20, b >> 20 & layout.MASK20, b >> 40)) + 1
        elif isinstance(string, QuoteForm):
            return self.bytes_of(string.completion(b)) + 1
        else:
            length = self._string(string, record, b)
        if isinstance(string, EnumForm) or b >> 32 == 0 or string.distances is not None:
            keep(self._scalars, (record, b), length)
        return length

    def _string(self, spec: StringSpec, record: int, b: int) -> int:
        values, state, read = self._values, (b & layout.LOW32) - self._index.table[record + layout.S_START], b >> 32
        suffix = self._suffixes.get((record, state))
        if suffix is None:
            text = values.words(spec.dfa).suffix(state)
            suffix = self.bytes_of(spelled(text)) + 1, code_points(text)
            keep(self._suffixes, (record, state), suffix)
        length, total = suffix[0], suffix[1] + read
        if spec.least <= total and (spec.distances is None or spec.most is None or total <= spec.most):
            return length
        try:
            return self.bytes_of(values.string_remainder(spec, state, read)) + 1
        except CompletionTooLongError:
            return TOO_LONG

    # --- containers ---
    def _after(self, frame: int, arena: array[int], remainders: dict[int, int]) -> int:
        """What follows a finished value in ``frame``, to the end of the output."""
        if frame < 0:
            return 0
        length = remainders.get(frame)
        if length is not None:
            return length
        chain, remaining = [frame], 0
        while (frame := arena[frame + layout.F_PARENT]) >= 0:
            kept = remainders.get(frame)
            if kept is not None:
                remaining = kept
                break
            chain.append(frame)
        for inner in reversed(chain):
            is_known = not (self._distinct and self._may_repeat(inner, arena))
            remaining += self._inner(layout.AFTER, inner, arena) if is_known else TOO_LONG
            keep(remainders, inner, remaining)
        return remaining

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
        depth = arena[frame + layout.F_DEPTH] if self._indented else 0
        if self._index.table[record + layout.R_KIND] == layout.R_OBJECT:
            lengths = self._objects.get(record) or self._object(record)
            return lengths.inner(q, frame, depth, arena)
        form = self._index.frames[record]
        assert not isinstance(form, ObjectForm)
        start = form.state if isinstance(form, Counted) else min(head >> 32, form.least)
        key = record, -1 if q == layout.ARRAY_FIRST else start, depth
        length = self._arrays.get(key)
        if length is None:
            length = self._array(record, form, start, q, depth)
            keep(self._arrays, key, length)
        return length

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
    def _object(self, record: int) -> ObjectLengths:
        """The lengths of the objects of a record."""
        form, start = self._index.frames[record], self._index.table[record + layout.O_START]
        assert isinstance(form, ObjectForm)
        lengths = self._objects[record] = ObjectLengths(
            form, start, self._values, self._text, self._separators, self.bytes_of
        )
        return lengths

    def _key(self, q: int, a: int, b: int, frame: int, arena: array[int]) -> int:
        """The rest of a key, its value, and what completes the object."""
        record = arena[frame] & layout.LOW32
        lengths = self._objects.get(record) or self._object(record)
        depth = arena[frame + layout.F_DEPTH] if self._indented else 0
        return lengths.key(q, a, b, frame, depth, arena)
