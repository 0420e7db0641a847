"""A simple schema within what a target reads: the second half of lowering.

Each part becomes three things together: what is sent, what it means in plain 2020-12, and how values lead from one to
the other. So no rule has to be trusted: a containment question compares what is meant with the original.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from structgen.core.answers.targets.loops import reached
from structgen.core.answers.targets.mapping import (
    ENTRIES,
    KEY,
    SAME,
    VALUE,
    AnythingShape,
    ArrayShape,
    FoldedShape,
    MapShape,
    NamedShape,
    ObjectShape,
    Shape,
    TextShape,
    TupleShape,
    UnionBranch,
    UnionShape,
    WrappedShape,
)
from structgen.core.answers.targets.simple import SimpleSchema
from structgen.core.answers.targets.table import SchemaTarget
from structgen.core.answers.targets.written import Simple, references, union_of
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.lowering import Lowered
from structgen.options import JsonOptions

ANYTHING = "anything"
MAX_PIECES = 20_000
"""Parts written; beyond them definitions that lead to themselves are not unrolled."""
MAX_UNROLLED = 2
"""Definitions within each other that are written out, where they may not lead to themselves."""
_ENUM_TYPES = {type(None): "null", bool: "boolean", str: "string"}


@dataclass(frozen=True)
class Piece:
    """One part: what is sent, what it means, and how values are mapped."""

    sent: Simple
    meant: Simple
    shape: Shape = SAME


@dataclass(frozen=True)
class Where:
    """Where in the simple schema: pointer, levels above, definitions that are being written out."""

    pointer: str = ""
    depth: int = 0
    unrolled: tuple[str, ...] = ()

    def inner(self, step: str, levels: int = 1) -> Where:
        """A part of it."""
        return replace(self, pointer=f"{self.pointer}/{step}", depth=self.depth + levels)


class Adapting:
    """Writes one simple schema for one target.

    Args:
        max_depth: levels of objects and arrays; deeper ones are sent as JSON text. None: any.

    Attributes:
        lost: (pointer in the simple schema, why). ``root``: the whole; None: no value.
    """

    def __init__(self, simple: SimpleSchema, target: SchemaTarget, max_depth: int | None) -> None:
        self._target, self._definitions, self._max_depth = target, simple.definitions, max_depth
        self.lost: list[tuple[str, str]] = []
        self._sent: dict[str, Simple] = {}
        self._meant: dict[str, Simple] = {}
        self._shapes: dict[str, Shape] = {}
        self._counts = {"optional": 0, "unions": 0, "enum_values": 0, "pieces": 0}
        self._notes: list[str] = []
        self._cyclic = _cyclic(simple.definitions, target)
        self.root = self._whole(simple.root)

    def _lose(self, where: Where, why: str) -> None:
        if (where.pointer, why) not in self.lost:
            self.lost.append((where.pointer, why))

    def _is_spent(self, name: str, more: int = 1) -> bool:
        limit = self._target.limits.get(name)
        return limit is not None and self._counts[name] + more > limit

    # --- the whole ---
    def _whole(self, simple: Simple | None) -> Piece | None:
        piece = None if simple is None else self._piece(simple, Where())
        if piece is None:
            return None
        name = piece.sent.get("$ref", "").rpartition("/")[2]
        if name in self._shapes:  # at the root some read no definitions next to $ref
            piece = Piece(self._sent[name], self._meant[name], self._shapes[name])
        if self._target.object_root and piece.sent.get("type") != "object":
            members = {VALUE: piece.sent}
            sent = {"type": "object", "properties": members, "required": [VALUE], "additionalProperties": False}
            piece = Piece(sent, piece.meant, WrappedShape(piece.shape))
        return Piece(_with(piece.sent, self._sent), _with(piece.meant, self._meant), piece.shape)

    # --- parts ---
    def _piece(self, simple: Simple, where: Where) -> Piece | None:
        """One part, with its texts; None: it has no value."""
        self._counts["pieces"] += 1
        outer, self._notes = self._notes, []
        piece = self._by_kind(simple, where)
        notes, self._notes = self._notes, outer
        if piece is None or piece.sent.keys() == {"$ref"}:
            return piece
        title, description = simple.get("title"), simple.get("description", "")
        texts = {"title": title} if title else {}
        said = " ".join(filter(None, [description, f"({'; '.join(notes)})" if notes else ""]))
        texts |= {"description": said} if said else {}
        return replace(piece, sent={**piece.sent, **texts})

    def _by_kind(self, simple: Simple, where: Where) -> Piece | None:
        if "$ref" in simple:
            return self._reference(simple["$ref"].rpartition("/")[2], where)
        if "anyOf" in simple:
            return self._union(simple["anyOf"], where)
        if "enum" in simple:
            return self._enumeration(simple["enum"], where)
        write: Mapping[str, Callable[[Simple, Where], Piece | None]] = {
            "object": self._object, "array": self._array, "string": self._string,
            "number": self._number, "integer": self._number,
        }  # fmt: skip
        kind = simple.get("type")
        if kind is None:
            return self._anything(where)
        if kind in ("object", "array") and self._max_depth is not None and where.depth >= self._max_depth:
            return self._text(where, "deeper than the target reads")
        return write[kind](simple, where) if kind in write else Piece({"type": kind}, {"type": kind})

    def _text(self, where: Where, why: str) -> Piece:
        self._lose(where, f"{why}: any JSON, as text in a string")
        self._notes.append("a JSON text")
        return Piece({"type": "string"}, {}, TextShape())

    def _anything(self, where: Where) -> Piece:
        kind = self._target.anything
        if kind == "definition" and (self._max_depth is None or where.depth + 3 <= self._max_depth):
            self._define_anything()
            return Piece({"$ref": f"#/$defs/{ANYTHING}"}, {}, AnythingShape())
        if kind == "types":
            return Piece({"type": ["object", "array", "string", "number", "boolean", "null"]}, {})
        if kind == "empty":
            return Piece({}, {})
        self._notes.append("a JSON text")
        return Piece({"type": "string"}, {}, TextShape())

    def _define_anything(self) -> None:
        again = {"$ref": f"#/$defs/{ANYTHING}"}
        kinds: list[Simple] = [{"type": name} for name in ("string", "number", "boolean", "null")]
        kinds += [{"type": "array", "items": again}, _entries({"type": "string"}, again)]
        self._sent[ANYTHING] = {"anyOf": kinds}

    # --- references and alternatives ---
    def _reference(self, name: str, where: Where) -> Piece | None:
        simple = self._definitions.get(name)
        if simple is None:
            return None
        if name in self._cyclic:
            is_many = self._counts["pieces"] > MAX_PIECES or len(where.unrolled) >= MAX_UNROLLED
            if name in where.unrolled or is_many:
                return self._text(where, f"the target takes no definition that leads to itself ({name})")
            return self._piece(simple, replace(where, unrolled=(*where.unrolled, name)))
        if name not in self._shapes:
            self._shapes[name] = NamedShape(name, self._shapes)
            self._sent[name], self._meant[name] = dict(simple), {}
            piece = self._piece(simple, replace(where, pointer=f"/$defs/{name}"))
            if piece is None:
                self._definitions = {**self._definitions, name: None}
                del self._sent[name], self._meant[name], self._shapes[name]
                return None
            self._sent[name], self._meant[name], self._shapes[name] = piece.sent, piece.meant, piece.shape
        shape = self._shapes[name]
        inner = SAME if shape.is_same else NamedShape(name, self._shapes)
        return Piece({"$ref": f"#/$defs/{name}"}, {"$ref": f"#/$defs/{name}"}, inner)

    def _union(self, branches: Sequence[Simple], where: Where) -> Piece | None:
        if self._is_spent("unions"):
            return self._text(where, "more alternatives than the target takes")
        self._counts["unions"] += 1
        pieces = [self._piece(part, where.inner(f"anyOf/{index}", 0)) for index, part in enumerate(branches)]
        live = [piece for piece in pieces if piece is not None]
        if len(live) < 2:
            self._counts["unions"] -= 1
            return live[0] if live else None
        return self._joined(live)

    def _joined(self, pieces: Sequence[Piece]) -> Piece:
        is_same = all(piece.shape.is_same for piece in pieces)
        branches = [UnionBranch(p.shape, self._judge(p.sent, False), self._judge(p.meant, True)) for p in pieces]
        shape = SAME if is_same else UnionShape(branches)
        return Piece({"anyOf": [p.sent for p in pieces]}, {"anyOf": [p.meant for p in pieces]}, shape)

    def _judge(self, schema: Simple, is_meant: bool) -> Callable[[Any], bool]:
        """Whether a value satisfies a part, which is read when it is first asked about."""
        lowered: list[Lowered] = []

        def holds(value: Any) -> bool:
            if not lowered:
                whole = _with(schema, self._meant if is_meant else self._sent)
                lowered.append(Lowered(whole, JsonOptions(key_order="any", dialect="draft2020-12"), None))
            return evaluate(lowered[0].root, value, lowered[0].refs)

        return holds

    # --- scalars ---
    def _enumeration(self, values: Sequence[Any], where: Where) -> Piece | None:
        groups: dict[str, list[Any]] = {}
        for value in values:
            groups.setdefault(_ENUM_TYPES.get(type(value), "number"), []).append(value)
        pieces = [self._listed(kind, group, where) for kind, group in groups.items()]
        if len(pieces) < 2:
            return pieces[0] if pieces else None
        if self._is_spent("unions"):
            return self._text(where, "more alternatives than the target takes")
        self._counts["unions"] += 1
        return self._joined(pieces)

    def _listed(self, kind: str, values: list[Any], where: Where) -> Piece:
        name = "integer" if kind == "number" and all(value == int(value) for value in values) else kind
        if kind == "null" or (kind == "boolean" and len(set(values)) == 2):
            return Piece({"type": kind}, {"type": kind})
        limit = self._target.limits.get("long_enum")
        is_long = limit is not None and len(values) > 250 and sum(len(str(value)) for value in values) > limit
        if kind not in self._target.enum_types or is_long or self._is_spent("enum_values", len(values)):
            self._lose(where, "the values of an enumeration")
            shown = ", ".join(map(str, values[:20])) + (", ..." if len(values) > 20 else "")
            self._notes.append(f"one of {shown}")
            return Piece({"type": name}, {"type": name})
        self._counts["enum_values"] += len(values)
        folds = kind == "string" and self._target.folds_enums
        shape = FoldedShape(frozenset(values)) if folds else SAME
        return Piece({"type": name, "enum": values}, {"enum": values}, shape)

    def _words(self, simple: Simple, names: Sequence[str], where: Where, taken: Callable[[str], bool]) -> Simple:
        """Those of a part's keywords that the target takes; others are named, in the description too."""
        words: Simple = {}
        for name in names:
            if name in simple:
                if taken(name):
                    words[name] = simple[name]
                else:
                    self._drop(name, simple[name], where)
        return words

    def _drop(self, name: str, value: Any, where: Where) -> None:
        self._lose(where, name)
        self._notes.append(f"{name}: {value!r:.60}" if not isinstance(value, str) else f"{name}: {value:.60}")

    def _takes(self, name: str) -> bool:
        return name in self._target.keywords

    def _string(self, simple: Simple, where: Where) -> Piece:
        target = self._target
        sent: Simple = {"type": "string"}
        lengths: Simple = {name: simple[name] for name in ("minLength", "maxLength") if name in simple}
        if not lengths.get("minLength", 1):
            del lengths["minLength"]
        for name in [name for name, value in lengths.items() if self._is_too_long(value)]:
            self._drop(name, lengths.pop(name), where)
        pattern = simple.get("pattern")
        form = simple.get("format")
        if form is not None:
            if self._takes("format") and form in target.formats and (pattern is None or target.length_with_pattern):
                sent["format"] = form
            else:
                self._drop("format", form, where)
        if pattern is not None:
            if self._takes("pattern") and _is_taken(pattern, target):
                sent["pattern"] = pattern
            else:
                self._drop("pattern", pattern, where)
        alone = "pattern" not in sent and "format" not in sent
        if self._takes("minLength") and (target.length_with_pattern or alone):
            sent |= lengths
        elif alone and 0 < max(lengths.values(), default=0) <= target.max_repeat:
            most = lengths.get("maxLength", "")
            return Piece(
                {**sent, "pattern": f"^[\\s\\S]{{{lengths.get('minLength', 0)},{most}}}$"}, {**sent, **lengths}
            )
        else:
            for name, value in lengths.items():
                self._drop(name, value, where)
        return Piece(sent, sent)

    def _number(self, simple: Simple, where: Where) -> Piece:
        simple = dict(simple)
        for name, closed, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
            whole = simple["type"] == "integer" and isinstance(simple.get(name), int)
            if whole and not self._takes(name) and closed not in simple:
                simple[closed] = simple.pop(name) + step
        names = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
        is_bounded = simple["type"] in self._target.bounded_types

        def taken(name: str) -> bool:
            whole = self._target.bounded_types == {"integer"} and not isinstance(simple[name], int)
            return self._takes(name) and is_bounded and not whole

        words = {"type": simple["type"], **self._words(simple, names, where, taken)}
        return Piece(words, words)

    # --- arrays ---
    def _array(self, simple: Simple, where: Where) -> Piece | None:
        prefix, items, least = simple.get("prefixItems", []), simple.get("items", {}), simple.get("minItems", 0)
        is_fixed = bool(prefix) and items is None and least >= len(prefix) == simple.get("maxItems")
        if is_fixed and self._target.tuples == "no":
            return self._tuple(prefix, where)
        if prefix and (self._target.tuples == "no" or (self._target.tuples == "closed" and not is_fixed)):
            self._drop("prefixItems", f"{len(prefix)} items by position", where)
            prefix, items = [], union_of([*prefix, items])
        listed = [self._piece(part, where.inner(f"prefixItems/{i}")) for i, part in enumerate(prefix)]
        first = [piece for piece in listed if piece is not None]
        others = None if items is None else self._piece(items, where.inner("items"))
        dead = len(first) < len(listed) or (others is None and not first)
        if dead and least > len(first):
            return None
        counts = self._counted_words(simple, is_fixed, where)
        if others is None and not is_fixed:
            counts["maxItems"] = min(counts.get("maxItems", len(first)), len(first))
            if not self._takes("maxItems"):
                return self._empty_array(where, first)
        return self._of_items(first, others, counts)

    def _of_items(self, first: list[Piece], others: Piece | None, counts: Simple) -> Piece:
        sent: Simple = {"type": "array", **counts}
        meant: Simple = {"type": "array", **counts}
        if first:
            sent["prefixItems"], meant["prefixItems"] = [p.sent for p in first], [p.meant for p in first]
        if others is not None:
            sent["items"], meant["items"] = others.sent, others.meant
        elif first:
            meant["items"] = False
            if self._target.tuples == "closed":
                meant |= {"minItems": len(first), "maxItems": len(first)}
        else:
            sent["items"], meant["maxItems"] = {"type": "null"}, 0
        shapes = [piece.shape for piece in first]
        after = SAME if others is None else others.shape
        is_same = after.is_same and all(shape.is_same for shape in shapes)
        return Piece(sent, meant, SAME if is_same else ArrayShape(shapes, after))

    def _counted_words(self, simple: Simple, is_fixed: bool, where: Where) -> Simple:
        target = self._target
        simple = dict(simple)
        if not simple.get("minItems"):
            simple.pop("minItems", None)
        if is_fixed and target.tuples == "closed":
            simple.pop("minItems", None)
            simple.pop("maxItems", None)
        if target.min_items is not None and simple.get("minItems", 0) > target.min_items:
            self._drop("minItems", simple["minItems"], where)
            simple["minItems"] = target.min_items
        if simple.get("uniqueItems") is False:
            del simple["uniqueItems"]
        names = ("minItems", "maxItems", "uniqueItems", "contains")
        return self._words(simple, names, where, lambda n: self._takes(n) and not self._is_too_long(simple[n]))

    def _is_too_long(self, count: Any) -> bool:
        return isinstance(count, int) and count > (self._target.max_count or count)

    def _empty_array(self, where: Where, first: list[Piece]) -> Piece:
        """An array that ends, for a target that counts no items."""
        if first:
            self._lose(where, "maxItems")
        if not first:
            self._lose(where, "an array that must be empty")
        null: Simple = {"type": "null"}
        items = self._joined(first) if len(first) > 1 else first[0] if first else Piece(null, null)
        return self._of_items([], items, {})

    def _tuple(self, prefix: Sequence[Simple | None], where: Where) -> Piece | None:
        pieces = [part and self._piece(part, where.inner(f"prefixItems/{i}")) for i, part in enumerate(prefix)]
        pieces = [self._anything(where) if part == {} else piece for part, piece in zip(prefix, pieces, strict=True)]
        live = [piece for piece in pieces if isinstance(piece, Piece)]
        if len(live) < len(prefix):
            return None
        members = {f"item{index}": piece.sent for index, piece in enumerate(live)}
        sent = {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}
        meant = {
            "type": "array", "prefixItems": [piece.meant for piece in live], "items": False, "minItems": len(live),
        }  # fmt: skip
        return Piece(sent, meant, TupleShape([piece.shape for piece in live]))

    # --- objects ---
    def _object(self, simple: Simple, where: Where) -> Piece | None:
        self._words(simple, ("minProperties", "maxProperties"), where, lambda _: False)
        members = {name: part for name, part in simple.get("properties", {}).items() if part is not None}
        required = set(simple.get("required", ()))
        if required - members.keys():
            return None
        patterns, others = simple.get("patternProperties", {}), simple.get("additionalProperties", {})
        if not self._target.is_open and not members and (patterns or others is not None):
            return self._map(patterns, others, where)
        writing = _ObjectWords({}, {}, {}, [], [], set())
        for name, part in members.items():
            piece = self._piece(part, where.inner(f"properties/{name}"))
            if piece is None:
                if name in required:
                    return None
                continue
            self._member(writing, name, piece, name in required, where)
        return self._closing(writing, simple, where)

    def _member(self, writing: _ObjectWords, name: str, piece: Piece, is_required: bool, where: Where) -> None:
        """Write one member: as it is, or nullable in place of absent, or not at all."""
        target, inner = self._target, where.inner(f"properties/{name}")
        meant_required, sent = is_required, piece.sent
        sent_required = is_required or not target.has_optional
        if not is_required and target.has_optional and self._is_spent("optional"):
            if self._is_spent("unions") or self._takes_null(sent):
                self._lose(inner, "more optional members than the target takes: never there")
                return
            sent_required = True
        if not is_required and sent_required:
            if self._takes_null(sent):
                self._lose(inner, "cannot be absent, since it may be null")
                meant_required = True
            else:
                writing.nullable.add(name)
                self._counts["unions"] += "anyOf" not in sent
                sent = _nullable(sent)
        elif not is_required:
            self._counts["optional"] += 1
        writing.sent[name], writing.meant[name], writing.shapes[name] = sent, piece.meant, piece.shape
        if sent_required:
            writing.sent_required.append(name)
        if meant_required:
            writing.meant_required.append(name)

    def _closing(self, writing: _ObjectWords, simple: Simple, where: Where) -> Piece:
        """The object with what it says of other members."""
        patterns, others = simple.get("patternProperties", {}), simple.get("additionalProperties", {})
        sent: Simple = {"type": "object", "properties": writing.sent, "required": writing.sent_required}
        meant: Simple = {"type": "object", "properties": writing.meant, "required": writing.meant_required}
        shape: Shape = SAME
        if not self._target.is_open:
            if others is not None or patterns:
                self._lose(where, "members that are not declared")
            others = None
        elif patterns:
            self._drop("patternProperties", list(patterns), where)
        dead = [name for name, part in simple.get("properties", {}).items() if part is None]
        if dead and others is not None:
            self._lose(where, f"members that are never there: {', '.join(dead):.100}")
        free = None if others is None else self._piece(others, where.inner("additionalProperties"))
        is_free = others is not None and not others.keys() - {"title", "description"}
        sent["additionalProperties"] = is_free or (False if free is None else free.sent)
        meant["additionalProperties"] = is_free or (False if free is None else free.meant)
        shape = SAME if free is None or is_free else free.shape
        is_same = not writing.nullable and shape.is_same and all(s.is_same for s in writing.shapes.values())
        mapped = SAME if is_same else ObjectShape(writing.shapes, frozenset(writing.nullable), shape)
        return Piece(sent, meant, mapped)

    def _map(self, patterns: Mapping[str, Simple | None], others: Simple | None, where: Where) -> Piece | None:
        """An object of any keys, as a list of entries."""
        if self._max_depth is not None and where.depth + 3 > self._max_depth:
            return self._text(where, "deeper than the target reads")
        values = union_of([*patterns.values(), others])
        piece = None if values is None else self._piece(values, where.inner("additionalProperties", 3))
        if piece is None:
            empty: Simple = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
            return Piece(empty, empty)
        key: Simple = {"type": "string"}
        meant: Simple = {"type": "object", "additionalProperties": piece.meant}
        pattern = next(iter(patterns), None)
        if pattern is not None and others is None and len(patterns) == 1 and _is_taken(pattern, self._target):
            key["pattern"] = pattern
            meant = {"type": "object", "patternProperties": {pattern: piece.meant}, "additionalProperties": False}
        elif patterns:
            self._drop("patternProperties", list(patterns), where)
        return Piece(_entries(key, piece.sent), meant, MapShape(piece.shape))

    def _takes_null(self, sent: Simple) -> bool:
        """Whether null is among the values of what is sent."""
        seen: set[str] = set()
        todo = [sent]
        while todo:
            part = todo.pop()
            name = part.get("$ref", "").rpartition("/")[2]
            if name:
                written = self._sent.get(name, self._definitions.get(name))  # not written yet: as it was
                todo += [] if name in seen or written is None else [written]
                seen.add(name)
            elif "anyOf" in part:
                todo += part["anyOf"]
            elif None in part.get("enum", [None]) and "null" in part.get("type", "null"):
                return True
        return False


