"""Lint for providers: which of them take a schema, and what it loses there, by `structgen.lower`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from structgen.core.answers.lint.findings import Finding
from structgen.core.answers.targets.fitting import counts_of
from structgen.core.answers.targets.lowered import LoweredSchema, lower
from structgen.core.answers.targets.table import TARGETS, SchemaTarget, target_of
from structgen.errors import SchemaError
from structgen.options import JsonOptions

if TYPE_CHECKING:
    from referencing import Registry

MAX_LOST = 5
"""Of what is lost, how much a message names."""


def targets_named(names: Iterable[str]) -> list[SchemaTarget]:
    """The targets of some names; "all": all that there are.

    Raises:
        OptionsError: no such target.
    """
    return [one for name in names for one in (TARGETS.values() if name == "all" else [target_of(name)])]


def for_provider(
    schema: Any, target: SchemaTarget, options: JsonOptions, registry: Registry[Any] | None = None
) -> Finding | None:
    """What one provider makes of a schema; None: answers say exactly what it allows, in its own shape."""
    try:
        lowered = lower(schema, target, options=options, registry=registry)
    except SchemaError as error:
        said = str(error).splitlines()[0]
        return Finding("provider-limit", "error", "", f"{target.name}: cannot be asked for: {said}")
    evidence: dict[str, Any] = {
        "target": target.name,
        "as_of": target.as_of,
        "verdict": lowered.verdict,
        "lost": list(lowered.lost),
    }
    if lowered.beyond:
        beyond = "; ".join(lowered.beyond[:MAX_LOST])
        return Finding("provider-limit", "error", "", f"{target.name}: {beyond}", evidence)
    if lowered.verdict == "equal" and not lowered.is_mapped:
        return None
    wider = lowered.comparison.new_only
    if wider is not None:
        evidence["document"] = wider.text
    grave = lowered.verdict in ("wider", "incomparable", "unknown")
    return Finding("provider-loses", "warning" if grave else "info", "", f"{target.name}: {_said(lowered)}", evidence)


def _said(lowered: LoweredSchema) -> str:
    meaning = {
        "equal": "taken once it is lowered, and answers mapped back",
        "narrower": "answers cannot say all that the schema allows",
        "wider": "answers may say what the schema refuses",
        "incomparable": "answers may say what the schema refuses, and cannot say all that it allows",
        "unknown": "it was not decided what answers may say",
    }[lowered.verdict]
    lost = [f"{where or '/'}: {what}" for where, what in lowered.lost[:MAX_LOST]]
    more = len(lowered.lost) - len(lost)
    listed = "; ".join([*lost, f"{more} more"] if more > 0 else lost)
    return f"{meaning} ({listed})" if listed else meaning


def together(schemas: list[Any], target: SchemaTarget, options: JsonOptions) -> Iterator[Finding]:
    """The limits that the tools of one request exceed together, of those that a provider counts over all."""
    counts = {"tools": len(schemas)}
    for schema in schemas:
        try:
            sent = lower(schema, target, options=options).sent
        except SchemaError:
            continue
        for name, count in counts_of(sent, target).items():
            counts[name] = counts.get(name, 0) + count
    for name in target.counted_together:
        limit = target.limits[name]
        if counts.get(name, 0) > limit:
            message = f"{target.name}: all tools together have {counts[name]} {name}, where {limit} are taken"
            yield Finding("provider-limit", "error", "", message, {"target": target.name, "as_of": target.as_of})
