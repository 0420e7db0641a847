"""Random pairs of small schemas over all drafts and keywords, and documents that judge what is said of them."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

from structgen import JsonOptions
from tests.fuzz.instances import Instances
from tests.fuzz.judge import BeyondJudgeError, Judge, read
from tests.fuzz.schemas import Schemas

SCALARS: list[Any] = [None, True, False, 0, 1, 2, 3, -1, 0.5, 7, "", "a", "b", "ab", "foo", "aaa", "2020-02-29"]


class Pair:
    """Two schemas of one draft (or of two); ``formats``: whether formats count."""

    def __init__(self, seed: int, mixed: bool = False) -> None:
        rng = self.rng = random.Random(f"pair {seed}")
        schemas = Schemas(rng)
        self.drafts = [schemas.draft, schemas.draft]
        self.schemas = [schemas.root(), None]
        kind = rng.random()
        if kind < 0.55:
            self.schemas[1] = changed(self.schemas[0], rng)
        elif kind < 0.7:
            self.schemas[1] = respelt(self.schemas[0], rng)
        else:
            other = Schemas(rng, None if mixed else schemas.draft)
            other.names = schemas.names
            self.drafts[1] = other.draft
            self.schemas[1] = other.root()
        self.formats = '"format"' in json.dumps(self.schemas)
        self.judges = [Judge(s, d, self.formats) for s, d in zip(self.schemas, self.drafts, strict=True)]

    def options(self) -> JsonOptions:
        """Those under which the judges read, where both schemas are of one draft."""
        return JsonOptions(dialect=self.drafts[0], assert_formats=self.formats)  # type: ignore[arg-type]

    def valid(self, side: int, value: Any) -> bool | None:
        """The judge's opinion."""
        try:
            return self.judges[side].valid(value)
        except BeyondJudgeError:
            return None

    def documents(self, count: int) -> Iterator[Any]:
        """Small documents of all kinds, and some that the schemas lead to; numbers plain."""
        yield from small(sorted({name for name in _names(self.schemas)} | {"a"})[:3])
        for schema in self.schemas:
            instances = Instances(self.rng, schema)
            for _ in range(count):
                yield plain(instances.sample())


def _names(schemas: Any) -> Iterator[str]:
    if isinstance(schemas, dict):
        for key, child in schemas.items():
            if key in ("properties", "dependentRequired", "dependentSchemas") and isinstance(child, dict):
                yield from child
            if key == "required" and isinstance(child, list):
                yield from child
            yield from _names(child)
    elif isinstance(schemas, list):
        for child in schemas:
            yield from _names(child)


def small(names: list[str]) -> Iterator[Any]:
    """All documents up to a size over a small alphabet."""
    yield from SCALARS
    few: list[Any] = [0, 1, "a", None, [], {}]
    for size in (0, 1, 2, 3):
        for items in itertools.product(few if size < 3 else few[:3], repeat=size):
            yield list(items)
    for size in (0, 1, 2):
        for keys in itertools.combinations([*names, "zz"], size):
            for values in itertools.product(few, repeat=size):
                yield dict(zip(keys, values, strict=True))


def plain(value: Any) -> Any:
    """The value as its plain spelling reads: whole numbers are integers."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, float):
        return int(value) if value.is_integer() else read(json.dumps(value))
    return value


def changed(schema: Any, rng: random.Random) -> Any:
    """A copy with a keyword deleted, a number or Boolean changed, or a list shortened."""
    copy = json.loads(json.dumps(schema))
    owners: list[Any] = []
    todo = [copy]
    while todo:
        part = todo.pop()
        if isinstance(part, (dict, list)):
            owners.append(part)
            todo += part.values() if isinstance(part, dict) else part
    owners = [owner for owner in owners if owner]
    if not owners:
        return copy
    owner = rng.choice(owners)
    key = rng.choice(sorted(owner) if isinstance(owner, dict) else range(len(owner)))
    value = owner[key]
    if isinstance(value, bool):
        owner[key] = not value
    elif isinstance(value, (int, float)) and rng.random() < 0.8:
        owner[key] = value + 1
    elif isinstance(owner, dict) or len(owner) > 1:
        del owner[key]
    return copy


def respelt(schema: Any, rng: random.Random) -> Any:
    """The same schema, said otherwise: members reversed, an allOf or anyOf of one, a type as a list."""
    if not isinstance(schema, dict) or "$ref" in schema:
        return schema
    turned = dict(reversed(schema.items()))
    if isinstance(turned.get("type"), str):
        turned["type"] = [turned["type"]]
    return turned


def verdict_errors(pair: Pair, answers: tuple[Any, ...], texts: tuple[str | None, ...], count: int) -> list[str]:
    """What the judges object to in "old in new" and "new in old", and in the documents of the differences."""
    wrong = []
    for side, text in enumerate(texts):
        if text is not None:
            value = read(text)
            if pair.valid(side, value) is False or pair.valid(1 - side, value) is True:
                wrong.append(f"{text} is no difference")
    sure = [side for side, answer in enumerate(answers) if answer is True]
    for value in pair.documents(count) if sure else ():
        for side in sure:
            if pair.valid(side, value) and pair.valid(1 - side, value) is False:
                wrong.append(f"{value!r} is of {side} alone")
    return wrong
