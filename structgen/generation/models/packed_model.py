"""A transformers model that reads sequences packed into one sequence, each with keys and values of its own."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from structgen.errors import ModelError
from structgen.generation.models.model_runner import NO_DRAFTS, Part, Reading
from structgen.generation.models.transformers_model import TransformersModel

TOLERANCE = 1e-3
"""Of the self-check, relative to the greatest logit: float32 sums in another order differ by a hundredth of that."""
FULL, SLIDING = "full_attention", "sliding_attention"
# Frequencies that depend on the longest text of a call would make sequences depend on each other.
SHARED_POSITIONS = ("dynamic", "longrope")

_LOGGER = logging.getLogger(__name__)


class PackedModel:
    """A ``RaggedReader`` whose sequences share nothing but the call: sequences of one token, pieces of prompts and
    draft trees are read side by side, without padding.

    Args:
        target: its layers must hand their arguments on to transformers' attention interface; ``why_not_packed`` tells.
        prefix_bytes: what prefixes for later sequences may take.
    """

    reads_apart = True
    max_bytes = None
    max_sequences = None

    def __init__(self, target: TransformersModel, prefix_bytes: int = 0) -> None:
        from structgen.generation.models.kv_cache import KvStore
        from structgen.generation.models.ragged_attention import register

        register()
        self._target = target
        self.store = KvStore(prefix_bytes)
        self.windows: dict[int, int | None] = {}

    @property
    def shares_prefixes(self) -> bool:
        """See ``RaggedReader.shares_prefixes``."""
        return self.store.prefixes.max_bytes > 0

    @property
    def token_bytes(self) -> int:
        """What a token of a sequence takes, by the model's configuration."""
        config = self._target.model.config.get_text_config()
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        return int(2 * config.num_hidden_layers * heads * width * self._target.model.dtype.itemsize)

    @property
    def bytes(self) -> int:
        """See ``RaggedReader.bytes``."""
        return self.store.bytes

    def open(self, tokens: Sequence[int], salt: str = "") -> tuple[int, int]:
        """See ``RaggedReader.open``."""
        return self.store.open(tokens, salt)

    def remember(self, sequence: int, salt: str = "") -> None:
        """See ``RaggedReader.remember``."""
        self.store.remember(sequence, salt)

    def known(self, tokens: Sequence[int], salt: str = "") -> int:
        """See ``RaggedReader.known``."""
        return self.store.prefixes.known(tokens[:-1], salt)

    def kept_texts(self, salt: str = "") -> list[Sequence[int]]:
        """See ``RaggedReader.kept_texts``."""
        return self.store.prefixes.texts(salt)

    def forget_prefixes(self, until: int = 0) -> None:
        """See ``RaggedReader.forget_prefixes``."""
        prefixes = self.store.prefixes
        prefixes.shrink(max(0, until - (self.store.bytes - prefixes.bytes)))

    def keep(self, sequence: int, kept: Sequence[int]) -> None:
        """See ``RaggedReader.keep``."""
        self.store.keep(sequence, kept)

    def drop(self, sequence: int) -> None:
        """See ``RaggedReader.drop``."""
        self.store.drop(sequence)

    def read(self, parts: Sequence[Part]) -> Reading:
        """See ``RaggedReader.read``; all parts are read whole."""
        import torch

        from structgen.generation.models.ragged_attention import NAME, RaggedPlan, Span

        spans, ids, places, wanted, starts = [], list[int](), list[int](), list[int](), []
        for part in parts:
            first, count = len(ids), len(part.tokens)
            spans.append(Span(part.sequence, first, count, self.store.length(part.sequence), part.parents))
            ids += part.tokens
            places += spans[-1].positions()
            starts.append(len(wanted))
            wanted += [first + count - 1] if part.last_only else range(first, first + count)
        plan = RaggedPlan(self.store, spans)
        model, device = self._target.model, self._target.model.device
        with torch.inference_mode(), self._target.attending(NAME):
            output = model(
                input_ids=torch.tensor([ids], device=device),
                position_ids=torch.tensor([places], device=device),
                use_cache=False,
                logits_to_keep=0 if len(wanted) == len(ids) else torch.tensor(wanted, device=device),
                plan=plan,
            )
        for part in parts:
            self.store.advance(part.sequence, part.tokens)
        self.windows = plan.windows
        return Reading(output.logits[0], starts, [len(part.tokens) for part in parts])


