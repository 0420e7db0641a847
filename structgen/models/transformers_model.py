"""A Hugging Face causal language model behind the ``LanguageModel`` protocol. Imports torch when constructed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from structgen.errors import ModelError


@dataclass
class TransformersCache:
    """A ``DynamicCache`` whose rows are padded on the left to one length.

    ``padding`` is an int64 tensor [rows]: pad tokens at the start of each row.
    """

    cache: Any
    padding: Any

    @property
    def length(self) -> int:
        """Tokens in each row, left padding included."""
        return int(self.cache.get_seq_length())

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` tokens of every row."""
        surplus = self.length - length
        if surplus > 0:
            self.cache.crop(-surplus)  # transformers 5: a negative count of tokens to remove

    def select(self, rows: Sequence[int]) -> None:
        """Keep these rows only, in this order."""
        import torch

        indices = torch.tensor(list(rows), device=self.padding.device)
        self.cache.batch_select_indices(indices)
        self.padding = self.padding[indices]


class TransformersModel:
    """Wraps a ``PreTrainedModel``. ``model`` is put in evaluation mode and used under ``torch.inference_mode``.

    In float32 the logits of one row differ by about 1e-5 between batch sizes and between one forward of n tokens and
    n forwards (summation order), so only ties that close can come out differently.
    """

    def __init__(self, model: Any) -> None:
        try:
            import torch  # noqa: F401
        except ImportError as error:
            raise ModelError("torch is not installed: pip install 'structgen[transformers]'") from error
        self.model = model.eval()
        head = model.get_output_embeddings()
        self.vocab_size = int(head.weight.shape[0] if head is not None else model.config.get_text_config().vocab_size)
        self.context_length: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """All end-of-sequence ids of the model's generation settings; empty where they name none."""
        generation_config = getattr(self.model, "generation_config", None)
        eos = getattr(generation_config, "eos_token_id", None)
        if eos is None:
            return ()
        return (eos,) if isinstance(eos, int) else tuple(eos)

    def prefill(self, prompts: Sequence[Sequence[int]]) -> tuple[Any, TransformersCache]:
        """Read the prompts, padded on the left: logits [rows, V] (last position) and the cache."""
        import torch
        from transformers import DynamicCache

        if not prompts or not all(prompts):
            raise ModelError("The model needs at least one prompt token in every row; give a prompt that is not empty.")
        width = max(map(len, prompts))
        padding = torch.tensor([width - len(prompt) for prompt in prompts], device=self.model.device)
        cache = TransformersCache(DynamicCache(config=self.model.config), padding)
        rows = [[0] * (width - len(prompt)) + list(prompt) for prompt in prompts]
        return self._run(rows, cache, logits_to_keep=1)[:, -1], cache

    def forward(self, token_ids: Sequence[Sequence[int]], cache: TransformersCache) -> Any:
        """Append n tokens to every row: logits [rows, n, V]."""
        return self._run(token_ids, cache, logits_to_keep=0)  # 0 keeps all

    def _run(self, token_ids: Sequence[Sequence[int]], cache: TransformersCache, logits_to_keep: int) -> Any:
        import torch

        device = self.model.device
        ids = torch.tensor([list(row) for row in token_ids], dtype=torch.int64, device=device)
        past = cache.length
        columns = torch.arange(past + ids.shape[1], device=device)
        padding = cache.padding[:, None]
        padded = bool((cache.padding > 0).any())
        with torch.inference_mode():
            output = self.model(
                input_ids=ids,
                attention_mask=(columns >= padding).long() if padded else None,
                position_ids=(columns[past:] - padding).clamp(min=0),
                past_key_values=cache.cache,
                use_cache=True,
                logits_to_keep=logits_to_keep,
            )
        return output.logits
