"""How many values value nodes have, as far as it matters for arrays of distinct items.

``endless``: more values than could ever be written (a bounded integer with a million values counts as endless too).
Of other value nodes values are counted up to what is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction

from structgen.core.engines.json.numbers.spec import NumberSpec, lcm
from structgen.core.engines.json.value_graph.node import ValueNode
from structgen.core.engines.json.value_graph.specs import (
    ArraySpec,
    CountedSpec,
    EnumSpec,
    KeyClasses,
    NumberChoice,
    ObjectSpec,
    StringSpec,
)
from structgen.core.engines.json.value_graph.value_enumeration import FewValues
from structgen.core.regex.dfa import count_words
from structgen.core.regex.labelled import MANY_WORDS

MANY = 1_000_000
Test = Callable[[ValueNode], bool]


def is_endless(node: ValueNode, endless: Test) -> bool:
    """Whether a live node has endlessly many values, given which others have."""
    if any(number_count(choice.automaton.spec) >= MANY for choice in node.numbers):
        return True
    if any(isinstance(spec, StringSpec) and _endless_string(spec) for spec in node.strings):
        return True
    return any(_endless_object(spec, endless) for spec in node.objects) or any(
        _endless_array(spec, endless) for spec in node.arrays
    )


def endless_nodes(nodes: Iterable[ValueNode]) -> set[ValueNode]:
    """The live nodes with endlessly many values: the least fixpoint."""
    waiting = [node for node in nodes if node.live]
    found: set[ValueNode] = set()
    changed = True
    while changed:
        changed = False
        for node in list(waiting):
            if is_endless(node, found.__contains__):
                found.add(node)
                waiting.remove(node)
                changed = True
    return found


def _endless_string(spec: StringSpec) -> bool:
    if spec.dfa is None:
        return spec.most is None or spec.most > 0
    return spec.most is None and bool(count_words(spec.dfa, MANY)[0] >= MANY)


def _endless_object(spec: ObjectSpec, endless: Test) -> bool:
    room = spec.most is None or spec.most > len(spec.required)
    others = spec.others
    if room and others is not None:
        if not isinstance(others, KeyClasses):
            return others.live
        if any(node.live and words >= MANY_WORDS for node, words in zip(others.nodes, others.words, strict=True)):
            return True
    return any(
        endless(node)
        for name, node in spec.keys.items()
        if name not in spec.forbidden and (name in spec.required or (room and not spec.dependents.get(name)))
    )


def _endless_array(spec: ArraySpec | CountedSpec, endless: Test) -> bool:
    if isinstance(spec, CountedSpec):
        return bool(spec.live) and endless_states(spec, endless)[0]
    if not all(node.live for node in spec.prefix[: spec.least]):
        return False
    if spec.most is None and spec.rest.live and all(node.live for node in spec.prefix):
        return spec.distinct is not True or endless(spec.rest)
    places = len(spec.prefix) + 1 if spec.most is None else min(spec.most, len(spec.prefix) + 1)
    for place in range(places):
        node = spec.prefix[place] if place < len(spec.prefix) else spec.rest
        if not node.live:
            return False
        if endless(node):
            return True
    return False


def endless_states(spec: CountedSpec, endless: Test) -> list[bool]:
    """Which states of a counted array have endlessly many completions. Cycles are loops, since counts only grow."""
    found = [False] * len(spec.states)
    for number in range(len(found) - 1, -1, -1):
        if not spec.live[number]:
            continue
        for node, after in spec.states[number].choices:
            if node.live and spec.live[after]:
                loops = after == number and not spec.distinct
                found[number] |= loops or endless(node) or (after != number and found[after])
    return found


def number_count(spec: NumberSpec) -> int:
    """How many numbers satisfy a spec, at least; `MANY` where there are that many or no end."""
    if spec.max_length is not None:
        return 1
    if spec.spelling == "integer":  # the others have no spelling
        spec = replace(spec, multiples=spec.multiples | {Fraction(1)})
    if spec.values is not None:
        return sum(map(spec.contains, spec.values))
    if spec.minimum is None or spec.maximum is None:
        return MANY
    if not spec.multiples:
        return MANY if spec.minimum < spec.maximum else 1
    step = Fraction(1)
    for number, multiple in enumerate(spec.multiples):
        step = lcm(step, multiple) if number else multiple
    count = int((spec.maximum - spec.minimum) / step) - 1 - len(spec.excluded)
    if count >= MANY and not spec.non_multiples:
        return MANY
    first = -(-spec.minimum // step)
    last = spec.maximum // step
    return sum(spec.contains(value * step) for value in range(int(first), min(int(last), int(first) + MANY // 100) + 1))


def count_values(node: ValueNode, enough: int, endless: Test, live: Test, listed: int) -> tuple[int, bool]:
    """(how many values a node has at least, up to ``enough``; whether that is exact).

    At most ``listed`` values are listed, of objects and arrays and where alternatives may overlap.
    """
    if endless(node):
        return enough, True
    total, exact = node.flags.bit_count(), True
    numbers = [number_count(choice.automaton.spec) for choice in node.numbers]
    strings = [_string_count(spec) for spec in node.strings]
    for counts in (numbers, [count for count, _ in strings]):
        total += max(counts, default=0)
        exact = exact and len(counts) < 2
    exact = exact and all(known for _, known in strings) and all(map(_is_plain, node.numbers))
    if total < enough and (node.objects or node.arrays or not exact):
        few = FewValues(live)
        limit = min(enough, listed)
        if not exact:
            scalars, exact = few.scalars(node, limit)
            total = max(total, len(scalars))
        compounds, all_listed = few.compounds(node, limit)
        total, exact = total + len(compounds), exact and all_listed
    return min(total, enough), exact or total >= enough


def _string_count(spec: EnumSpec | StringSpec) -> tuple[int, bool]:
    if isinstance(spec, EnumSpec):
        return len(set(spec.values)), True
    if spec.dfa is None:
        return (MANY, True) if spec.most != 0 else (1, True)
    if spec.most is not None or spec.least:
        return 1, False
    return int(count_words(spec.dfa, MANY)[0]), True


def _is_plain(choice: NumberChoice) -> bool:
    return choice.automaton.spec.max_length is None
