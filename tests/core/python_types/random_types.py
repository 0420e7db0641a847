"""Random Python types, nested: what pydantic reads, in all its kinds."""

# ruff: noqa: UP007, UP042, UP045

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import pathlib
import random
import re
import uuid
import zoneinfo
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar, Union

import pydantic
import typing_extensions
from annotated_types import Ge, Gt, Le, Lt
from pydantic import Field, StringConstraints

NAMES = ["a", "b", "ab", "name", "x1", "class_", "Ünit"]
Item = TypeVar("Item")


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 7


class Colour(enum.Enum):
    RED = "red"
    TWO = 2
    HALF = 0.5
    NONE = None
    PAIR = (1, 2)


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Word(str, enum.Enum):
    YES = "yes"
    NO = "no"


class Box(pydantic.BaseModel, Generic[Item]):
    content: Item
    others: list[Item] = []


class Tree(pydantic.BaseModel):
    value: int
    children: list[Tree] = []


class Cat(pydantic.BaseModel):
    kind: Literal["cat", "kitten"] = "cat"
    lives: int = 9


class Dog(pydantic.BaseModel):
    kind: Literal["dog"] = "dog"
    name: str = Field(alias="dogName", max_length=5)


@dataclasses.dataclass
class Bird:
    kind: Literal["bird"]
    span: float = dataclasses.field(default=1.0, init=False)


class Point(NamedTuple):
    x: int
    day: datetime.date = datetime.date(2000, 1, 1)


@dataclasses.dataclass(frozen=True)
class Frozen:
    x: int
    y: str = ""


SCALARS: list[Any] = [
    *(None, bool, int, float, str, bytes, Any, complex, decimal.Decimal, fractions.Fraction, pathlib.Path, re.Pattern),
    *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, zoneinfo.ZoneInfo),
    *(ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Network, ipaddress.IPv6Network),
    *(ipaddress.IPv4Interface, ipaddress.IPv6Interface),
    *(pydantic.IPvAnyAddress, pydantic.IPvAnyInterface, pydantic.IPvAnyNetwork),
    *(uuid.UUID, pydantic.UUID1, pydantic.UUID3, pydantic.UUID4, pydantic.UUID5, pydantic.UUID7),
    *(pydantic.Base64Bytes, pydantic.Base64UrlBytes, pydantic.Base64Str, pydantic.Base64UrlStr, pydantic.ByteSize),
    *(pydantic.AwareDatetime, pydantic.NaiveDatetime, pydantic.PastDate, pydantic.FutureDate, pydantic.PastDatetime),
    *(pydantic.HttpUrl, pydantic.AnyUrl, pydantic.FileUrl, pydantic.PostgresDsn, pydantic.RedisDsn, pydantic.KafkaDsn),
    *(pydantic.FiniteFloat, pydantic.StrictInt, pydantic.StrictStr, pydantic.StrictBool, pydantic.SecretStr),
    *(pydantic.SecretBytes, pydantic.Secret[int], pydantic.Json, pydantic.Json[list[int]]),
    *(Level, Colour, Right, Word, Tree, Box[int], Cat, Dog, Bird, Point, Frozen),
]
"""Types without parts of their own."""


def _number(rng: random.Random) -> Any:
    low = rng.choice((-3, 0, 1, 10, 250))
    limits: Any = rng.choice(
        ({"ge": low}, {"gt": low, "lt": low + 9}, {"le": low}, {"ge": low, "multiple_of": 3}, {"multiple_of": 7})
    )
    return Annotated[int, Field(**limits)]


def _real(rng: random.Random) -> Any:
    low = rng.choice((-1.5, 0, 0.1, 1e-7, 3e9, 5e-324))
    limits: Any = rng.choice(
        (
            *({"gt": low}, {"lt": low}, {"ge": low, "lt": low + 1}, {"gt": low, "le": low * 2 + 1, "multiple_of": 0.1}),
            *({"allow_inf_nan": False}, {"multiple_of": 0.25}, {"gt": low, "lt": float("inf")}),
        )
    )
    return Annotated[float, Field(**limits)]


