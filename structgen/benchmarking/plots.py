"""The plots of the report as SVG text, by matplotlib: for each section the one that shows what its table says."""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
INK, EDGE, GRID, PAPER = "#1c2430", "#9aa3ad", "#e6e9ed", "#ffffff"
STYLE: Any = {
    "font.family": "sans-serif", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlelocation": "left", "axes.titlesize": 11, "axes.edgecolor": EDGE, "axes.axisbelow": True,
    "axes.grid": True, "grid.color": GRID, "svg.fonttype": "path",
    "svg.hashsalt": "structgen", "legend.frameon": False, "text.color": INK, "axes.labelcolor": INK,
    "xtick.color": INK, "ytick.color": INK, "figure.facecolor": PAPER, "axes.facecolor": PAPER,
}  # fmt: skip
# On a page that has these variables a plot is light or dark with it.
OF_PAGE = {INK: "var(--ink)", EDGE: "var(--soft)", GRID: "var(--line)", PAPER: "none"}
LONGEST = 34  # characters of a name beside an axis
WIDTH, ROW = 9.0, 0.24  # inches: of a plot, and of a line of text


def plots(title: str, records: Sequence[Record], timed: Sequence[Record]) -> str:
    """The plot for the section of this title, in the colours of its page; "" where it has none; ``timed`` are the
    records whose times compare."""
    plot = plot_of(title, records, timed)
    if plot is None:
        return ""
    text = svg_text(*plot)
    for colour, variable in OF_PAGE.items():
        text = text.replace(colour, variable)
    return text.replace("<svg ", f'<svg role="img" aria-label="{html.escape(title)}" ', 1)


def plot_of(
    title: str, records: Sequence[Record], timed: Sequence[Record]
) -> tuple[Callable[[Any], None], float] | None:
    """What draws the plot of a section, and its height in inches; None: it has no plot."""
    engines, first = len(summary.engines_of(records)), records[0]["sampling"]
    if title.startswith("Coverage, "):
        chosen = summary.select(records, sampling=title.removeprefix("Coverage, "))
        return lambda figure: _coverage_bars(figure, chosen), 1.3 + 0.3 * engines
    if title == "Coverage by dataset":
        chosen = summary.select(records, sampling=first)
        height = len(summary.datasets_of(chosen)) * max(ROW, 0.1 * engines + 0.1)
        return lambda figure: _dataset_bars(figure, chosen), 1.2 + _legend_rows(summary.engines_of(chosen)) + height
    if title == "Efficiency":
        height = 3.2 + _legend_rows(summary.engines_of(timed)) + 0.1 * engines
        return lambda figure: _efficiency(figure, records, timed), height
    if title == "Masks":
        return lambda figure: _distributions(figure, records), 3.3 + _legend_rows(summary.engines_of(records))
    return None


def _coverage_bars(figure: Any, records: Sequence[Record]) -> None:
    """A bar an engine: valid, finished but invalid, unfinished, not taken; they add up to all schemas."""
    covered = {e: c for e, c in summary.by_engine(records, summary.coverage).items() if c.schemas}
    parts = [
        ("valid", "#0072B2", [c.valid / c.schemas for c in covered.values()]),
        ("finished, not valid", "#D55E00", [(c.finished - c.valid) / c.schemas for c in covered.values()]),
        ("cut off by the budget", "#97A3B0", [(c.declared - c.finished) / c.schemas for c in covered.values()]),
        ("not taken", GRID, [1 - c.declared / c.schemas for c in covered.values()]),
    ]
    axes = figure.subplots()
    left, places = np.zeros(len(covered)), np.arange(len(covered))
    for label, colour, shares in parts:
        axes.barh(places, 100 * np.array(shares), left=left, color=colour, label=label, height=0.62)
        left += 100 * np.array(shares)
    axes.set_yticks(places, list(map(_shown, covered)))
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("% of schemas")
    axes.grid(axis="y", visible=False)
    _legend(figure, axes)


def _dataset_bars(figure: Any, records: Sequence[Record]) -> None:
    """For each dataset, a bar an engine: empirical coverage, with declared coverage as its outline."""
    datasets, engines = summary.datasets_of(records), summary.engines_of(records)
    colours = colours_of(engines)
    axes = figure.subplots()
    height = 0.84 / len(engines)
    for number, engine in enumerate(engines):
        covers = [summary.coverage(summary.select(records, dataset=name, engine=engine)) for name in datasets]
        places = np.arange(len(datasets)) + (number - (len(engines) - 1) / 2) * height
        colour = colours[engine]
        shares = [100 * c.empirical_share for c in covers]
        axes.barh(places, shares, height * 0.9, color=colour, label=_shown(engine))
        axes.barh(
            places, [100 * c.declared_share for c in covers], height * 0.9, color="none", edgecolor=colour, lw=0.7
        )
    axes.set_yticks(range(len(datasets)), list(map(_shown, datasets)))
    axes.set_ylim(len(datasets) - 0.5, -0.5)
    axes.set_xlim(0, 101)
    axes.set_xlabel("% of schemas (outline: declared)")
    axes.grid(axis="y", visible=False)
    _legend(figure, axes)


