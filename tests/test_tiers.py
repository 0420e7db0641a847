"""What runs the tests: the commands of workflows and of `.ci/run` exist, and each module's tests have a quick one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def made(text: str) -> set[str]:
    """Targets of the Makefile that a script makes."""
    return set(re.findall(r"\bmake ([a-z-]+)", re.sub(r"#.*", "", text)))


def test_the_head_of_the_makefile_names_its_commands() -> None:
    head = set(re.findall(r"^#   make ([a-z-]+)", MAKEFILE, re.MULTILINE))
    assert head <= TARGETS and {"test", "test-full", "nightly"} <= head


def test_what_continuous_integration_makes_is_there() -> None:
    if not (ROOT / ".ci" / "run").exists():
        pytest.skip("the source archive has none")
    assert made((ROOT / ".ci" / "run").read_text("utf-8")) == {"test", "test-full"} <= TARGETS


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows(path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(path.read_text("utf-8"))
    jobs = found["jobs"]
    assert {"push", "pull_request", "schedule"} <= set(found[True])  # YAML 1.1 reads the key `on` so
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert all(("uses" in step) != ("run" in step) for step in steps)
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"]) for step in steps if "uses" in step)
    runs = [step["run"] for step in steps if "run" in step]
    assert made("\n".join(runs)) <= TARGETS and ".ci/run" in runs and "make nightly" in runs
    versions = {tuple(job["strategy"]["matrix"]["python"]) for job in jobs.values() if "strategy" in job}
    assert versions == {("3.11", "3.12", "3.13", "3.14")}
    assert {name.split("-")[0] for name in jobs["wheel"]["strategy"]["matrix"]["system"]} == {
        "ubuntu", "macos", "windows",
    }  # fmt: skip
