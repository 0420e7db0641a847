"""The report of a run: one list of sections, written as Markdown and as a self-contained HTML page with plots."""

from __future__ import annotations

import html
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from structgen.benchmarking import summary
from structgen.benchmarking.summary import Record
from structgen.benchmarking.table import markdown_table
from structgen.core.whole_files import replacing

NAMES = {
    "structgen": "structgen",
    "structgen_decoder": "structgen, own decoder",
    "none": "none (unconstrained)",
}
EXAMPLES = 6
MADE_BY = "structgen bench report"
SIGNED = {"report.md": f"<!-- {MADE_BY} -->", "report.html": f'<meta name="generator" content="{MADE_BY}">'}
"""What the files of a report say of themselves at their beginning, so that no others are overwritten."""


@dataclass
class Table:
    """Cells are text; the first column is left-aligned."""

    head: list[str]
    rows: list[list[str]]


@dataclass
class Section:
    """A heading, a paragraph, and what stands below it: a table, a plot (SVG text) or both."""

    title: str
    text: str = ""
    table: Table | None = None
    plot: str = ""
    code: str = ""


@dataclass
class Run:
    """A record file: its records, and the lines that say how they were made."""

    records: list[Record]
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    machine: str = ""


def read_run(path: Path) -> Run:
    """A record file, whatever run made it.

    Raises:
        ValueError: it holds no records.
    """
    run = Run([])
    try:
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            if "run" in entry:
                run.settings, run.machine = entry["run"], entry["machine"]
                run.versions |= entry["versions"]
            else:
                run.records.append(entry)
    except (OSError, json.JSONDecodeError, KeyError) as error:
        raise ValueError(f"{path} is no file of records: {error}") from error
    if not run.records:
        raise ValueError(f"{path} holds no records.")
    return run


def write_report(runs: Sequence[Run], folder: Path, command: str = "") -> tuple[Path, Path]:
    """Write report.md and report.html into ``folder``; coverage is of the first run, times of the last by turns.

    Raises:
        ValueError: see ``check_folder``.
    """
    from structgen.benchmarking.plots import plots

    sections = make_sections(runs, command)
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    markdown, page = _files(folder)
    text = f"{SIGNED[markdown.name]}\n{as_markdown(sections)}"
    for section in sections:
        section.plot = plots(section.title, coverage_run(runs).records, timed_run(runs).records)
    for path, content in ((markdown, text), (page, as_html(sections))):
        with replacing(path) as file:
            file.write(content.encode())
    return markdown, page


