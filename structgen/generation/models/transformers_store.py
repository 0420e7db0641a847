"""Loading models with transformers: any Hugging Face id or local folder, a GGUF file, and the built-in model.

transformers takes tens of seconds to read a GGUF file, so the built-in one is converted once to safetensors in the
cache folder.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import tempfile
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from structgen.core.cache_folder import cache_folder, is_own, make_folder
from structgen.errors import ModelError
from structgen.generation.models.built_in import DEFAULT_MODEL, default_model_file
from structgen.generation.models.transformers_model import TransformersModel
from structgen.progress import Wait, waiting

_INSTALL_TRANSFORMERS = "pip install 'structgen-lm[transformers]'"


def default_model_folder() -> Path:
    """The default model as a folder that transformers loads; converts it on first use.

    Safe with several processes: each converts into its own temporary folder, and the first rename wins.

    Raises:
        ModelError: a package is missing, the folder cannot be written, or others can write to it.
    """
    target = cache_folder() / "models" / DEFAULT_MODEL
    if not is_own(target / "config.json", cache_folder()):
        raise ModelError(
            f"Others can write to {target}, so nothing is read there. Remove it, or set STRUCTGEN_CACHE_DIR to a "
            "folder that only this user can write to."
        )
    if (target / "config.json").is_file():
        return target
    source = default_model_file()
    try:
        make_folder(target.parent)
        work = Path(tempfile.mkdtemp(prefix=f".{DEFAULT_MODEL}-", dir=target.parent))
    except OSError as error:
        raise ModelError(
            f"Cannot write the model cache {target.parent}: {error}. Set STRUCTGEN_CACHE_DIR to a writable folder."
        ) from error
    try:
        with waiting(f"preparing {DEFAULT_MODEL} for transformers, once, in {target}", 3, once=True) as wait:
            _convert(source, work, wait)
        try:
            work.rename(target)
        except OSError:
            if not (target / "config.json").is_file():  # not another process that was first
                raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return target


def load_transformers(
    name_or_path: str | os.PathLike[str] | None = None, *, device: Any = None, dtype: Any = None
) -> tuple[TransformersModel, Any]:
    """Load a causal language model and its tokenizer.

    Args:
        name_or_path: a Hugging Face id, a folder or a GGUF file; None is the default model.
        device: where to put it ("cuda", "cpu", a torch.device); None: the CPU.
        dtype: "float32" (when None), "bfloat16", "auto" or a torch dtype.

    Returns:
        the model and the transformers tokenizer.

    Raises:
        ModelError: what is missing or wrong, and what to do.
    """
    try:
        import torch
        import transformers
    except ImportError as error:
        raise ModelError(f"Running a model needs torch and transformers: {_INSTALL_TRANSFORMERS}") from error
    if isinstance(dtype, str) and dtype != "auto" and not isinstance(getattr(torch, dtype, None), torch.dtype):
        raise ModelError(f"Unknown dtype {dtype!r}; use float32, bfloat16, float16 or auto.")
    check_device(device)
    source, options = _source(name_or_path)
    tokenizer = _tokenizer(name_or_path, source, options)
    try:
        with _QuietLoading(transformers):
            model = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=dtype or torch.float32, **options)
        return TransformersModel(model if device is None else model.to(device)), tokenizer
    except (OSError, ValueError, ImportError, RuntimeError, KeyError) as error:
        what = "a folder with config.json, tokenizer files and weights"
        raise _cannot("model", name_or_path or source, options, error, what) from error


def load_transformers_tokenizer(name_or_path: str | os.PathLike[str] | None = None) -> Any:
    """The transformers tokenizer of what ``load_transformers`` loads. Errors as there."""
    try:
        import transformers  # noqa: F401
    except ImportError as error:
        raise ModelError(f"Reading a tokenizer needs transformers: {_INSTALL_TRANSFORMERS}") from error
    return _tokenizer(name_or_path, *_source(name_or_path))


def _tokenizer(
    name_or_path: str | os.PathLike[str] | None, source: str | os.PathLike[str], options: dict[str, Any]
) -> Any:
    import transformers

    try:
        with _QuietLoading(transformers):
            return transformers.AutoTokenizer.from_pretrained(source, **options)
    except (OSError, ValueError, ImportError, RuntimeError, KeyError) as error:
        raise _cannot(
            "tokenizer", name_or_path or source, options, error, "a folder with the tokenizer's files"
        ) from error


def _cannot(
    what: str, name: str | os.PathLike[str], options: dict[str, Any], error: Exception, instead: str
) -> ModelError:
    if options.get("local_files_only"):
        return ModelError(
            f"The {what} of {str(name)!r} is neither a folder nor in the cache of huggingface_hub, and the network of "
            f"Hugging Face cannot be reached. Check the spelling; give {instead}, or connect."
        )
    return ModelError(f"Cannot load the {what} of {str(name)!r}: {error}\nGive a Hugging Face id, or {instead}.")


def _source(name_or_path: str | os.PathLike[str] | None) -> tuple[str | os.PathLike[str], dict[str, Any]]:
    """What ``from_pretrained`` takes: a name, and options.

    Raises:
        ModelError: the name can be that of no model.
    """
    if name_or_path is None:
        return default_model_folder(), {}
    if Path(name_or_path).suffix == ".gguf":
        return Path(name_or_path).parent, {"gguf_file": Path(name_or_path).name}
    check_name(name_or_path)
    path = Path(name_or_path).expanduser()
    return (path, {}) if path.is_dir() else (name_or_path, {} if reaches_hub() else {"local_files_only": True})


def _convert(source: Path, target: Path, wait: Wait) -> None:
    """Dequantise a GGUF file and save model and tokenizer as transformers does."""
    try:
        import accelerate  # noqa: F401
        import gguf  # noqa: F401
        import torch
        import transformers
    except ImportError as error:
        raise ModelError(f"Preparing {DEFAULT_MODEL} needs {error.name}: {_INSTALL_TRANSFORMERS}") from error
    options: dict[str, Any] = {"gguf_file": source.name}
    with _QuietLoading(transformers):
        transformers.AutoTokenizer.from_pretrained(source.parent, **options).save_pretrained(target)
        wait.advance()
        model = transformers.AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **options)
        wait.advance()
        quantizer = getattr(model, "hf_quantizer", None)
        if quantizer is not None:  # the weights are plain by now; marked as quantised they could not be saved
            quantizer.remove_quantization_config(model)
        model.save_pretrained(target)


class _QuietLoading:
    """Turns transformers' progress bars and advice off while a model loads; errors still raise."""

    def __init__(self, transformers: Any) -> None:
        self._logging = transformers.utils.logging

    def __enter__(self) -> None:
        self._verbosity = self._logging.get_verbosity()
        self._bars = self._logging.is_progress_bar_enabled()
        self._logging.set_verbosity_error()
        self._logging.disable_progress_bar()

    def __exit__(self, *_: object) -> None:
        self._logging.set_verbosity(self._verbosity)
        if self._bars:
            self._logging.enable_progress_bar()


