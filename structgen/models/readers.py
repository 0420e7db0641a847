"""How a model's rows are read: packed where it can be, else padded."""

from __future__ import annotations

from typing import Any

from structgen.models.language_model import reads_asynchronously
from structgen.models.packed_model import PackedModel, why_not_packed
from structgen.models.padded_rows import PaddedRows
from structgen.models.ragged_reader import RaggedReader
from structgen.models.threads import share_turn
from structgen.models.transformers_model import TransformersModel

PREFIX_BYTES = 256 << 20


def ragged_reader(model: Any, prefix_bytes: int = PREFIX_BYTES) -> RaggedReader:
    """A reader of a ``LanguageModel``: its own (``ragged_reader``), packed rows for a transformers model on the
    processor that passes the check of ``why_not_packed``, else padded rows.

    On accelerators rows are padded: there, a call of the attention for each row costs more than the padding.

    Args:
        prefix_bytes: what prefixes for later rows may take, where rows are packed.
    """
    reader = _reader(model, prefix_bytes)
    share_turn(reader, model)
    return reader


def _reader(model: Any, prefix_bytes: int) -> RaggedReader:
    if hasattr(model, "ragged_reader"):
        own: RaggedReader = model.ragged_reader()
        return own
    is_packed = isinstance(model, TransformersModel) and not reads_asynchronously(model) and not why_not_packed(model)
    return PackedModel(model, prefix_bytes) if is_packed else PaddedRows(model)
