"""Rows packed into one call against each row's whole text read by the model's own attention."""

from __future__ import annotations

import random
from typing import Any

import pytest

from structgen.generation.models.model_runner import Part
from structgen.generation.models.packed_model import PackedModel, why_not_packed
from structgen.generation.models.transformers_model import TransformersModel

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

TOLERANCE = 1e-5
SMALL = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "head_dim": 8,
}  # fmt: skip


def made(name: str, config_name: str = "", **options: Any) -> TransformersModel:
    torch.manual_seed(0)
    config = getattr(transformers, config_name or f"{name}Config")(**{**SMALL, **options})
    return TransformersModel(getattr(transformers, f"{name}ForCausalLM")(config).float())


MODELS = {
    "Llama": lambda: made("Llama"),
    "Llama without groups": lambda: made("Llama", num_key_value_heads=4),
    "Qwen2": lambda: made("Qwen2"),
    "Qwen3": lambda: made("Qwen3"),
    "Mistral": lambda: made("Mistral", sliding_window=8),
    "Gemma": lambda: made("Gemma"),
    "Gemma2": lambda: made("Gemma2", sliding_window=8, attn_implementation="eager"),
    "Gemma3": lambda: made("Gemma3", "Gemma3TextConfig", sliding_window=8),
    "GPT2": lambda: TransformersModel(
        transformers.GPT2LMHeadModel(
            transformers.GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=128)
        )
    ),
    "gpt-oss": lambda: made(
        "GptOss", sliding_window=8, num_local_experts=2, num_experts_per_tok=1, attn_implementation="eager"
    ),
}


def path(parents: list[int], node: int) -> list[int]:
    return [] if node < 0 else [*path(parents, parents[node]), node]


@pytest.mark.full
@pytest.mark.parametrize("name", MODELS)
def test_rows_are_their_texts(name: str) -> None:
    """Random rows that come, go, are read in chunks, as trees and token by token, with prefixes shared."""
    model, rng = MODELS[name](), random.Random(1)
    assert why_not_packed(model) is None

    read: dict[tuple[int, ...], Any] = {}

    def own(text: list[int]) -> Any:
        """Logits after a text; those after its beginnings come of the same call."""
        if tuple(text) not in read:
            with torch.inference_mode():
                logits = model.model(torch.tensor([text]), use_cache=False).logits[0]
            read.update((tuple(text[: end + 1]), logits[end]) for end in range(len(text)))
        return read[tuple(text)]

    packed = PackedModel(model, prefix_bytes=1 << 20)
    shared = [rng.randrange(50) for _ in range(12)]
    texts: dict[int, list[int]] = {}
    for _ in range(25):
        while len(texts) < 3:
            row, held = packed.open(prompt := [*shared[: rng.randrange(13)], rng.randrange(50)])
            texts[row] = prompt[:held]
        parts, parents = [], {}
        for row in rng.sample(sorted(texts), rng.randrange(1, 4)):
            count = rng.choice([1, 1, 3, 7, 40])
            tokens = [rng.randrange(50) for _ in range(count)]
            is_tree = rng.random() < 0.5
            parents[row] = [rng.randrange(-1, node) if node else -1 for node in range(count)] if is_tree else None
            parts.append(Part(row, tokens, parents[row], last_only=not is_tree and rng.random() < 0.5))
        reading = packed.read(parts)
        assert list(reading.counts) == [len(part.tokens) for part in parts]
        for part, start in zip(parts, reading.starts, strict=True):
            ways = part.parents or list(range(-1, len(part.tokens) - 1))
            nodes = [len(part.tokens) - 1] if part.last_only else range(len(part.tokens))
            for place, node in reversed(list(enumerate(nodes))):  # whole texts before their beginnings
                text = texts[part.sequence] + [part.tokens[index] for index in path(list(ways), node)]
                assert torch.allclose(reading.logits[start + place], own(text), atol=TOLERANCE)
            kept = path(list(ways), rng.randrange(-1, len(part.tokens)) if part.parents else len(part.tokens) - 1)
            packed.keep(part.sequence, kept)
            texts[part.sequence] += [part.tokens[index] for index in kept]
            assert packed.store.length(part.sequence) == len(texts[part.sequence])
        gone = rng.choice(sorted(texts))
        if len(texts[gone]) > 60 or rng.random() < 0.3:
            packed.remember(gone)
            packed.drop(gone)
            del texts[gone]
    for row in texts:
        packed.drop(row)
    packed.forget_prefixes()
    assert packed.bytes == 0


def test_what_cannot_be_packed_is_told() -> None:
    assert "positions of kind dynamic" in str(
        why_not_packed(made("Llama", rope_scaling={"rope_type": "dynamic", "factor": 2.0}))
    )
    hybrid = transformers.Qwen3NextConfig(
        **SMALL, num_experts=2, num_experts_per_tok=1, moe_intermediate_size=16, shared_expert_intermediate_size=16,
        linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=8, linear_value_head_dim=8,
    )  # fmt: skip
    assert "linear_attention" in str(why_not_packed(TransformersModel(transformers.Qwen3NextForCausalLM(hybrid))))
    alibi = transformers.BloomConfig(vocab_size=50, hidden_size=32, n_layer=2, n_head=4)
    assert why_not_packed(TransformersModel(transformers.BloomForCausalLM(alibi)))


def test_a_fork_goes_its_own_way() -> None:
    packed = PackedModel(made("Llama"))
    row, _ = packed.open([1, 2, 3])
    packed.read([Part(row, [1, 2, 3])])
    twin = packed.store.fork(row)
    both = packed.read([Part(row, [4, 5]), Part(twin, [6])])
    alone, _ = packed.open([1, 2, 3, 6])
    assert torch.allclose(both.logits[1], packed.read([Part(alone, [1, 2, 3, 6])]).logits[0], atol=TOLERANCE)
    assert (packed.store.length(row), packed.store.length(twin)) == (5, 4)


def test_prefixes_leave_by_use_and_split_where_texts_part() -> None:
    packed = PackedModel(made("Llama"), prefix_bytes=0)
    store = packed.store
    store.prefixes.max_bytes = 12 * packed.token_bytes
    texts = [[1, 2, 3, 4, 5], [1, 2, 3, 9, 9], [7] * 4]
    for text in texts:
        row, _ = packed.open(text)
        packed.read([Part(row, text[store.length(row) :])])
        packed.remember(row)
        packed.drop(row)
    assert store.prefixes.bytes == 11 * packed.token_bytes == packed.bytes
    assert [packed.known([*text, 0]) for text in texts] == [5, 5, 4]
    packed.drop(packed.open([*texts[0], 0])[0])  # used again
    row, _ = packed.open([8] * 3)
    packed.read([Part(row, [8] * 3)])
    packed.remember(row)
    packed.drop(row)
    assert [packed.known([*text, 0]) for text in texts] == [5, 3, 4] and packed.bytes <= 12 * packed.token_bytes