# huggingface_hub's rule for ids: letters, digits, - _ . in one or two parts.
_ID = re.compile(r"[\w.-]{1,96}(?:/[\w.-]{1,96})?", re.ASCII)
LOOKUP_SECONDS = 3.0


def check_name(name_or_path: str | os.PathLike[str]) -> None:
    """Refuse what can be neither a folder with a model nor a Hugging Face id.

    Raises:
        ModelError: what it is, and what to give.
    """
    path, shown = Path(name_or_path).expanduser(), repr(str(name_or_path))
    if not str(name_or_path):
        raise ModelError("The model's name is empty; give a GGUF file, a folder or a Hugging Face id.")
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise ModelError(
                f"The folder {shown} has no config.json; give one with a model's config, tokenizer and weights."
            )
        return
    if path.is_file():
        raise ModelError(
            f"{shown} is a file; give a GGUF file (its name ends in .gguf), a folder or a Hugging Face id."
        )
    if str(name_or_path).startswith((".", "~")) or not _ID.fullmatch(str(name_or_path)):
        raise ModelError(f"There is no folder {shown}, and a Hugging Face id looks like 'organisation/model'.")


def check_device(device: Any) -> None:
    """Refuse a device that torch does not have.

    Raises:
        ModelError: which there are.
    """
    import torch

    if device is None:
        return
    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError) as error:
        raise ModelError(f"There is no device {device!r}; use 'cpu', 'cuda', 'cuda:0', 'mps', ...") from error
    if kind == "cuda" and not torch.cuda.is_available():
        reason = "no GPU is seen" if torch.version.cuda or torch.version.hip else "this torch is built without CUDA"
        raise ModelError(f"device={str(device)!r}, but {reason} (torch {torch.__version__}); use device='cpu'.")
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ModelError("device='mps', but this machine has none; use device='cpu'.")


def reaches_hub() -> bool:
    """Whether the host of Hugging Face ids has an address; with a proxy it is taken to be reached.

    Without, each file would be asked for again and again for half a minute.
    """
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    if getproxies():
        return True
    host = urlsplit(constants.ENDPOINT).hostname or "huggingface.co"
    reached: list[bool] = []

    def look() -> None:
        try:
            reached.append(bool(socket.getaddrinfo(host, None)))
        except OSError:
            reached.append(False)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(LOOKUP_SECONDS)
    return bool(reached and reached[0])
