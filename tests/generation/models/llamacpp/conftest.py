"""Each package that brings llama.cpp, a small random model, and the built-in one."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from structgen.errors import ModelError
from structgen.generation.models.built_in import default_model_file
from structgen.generation.models.llamacpp.files import PACKAGES
from structgen.generation.models.llamacpp.model import LlamaCppModel, load_gguf
from structgen.generation.models.llamacpp.tokenizer import GgufTokenizer
from tests.generation.models.llamacpp.gguf_files import write_llama

Loaded = tuple[LlamaCppModel, GgufTokenizer]


@pytest.fixture(scope="session", params=PACKAGES)
def package(request: pytest.FixtureRequest) -> str:
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


@pytest.fixture(scope="session")
def tiny_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("gguf", reason="gguf writes the files of these tests")
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_llama(path)
    return path


@pytest.fixture(scope="session")
def tiny(package: str, tiny_file: Path) -> Loaded:
    return load_gguf(tiny_file, package=package, threads=1)


@pytest.fixture(scope="session")
def built_in_file() -> Path:
    try:
        return default_model_file()
    except ModelError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def built_in(package: str, built_in_file: Path) -> Loaded:
    return load_gguf(built_in_file, package=package)
