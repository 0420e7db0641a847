"""The shortest way in: a prompt and a schema, and back comes a value."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Unpack, overload

from structgen.core.constraints.base import T
from structgen.core.constraints.json import json_schema
from structgen.core.constraints.sources import Source
from structgen.errors import ModelError
from structgen.generation.decoding.prompts import Prompt, as_messages
from structgen.generation.generator import Generator
from structgen.generation.options import GenerationOptions

if TYPE_CHECKING:
    from structgen.core.constraints.sources import TypeForm


@overload
def generate_json(prompt: Prompt, schema: Source[T], model: Any = None, **options: Unpack[GenerationOptions]) -> T: ...


@overload
def generate_json(
    prompt: Prompt, schema: TypeForm[T], model: Any = None, **options: Unpack[GenerationOptions]
) -> T: ...


@overload
def generate_json(prompt: Prompt, schema: Any, model: Any = None, **options: Unpack[GenerationOptions]) -> Any: ...


def generate_json(prompt: Prompt, schema: Any, model: Any = None, **options: Unpack[GenerationOptions]) -> Any:
    """A value that satisfies ``schema``, written by a language model.

        generate_json("Ada, 36, from London", {"type": "object", "properties": {"age": {"type": "integer"}}})

    Args:
        prompt: a string or chat messages.
        schema: what ``json_schema`` takes: a schema (dict, JSON text, path) or a type (then the value is an instance).
        model: a ``Generator``, a Hugging Face id or a folder; None: the default model. Models given by name are kept
            for the next call (the last one only).
        **options: temperature, max_new_tokens, ...: see ``structgen.generation.generator.GenerationOptions``.

    Raises:
        StructgenError: its subclasses for constraints, models and generation; see ``structgen.errors``.
    """
    as_messages(prompt)  # first: a bad prompt or schema should not wait for a model to load
    constraint = json_schema(schema)
    return _generator(model).generate(prompt, constraint, **options).value


def _generator(model: Any) -> Generator:
    if isinstance(model, Generator):
        return model
    if model is not None and not isinstance(model, (str, os.PathLike)):
        raise ModelError(
            f"model is {model!r:.100} ({type(model).__name__}); expected a Generator, a Hugging Face id or a folder. "
            "A loaded model comes with its tokenizer: generate_json(..., model=Generator(model, tokenizer))."
        )
    return _loaded(None if model is None else os.fspath(model))


@lru_cache(maxsize=1)
def _loaded(name_or_path: str | None) -> Generator:
    return Generator(name_or_path)
