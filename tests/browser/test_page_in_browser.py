"""The page in headless Chromium, by mouse and by keyboard; `make test-browser` installs the browser and runs this."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

from tests.serving.tiny import EOS, VOCABULARY, generator
from tests.serving.tiny_server import serving

HERE = Path(__file__).parent
MODULES = os.environ.get("BROWSER_MODULES", "")  # the folder that holds node_modules
if not MODULES or shutil.which("node") is None:
    pytest.skip("the browser is not installed (make test-browser)", allow_module_level=True)


@pytest.fixture(scope="module")
def seen() -> Any:
    pictures = Path(MODULES) / "pictures"
    pictures.mkdir(exist_ok=True)
    bias = np.zeros(VOCABULARY.size)
    bias[EOS] = -100.0  # free text ends when it is stopped, and not by chance before
    with serving(generator(0.002, bias=bias)) as server, serving(api_keys=("sesame",)) as keyed:
        command = ["node", str(HERE / "page.mjs"), server.url, keyed.url, MODULES, str(pictures)]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert finished.returncode == 0, finished.stderr
    return json.loads(finished.stdout), (server.url, keyed.url)


def test_outputs_are_written_and_told_apart(seen: Any) -> None:
    found, _ = seen
    assert found["status"].startswith("3 of 3 finished: ") and not found["errors"]
    for text in found["texts"]:
        assert set(json.loads(text)) == {"name", "age", "skills", "city"}
    assert set(found["kinds"]) == {"chosen", "forced"} and found["rows"] == len(found["kinds"])
    assert "15 keywords enforced" in found["summary"]
    assert found["top"] < 450  # without scrolling
    assert all(any(said.endswith(f", finished: {text}") for said in found["spoken"]) for text in found["texts"])


def test_keyboard_and_names(seen: Any) -> None:
    found, _ = seen
    assert found["firstFocus"] == "To the outputs" and found["secondFocus"] == "prompt"
    assert found["unnamed"] == []


def test_axe_finds_no_barriers(seen: Any) -> None:
    found, _ = seen
    assert found["barriers"] == [] and found["judged"] > 60  # rules that held: light, dark, and with an error


def test_light_dark_and_narrow(seen: Any) -> None:
    found, _ = seen
    assert found["dark"] != "rgb(251, 250, 247)" and not found["overflow"]


def test_errors_show_their_place(seen: Any) -> None:
    found, _ = seen
    assert len(found["problems"]) == 3
    for problem in found["problems"]:
        assert any(line.strip() == "^" for line in problem.split("\n")), problem
    assert found["focus"] == "constraint"


def test_requests_join_and_stop(seen: Any) -> None:
    found, _ = seen
    assert found["joined"] == "Writing 2 of 2 outputs." and found["stopped"] == ["stopped", "stopped"]
    assert found["focusAfterStop"] == "write"


def test_text_is_no_markup(seen: Any) -> None:
    assert seen[0]["markup"] == ["<img src=x onerror=alert(1)>", 0]


def test_keys(seen: Any) -> None:
    found, _ = seen
    assert found["keyFocus"] == "key" and found["keyed"].startswith("1 of 1 finished") and "tiny" in found["model"]


def test_no_external_requests(seen: Any) -> None:
    found, urls = seen
    assert found["requests"] and all(request.startswith((*urls, "data:")) for request in found["requests"])
