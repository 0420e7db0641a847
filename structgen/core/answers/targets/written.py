"""A formula as a simple schema: its alternatives of each type, each a plain conjunction, in the words of `simple`.

allOf, if, not, dependent*, unevaluated* and dynamic references are gone in the formula. What a conjunction says that no
keyword of the simple schema says ("some member is no number") is left out, which makes the schema wider, and is named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import lcm
from typing import Any, TypeAlias

from structgen.core.answers.deciding import UNDECIDED, Questions
from structgen.core.engines.json.value_graph.normal_form import Conjunction, NormalForm, dependency, required_key
from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.formula.language import (
    FALSE,
    TRUE,
    All,
    And,
    Enum,
    Format,
    Formula,
    Ge,
    Gt,
    Idx,
    Int,
    Items,
    Keys,
    Len,
    Mult,
    Not,
    Or,
    Order,
    Pat,
    Type,
    Uniq,
    and_,
    not_,
)
from structgen.core.json_schema.formula.values import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, decode

Simple: TypeAlias = "dict[str, Any]"
_NAMES = {NULL: "null", BOOLEAN: "boolean", NUMBER: "number", STRING: "string", ARRAY: "array", OBJECT: "object"}
MAX_DEPENDENCIES = 3
"""Conditions "with this member, those" of one object that are written as alternatives."""
MAX_PREFIX = 64
WRITING_STEPS = 200_000


def union_of(branches: Iterable[Simple | None]) -> Simple | None:
    """Alternatives: flat, distinct, without those that have no value."""
    flat: list[Simple] = []
    for branch in branches:
        if branch is not None:
            flat += branch["anyOf"] if branch.keys() == {"anyOf"} else [branch]
    distinct = [branch for index, branch in enumerate(flat) if branch not in flat[:index]]
    if {} in distinct:
        return {}
    if len(distinct) < 2:
        return distinct[0] if distinct else None
    return {"anyOf": distinct}


def enumeration(values: Sequence[Any]) -> Simple | None:
    """A schema of listed values; objects and arrays are written out."""
    scalars = [value for value in values if not isinstance(value, (dict, list))]
    schemas: list[Simple | None] = [{"enum": scalars}] if scalars else []
    for value in values:
        if isinstance(value, dict):
            members = {name: enumeration([item]) for name, item in value.items()}
            schemas.append(
                {"type": "object", "properties": members, "required": list(value), "additionalProperties": None}
            )
        elif isinstance(value, list):
            count = len(value)
            array: Simple = {"type": "array", "items": None, "minItems": count, "maxItems": count}
            schemas.append({**array, "prefixItems": [enumeration([item]) for item in value]} if value else array)
    return union_of(schemas)


class FormulaWriting:
    """Writes formulas of one schema; what is written often, or leads to itself, becomes a definition."""

    def __init__(
        self,
        questions: Questions,
        definitions: dict[str, Simple | None],
        lose: Callable[[str, str], None],
    ) -> None:
        self._questions, self._definitions, self._lose = questions, definitions, lose
        self._refs = questions.formulas.refs
        self._overlaps: dict[tuple[Formula, int], bool] = {}
        budget = StepBudget(WRITING_STEPS)
        self._forms = NormalForm(self._refs, questions.options.max_alternatives, budget, self._overlap, True)
        self._done: dict[Formula, Simple | None] = {}
        self._open: dict[Formula, str] = {}
        self._recursive: set[str] = set()
        self._pointer = ""

    def new_name(self, wish: str) -> str:
        """A name of a definition that is not taken yet."""
        base = re.sub(r"[^A-Za-z0-9_]", "_", wish)[:60] or "part"
        name, count = base, 1
        while name in self._definitions or name in self._open.values():
            count += 1
            name = f"{base}_{count}"
        return name

    def schema(self, formula: Formula, pointer: str, texts: Mapping[str, str]) -> Simple | None:
        """A formula as a simple schema; ``texts``: descriptions of members by name.

        What is too much work to be written apart is any value, which is named.
        """
        self._pointer = pointer
        try:
            simple = self._written(formula)
        except UNDECIDED as error:
            self._lose(pointer, f"not written: {str(error).splitlines()[0]}")
            return {}
        return None if simple is None else _with_texts(self._inlined(simple), texts)

    def _inlined(self, simple: Simple) -> Simple:
        """The whole of what a reference to a definition, used once, leads to."""
        name = simple.get("$ref", "").rpartition("/")[2]
        if name in self._definitions and name not in self._recursive and self._definitions[name] is not None:
            return dict(self._definitions[name] or {})
        return simple

    def _overlap(self, formula: Formula, kind: int) -> bool:
        key = formula, kind
        if key not in self._overlaps:
            try:
                self._overlaps[key] = self._questions.node_of(and_(Type(kind), formula)) is not None
            except UNDECIDED:
                self._overlaps[key] = True
        return self._overlaps[key]

    def _written(self, formula: Formula) -> Simple | None:
        if formula is TRUE or formula is FALSE:
            return {} if formula is TRUE else None
        if formula in self._open:
            name = self._open[formula]
            self._recursive.add(name)
            return {"$ref": f"#/$defs/{name}"}
        if formula not in self._done:
            name = self._open[formula] = self.new_name("part")
            simple = self._alternatives(formula)
            del self._open[formula]
            if simple is not None and (name in self._recursive or _is_large(simple)):
                self._definitions[name] = simple
                simple = {"$ref": f"#/$defs/{name}"}
            elif name in self._recursive:
                self._definitions[name] = None
            self._done[formula] = simple
        return self._done[formula]

    def _alternatives(self, formula: Formula) -> Simple | None:
        branches: list[Simple | None] = []
        if self._questions.holds(formula, None):
            branches.append({"type": "null"})
        booleans = [value for value in (True, False) if self._questions.holds(formula, value)]
        if booleans:
            branches.append({"type": "boolean"} if len(booleans) == 2 else {"enum": booleans})
        for kind, write in ((NUMBER, self._number), (STRING, self._string), (ARRAY, self._array)):
            branches += [write(literals) for literals in self._forms.alternatives(formula, kind)]
        for literals in self._forms.alternatives(formula, OBJECT):
            branches += [self._object(part) for part in self._split(literals)]
        plain = [{"type": _NAMES[kind]} for kind in _NAMES]
        simple = [one for one in branches if one is not None]
        return {} if all(_is_free(part, simple) for part in plain) else union_of(simple)

    def _left_out(self, literal: Formula) -> None:
        self._lose(self._pointer, f"no keyword of the simple schema says {literal!r:.80}")

    # --- scalars ---
    def _listed(self, literals: Conjunction) -> Simple | None:
        """The listed values that satisfy all of a conjunction."""
        enum = next(literal for literal in literals if isinstance(literal, Enum))
        values = [decode(value) for value in enum.values]
        return enumeration([value for value in values if all(self._questions.holds(one, value) for one in literals)])

    def _number(self, literals: Conjunction) -> Simple | None:
        if any(isinstance(literal, Enum) for literal in literals):
            return self._listed(literals)
        words: Simple = {"type": "number"}
        steps: list[Fraction] = []
        for literal in literals:
            negated = isinstance(literal, Not)
            match literal.arg if isinstance(literal, Not) else literal:
                case Int() if not negated:
                    steps.append(Fraction(1))
                case Mult(q=q) if not negated:
                    steps.append(q)
                case Ge(x=x):
                    _limit(words, *(("exclusiveMaximum", x, min) if negated else ("minimum", x, max)))
                case Gt(x=x):
                    _limit(words, *(("maximum", x, min) if negated else ("exclusiveMinimum", x, max)))
                case _:
                    self._left_out(literal)
        if steps:
            scale = lcm(*[step.denominator for step in steps])
            step = Fraction(lcm(*[int(step * scale) for step in steps]), scale)
            words["type"] = "integer" if step.denominator == 1 else "number"
            if step != 1:
                words["multipleOf"] = _plain(step)
        return words

    def _string(self, literals: Conjunction) -> Simple | None:
        if any(isinstance(literal, Enum) for literal in literals):
            return self._listed(literals)
        words: Simple = {"type": "string"}
        for literal in literals:
            negated = isinstance(literal, Not)
            match literal.arg if isinstance(literal, Not) else literal:
                case Len(n=n):
                    _limit(words, *(("maxLength", n - 1, min) if negated else ("minLength", n, max)))
                case Pat(regex=regex) if not negated and "pattern" not in words:
                    words["pattern"] = regex
                case Format(name=name) if not negated and "format" not in words:
                    words["format"] = name
                case _:
                    self._left_out(literal)
        return words

    # --- objects ---
    def _split(self, literals: Conjunction) -> list[Conjunction]:
        """With the first conditions "with this member, those" as alternatives; others are left out."""
        done: list[Conjunction] = [tuple(one for one in literals if dependency(one) is None)]
        clauses = [clause for one in literals if (clause := dependency(one)) is not None]
        for key, names in clauses[:MAX_DEPENDENCIES]:
            absent = All(Enum([key]), FALSE)
            present = [not_(All(Enum([name]), FALSE)) for name in (key, *names)]
            done = [(*one, *more) for one in done for more in ([absent], present)]
        if clauses[MAX_DEPENDENCIES:]:
            self._lose(self._pointer, "more conditions on members than are written as alternatives")
        return done

    def _object(self, literals: Conjunction) -> Simple | None:
        said: list[tuple[Formula, Formula]] = []
        required: list[str] = []
        counts: Simple = {}
        names: dict[str, None] = {}
        for literal in literals:
            negated = isinstance(literal, Not)
            match literal.arg if isinstance(literal, Not) else literal:
                case Keys(n=n):
                    _limit(counts, *(("maxProperties", n - 1, min) if negated else ("minProperties", n, max)))
                case Order(names=declared):
                    names |= dict.fromkeys(declared)
                case All(keys=keys, value=value) if not negated:
                    said.append((keys, value))
                case _ if (key := required_key(literal)) is not None:
                    required.append(key)
                case _:
                    self._left_out(literal)
        patterns: dict[str, None] = {}
        for keys, _ in said:
            classes = _key_class(keys)
            names |= dict.fromkeys(classes[1]) if classes else {}
            patterns |= dict.fromkeys(classes[2]) if classes else {}
        names |= dict.fromkeys(required)
        members = {name: self._written(self._member(name, said)) for name in names}
        if any(members[name] is None for name in required):
            return None
        of_patterns = {pattern: self._written(and_(*self._of_pattern(pattern, said))) for pattern in patterns}
        others = self._written(and_(*[v for k, v in said if (c := _key_class(k)) and not c[0]]))
        for keys, _ in said:
            if _key_class(keys) is None:
                self._left_out(keys)
        return {"type": "object", **object_words(members, required, of_patterns, others, counts)}

    def _member(self, name: str, said: list[tuple[Formula, Formula]]) -> Formula:
        return and_(*[value for keys, value in said if self._questions.holds(keys, name)])

    def _of_pattern(self, pattern: str, said: list[tuple[Formula, Formula]]) -> list[Formula]:
        values = []
        for keys, value in said:
            classes = _key_class(keys)
            if classes is not None and classes[0] == (pattern in classes[2]):
                values.append(value)
        return values

    # --- arrays ---
    def _array(self, literals: Conjunction) -> Simple | None:
        words: Simple = {"type": "array"}
        ranges: list[Idx] = []
        for literal in literals:
            negated = isinstance(literal, Not)
            match literal.arg if isinstance(literal, Not) else literal:
                case Idx() as part if not negated:
                    ranges.append(part)
                case Items(value=value, n=n) if value is TRUE:
                    _limit(words, *(("maxItems", n - 1, min) if negated else ("minItems", n, max)))
                case Items(value=value, n=n) if "contains" not in words:
                    more = {"minContains": 0, "maxContains": n - 1} if negated else {"minContains": n}
                    words |= {"contains": self._written(value), **more}
                case Uniq() if not negated:
                    words["uniqueItems"] = True
                case _:
                    self._left_out(literal)
        ends = [end for part in ranges for end in (part.lo, part.hi) if end is not None]
        length = min(max(ends, default=0), MAX_PREFIX)
        at_place = [and_(*[p.value for p in ranges if p.lo <= i and (p.hi is None or i < p.hi)]) for i in range(length)]
        words["prefixItems"] = [self._written(value) for value in at_place]
        words["items"] = self._written(and_(*[part.value for part in ranges if part.hi is None]))
        words = tidy_array(words)
        return None if words.get("minItems", 0) > words.get("maxItems", words.get("minItems", 0)) else words


def object_words(
    members: Mapping[str, Simple | None],
    required: list[str],
    patterns: Mapping[str, Simple | None],
    others: Simple | None,
    counts: Mapping[str, int],
) -> Simple:
    """The keywords of an object; a member that can never be there is kept where others may be."""
    words: Simple = {"properties": dict(members), "required": list(dict.fromkeys(required)), **counts}
    if patterns:
        words["patternProperties"] = dict(patterns)
    words["additionalProperties"] = others
    return words


def tidy_array(words: Simple) -> Simple:
    """Without items by position that can never be there: then there are at most that many."""
    prefix = words.get("prefixItems", [])
    dead = next((index for index, part in enumerate(prefix) if part is None), None)
    if dead is not None:
        words = {**words, "prefixItems": prefix[:dead], "items": None}
    if words["items"] is None:
        most = len(words.get("prefixItems", []))
        words["maxItems"] = min(words.get("maxItems", most), most)
    if not words.get("prefixItems"):
        words.pop("prefixItems", None)
    return words


def _limit(words: Simple, name: str, value: Any, stricter: Callable[[Any, Any], Any]) -> None:
    plain = _plain(value)
    words[name] = stricter(words[name], plain) if name in words else plain


def _plain(number: Any) -> Any:
    if isinstance(number, Fraction):
        return number.numerator if number.denominator == 1 else decode(number)
    return number


def _is_large(simple: Simple) -> bool:
    """Whether a schema is worth a definition, where it is used more than once."""
    parts = simple.get("anyOf", [simple])
    return any(part.get("properties") or part.get("prefixItems") for part in parts)


def _is_free(part: Simple, listed: list[Simple]) -> bool:
    """Whether all values of a type are among alternatives."""
    if part["type"] == "object":
        empty: Simple = {"properties": {}, "required": [], "additionalProperties": {}}
        return {**part, **empty} in listed
    return ({**part, "items": {}} if part["type"] == "array" else part) in listed


def _key_class(keys: Formula) -> tuple[bool, list[str], list[str]] | None:
    """A class of keys by names and patterns: (True: those, False: all but those; names; patterns); None: otherwise."""
    if keys is TRUE:
        return False, [], []
    is_listed = not (isinstance(keys, Not) or (isinstance(keys, And) and all(isinstance(k, Not) for k in keys.args)))
    parts = keys.args if isinstance(keys, Or if is_listed else And) else (keys,)
    names: list[str] = []
    patterns: list[str] = []
    for part in parts:
        atom = part.arg if isinstance(part, Not) else part
        if isinstance(atom, Enum):
            names += [value for value in atom.values if isinstance(value, str)]
        elif isinstance(atom, Pat):
            patterns.append(atom.regex)
        else:
            return None
    return is_listed, names, patterns


def _with_texts(simple: Simple, texts: Mapping[str, str]) -> Simple:
    """The schema with descriptions of its members."""
    if "anyOf" in simple:
        return {**simple, "anyOf": [_with_texts(part, texts) for part in simple["anyOf"]]}
    members = {
        name: {**member, "description": texts[name]} if member is not None and name in texts else member
        for name, member in simple.get("properties", {}).items()
    }
    return {**simple, "properties": members} if members else simple


def references(simple: Any) -> Counter[str]:
    """How often each definition is referred to. Members may have the names of keywords."""
    counts: Counter[str] = Counter()
    todo = [simple]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            if "$ref" in part:
                counts[part["$ref"].rpartition("/")[2]] += 1
            for name, value in part.items():
                if name in ("properties", "patternProperties", "$defs"):
                    todo += value.values()
                elif name != "enum":
                    todo.append(value)
        elif isinstance(part, list):
            todo += part
    return counts
