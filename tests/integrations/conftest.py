"""The plugins as vLLM and SGLang find them: by the entry points that pyproject.toml names."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def entry_points_on_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The entry points of pyproject.toml as an installed distribution has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    folder = tmp_path_factory.mktemp("site")
    info = folder / "structgen_as_installed-0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: structgen-as-installed\nVersion: 0\n")
    groups = project["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{name} = {where}\n" for name, where in each.items()) for group, each in groups]
    info.joinpath("entry_points.txt").write_text("\n".join(lines))
    sys.path.insert(0, str(folder))
    yield
    sys.path.remove(str(folder))


@pytest.fixture
def registered(entry_points_on_path: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """vLLM has loaded its plugins, with structgen switched on."""
    plugins = pytest.importorskip("vllm.plugins", reason="vLLM is not here; `make test-engines` fetches it")
    monkeypatch.setenv("STRUCTGEN_VLLM", "1")
    monkeypatch.setattr(plugins, "plugins_loaded", False)
    monkeypatch.setenv("VLLM_PLUGINS", "structgen")
    plugins.load_general_plugins()
    yield
    from structgen.integrations.vllm import dialects, plugin

    for hook in (*plugin.BACKEND, dialects.HOOK, *plugin.EXTRAS):
        hook.undo()


@pytest.fixture
def sglang_with_plugins(entry_points_on_path: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """SGLang has loaded its plugins."""
    plugins = pytest.importorskip("sglang.srt.plugins", reason="SGLang is not here; `make test-engines` fetches it")
    monkeypatch.setattr(plugins, "_plugins_loaded", False)
    monkeypatch.setenv("SGLANG_PLUGINS", "structgen")
    plugins.load_plugins()