def _efficiency(figure: Any, records: Sequence[Record], timed: Sequence[Record]) -> None:
    """Left: time per step over that of no constraint, by schema. Right: the same against coverage."""
    common = summary.common_schemas(timed)
    paired = {
        engine: np.array([r["paired"][1] / r["paired"][2] for r in members if r.get("paired", (0, 0, 0))[0] >= 8])
        for engine in summary.engines_of(common)
        if (members := summary.select(common, engine=engine))
    }
    paired = {engine: ratios for engine, ratios in paired.items() if len(ratios)}
    colours = colours_of(summary.engines_of(timed))
    left, right = figure.subplots(1, 2)
    if paired:
        boxes = left.boxplot(
            list(paired.values()), tick_labels=list(map(_shown, paired)), orientation="horizontal",
            patch_artist=True, widths=0.5, flierprops={"markersize": 3, "markeredgecolor": INK},
            whiskerprops={"color": INK}, capprops={"color": INK}, medianprops={"color": INK},
        )  # fmt: skip
        for box, engine in zip(boxes["boxes"], paired, strict=True):
            box.set(facecolor=colours[engine], alpha=0.75, edgecolor="none")
    left.axvline(1, color=EDGE, lw=1, ls="--")
    left.invert_yaxis()
    left.set_xlabel("time of a step / unconstrained")
    left.locator_params(axis="x", nbins=5)
    sampling = records[0]["sampling"]
    for engine, item in summary.by_engine(common, summary.efficiency).items():
        cover = summary.coverage(summary.select(records, engine=engine, sampling=sampling))
        ratio = 1.0 if engine == "none" else item.ratio
        if cover.schemas and np.isfinite(ratio):
            point = (100 * (ratio - 1), 100 * cover.empirical_share)
            right.scatter(*point, s=80, color=colours[engine], alpha=0.85, label=_shown(engine))
    right.margins(0.1)
    right.set_xlabel("time added to a step, %")
    right.locator_params(axis="x", nbins=5)
    right.set_ylabel("empirical coverage, %")
    _legend(figure, right)


def _distributions(figure: Any, records: Sequence[Record]) -> None:
    """Left: mask and advance for each token. Right: compile times."""
    measured = summary.by_engine(summary.common_schemas(records), summary.efficiency)
    masks = {engine: item.mask_us for engine, item in measured.items() if engine != "none"}
    compiling = {engine: 1e3 * measured[engine].compile_s for engine in masks if engine != "structgen_decoder"}
    cumulative_shares(figure, {"mask and advance, µs a token": masks, "compile, ms a schema": compiling})


def cumulative_shares(figure: Any, panels: Mapping[str, Mapping[str, summary.Floats]]) -> None:
    """A panel for each label, a line in it for each engine: the share of its values up to x, x logarithmic."""
    from matplotlib.ticker import NullFormatter

    colours = colours_of(list(dict.fromkeys(engine for by_engine in panels.values() for engine in by_engine)))
    drawn = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for axes, (label, by_engine) in zip(drawn, panels.items(), strict=True):
        lines = {engine: np.sort(np.maximum(values, 1e-3)) for engine, values in by_engine.items() if len(values)}
        for engine, ordered in lines.items():
            shares = 100 * np.arange(1, len(ordered) + 1) / len(ordered)
            axes.plot(ordered, shares, color=colours[engine], label=_shown(engine), lw=1.8)
        axes.set_xscale("log")
        if lines:  # whole decades, whose labels alone are shown: those between run into each other
            least, most = min(map(np.min, lines.values())), max(map(np.max, lines.values()))
            axes.set_xlim(10 ** np.floor(np.log10(least)), 10 ** (np.floor(np.log10(most)) + 1))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel(label)
    drawn[0].set_ylabel("% of the values")
    _legend(figure, *drawn)


def colours_of(engines: Sequence[str]) -> dict[str, str]:
    """A colour for each engine, its own where it has one; as long as there are some, no two have the same."""
    free = [colour for name, colour in COLOURS.items() if name not in engines]
    others = iter([OTHER, *free])
    return {engine: COLOURS.get(engine) or next(others, OTHER) for engine in engines}


def _legend(figure: Any, *axes: Any) -> None:
    """One above the plot, where it covers nothing, in as many columns as fit."""
    handles_of = {
        label: handle for part in axes for handle, label in zip(*part.get_legend_handles_labels(), strict=True)
    }
    if handles_of:
        columns = _columns(list(handles_of))
        figure.legend(
            list(handles_of.values()), list(handles_of), loc="outside upper left", ncols=columns, handlelength=1.2,
            columnspacing=1.2,
        )  # fmt: skip


def _columns(names: Sequence[str]) -> int:
    """Of a legend of these names: about eleven characters are an inch wide, and each has its mark."""
    return max(1, min(len(names), int(11 * WIDTH / (max(map(len, names)) + 6))))


def _legend_rows(engines: Sequence[str]) -> float:
    """The height of a legend of these engines, in inches."""
    return ROW * -(-len(engines) // _columns(list(map(_shown, engines)))) if engines else 0.0


def _shown(name: str) -> str:
    """A name beside an axis: of a long one (``module:class``) its end."""
    shown = name if len(name) <= LONGEST else f"…{name[1 - LONGEST :]}"
    return shown.replace("$", r"\$")  # which would begin a formula


def svg_text(draw: Callable[[Any], None], height: float) -> str:
    """What ``draw`` draws on a figure 9 inches wide and ``height`` inches high, as SVG text; no window, no global
    state."""
    buffer = io.StringIO()
    with figure_of(draw, height) as figure:
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


@contextmanager
def figure_of(draw: Callable[[Any], None], height: float) -> Iterator[Any]:
    """The figure itself, drawn, as long as its style is in force."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure)
        yield figure
