"""Runs the rules over a schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from structgen.core.answers.deciding import answering
from structgen.core.answers.lint import branches, keywords
from structgen.core.answers.lint.findings import Finding, LintRule, SchemaView
from structgen.core.answers.occurrences import anything_in as _anything_in
from structgen.core.answers.occurrences import dialect_for, occurrences, without
from structgen.core.answers.sources import is_text, schema_of
from structgen.core.json_schema.lowering import Lowered
from structgen.options import JsonOptions, checked_options

if TYPE_CHECKING:
    from referencing import Registry

RULES: list[LintRule] = [*keywords.RULES, *branches.RULES]
SUMMARIES = {
    **{rule.name: rule.summary for rule in RULES},
    "wrong-type": "A keyword that says nothing of the type that the schema asks for.",
    "disjoint-branches": "A oneOf whose alternatives exclude each other.",
    "whole-no-effect": "A keyword occurrence without which the whole schema allows the same.",
    "open-object": "An object that declares members and allows others.",
    "provider-limit": "A schema beyond what a provider takes.",
    "provider-loses": "What a provider does not enforce, or cannot be asked for.",
    "ambiguous": "A grammar in which a text has two readings.",
    "undecided": "A question that was not decided.",
}
ORDER = {"error": 0, "warning": 1, "info": 2}
MAX_DEEP = 2_000
"""Occurrences that are looked at deeply."""


def lint(
    schema: Any,
    *,
    deep: bool = False,
    closed: bool = False,
    targets: Iterable[str] = (),
    options: JsonOptions | None = None,
    registry: Registry[Any] | None = None,
) -> list[Finding]:
    """What in a schema has no effect, contradicts itself or was most likely meant otherwise; each with evidence.

    Args:
        schema: a schema, JSON text, file, Python type or tool definition; or a grammar, expression or choice.
        deep: ask of each keyword occurrence whether the whole schema would allow more without it.
        closed: name objects that declare members and allow others.
        targets: providers to be asked about (see `structgen.lower`), or "all".
        options, registry: as of `structgen.compare`.

    Raises:
        SchemaError: the schema is malformed. ConstraintError: no schema. OptionsError: no such target.
    """
    if is_text(schema):
        from structgen.core.answers.texts.ambiguity import ambiguity

        answer = ambiguity(schema)
        evidence = {"text": answer.text, "readings": list(map(str, answer.readings))}
        return [Finding("ambiguous", "info", "", str(answer), evidence)] if answer else []
    named = list(targets)
    options = answering(checked_options(options))
    plain = schema_of(schema)
    lowered = Lowered(plain, options, registry)
    view = SchemaView(lowered, dialect_for(plain, options, registry))
    findings = [one for rule in RULES for one in rule.check(view)]
    if deep:
        findings += _deep(view, {one.pointer for one in findings})
    if named:
        from structgen.core.answers.lint.providers import for_provider, targets_named

        said = [for_provider(plain, target, options, registry) for target in targets_named(named)]
        findings += [one for one in said if one is not None]
    if closed:
        message = "members that are not declared are allowed; additionalProperties: false allows none"
        findings += [Finding("open-object", "info", where, message) for where in lowered.report.open]
    findings += [
        Finding("undecided", "info", where, f"not decided: {reason}") for where, reason in view.undecided.items()
    ]
    return sorted(findings, key=lambda one: (ORDER[one.level], one.pointer, one.rule))


def _deep(view: SchemaView, said: set[str]) -> list[Finding]:
    """Occurrences without which the whole schema allows nothing else."""
    from structgen.core.answers.deciding import Questions
    from structgen.core.answers.joint import Joint

    findings = []
    schema, options, registry = view.whole.schema, view.whole.options, view.whole.registry
    anything = _anything_in(view.dialect)
    for one in occurrences(schema, view.dialect)[:MAX_DEEP]:
        if one.is_container or one.under or one.pointer in said or one.keyword in ("type", "oneOf", "$ref"):
            continue
        silent = Lowered(without(schema, [one], anything), options, registry)
        joint = Joint([silent, Lowered(schema, options, registry)], options)
        decision = Questions(joint, options).is_contained(*joint.roots)
        if decision.contained:
            name = f" of {one.name!r}" if one.name else ""
            message = f"{one.keyword}{name} has no effect: without it the whole schema allows the same"
            findings.append(Finding("whole-no-effect", "info", one.pointer, message, {"question": "schema without it"}))
    return findings
