"""Names of models and devices that cannot be: told at once, without a network."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from structgen.errors import ModelError
from structgen.generation.loading import load_model, load_tokenizer
from structgen.generation.models import transformers_store


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("/no/such", "There is no folder '/no/such'"),
        ("./no", "There is no folder './no'"),
        ("a/b/c", "organisation/model"),
        ("an id", "organisation/model"),
        ("", "Hugging Face id"),
    ],
)
def test_what_is_no_name(name: str, what: str) -> None:
    for load in (load_model, load_tokenizer):
        with pytest.raises(ModelError, match=what):
            load(name, backend="transformers")


def test_folders_and_files_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"has no config\.json"):
        load_model(tmp_path, backend="transformers")
    file = tmp_path / "weights.bin"
    file.write_bytes(b"")
    with pytest.raises(ModelError, match="is a file; give a GGUF file"):
        load_model(file, backend="transformers")


def test_without_a_network_it_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: Any, **__: Any) -> Any:
        raise OSError("no name service")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    monkeypatch.setattr(transformers_store, "getproxies", dict)
    start = time.monotonic()
    with pytest.raises(ModelError, match="neither a folder nor in the cache of huggingface_hub"):
        load_model("no-one/no-model-of-this-name")
    assert time.monotonic() - start < 20


def test_a_name_service_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: time.sleep(5))
    monkeypatch.setattr(transformers_store, "getproxies", dict)
    monkeypatch.setattr(transformers_store, "LOOKUP_SECONDS", 0.05)
    assert not transformers_store.reaches_hub()
    monkeypatch.setattr(transformers_store, "getproxies", lambda: {"https": "http://proxy"})
    assert transformers_store.reaches_hub()


@pytest.mark.parametrize(("device", "what"), [("cud", "no device"), (3.5, "no device"), ("cuda", "device='cuda'")])
def test_devices(device: Any, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ModelError, match=what):
        transformers_store.load_transformers("a/b", device=device)
