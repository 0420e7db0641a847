"""The report: whether each keyword is enforced, an annotation or ignored, and which schemas were closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from structgen.core.json_schema.dialects import by_metaschema
from structgen.core.json_schema.formula.language import (
    All,
    And,
    Enum,
    Formula,
    Idx,
    Items,
    MemberRecord,
    Not,
    One,
    Or,
    Type,
    spelled,
)
from structgen.core.json_schema.keywords_scalar import BACKREFERENCE
from structgen.core.json_schema.pointers import Pointer, pointer_text

if TYPE_CHECKING:
    from structgen.core.json_schema.context import Context
    from structgen.options import JsonOptions

Status = Literal["enforced", "annotation", "ignored", "closed", "narrowed", "checked", "misspelt"]

_ARRAY_WORDS = frozenset(("items", "prefixItems", "additionalItems", "contains", "minItems", "uniqueItems"))
_CLOSED = "not in the schema: as if it were false (options.additional_members)"


class Entry(NamedTuple):
    """One keyword occurrence: its JSON Pointer, name, what becomes of it and why.

    "misspelt" is what no draft has and one slip makes a keyword (see `structgen.core.json_schema.spelling`). The status
    "closed" is that of an ``unevaluatedProperties`` that the schema does not have but is read with. Of
    schemas that are derived from Python types, "narrowed" and "checked" say what became of a type, whose name in
    pydantic's core schema stands in place of the keyword: the schema is narrower than the type, or the type's own
    validators may refuse what satisfies it.
    """

    pointer: str
    keyword: str
    status: Status
    reason: str


class Report:
    """The keywords of all subschemas that the root reaches, in the order of the walk, and choices that it leaves.

    Attributes:
        entries: the keywords.
        open: JSON Pointers of the schemas that declare members and allow others, since nothing says that they do not:
            those that ``additional_members="closed"`` would close.
        bounds_numbers: whether there are numbers that ``JsonOptions.max_number_length`` = "auto" keeps from going on
            without end.
    """

    def __init__(self, entries: list[Entry], open: Sequence[str] = ()) -> None:
        self.entries = entries
        self.open = list(open)
        self.bounds_numbers = False

    def to_dict(self) -> dict[str, dict[str, str]]:
        """``{pointer: {"keyword", "status", "reason"}}``; the reason is left out where there is none."""
        return {
            entry.pointer: {"keyword": entry.keyword, "status": entry.status}
            | ({"reason": entry.reason} if entry.reason else {})
            for entry in self.entries
        }

    @property
    def closed(self) -> list[str]:
        """JSON Pointers of the schemas that were closed, since ``JsonOptions.additional_members`` is "closed"."""
        return [entry.pointer.rpartition("/")[0] for entry in self.entries if entry.status == "closed"]

    @property
    def misspelt(self) -> list[Entry]:
        """Words that are most likely misspelt keywords or formats; the reason says which."""
        return [entry for entry in self.entries if entry.status == "misspelt"]

    @property
    def checked(self) -> list[Entry]:
        """What only the validators of a Python type say, when the value is read."""
        return [entry for entry in self.entries if entry.status == "checked"]

    def with_ignored(self, ignored: list[tuple[str, str]]) -> Report:
        """The same with the keywords at these pointers (and why) marked as ignored on request."""
        reasons = dict(ignored)
        listed = {entry.pointer for entry in self.entries}
        entries = [
            entry._replace(status="ignored", reason=f"on request: {reasons[entry.pointer]}")
            if entry.pointer in reasons
            else entry
            for entry in self.entries
        ]
        entries += [
            Entry(where, "", "ignored", f"on request: {what}") for where, what in ignored if where not in listed
        ]
        return Report(entries, self.open)

    def __str__(self) -> str:
        width = max((len(entry.pointer) for entry in self.entries), default=0)
        return "\n".join(
            f"{entry.pointer:{width}}  {entry.status}{': ' + entry.reason if entry.reason else ''}"
            for entry in self.entries
        )


class Trace:
    """Records of a second walk: the schemas visited, and the keyword that each formula first came from.

    Attributes:
        by_keyword: whether plain objects, too, are to be read keyword by keyword.
    """

    by_keyword = False

    def __init__(self) -> None:
        self.origins: dict[Formula, Pointer] = {}
        self._entries: dict[str, Entry] = {}

    def visit(self, schema: dict[str, Any], pointer: Pointer, context: Context) -> None:
        """Note the keywords of a schema about to be lowered."""
        for keyword in schema:
            where = pointer_text((pointer, keyword))
            if where not in self._entries:
                self._entries[where] = Entry(where, keyword, *_status(keyword, schema, context))
                if keyword == "patternProperties":
                    self._visit_key_patterns(schema[keyword], (pointer, keyword), context)
        if context.options.max_items is not None or context.options.distinct_items != "schema":
            self._visit_list(schema, pointer, context.options)

    def _visit_list(self, schema: dict[str, Any], pointer: Pointer, options: JsonOptions) -> None:
        """Note what the options make of lists that a schema speaks of."""
        kinds = schema.get("type", ())
        if "array" not in (kinds if isinstance(kinds, list) else [kinds]) and _ARRAY_WORDS.isdisjoint(schema):
            return
        said = {}
        if options.max_items is not None:
            said["maxItems"] = f"at most {options.max_items} items, or as many as there must be (options.max_items)"
        if options.distinct_items != "schema" and "prefixItems" not in schema:
            which = "of strings " if options.distinct_items == "strings" else ""
            said["uniqueItems"] = f"lists {which}are of distinct items, if there are enough (options.distinct_items)"
        for keyword, reason in said.items():
            where = pointer_text((pointer, keyword))
            if keyword not in schema:
                self._entries[where] = Entry(where, keyword, "narrowed", f"not in the schema: {reason}")

    def _visit_key_patterns(self, patterns: Any, pointer: Pointer, context: Context) -> None:
        """Note the patterns of keys that are left out on request."""
        for regex in patterns if isinstance(patterns, dict) else ():
            if not context.enforces_pattern(regex):
                where = pointer_text((pointer, regex))
                self._entries[where] = Entry(where, "patternProperties", "ignored", BACKREFERENCE)

    def record(self, formula: Formula | list[Formula], pointer: Pointer) -> None:
        """Note that the keyword at ``pointer`` lowers to ``formula``: its parts without an origin come from there."""
        todo = list(formula) if isinstance(formula, list) else [formula]
        while todo:
            node = todo.pop()
            if node in self.origins:
                continue
            self.origins[node] = pointer
            if isinstance(node, (And, Or, One)):
                todo.extend(node.args)
            elif isinstance(node, Not):
                todo.append(node.arg)
            elif isinstance(node, All):
                todo.extend((node.keys, node.value))
            elif isinstance(node, (Idx, Items)):
                todo.append(node.value)
            elif isinstance(node, MemberRecord):
                todo.append(node.spelled)

    def record_object(self, formula: Formula, pointer: Pointer) -> None:
        """Note that the schema at ``pointer`` is a plain object: which keyword says each of its parts."""
        conjunction = spelled(formula)
        for literal in conjunction.args if isinstance(conjunction, And) else ():
            keyword = "type" if isinstance(literal, Type) else "properties"
            if isinstance(literal, Not):
                keyword = "required"
            elif isinstance(literal, All) and not isinstance(literal.keys, Enum):
                keyword = "additionalProperties"
            self.record(literal, (pointer, keyword))
        self.record(formula, (pointer, "properties"))

    def close(self, formula: Formula, pointer: Pointer) -> None:
        """Note that ``formula`` closes a schema, at the ``pointer`` where the keyword that says so would stand."""
        self.record(formula, pointer)
        where = pointer_text(pointer)
        self._entries[where] = Entry(where, str(pointer[1]), "closed", _CLOSED)

    @property
    def report(self) -> Report:
        """All that was visited."""
        return Report(list(self._entries.values()))


def _status(keyword: str, schema: dict[str, Any], context: Context) -> tuple[Status, str]:
    dialect = context.dialect
    hidden = keyword not in dialect.read_of(schema)
    if hidden and dialect.is_effective(keyword):
        return "ignored", f"up to draft 7 $ref hides the keywords next to it ({dialect.name})"
    entry = dialect.keywords.get(keyword)
    if entry is not None and keyword in dialect.speaking:
        if entry.needs and entry.needs not in schema:
            return "ignored", f"without effect unless {entry.needs} is there too"
        return (entry.status and entry.status(schema[keyword], schema, context)) or ("enforced", "")
    if keyword == "$schema" and (schema[keyword].__class__ is not str or by_metaschema(schema[keyword]) is None):
        return "annotation", f"not a metaschema of a draft; read as {dialect.name}"
    if entry is not None:
        return "annotation", "structure of the document" if entry.is_structure else ""
    doubt = None if hidden else dialect.doubt(keyword)
    return ("annotation", f"not a keyword of {dialect.name}") if doubt is None else ("misspelt", doubt)
