"""Loading models by name: a GGUF file, a Hugging Face id or folder, or the built-in model, and what runs each."""

from __future__ import annotations

import importlib.util
import math
import os
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from typing import Any, Literal, get_args

from structgen.errors import ModelError, OptionsError
from structgen.generation.models.built_in import DEFAULT_MODEL, default_model_file
from structgen.generation.models.language_model import LanguageModel
from structgen.generation.models.llamacpp import files
from structgen.generation.models.llamacpp.binding import INSTALL
from structgen.generation.models.llamacpp.chat_template import template_text
from structgen.options import check_count
from structgen.progress import waiting

Backend = Literal["llamacpp", "transformers"]
BACKENDS: tuple[Backend, ...] = get_args(Backend)
Name = str | os.PathLike[str] | None
OTHER_FILES = frozenset({".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".npz", ".onnx"})
"""Ends of files that are named in place of a model, and hold its weights at most."""


def load_model(
    name_or_path: Name = None,
    *,
    backend: str | None = None,
    device: Any = None,
    dtype: Any = None,
    deterministic: bool = False,
    n_ctx: int | None = None,
    n_gpu_layers: int | None = None,
    chat_template: str | os.PathLike[str] | None = None,
    lora_path: str | os.PathLike[str] | None = None,
    lora_scale: float = 1.0,
) -> tuple[LanguageModel, Any]:
    """Load a causal language model and its tokenizer.

    Args:
        name_or_path: a GGUF file, a Hugging Face id or a folder; None is the built-in model.
        backend: what runs it; None: see ``choose_backend``.
        device: where to put it ("cuda", "cpu", a torch.device); None: the CPU, or where llama.cpp was built for.
        dtype: of transformers: "float32" (when None), "bfloat16", "auto" or a torch dtype.
        deterministic: of llama.cpp: whether it reads one token a call (``LlamaCppModel``); transformers models are read
            so by their reader.
        n_ctx, n_gpu_layers, lora_path, lora_scale: of llama.cpp, see ``Generator``.
        chat_template: Jinja text, or a file with it, in place of the model's own.

    Returns:
        the model, and a tokenizer that ``Vocabulary.from_transformers`` reads.

    Raises:
        ModelError: what is missing or wrong, and what to do.
        OptionsError: an option has a value that it cannot have, or that the backend does not take.
        TokenizerError: the chat template cannot be read.
    """
    _refuse_lone_file(name_or_path)
    chosen = choose_backend(name_or_path, backend, device, dtype)
    asked: dict[str, Any] = {"n_ctx": n_ctx, "n_gpu_layers": n_gpu_layers, "lora_path": lora_path}
    asked |= {"lora_scale": lora_scale} if lora_scale != 1.0 else {}
    _check_llama_options(chosen, device, {name: value for name, value in asked.items() if value is not None})
    template = None if chat_template is None else template_text(chat_template)
    with waiting(f"loading {_shown(name_or_path)}"):
        if chosen == "transformers":
            from structgen.generation.models.transformers_store import load_transformers

            loaded: tuple[LanguageModel, Any] = load_transformers(name_or_path, device=device, dtype=dtype)
        else:
            from structgen.generation.models.llamacpp.model import load_gguf

            loaded = load_gguf(
                _gguf_file(name_or_path),
                device=None if device is None else str(device),
                n_gpu_layers=n_gpu_layers,
                lora_path=lora_path,
                lora_scale=lora_scale,
                context_length=n_ctx or None,
                deterministic=deterministic,
            )
    if template is not None:
        loaded[1].chat_template = template
    return loaded


def _check_llama_options(chosen: Backend, device: Any, asked: Mapping[str, Any]) -> None:
    """Refuse what is out of range, contradicts itself, or is of llama.cpp where transformers runs the model."""
    scale = asked.get("lora_scale", 1.0)
    if not isinstance(scale, Real) or isinstance(scale, bool) or not math.isfinite(scale):
        raise OptionsError(f"lora_scale must be a number, not {scale!r:.100}", option="lora_scale", value=scale)
    for name, least in (("n_ctx", 0), ("n_gpu_layers", -1)):
        check_count(name, asked.get(name), least, optional=True)
    if asked and chosen == "transformers":
        instead = " (of lora_path: load the model with peft, and give it and its tokenizer)" * ("lora_path" in asked)
        raise OptionsError(
            f"{' and '.join(asked)}: only llama.cpp takes this, and transformers runs the model; leave it out{instead}"
            ", or give a GGUF file without dtype and device.",
            option=next(iter(asked)),
        )
    if asked.get("n_gpu_layers") and str(device or "") == "cpu":
        raise OptionsError(
            f"device='cpu' and n_gpu_layers={asked['n_gpu_layers']} contradict each other; leave one out.",
            option="n_gpu_layers",
            value=asked["n_gpu_layers"],
        )


def _refuse_lone_file(name_or_path: Name) -> None:
    """Refuse what is named like a file and is no model's, rather than look for a model of that name in the network.

    Raises:
        ModelError: there is no such file.
    """
    path = None if name_or_path is None else Path(name_or_path)
    if path is not None and path.suffix in OTHER_FILES and not path.exists():
        raise ModelError(f"There is no file of a model {str(path)!r}. Give a GGUF file, a folder or a Hugging Face id.")


def load_tokenizer(name_or_path: Name = None, *, backend: str | None = None) -> Any:
    """The tokenizer of ``load_model`` without the weights. Arguments and errors as there."""
    chosen = choose_backend(name_or_path, backend)
    with waiting(f"loading the tokenizer of {_shown(name_or_path)}"):
        if chosen == "transformers":
            from structgen.generation.models.transformers_store import load_transformers_tokenizer

            return load_transformers_tokenizer(name_or_path)
        from structgen.generation.models.llamacpp.tokenizer import GgufTokenizer

        return GgufTokenizer(files.open_file(_gguf_file(name_or_path), vocabulary_only=True))


def choose_backend(name_or_path: Name, backend: str | None = None, device: Any = None, dtype: Any = None) -> Backend:
    """What runs a model: the backend that is asked for; else llama.cpp for GGUF files and the built-in model, where it
    is installed and neither a dtype nor an accelerator of torch is asked for; else transformers.

    Raises:
        ModelError: there is no such backend, or none is installed.
    """
    if backend is not None:
        if backend not in BACKENDS:
            raise ModelError(f"Unknown backend {backend!r}; use {' or '.join(map(repr, BACKENDS))}.")
        if backend == "llamacpp" and (dtype is not None or str(device or "cpu") != "cpu"):
            raise ModelError("llama.cpp takes GGUF files as they are: leave out dtype, and device unless it is 'cpu'.")
        return "llamacpp" if backend == "llamacpp" else "transformers"
    if name_or_path is not None and not is_gguf(name_or_path):
        return "transformers"
    if dtype is not None or str(device or "cpu") != "cpu":
        _check_can_be_moved(name_or_path, device, dtype)
        return "transformers"
    if files.is_installed():
        return "llamacpp"
    if importlib.util.find_spec("transformers") is None:
        raise ModelError(
            f"Running {name_or_path or DEFAULT_MODEL} needs llama.cpp ({INSTALL}) "
            "or transformers (pip install 'structgen-lm[transformers]')."
        )
    return "transformers"


def _check_can_be_moved(name_or_path: Name, device: Any, dtype: Any) -> None:
    """Raise where a GGUF file would go to transformers for the sake of options that llama.cpp does not have, and that
    is not installed."""
    missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
    if missing:
        asked = " and ".join(f"{k}={str(v)!r}" for k, v in (("device", device), ("dtype", dtype)) if v is not None)
        raise ModelError(
            f"{_shown(name_or_path)} with {asked} is run by transformers, with its weights unpacked, and "
            f"{' and '.join(missing)} is not installed: pip install 'structgen-lm[transformers]'. Or leave {asked} "
            "out: llama.cpp runs it on the accelerators that its package was built for."
        )


def is_gguf(name_or_path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a GGUF file: by its ending, or by what the file begins with."""
    path = Path(name_or_path)
    if path.suffix == ".gguf":
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(files.MAGIC)) == files.MAGIC
    except OSError:
        return False


def _shown(name: Name) -> str:
    return DEFAULT_MODEL if name is None else str(name)


def _gguf_file(name_or_path: Name) -> Path:
    return default_model_file() if name_or_path is None else Path(name_or_path)