def _decimal(rng: random.Random) -> Any:
    digits, places = rng.randint(1, 20), rng.randint(0, 8)
    limits: Any = rng.choice(
        (
            *({"max_digits": digits}, {"decimal_places": places}, {"max_digits": digits, "decimal_places": places}),
            *({"gt": 0, "lt": 1}, {"ge": decimal.Decimal("0.1"), "max_digits": 3}, {"multiple_of": "0.05"}),
            *({"le": decimal.Decimal("-12.345")}, {"gt": 5, "max_digits": digits + 1, "decimal_places": 1}),
        )
    )
    if "multiple_of" in limits:
        limits["multiple_of"] = decimal.Decimal(limits["multiple_of"])
    return Annotated[decimal.Decimal, Field(**limits)]


def _text(rng: random.Random) -> Any:
    pattern = rng.choice(("^[ab]+$", "^x", r"^\d{2}-\w+$", r"[^\d\s]$", r"(?i)^ab|c$", r"\bfoo\b", r"^\p{Lu}.\S*$"))
    limits: Any = rng.choice(
        (
            *({"min_length": 1}, {"max_length": 3}, {"pattern": pattern}, {"pattern": pattern, "max_length": 9}),
            *({"strip_whitespace": True, "min_length": 2}, {"strip_whitespace": True, "pattern": pattern}),
            *({"to_lower": True, "pattern": "^[A-Z]+$"}, {"strict": True, "to_upper": True, "max_length": 4}),
        )
    )
    if rng.random() < 0.2:
        return Annotated[str, Field(pattern=re.compile(r"^a\w$|\s+b", rng.choice((0, re.I, re.A, re.M))))]
    return Annotated[str, StringConstraints(**limits)]


def _bytes(rng: random.Random) -> Any:
    limits: Any = rng.choice(({"min_length": 2}, {"max_length": 3}, {"min_length": 1, "max_length": 4}))
    return Annotated[rng.choice((bytes, pydantic.SecretStr, pydantic.SecretBytes)), Field(**limits)]


def _moment(rng: random.Random) -> Any:
    """A point in time or a duration with limits."""
    zone = rng.choice((None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=-3))))
    first = datetime.datetime(rng.randint(1, 9998), rng.randint(1, 12), rng.randint(1, 28), rng.randint(0, 23), 5, 7)
    limit, kind = rng.choice(
        (
            (first.date(), datetime.date),
            (first.replace(tzinfo=zone, year=max(2, first.year), microsecond=rng.choice((0, 5))), datetime.datetime),
            (first.time(), datetime.time),
            (datetime.timedelta(seconds=rng.choice((-1e6, -1.5, 0, 1, 1e5, 1e12))), datetime.timedelta),
        )
    )
    return Annotated[kind, rng.choice((Ge, Gt, Le, Lt))(limit)]


def _literal(rng: random.Random) -> Any:
    options = ["a", "b", 1, 2, True, None, "é", b"x", Level.LOW, Word.YES]
    return Literal[tuple(rng.sample(options, rng.randint(1, 4)))]


def _key(rng: random.Random) -> Any:
    return rng.choice(
        (
            *(str, int, float, bool, bytes, complex, decimal.Decimal, datetime.date, datetime.datetime, uuid.UUID),
            *(Level, Colour, Word, Literal["a", "b", 3], Union[int, str], Union[datetime.date, bool]),
            *(Annotated[int, Field(ge=-5, lt=300)], Annotated[str, Field(pattern="^k", max_length=3)]),
            *(ipaddress.IPv4Address, datetime.timedelta, Any, Annotated[int, Field(gt=99)]),
        )
    )


def _lengths(rng: random.Random) -> Any:
    low = rng.randint(0, 2)
    most: Any = {"max_length": low + 1}
    return Field(**rng.choice(({"min_length": low}, most, {"min_length": low, **most})))


def _fields(rng: random.Random, depth: int) -> dict[str, Any]:
    return {name: random_type(rng, depth - 1) for name in rng.sample(NAMES, rng.randint(1, 3))}


def _model(rng: random.Random, depth: int) -> Any:
    config = pydantic.ConfigDict(
        extra=rng.choice(("ignore", "forbid", "allow")),
        strict=rng.random() < 0.15,
        str_strip_whitespace=rng.random() < 0.2,
        str_min_length=rng.choice((0, 0, 1)),
        allow_inf_nan=rng.random() < 0.8,
        populate_by_name=rng.random() < 0.3,
        frozen=rng.random() < 0.3,
        val_json_bytes=rng.choice(("utf8", "utf8", "base64", "hex")),
    )
    if rng.random() < 0.2:
        config["str_max_length"] = 6
    given: Any = {}
    for name, kind in _fields(rng, depth).items():
        extra: Any = rng.choice(
            ({}, {}, {"alias": f"{name}Alias"}, {"validation_alias": pydantic.AliasChoices(f"{name}_", name)})
        )
        given[name] = (kind, Field(**extra)) if rng.random() < 0.7 else (Optional[kind], Field(default=None, **extra))
    return pydantic.create_model("Model", __config__=config, **given)


