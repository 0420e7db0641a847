"""Partial values of Python types: nothing is raised, what is there stays, and the last is the value."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import itertools
import json
import pickle
import random
import re
import warnings
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, NotRequired

import pydantic
import pydantic_core
import pytest
from pydantic import Field
from typing_extensions import TypedDict

import structgen
from structgen import RefusedValueError
from structgen.core.json_prefix import loads_partial
from structgen.errors import ConstraintError
from tests.core.python_types.test_python_types import BYTES, texts
from tests.fuzz.python_types import readable_type


class Line(pydantic.BaseModel):
    product: Annotated[str, Field(min_length=2)]
    count: int = 1


class Receipt(pydantic.BaseModel):
    shop: str
    day: datetime.date
    lines: list[Line] = []
    note: str | None = None

    @pydantic.model_validator(mode="after")
    def has_lines(self) -> Receipt:
        if not self.lines:
            raise ValueError("empty")
        return self


@dataclasses.dataclass(frozen=True, slots=True)
class Span:
    start: int
    label: str = "x"

    def __post_init__(self) -> None:
        assert self.start >= 0


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    name: str


class Row(NamedTuple):
    x: int
    name: str


class Card(TypedDict):
    title: str
    pages: NotRequired[int]


class Private(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    word: str = Field(alias="theWord")
    _count: int = pydantic.PrivateAttr(default=7)


def partial(kind: Any, text: str) -> Any:
    return structgen.json_schema(kind).parse_partial(text)


def test_a_model() -> None:
    assert partial(Receipt, " ") is None
    begun = partial(Receipt, '{"shop": "Cor')
    assert type(begun) is Receipt and begun.shop == "Cor" and begun.day is None and begun.lines is None
    assert begun.model_fields_set == {"shop"}
    later = partial(Receipt, '{"shop": "Corner", "day": "2026-01-0')
    assert later.day is None and later.model_fields_set == {"shop"}
    lines = partial(Receipt, '{"shop": "Corner", "day": "2026-01-02", "lines": [{"product": "tea"}, {"product": "m')
    assert lines.day == datetime.date(2026, 1, 2)
    assert lines.lines[0] == Line(product="tea", count=1)  # whole: with its defaults
    assert (lines.lines[1].product, lines.lines[1].count) == ("m", None)  # open: not yet known
    whole = '{"shop": "Corner", "day": "2026-01-02", "lines": [{"product": "tea"}]}'
    assert partial(Receipt, whole) == structgen.json_schema(Receipt).parse(whole)
    assert partial(Receipt, whole + "\n") == partial(Receipt, whole)


def test_validators_refuse_and_nothing_is_raised() -> None:
    text = '{"shop": "Corner", "day": "2026-01-02", "lines": []}'
    with pytest.raises(RefusedValueError):
        structgen.json_schema(Receipt).parse(text)
    assert partial(Receipt, text).shop == "Corner"
    assert partial(Span, '{"start": -1, "label": "a"}') == partial(Span, '{"start": -1, "label": "a"')


def test_classes_of_other_kinds() -> None:
    span = partial(Span, '{"start": 3, "la')
    assert type(span) is Span and span.start == 3 and span.label is None
    assert partial(Row, '[3, "ab') == Row(3, "ab") and type(partial(Row, "[3, ")) is Row
    assert partial(Row, "[3, ") == (3, None)
    assert partial(Card, '{"title": "A", "pages": 1') == {"title": "A"}
    assert partial(Card, '{"title": "A", "pages": 1}') == {"title": "A", "pages": 1}
    private = partial(Private, '{"theWord": "a", "more": [1, ')
    assert private.word == "a" and private.model_extra == {"more": [1]} and private._count == 7


def test_containers() -> None:
    assert partial(dict[int, list[str]], '{"1": ["a"], "2": ["b') == {1: ["a"], 2: ["b"]}
    assert partial(tuple[int, str], "[1, ") == (1,)
    assert partial(tuple[int, ...], "[1, 2, 3") == (1, 2)
    assert partial(set[str], '["a", "b') == {"a"}
    assert partial(list[Card], '[{"title": "') == [{"title": ""}]
    assert partial(pydantic.RootModel[list[int]], "[1, 2").root == [1]
    assert partial(list[int] | None, "nul") is None
    assert partial(Any, '{"a": [1, "x') == {"a": [1, "x"]}


def test_unions_are_the_first_choice_that_fits() -> None:
    pets = list[Annotated[Cat | Dog, Field(discriminator="kind")]]
    assert type(partial(pets, '[{"kind": "dog", "na')[0]) is Dog
    assert type(partial(pets, "[{")[0]) is Cat
    assert type(partial(Cat | Dog, '{"kind": "dog"')) is Dog
    assert partial(Literal["red", "green"] | int, '"re') is None
    assert partial(datetime.date | str, '"2026') == "2026"
    assert partial(datetime.date | str, '"2026-01-02"') == datetime.date(2026, 1, 2)
    assert partial(Line | Card, '{"title": "a') == {"title": "a"}


def test_a_function_is_a_dict_of_its_arguments() -> None:
    def write(city: str, day: datetime.date, days: int = 1) -> None: ...

    assert partial(write, '{"city": "Bonn", "day": "2026-01-02", "days": 1') == {
        "city": "Bonn",
        "day": datetime.date(2026, 1, 2),
    }


def test_constraints_with_partials_pickle() -> None:
    constraint = structgen.json_schema(Line)
    constraint.parse_partial("{")
    again = pickle.loads(pickle.dumps(constraint))
    assert again == constraint and again.parse_partial('{"product": "a').product == "a"


TYPES_TRIED = 150


def shown(value: Any) -> Any:
    """What a value contains, without what is not yet known: mappings, sequences, scalars."""
    if isinstance(value, pydantic.RootModel):
        return shown(value.root)
    if isinstance(value, pydantic.BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields if name in value.model_fields_set}
        return shown({**fields, **(value.model_extra or {})})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value) if field.init]
        return shown({name: getattr(value, name) for name in names})
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return shown(value._asdict())
    if isinstance(value, Mapping):
        return {key: shown(each) for key, each in value.items() if each is not None}
    if isinstance(value, (set, frozenset)):
        return {repr(each) for each in value}
    if isinstance(value, (str, bytes, enum.Enum)) or not hasattr(value, "__iter__"):
        return value
    return [shown(each) for each in value]


def lacks(before: Any, after: Any) -> str | None:
    """What of an earlier partial is not in a later one; None: nothing."""
    if before is None or (isinstance(before, str) and not isinstance(after, (str, dict, list))):
        return None  # a string that has become what the type makes of it
    if isinstance(before, dict) and isinstance(after, dict):
        lost = [key for key in before if key not in after]
        inside = (lacks(value, after[key]) for key, value in before.items() if key in after)
        return f"{lost} of {before}" if lost else next(filter(None, inside), None)
    if isinstance(before, list) and isinstance(after, list):
        if len(before) > len(after):
            return f"{before} after {after}"
        return next(filter(None, (lacks(a, b) for a, b in zip(before, after, strict=False))), None)
    if isinstance(before, set) and isinstance(after, set):
        return None if before <= after else f"{before - after}"
    if isinstance(before, str) and isinstance(after, str):
        return None if after.lower().strip().startswith(before.lower().strip()) else f"{before!r} in {after!r}"
    return None if (before == after or repr(before) == repr(after)) else f"{before!r} became {after!r}"


def is_union(schema: Any) -> bool:
    """Whether what is written may yet turn out to be of another type."""
    if isinstance(schema, dict):
        return "anyOf" in schema or "oneOf" in schema or any(map(is_union, schema.values()))
    return isinstance(schema, list) and any(map(is_union, schema))


@pytest.mark.parametrize("seed", range(10))
def test_partials_of_random_types(seed: int) -> None:
    """The oracle of the last one is pydantic; of those before, each other."""
    rng, checked = random.Random(f"partials {seed}"), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fields that shadow methods
        for _ in range(TYPES_TRIED // 10):
            kind = readable_type(rng)
            try:
                constraint = structgen.json_schema(kind)
                grammar = constraint.compile(BYTES)
            except ConstraintError:
                continue
            for text in texts(grammar, 4):
                checked += check(kind, constraint, text)
    assert checked > 20


def check(kind: Any, constraint: Any, text: str) -> bool:
    """Whether a text was of use."""
    partials = [constraint.parse_partial(text[:end]) for end in range(len(text) + 1)]
    try:
        value = constraint.parse(text)
    except RefusedValueError:
        assert constraint.report.checked
        return False
    if text[-1:] not in "0123456789":  # else digits may follow
        is_lazy = "ValidatorIterator" in repr(value)  # of Iterable[...], which can be read once
        assert is_lazy or repr(partials[-1]) == repr(value), (kind, text)
    if is_union(constraint.schema) or constraint.report.checked:
        return True
    contents = [shown(partial) for partial in partials]
    for end, (before, after) in enumerate(itertools.pairwise(contents), 1):
        assert lacks(before, after) is None, (kind, text[:end], lacks(before, after))
    return True


SPECIAL = ['"\\u00e9\\n"', '["\\ud83d\\ude00", -1.5e+3, true, null]', '{"a\\"b": {"": [[], {}]}, "c": 12}  ', '"a\\\\"']


@pytest.mark.parametrize("seed", range(30))
def test_plain_partials_are_those_of_another_parser(seed: int) -> None:
    """jiter's, which takes the digits of a number that are there for the number."""
    rng = random.Random(f"plain {seed}")
    text = SPECIAL[seed] if seed < len(SPECIAL) else json.dumps(random_json(rng, 4), indent=rng.choice((None, 1)))
    for end in range(len(text) + 1):
        prefix = text[:end]
        try:
            wanted = pydantic_core.from_json(without_number(text, end), allow_partial="trailing-strings")
        except ValueError:
            wanted = None
        assert loads_partial(prefix) == wanted, prefix


def without_number(text: str, end: int) -> str:
    """A beginning of a text, without a number at its end, to which digits may be added."""
    tokens = re.finditer(r'"(?:\\.|[^"\\])*"|(?P<number>-?[0-9][-+0-9.eE]*)', text)
    begun = (token.start() for token in tokens if token["number"] and token.start() < end <= token.end())
    return text[: next(begun, end)]


def random_json(rng: random.Random, depth: int) -> Any:
    way = rng.random()
    if depth and way < 0.3:
        return [random_json(rng, depth - 1) for _ in range(rng.randint(0, 4))]
    if depth and way < 0.7:
        return {rng.choice("abcdef") + str(n): random_json(rng, depth - 1) for n in range(rng.randint(0, 4))}
    return rng.choice(
        (None, True, False, rng.randint(-999, 999), rng.random() * 1e9, 1e-30, 'é\n"x', "😀", "", "words here")
    )
