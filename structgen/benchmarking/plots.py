"""The plots of the report as SVG text, by matplotlib: for each section the one that shows what its table says."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from structgen.benchmarking import summary
from structgen.benchmarking.summary import Record

# One colour an engine in all plots (Okabe and Ito, told apart without colour vision too).
COLOURS = {
    "structgen": "#0072B2",
    "structgen_decoder": "#56B4E9",
    "llguidance": "#E69F00",
    "xgrammar": "#009E73",
    "outlines_core": "#CC79A7",
    "none": "#8A8F98",
}
OTHER = "#D55E00"
STYLE: Any = {
    "font.family": "sans-serif", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
    "axes.edgecolor": "#9aa3ad", "axes.titlelocation": "left", "axes.titlesize": 11, "axes.axisbelow": True,
    "axes.grid": True, "grid.color": "#e6e9ed", "svg.fonttype": "path", "svg.hashsalt": "structgen",
    "legend.frameon": False,
}  # fmt: skip


def plots(title: str, records: Sequence[Record], timed: Sequence[Record]) -> str:
    """The plot for the section of this title, "" where it has none; ``timed`` are the records whose times compare."""
    if title.startswith("Coverage, "):
        sampling = title.removeprefix("Coverage, ")
        return svg_text(lambda figure: _coverage_bars(figure, summary.select(records, sampling=sampling)), 3.2)
    if title == "Coverage by dataset":
        first = records[0]["sampling"]
        return svg_text(lambda figure: _dataset_bars(figure, summary.select(records, sampling=first)), 4.2)
    if title == "Efficiency":
        return svg_text(lambda figure: _efficiency(figure, records, timed), 3.8)
    if title == "Masks":
        return svg_text(lambda figure: _distributions(figure, records), 3.6)
    return ""


def _coverage_bars(figure: Any, records: Sequence[Record]) -> None:
    """A bar an engine: valid, finished but invalid, unfinished, not taken; they add up to all schemas."""
    found = {e: c for e, c in summary.by_engine(records, summary.coverage).items() if c.schemas}
    parts = [
        ("valid", "#0072B2", [c.valid / c.schemas for c in found.values()]),
        ("finished, not valid", "#D55E00", [(c.finished - c.valid) / c.schemas for c in found.values()]),
        ("cut off by the budget", "#B9C3CE", [(c.declared - c.finished) / c.schemas for c in found.values()]),
        ("not taken", "#EDEFF2", [1 - c.declared / c.schemas for c in found.values()]),
    ]
    axes = figure.subplots()
    left = np.zeros(len(found))
    for label, colour, shares in parts:
        axes.barh(list(found), 100 * np.array(shares), left=left, color=colour, label=label, height=0.62)
        left += 100 * np.array(shares)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of schemas")
    axes.grid(axis="y", visible=False)
    axes.legend(ncols=4, loc="lower center", bbox_to_anchor=(0.45, 1.0), handlelength=1.2, columnspacing=1.2)


def _dataset_bars(figure: Any, records: Sequence[Record]) -> None:
    """For each dataset, a bar an engine: empirical coverage, with declared coverage as its outline."""
    datasets, engines = summary.datasets_of(records), summary.engines_of(records)
    axes = figure.subplots()
    width = 0.84 / len(engines)
    for number, engine in enumerate(engines):
        found = [summary.coverage(summary.select(records, dataset=name, engine=engine)) for name in datasets]
        places = np.arange(len(datasets)) + (number - (len(engines) - 1) / 2) * width
        colour = COLOURS.get(engine, OTHER)
        axes.bar(places, [100 * c.empirical_share for c in found], width * 0.9, color=colour, label=engine)
        axes.bar(places, [100 * c.declared_share for c in found], width * 0.9, color="none", edgecolor=colour, lw=0.7)
    axes.set_xticks(range(len(datasets)), datasets, rotation=30, ha="right")
    axes.set_ylim(0, 104)
    axes.set_ylabel("% of schemas (outline: declared)")
    axes.grid(axis="x", visible=False)
    axes.legend(ncols=len(engines), loc="lower center", bbox_to_anchor=(0.5, 1.0), handlelength=1.2)


def _efficiency(figure: Any, records: Sequence[Record], timed: Sequence[Record]) -> None:
    """Left: time per step over that of no constraint, by schema. Right: the same against coverage."""
    common = summary.common_schemas(timed)
    paired = {
        engine: np.array([r["paired"][1] / r["paired"][2] for r in members if r.get("paired", (0, 0, 0))[0] >= 8])
        for engine in summary.engines_of(common)
        if (members := summary.select(common, engine=engine))
    }
    paired = {engine: ratios for engine, ratios in paired.items() if len(ratios)}
    left, right = figure.subplots(1, 2)
    if paired:
        boxes = left.boxplot(
            list(paired.values()), tick_labels=list(paired), patch_artist=True, widths=0.5, flierprops={"markersize": 3}
        )
        for box, engine in zip(boxes["boxes"], paired, strict=True):
            box.set(facecolor=COLOURS.get(engine, OTHER), alpha=0.75, edgecolor="none")
        for line in boxes["medians"]:
            line.set(color="#1c2430")
    left.axhline(1, color="#8A8F98", lw=1, ls="--")
    left.set_title("time per step / unconstrained, a point a schema")
    right.set_title("efficiency against coverage")
    sampling = records[0]["sampling"]
    for engine, item in summary.by_engine(common, summary.efficiency).items():
        cover = summary.coverage(summary.select(records, engine=engine, sampling=sampling))
        ratio = 1.0 if engine == "none" else item.ratio
        if cover.schemas and np.isfinite(ratio):
            right.scatter(100 * (ratio - 1), 100 * cover.empirical_share, s=90, color=COLOURS.get(engine, OTHER))
            place = (100 * (ratio - 1), 100 * cover.empirical_share)
            right.annotate(engine, place, xytext=(8, 4), textcoords="offset points")
    right.margins(0.25)
    right.set_xlabel("time added to a step, %")
    right.locator_params(axis="x", nbins=5)
    right.set_ylabel("empirical coverage, %")


def _distributions(figure: Any, records: Sequence[Record]) -> None:
    """Left: mask and advance for each token. Right: compile times."""
    found = summary.by_engine(summary.common_schemas(records), summary.efficiency)
    masks = {engine: item.mask_us for engine, item in found.items() if engine != "none"}
    compiling = {engine: 1e3 * found[engine].compile_s for engine in masks if engine != "structgen_decoder"}
    cumulative_shares(figure, {"mask and advance, µs a token": masks, "compile, ms a schema": compiling})


def cumulative_shares(figure: Any, panels: Mapping[str, Mapping[str, summary.Floats]]) -> None:
    """A panel for each label, a line in it for each engine: the share of its values up to x, x logarithmic."""
    for axes, (label, by_engine) in zip(figure.subplots(1, len(panels), sharey=True), panels.items(), strict=True):
        for engine, values in by_engine.items():
            if len(values):
                ordered = np.sort(np.maximum(values, 1e-3))
                shares = 100 * np.arange(1, len(ordered) + 1) / len(ordered)
                axes.plot(ordered, shares, color=COLOURS.get(engine, OTHER), label=engine, lw=1.8)
        axes.set_xscale("log")
        axes.set_xlabel(label)
        axes.legend(loc="lower right")
    figure.axes[0].set_ylabel("% of the values")


def svg_text(draw: Callable[[Any], None], height: float) -> str:
    """What ``draw`` draws on a figure 9 inches wide and ``height`` inches high, as SVG text; no window, no global
    state."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(9, height), layout="constrained")
        draw(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]
