"""Whatever is written for a Python type is read by pydantic as that type: random walks over many types."""

from __future__ import annotations

import datetime
import decimal
import enum
import ipaddress
import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, Union

import numpy as np
import pydantic
import pytest
from pydantic import Field
from typing_extensions import TypedDict

import structgen
from structgen import Vocabulary, allocate_token_bitmask

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


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_every_output_is_read_as_the_type(kind: Any) -> None:
    constraint = structgen.json_schema(kind)
    for text in texts(constraint.compile(BYTES), 60):
        constraint.parse(text)  # GenerationError: pydantic refuses it


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
