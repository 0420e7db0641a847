"""Which backend runs a model, and what is said where it cannot: one line each, with what to do."""

from __future__ import annotations

import importlib.util
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from structgen.errors import ModelError
from structgen.generation import loading
from structgen.generation.generator import Generator
from structgen.generation.models.defaults import ModelDefaults, defaults_of
from structgen.generation.models.llamacpp import binding, files
from structgen.generation.models.llamacpp.model import load_gguf
from tests.generation.models.llamacpp.conftest import Loaded
from tests.generation.models.llamacpp.gguf_files import write_llama


def refused(path: object, **options: Any) -> str:
    with pytest.raises(ModelError) as found:
        Generator(path, **options)
    message = str(found.value)
    assert "\n" not in message
    return message


def test_files_that_are_none(tmp_path: Path, tiny_file: Path, package: str) -> None:
    assert "Cannot read the model file" in refused(tmp_path / "no.gguf") and "Check the path" in refused("no.gguf")
    assert "Is a directory" in refused(tmp_path, backend="llamacpp")
    (tmp_path / "text.gguf").write_text("hello")
    assert "is no GGUF file: it begins with b'hell'" in refused(tmp_path / "text.gguf")
    (tmp_path / "empty.gguf").write_bytes(b"")
    assert "is no GGUF file" in refused(tmp_path / "empty.gguf")
    (tmp_path / "old.gguf").write_bytes(b"GGUF\1\0\0\0" + bytes(40))
    assert "a GGUF file of version 1; llama.cpp reads 2 and 3" in refused(tmp_path / "old.gguf")


@pytest.mark.parametrize("share", [0.0005, 0.01, 0.3, 0.95, 0.9999])
def test_files_that_are_cut_off(tmp_path: Path, tiny_file: Path, package: str, share: float) -> None:
    data = tiny_file.read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(data[: max(9, int(share * len(data)))])
    with pytest.raises(ModelError, match=r"llama.cpp cannot load .*cut.gguf: .+ Download the file again") as found:
        load_gguf(path, package=package)
    assert "\n" not in str(found.value) and "no reason" not in str(found.value)


def test_a_file_that_lies_does_not_end_the_process(tmp_path: Path, tiny_file: Path, package: str) -> None:
    """Each in a process of its own: llama.cpp may abort where it should not."""
    data = tiny_file.read_bytes()
    for place in (8, 16, 24, 60, 200):
        (tmp_path / "bad.gguf").write_bytes(data[:place] + b"\xff" * 8 + data[place + 8 :])
        code = (
            "import sys\nfrom structgen.errors import ModelError, TokenizerError\n"
            "from structgen.generation.models.llamacpp.model import load_gguf\n"
            "try: load_gguf(sys.argv[1], package=sys.argv[2])\n"
            "except (ModelError, TokenizerError) as error: print(error)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path / "bad.gguf"), package],
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (place, done.stderr)


def test_no_noise_but_a_log(
    tiny_file: Path, package: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, logger=binding.__name__):
        load_gguf(tiny_file, package=package)
    assert "llama" in caplog.text
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_what_a_file_tells_of_its_model(tmp_path: Path, tiny: Loaded, package: str) -> None:
    can = tiny[0].capabilities
    assert 0 < can.parameter_count < 10**6 and can.sampling_settings == {}
    assert defaults_of(tiny[0]) == ModelDefaults("skeleton", 0.2, max_tokens=256)
    settings = {"general.sampling.temp": 0.5, "general.sampling.top_p": 0.75, "general.sampling.top_k": 20}
    write_llama(tmp_path / "drawn.gguf", settings=settings)
    model, _ = load_gguf(tmp_path / "drawn.gguf", package=package, threads=1)
    assert defaults_of(model) == ModelDefaults("skeleton", 0.5, 0.75, 20, max_tokens=256)


def test_context_and_memory_are_checked(tiny_file: Path, package: str) -> None:
    model, _ = load_gguf(tiny_file, package=package, context_length=100)
    assert model.context_length == 100
    assert load_gguf(tiny_file, package=package, context_length=10**6)[0].context_length == 512  # as trained
    with pytest.raises(ModelError, match="more than cache_bytes=100000; raise it, or lower context_length"):
        load_gguf(tiny_file, package=package, cache_bytes=100_000, context_length=500)


def test_the_backend_is_chosen_by_what_there_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "weights").write_bytes(b"GGUF\3\0\0\0")
    found = {"llama": True, "transformers": True}
    monkeypatch.setattr(files, "is_installed", lambda: found["llama"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if found["transformers"] else None)
    for name in (None, "model.gguf", Path("model.gguf"), tmp_path / "weights"):
        assert loading.choose_backend(name) == loading.choose_backend(name, None, "cpu") == "llamacpp"
        assert loading.choose_backend(name, "transformers") == "transformers"
        assert loading.choose_backend(name, None, "cuda") == loading.choose_backend(name, None, None, "auto")
        assert loading.choose_backend(name, None, None, "float32") == "transformers"
    assert loading.choose_backend("HuggingFaceTB/SmolLM2-360M") == loading.choose_backend(tmp_path) == "transformers"
    found["llama"] = False
    assert loading.choose_backend(None) == loading.choose_backend("model.gguf") == "transformers"
    found["transformers"] = False
    with pytest.raises(
        ModelError, match=r"Running m.gguf needs llama.cpp \(pip install .*\[llamacpp\]'\) or transformers"
    ):
        loading.choose_backend("m.gguf")
    with pytest.raises(ModelError, match="Unknown backend 'vllm'; use 'llamacpp' or 'transformers'"):
        loading.choose_backend(None, "vllm")
    for options in ({"dtype": "float32"}, {"device": "cuda"}):
        with pytest.raises(ModelError, match="leave out dtype, and device unless it is 'cpu'"):
            loading.choose_backend(None, "llamacpp", **options)


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, tiny_file: Path) -> None:
    monkeypatch.setattr(files, "PACKAGES", ("no_such_package",))
    with pytest.raises(ModelError, match=r"needs llama.cpp: pip install 'structgen-lm\[llamacpp\]'"):
        load_gguf(tiny_file)


def test_fingerprints_are_of_the_file(tiny: Loaded, tiny_file: Path, package: str) -> None:
    again, _ = load_gguf(tiny_file, package=package)
    assert again.fingerprint() == tiny[0].fingerprint()
