"""Readers against the model asked one prefix at a time; the whole of a small language with a small transformer."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError
from structgen.generation.models import prefix_reader as reader_module
from structgen.generation.models.prefix_reader import BatchReader, TreeReader, make_reader
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import SamplingParams
from structgen.generation.target.samplers import Sampler
from structgen.generation.target.store import PrefixStore
from structgen.generation.target.target import Target
from tests.generation.target import closed_forms as cf

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

PROMPT = [1, 2, 3, 4]
TOKENS = [None, *(bytes([byte]) for byte in b"abc01,"), b"ab", b"bc", b"01", b"a,", b"1,1"]
VOCABULARY = Vocabulary(TOKENS, eos_token_ids=0)


@pytest.fixture(scope="module")
def model() -> Any:
    from structgen.generation.models.transformers_model import TransformersModel

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=len(TOKENS), hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.5,
    )  # fmt: skip
    return TransformersModel(transformers.LlamaForCausalLM(config))


def alone(model: Any, prefix: tuple[int, ...]) -> Any:
    return model.prefill([[*PROMPT, *prefix]])[0][0].numpy()


def test_the_tree_is_what_each_prefix_is_alone(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = make_reader(model, PROMPT, 20)
    assert isinstance(reader, TreeReader)
    batches = [
        [(), (5,), (5, 6), (7, 8, 9)],
        [(5, 6, 7), (5, 6), (5, 8), (), (7, 8, 9, 1, 2, 3)],  # one again, one known only by its beginning
        [(7, 8, 9, 1, 2, 4), (5, 8, 1), (9,) * 12],
    ]
    for batch in batches:
        for prefix, row in zip(batch, reader.read(batch), strict=True):
            np.testing.assert_allclose(row, alone(model, prefix), atol=2e-5)
    assert reader.calls == 4 and reader.tokens == 5 + 6 + 14  # the prompt's call too
    monkeypatch.setattr(reader_module, "MAX_SLOTS", 10)  # everything is forgotten and read again
    for prefix, row in zip(batches[1], reader.read(batches[1]), strict=True):
        np.testing.assert_allclose(row, alone(model, prefix), atol=2e-5)
    monkeypatch.setattr(reader_module, "MAX_BATCH", 2)
    np.testing.assert_allclose(reader.read(batches[2])[2], alone(model, batches[2][2]), atol=2e-5)


def test_rows(model: Any) -> None:
    reader = BatchReader(model, PROMPT)
    batch = [(), (5, 6), (7, 8, 9)]
    for prefix, row in zip(batch, reader.read(batch), strict=True):
        np.testing.assert_allclose(row, alone(model, prefix), atol=2e-5)
    assert (reader.calls, reader.tokens) == (1, 5)
    plain = cf.FunctionModel(8, lambda prefix: [1 / 8] * 8)
    assert isinstance(make_reader(plain, PROMPT, 20), BatchReader)


def test_the_trie_stands_on_the_protocol_alone() -> None:
    """No transformers model: whoever is told what a token sees."""
    tiny = TinyModel(12, order=4)
    reader = make_reader(tiny, PROMPT, 20)
    assert isinstance(reader, TreeReader)
    for batch in ([(), (5,), (5, 6), (7, 8, 9)], [(5, 6, 7), (5, 6), (7, 8, 9, 1, 2)]):
        for prefix, row in zip(batch, reader.read(batch), strict=True):
            np.testing.assert_array_equal(row, tiny.prefill([[*PROMPT, *prefix]])[0][0])
    assert reader.tokens == 5 + 4  # the end of a prefix that is known is read again


def test_room_in_the_context(model: Any) -> None:
    with pytest.raises(GenerationError, match="the model reads 64"):
        make_reader(model, PROMPT, 61)


def enumerate_truth(model: Any, grammar: Any, temperature: float) -> dict[tuple[int, ...], float]:
    """P of every sequence of tokens of the language, by asking the model alone and accepting token by token."""
    done: dict[tuple[int, ...], float] = {}
    open_: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while open_:
        prefix, p = open_.pop()
        logits = alone(model, prefix).astype(float) / temperature
        probs = np.exp(logits - np.logaddexp.reduce(logits))
        for token in range(len(TOKENS)):
            matcher = grammar.matcher()
            if all(matcher.accept_token(t) for t in prefix) and matcher.accept_token(token):
                if token == 0:
                    done[prefix] = p * float(probs[0])
                else:
                    open_.append(((*prefix, token), p * float(probs[token])))
    return done


@pytest.mark.full
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_exact_is_the_enumerated_truth(model: Any, temperature: float) -> None:
    grammar = structgen.compile_lark('start: item ("," item)?\nitem: /[ab]{1,2}c?/ | "0" | "01"', VOCABULARY)
    mass = enumerate_truth(model, grammar, temperature)
    z = sum(mass.values())
    assert len(mass) > 300
    store = PrefixStore(Target(model, PROMPT, grammar, VOCABULARY, SamplingParams(temperature), max_tokens=20))
    run = Sampler(store, "exact", seed=0).draw(1500)
    counts = Counter(".".join(map(str, sample.token_ids)) for sample in run.samples)
    truth = {".".join(map(str, ids)): p / z for ids, p in mass.items()}
    assert cf.g_statistic(dict(counts), truth) <= cf.null_quantile(truth, 1500)
    for sample in run.samples[:50]:
        assert sample.log_prob == pytest.approx(math.log(mass[sample.token_ids]), abs=1e-4)
    assert run.z_bounds[0] - 1e-6 <= z <= run.z_bounds[1] + 1e-6
    weighted = Sampler(store, "weighted", seed=1).draw(200)
    assert math.exp(weighted.log_z) == pytest.approx(z, rel=0.05)
    store.expand_best_first(10**5)
    assert [math.exp(bound) for bound in store.log_z_bounds] == pytest.approx([z, z], rel=1e-4)
    assert store.reader.tokens == store.node_count - 1  # one token a prefix, none for the root
    assert Target(model, PROMPT, structgen.choice(["ab"]), VOCABULARY).lasting
