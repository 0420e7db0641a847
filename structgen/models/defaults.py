"""What is done with a model where a caller does not say: how it is told of a schema, and how a server draws tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from structgen.json_schema.forms import SchemaForm

SMALL = 1_000_000_000  # parameters
SMALL_FORM: SchemaForm = "skeleton"
SMALL_TEMPERATURE = 0.2  # what SmolLM2's authors use; at 1 a model of that size writes what is no language
SMALL_MAX_TOKENS = 256  # a model of that size that has not ended by then mostly goes in circles
SAMPLING = ("temperature", "top_p", "top_k", "min_p")


@dataclass(frozen=True)
class ModelDefaults:
    """What is done with a model where a caller does not say.

    Attributes:
        schema_form: how it is told of a schema: "skeleton" if it is known to be small, that is to have fewer than a
            billion parameters, else the schema itself.
        temperature, top_p, top_k, min_p: how a server draws its tokens: as the model's own generation settings say;
            where they name no temperature, 0.2 for small models, else 1, as OpenAI's API has it.
        max_tokens: the budget of a turn of an agent in this process that names none: 256 for small models.
    """

    schema_form: SchemaForm = "schema"
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = None
    min_p: float = 0.0
    max_tokens: int = 2048


UNKNOWN_MODEL = ModelDefaults()


def defaults_of(model: Any) -> ModelDefaults:
    """The defaults of a ``LanguageModel``, by what it tells of itself: ``parameter_count``, and
    ``sampling_settings``, those of ``SAMPLING`` that it was published with."""
    count = getattr(model, "parameter_count", None)
    is_small = isinstance(count, int) and 0 < count < SMALL
    given: dict[str, Any] = {"temperature": SMALL_TEMPERATURE, "max_tokens": SMALL_MAX_TOKENS} if is_small else {}
    given |= _checked(getattr(model, "sampling_settings", None) or {})
    return ModelDefaults(SMALL_FORM if is_small else "schema", **given)


def _checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those settings that a request could name; what is out of range is what nobody asked for, and is left out."""
    allowed = {
        "temperature": lambda value: 0 <= value <= 2,
        "top_p": lambda value: 0 < value <= 1,
        "top_k": lambda value: 1 <= value < 1 << 31 and value == int(value),
        "min_p": lambda value: 0 <= value < 1,
    }
    found = {
        name: settings[name]
        for name in SAMPLING
        if isinstance(settings.get(name), (int, float)) and allowed[name](settings[name])
    }
    return {name: int(value) if name == "top_k" else float(value) for name, value in found.items()}