@dataclass
class _ObjectWords:
    """The members of an object, while it is written."""

    sent: dict[str, Simple]
    meant: dict[str, Simple]
    shapes: dict[str, Shape]
    sent_required: list[str]
    meant_required: list[str]
    nullable: set[str]


def _nullable(sent: Simple) -> Simple:
    """A part, or null; its texts stay outside."""
    texts: Simple = {name: sent[name] for name in ("title", "description") if name in sent}
    inner = {name: value for name, value in sent.items() if name not in texts}
    branches = inner["anyOf"] if inner.keys() == {"anyOf"} else [inner]
    return {"anyOf": [*branches, {"type": "null"}], **texts}


def _entries(key: Simple, value: Simple) -> Simple:
    members = {KEY: key, VALUE: value}
    entry = {"type": "object", "properties": members, "required": [KEY, VALUE], "additionalProperties": False}
    array = {"type": "array", "items": entry}
    return {
        "type": "object", "properties": {ENTRIES: array}, "required": [ENTRIES], "additionalProperties": False,
    }  # fmt: skip


def _with(schema: Simple, definitions: Mapping[str, Simple]) -> Simple:
    """A schema with the definitions that it leads to."""
    used: dict[str, Simple] = {}
    todo = list(references(schema))
    while todo:
        name = todo.pop()
        if name not in used:
            used[name] = definitions[name]
            todo += references(definitions[name])
    ordered = {name: used[name] for name in definitions if name in used}
    return {**schema, "$defs": ordered} if ordered else schema


