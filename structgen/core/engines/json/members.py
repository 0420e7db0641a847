"""The members of an object apart from each other, for formats that write each of them in its own way.

A JSON object is one text for the machine of this engine. Formats such as tool calls in tags write a text for each
member, strings without quotes; what such a text may be, and which members may stand together, is said here, from the
same normal form that the machine's tables are written from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

from structgen.core.engines.json.compiled import JsonGrammar, grammar_of, restated
from structgen.core.engines.json.value_graph.graph import ValueGraph
from structgen.core.engines.json.value_graph.items import ArraySpec, CountedSpec
from structgen.core.engines.json.value_graph.node import StringAlternative, ValueNode
from structgen.core.engines.json.value_graph.objects import ObjectSpec
from structgen.core.engines.json.value_graph.scalars import EnumSpec, QuoteSpec
from structgen.core.json_schema.formula.language import FALSE, TRUE, All, Formula, Idx, Pat, Type, and_, not_, or_, ref
from structgen.core.json_schema.formula.values import ANY, ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING
from structgen.core.json_schema.lowering import Lowered, lower
from structgen.core.regex.dfa import (
    AUTOMATON_STATES,
    Dfa,
    accepts,
    difference,
    from_strings,
    intersect,
    union,
    universal,
)
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import TooComplexError
from structgen.options import JsonOptions


class MemberValues:
    """What the value of a member may be.

    Attributes:
        kinds: the types (bits of `structgen.core.json_schema.formula.values`) that it can have.
        words: the strings, if they are listed (``enum``, ``const``); else None.
    """

    def __init__(self, members: ObjectMembers, node: ValueNode) -> None:
        self._members = members
        self._node = node
        self.kinds = _kinds(node)
        listed = [spec.values for spec in node.strings if isinstance(spec, EnumSpec)]
        self.words = tuple(word for words in listed for word in words) if len(listed) == len(node.strings) else None

    @property
    def key(self) -> Formula:
        """The same for values that are the same."""
        return self._node.formula

    def string_parts(self) -> list[tuple[Dfa, int, int | None]]:
        """The strings in parts, as texts without bounds on their characters, and the bounds (None: no limit).

        Raises:
            TooComplexError: of a list, the automaton has more states than ``JsonOptions.max_automaton_states``.
        """
        return [_unbounded(spec, self._members.options.max_automaton_states) for spec in self._node.strings]

    def strings(self) -> Dfa:
        """The strings, as they are: without quotes and escapes.

        Raises:
            TooComplexError: its automaton has more states than ``JsonOptions.max_automaton_states``.
        """
        limit = self._members.options.max_automaton_states
        languages = [_language(spec, limit) for spec in self._node.strings]
        return reduce(lambda a, b: union(a, b, limit), languages) if languages else from_strings(())

    def json(self, vocabulary: Vocabulary, kinds: int = ANY & ~STRING, without: tuple[str, ...] = ()) -> JsonGrammar:
        """The JSON text of the values that are no strings, if ``kinds`` has any.

        Args:
            vocabulary: the model's tokens.
            kinds: the types of the values; `MemberValues.kinds` has some of them.
            without: texts that no string or key in them holds.
        """
        held = values_without(self._members.lowered, without) if kinds & (ARRAY | OBJECT) else TRUE
        return self._members.grammar_of(and_(Type(kinds), self._node.formula, held), vocabulary)

    def numbers(self, vocabulary: Vocabulary) -> JsonGrammar:
        """The JSON text of the numbers without blanks around them, if ``kinds`` has them."""
        return self._members.grammar_of(and_(Type(NUMBER), self._node.formula), vocabulary, compact=True)

    @property
    def constants(self) -> tuple[bool | None, ...]:
        """Those of null, true and false that are values."""
        return tuple(constant for bit, constant in enumerate((None, True, False)) if self._node.flags >> bit & 1)

    @cached_property
    def objects(self) -> list[ObjectCase]:
        """The objects, in cases that may overlap."""
        names = dict.fromkeys(name for spec in self._node.objects for name in spec.keys)
        return [self._members.case(spec, names) for spec in self._node.objects]

    @cached_property
    def arrays(self) -> list[ArrayCase]:
        """The arrays, in cases that may overlap."""
        return [ArrayCase(self._members, spec) for spec in self._node.arrays]

    @property
    def place(self) -> str | None:
        """The JSON Pointer of what is said of the value; None where nothing of its own is."""
        origin = self._members.lowered.origin(self._node.formula)
        return None if origin is None else origin[0].rpartition("/")[0]


def values_without(lowered: Lowered, texts: tuple[str, ...]) -> Formula:
    """Values in which no string and no key holds one of some texts, at any depth. Speaks of a lowered schema."""
    if not texts:
        return TRUE
    key = ("without", texts, lowered.serial)
    if key not in lowered.refs:
        holding = Pat("|".join("".join(f"\\u{{{ord(c):X}}}" for c in text) for text in texts))
        inside = ref(key)
        lowered.refs[key] = and_(
            or_(Type(ANY & ~STRING), not_(holding)), All(holding, FALSE), All(TRUE, inside), Idx(0, None, inside)
        )
    return lowered.refs[key]


def compile_without(schema: Any, texts: tuple[str, ...], options: JsonOptions, vocabulary: Vocabulary) -> JsonGrammar:
    """The JSON text of the values of a schema in which no string and no key holds one of some texts.

    Raises:
        SchemaError: as `compile_json_schema`.
    """
    lowered = lower(schema, options)
    try:
        return grammar_of(lowered, and_(lowered.root, values_without(lowered, texts)), vocabulary)
    except (TooComplexError, RecursionError) as error:
        raise restated(error, options) from None


@dataclass(frozen=True)
class ObjectCase:
    """Objects that are told by their members one by one.

    Attributes:
        members: by name, in the order of declaration, the ways in which a member can be there: its values, and the
            existentials (bits) that it then meets. The first way meets none.
        required: names that must be there.
        dependents: names that must be there if another is.
        least, most: how many members there are; ``most`` None: no limit.
        existentials: how many conditions the members have to meet together.
        others: names that may be there besides, in classes that share no name, with ways as for members. They are none
            of those that are declared.
    """

    members: dict[str, list[tuple[MemberValues, int]]]
    required: frozenset[str]
    dependents: dict[str, set[str]]
    least: int
    most: int | None
    existentials: int
    others: list[tuple[Dfa, list[tuple[MemberValues, int]]]]


class ArrayCase:
    """Arrays that are told by their items one by one: an automaton over items, whose state 0 is the empty array.

    Attributes:
        distinct: whether no two items are equal (True), or two must be (False); None: either.
        longest: the most items that there may be; None: no limit.
    """

    def __init__(self, members: ObjectMembers, spec: ArraySpec | CountedSpec) -> None:
        self._members, self._spec = members, spec
        self.distinct = spec.distinct if isinstance(spec, ArraySpec) else spec.distinct or None
        self.longest = spec.most if isinstance(spec, ArraySpec) else None

    def may_close(self, state: int) -> bool:
        """Whether the array may end in a state."""
        return self._spec.may_close(state)

    def following(self, state: int) -> list[tuple[MemberValues, int]]:
        """What the next item may be, each with the state after it."""
        if isinstance(self._spec, CountedSpec):
            return [(self._members.of(node), after) for node, after in self._spec.live_choices(state)]
        following = [(node, self._same(after)) for node, after in self._spec.following(state) if node.live]
        return [(self._members.of(node), after) for node, after in following]

    def _same(self, count: int) -> int:
        """The least number of items with which the array goes on as with ``count``."""
        assert isinstance(self._spec, ArraySpec)
        return count if self._spec.most is not None else min(count, max(len(self._spec.prefix), self._spec.least))


class ObjectMembers:
    """The objects that satisfy a schema.

    Attributes:
        names: every name that is declared, in order.
        cases: objects, in ways that may overlap; what satisfies the schema is in one of them.

    Raises:
        SchemaError: as `compile_json_schema`; `UnsatisfiableSchemaError` if no object satisfies the schema.
    """

    def __init__(self, schema: Any, options: JsonOptions) -> None:
        self.options = options
        try:
            self.lowered: Lowered = lower(schema, options)
            self._root = and_(Type(OBJECT), self.lowered.root)
            root = ValueGraph(self.lowered, options).compile(self._root)
            specs = root.objects
            self.names: dict[str, None] = {name: None for spec in specs for name in spec.keys}
            self._values: dict[ValueNode, MemberValues] = {}
            self.cases = [self.case(spec, self.names) for spec in specs]
        except (TooComplexError, RecursionError) as error:
            raise restated(error, options) from None

    def grammar(self, vocabulary: Vocabulary) -> JsonGrammar:
        """The JSON text of the objects."""
        return self.grammar_of(self._root, vocabulary)

    def grammar_of(self, formula: Formula, vocabulary: Vocabulary, *, compact: bool = False) -> JsonGrammar:
        """The JSON text of the values of a formula; ``compact``: without blanks."""
        try:
            return grammar_of(self._compact if compact else self.lowered, formula, vocabulary)
        except (TooComplexError, RecursionError) as error:
            raise restated(error, self.options) from None

    @cached_property
    def _compact(self) -> Lowered:
        lowered = copy(self.lowered)
        lowered.options = replace(self.options, whitespace="compact")
        return lowered

    def of(self, node: ValueNode) -> MemberValues:
        """The values of a node."""
        values = self._values.get(node)
        if values is None:
            values = self._values[node] = MemberValues(self, node)
        return values

    def case(self, spec: ObjectSpec, names: Mapping[str, None]) -> ObjectCase:
        """The objects of a spec; ``names``: those that are declared."""
        classes = [(dfa, node, choices) for dfa, node, choices in _classes(spec) if node.live]
        members = {}
        for name in names:
            if name in spec.forbidden:
                continue
            if name in spec.keys:
                choices = [(spec.keys[name], 0), *spec.choices.get(name, ())]
            else:  # declared elsewhere
                of_class = next((entry for entry in classes if accepts(entry[0], name)), None)
                if of_class is None:
                    continue
                choices = [(of_class[1], 0), *of_class[2]]
            members[name] = [(self.of(node), bits) for node, bits in choices if node.live]
        limit = self.options.max_automaton_states
        named = from_strings(names, limit)
        others = [
            (
                difference(dfa, named, limit),
                [(self.of(node), bits) for node, bits in [(plain, 0), *choices] if node.live],
            )
            for dfa, plain, choices in classes
        ]
        return ObjectCase(
            members,
            frozenset(spec.required),
            {name: needed for name, needed in spec.dependents.items() if name not in spec.forbidden},
            spec.least,
            spec.most,
            spec.existentials,
            [(dfa, choices) for dfa, choices in others if not dfa.is_empty],
        )


def _classes(spec: ObjectSpec) -> Iterable[tuple[Dfa, ValueNode, list[Any]]]:
    """The classes of keys that are not declared: names, node, ways to meet existentials."""
    if spec.others is not None:
        for number, node in enumerate(spec.others.nodes):
            names = spec.others.automaton.of_class(number + 1)
            yield names, node, spec.other_choices[number] if spec.existentials else []


def _kinds(node: ValueNode) -> int:
    kinds = (NULL if node.flags & 1 else 0) | (BOOLEAN if node.flags & 6 else 0)
    kinds |= (NUMBER if node.numbers else 0) | (STRING if node.strings else 0)
    return kinds | (ARRAY if node.arrays else 0) | (OBJECT if node.objects else 0)


def _unbounded(spec: StringAlternative, limit: int) -> tuple[Dfa, int, int | None]:
    if isinstance(spec, QuoteSpec):
        message = "a quote as bare text, without quotation marks"
        raise TooComplexError(message, budget=AUTOMATON_STATES, limit=limit)
    if isinstance(spec, EnumSpec):
        return from_strings(spec.values, limit), 0, None
    return universal() if spec.dfa is None else spec.dfa, spec.least, spec.most


def _language(spec: StringAlternative, limit: int) -> Dfa:
    dfa, least, most = _unbounded(spec, limit)
    if least or most is not None:
        upper = "" if most is None else most
        dfa = intersect(dfa, full_match_dfa(f"[^]{{{least},{upper}}}", max_states=limit), limit)
    return dfa
