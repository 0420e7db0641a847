"""Texts that are likely to come next, for drafts: keys in the order in which a schema declares them, brackets and
quotes that a value begins with, enumerated words, the least that a pattern asks for, in the writer's own habits of
spacing.

Guesses only: what a text is worth is for the model to say, and whether it is allowed for the machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

from structgen.core.engines.json.completion.cheapest_words import spelled
from structgen.core.engines.json.completion.completion_tables import EnumForm, ObjectForm, Open, QuoteForm
from structgen.core.engines.json.completion.remaining_text import LITERALS, Counted, RemainderWriter
from structgen.core.engines.json.value_graph.items import ArraySpec
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.scalars import EnumSpec, StringSpec
from structgen.core.kernels.json import layout
from structgen.errors import CompletionTooLongError

MAX_TEXTS, MAX_WORDS = 6, 4
MAX_ENDS = 4  # brackets at once
LIKELY_LITERALS = (b"true", b"false", b"null")
_AFTER_COMMA = re.compile(rb'[\]}"\w],( ?)["{\[\w-]')
_AFTER_COLON = re.compile(rb'":( ?)["{\[\w-]')


class Spacing:
    """Where a writer puts spaces: what stands last after a colon and a comma; both ways where neither was seen."""

    def __init__(self, written: bytes) -> None:
        self.comma, self.colon = (_habits(expression, written) for expression in (_AFTER_COMMA, _AFTER_COLON))


def _habits(expression: re.Pattern[bytes], written: bytes) -> tuple[bytes, bytes]:
    separators = expression.findall(written)
    return (b" ", b"") if not separators or separators[-1] else (b"", b" ")


class LikelyTexts(RemainderWriter):
    """What may come next in the configurations of one matcher, at one moment; the likeliest first."""

    def after(self, q: int, a: int, b: int, frame: int, spacing: Spacing) -> list[bytes]:
        """Texts that may follow a configuration, at most ``MAX_TEXTS``; none within free text and numbers."""
        return list(islice(dict.fromkeys(self._after_state(q, a, b, frame, spacing)), MAX_TEXTS))

    def _after_state(self, q: int, a: int, b: int, frame: int, spacing: Spacing) -> Iterator[bytes]:
        form = self._form(frame) if frame >= 0 else None
        if q == layout.KEY:
            assert isinstance(form, ObjectForm)
            state, offset = self._open(form, frame), b >> 40
            entries = set(form.entries[b & layout.MASK20 : b >> 20 & layout.MASK20])
            for bit in self._next_bits(state):
                if bit in entries:
                    yield from self._members(form, bit, offset, b"", spacing)
        elif q in (layout.OBJECT_FIRST, layout.KEY_NEXT) and isinstance(form, ObjectForm):
            leads = spacing.comma if q == layout.KEY_NEXT else (b"",)
            for bit in self._next_bits(self._open(form, frame)):
                for lead in leads:
                    yield from self._members(form, bit, 0, lead + b'"', spacing)
        elif q == layout.AFTER and isinstance(form, ObjectForm):
            state = self._open(form, frame)
            if not form.missing(state.seen):
                yield from self._ends(frame)
            for bit in self._next_bits(state):
                yield from self._members(form, bit, 0, b"," + spacing.comma[0] + b'"', spacing)
        elif q in (layout.ARRAY_FIRST, layout.AFTER) and form is not None:
            comma = b"" if q == layout.ARRAY_FIRST else b"," + spacing.comma[0]
            yield from (comma + begun for begun in self._items(form, frame))
            yield from self._ends(frame)
        elif q == layout.NUMBER:  # which may end here
            yield from self._after_state(layout.AFTER, 0, 0, frame, spacing)
        elif q == layout.COLON:
            for begun in self._beginnings(self._index.nodes[a]):
                yield from (b":" + lead + begun for lead in spacing.colon)
        elif q == layout.VALUE:
            leads = (b"",) if frame < 0 else spacing.colon if isinstance(form, ObjectForm) else spacing.comma
            for begun in self._beginnings(self._index.nodes[a]):
                yield from (lead + begun for lead in leads)
        elif q == layout.STRING:
            string, length = self._index.strings[a & layout.LOW32], b >> 32
            if isinstance(string, StringSpec) and string.dfa is not None:
                start = int(self._index.table[(a & layout.LOW32) + layout.S_START])
                with suppress(CompletionTooLongError):
                    yield self._values.string_remainder(string, (b & layout.LOW32) - start, length) + b'"'
        elif layout.ENUM <= q < layout.KEY:
            string = self._index.strings[a & layout.LOW32]
            if isinstance(string, EnumForm):
                lo, hi, offset = b & layout.MASK20, b >> 20 & layout.MASK20, b >> 40
                yield from (spelled(text[offset:]) + b'"' for text in string.texts[lo : min(hi, lo + MAX_WORDS)])
            elif isinstance(string, QuoteForm):
                yield from string.continuations(b)

    def _next_bits(self, state: Open) -> Iterator[int]:
        """Declared keys that may come next: in declared order from the last one on, else those not seen."""
        form, ordered = state.form, self._values.ordered
        if ordered and state.others:
            return
        missing = form.missing(state.seen)
        for bit in range(state.seen.bit_length() if ordered else 0, len(form.keys)):
            if form.allowed >> bit & 1 and not state.seen >> bit & 1:
                yield bit
                if ordered and missing >> bit & 1:  # nothing stands after what has to come first
                    return

    def _ends(self, frame: int) -> Iterator[bytes]:
        """The bracket that closes a container; before it, together with those of containers around it that lack
        nothing then, which tokens mostly spell at once."""
        text = first = b"}" if isinstance(self._form(frame), ObjectForm) else b"]"
        while len(text) < MAX_ENDS and (frame := self._parent(frame)) >= 0:
            form = self._form(frame)
            if isinstance(form, ObjectForm) and form.missing(self._open(form, frame).seen):
                break
            text += b"}" if isinstance(form, ObjectForm) else b"]"
        yield text
        yield first

    def _items(self, form: ObjectForm | ArraySpec | Counted, frame: int) -> list[bytes]:
        """How the next item of an array begins."""
        item_state = int(self._arena[frame]) >> 32
        return self._beginnings(form.item(item_state)) if isinstance(form, ArraySpec) else []

    def _members(self, form: ObjectForm, bit: int, offset: int, lead: bytes, spacing: Spacing) -> Iterator[bytes]:
        """A declared key from its byte ``offset`` on, and what its value begins with."""
        key = lead + spelled(form.texts[bit][offset:]) + b'":'
        beginnings = self._beginnings(form.nodes[bit])
        if len(beginnings) == 1:
            yield from (key + space + beginnings[0] for space in spacing.colon)
        else:
            yield key

    def _beginnings(self, node: ValueNode) -> list[bytes]:
        """How the values of a node begin, if there are few ways."""
        beginnings = [literal for literal in LIKELY_LITERALS if node.flags >> LITERALS.index(literal) & 1]
        words = [word for spec in node.strings if isinstance(spec, EnumSpec) for word in spec.values]
        if words and len(words) <= MAX_WORDS and all(isinstance(spec, EnumSpec) for spec in node.strings):
            beginnings += [b'"' + spelled(word.encode("utf-8", "surrogatepass")) + b'"' for word in words]
        elif node.strings:
            beginnings.append(b'"')
        beginnings += [b"{"] * bool(node.objects) + [b"["] * bool(node.arrays)
        return beginnings if not node.numbers else []
