"""The figures of a run, from its records: coverage, efficiency, failures by class.

Coverage as in the paper (arXiv 2501.10868, section 4): *declared*: the engine takes the schema and runs without an
error; *empirical*: the output is valid; *compliance*: empirical / declared. Under a small token budget many outputs
are cut off, whoever masks, so beside it stands the share of valid ones among those that were finished.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Record = dict[str, Any]
Floats = npt.NDArray[np.float64]
RESAMPLES = 2000
# The datasets of the paper, from small schemas to large ones; any others follow by name.
DATASET_ORDER = (
    "Glaiveai2K", "Github_trivial", "Github_easy", "Snowplow", "Github_medium", "Kubernetes", "WashingtonPost",
    "Github_hard", "JsonSchemaStore", "Github_ultra",
)  # fmt: skip


@dataclass(frozen=True)
class Coverage:
    """Counts of schemas for one engine."""

    schemas: int
    declared: int
    finished: int
    valid: int

    @property
    def declared_share(self) -> float:
        """Of all schemas."""
        return _share(self.declared, self.schemas)

    @property
    def empirical_share(self) -> float:
        """Of all schemas."""
        return _share(self.valid, self.schemas)

    @property
    def compliance(self) -> float:
        """Valid, of declared."""
        return _share(self.valid, self.declared)

    @property
    def finished_compliance(self) -> float:
        """Valid, of finished; a schema that the validator itself cannot read counts for nobody."""
        return _share(self.valid, self.finished)


@dataclass(frozen=True)
class Efficiency:
    """Times of one engine over some schemas: seconds, one value a schema; masks in µs, one a token.

    ``ratio`` is the time of all steps over that of the same steps without a constraint, ``interval`` its 95 % bootstrap
    interval over schemas; NaN where the run was not by turns.
    """

    compile_s: Floats
    ttft_s: Floats
    tpot_s: Floats
    mask_us: Floats
    ratio: float
    interval: tuple[float, float]
    steps: int


def datasets_of(records: Iterable[Record]) -> list[str]:
    """All datasets, in the order of ``DATASET_ORDER``."""
    rank = {name: number for number, name in enumerate(DATASET_ORDER)}
    return sorted({r["dataset"] for r in records}, key=lambda name: (rank.get(name, len(rank)), name))


def engines_of(records: Iterable[Record]) -> list[str]:
    """All engines: structgen first, none last, in between as they come."""
    names = list(dict.fromkeys(record["engine"] for record in records))
    return sorted(names, key=lambda name: (name == "none", not name.startswith("structgen")))


def select(records: Iterable[Record], **fields: str | None) -> list[Record]:
    """The records whose fields have these values; None takes any."""
    return [r for r in records if all(value is None or r.get(name) == value for name, value in fields.items())]


def coverage(records: Sequence[Record]) -> Coverage:
    """Counts over records of one engine and sampling."""
    judged = Counter(record.get("judgement") for record in records if record["outcome"] == "written")
    finished = judged["valid"] + judged["invalid"] + judged["not_json"]
    return Coverage(len(records), judged.total(), finished, judged["valid"])


def efficiency(records: Sequence[Record]) -> Efficiency:
    """Times over records of one engine."""
    written = [record for record in records if record["outcome"] == "written"]
    paired = np.array([record["paired"] for record in written if "paired" in record], dtype=float).reshape(-1, 3)
    ratio, interval = _ratio(paired)
    return Efficiency(
        compile_s=_values(written, "compile_s"),
        ttft_s=_values(written, "ttft_s"),
        tpot_s=_values(written, "tpot_s"),
        mask_us=np.array([value for record in written for value in record.get("mask_us", ())], dtype=float),
        ratio=ratio,
        interval=interval,
        steps=int(paired[:, 0].sum()),
    )


def common_schemas(records: Sequence[Record]) -> list[Record]:
    """The records of schemas that every engine has written for (in every sampling that it took part in)."""
    engines = {record["engine"] for record in records}
    by_schema: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_schema[record["schema"]].append(record)
    return [
        record
        for group in by_schema.values()
        if {r["engine"] for r in group} == engines and all(r["outcome"] == "written" for r in group)
        for record in group
    ]


def failures(records: Sequence[Record]) -> list[tuple[str, int, Record]]:
    """Classes of what went wrong, commonest first: (class, count of records, an example)."""
    by_label: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        label = failure_class(record)
        if label:
            by_label[label].append(record)
    return [(label, len(members), members[0]) for label, members in sorted(by_label.items(), key=lambda x: -len(x[1]))]


def failure_class(record: Record) -> str:
    """A few words; "" for a valid output."""
    if record["outcome"] != "written":
        reason = str(record.get("error", "")).strip().splitlines()[:1]
        return f"{record['outcome']}: {_general(reason[0])}" if reason else record["outcome"]
    judgement = record["judgement"]
    if judgement == "invalid":
        return f"invalid: {record['reason'].partition(':')[0]}"
    return {"valid": "", "not_json": "no JSON", "unfinished": "unfinished", "undecided": "undecided"}[judgement]


def _general(message: str) -> str:
    """A message without its time and place, short."""
    message = re.sub(r"^\[[\d:]+\] ", "", message)
    for mark in ("(at ", ": {", ":  (", " '", ' "', "`"):
        message = message.partition(mark)[0]
    return message[:70].strip()


def _values(records: Sequence[Record], field: str) -> Floats:
    return np.array([record[field] for record in records if field in record], dtype=float)


def _ratio(paired: Floats) -> tuple[float, tuple[float, float]]:
    """Sum over sum, and a bootstrap interval; rows are (steps, seconds, seconds without a constraint)."""
    if not len(paired):
        return float("nan"), (float("nan"), float("nan"))
    rng = np.random.default_rng(0)
    drawn = paired[rng.integers(len(paired), size=(RESAMPLES, len(paired)))].sum(axis=1)
    low, high = np.percentile(drawn[:, 1] / drawn[:, 2], [2.5, 97.5])
    total = paired.sum(axis=0)
    return float(total[1] / total[2]), (float(low), float(high))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def by_engine(
    records: Sequence[Record], measure: Callable[[list[Record]], Any], **fields: str | None
) -> dict[str, Any]:
    """``measure`` of each engine's records."""
    chosen = select(records, **fields)
    return {engine: measure(select(chosen, engine=engine)) for engine in engines_of(chosen)}
