"""Packed steps that are broken on purpose write other tokens than the plain loop: the comparison notices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from structgen.generation.decoding.output import Output
from structgen.generation.models.packed_model import PackedModel
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.request import Request
from structgen.generation.scheduler.scheduler import Scheduler
from structgen.generation.speculative.length import Fixed
from structgen.generation.speculative.speculator import Speculator
from tests.fakes import vocabulary
from tests.generation.decoding import plain_loop
from tests.generation.speculative.test_exactness import drafters

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
VOCABULARY = vocabulary()


@cache
def model() -> Any:
    from structgen.generation.models.transformers_model import TransformersModel

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY.size, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, initializer_range=0.3,
    )  # fmt: skip
    return TransformersModel(transformers.LlamaForCausalLM(config).double())


def differing() -> int:
    """How many of six rows, drafted with branches, are not what the plain loop writes."""
    scheduler = Scheduler(PackedModel(model()))
    speculator = Speculator([*drafters(VOCABULARY, "ngram"), *drafters(VOCABULARY, "recycling")], Fixed(8))
    pairs = []
    for seed in range(6):
        prompt = [5, 6, 7, 8, 5, 6, 9, 5, 6, 7, 3 + seed]
        single, row = (
            Output(VOCABULARY, None, SamplingParams(0.6 * (seed % 2), seed=seed), max_new_tokens=40) for _ in range(2)
        )
        plain_loop.decode(model(), [prompt], [single])
        pairs.append((single, scheduler.submit(Request(prompt, row, speculator))))
    while not scheduler.is_idle:
        scheduler.step()
    return sum(handle.output.token_ids != single.token_ids for single, handle in pairs)


def test_nothing_broken() -> None:
    assert differing() == 0


def test_positions_by_column_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Branches of a tree one behind the other instead of by depth."""
    monkeypatch.setattr(
        "structgen.generation.models.ragged_attention.Span.positions",
        lambda span: list(range(span.held, span.held + span.count)),
    )
    assert differing() > 0


def test_a_stale_keep_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of the tokens that were read stay instead of those that were accepted."""
    from structgen.generation.models.kv_cache import KvStore

    right = KvStore.keep

    def stale(self: KvStore, row: int, kept: Sequence[int]) -> None:
        right(self, row, list(range(len(kept))))

    monkeypatch.setattr(KvStore, "keep", stale)
    assert differing() > 0


def test_what_siblings_see_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree read as a chain."""
    from structgen.generation.models.ragged_attention import Span

    right = Span._made

    def chain(self: Span, window: int | None, like: Any) -> Any:
        self.parents = None
        return right(self, window, like)

    monkeypatch.setattr(Span, "_made", chain)
    assert differing() > 0
