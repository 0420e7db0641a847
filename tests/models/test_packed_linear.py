"""Packed linear layers say what plain ones say, for every number of rows; models with them are padded and agree."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
import torch

from structgen.models import packed_linear
from structgen.models.packed_linear import PackedLinear, pack_linear_layers

NEEDS_MKL = pytest.mark.skipif(
    not (torch.backends.mkl.is_available() and hasattr(torch.ops.mkl, "_mkl_linear")), reason="torch without MKL"
)


@NEEDS_MKL
@pytest.mark.parametrize("sizes", [(8, 16, 32), (16,), ()])
@pytest.mark.parametrize("bias", [True, False])
def test_all_numbers_of_rows(sizes: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    plain = torch.nn.Linear(40, 56, bias=bias)
    packed = PackedLinear(plain, sizes)
    assert packed.weight is plain.weight
    with torch.inference_mode():
        for shape in [*((rows,) for rows in range(1, 110)), (3, 7), (2, 4), (1, 16)]:
            rows = torch.randn(*shape, 40)
            torch.testing.assert_close(packed(rows), plain(rows), atol=1e-5, rtol=1e-5)
        apart = torch.randn(40, 8).t()  # not contiguous
        torch.testing.assert_close(packed(apart), plain(apart), atol=1e-5, rtol=1e-5)


@NEEDS_MKL
def test_copies_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for room, sizes in ((10_000, (8, 16, 32)), (200, (16,)), (100, ())):
        monkeypatch.setattr(packed_linear, "COPIES_BYTES", room)
        model = torch.nn.Sequential(torch.nn.Linear(5, 8, bias=False))
        assert pack_linear_layers(model) == sizes
        assert isinstance(model[0], PackedLinear)


def test_other_layers_are_left_alone() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4).to(torch.bfloat16), torch.nn.ReLU(), torch.nn.Embedding(4, 4))
    assert pack_linear_layers(model) == ()
    assert not any(isinstance(layer, PackedLinear) for layer in model.modules())


@NEEDS_MKL
def test_trees_of_a_packed_model() -> None:
    """Logits of trees and chains of all sizes, padded or not, and what the cache keeps of them."""
    transformers = pytest.importorskip("transformers")
    from structgen.models.transformers_model import TransformersModel

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=50, hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2
    )
    whole = transformers.LlamaForCausalLM(config)
    plain, packed = TransformersModel(whole), TransformersModel(transformers.LlamaForCausalLM(config))
    packed.model.load_state_dict(whole.state_dict())
    packed.prepare_for_trees()
    caches = [model.prefill([[5, 6, 7]])[1] for model in (plain, packed)]
    for count in (1, 2, 3, 4, 7, 8, 9, 20, 33, 48):
        for parents in (list(range(-1, count - 1)), [-1] + [index // 2 for index in range(count - 1)]):
            tokens = [[(7 * index + count) % 50 for index in range(count)]]
            first, second = (
                model.forward_tree(tokens, [parents], cache)
                for model, cache in zip((plain, packed), caches, strict=True)
            )
            assert second.shape == (1, count, 50)
            torch.testing.assert_close(first, second, atol=1e-5, rtol=1e-4)
            for cache in caches:
                cache.keep([[0]])
            assert caches[0].length == caches[1].length
