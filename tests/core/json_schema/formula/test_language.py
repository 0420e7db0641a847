"""Hash-consing, and that no simplification changes the meaning."""

from __future__ import annotations

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import (
    FALSE,
    INT,
    TRUE,
    UNIQ,
    All,
    And,
    Enum,
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
    One,
    Or,
    Order,
    Pat,
    Ref,
    Type,
    Uniq,
    Unordered,
    and_,
    enum_of,
    named,
    node_count,
    not_,
    one,
    or_,
    ref,
    unordered,
)
from structgen.core.json_schema.formula.values import ANY, NUMBER, STRING

VALUES: list[Any] = [None, True, False, 0, 1, 1.5, -3, "", "a", "ab", [], [1], [1, 1.0], ["a", 2], {}, {"a": 1}]
VALUES += [{"a": "a", "b": 2}, {"b": None}]
ATOMS = [Ge(1), Gt(1), INT, Mult(1), Len(1), Len(2), Keys(1), Keys(2), UNIQ, Items(TRUE, 2), Order(["a"])]
ATOMS += [Type(mask) for mask in (0, ANY, NUMBER, STRING, STRING | NUMBER)]
ATOMS += [enum_of(values) for values in ([1, "a"], ["a", "b", None], [[1]], [True])]

FORMULAS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        st.builds(lambda parts: and_(*parts), st.lists(inner, max_size=4)),
        st.builds(lambda parts: or_(*parts), st.lists(inner, max_size=4)),
        st.builds(lambda parts: one(*parts), st.lists(inner, max_size=4)),
        st.builds(not_, inner),
        st.builds(All, st.sampled_from([TRUE, named("a"), not_(named("a"))]), inner),
        st.builds(Idx, st.integers(0, 2), st.none() | st.integers(0, 2), inner),
        st.builds(Items, inner, st.integers(0, 2)),
    ),
    max_leaves=8,
)


def truths(formula: Formula) -> list[bool]:
    return [evaluate(formula, value) for value in VALUES]


@pytest.mark.full
@given(st.lists(FORMULAS, max_size=4))
def test_connectives_mean_what_they_say(parts: list[Formula]) -> None:
    columns = list(zip(*map(truths, parts), strict=True)) or [()] * len(VALUES)
    assert truths(and_(*parts)) == [all(column) for column in columns]
    assert truths(or_(*parts)) == [any(column) for column in columns]
    assert truths(one(*parts)) == [sum(column) == 1 for column in columns]


@given(FORMULAS)
def test_negation(formula: Formula) -> None:
    assert truths(not_(formula)) == [not truth for truth in truths(formula)]
    assert and_(formula, not_(formula)) is FALSE or formula.__class__ in (And, Or)
    if isinstance(not_(formula), Not):
        assert not isinstance(formula, (And, Or, Not, Type))


@given(FORMULAS)
def test_order_is_an_annotation(formula: Formula) -> None:
    bare = unordered(formula)
    assert not bare.ordered
    assert truths(bare) == truths(formula)


@given(st.lists(FORMULAS, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_equal_formulas_are_one_object(parts: list[Formula], random: Any) -> None:
    shuffled = [*parts, parts[0]]
    random.shuffle(shuffled)
    assert and_(*parts) is and_(*shuffled)
    assert or_(*parts) is or_(*shuffled)


@given(FORMULAS)
def test_copies_are_the_same_object(formula: Formula) -> None:
    assert copy.deepcopy(formula) is formula
    assert pickle.loads(pickle.dumps(formula)) is formula


def test_the_text_of_a_formula_does_not_say_what_was_made_before() -> None:
    """Its arguments are kept in order of creation: of two conjunctions made the other way round, too."""
    texts = [f"And((Len({n}), Not(Len({n + 1}))))" for n in (71_003, 72_003)]
    made = [and_(Len(71_003), not_(Len(71_004))), and_(not_(Len(72_004)), Len(72_003))]
    assert [repr(formula) for formula in made] == texts


def test_simplification_at_construction() -> None:
    a, b = Len(1), Ge(2)
    assert and_() is TRUE
    assert or_() is FALSE
    assert one() is FALSE
    assert and_(a, TRUE) is a
    assert or_(a, FALSE) is a
    assert or_(a, not_(a)) is TRUE
    assert not_(not_(and_(a, b))) is and_(a, b)
    assert not_(and_(a, b)) is or_(not_(a), not_(b))
    assert and_(Type(STRING | NUMBER), Type(NUMBER)) is Type(NUMBER)
    assert and_(enum_of([1, "a"]), Type(STRING)) is named("a") is Enum(["a"])
    assert or_(Type(STRING), enum_of([1, "a"])) is or_(Type(STRING), enum_of([1]))
    assert and_(enum_of([1, 2]), not_(enum_of([2, 3]))) is enum_of([1])
    assert Enum([]) is FALSE
    assert all(formula is TRUE for formula in (Len(0), Keys(0), Items(a, 0), All(a, TRUE), All(FALSE, a), Idx(2, 2, a)))
    assert one(a, a, b) is and_(not_(a), b)
    assert isinstance(one(a, b), One)


@pytest.mark.parametrize("count", [Keys, Len, lambda n: Items(Type(NUMBER), n)])
def test_limits_of_one_count(count: Any) -> None:
    assert and_(count(3), not_(count(2))) is FALSE and and_(count(3), not_(count(3))) is FALSE
    assert and_(count(3), not_(count(4))) is not FALSE
    assert or_(count(3), not_(count(4))) is TRUE and or_(count(3), not_(count(3))) is TRUE
    assert or_(count(3), not_(count(2))) is not TRUE
    assert and_(Items(Type(STRING), 3), not_(Items(Type(NUMBER), 2))) is not FALSE


def test_references_lose_their_order_by_key() -> None:
    assert isinstance(ref("k"), Ref)
    assert unordered(ref("k")) is ref(Unordered("k"))
    assert unordered(ref(Unordered("k"))) is ref(Unordered("k"))


@pytest.mark.full
def test_nodes_live_as_long_as_they_are_used() -> None:
    """Whatever refers to what: negations and unordered readings are kept on the nodes, in circles too."""

    def build() -> list[Formula]:
        parts = [
            and_(Len(n), not_(Pat(f"unused {n}")), All(Pat(f"key {n}"), Order([f"name {n}"]))) for n in range(9, 99)
        ]
        return [*parts, *map(not_, parts), *map(unordered, parts), *map(not_, map(not_, parts)), ref(("unused", 1))]

    build()
    node_count()  # forgets the recent ones
    gc.collect()
    before = node_count()
    kept = build()
    assert node_count() > before + 500
    assert all(one is other for one, other in zip(kept, build(), strict=True))
    del kept
    node_count()
    gc.collect()
    assert node_count() <= before
    assert (Type(ANY), Type(0), Uniq(), Int()) == (TRUE, FALSE, UNIQ, INT)


def test_a_node_that_is_made_again_is_one_object() -> None:
    key = Len(12345).id
    node_count()
    again = and_(Len(12345), Ge(2))
    assert Len(12345).id > key and again is and_(Ge(2), Len(12345))


def test_threads_get_the_same_nodes() -> None:
    def build(_: int) -> list[Formula]:
        return [and_(Len(n), Ge(n), named(f"thread {n}")) for n in range(1, 200)]

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(build, range(4))
    assert all(mine is theirs for other in others for mine, theirs in zip(first, other, strict=True))
