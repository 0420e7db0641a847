"""A Hugging Face causal language model after the ``LanguageModel`` protocol. Imports torch when constructed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from structgen.errors import ModelError
from structgen.generation.models.capabilities import HiddenStates, ModelCapabilities
from structgen.generation.models.defaults import SAMPLING, sampling_settings
from structgen.generation.models.threads import threads_in_use
from structgen.generation.models.transformers_cache import TransformersCache
from structgen.generation.models.trees import forward_tree

MASKED_ATTENTION = ("sdpa", "eager")  # take a mask of any shape


class TransformersModel(HiddenStates):
    """Wraps a ``PreTrainedModel``. ``model`` is put in evaluation mode and used under ``torch.inference_mode``.

    In float32 the logits of one sequence differ by about 1e-5 between batch sizes and between one forward of n tokens
    and n forwards (summation order), so only ties that close can come out differently. Hidden states are as the head
    sees them, after the last norm.
    """

    def __init__(self, model: Any) -> None:
        try:
            import torch  # noqa: F401
        except ImportError as error:
            raise ModelError("torch is not installed: pip install 'structgen-lm[transformers]'") from error
        _check_threads()
        self.model = model.eval()
        self._packed: list[Any] = []
        head = model.get_output_embeddings()
        self.vocab_size = int(head.weight.shape[0] if head is not None else model.config.get_text_config().vocab_size)
        self.context_length: int | None = getattr(model.config.get_text_config(), "max_position_embeddings", None)

    @property
    def capabilities(self) -> ModelCapabilities:
        """What it can do; calls return before they are done where the model is on an accelerator."""
        return ModelCapabilities(
            forward_last=self.forward_last,
            forward_tree=self.forward_tree,
            forward_visible=self.forward_visible if self.full_attention else None,
            hidden_states=self.hidden_states,
            asynchronous=str(self.model.device.type) in ("cuda", "xpu", "mps"),
            prepare_for_trees=self.prepare_for_trees,
            reads_by=self._copies,
            fingerprint=self.fingerprint,
            parameter_count=int(self.model.num_parameters()) if hasattr(self.model, "num_parameters") else None,
            sampling_settings=self._sampling_settings(),
            eos_token_ids=self.eos_token_ids,
        )

    @property
    def eos_token_ids(self) -> tuple[int, ...]:
        """All end-of-sequence ids of the model's generation settings; empty where they name none."""
        generation_config = getattr(self.model, "generation_config", None)
        eos = getattr(generation_config, "eos_token_id", None)
        if eos is None:
            return ()
        return (eos,) if isinstance(eos, int) else tuple(eos)

    def _sampling_settings(self) -> dict[str, Any]:
        """How its authors have tokens drawn, as far as its generation settings say so."""
        settings = getattr(self.model, "generation_config", None)
        return sampling_settings({name: getattr(settings, name, None) for name in ("do_sample", *SAMPLING)})

    def fingerprint(self) -> str:
        """A digest of the configuration and a glance at every parameter: the same in every process. O(parameters)."""
        digest = hashlib.blake2b(self.model.config.to_json_string().encode(), digest_size=16)
        for name, parameter in self.model.named_parameters():
            glance = parameter.detach().reshape(-1)[:16].float().cpu().numpy()
            digest.update(f"{name} {tuple(parameter.shape)} {parameter.dtype}".encode() + glance.tobytes())
        return digest.hexdigest()

    def prefill(self, prompts: Sequence[Sequence[int]]) -> tuple[Any, TransformersCache]:
        """Read the prompts, padded on the left: logits [sequences, V] (last position) and the cache."""
        import torch
        from transformers import DynamicCache

        if not prompts or not all(prompts):
            raise ModelError(
                "The model needs at least one prompt token in every sequence; give a prompt that is not empty."
            )
        width = max(map(len, prompts))
        padding = torch.tensor([width - len(prompt) for prompt in prompts], device=self.model.device)
        valid = torch.arange(width, device=self.model.device) >= padding[:, None]
        cache = TransformersCache(DynamicCache(config=self.model.config), len(prompts))
        sequences = [[0] * (width - len(prompt)) + list(prompt) for prompt in prompts]
        cache.appended = width
        if bool((padding > 0).any()):
            cache.valid = valid
        positions = (torch.arange(width, device=self.model.device) - padding[:, None]).clamp(min=0)
        mask = None if cache.valid is None else valid.long()
        return self._run(sequences, cache, positions, mask, logits_to_keep=1)[:, -1], cache

    def forward(self, token_ids: Sequence[Sequence[int]], cache: TransformersCache) -> Any:
        """Append n tokens to every sequence: logits [sequences, n, V]."""
        return self._append(token_ids, cache)

    def _append(self, token_ids: Sequence[Sequence[int]], cache: TransformersCache, **options: Any) -> Any:
        import torch

        count = len(token_ids[0])
        positions = self._first_positions(cache) + torch.arange(count, device=self.model.device)
        cache.grow(count)
        mask = None if cache.valid is None else cache.valid.long()
        return self._run(token_ids, cache, positions, mask, **options)

    def forward_last(self, token_ids: Sequence[Sequence[int]], cache: TransformersCache) -> Any:
        """Append n tokens to every sequence: logits [sequences, V] after the last. As ``forward``, without the others'
        logits."""
        return self._append(token_ids, cache, logits_to_keep=1)[:, -1]

    @cached_property
    def full_attention(self) -> bool:
        """Whether every layer attends to whatever it is told to: what ``forward_visible`` and trees need."""
        config = self.model.config.get_text_config()
        kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
        sliding = getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True)
        return kinds == {"full_attention"} and not sliding and self._attention in MASKED_ATTENTION

    def forward_visible(
        self, token_ids: Sequence[Sequence[int]], visible: Any, positions: Any, cache: TransformersCache
    ) -> Any:
        """See ``VisibleLanguageModel.forward_visible``. Arrays or tensors; O(sequences · n · columns).

        Raises:
            ModelError: a layer attends to what it likes (a sliding window), or the attention takes no masks.
        """
        import torch

        self._check_full_attention()
        count, device, dtype = len(token_ids[0]), self.model.device, self.model.dtype
        columns = cache.length + count
        # As what is added to the scores: sdpa would convert Booleans in each layer.
        mask = torch.full((cache.sequences, 1, count, columns), torch.finfo(dtype).min, dtype=dtype, device=device)
        mask[:, 0].masked_fill_(torch.as_tensor(visible, device=device), 0.0)
        cache.grow(count)
        return self._run(token_ids, cache, torch.as_tensor(positions, device=device), mask)

    def forward_tree(
        self, token_ids: Sequence[Sequence[int]], parents: Sequence[Sequence[int]], cache: TransformersCache
    ) -> Any:
        """See ``TreeLanguageModel.forward_tree``; chains of a single sequence are read by any model.

        Raises:
            ModelError: as ``forward_visible``.
        """
        is_chain = cache.sequences == 1 and list(parents[0]) == list(range(-1, len(parents[0]) - 1))
        if is_chain and (len(parents[0]) == 1 or not self.full_attention):
            return self.forward(token_ids, cache)
        return forward_tree(self, token_ids, parents, cache)

    @property
    def _attention(self) -> str:
        """Which implementation of attention the model uses."""
        return str(getattr(self.model.config, "_attn_implementation", None) or "eager")

    @contextmanager
    def attending(self, implementation: str) -> Iterator[None]:
        """Within: the model's layers use another implementation of attention, one that is registered."""
        _check_threads()
        config, set_attention = self.model.config, self._attention
        config._attn_implementation = implementation
        try:
            yield
        finally:
            config._attn_implementation = set_attention

    def _check_full_attention(self) -> None:
        if self._attention not in MASKED_ATTENTION:
            raise ModelError(
                f"Draft trees need the attention {' or '.join(map(repr, MASKED_ATTENTION))}, not {self._attention!r}."
            )
        if not self.full_attention:
            raise ModelError("Draft trees need full attention in every layer; draft single chains for this model.")

    def prepare_for_trees(self) -> None:
        """Make forwards of a few tokens cheap where they are not: float32 linear layers on the CPU are replaced by ones
        that come to keep a rearranged copy of their weights (`packed_linear`)."""
        from structgen.generation.models.packed_linear import PackedLinear, pack_linear_layers

        pack_linear_layers(self.model)
        self._packed = [layer for layer in self.model.modules() if isinstance(layer, PackedLinear)]

    def _copies(self) -> int:
        """How forwards of a few tokens are read: what they cost is another thing where this has changed."""
        return sum(layer.has_copy for layer in self._packed)

    def _first_positions(self, cache: TransformersCache) -> Any:
        """The position of each sequence's next token, [sequences, 1]."""
        import torch

        counts = cache.counts()
        return (
            torch.full((cache.sequences, 1), counts, device=self.model.device)
            if isinstance(counts, int)
            else counts[:, None]
        )

    def _run(
        self, token_ids: Sequence[Sequence[int]], cache: TransformersCache, positions: Any, mask: Any, **options: Any
    ) -> Any:
        import torch

        _check_threads()
        with torch.inference_mode():
            output = self.model(
                input_ids=torch.tensor(
                    [list(sequence) for sequence in token_ids], dtype=torch.int64, device=self.model.device
                ),
                attention_mask=mask,
                position_ids=positions,
                past_key_values=cache.cache,
                use_cache=True,
                output_hidden_states=self._states is not None,
                **options,
            )
        if self._states is not None:
            self._states.append(output.hidden_states[-1])
        return output.logits


def _check_threads() -> None:
    """See ``threads_in_use``."""
    import torch

    if torch.get_num_threads() > 1:
        threads_in_use("torch")