def check_folder(folder: Path) -> None:
    """Whether a report can be written into a folder; one that is there is replaced by the next.

    Raises:
        ValueError: there is a file of a report's name that is none, or the folder is a file.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is no folder; choose another --out")
    for path in _files(folder):
        if not path.exists():
            continue
        if not (path.is_file() and SIGNED[path.name].encode() in path.read_bytes()[:300]):
            raise ValueError(f"{path} is no report of structgen bench, and would be overwritten; choose another --out")


def _files(folder: Path) -> tuple[Path, Path]:
    return folder / "report.md", folder / "report.html"


def coverage_run(runs: Sequence[Run]) -> Run:
    """The run with the most schemas."""
    return max(runs, key=lambda run: len({record["schema"] for record in run.records}))


def timed_run(runs: Sequence[Run]) -> Run:
    """The run whose times compare: by turns, if there is one."""
    return next((run for run in runs if run.settings.get("pace") == "turns"), coverage_run(runs))


def make_sections(runs: Sequence[Run], command: str) -> list[Section]:
    """All sections without their plots."""
    main, timed = coverage_run(runs), timed_run(runs)
    sections = [_how(main, timed, command)]
    sections += [_overall(main, sampling) for sampling in _samplings(main.records)]
    sections += [_by_dataset(main), _efficiency(timed), _masks(main)]
    sections += [_failures(main, engine) for engine in summary.engines_of(main.records)]
    return sections


def _how(main: Run, timed: Run, command: str) -> Section:
    schemas = {(record["dataset"], record["schema"]) for record in main.records}
    versions = ", ".join(f"{name} {text}".strip() for name, text in sorted(main.versions.items()) if name != "none")
    settings = main.settings
    cut = {record["schema"] for record in main.records if record.get("prompt_cut")}
    words = [
        f"{_count(schemas, 'schema')} of {_count(summary.datasets_of(main.records), 'dataset')}, a seeded random"
        " sample of each;",
        f"model {settings.get('model')}, {settings.get('max_new_tokens')} new tokens at most,",
        f"sampled at temperature {settings.get('temperature')}; engines: {versions}. {main.machine}.",
        f"The prompt shows {settings.get('shots')} worked example(s) and the schema, cut to fit"
        f" {settings.get('max_prompt_tokens')} tokens for {len(cut)} of the schemas (engines get all of it).",
        "Outputs are judged by python-jsonschema with formats asserted. Engines run with their own defaults.",
    ]
    if timed is not main:
        count = len({record["schema"] for record in timed.records})
        words.append(f"Times come from a run of its own over {count} schemas, the engines by turns, token by token.")
    return Section("JSONSchemaBench", " ".join(words), code=command)


def _overall(run: Run, sampling: str) -> Section:
    rows = []
    for engine, cover in summary.by_engine(run.records, summary.coverage, sampling=sampling).items():
        if cover.schemas:
            shares = (cover.declared_share, cover.empirical_share, cover.compliance, cover.finished_compliance)
            rows.append([_name(engine), f"{cover.schemas:,}", *map(_percent, shares), f"{cover.finished:,}"])
    head = ["engine", "schemas", "declared", "empirical", "compliance", "valid of finished", "finished"]
    text = (
        "Declared: the engine takes the schema. Empirical: its output is valid. Compliance: empirical / declared; "
        "outputs that the token budget cuts off count against it. The last two columns leave those out."
    )
    return Section(f"Coverage, {sampling}", text, Table(head, rows))


def _by_dataset(run: Run) -> Section:
    sampling = _samplings(run.records)[0]
    engines = summary.engines_of(run.records)
    rows = []
    for dataset in summary.datasets_of(run.records):
        chosen = summary.select(run.records, dataset=dataset, sampling=sampling)
        covers = summary.by_engine(chosen, summary.coverage)
        cells = [_pair(covers[engine]) if engine in covers else "" for engine in engines]
        rows.append([dataset, str(max(item.schemas for item in covers.values())), *cells])
    text = f"Declared / empirical coverage in per cent, {sampling}."
    return Section("Coverage by dataset", text, Table(["dataset", "schemas", *map(_name, engines)], rows))


def _efficiency(run: Run) -> Section:
    common = summary.common_schemas(run.records)
    measured = summary.by_engine(common, summary.efficiency)
    head = [
        "engine",
        "compile p50 ms",
        "p95",
        "first token p50 ms",
        "token p50 ms",
        "time / none",
        "95 % interval",
        "steps",
    ]
    rows = []
    for engine, item in measured.items():
        low, high = item.interval
        ratio = (
            ["", "", ""]
            if np.isnan(item.ratio)
            else [f"{item.ratio:.3f}", f"{low:.3f} to {high:.3f}", f"{item.steps:,}"]
        )
        figures = [_ms(item.compile_s, 50), _ms(item.compile_s, 95), _ms(item.ttft_s, 50), _ms(item.tpot_s, 50)]
        rows.append([_name(engine), *figures, *ratio])
    count = len({record["schema"] for record in common})
    text = (
        f"Over the {count} schemas that every engine takes. Compile: from schema text to a ready grammar. First token: "
        "compile, prompt and first mask. Token: model call, mask, draw, advance. time / none: all steps that an output "
        "has in common with the unconstrained one, in seconds, divided by that one's."
    )
    return Section("Efficiency", text, Table(head, rows))


def _masks(run: Run) -> Section:
    rows = []
    for engine, item in summary.by_engine(summary.common_schemas(run.records), summary.efficiency).items():
        if engine != "none" and len(item.mask_us):
            quantiles = [f"{np.percentile(item.mask_us, q):,.0f}" for q in (50, 90, 99)]
            rows.append([_name(engine), f"{len(item.mask_us):,}", f"{item.mask_us.mean():,.0f}", *quantiles])
    text = (
        "µs to fill the mask and to advance, for each token, over the schemas that every engine takes. For structgen's "
        "own decoder: a step with all its forced tokens, and the check that the output can still be closed in time."
    )
    return Section("Masks", text, Table(["engine", "tokens", "mean", "p50", "p90", "p99"], rows))


def _failures(run: Run, engine: str) -> Section:
    rows = []
    for label, count, example in summary.failures(summary.select(run.records, engine=engine))[:EXAMPLES]:
        shown = example.get("reason") or example.get("error") or ""
        text = str(shown).splitlines()[0][:110] if shown else ""
        rows.append([label, str(count), f"{example['schema']} ({example['sampling']}): {text}"])
    text = "" if rows else "Every output is valid."
    return Section(f"Failures: {_name(engine)}", text, Table(["class", "outputs", "an example"], rows))


def as_markdown(sections: Sequence[Section]) -> str:
    """The report as Markdown."""
    parts = []
    for number, section in enumerate(sections):
        parts.append(f"{'#' if number == 0 else '##'} {section.title}")
        parts += [section.text] * bool(section.text)
        parts += [f"```\n{section.code}\n```"] * bool(section.code)
        if section.table and section.table.rows:
            rows = [[cell.replace("|", "\\|") for cell in row] for row in section.table.rows]
            parts.append(markdown_table(section.table.head, rows))
    return "\n\n".join(parts) + "\n"


def as_html(sections: Sequence[Section]) -> str:
    """The report as one HTML page without outside resources; readable in light and dark."""
    body = []
    for number, section in enumerate(sections):
        level = 1 if number == 0 else 2
        body.append(f"<section><h{level}>{html.escape(section.title)}</h{level}>")
        body += [f"<p>{html.escape(section.text)}</p>"] * bool(section.text)
        body += [f'<pre tabindex="0">{html.escape(section.code)}</pre>'] * bool(section.code)
        body += [f'<figure class="wide" tabindex="0">{section.plot}</figure>'] * bool(section.plot)
        if section.table and section.table.rows:
            body.append(_html_table(section.table, section.title))
        body.append("</section>")
    title = html.escape(sections[0].title)
    return _PAGE.format(signed=MADE_BY, title=title, style=_STYLE, body="\n".join(body))


def _html_table(table: Table, title: str) -> str:
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in table.head)
    rows = ("".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in table.rows)
    lines = "\n".join(f"<tr>{row}</tr>" for row in rows)
    words = ' class="words"' if table.head[-1] == "an example" else ""
    region = f'<div class="wide" tabindex="0" role="region" aria-label="{html.escape(title)}, table">'
    return f"{region}<table{words}><thead><tr>{head}</tr></thead><tbody>\n{lines}\n</tbody></table></div>"


def _samplings(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(record["sampling"] for record in records))


def _count(things: Collection[Any], what: str) -> str:
    return f"{len(things)} {what}{'s' * (len(things) != 1)}"


def _name(engine: str) -> str:
    return NAMES.get(engine, engine)


def _percent(share: float) -> str:
    return "" if np.isnan(share) else f"{100 * share:.1f} %"


def _pair(cover: summary.Coverage) -> str:
    return f"{100 * cover.declared_share:.0f} / {100 * cover.empirical_share:.0f}" if cover.schemas else ""


def _ms(seconds: Any, q: float) -> str:
    return f"{1e3 * np.percentile(seconds, q):,.1f}" if len(seconds) else ""


_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="{signed}"><title>{title}</title><style>{style}</style></head><body><main>
{body}
</main></body></html>
"""
_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5b6675; --line: #dfe4ea; --ground: #f6f7f9; --sheet: #fff;
  --focus: #14548c; }
