"""The page in headless Chromium, by mouse and by keyboard; `make test-browser` installs the browser and runs this."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("prometheus_client")

from tests.server.tiny import EOS, VOCABULARY, generator
from tests.server.tiny_server import serving


@pytest.fixture(scope="module")
def seen(browse: Any, pictures: Path) -> Any:
    bias = np.zeros(VOCABULARY.size)
    bias[EOS] = -100.0  # free text ends when it is stopped, and not by chance before
    with serving(generator(0.002, bias=bias)) as server, serving(api_keys=("sesame",)) as keyed:
        found = browse("page.mjs", server.url, keyed.url, str(pictures))
    return found, (server.url, keyed.url)


def test_outputs_are_written_and_told_apart(seen: Any) -> None:
    found, _ = seen
    assert found["status"].startswith("3 of 3 finished: ") and not found["errors"]
    for text in found["texts"]:
        assert set(json.loads(text)) == {"name", "age", "profession", "city"}
    # Whether drafts pay is measured, so on a busy machine some tokens may be drafted.
    assert {"chosen", "forced"} <= set(found["kinds"]) <= {"chosen", "forced", "drafted"}
    assert found["rows"] == len(found["kinds"])
    assert "12 keywords enforced" in found["summary"]
    assert found["top"] < 450  # without scrolling
    assert all(any(said.endswith(f", finished: {text}") for said in found["spoken"]) for text in found["texts"])


def test_keyboard_and_names(seen: Any) -> None:
    found, _ = seen
    assert found["firstFocus"] == "To the outputs" and found["secondFocus"] == "API documentation"
    assert found["thirdFocus"] == "prompt" and found["unnamed"] == []
    assert {"Check", "Tokens", "curl", "Copy output 3"} <= set(found["stops"])
    assert set(found["outlines"]) == {"solid"}, "where one is, is seen"


def test_outputs_and_code_are_copied(seen: Any) -> None:
    found, _ = seen
    copied, shown = found["copied"], found["shown"]
    assert [copied[f"Copy output {number}"] for number in (1, 2, 3)] == found["texts"]
    assert copied["Copy the curl command"] == shown["curl"] and copied["Copy the Python program"] == shown["python"]
    assert found["copiedBySelection"] == found["texts"][1]
    assert "/v1/chat/completions" in shown["curl"] and "openai.OpenAI(" in shown["python"]


def test_a_seed_gives_the_same_outputs_twice(seen: Any) -> None:
    assert seen[0]["again"] == seen[0]["texts"]


def test_the_temperature_is_the_servers(seen: Any) -> None:
    found, _ = seen
    assert found["placeholder"] == "1" and found["named"]
    assert "temperature" not in found["shown"]["curl"] + found["shown"]["python"]


def test_axe_finds_no_barriers(seen: Any) -> None:
    found, _ = seen
    assert found["barriers"] == [] and found["judged"] > 140  # rules that held: six looks, and with an error


def test_three_widths_light_and_dark(seen: Any) -> None:
    found, _ = seen
    looks = {(look["name"], look["value"]): look for look in found["looks"]}
    assert len(looks) == 6 and not found["overflow"] and not any(look["overflows"] for look in looks.values())
    assert {look["ground"] for look in found["looks"]} == {"rgb(251, 250, 247)", "rgb(22, 24, 28)"}
    widths = {name: statistics.mean(look["panels"]) for (name, _), look in looks.items()}
    assert widths["phone"] > 330 and widths["laptop"] > 600 and widths["wide"] > 440  # pixels, of a panel


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
