"""How likely the values of fields were, as a table and as JSON values."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from structgen.cli.common import BadInput, print_json
from structgen.cli.consoles import err, out
from structgen.core.json_schema.pointers import unescape
from structgen.generation.calibration import TemperatureScaling, report
from structgen.generation.fields.events import canonical
from structgen.generation.fields.results import Belief

if TYPE_CHECKING:
    from structgen.generation.fields.results import FieldResults
    from structgen.generation.voting import VoteResult

MAX_OTHERS = 3  # options that are shown besides what was written


def field_dicts(fields: FieldResults) -> dict[str, Any]:
    """Fields as JSON values; what there is none of is left out."""
    return {pointer: each.as_json() for pointer, each in fields.items()}


def field_table(fields: FieldResults) -> Table:
    """A line for each field: what was written, its probability, what the mask left, and what else might have been."""
    table = Table("field", "written", "prob", "kept", "others", box=None, pad_edge=False, header_style="dim")
    for pointer, each in fields.items():
        if each.value is None:
            table.add_row(escape(pointer or "(all)"), _shown(each.written), "", "", "")
            continue
        written = each.value.option(each.written)
        others = [one for one in each.value.options if one is not written][:MAX_OTHERS]
        table.add_row(
            escape(pointer or "(all)"),
            _shown(each.written),
            f"{each.prob or 0.0:.2f}",
            f"{each.value.kept:.2g}",
            ", ".join(f"{_shown(one.value)} {one.prob:.2f}" for one in others),
        )
    return table


def print_vote(vote: VoteResult[Any], as_json: bool) -> None:
    """The answer, and of each field the shares of what samples say; as JSON with the texts of all samples."""
    if as_json:
        shown: dict[str, Any] = {name: getattr(vote, name) for name in ("value", "text", "share", "by", "failed")}
        fields = {pointer: dataclasses.asdict(each) for pointer, each in vote.fields.items()}
        samples = [{"text": one.text, "weight": weight} for one, weight in zip(vote.results, vote.weights, strict=True)]
        print_json({**shown, "is_split": vote.is_split, "fields": fields, "samples": samples})
        return
    out.print(vote.text, markup=False, soft_wrap=True)
    table = Table("field", "answer", "share", "others", box=None, pad_edge=False, header_style="dim")
    for pointer, each in vote.fields.items():
        others = [one for one in each.values if canonical(one[0]) != canonical(each.value)][:MAX_OTHERS]
        shares = ", ".join(f"{_shown(value)} {share:.2f}" for value, share in others)
        table.add_row(escape(pointer or "(all)"), _shown(each.value), f"{each.share:.2f}", shares)
    out.print(table)
    split = ", no majority in some field" if vote.is_split else ""
    err.print(f"[dim]{len(vote.results)} samples, {vote.failed} failed, chosen by {vote.by}{split}[/]", soft_wrap=True)


def run_calibrate(written: str, truths: str, pointer: str, output: Path | None, as_json: bool) -> None:
    """Report on a field's beliefs, and fit a temperature.

    Raises:
        BadInput: a line that is no JSON object with an ``id``, or nothing that can be compared.
        OptionsError: too few rows.
    """
    right = {each.get("id"): _at(each.get("value", _ABSENT), pointer) for each in _records(truths, "the truths")}
    beliefs, expected = list[Belief](), list[Any]()
    for each in _records(written, "the outputs"):
        belief = Belief.of(_member(_member(each.get("fields"), pointer), "value"))
        if belief is not None and right.get(each.get("id"), _ABSENT) is not _ABSENT:
            beliefs.append(belief)
            expected.append(right[each.get("id")])
    if not beliefs:
        raise BadInput(f"No output has a belief at {pointer!r:.100} and a truth; were they written with --fields?")
    judged, fitted = report(beliefs, expected), TemperatureScaling.fit(beliefs, expected)
    if output is not None:
        fitted.save(output)
    if as_json:
        print_json({**dataclasses.asdict(judged), "temperature": fitted.temperature, "examples": fitted.examples})
        return
    table = Table("number", "as it is", "scaled", box=None, pad_edge=False, header_style="dim")
    for name in ("accuracy", "auroc", "ece", "brier", "nll"):
        numbers = [getattr(each, name) for each in (judged.raw, judged.calibrated)]
        table.add_row(name, *(f"{number:.3f}" for number in numbers))
    out.print(table)
    err.print(f"[dim]{fitted.examples} rows, temperature {fitted.temperature:.2f}; scaled: on the other half[/]")


_ABSENT: Any = object()


def _records(text: str, what: str) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.split("\n"), start=1):  # other ends of lines may stand in JSON strings
        if line.strip():
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if not isinstance(record, dict) or not isinstance(record.get("id"), (str, int)):
                raise BadInput(f"Line {number} of {what} is no JSON object with an id: {line[:80]!r}")
            yield record


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _at(value: Any, pointer: str) -> Any:
    """The value at a pointer; ``_ABSENT`` where there is none."""
    for part in map(unescape, pointer.split("/")[1:]):
        if isinstance(value, dict):
            value = value.get(part, _ABSENT)
        else:
            is_index = isinstance(value, list) and part in map(str, range(len(value)))
            value = value[int(part)] if is_index else _ABSENT
    return value


def _shown(value: Any) -> str:
    return escape(json.dumps(value, ensure_ascii=False, default=str))
