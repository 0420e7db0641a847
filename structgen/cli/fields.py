"""How likely the values of fields were, as a table and as JSON values."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from structgen.generation.fields.results import FieldBelief, FieldResults

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


def _shown(value: Any) -> str:
    return escape(json.dumps(value, ensure_ascii=False, default=str))
