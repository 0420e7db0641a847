"""The model classes of agent frameworks in this process; `make test-clients` installs the frameworks.

STRUCTGEN_CLIENTS names the interpreters whose packages they are, as PATH does; without it they run in this one, where
it has them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

PROMPT = "The login page is down for everybody!"
ROOT = Path(__file__).parents[3]
INTERPRETERS = os.environ.get("STRUCTGEN_CLIENTS", sys.executable).split(os.pathsep)


@pytest.mark.parametrize("framework", ["pydantic_ai", "langchain_openai", "smolagents"])
def test_a_framework_over_a_generator_of_its_process(framework: str) -> None:
    pythons = [each for each in INTERPRETERS if _has(each, framework)]
    if not pythons:
        pytest.skip(f"{framework} is not installed (make test-clients)")
    for python in pythons:
        found = _run(python, framework)
        assert "error" not in found, found["error"]
        for part in ("native", "tool", "streamed", "schema", "async", "format"):
            assert part not in found or (
                len(found[part]["title"]) <= 20 and found[part]["area"] in ("login", "billing")
            )
        for claim in found.get("claims", []):
            assert all(len(quote) >= 5 and quote in PROMPT for quote in claim.values())
        assert framework != "pydantic_ai" or len(found["claims"]) == 2
        assert found.get("call", "weather") == "weather" and found.get("text", True)


def _has(python: str, framework: str) -> bool:
    if python == sys.executable:
        return importlib.util.find_spec(framework) is not None
    return subprocess.run([python, "-c", f"import {framework}"], capture_output=True, check=False).returncode == 0


def _run(python: str, framework: str) -> dict[str, Any]:
    own = [sysconfig.get_paths()["purelib"], str(ROOT)]
    script = Path(__file__).with_name("agents.py")
    done = subprocess.run(
        [python, str(script), framework, *own], capture_output=True, text=True, timeout=250, check=False
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