def _cyclic(definitions: Mapping[str, Simple | None], target: SchemaTarget) -> set[str]:
    """The definitions that lead to themselves in a manner that the target does not take."""
    if target.recursion == "yes":
        return set()
    only_needed = target.recursion == "optional"
    edges = {name: _leads_to(simple, only_needed) for name, simple in definitions.items()}
    return {name for name in edges if name in reached(edges, name)}


def _leads_to(simple: Simple | None, only_needed: bool) -> set[str]:
    """The definitions that a schema refers to; ``only_needed``: not those below members that may be absent."""
    if simple is None or not only_needed:
        return set(references(simple))
    names = {simple["$ref"].rpartition("/")[2]} if "$ref" in simple else set()
    required = simple.get("required", ())
    parts = [part for name, part in simple.get("properties", {}).items() if name in required]
    parts += [*simple.get("anyOf", ()), *simple.get("prefixItems", ()), simple.get("items")]
    parts += [simple.get("additionalProperties"), *simple.get("patternProperties", {}).values()]
    for part in parts:
        names |= _leads_to(part, True)
    return names


_NOT_SIMPLE = re.compile(r"\(\?(?!:)|\\[bBkpP1-9]")
_PLAIN = re.compile(r"\^(?:[A-Za-z0-9 _:/#@,(){}?*+|-]|\[[A-Za-z0-9_.:/ -]+\]|\\[.-])*\$")


def _is_taken(pattern: str, target: SchemaTarget) -> bool:
    """Whether the target reads an expression as it is meant."""
    if target.patterns == "plain":
        is_bound = "|" not in pattern or (
            pattern.startswith("^(") and pattern.endswith(")$") and pattern.count("(") == 1
        )
        return _PLAIN.fullmatch(pattern) is not None and is_bound and "(?" not in pattern
    return _NOT_SIMPLE.search(pattern) is None
