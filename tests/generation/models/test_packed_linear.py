"""Packed linear layers say what plain ones say, for every number of rows, before they have a copy and with it; copies
are made late, one after the other, once the log has been told, and never of weights that have changed since."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from itertools import pairwise

import pytest

pytest.importorskip("torch")
import torch

from structgen.generation.models import packed_linear
from structgen.generation.models.packed_linear import (
    AFTER,
    SPREAD,
    TRANSPOSED,
    TRIALS,
    TRIED,
    PackedLinear,
    pack_linear_layers,
)

NEEDS_COPIES = pytest.mark.skipif(
    not packed_linear._reads_rearranged(torch.nn.Linear(4, 4)), reason="torch without oneDNN's product"
)


@pytest.mark.first_case
@pytest.mark.parametrize("after", [pytest.param(0, marks=NEEDS_COPIES), math.inf])
@pytest.mark.parametrize("bias", [True, False])
def test_all_numbers_of_rows(after: float, bias: bool) -> None:
    torch.manual_seed(0)
    plain = torch.nn.Linear(40, 56, bias=bias)
    packed = PackedLinear(plain, after)
    assert packed.weight is plain.weight
    with torch.inference_mode():
        packed(torch.randn(2, 40))
        for shape in [*((rows,) for rows in range(1, 110)), (3, 7), (2, 4), (1, 16), (300,)]:
            rows = torch.randn(*shape, 40)
            torch.testing.assert_close(packed(rows), plain(rows), atol=1e-5, rtol=1e-5)
        apart = torch.randn(40, 8).t()  # not contiguous
        torch.testing.assert_close(packed(apart), plain(apart), atol=1e-5, rtol=1e-5)
    assert packed.has_copy == (after == 0)


@NEEDS_COPIES
def test_copies_come_one_by_one(caplog: pytest.LogCaptureFixture) -> None:
    model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(4)))
    assert pack_linear_layers(model) == 4
    assert pack_linear_layers(model) == 0  # nothing is left to be replaced

    def copies() -> list[bool]:
        return [isinstance(layer, PackedLinear) and layer.has_copy for layer in model]

    with torch.inference_mode(), caplog.at_level(logging.INFO, "structgen"):
        for _ in range(100):
            model(torch.randn(1, 8))  # plain decoding: one token at a time
        seen = []
        for _ in range(AFTER + SPREAD):
            seen.append(copies())
            assert bool(caplog.messages) == any(seen[-1])
            model(torch.randn(5, 8))
    assert not any(seen[AFTER]) and sum(seen[AFTER + 1]) == 1 and all(copies())
    assert all(sum(after) - sum(before) <= 1 for before, after in pairwise(seen))
    assert len(caplog.messages) == 1 and "Sequential" in caplog.messages[0] and "MiB" in caplog.messages[0]


@NEEDS_COPIES
def test_copies_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for room, is_copied in ((160, True), (159, False)):
        monkeypatch.setattr(packed_linear, "COPIES_BYTES", room)
        model = torch.nn.Sequential(torch.nn.Linear(5, 8, bias=False))
        pack_linear_layers(model)
        with torch.inference_mode():
            for _ in range(AFTER + SPREAD + 1):
                model(torch.randn(3, 5))
        layer = model[0]
        assert isinstance(layer, PackedLinear) and layer.has_copy == is_copied


@NEEDS_COPIES
def test_weights_that_change_are_copied_again() -> None:
    plain = torch.nn.Linear(6, 6)
    packed, rows = PackedLinear(plain, 0), torch.randn(3, 6)
    for _ in range(2):
        with torch.inference_mode():
            torch.testing.assert_close(packed(rows), plain(rows))
        with torch.no_grad():
            plain.weight.mul_(-3.0)


def test_other_layers_are_left_alone() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4).to(torch.bfloat16), torch.nn.ReLU(), torch.nn.Embedding(4, 4))
    assert pack_linear_layers(model) == 0
    assert not any(isinstance(layer, PackedLinear) for layer in model.modules())


@pytest.mark.full
@pytest.mark.parametrize("after", [pytest.param(0, marks=NEEDS_COPIES), AFTER])
def test_trees_of_a_packed_model(after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Logits of trees and chains of all sizes, and what the cache keeps of them."""
    transformers = pytest.importorskip("transformers")
    from structgen.generation.models.transformers_model import TransformersModel

    monkeypatch.setattr(packed_linear, "AFTER", after)
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


@NEEDS_COPIES
@pytest.mark.parametrize("slow", ["_by_copy", "_plainly", "_transposed"])
def test_few_rows_are_read_in_the_faster_way(slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A way that is slow is given up after some products of each number of rows; results are the same meanwhile."""
    ways, copying = ("_by_copy", "_plainly", "_transposed"), slow != "_transposed"
    now, used = [0.0], list[tuple[str, int]]()
    monkeypatch.setattr("structgen.generation.models.packed_linear.time.perf_counter", lambda: now[0])

    def counted(way: str) -> Callable[[PackedLinear, torch.Tensor], torch.Tensor]:
        own = getattr(PackedLinear, way)

        def product(layer: PackedLinear, rows: torch.Tensor) -> torch.Tensor:
            now[0] += 1.0 + (way == slow)
            used.append((way, rows.shape[0]))
            found: torch.Tensor = own(layer, rows)
            return found

        return product

    for way in ways:
        monkeypatch.setattr(PackedLinear, way, counted(way))
    plain = torch.nn.Linear(6, 6)
    packed = PackedLinear(plain, 0 if copying else math.inf)
    with torch.inference_mode():
        packed(torch.randn(9, 6))
        for _ in range(TRIALS + 5):
            for count in range(1, 9):
                rows = torch.randn(count, 6)
                torch.testing.assert_close(packed(rows), plain(rows))
    for count in TRIED if copying else TRANSPOSED:
        assert used.count((slow, count)) == TRIALS // 2
    fast = "_by_copy" if copying else "_plainly"
    assert used.count((fast, 8)) == TRIALS + 5