@media (prefers-color-scheme: dark) { :root { --ink: #e9eaec; --soft: #a4abb6; --line: #3c414a; --ground: #16181c;
  --sheet: #1e2126; --focus: #8cc0f0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 16px/1.55 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
section { background: var(--sheet); border: 1px solid var(--line); border-radius: 10px; margin: 1rem 0;
  padding: 1.2rem 1.5rem; }
h1 { font-size: 1.9rem; margin: .2rem 0 .6rem; } h2 { font-size: 1.25rem; margin: .1rem 0 .5rem; }
h1, h2, p { overflow-wrap: anywhere; }
p { color: var(--soft); margin: .3rem 0 .9rem; max-width: 52rem; }
pre { background: var(--ground); padding: .7rem 1rem; border-radius: 6px; font-size: .85rem; }
figure { margin: .5rem 0 1rem; } figure svg { display: block; width: 100%; min-width: 40rem; height: auto; }
pre, .wide { overflow-x: auto; }
:focus-visible { outline: 3px solid var(--focus); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .35rem .7rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { color: var(--soft); font-weight: 600; font-size: .85rem; }
th:first-child, td:first-child { text-align: left; }
.words td:last-child, .words th:last-child { text-align: left; white-space: normal; font-size: .85rem;
  overflow-wrap: anywhere; min-width: 16rem; }
tbody tr:hover { background: var(--ground); }
@media (max-width: 40rem) { main { padding: .5rem .5rem 3rem; } section { padding: .8rem .8rem; border-radius: 6px; }
  h1 { font-size: 1.5rem; } }
"""
