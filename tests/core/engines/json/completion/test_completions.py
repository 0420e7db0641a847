"""Completions against breadth-first search over bytes, and words of automata against all texts in order."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

from structgen.core.engines.json.compiled import JsonGrammar, compile_json_schema
from structgen.core.engines.json.completion.cheapest_values import Values
from structgen.core.engines.json.completion.cheapest_words import Words, code_points, shortest_of_length, spelled
from structgen.core.engines.json.completion.completion_tables import ObjectForm, Open, key_hash
from structgen.core.engines.json.matcher import JsonMatcher
from structgen.core.engines.json.value_graph.scalars import NEVER
from structgen.core.kernels.json import layout
from structgen.core.regex.dfa import accepts, from_strings, universal
from structgen.core.regex.lengths import distances
from structgen.core.regex.pattern import pattern_dfa
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.options import JsonOptions

BYTES = Vocabulary([*[bytes([byte]) for byte in range(256)], None], eos_token_ids=256)
ALPHABET = [bytes([byte]) for byte in b'{}[]",:01234569.-abcdeflnrstux\\ \n']
MANY_STATES = 4_000


def compiled(schema: Any, **options: Any) -> JsonGrammar:
    return compile_json_schema(schema, BYTES, JsonOptions(**options))


def after(text: bytes, schema: Any, **options: Any) -> JsonMatcher:
    """A matcher that has read ``text``."""
    matcher = compiled(schema, **options).matcher()
    assert matcher.accept_bytes(text)
    return matcher


def state_of(matcher: JsonMatcher) -> Any:
    """The parse state by content, to tell states that have been met."""
    threads, arena = matcher.configurations()
    grammar = matcher.grammar.tables.grammar

    def frames(place: int) -> Any:
        while place >= 0:
            record = int(arena[place]) & layout.LOW32
            is_object = grammar[record + layout.R_KIND] == layout.R_OBJECT
            seen = (
                arena[place + layout.F_OTHERS : place + layout.F_SEEN + grammar[record + layout.O_WORDS]]
                if is_object
                else arena[:0]
            )
            yield (int(arena[place]), *seen.tolist())
            place = int(arena[place + layout.F_PARENT])

    return tuple(sorted((q, a, b, *frames(f)) for q, a, b, f in threads.tolist()))


def shortest_by_search(matcher: JsonMatcher) -> int:
    """Bytes of a shortest completion: breadth first over bytes."""
    layer, met, length = [matcher.fork()], {state_of(matcher)}, 0
    while not any(one.is_accepting() for one in layer):
        following = []
        for one in layer:
            for byte in ALPHABET:
                twin = one.fork()
                if twin.accept_bytes(byte) and (state := state_of(twin)) not in met:
                    met.add(state)
                    following.append(twin)
        assert following and len(met) < MANY_STATES
        layer, length = following, length + 1
    return length


CLOSED = {"additionalProperties": False}
TREE = {"type": "object", "properties": {"a": {"anyOf": [{"$ref": "#"}, {"enum": ["abc", 12345]}]}}, **CLOSED}
CASES: list[tuple[Any, bytes, dict[str, Any]]] = [
    ({"type": ["array", "boolean", "null"]}, b"", {}),
    ({"enum": ["red", "blue", 'a"', "b\\\\"]}, b"", {}),
    ({"enum": ["red", "blue", 'a"', "b\\\\"]}, b'"b', {}),
    ({"type": "integer", "minimum": 32}, b"", {}),
    ({"type": "integer", "minimum": 32, "multipleOf": 5}, b"1", {}),
    ({"type": "number", "exclusiveMinimum": 0, "maximum": 0.25}, b"0", {}),
    ({"type": "string", "minLength": 3}, b'"a', {}),
    ({"type": "string", "minLength": 2, "maxLength": 4}, b'"\\u00', {}),
    ({"type": "string", "pattern": "^(ab|cde|)f\\.[0-9]{2}$"}, b'"', {}),
    ({"type": "string", "pattern": "^(a|bcd)*$", "minLength": 4, "maxLength": 5}, b'"bcd', {}),
    ({"type": "string", "pattern": "^(a|b)c$"}, b'"\\', {"string_escapes": "any"}),
    ({"required": ["a", "b"], "properties": {"b": {"const": None}}, "type": "object"}, b"", {}),
    ({**TREE, "required": ["a"]}, b"", {}),
    (TREE, b'{"a":{"a":', {}),
    (
        {
            "type": "array",
            "minItems": 2,
            "prefixItems": [{"type": "object", **CLOSED}],
            "items": {"enum": [[0, 1], 123456]},
        },
        b"",
        {},
    ),
    ({"type": "array", "minItems": 3, "items": {"type": "boolean"}}, b"[", {"whitespace": 1}),
    ({"type": "array", "items": {"type": "array"}}, b"[[],\n  [", {"whitespace": "any"}),
    ({"type": "array", "items": {"type": "array", "minItems": 1}}, b"[", {"whitespace": 1}),
    ({"properties": {n: {"enum": [0]} for n in "abc"}, "minProperties": 2, "type": "object", **CLOSED}, b'{"b":0', {}),
    (
        {"properties": {n: {"enum": [0]} for n in "abc"}, "minProperties": 3, "type": "object", **CLOSED},
        b'{"b":0',
        {"key_order": "any"},
    ),
    (
        {"properties": {"a": {}, "abc": {}}, "required": ["abc"], "type": "object", **CLOSED},
        b'{"a',
        {"key_order": "any"},
    ),
    (
        {"properties": {"a": {}, "b": {}, "c": {}}, "dependentRequired": {"a": ["c"]}, "type": "object", **CLOSED},
        b'{"',
        {},
    ),
    ({"anyOf": [{"type": "array", "minItems": 3}, {"type": "array", "items": {"const": 1}, "minItems": 1}]}, b"[", {}),
    ({"anyOf": [{"const": "abcde"}, {"type": "string", "minLength": 4}]}, b'"ab', {}),
]


@pytest.mark.parametrize(
    ("schema", "text", "options"), CASES, ids=lambda value: json.dumps(value, default=bytes.decode)
)
def test_completions_are_shortest(schema: Any, text: bytes, options: dict[str, Any]) -> None:
    matcher = after(text, schema, **options)
    completion = matcher.shortest_completion()
    assert len(completion) == shortest_by_search(matcher), completion
    assert matcher.accept_bytes(completion) and matcher.is_accepting()


@pytest.mark.parametrize(
    ("schema", "text", "completion"),
    [
        ({"type": "object"}, b'{"a":0,"', b'":0}'),
        ({"type": "object"}, b'{"":0,"', b'0":0}'),  # any key but the one there is
        ({"type": "object", "properties": {"": {"const": "much longer"}}}, b'{"', b'0":0}'),
        ({"type": "object", "patternProperties": {"^x": {"enum": ["long"]}}}, b'{"x', b'":"long"}'),
        ({"type": "object", "patternProperties": {"x$": {"enum": [1234]}}}, b'{"x', b'0":0}'),
        ({"type": "object", "minProperties": 3}, b"{", b'"":0,"0":0,"1":0}'),
        ({"type": "object", "properties": {"ab": {"enum": [123456]}}}, b'{"a', b'":0}'),
        ({"type": "array", "items": {"type": "object"}}, b'[{"a":[{"b":"', b'"}]}]'),
    ],
)
def test_undeclared_keys(schema: Any, text: bytes, completion: bytes) -> None:
    assert after(text, schema).shortest_completion() == completion


def test_members_that_fill_an_object_are_not_those_that_meet_existentials() -> None:
    """The cheapest name meets the existential; to fill the object it is not there any more."""
    grammar = compiled({"type": "object", "minProperties": 5, "not": {"additionalProperties": {"type": "object"}}})
    forms = grammar.completions.index(grammar).frames.values()
    existential = [form for form in forms if isinstance(form, ObjectForm) and form.spec.existentials]
    assert existential
    for form in existential:
        plan = Values(grammar.options).objects.plan(Open(form), False)
        assert plan is not None and plan.existential
        assert len({member.key for member in plan.members}) == len(plan.members) == 5


ROOM_FOR_ONE: dict[str, dict[str, Any]] = {
    "far": {
        "patternProperties": {"a$": {"type": "integer"}},
        "additionalProperties": False,
        "not": {"patternProperties": {"^cde": False}},
    },
    "one for all": {
        "propertyNames": {"pattern": "^([ab][0-9])+$"},
        "allOf": [{"not": {"propertyNames": {"not": {"pattern": part}}}} for part in ("a5b", "^[^5]*$|7", "^[^7]*$|9")],
    },
}


@pytest.mark.parametrize("name", ROOM_FOR_ONE)
def test_existentials_of_the_only_member(name: str) -> None:
    """The key must meet them all, and may be a long way off."""
    grammar = compiled({"type": "object", "maxProperties": 1, **ROOM_FOR_ONE[name]})
    matcher = grammar.matcher()
    whole = matcher.shortest_completion()
    for byte in whole:
        assert matcher.accept_bytes(matcher.copy().shortest_completion()), matcher.stats
        matcher.rollback()
        assert matcher.accept_bytes(bytes([byte]))
    assert matcher.is_accepting() and len(json.loads(whole)) == 1


@pytest.mark.parametrize("schema", [{"type": "string", "minLength": 2}, {"enum": ["\U0001f600!", "\ud7ff", "/"]}])
@pytest.mark.parametrize(
    "text", [b'"\\', b'"\\u', b'"\\ud', b'"\\uD8', b'"\\ud83d', b'"\\ud83d\\', b'"\\ud83d\\ude', b'"\\u00']
)
def test_escapes_are_finished(schema: Any, text: bytes) -> None:
    matcher = compiled(schema, string_escapes="any").matcher()
    if matcher.accept_bytes(text):
        completion = matcher.shortest_completion()
        assert matcher.accept_bytes(completion) and matcher.is_accepting()
        assert len(completion) < 20


def test_an_escape_is_finished_for_the_character_that_is_wanted() -> None:
    matcher = after(b'"\\u00', {"enum": ["z" * 50, "y", "x" * 40]}, string_escapes="any")
    assert matcher.shortest_completion() == b'79"'


@pytest.mark.parametrize("indent", [0, 2])
def test_indented_output_is_what_json_dumps_writes(indent: int) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array", "minItems": 2}, "b": {}}, "required": ["a", "b"]}
    matcher = compiled({"type": "array", "items": schema, "minItems": 2}, whitespace=indent).matcher()
    text = matcher.shortest_completion()
    assert text.decode() == json.dumps(json.loads(text), indent=indent)
    for end in range(len(text)):
        assert after(text[:end], {"type": "array", "items": schema, "minItems": 2}, whitespace=indent)


def test_every_cut_of_an_output_is_completed() -> None:
    """Also between the bytes of a character."""
    schema = {"properties": {"é€": {"enum": ["\U0001f600é", "é"]}, "n": {"type": "number"}}, "required": ["n"]}
    grammar = compiled({"type": "object", **schema})
    text = '{"é€": "\U0001f600é", "n": -1.5}'.encode()
    for end in range(len(text) + 1):
        matcher = grammar.matcher()
        assert matcher.accept_bytes(text[:end])
        completion = matcher.shortest_completion()
        assert matcher.accept_bytes(completion) and matcher.is_accepting()
        json.loads(text[:end] + completion)


def test_the_matcher_is_left_as_it_was() -> None:
    matcher = after(b'{"a":[1,{"b":', {"type": "object"})
    before, arena = matcher.configurations()
    before, arena = before.copy(), arena.copy()
    assert matcher.shortest_completion() == b"0}]}"
    assert (matcher.configurations()[0] == before).all()
    assert (matcher.configurations()[1][: len(arena)] == arena).all() or len(matcher.configurations()[1]) >= len(arena)
    matcher.rollback()
    with pytest.raises(Exception, match="roll back"):
        matcher.rollback()


def test_nothing_completes_what_may_stop() -> None:
    assert after(b"12", {"type": "integer"}).shortest_completion() == b""


# --- words ---
def words_of(pattern: str) -> Words:
    dfa = pattern_dfa(pattern)
    return Words(dfa.transitions, np.where(dfa.accepting, 0, NEVER))


@pytest.mark.parametrize("pattern", ["^a{0,3}$", "^(a|bb)*$", '^["a]{1,3}$', "^(\\n|aaa|a\\x01)?b$", "^[ab]*a[ab]$"])
def test_words_come_by_length(pattern: str) -> None:
    found = list(itertools.islice(words_of(pattern).by_cost(0), 12))
    assert len({text for _, text, _ in found}) == len(found)
    assert all(cost == len(spelled(text)) and accepts(pattern_dfa(pattern), text.decode()) for cost, text, _ in found)
    candidates = ["".join(letters) for n in range(6) for letters in itertools.product('ab"\n\x01', repeat=n)]
    costs = sorted(len(json.dumps(text)) - 2 for text in candidates if accepts(pattern_dfa(pattern), text))
    assert [cost for cost, _, _ in found] == costs[: len(found)]
    assert len(spelled(words_of(pattern).suffix(0))) == costs[0]


def test_words_of_a_finite_set_end() -> None:
    dfa = from_strings(["é", "", "abc"])
    words = Words(dfa.transitions, np.where(dfa.accepting, 0, NEVER))
    assert [text.decode() for _, text, _ in words.by_cost(0)] == ["", "é", "abc"]


@pytest.mark.parametrize("pattern", ["^(aa|bbb)*$", "^é{2}(xy)*$", "^[\U0001f600é]+a?$"])
@pytest.mark.parametrize("least", range(8))
def test_texts_of_a_length(pattern: str, least: int) -> None:
    dfa = pattern_dfa(pattern)
    text = shortest_of_length(dfa, distances(dfa), 0, least)
    assert accepts(dfa, text.decode())
    assert code_points(text) == len(text.decode()) == distances(dfa).next_length(0, least)


def test_spelling_is_that_of_json() -> None:
    text = "".join(map(chr, range(0x250)))
    assert spelled(text.encode()).decode() == json.dumps(text, ensure_ascii=False)[1:-1]


def test_a_hash_can_be_continued() -> None:
    assert key_hash("éa".encode()) == key_hash(b"a", key_hash("é".encode()))
    assert universal().accepting[0]


@pytest.mark.parametrize("whitespace", ["compact", "single", "any", 0, 1, 3])
@pytest.mark.parametrize("items", [[0, 0.5, 7], [1, 0, 0.25, 10], [0.5, 0, 0.125, 0.75]])
def test_distinct_items_that_must_match_are_found_behind_line_breaks(whitespace: Any, items: list[float]) -> None:
    """The cheapest item is there already: the next one is looked for where the line begins, not in its first digit."""
    schema = {"type": "array", "uniqueItems": True, "contains": {"type": "number", "multipleOf": 1}, "minContains": 3}
    grammar = compiled(schema, whitespace=whitespace, max_number_length=12)
    indent, spaced = whitespace if isinstance(whitespace, int) else None, whitespace in ("single", "any")
    text = json.dumps(items, indent=indent, separators=(", ", ": ") if spaced else (",", ":")).encode()
    for cut in range(len(text) - 1):
        matcher = grammar.matcher()
        assert matcher.accept_bytes(text[:cut])
        rest = matcher.shortest_completion()
        value = json.loads(text[:cut] + rest)
        whole = [item for item in value if isinstance(item, int | float) and float(item).is_integer()]
        assert len(value) <= 7 and len(whole) >= 3 and len(set(map(str, value))) == len(value)
        assert matcher.completion_bound() >= len(rest)
