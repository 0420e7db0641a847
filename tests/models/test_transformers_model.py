"""The transformers model against the plain forward of the same weights, on a tiny random Llama."""

from __future__ import annotations

from typing import Any

import pytest

from structgen.errors import ModelError
from structgen.models.transformers_model import TransformersModel

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

# Float32 sums in another order: differences of a few units in the last place.
TOLERANCE = 1e-5


@pytest.fixture(scope="module")
def model() -> TransformersModel:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        eos_token_id=[1, 2],
    )
    return TransformersModel(transformers.LlamaForCausalLM(config))


def reference(model: TransformersModel, ids: list[int]) -> Any:
    """Logits [n, V] of one forward without a cache."""
    with torch.inference_mode():
        return model.model(torch.tensor([ids])).logits[0]


def test_sizes(model: TransformersModel) -> None:
    assert (model.vocab_size, model.context_length, model.eos_token_ids) == (50, 64, (1, 2))


def test_ragged_prompts_forward_crop_and_select(model: TransformersModel) -> None:
    prompts = [[5, 6, 7, 8], [9], [10, 11]]
    logits, cache = model.prefill(prompts)
    assert logits.shape == (3, 50) and cache.length == 4
    for row, prompt in enumerate(prompts):
        assert torch.allclose(logits[row], reference(model, prompt)[-1], atol=TOLERANCE)
    new = [[3, 4, 5], [6, 7, 8], [9, 3, 4]]
    logits = model.forward(new, cache)
    for row, prompt in enumerate(prompts):
        assert torch.allclose(logits[row], reference(model, prompt + new[row])[-3:], atol=TOLERANCE)
    cache.crop(5)
    cache.select([2, 1])
    logits = model.forward([[20, 21], [22, 23]], cache)
    assert torch.allclose(logits[0], reference(model, [10, 11, 9, 20, 21])[-2:], atol=TOLERANCE)
    assert torch.allclose(logits[1], reference(model, [9, 6, 22, 23])[-2:], atol=TOLERANCE)


def test_a_single_row_needs_no_mask(model: TransformersModel) -> None:
    logits, cache = model.prefill([[5, 6, 7]])
    assert torch.allclose(logits[0], reference(model, [5, 6, 7])[-1], atol=TOLERANCE)
    assert torch.allclose(model.forward([[8, 9]], cache)[0], reference(model, [5, 6, 7, 8, 9])[-2:], atol=TOLERANCE)


@pytest.mark.parametrize("prompts", [[], [[1], []]])
def test_empty_prompts_raise(model: TransformersModel, prompts: list[list[int]]) -> None:
    with pytest.raises(ModelError, match="at least one prompt token"):
        model.prefill(prompts)
