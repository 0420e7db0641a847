"""Two schemas compared: which documents only one of them allows, and the keywords that tell them apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from structgen.core.answers.deciding import Decision, Questions, answering
from structgen.core.answers.joint import Joint
from structgen.core.answers.occurrences import value_at
from structgen.core.answers.reasons import refusing
from structgen.core.answers.sources import is_text, schema_of
from structgen.core.json_schema.dialects import subschemas
from structgen.core.json_schema.formula.language import FALSE
from structgen.core.json_schema.formula.values import canonical
from structgen.core.json_schema.lowering import Lowered
from structgen.core.json_schema.pointers import ROOT
from structgen.errors import UndecidedError
from structgen.options import JsonOptions, checked_options

if TYPE_CHECKING:
    from referencing import Registry

    from structgen.core.answers.texts.differences import TextDecision

Verdict = Literal["equal", "narrower", "wider", "incomparable", "unknown"]
_DEPARTING = frozenset(("hostname", "idn-hostname", "host-name", "time", "date-time", "regex"))


@dataclass(frozen=True)
class Change:
    """A keyword occurrence of one schema that the other has not, or has otherwise; the same, where no such refuses.

    Attributes:
        pointer, keyword: where it is, and its name; ``name``: the member, of ``required``.
        value: what it says.
        other: what the other schema says at the same pointer; None with ``is_new``: nothing.
        is_new: whether the other schema has nothing there.
    """

    pointer: str
    keyword: str
    value: Any
    other: Any = None
    is_new: bool = True
    name: str = ""

    def __str__(self) -> str:
        what = f"{self.name!r} required" if self.name else f"{_short(self.value)}"
        there = "" if self.name else (" (new)" if self.is_new else f" (the other: {_short(self.other)})")
        return f"{self.pointer or '/'}: {what}{there}"


def _short(value: Any) -> str:
    import json

    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


@dataclass(frozen=True)
class Difference:
    """What one schema allows and the other refuses.

    Attributes:
        text: a shortest such document as JSON; None: there are some, all too long to be written. Of two constraints on
            plain text, such a text.
        value: what it says, numbers exact.
    """

    text: str | None
    value: Any
    _sides: _Sides | None = field(repr=False, compare=False)
    _refuses_new: bool = field(repr=False, compare=False)

    @cached_property
    def keywords(self) -> list[Change]:
        """The occurrences of the refusing schema without which it would allow the document: each of them by itself;
        else a least set that does together. Those that the other schema has too are left out where there are others.
        Worked out when asked for: a lowering for each occurrence."""
        if self.text is None or self._sides is None:
            return []
        return list(self._sides.changes(self.value, self._refuses_new))


@dataclass(frozen=True)
class SchemaComparison:
    """What `compare` has found.

    Attributes:
        verdict: of the new schema: "equal", "narrower", "wider", "incomparable" or "unknown".
        old_in_new, new_in_old: whether each document of one is one of the other; None: not decided.
        old_only, new_only: what only one of them allows, where that was decided.
        unknown: why directions were left open, in words.
        remarks: what the answer does not speak of.
        methods: what decided old in new, and new in old.
    """

    verdict: Verdict
    old_in_new: bool | None
    new_in_old: bool | None
    old_only: Difference | None
    new_only: Difference | None
    unknown: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    methods: tuple[str, str] = ("", "")

    @property
    def is_backward(self) -> bool | None:
        """Whether readers of the new schema can read all old data; None: not decided."""
        return self.old_in_new

    @property
    def is_forward(self) -> bool | None:
        """Whether readers of the old schema can read all new data; None: not decided."""
        return self.new_in_old


class _Sides:
    """The two schemas, and what asks about them."""

    def __init__(self, old: Any, new: Any, options: JsonOptions, registries: Sequence[Any]) -> None:
        self.schemas, self.registries = (old, new), registries
        self.options = answering(options)
        lowered = [Lowered(s, self.options, r) for s, r in zip(self.schemas, registries, strict=True)]
        self.joint = Joint(lowered, self.options)
        self.questions = Questions(self.joint, self.options)

    def decide(self) -> tuple[Decision, Decision]:
        """Whether old is in new, and new in old."""
        old, new = self.joint.roots
        return self.questions.is_contained(old, new), self.questions.is_contained(new, old)

    def changes(self, value: Any, refuses_new: bool) -> Iterator[Change]:
        """See `Difference.keywords`."""
        index = int(refuses_new)
        schema, other, registry = self.schemas[index], self.schemas[1 - index], self.registries[index]
        changed, same = list[Change](), list[Change]()
        for one in refusing(schema, value, self.options, registry).occurrences:
            has, there = value_at(other, one.path)
            said = value_at(schema, one.path)[1]
            if one.kind == "name":
                has = is_same = isinstance(there, list) and one.name in there
            else:
                is_same = has and canonical(said) == canonical(there)
            change = Change(one.pointer, one.keyword, said, there if has else None, not has, one.name)
            (same if is_same else changed).append(change)
        yield from changed or same  # a reference to what has changed refuses it too, and says nothing new


def compare(
    old: Any,
    new: Any,
    *,
    options: JsonOptions | None = None,
    registry: Registry[Any] | None = None,
    new_registry: Registry[Any] | None = None,
) -> SchemaComparison:
    """What the new schema allows and the old one does not, and the reverse: exactly, by values.

    Args:
        old, new: schemas, JSON texts, files, Python types or tool definitions, each read in its own draft; or both of
            them grammars, expressions or choices. Regular ones are compared exactly, others by texts up to a length.
        options: dialect, formats, additional members and budgets; how text is spelled does not matter here.
        registry: other documents that the schemas refer to.
        new_registry: those of the new schema, if others.

    Raises:
        SchemaError: a schema is malformed. ConstraintError: no schema.
    """
    options = checked_options(options)
    if is_text(old) or is_text(new):
        from structgen.core.answers.texts.differences import TextSide, is_text_subset

        texts = TextSide(old), TextSide(new)
        return _compared(is_text_subset(*texts), is_text_subset(*reversed(texts)), None, ())
    sides = _Sides(schema_of(old), schema_of(new), options, (registry, new_registry or registry))
    forth, back = sides.decide()
    return _compared(forth, back, sides, tuple(_remarks(sides, forth, back)))


def _compared(
    forth: Decision | TextDecision, back: Decision | TextDecision, sides: _Sides | None, remarks: tuple[str, ...]
) -> SchemaComparison:
    """What was decided of old within new, and of new within old."""
    unknown = tuple(
        f"{what}: {decision.reason}"
        for what, decision in (("old within new", forth), ("new within old", back))
        if decision.contained is None
    )
    return SchemaComparison(
        _verdict(forth.contained, back.contained),
        forth.contained,
        back.contained,
        _difference(forth, sides, True),
        _difference(back, sides, False),
        unknown,
        remarks,
        (forth.method, back.method),
    )


def is_subset(a: Any, b: Any, *, options: JsonOptions | None = None, registry: Registry[Any] | None = None) -> bool:
    """Whether each document of schema ``a`` is one of ``b``; or, of two grammars, expressions or choices, each text.

    Raises:
        UndecidedError: a budget ended the search, or a keyword is not covered.
        SchemaError: a schema is malformed. ConstraintError: no schema.
    """
    if is_text(a) or is_text(b):
        from structgen.core.answers.texts.differences import TextSide, is_text_subset

        said = is_text_subset(TextSide(a), TextSide(b))
        if said.contained is None:
            raise UndecidedError(f"it was not decided whether one constraint is within the other: {said.reason}")
        return said.contained
    sides = _Sides(schema_of(a), schema_of(b), checked_options(options), (registry, registry))
    decision = sides.questions.is_contained(*sides.joint.roots)
    if decision.contained is None:
        raise UndecidedError(f"it was not decided whether one schema is within the other: {decision.reason}")
    return decision.contained


def _verdict(forth: bool | None, back: bool | None) -> Verdict:
    if forth is None or back is None:
        return "unknown"
    if forth:
        return "equal" if back else "wider"
    return "narrower" if back else "incomparable"


def _difference(decision: Decision | TextDecision, sides: _Sides | None, refuses_new: bool) -> Difference | None:
    if decision.contained is not False:
        return None
    return Difference(decision.text, decision.value, sides, refuses_new)


def _remarks(sides: _Sides, forth: Decision, back: Decision) -> Iterator[str]:
    """What the answer does not speak of, or what a reader may not expect."""
    if (forth.contained and not back.contained) or (back.contained and not forth.contained):
        narrow = sides.joint.roots[0 if forth.contained else 1]
        if sides.questions.is_contained(narrow, FALSE).contained:
            yield f"no document satisfies the {'old' if forth.contained else 'new'} schema"
    if not sides.options.assert_formats:
        return
    old, new = (_formats(schema) for schema in sides.schemas)
    for name in sorted(old ^ new):
        yield f"the format {name!r} is in one schema only, and is read a little narrower than its standard"


def _formats(schema: Any) -> set[str]:
    """The formats in a schema that departs from their standards."""
    if not _mentions(schema):
        return set()
    todo, names, seen = [schema], set(), set[int]()
    while todo:
        part = todo.pop()
        if isinstance(part, dict) and id(part) not in seen:  # several drafts' keywords lead to it
            seen.add(id(part))
            if isinstance(part.get("format"), str):
                names.add(part["format"])
            todo += [child for child, _ in subschemas(part, ROOT)]
    return names & _DEPARTING


def _mentions(schema: Any) -> bool:
    """Whether one of these formats may be in it: a quick look, before one by keywords."""
    todo = [schema]
    while todo:
        part = todo.pop()
        if part.__class__ is dict:
            if part.get("format").__class__ is str and part["format"] in _DEPARTING:
                return True
            todo += part.values()
        elif part.__class__ is list:
            todo += part
    return False
