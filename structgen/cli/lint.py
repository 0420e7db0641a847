"""``structgen lint``: what in schemas has no effect, contradicts itself or was most likely meant otherwise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from structgen import __version__
from structgen.cli.common import BAD_INPUT, INVALID, BadInput, print_json, read_text
from structgen.cli.compare import constraint_in
from structgen.cli.consoles import err, out
from structgen.core.answers.lint.findings import Finding
from structgen.core.answers.lint.providers import targets_named, together
from structgen.core.answers.lint.run import ORDER, SUMMARIES
from structgen.core.answers.lint.run import lint as lint_schema
from structgen.core.answers.sarif import SarifResult, sarif_log
from structgen.core.answers.text_positions import TextPositions
from structgen.errors import ConstraintError
from structgen.options import JsonOptions


@dataclass(frozen=True)
class LintRequest:
    """What was asked for: see the command's options; ``tools``: the files are lists of tools."""

    deep: bool = False
    closed: bool = False
    tools: bool = False
    targets: tuple[str, ...] = ()


def run(
    files: Sequence[str],
    fail_on: str,
    form: Literal["text", "json", "sarif"],
    baseline: str | None,
    options: JsonOptions,
    asked: LintRequest,
) -> int:
    """Lint files and report; the exit code: 0 nothing as grave as ``fail_on``, 1 findings, 2 a file cannot be read."""
    if fail_on not in (*ORDER, "never"):
        raise BadInput(f"--fail-on is {', '.join(ORDER)} or never, not {fail_on!r}.")
    earlier = _known(baseline)
    texts: dict[str, str] = {}
    listed: list[tuple[str, Finding]] = []
    code = 0
    for file in files:
        try:
            texts[file] = read_text(file)
            findings = _findings(file, texts[file], options, asked)
            listed += [(file, one) for one in findings if (file, one.rule, one.pointer) not in earlier]
        except (BadInput, ConstraintError) as error:
            err.print(f"{file}: {error}", markup=False, soft_wrap=True)
            code = BAD_INPUT
    _report(listed, texts, form)
    grave = any(fail_on != "never" and ORDER[one.level] <= ORDER[fail_on] for _, one in listed)
    return code or (INVALID if grave else 0)


def _findings(file: str, text: str, options: JsonOptions, asked: LintRequest) -> list[Finding]:
    """Those of one file."""
    schemas = _schemas(file, text, asked.tools)
    findings: list[Finding] = []
    for prefix, schema in schemas:
        of_schema = lint_schema(schema, deep=asked.deep, closed=asked.closed, targets=asked.targets, options=options)
        findings += _moved(of_schema, prefix)
    for target in targets_named(asked.targets) if asked.tools else ():
        findings += together([schema for _, schema in schemas], target, options)
    return findings


def _schemas(file: str, text: str, tools: bool) -> list[tuple[str, Any]]:
    """The schemas of a file, with the pointers to them: itself (or a grammar), or those of a list of tools."""
    if not tools:
        return [("", constraint_in(file, text))]
    try:
        listed = json.loads(text)
    except ValueError as error:
        raise BadInput(f"not JSON: {error}") from error
    whole = "/tools" if isinstance(listed, dict) and "tools" in listed else ""
    from structgen.core.tool_calls.definitions import read_tools  # which compiles

    return [(whole + tool.pointer, tool.parameters) for tool in read_tools(listed)]


def _moved(findings: list[Finding], prefix: str) -> list[Finding]:
    return [Finding(one.rule, one.level, prefix + one.pointer, one.message, one.evidence) for one in findings]


def _known(baseline: str | None) -> set[tuple[str, str, str]]:
    """The findings of an earlier run with ``--json``, which are not reported again."""
    if baseline is None or not Path(baseline).exists():
        return set()
    try:
        return {(one["file"], one["rule"], one["pointer"]) for one in json.loads(read_text(baseline))["findings"]}
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(f"{baseline} is not the output of structgen lint --json.") from error


def _report(listed: list[tuple[str, Finding]], texts: dict[str, str], form: str) -> None:
    if form == "json":
        print_json({"findings": [{"file": file, **asdict(one)} for file, one in listed]})
    elif form == "sarif":
        results = [
            SarifResult(one.rule, one.level, one.message, file, one.pointer, one.evidence) for file, one in listed
        ]
        print_json(sarif_log(results, SUMMARIES, texts, __version__))
    else:
        positions = {file: TextPositions(text) for file, text in texts.items()}
        for file, one in listed:
            line, column = positions[file].of(one.pointer)
            out.print(
                f"{file}:{line}:{column}: {one.level}: {one.message} [{one.rule}] {one.pointer}{_shown(one)}",
                markup=False,
                soft_wrap=True,
            )
        counts = {level: sum(one.level == level for _, one in listed) for level in ORDER}
        out.print(", ".join(f"{count} {level}" for level, count in counts.items()))


def _shown(one: Finding) -> str:
    shown = one.evidence.get("document", one.evidence.get("text"))
    return "" if shown is None else f"\n    shown by: {json.dumps(shown, ensure_ascii=False, default=str):.200}"
