"""The benchmark of devices runs where there is no GPU, so that it runs the day there is one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
import gpu


def test_it_runs_on_a_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = tmp_path / "figures.json"
    gpu.main(["--device", "cpu", "--small", "--dtype", "float32", "--json", str(written)])
    records = json.loads(written.read_text())["records"]
    assert {record["part"] for record in records} >= {"floor", "apply", "draw", "tree"}
    assert all(0 < record["median"] <= record["p95"] * 1.0001 for record in records)
    shown = capsys.readouterr().out
    assert all(f"## {part}" in shown for part in ("floor", "apply", "draw", "tree"))


def test_parts_can_be_chosen() -> None:
    options = gpu.parse(["--small", "--only", "tree", "--device", "cpu", "--dtype", "float32"])
    assert {record["part"] for record in gpu.measure(options)} == {"floor", "tree"}


@pytest.mark.parametrize(("kind", "share"), gpu.KINDS.items())
def test_masks_allow_what_they_should(kind: str, share: float) -> None:
    made = gpu.masks(4, 20_001, kind)
    bits = np.unpackbits(made.view("uint8"), axis=1, bitorder="little")
    assert not bits[:, 20_001:].any() and bits.any(axis=1).all()
    assert abs(bits.mean() - share) < 0.02
