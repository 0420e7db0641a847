"""The report of `structgen bench`, opened from its folder: three widths, light and dark."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from structgen.benchmarking.report import Run, write_report

ENGINES = ["structgen", "structgen_decoder", "llguidance", "xgrammar", "my_module:MyEngine", "none"]
DATASETS = ["Github_easy", "Github_hard", "Kubernetes", "WashingtonPost", "orders"]


def records() -> list[dict[str, Any]]:
    found = []
    for (place, engine), dataset, number in itertools.product(enumerate(ENGINES), DATASETS, range(4)):
        seconds = (0.05 + 0.001 * place) * (1 + 0.1 * number)
        record = {"dataset": dataset, "schema": f"{dataset}---{number}", "engine": engine, "sampling": "greedy"}
        written = {
            "outcome": "written", "judgement": "invalid" if number == place else "valid",
            "reason": "required: 'x' " * 30, "compile_s": 0.001 * (place + number + 1),
            "ttft_s": seconds, "tpot_s": seconds,
            "mask_us": [5.0 + place, 9.0 * (number + 1)], "paired": [20, 20 * seconds, 1.0 + 0.02 * number],
        }  # fmt: skip
        found.append({**record, **written})
        if engine == "xgrammar" and number == 3:
            found[-1] = {**record, "outcome": "refused", "error": "keyword 'not' is not supported " * 9}
    return found


@pytest.fixture(scope="module")
def looks(browse: Any, pictures: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("report")
    run = Run(records(), {"model": "a-model", "pace": "turns"}, {name: "1.0" for name in ENGINES}, "2 cores")
    _, page = write_report([run], folder, "structgen bench jsonschemabench --data hub " + "--an-option x " * 12)
    return browse("looks.mjs", str(pictures), json.dumps([["report", page.as_uri(), True]]))


def test_it_fits_three_widths(looks: Any) -> None:
    assert [look["width"] for look in looks] == ["phone", "phone", "laptop", "laptop", "wide", "wide"]
    for look in looks:
        assert not look["overflows"] and look["errors"] == []
        assert min(look["plotWidths"]) >= 640, "text of plots is large enough to be read: they are moved sideways"


def test_light_and_dark(looks: Any) -> None:
    for look in looks:
        grounds = {"light": "rgb(246, 247, 249)", "dark": "rgb(22, 24, 28)"}
        assert look["ground"] == grounds[look["scheme"]]
        assert look["plots"] == [look["ink"]], "text of plots is of the page's colour"


def test_axe_finds_no_barriers(looks: Any) -> None:
    assert [look["barriers"] for look in looks] == [[]] * 6 and min(look["held"] for look in looks) > 10
