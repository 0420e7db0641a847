"""What is done with a model where a caller does not say: how it is told of a schema, and how a server draws tokens."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from structgen.core.json_schema.prompt_forms import SchemaForm
from structgen.errors import ModelError
from structgen.generation.models.capabilities import capabilities_of

SMALL = 1_000_000_000  # parameters
SMALL_FORM: SchemaForm = "skeleton"
SMALL_TEMPERATURE = 0.2  # what SmolLM2's authors use; at 1 a model of that size writes what is no language
SMALL_MAX_TOKENS = 256  # a model of that size that has not ended by then mostly goes in circles
# Where its authors draw tokens; where they do not, nothing is said.
DRAWING = ("temperature", "top_p", "top_k", "min_p")
SAMPLING = (*DRAWING, "repetition_penalty", "max_new_tokens")
UNSAID = {"temperature": 1.0, "top_p": 1.0, "top_k": 50, "repetition_penalty": 1.0}  # values of files that say nothing
CONFIG = "generation_config.json"
MOST = 1 << 20  # bytes of such a file


@dataclass(frozen=True)
class ModelDefaults:
    """What is done with a model where a caller does not say.

    Attributes:
        schema_form: how it is told of a schema: "skeleton" if it is known to be small, that is to have fewer than a
            billion parameters, else the schema itself.
        temperature, top_p, top_k, min_p, repetition_penalty: how a server draws its tokens: as the model's own
            generation settings say; where they name no temperature, 0.2 for small models, else 1, as OpenAI's API has
            it.
        max_new_tokens: the most tokens of an output of a server; None: any number.
        max_tokens: the budget of a turn of an agent in this process that names none: 256 for small models.
    """

    schema_form: SchemaForm = "schema"
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    max_new_tokens: int | None = None
    max_tokens: int = 2048

    def with_settings(self, settings: Mapping[str, Any]) -> ModelDefaults:
        """These of the model with other generation settings, of ``SAMPLING``; {}: with none."""
        kept = {"temperature": SMALL_TEMPERATURE} if self.schema_form == SMALL_FORM else {}
        return replace(ModelDefaults(self.schema_form, max_tokens=self.max_tokens), **kept | _checked(settings))


UNKNOWN_MODEL = ModelDefaults()


def defaults_of(model: Any) -> ModelDefaults:
    """The defaults of a ``LanguageModel``, by what it says of itself: ``parameter_count``, and
    ``sampling_settings``, those of ``SAMPLING`` that it was published with."""
    can = capabilities_of(model)
    count = can.parameter_count
    is_small = isinstance(count, int) and 0 < count < SMALL
    given: dict[str, Any] = {"temperature": SMALL_TEMPERATURE, "max_tokens": SMALL_MAX_TOKENS} if is_small else {}
    given |= _checked(can.sampling_settings or {})
    return ModelDefaults(SMALL_FORM if is_small else "schema", **given)


def _checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those settings that a request could name; what is out of range is what nobody asked for, and is left out."""
    allowed = {
        "temperature": lambda value: 0 <= value <= 2,
        "top_p": lambda value: 0 < value <= 1,
        "top_k": lambda value: 1 <= value < 1 << 31 and value == int(value),
        "min_p": lambda value: 0 <= value < 1,
        "repetition_penalty": lambda value: 0 < value <= 10,
        "max_new_tokens": lambda value: 1 <= value < 1 << 31 and value == int(value),
    }
    checked = {
        name: settings[name]
        for name in SAMPLING
        if isinstance(settings.get(name), (int, float)) and allowed[name](settings[name])
    }
    return {
        name: int(value) if name in ("top_k", "max_new_tokens") else float(value) for name, value in checked.items()
    }


def sampling_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``SAMPLING`` that a generation configuration of transformers names.

    As vLLM has it: of one that does not say whether tokens are drawn, what differs from the values that stand there
    where nothing was said. One that says that none are drawn (``do_sample`` false) tells nothing of how.
    """
    draws = config.get("do_sample")
    names = SAMPLING if draws is None or draws else SAMPLING[len(DRAWING) :]
    settings = {name: config[name] for name in names if config.get(name) is not None}
    if not draws:
        return {name: value for name, value in settings.items() if value != UNSAID.get(name)}
    return {"temperature": 1.0} | settings


def read_sampling_settings(path: Path) -> dict[str, Any]:
    """The same of a file ``generation_config.json``, or of one in a folder.

    Raises:
        ModelError: it cannot be read, is no JSON object, or names a value that cannot be.
    """
    path = path / CONFIG if path.is_dir() else path
    try:
        with path.open("rb") as file:
            config = json.loads(file.read(MOST + 1))
    except OSError as error:
        raise ModelError(f"Cannot read the generation settings {path}: {error.strerror or error}.") from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is no JSON: {error}; expected a {CONFIG}, as transformers writes it.") from error
    if not isinstance(config, dict):
        raise ModelError(f"{path} is a JSON {type(config).__name__}; expected an object, as transformers writes it.")
    settings = sampling_settings(config)
    wrong = next((name for name in settings if name not in _checked(settings)), None)
    if wrong is not None:
        raise ModelError(
            f"{path}: {wrong} is {settings[wrong]!r:.100}, which is not allowed; correct it or leave it out."
        )
    return settings
