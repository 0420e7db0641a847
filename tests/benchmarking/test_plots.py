"""The plots of the report: what is written in them stands apart, a colour an engine, in the page's light or dark."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from structgen.benchmarking.plots import colours_of, cumulative_shares, figure_of, plot_of, plots

TITLES = ["Coverage, greedy", "Coverage by dataset", "Efficiency", "Masks"]
FEW = ["structgen", "structgen_decoder", "llguidance", "xgrammar", "outlines_core", "none"]
MANY = [*FEW, "my_company.engines.json_engine:TheEngineWithTheLongName", "other.module:Engine", "third:Engine"]
ALIKE = [f"Dataset_{number}_of_some_length" for number in range(25)]


def records(engines: list[str], datasets: list[str], spread: float = 1.0) -> list[dict[str, Any]]:
    """Engines that differ little, or by a thousand times: what stands beside their points and lines comes close."""
    found = []
    for (place, engine), dataset, number in itertools.product(enumerate(engines), datasets, range(3)):
        times = 1.0 + 0.001 * number + spread * 10 * place
        found.append(
            {
                "dataset": dataset, "schema": f"{dataset}{number}", "engine": engine, "sampling": "greedy",
                "outcome": "written", "judgement": "valid", "reason": "", "compile_s": 0.001 * times, "ttft_s": times,
                "tpot_s": times, "mask_us": [5.0 * times, 9.0 * times], "paired": [20, times, 1.0],
            }
        )  # fmt: skip
    return found


def texts_of(figure: Any) -> list[tuple[str, Any]]:
    """Every text that is seen, with its box in pixels."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    seen = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    boxes = [(text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in seen]
    return [(text, box) for text, box in boxes if box.width > 0 and drawn_ticks(figure, text, box)]


def drawn_ticks(figure: Any, text: str, box: Any) -> bool:
    """Whether a label of a tick lies within its axis: matplotlib keeps some that it does not draw."""
    for axes in figure.axes:
        inside = axes.get_window_extent()
        labels = [(axes.xaxis, "x0", "x1"), (axes.yaxis, "y0", "y1")]
        for axis, low, high in labels:
            for tick in [*axis.get_major_ticks(), *axis.get_minor_ticks()]:
                if tick.label1.get_text() == text and tick.label1.get_window_extent().bounds == box.bounds:
                    middle = (getattr(box, low) + getattr(box, high)) / 2
                    return bool(getattr(inside, low) - 1 <= middle <= getattr(inside, high) + 1)
    return True


@pytest.mark.first_case
@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize("engines", [FEW[:1], FEW, MANY], ids=["one", "few", "many"])
@pytest.mark.parametrize("datasets", [["D"], ALIKE], ids=["a dataset", "many datasets"])
@pytest.mark.parametrize("spread", [0.0, 1.0, 1e3])
def test_no_label_stands_on_another(title: str, engines: list[str], datasets: list[str], spread: float) -> None:
    made = records(engines, datasets, spread)
    found = plot_of(title, made, made)
    assert found is not None
    with figure_of(*found) as figure:
        texts = texts_of(figure)
        width, height = figure.bbox.size
        for text, box in texts:
            assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height, f"{text!r} is cut off"
        for (one, its), (other, others) in itertools.combinations(texts, 2):
            apart = its.x1 <= others.x0 or others.x1 <= its.x0 or its.y1 <= others.y0 or others.y1 <= its.y0
            assert apart, f"{one!r} stands on {other!r}"
    assert len(texts) > 3


def test_a_legend_covers_no_line() -> None:
    values = {engine: [1.0 * place + 1, 2.0 * place + 2] for place, engine in enumerate(FEW)}
    panels: Any = {"µs": values, "ms": values}
    with figure_of(lambda figure: cumulative_shares(figure, panels), 4.0) as figure:
        canvas: Any = FigureCanvasAgg(figure)
        canvas.draw()
        (legend,) = figure.legends
        assert all(not axes.get_window_extent().overlaps(legend.get_window_extent()) for axes in figure.axes)


def test_colours_tell_engines_apart() -> None:
    found = colours_of([*FEW[:4], *MANY[6:]])
    assert len(set(found.values())) == len(found)
    assert found["structgen"] == "#0072B2"


@pytest.mark.first_case
@pytest.mark.parametrize("title", TITLES)
def test_a_plot_has_the_colours_of_its_page(title: str) -> None:
    made = records(FEW, ["D"])
    text = plots(title, made, made)
    assert text.startswith(f'<svg role="img" aria-label="{title}"')
    assert "var(--ink)" in text and not re.search("#(?:000000|ffffff|1c2430)", text)
    assert plots("Failures: structgen", made, made) == ""


def test_names_are_no_formulas() -> None:
    made = records(["a$b", "c$d"], ["$x$"])
    assert plots("Coverage by dataset", made, made)