def _record(rng: random.Random, depth: int) -> Any:
    fields = {
        name: typing_extensions.NotRequired[kind] if rng.random() < 0.3 else kind
        for name, kind in _fields(rng, depth).items()
    }
    return typing_extensions.TypedDict("Record", fields)  # type: ignore[operator]


def _data(rng: random.Random, depth: int) -> Any:
    return dataclasses.make_dataclass("Data", list(_fields(rng, depth).items()), frozen=rng.random() < 0.5)


def _named_tuple(rng: random.Random, depth: int) -> Any:
    fields = [(name, kind) for name, kind in _fields(rng, depth).items()]
    return NamedTuple("Row", fields)


def _tagged(rng: random.Random, depth: int) -> Any:
    choices = rng.sample([Cat, Dog, Bird], rng.randint(2, 3))
    return Annotated[Union[tuple(choices)], Field(discriminator="kind")]


def _inner(rng: random.Random, depth: int) -> Any:
    return random_type(rng, depth - 1)


LEAVES: list[Callable[[random.Random], Any]] = [
    *(_number, _real, _decimal, _text, _bytes, _moment, _literal),
]
NESTED: list[Callable[[random.Random, int], Any]] = [
    *(_model, _model, _record, _data, _named_tuple, _tagged),
    lambda rng, depth: list[_inner(rng, depth)],  # type: ignore[misc]
    lambda rng, depth: set[_inner(rng, depth)],  # type: ignore[misc]
    lambda rng, depth: frozenset[_inner(rng, depth)],  # type: ignore[misc]
    lambda rng, depth: collections.deque[_inner(rng, depth)],  # type: ignore[misc]
    lambda rng, depth: Sequence[_inner(rng, depth)],  # type: ignore[misc]
    lambda rng, depth: Iterable[_inner(rng, depth)],  # type: ignore[misc]
    lambda rng, depth: tuple[_inner(rng, depth), _inner(rng, depth)],  # type: ignore[misc]
    lambda rng, depth: tuple[_inner(rng, depth), ...],  # type: ignore[misc]
    lambda rng, depth: dict[_key(rng), _inner(rng, depth)],  # type: ignore[misc]
    lambda rng, depth: Mapping[str, _inner(rng, depth)],  # type: ignore[misc]
    lambda rng, depth: collections.OrderedDict[_key(rng), _inner(rng, depth)],  # type: ignore[misc]
    lambda rng, depth: collections.defaultdict[str, _inner(rng, depth)],  # type: ignore[misc]
    lambda rng, depth: collections.Counter[_key(rng)],  # type: ignore[misc]
    lambda rng, depth: Annotated[list[_inner(rng, depth)], _lengths(rng)],  # type: ignore[misc]
    lambda rng, depth: Annotated[set[_inner(rng, depth)], _lengths(rng)],  # type: ignore[misc]
    lambda rng, depth: Annotated[dict[_key(rng), _inner(rng, depth)], _lengths(rng)],  # type: ignore[misc]
    lambda rng, depth: Annotated[tuple[_inner(rng, depth), ...], _lengths(rng)],  # type: ignore[misc]
    lambda rng, depth: Optional[_inner(rng, depth)],
    lambda rng, depth: Union[_inner(rng, depth), _inner(rng, depth)],
    lambda rng, depth: Box[_inner(rng, depth)],  # type: ignore[misc]
    lambda rng, depth: pydantic.RootModel[_inner(rng, depth)],  # type: ignore[misc]
    lambda rng, depth: pydantic.Json[_inner(rng, depth)],  # type: ignore[misc]
]


def random_type(rng: random.Random, depth: int = 2) -> Any:
    """A type that pydantic reads; not each can be written as JSON."""
    way = rng.random()
    if not depth or way < 0.3:
        return rng.choice(SCALARS)
    if way < 0.5:
        return rng.choice(LEAVES)(rng)
    return rng.choice(NESTED)(rng, depth)
