"""Arrays whose items are counted by what they satisfy: ``contains``, and conditions that some item must meet.

A counter asks for at least ``least`` and at most ``most`` items that satisfy a formula, among the places ``lo`` to
``hi``. Such an array is an automaton: its state is the place (as far as places differ) and the counts (as far as they
matter). The next item is one of several choices: for each counter, an item that is counted, which must satisfy the
formula, or one that is not. Choices may overlap; the machine follows all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

from structgen.core.engines.json.value_graph.items import CountedSpec, CountedState
from structgen.core.json_schema.budget import StepBudget
from structgen.core.json_schema.formula.language import FALSE, TRUE, Formula, Idx, Items, Not, and_, not_, unordered
from structgen.errors import SchemaTooComplexError

if TYPE_CHECKING:
    from structgen.core.engines.json.value_graph.node import ValueNode


K = TypeVar("K")
ENDLESS = 1 << 30
CHOICE_STEPS = 4  # what a choice costs, for each counter


@dataclass(frozen=True)
class Counter:
    """How many items among places ``lo`` to ``hi`` (None: no end) satisfy ``value``: ``least`` to ``most``."""

    value: Formula
    lo: int
    hi: int | None
    least: int
    most: int | None


def counters(literals: Iterable[Formula]) -> list[Counter]:
    """The counters of an array conjunction: one a formula for counts, one each for "not all items are"."""
    least: dict[Formula, int] = {}
    most: dict[Formula, int] = {}
    conditions = []
    for literal in literals:
        atom = literal.arg if isinstance(literal, Not) else literal
        if isinstance(atom, Items) and atom.value is not TRUE:
            if atom is literal:
                least[atom.value] = max(least.get(atom.value, 0), atom.n)
            else:
                most[atom.value] = min(most.get(atom.value, atom.n - 1), atom.n - 1)
        elif isinstance(atom, Idx) and atom is not literal:
            conditions.append(Counter(not_(unordered(atom.value)), atom.lo, atom.hi, 1, None))
    both = [Counter(value, 0, None, least.get(value, 0), most.get(value)) for value in {**least, **most}]
    return [*both, *conditions]


@dataclass(frozen=True)
class CountedPlan:
    """What the automaton is built from: conditions by place, counters, and how many items there may be."""

    ranges: list[tuple[int, int | None, Formula]]
    counters: list[Counter]
    least: int
    most: int | None
    distinct: bool


class CountedArrays:
    """Builds automata of counted arrays. ``possible(f)``: whether some value may satisfy f (False is certain)."""

    def __init__(
        self,
        node: Callable[[Formula], ValueNode],
        possible: Callable[[Formula], bool],
        max_states: int,
        budget: StepBudget,
    ) -> None:
        self._budget = budget
        self._node = node
        self._possible = possible
        self._max_states = max_states

    def build(self, plan: CountedPlan) -> CountedSpec:
        """The automaton from the empty array on, as far as it is reached. Its states may turn out to be dead.

        Raises:
            SchemaTooComplexError: more than ``max_states`` states.
        """
        ends = [bound for lo, hi, _ in plan.ranges for bound in (lo, hi) if bound is not None]
        ends += [bound for c in plan.counters for bound in (c.lo, c.hi) if bound is not None]
        last = max([plan.least, plan.most or 0, *ends])
        start = (0, *(0 for _ in plan.counters))
        numbers = {start: 0}
        states: list[CountedState] = []
        for state in numbers_of(numbers):
            position, *counts = state
            choices, needs = [], []
            if plan.most is None or position < plan.most:
                for value, after in self._choices(plan, position, counts):
                    following = (min(position + 1, last), *after)
                    choices.append((self._node(value), numbers.setdefault(following, len(numbers))))
                    # items before a counter's first place may satisfy what it counts, too
                    before = [
                        count + min(position, counter.lo)
                        for counter, count, later in zip(plan.counters, counts, after, strict=True)
                        if later > count
                    ]
                    needs.append(1 + min([*before, position if position < last else ENDLESS]))
            closes = position >= plan.least and all(
                count >= c.least for count, c in zip(counts, plan.counters, strict=True)
            )
            states.append(CountedState(closes, choices, needs))
            if len(numbers) > self._max_states:
                raise SchemaTooComplexError(
                    f"an array whose items are counted needs more than {self._max_states} states",
                    budget="max_automaton_states",
                    limit=self._max_states,
                )
        return CountedSpec(states, plan.distinct)

    def _choices(self, plan: CountedPlan, position: int, counts: list[int]) -> Iterator[tuple[Formula, list[int]]]:
        """What the item at a place may satisfy, and the counts after it."""
        self._budget.spend(len(plan.ranges))
        base = and_(*[v for lo, hi, v in plan.ranges if lo <= position and (hi is None or position < hi)])
        options = []
        for counter, count in zip(plan.counters, counts, strict=True):
            options.append(list(self._options(counter, position, count, base, plan.distinct)))
        for choice in product(*options):
            self._budget.spend(CHOICE_STEPS * len(choice))
            value = and_(base, *[formula for formula, _ in choice])
            if value is not FALSE:
                yield value, [count for _, count in choice]

    def _options(
        self, counter: Counter, position: int, count: int, base: Formula, strict: bool
    ) -> Iterator[tuple[Formula, int]]:
        """For one counter: condition on the item, count after it.

        An item that is not counted need not fail the formula while there is no upper limit, nor one that is counted
        satisfy it once there are enough. ``strict``: they do, so that distinct items are counted as what they are.
        """
        inside = counter.lo <= position and (counter.hi is None or position < counter.hi)
        if not inside or (counter.most is None and count >= counter.least):
            yield TRUE, count
            return
        other = not_(unordered(counter.value))
        if self._possible(and_(base, other)):
            yield (TRUE if counter.most is None and not strict else other), count
        if counter.most is None or count < counter.most:
            yield (TRUE if count >= counter.least and not strict else counter.value), count + 1


def numbers_of(numbers: dict[K, Any]) -> Iterator[K]:
    """The keys of a dict that grows meanwhile, in order of insertion."""
    done = 0
    while done < len(numbers):
        fresh = list(numbers)[done:]
        done += len(fresh)
        yield from fresh
