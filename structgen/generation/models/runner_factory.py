"""How a model's sequences are read: packed where it can be, else padded."""

from __future__ import annotations

from typing import Any

from structgen.errors import ModelError
from structgen.generation.models.capabilities import capabilities_of
from structgen.generation.models.model_runner import RaggedReader
from structgen.generation.models.packed_model import PackedModel, PackedOneByOne, why_not_packed
from structgen.generation.models.padded_rows import PaddedReader
from structgen.generation.models.threads import share_turn
from structgen.generation.models.transformers_model import TransformersModel

PREFIX_BYTES = 256 << 20


def ragged_reader(model: Any, prefix_bytes: int = PREFIX_BYTES, *, deterministic: bool = False) -> RaggedReader:
    """A reader of a ``LanguageModel``: its own (``ragged_reader``), packed sequences for a transformers model on the
    processor that passes the check of ``why_not_packed``, else padded sequences.

    On accelerators sequences are padded: there, a call of the attention for each sequence costs more than the padding.

    Args:
        prefix_bytes: what prefixes for later sequences may take, where sequences are packed.
        deterministic: whether logits after a text must be the same, bit for bit, whatever is read beside it.

    Raises:
        ModelError: they cannot be.
    """
    reader = _reader(model, prefix_bytes, deterministic)
    share_turn(reader, model)
    return reader


def _reader(model: Any, prefix_bytes: int, deterministic: bool) -> RaggedReader:
    can = capabilities_of(model)
    if can.ragged_reader is not None and not (deterministic and can.deterministic is None):
        if deterministic and not can.deterministic:
            raise ModelError(
                "This model was loaded to read many sequences in one call. Load it so that it reads one token a call: "
                "load_gguf(path, deterministic=True), or Generator(path, deterministic=True)."
            )
        return can.ragged_reader()
    is_packed = isinstance(model, TransformersModel) and not can.asynchronous and not why_not_packed(model)
    if is_packed:
        return (PackedOneByOne if deterministic else PackedModel)(model, prefix_bytes)
    if deterministic:
        raise ModelError(
            "deterministic=True needs sequences that are read apart: a GGUF file by llama.cpp, or a transformers model "
            "on the processor whose layers can be packed. This model's sequences share a call; leave deterministic out."
        )
    return PaddedReader(model)
