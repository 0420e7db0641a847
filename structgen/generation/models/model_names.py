"""What a model is called by, looked at before anything is loaded or asked of a network."""

from __future__ import annotations

import os
import re
import socket
import threading
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from structgen.errors import ModelError

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
    found: list[bool] = []

    def look() -> None:
        try:
            found.append(bool(socket.getaddrinfo(host, None)))
        except OSError:
            found.append(False)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(LOOKUP_SECONDS)
    return bool(found and found[0])