def why_not_packed(target: TransformersModel) -> str | None:
    """Why a model cannot be read packed; None: it can. Reads a dozen tokens four times.

    Its configuration must name no layers but those with keys and values, whole or in a window; and a chunk, a tree and
    a decoded token must come out as by the model's own attention. The log says what was found.
    """
    reason = _by_configuration(target)
    if reason is None:
        try:
            reason = _by_reading(target)
        except Exception as error:  # models are programs of others: one that does not know a keyword, a layer, a shape
            reason = f"{type(error).__name__}: {error}"
    name = type(target.model).__name__
    _LOGGER.info("%s: %s", name, "sequences are packed" if reason is None else f"sequences are padded ({reason:.200})")
    return reason


def _by_configuration(target: TransformersModel) -> str | None:
    config = target.model.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or [FULL])
    if not kinds <= {FULL, SLIDING}:
        return f"layers of kind {', '.join(sorted(kinds - {FULL, SLIDING}))}"
    described = str(getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or "")
    shared = [kind for kind in SHARED_POSITIONS if f"'{kind}'" in described]
    return f"positions of kind {shared[0]}" if shared else None


def _by_reading(target: TransformersModel) -> str | None:
    """Two continuations of one text, as a tree after chunks, against one batch by the model itself."""
    import torch

    count = target.vocab_size
    text, left, right = (
        [(7 * index + salt) % count for index in range(size)] for salt, size in ((1, 6), (3, 3), (5, 3))
    )
    with torch.inference_mode():
        ids = torch.tensor([[*text, *left], [*text, *right]], device=target.model.device)
        whole_logits = target.model(input_ids=ids, use_cache=False).logits
    packed = PackedModel(target)
    sequence, other = packed.open(text)[0], packed.open(text)[0]
    packed.read([Part(sequence, text[:4]), Part(other, [*text, right[0]])])
    tree = packed.read(
        [
            Part(other, right[1:], last_only=False),
            Part(sequence, [*text[4:], *left[:2], *right[:2]], [-1, 0, 1, 2, 1, 4], False),
        ]
    )
    packed.keep(sequence, [0, 1, 2, 3])
    last = packed.read([Part(sequence, left[2:])])
    got = torch.cat([tree.logits, last.logits])
    wanted = torch.cat(
        [whole_logits[1, 7:], whole_logits[0, 4:6], whole_logits[0, 6:8], whole_logits[1, 6:8], whole_logits[0, 8:]]
    )
    wrong = float((got - wanted).abs().max() / wanted.abs().max().clamp(min=1))
    if not wrong <= TOLERANCE * (1 if target.model.dtype == torch.float32 else 30):
        return f"logits differ by {wrong:.2g}"
    return _by_windows(target, packed.windows)


def _by_windows(target: TransformersModel, windows: dict[int, int | None]) -> str | None:
    """Layers that see a window must have said so: the texts of a check are shorter than it."""
    config = target.model.config.get_text_config()
    window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    if window is None:
        return None
    kinds = getattr(config, "layer_types", None) or [SLIDING] * config.num_hidden_layers
    silent = [layer for layer, layer_window in windows.items() if kinds[layer] == SLIDING and layer_window != window]
    return f"layer {silent[0]} does not tell its window" if silent else None


class PackedOneByOne(PackedModel):
    """A ``PackedModel`` that reads a token a call: its logits depend on the tokens before it only, bit for bit."""

    def read(self, parts: Sequence[Part]) -> Reading:
        """See ``RaggedReader.read``.

        Raises:
            ModelError: a tree is to be read.
        """
        import torch

        logits, starts = list[Any](), list[int]()
        for part in parts:
            if part.parents is not None:
                raise ModelError(NO_DRAFTS)
            starts.append(len(logits))
            for length, token in enumerate(part.tokens, 1):
                read = super().read([Part(part.sequence, [token])]).logits
                if not part.last_only or length == len(part.tokens):
                    logits.append(read)
        return Reading(torch.cat(logits), starts, [len(part.tokens) for part in parts])
