"""The transformers model against the plain forward of the same weights, on a tiny random Llama."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from structgen.errors import ModelError
from structgen.generation.models.defaults import ModelDefaults, defaults_of
from structgen.generation.models.transformers_model import TransformersModel
from structgen.generation.models.trees import tree_attention

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

# Float32 sums in another order: differences of a few units in the last place.
TOLERANCE = 1e-5


@pytest.fixture(scope="module", params=["sdpa", "eager", "gpt2"])
def model(request: pytest.FixtureRequest) -> TransformersModel:
    torch.manual_seed(0)
    if request.param == "gpt2":  # learned positions, layers named otherwise
        small = transformers.GPT2Config(
            vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=[1, 2]
        )
        return TransformersModel(transformers.GPT2LMHeadModel(small))
    config = transformers.LlamaConfig(
        attn_implementation=request.param,
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


def test_what_it_tells_of_itself(model: TransformersModel) -> None:
    own, count = model.model.generation_config, sum(weights.numel() for weights in set(model.model.parameters()))
    assert model.capabilities.parameter_count == count
    assert defaults_of(model) == ModelDefaults("skeleton", 0.2, max_tokens=256)
    before = {name: getattr(own, name) for name in ("do_sample", "temperature", "top_p", "top_k")}
    try:
        own.do_sample, own.temperature, own.top_p, own.top_k = True, 0.6, 0.95, 20
        assert defaults_of(model) == ModelDefaults("skeleton", 0.6, 0.95, 20, max_tokens=256)
        own.do_sample = False  # what its authors have drawn greedily names no temperature
        assert defaults_of(model) == ModelDefaults("skeleton", 0.2, max_tokens=256)
    finally:
        for name, value in before.items():
            setattr(own, name, value)


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


def path(parents: list[int], node: int) -> list[int]:
    """Indices from the root to ``node``."""
    return [] if node < 0 else [*path(parents, parents[node]), node]


@pytest.mark.first_case
@pytest.mark.parametrize("rows", [1, 3])
def test_trees_are_their_paths_over_many_steps(model: TransformersModel, rows: int) -> None:
    """Random trees, random paths kept: every logit is that of the sequence, whatever holes the cache has."""
    rng = random.Random(rows)
    texts = [[rng.randrange(3, 50) for _ in range(rng.randrange(1, 5))] for _ in range(rows)]
    _, cache = model.prefill(texts)
    for _ in range(12):
        sizes = [rng.randrange(1, 7) for _ in range(rows)]
        tokens = [[rng.randrange(3, 50) for _ in range(size)] for size in sizes]
        parents = [[rng.randrange(-1, node) if node else -1 for node in range(size)] for size in sizes]
        logits = model.forward_tree(tokens, parents, cache)
        kept = []
        for row in range(rows):
            for node in range(sizes[row]):
                ids = texts[row] + [tokens[row][index] for index in path(parents[row], node)]
                assert torch.allclose(logits[row, node], reference(model, ids)[-1], atol=TOLERANCE)
            kept.append(path(parents[row], rng.randrange(-1, sizes[row])))
            texts[row] = texts[row] + [tokens[row][index] for index in kept[row]]
        cache.keep(kept)
        if max(map(len, texts)) > 50:
            break
        logits = model.forward([[7]] * rows, cache)
        for row in range(rows):
            texts[row] = [*texts[row], 7]
            assert torch.allclose(logits[row, 0], reference(model, texts[row])[-1], atol=TOLERANCE)
    assert cache.length <= 1.34 * max(map(len, texts)) + 1  # unused columns are closed up
    if rows > 1:
        cache.select([2])
        logits = model.forward([[8, 9]], cache)
        assert torch.allclose(logits[0], reference(model, [*texts[2], 8, 9])[-2:], atol=TOLERANCE)


def test_tokens_see_what_they_are_told(model: TransformersModel) -> None:
    """Four tokens, two of another text in between: each reads the columns of its own text only."""
    _, cache = model.prefill([[5, 6, 7]])
    visible = np.zeros((1, 4, 7), dtype=np.bool_)
    texts = [[5, 6, 7, 8], [5, 6, 9], [5, 6, 7, 8, 10], [5, 6, 9, 11]]
    for row, columns in enumerate([[0, 1, 2, 3], [0, 1, 4], [0, 1, 2, 3, 5], [0, 1, 4, 6]]):
        visible[0, row, columns] = True
    logits = model.forward_visible([[8, 9, 10, 11]], visible, np.array([[3, 2, 4, 3]]), cache)
    for row, text in enumerate(texts):
        assert torch.allclose(logits[0, row], reference(model, text)[-1], atol=TOLERANCE)
    assert cache.length == 7


def test_sliding_windows_take_no_trees() -> None:
    config = transformers.MistralConfig(
        vocab_size=50, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, sliding_window=8,
    )  # fmt: skip
    sliding = TransformersModel(transformers.MistralForCausalLM(config))
    assert sliding.capabilities.forward_visible is None
    _, cache = sliding.prefill([[5, 6]])
    assert sliding.forward_tree([[7, 8]], [[-1, 0]], cache).shape == (1, 2, 50)  # a chain needs no mask
    with pytest.raises(ModelError, match="full attention"):
        sliding.forward_tree([[7, 8]], [[-1, -1]], cache)


def test_an_attention_without_masks_is_named(model: TransformersModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TransformersModel, "_attention", "flash_attention_2")
    other = TransformersModel(model.model)
    _, cache = model.prefill([[5, 6]])
    assert other.capabilities.forward_visible is None
    with pytest.raises(ModelError, match="flash_attention_2"):
        other.forward_tree([[7, 8]], [[-1, -1]], cache)


def test_tree_attention() -> None:
    attends, depths = tree_attention([-1, 0, 0, 1], 5)
    assert attends.tolist() == [
        [True, False, False, False, False],
        [True, True, False, False, False],
        [True, False, True, False, False],
        [True, True, False, True, False],
        [False, False, False, False, True],
    ]
    assert depths.tolist() == [0, 1, 1, 2, 0]
