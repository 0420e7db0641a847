"""Whatever is written for a Python type is read by pydantic as that type: random walks over many types."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import ipaddress
import json
import random
import re
import uuid
import zoneinfo
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Union

import numpy as np
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field
from typing_extensions import TypedDict

import structgen
from structgen import RefusedValueError, Vocabulary, allocate_token_bitmask
from structgen.core.constraints.json import as_constraint
from tests.core.python_types.judge import is_read
from tests.core.python_types.random_types import SCALARS
from tests.fuzz.python_types import readable_type

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)


class Colour(enum.Enum):
    RED = "red"
    TWO = 2
    HALF = 0.5
    NONE = None


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 7


class Event(pydantic.BaseModel):
    day: datetime.date
    until: datetime.datetime | None = None
    size: Annotated[int, Field(gt=3, multiple_of=5)] = 5
    places: set[datetime.date] = set()


class Record(TypedDict):
    at: datetime.time
    key: NotRequired[uuid.UUID]


class Point(NamedTuple):
    x: int
    day: datetime.date


@dataclass
class Span:
    length: datetime.timedelta
    price: decimal.Decimal = decimal.Decimal(1)


TYPES: list[Any] = [
    *(None, bool, int, float, str, bytes, decimal.Decimal, Path, uuid.UUID, Colour, Level),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
    *(ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network),
    *(ipaddress.IPv4Interface, ipaddress.IPv6Interface),
    *(pydantic.IPvAnyAddress, pydantic.IPvAnyInterface, pydantic.IPvAnyNetwork),
    *(pydantic.UUID1, pydantic.UUID4, pydantic.UUID5, pydantic.Base64Bytes, pydantic.Base64UrlBytes),
    *(pydantic.AwareDatetime, pydantic.NaiveDatetime, pydantic.HttpUrl, pydantic.FiniteFloat, pydantic.StrictInt),
    *(Literal["a", 1, True, None], Optional[int], Union[int, str]),  # noqa: UP007, UP045
    *(set[int], frozenset[str], set[datetime.date], list[float], tuple[int, str], tuple[int, ...]),
    *(dict[str, int], dict[int, str], dict[float, int], dict[bool, int], dict[datetime.date, int]),
    *(dict[uuid.UUID, int], dict[Colour, int], dict[Level, int], dict[Literal["a", "b"], int]),
    *(Event, Record, Point, Span),
    Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)],
    Annotated[decimal.Decimal, Field(max_digits=4)],
    Annotated[decimal.Decimal, Field(decimal_places=3, gt=1, le=decimal.Decimal("1.5"))],
    Annotated[str, Field(pattern="^a+$", max_length=4)],
    Annotated[list[int], Field(min_length=1, max_length=3)],
]


def texts(grammar: structgen.JsonGrammar, count: int) -> Iterator[str]:
    """Finished outputs of random walks over printable tokens, closed after sixty."""
    bitmask = allocate_token_bitmask(1, BYTES.size)
    for seed in range(count):
        rng, matcher, written = random.Random(seed), grammar.matcher(), bytearray()
        while True:
            matcher.fill_next_token_bitmask(bitmask)
            allowed = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little")).tolist()
            if allowed[-1] == 256 and (len(allowed) == 1 or rng.random() < 0.4):
                break
            if len(written) > 60:
                written += grammar.completions.complete(matcher)
                break
            shown = [token for token in allowed if 0x20 <= token < 0x7F and rng.random() < 0.97]
            token = rng.choice(shown or [token for token in allowed if token < 256])
            assert matcher.accept_token(token)
            written.append(token)
        yield written.decode()


def check(kind: Any, walks: int) -> None:
    """Whatever is written is read, unless the report says that validators have more to say."""
    constraint = structgen.json_schema(kind)
    for text in texts(constraint.compile(BYTES), walks):
        try:
            constraint.parse(text)
        except RefusedValueError:
            assert constraint.report.checked, (kind, text)


@pytest.mark.first_case
@pytest.mark.parametrize("kind", [*TYPES, *SCALARS], ids=str)
def test_every_output_is_read_as_the_type(kind: Any) -> None:
    check(kind, 60)


@dataclass(frozen=True)
class Listed:
    """Its hash is that of its fields: of a list there is none."""

    numbers: list[int]


@dataclass(frozen=True)
class Tupled:
    numbers: tuple[int, ...] = ()
    inside: Listed | None = None


@dataclass(frozen=True)
class Chained:
    number: int
    after: Chained | None = None


@dataclass(frozen=True)
class OwnHash:
    numbers: list[int]

    def __hash__(self) -> int:
        return 1


@dataclass(frozen=True)
class PartlyHashed:
    number: int
    numbers: list[int] = field(hash=False)


@dataclass(eq=False)
class Identical:
    numbers: list[int]


class FrozenModel(pydantic.BaseModel, frozen=True):
    numbers: list[int]


class FrozenTuples(pydantic.BaseModel, frozen=True):
    numbers: tuple[int, ...]


@pytest.mark.parametrize(
    ("kind", "item"),
    [
        (Listed, {"numbers": [1]}), (Tupled, {"numbers": [1]}), (Tupled, {"inside": {"numbers": [1]}}),
        (Chained, {"number": 1, "after": {"number": 2}}), (OwnHash, {"numbers": [1]}),
        (PartlyHashed, {"number": 1, "numbers": [1]}), (Identical, {"numbers": [1]}), (FrozenModel, {"numbers": [1]}),
        (FrozenTuples, {"numbers": [1]}), (Span, {"length": "PT1S"}),
    ],
)  # fmt: skip
def test_items_of_sets_have_a_hash_as_their_class_makes_it(kind: Any, item: dict[str, Any]) -> None:
    """Pydantic is the judge: of what it reads all is allowed, but for fields that may hold what has no hash."""
    text = json.dumps([item])
    wanted = is_read(pydantic.TypeAdapter(frozenset[kind]), text) and kind is not Tupled
    matcher = structgen.json_schema(frozenset[kind]).compile(BYTES).matcher()
    assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) is wanted
    check(frozenset[kind], 20)


@pytest.mark.full
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**40).map(lambda seed: readable_type(random.Random(seed))))
def test_every_output_of_any_type_is_read(kind: Any) -> None:
    """2,000 walks a type; `make fuzz` goes through types by the thousand."""
    try:
        structgen.json_schema(kind).compile(BYTES)
    except (structgen.ConstraintError, structgen.UnsatisfiableSchemaError):
        return  # refused by name
    check(kind, 2000)


YEAR_0 = [
    (datetime.date, '"0000-01-01"', '"0001-01-01"'),
    (datetime.datetime, '"0000-01-01T00:00:00Z"', '"2024-02-29T00:00:00Z"'),
    (datetime.time, '"23:59:60Z"', '"23:59:59Z"'),
    (dict[int, str], '{"a":""}', '{"-12":""}'),
    (ipaddress.IPv4Network, '"1.2.3.4/24"', '"1.2.3.0/24"'),
    (Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)], "1000", "999.99"),
]


@pytest.mark.parametrize(("kind", "refused", "taken"), YEAR_0)
def test_what_the_type_refuses_is_not_written(kind: Any, refused: str, taken: str) -> None:
    constraint = structgen.json_schema(kind)
    with pytest.raises(structgen.GenerationError):
        constraint.parse(refused)
    constraint.parse(taken)
    accepted = []
    for text in (refused, taken):
        matcher = constraint.compile(BYTES).matcher()
        accepted.append(matcher.accept_bytes(text.encode()) and matcher.is_accepting())
    assert accepted == [False, True]


def test_dates_of_plain_schemas_are_those_of_rfc_3339() -> None:
    matcher = structgen.json_schema({"type": "string", "format": "date"}).compile(BYTES).matcher()
    assert matcher.accept_bytes(b'"0000-01-01"') and matcher.is_accepting()


class Model(pydantic.BaseModel):
    name: str = Field(max_length=9)
    price: decimal.Decimal
    tags: set[str] = set()


class Aliased(pydantic.BaseModel):
    size: int = Field(validation_alias="Size")


class Node(pydantic.BaseModel):
    value: int
    left: Optional[Node] = None  # noqa: UP045


GOOD: list[tuple[Any, list[str]]] = [
    (datetime.date, ['"2024-02-29"', '"0001-01-01"', '"9999-12-31"']),
    (datetime.datetime, ['"2024-02-29T12:30:00"', '"2024-02-29T12:30:00.123456Z"', '"2024-02-29T12:30:00-08:00"']),
    (pydantic.NaiveDatetime, ['"2024-02-29T12:30:00"']),
    (pydantic.AwareDatetime, ['"2024-12-31T23:59:59+14:00"']),
    (datetime.time, ['"12:30:00"', '"23:59:59.999999"', '"12:30:00Z"']),
    (datetime.timedelta, ['"P1D"', '"PT1.5S"', '"-P1DT2H"', '"P1Y2M3W4DT5H6M7S"', '"PT90M"']),
    (Annotated[datetime.date, Field(ge=datetime.date(2020, 1, 15))], ['"2020-01-15"', '"2021-01-01"']),
    (decimal.Decimal, ["1", "1.5", "-0.001", "123456789012345678901234567890", '"1.10"', '"-12.345678901234567890"']),
    (Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)], ["999.99", "-1", '"999.99"']),
    (float, ["1", "-1.5", "0.000001", "123456789.125"]),
    (Annotated[float, Field(gt=0, lt=1)], ["0.5", "0.9999999999999999", "0.000001"]),
    (complex, ['"1+2j"', '"-1.5j"', '"3"']),
    (fractions.Fraction, ['"1/3"', "0.5", "2"]),
    (pydantic.HttpUrl, ['"https://example.com"', '"http://sub.example.org:8080/a/b?x=1#top"', '"https://a.b/c-d_e~f"']),
    (pydantic.AnyUrl, ['"mailto:x@example.com"', '"ftp://example.com/a"', '"file:///etc/hosts"', '"foo://bar.baz/q"']),
    (pydantic.PostgresDsn, ['"postgres://user:secret@localhost:5432/db"']),
    (ipaddress.IPv4Address, ['"192.168.0.1"']),
    (ipaddress.IPv6Address, ['"::1"', '"2001:db8::8a2e:370:7334"', '"::ffff:192.0.2.1"']),
    (ipaddress.IPv4Network, ['"10.0.0.0/8"', '"192.168.1.0/24"']),
    (pydantic.IPvAnyAddress, ['"10.0.0.1"', '"fe80::1"']),
    (uuid.UUID, ['"123e4567-e89b-12d3-a456-426614174000"']),
    (pydantic.UUID4, ['"9b2c8e4a-3f6d-4c1b-8a7e-5d4f3c2b1a09"']),
    (pydantic.Base64Bytes, ['"aGVsbG8="', '""']),
    (pydantic.Base64Str, ['"aGVsbG8gd29ybGQ="']),
    (pydantic.ByteSize, ["1024", '"1.5 MiB"', '"10kb"']),
    (pydantic.SecretStr, ['"hush"']),
    (Path, ['"/tmp/a b.txt"']),
    (re.Pattern, ['"^a+[bc]$"']),
    (zoneinfo.ZoneInfo, ['"Europe/Berlin"', '"UTC"']),
    (pydantic.Json[list[int]], ['"[1,-2]"', '"[]"']),
    (bytes, ['"é"']),
    (set[int], ["[1, 2]", "[]"]),
    (dict[int, str], ['{"-1": "a", "0": "b"}']),
    (dict[datetime.date, int], ['{"2024-01-01": 1}']),
    (dict[Level, int], ['{"1": 2}']),
    (tuple[int, str], ['[1, "a"]']),
    (Literal["a", 1, True, None], ['"a"', "1", "true", "null"]),
    (Annotated[str, Field(pattern=r"^\p{Lu}\w+$")], ['"Ärger"']),
    (Annotated[str, Field(pattern=re.compile("^a+$", re.I))], ['"aA"', '"a\\n"']),
    (Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=2)], ['"a b"']),
    (Model, ['{"name": "x", "price": 1.5, "tags": ["a"]}', '{"name": "x", "price": "1.5"}']),
    (Aliased, ['{"Size": 3}']),
    (Node, ['{"value": 1, "left": {"value": 2, "left": null}}']),
]


@pytest.mark.parametrize(("kind", "good"), GOOD, ids=lambda value: str(value)[:40])
def test_typical_values_are_written(kind: Any, good: list[str]) -> None:
    constraint = structgen.json_schema(kind)
    grammar = constraint.compile(BYTES)
    for text in good:
        constraint.parse(text)
        matcher = grammar.matcher()
        assert matcher.accept_bytes(text.encode()) and matcher.is_accepting(), text


def test_addresses_of_mail() -> None:
    pytest.importorskip("email_validator", reason="EmailStr needs the package email-validator")
    check(pydantic.EmailStr, 200)
    check(pydantic.NameEmail, 200)
    matcher = structgen.json_schema(pydantic.EmailStr).compile(BYTES).matcher()
    assert matcher.accept_bytes(b'"first.last+tag@sub.example.co.uk"') and matcher.is_accepting()


def even(value: int) -> int:
    if value % 2:
        raise ValueError("odd")
    return value


class Checked(pydantic.BaseModel):
    number: Annotated[int, pydantic.AfterValidator(even)]
    when: pydantic.FutureDate = datetime.date(9999, 1, 1)
    kept: Annotated[int, pydantic.WithJsonSchema({"type": "string"})] = 0

    @pydantic.model_validator(mode="after")
    def positive(self) -> Checked:
        return self


def test_what_a_schema_cannot_say_is_in_the_report() -> None:
    report = structgen.json_schema(Checked).report
    said = [(entry.pointer, entry.keyword) for entry in report.checked]
    assert said == [
        ("", "function-after"),
        ("/properties/number", "function-after"),
        ("/properties/when", "date"),
        ("/properties/kept", "int"),
    ]
    assert "even" in report.to_dict()["/properties/number"]["reason"]
    assert structgen.json_schema(list[datetime.date]).report.entries == []
    assert [entry.status for entry in structgen.json_schema(pydantic.HttpUrl).report.entries] == ["narrowed"]


REFUSED: list[tuple[Any, str]] = [
    (pydantic.ImportString, "import"),
    (re.Pattern[bytes], "byte patterns"),
    (type[int], "classes"),
    (Callable[[int], int], "CallableSchema"),
    (Literal[b"x"], "none of the values"),
    (re.compile(b"a"), "bytes"),
    (["a", 1], "A list of options holds strings"),
    (lambda *numbers: 0, "any number of arguments"),
]


@pytest.mark.parametrize(("kind", "named"), REFUSED, ids=[named for _, named in REFUSED])
def test_what_json_cannot_write_is_refused_by_name(kind: Any, named: str) -> None:
    with pytest.raises(structgen.ConstraintError, match=named) as caught:
        as_constraint(kind)
    assert "\n" not in str(caught.value)


def test_fields_inside_of_other_members_are_refused() -> None:
    inner = pydantic.create_model("Inner", x=(int, Field(validation_alias=pydantic.AliasPath("a", 0))))
    with pytest.raises(structgen.ConstraintError, match="inside of other members"):
        structgen.json_schema(inner)


def test_expressions_lists_and_functions_are_constraints() -> None:
    expression = as_constraint(re.compile("a b", re.I | re.X))
    assert expression is not None and expression.parse("AB") == "AB"
    assert expression.compile(BYTES).matcher().accept_bytes(b"aB")
    assert as_constraint(["yes", "no"]) == structgen.choice(["yes", "no"])

    def book(at: datetime.date, seats: int = 1) -> None:
        """Book seats."""

    assert structgen.json_schema(book).parse('{"at": "2024-01-01"}') == {"at": datetime.date(2024, 1, 1)}


def test_prompts_show_the_schema_that_pydantic_makes() -> None:
    constraint = structgen.json_schema(datetime.date)
    assert '{"type":"string","format":"date"}' in constraint.instruction().replace(
        '{"format":"date","type":"string"}', '{"type":"string","format":"date"}'
    )


class Kept(enum.Enum):
    """Values that look like schemas."""

    REFERENCE = {"$ref": "#/$defs/none"}  # noqa: RUF012
    LIST = [{"$ref": "#"}]  # noqa: RUF012


class Referring(pydantic.BaseModel):
    target: dict[str, str] = {"$ref": "#/components/none"}
    kept: Kept = Kept.REFERENCE
    name: str = Field("", alias="$ref")
    inner: Referring | None = Field(None, alias="$defs")


def test_defaults_and_listed_values_are_no_schemas() -> None:
    constraint = structgen.json_schema(Referring)
    schema: Any = constraint.schema
    assert schema["properties"]["target"]["default"] == {"$ref": "#/components/none"} and "#/components/none" in (
        constraint.instruction()
    )
    matcher = constraint.compile(BYTES).matcher()
    assert matcher.accept_bytes(b'{"target":{"$ref":"x"},"kept":[{"$ref":"#"}],"$ref":"","$defs":{"kept":{"$ref":')
    listed: Any = structgen.json_schema(Kept).schema
    assert listed["enum"] == [kept.value for kept in Kept]


def _enumeration(value: Any) -> Any:
    return enum.Enum("E", {"A": value}, module="of")


def _named_one(value: Any) -> Any:
    field: Any = (Literal[value], ...)
    return pydantic.create_model("One", one=field)


@pytest.mark.parametrize(
    "kind",
    [
        Literal[1] | Literal[True],
        Literal[False] | None | Literal[0],
        _named_one(1) | _named_one(True),
        _enumeration(1) | _enumeration(True),
    ],
)
def test_one_and_true_are_two_choices(kind: Any) -> None:
    grammar = structgen.json_schema(structgen.json_schema(kind).schema).compile(BYTES)
    reader = pydantic.TypeAdapter(kind)
    for value in (0, 1, True, False):
        for whole in (value, {"one": value}):
            text = json.dumps(whole, separators=(",", ":"))
            matcher = grammar.matcher()
            assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting()) == is_read(reader, text), text


class Coloured(pydantic.BaseModel):
    colour: Colour


class Defaulted(pydantic.BaseModel):
    """A default that is checked and refused is none."""

    model_config = pydantic.ConfigDict(validate_default=True, str_max_length=2)

    low: int = Field(3, ge=5)
    high: int = Field(7, ge=5)
    long: str = "abc"
    inner: dict[str, Coloured] = Field({"a": {"colour": "none"}})  # type: ignore[dict-item]
    itself: Defaulted | None = None
    made: int = Field(default_factory=lambda: 1)
    unchecked: int = Field(0, ge=5, validate_default=False)


class Single(NamedTuple):
    x: int


def test_named_tuples_are_arrays_and_the_report_says_so() -> None:
    assert pydantic.TypeAdapter(Single).validate_json('{"x":1}') == Single(1)
    entries = structgen.json_schema(list[Single]).report.entries
    if pydantic.VERSION >= "2.14":
        assert [(entry.status, entry.keyword) for entry in entries] == [("narrowed", "named-tuple")]


def test_defaults_that_are_refused() -> None:
    constraint = structgen.json_schema(Defaulted)
    definition: Any = constraint.schema
    assert definition["$defs"]["Defaulted"]["required"] == ["low", "long", "inner"]
    assert [entry.pointer for entry in constraint.report.checked] == ["/$defs/Defaulted/properties/made"]
    for example in structgen.examples(constraint, 8):
        assert isinstance(constraint.parse(example.text), Defaulted)
