"""How likely the values of fields were, as a table and as JSON values."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

from structgen.cli.common import print_json
from structgen.cli.consoles import err, out
from structgen.generation.fields.events import canonical

if TYPE_CHECKING:
    from structgen.generation.fields.results import FieldBelief, FieldResults
    from structgen.generation.voting import VoteResult

MAX_OTHERS = 3  # options that are shown besides what was written


def field_dicts(fields: FieldResults) -> dict[str, Any]:
    """Fields as JSON values; what there is none of is left out."""
    return {pointer: _dict_of(each) for pointer, each in fields.items()}


def _dict_of(one: FieldBelief) -> dict[str, Any]:
    shown = {name: value for name, value in dataclasses.asdict(one).items() if value is not None and name != "pointer"}
    return {**shown, "written": one.written, "prob": one.prob}


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


def _shown(value: Any) -> str:
    return escape(json.dumps(value, ensure_ascii=False, default=str))
