"""GGUF files: which package loads them, and what is no such file.

Two packages are served: ``llama_cpp`` (llama-cpp-python: source only, compiled when it is installed, the faster one)
and ``cyllama`` (a wheel). The first that is installed is taken, in this order.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path

from structgen.errors import ModelError
from structgen.generation.models.llamacpp.binding import INSTALL, ModelFile, forget_errors

PACKAGES = ("llama_cpp", "cyllama")
MAGIC = b"GGUF"
VERSIONS = (2, 3)


def check_gguf(path: Path) -> None:
    """Refuse what is no GGUF file before llama.cpp sees it.

    Raises:
        ModelError: what it is, and what to do.
    """
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise ModelError(f"Cannot read the model file {path}: {error.strerror or error}. Check the path.") from error
    if head[:4] != MAGIC:
        raise ModelError(
            f"{path} is no GGUF file: it begins with {head[:4]!r}, not {MAGIC!r}. Give a .gguf file of llama.cpp, or a "
            "Hugging Face id or folder."
        )
    version = int.from_bytes(head[4:8], "little")
    if len(head) < 8 or version not in VERSIONS:
        raise ModelError(
            f"{path} is a GGUF file of version {version}; llama.cpp reads {' and '.join(map(str, VERSIONS))}. "
            "Download it again, or convert it anew."
        )


def is_installed() -> bool:
    """Whether a package that brings llama.cpp is."""
    return any(importlib.util.find_spec(package) is not None for package in PACKAGES)


def open_file(
    path: Path,
    *,
    vocabulary_only: bool = False,
    device: str | None = None,
    package: str | None = None,
    gpu_layers: int | None = None,
) -> ModelFile:
    """Load a GGUF file.

    Args:
        vocabulary_only: without weights, where the package can.
        device: "cpu": nothing on accelerators; None: as the package was built.
        package: of ``PACKAGES``; None: the first that is installed.
        gpu_layers: layers on accelerators; -1: as many as there are; None: as the package was built.

    Raises:
        ModelError: no package is installed, the file cannot be loaded, or there is no accelerator for its layers.
    """
    check_gguf(path)
    package = package or next((name for name in PACKAGES if importlib.util.find_spec(name) is not None), None)
    if package is None:
        raise ModelError(f"Running a GGUF file needs llama.cpp: {INSTALL}")
    forget_errors()
    layers = 0 if device == "cpu" else gpu_layers
    if package == "llama_cpp":
        from structgen.generation.models.llamacpp.with_llama_cpp import LlamaCppFile

        return LlamaCppFile(path, vocabulary_only, layers)
    from structgen.generation.models.llamacpp.with_cyllama import CyllamaFile

    return CyllamaFile(path, layers)
