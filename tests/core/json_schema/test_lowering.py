"""Lowering means what an independent validator (jsonschema) makes of the same schema; and it withstands anything."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from structgen.core.json_schema.dialects import BY_NAME
from structgen.core.json_schema.formula.evaluate import evaluate
from structgen.core.json_schema.formula.language import (
    FALSE,
    TRUE,
    All,
    And,
    Formula,
    Order,
    Pat,
    Ref,
    Type,
    named,
    spelled,
    unordered,
)
from structgen.core.json_schema.formula.values import OBJECT, STRING
from structgen.core.json_schema.lowering import Lowered, lower
from structgen.errors import ConstraintError, SchemaTooComplexError, UnresolvableReferenceError
from structgen.options import JsonOptions
from tests.core.json_schema.collector import collect
from tests.core.json_schema.random_schemas import SCALARS, Schemas

VALIDATORS: dict[str, Any] = {
    "draft3": jsonschema.Draft3Validator,
    "draft4": jsonschema.Draft4Validator,
    "draft6": jsonschema.Draft6Validator,
    "draft7": jsonschema.Draft7Validator,
    "draft2019-09": jsonschema.Draft201909Validator,
    "draft2020-12": jsonschema.Draft202012Validator,
}


def conjuncts(formula: Formula) -> tuple[Formula, ...]:
    """What a formula is the conjunction of."""
    formula = spelled(formula)
    return formula.args if isinstance(formula, And) else (formula,)


def agree(schema: Any, make: Schemas, valid: Callable[[Any], bool], count: int = 25) -> None:
    lowered = lower(schema, JsonOptions(dialect=make.dialect, assert_formats=False))  # type: ignore[arg-type]
    values = [make.value() for _ in range(count)]
    assert [v for v in values if evaluate(lowered.root, v, lowered.refs) != valid(v)] == [], json.dumps(schema)


def without_boolean_items(schema: Any) -> Any:
    """The same for the oracle, whose ``additionalItems`` asks for the length of a Boolean ``items``."""
    if isinstance(schema, list):
        return [without_boolean_items(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: without_boolean_items(part) for name, part in schema.items()}
    if "additionalItems" in parts and isinstance(parts.get("items"), bool):
        parts["items"] = {} if parts["items"] else {"not": {}}
    return parts


@pytest.mark.parametrize("dialect", VALIDATORS)
def test_random_schemas_agree_with_jsonschema(dialect: str) -> None:
    for seed in range(250):
        # From 2019-09 on "dependencies" is no keyword for the oracle; optional/dependencies-compatibility tests it.
        late = ("dependencies",) if dialect.startswith("draft20") else ()
        make = Schemas(dialect, seed, without=("unevaluatedProperties", "unevaluatedItems", *late))
        schema = make.root()
        agree(schema, make, VALIDATORS[dialect](without_boolean_items(schema)).is_valid)


@pytest.mark.first_case
@pytest.mark.parametrize("dialect", ["draft2019-09", "draft2020-12"])
def test_unevaluated_agrees_with_collected_annotations(dialect: str) -> None:
    """jsonschema is no oracle here: it departs from the specification and fails on Boolean ``items``."""
    words = ["unevaluatedProperties", "unevaluatedItems", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "not"]
    words += ["$ref", "properties", "patternProperties", "additionalProperties", "prefixItems", "items", "contains"]
    for seed in range(250):
        make = Schemas(dialect, seed, [*words, "additionalItems", "required"])
        schema = {**make.root(), "unevaluatedProperties": make.schema(3), "unevaluatedItems": make.schema(3)}
        schema["definitions"] = {"one": Schemas(dialect, seed, [*words[:8], *words[9:]]).schema(1)}
        agree(schema, make, lambda v, s=schema: collect(s, v, s, dialect) is not None)  # type: ignore[misc]


@pytest.mark.full
@pytest.mark.parametrize("dialect", ["draft2019-09", "draft2020-12"])
def test_unevaluated_beside_a_reference_to_the_whole(dialect: str) -> None:
    """A subschema that is asked whether it holds may hold, behind the reference, the keyword that asks."""
    words = ["anyOf", "oneOf", "if", "allOf", "properties", "prefixItems", "items", "contains", "dependentSchemas"]
    compared = 0
    for seed in range(300):
        make = Schemas(dialect, seed, words)
        below = make.random.choice(["contains", "additionalProperties", "items"])
        word = make.random.choice(["unevaluatedItems", "unevaluatedProperties"])
        schema = {**make.schema(), "anyOf": [make.schema(2), {below: {"$ref": "#", word: make.schema(2)}}]}
        try:
            agree(schema, make, lambda v, s=schema: collect(s, v, s, dialect) is not None)  # type: ignore[misc]
            compared += 1
        except UnresolvableReferenceError:
            continue
    assert compared > 250


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"unevaluatedItems": False, "$ref": "#"}, {"type": "array"}]},
        {"anyOf": [{"unevaluatedProperties": False, "$ref": "#"}], "type": "object"},
        {"if": {"unevaluatedProperties": False, "$ref": "#"}, "then": False},
        {"dependentSchemas": {"a": {"unevaluatedItems": False, "$ref": "#"}}},
    ],
)
def test_unevaluated_in_a_loop_in_place_is_no_depth(schema: Any) -> None:
    try:
        lower(schema)
    except UnresolvableReferenceError as error:
        assert "itself" in str(error)


LEAVES = st.sampled_from([*SCALARS, -1, 2.5, "integer", "#", "#/a", "#b", "http://x.y/z", "^(", "object"])
JSON = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                [*BY_NAME["draft3"].functions, *BY_NAME["draft2019-09"].functions, "prefixItems", "$id", "id"]
            )
            | st.sampled_from(["$anchor", "$dynamicAnchor", "$dynamicRef", "then", "minContains", "a"]),
            inner,
            max_size=5,
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(JSON, st.sampled_from(sorted(VALIDATORS)))
def test_anything_lowers_or_raises_a_constraint_error(schema: Any, dialect: str) -> None:
    try:
        lowered = lower(schema, JsonOptions(dialect=dialect))  # type: ignore[arg-type]
    except ConstraintError as error:
        assert str(error)
    else:
        str(lowered.report)
        assert set(lowered.report.to_dict()) or isinstance(schema, bool) or schema == {}


# --- recursion and sharing -------------------------------------------------------------------------------------------

LIST = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}


def test_recursion_is_a_reference_by_key() -> None:
    lowered = lower(LIST)
    (key,) = lowered.refs
    assert lowered.refs[key] is lowered.root
    assert any(isinstance(arg, All) and isinstance(arg.value, Ref) for arg in conjuncts(lowered.root))
    assert evaluate(lowered.root, {"next": {"next": {}}}, lowered.refs)
    assert not evaluate(lowered.root, {"next": {"last": {}}}, lowered.refs)


def test_keys_of_different_schemas_differ() -> None:
    assert not set(lower(LIST).refs) & set(lower({**LIST, "required": ["next"]}).refs)


def test_references_without_recursion_are_inlined() -> None:
    schema = {
        "$defs": {"s": {"type": "string"}},
        "properties": {"a": {"$ref": "#/$defs/s"}, "b": {"$ref": "#/$defs/s"}},
    }
    lowered = lower(schema, JsonOptions(key_order="any"))
    assert not lowered.refs
    assert set(lowered.root.args) == {All(named(name), Type(STRING)) for name in "ab"}  # type: ignore[attr-defined]


def test_mutual_recursion() -> None:
    schema = {
        "$ref": "#/$defs/even",
        "$defs": {
            "even": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/odd"}, "minItems": 1}]},
            "odd": {"type": "array", "items": {"$ref": "#/$defs/even"}, "minItems": 1},
        },
    }
    lowered = lower(schema)
    assert [evaluate(lowered.root, value, lowered.refs) for value in (None, [None], [[None]], [[[None]]])] == [
        True,
        False,
        True,
        False,
    ]


def test_a_loop_in_place_means_its_least_fixpoint() -> None:
    schema = {"anyOf": [{"$ref": "#"}, {"type": "null"}, {"allOf": [{"$ref": "#/$defs/x"}]}], "$defs": {}}
    schema["$defs"] = {"x": {"anyOf": [{"$ref": "#"}, {"const": 1}]}}
    lowered = lower(schema)
    assert [evaluate(lowered.root, value, lowered.refs) for value in (None, 1, 2)] == [True, True, False]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"not": {"$ref": "#"}},
        {"oneOf": [{"$ref": "#"}, {"type": "null"}]},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
    ],
)
def test_other_loops_in_place_are_refused(schema: Any) -> None:
    with pytest.raises(UnresolvableReferenceError, match="refers to itself"):
        lower(schema)


# --- declared order --------------------------------------------------------------------------------------------------


def order_of(lowered: Lowered) -> list[tuple[str, ...]]:
    return [arg.names for arg in conjuncts(lowered.root) if isinstance(arg, Order)]


def test_orders_of_a_conjunction_are_merged_in_schema_order() -> None:
    first, second = {"properties": {"b": True, "a": True}}, {"properties": {"a": True, "c": True}}
    assert order_of(lower({"allOf": [first, second]})) == [("b", "a", "c")]
    assert order_of(lower({"allOf": [second], **first})) == [("a", "c", "b")]
    assert order_of(lower(first, JsonOptions(key_order="any"))) == []


def test_no_order_below_a_negation() -> None:
    assert not lower({"not": {"properties": {"a": False}}}).root.ordered
    lowered = lower(
        {"not": {"items": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/a"}}}}}
    )
    assert unordered(lowered.root) is lowered.root


def test_schemas_that_differ_in_order_alone_differ() -> None:
    one, other = ({"properties": {name: {"type": "null"} for name in names}} for names in ("ab", "ba"))
    assert lower(one).root is not lower(other).root
    assert unordered(lower(one).root) is unordered(lower(other).root)


# --- size ------------------------------------------------------------------------------------------------------------


def test_deep_nesting_is_lowered_or_refused_by_name() -> None:
    shallow: dict[str, Any] = {}
    for _ in range(100):
        shallow = {"items": shallow}
    deep = shallow
    for _ in range(10_000):
        deep = {"properties": {"a": deep}}
    assert lower(shallow).root is TRUE
    with pytest.raises(SchemaTooComplexError) as error:
        lower(deep)
    assert error.value.limit == sys.getrecursionlimit()


def test_a_schema_of_two_megabytes() -> None:
    branch = {"type": "object", "properties": {f"the property {i}": {"type": "string"} for i in range(200)}}
    schema = {"type": "object", "properties": {f"branch {i}": {"maxProperties": i, **branch} for i in range(260)}}
    assert len(json.dumps(schema)) > 2_000_000
    assert len(conjuncts(lower(schema, JsonOptions(key_order="any")).root)) == 261


def test_overlapping_unevaluated_classes_have_a_budget() -> None:
    branches = [{"patternProperties": {f"a{i}": True}, "required": [f"a{i}"]} for i in range(14)]
    with pytest.raises(SchemaTooComplexError, match="max_alternatives"):
        lower({"anyOf": branches, "unevaluatedProperties": False})


def test_booleans_and_origins() -> None:
    assert lower(True).root is TRUE
    assert lower(False).root is FALSE
    lowered = lower({"properties": {"a/b": {"type": "string", "pattern": "^x"}}, "type": "object"})
    assert lowered.origin(Pat("^x")) == ("/properties/a~1b/pattern", "pattern")
    assert lowered.origin(Type(OBJECT)) == ("/type", "type")
    assert lowered.origin(Pat("^y")) is None
