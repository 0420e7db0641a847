"""Whole generations through the device path, on a CPU: the tokens of the processor's sampler."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from structgen.generation.decoding import choosing
from structgen.generation.decoding.output import Output
from structgen.generation.generator import Generator
from structgen.generation.sampling import SamplingParams
from structgen.generation.speculative import verification
from structgen.generation.speculative.length import Fixed
from structgen.generation.speculative.recycling import RecyclingDrafter
from structgen.generation.speculative.speculator import Speculator
from tests.fakes import CharTokenizer, vocabulary, words

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
VOCABULARY = vocabulary(b'{"', b'":', b"ab", b"bc", eos=1)
PEOPLE = words('{"name": "Ada", "age": 36}', '{"name": "Bob", "age": 7}', '{"name": "Al"}')
SAMPLING: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"temperature": 1.3, "seed": 4},
    "filtered": {"temperature": 1.3, "seed": 4, "top_k": 9, "top_p": 0.9, "min_p": 0.01},
    "penalised": {"temperature": 1.0, "seed": 4, "repetition_penalty": 1.4, "frequency_penalty": 0.7},
}


@cache
def model() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY.size, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, eos_token_id=1, initializer_range=0.3,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config)


def generator(**options: Any) -> Generator:
    return Generator(model(), CharTokenizer(eos=1), vocabulary=VOCABULARY, **options)


PROMPTS, CONSTRAINTS = ["ababab", "p", "q"], [None, PEOPLE, PEOPLE]


@cache
def on_the_host(name: str) -> tuple[list[Any], list[Any]]:
    """The results of the processor's sampler, as a batch and one by one: the same for all drafts."""
    host, options = generator(), {**SAMPLING[name], "max_new_tokens": 40}
    pairs = zip(PROMPTS, CONSTRAINTS, strict=True)
    batch = host.batch(PROMPTS, CONSTRAINTS, **options)
    return list(batch), [host.generate(prompt, constraint, **options) for prompt, constraint in pairs]


class Watched:
    """The sampler of devices, on the CPU, with its table of masks; counts its draws."""

    def __init__(self) -> None:
        from structgen.generation.sampling.torch_sampler import TorchSampler

        self.sampler = TorchSampler("cpu")
        self.sampler._table_bytes = 1 << 20
        self.asked = 0

    def __call__(self, logits: Any) -> Any:
        self.asked += 1
        return self.sampler


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Watched:
    watched = Watched()
    monkeypatch.setattr(choosing, "sampler_for", watched)
    monkeypatch.setattr(verification, "sampler_for", watched)
    return watched


@pytest.mark.first_case
@pytest.mark.parametrize("draft", [None, "always", "auto"])
@pytest.mark.parametrize("name", SAMPLING)
def test_a_device_writes_the_same(
    name: str, draft: str | None, device: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {**SAMPLING[name], "max_new_tokens": 40}
    one = generator(draft=Speculator([RecyclingDrafter(VOCABULARY.size)], Fixed(4)) if draft == "always" else draft)
    batch = one.batch(PROMPTS, CONSTRAINTS, **options)
    pairs = list(zip(PROMPTS, CONSTRAINTS, strict=True))
    single = [one.generate(prompt, constraint, **options) for prompt, constraint in pairs]
    assert device.asked > 20
    monkeypatch.undo()
    together, expected = on_the_host(name)
    assert [r.token_ids for r in batch] == [r.token_ids for r in together]
    assert [r.token_ids for r in single] == [r.token_ids for r in expected]
    assert [r.logprob for r in single] == pytest.approx([r.logprob for r in expected], abs=1e-4)
    if draft == "always" and name == "greedy":
        assert any(result.stats.accepted for result in (*batch, *single))


def test_a_step_sends_no_more_than_its_new_masks(device: Watched) -> None:
    """Masks that were sent before are sent as row numbers; beside them go a few parameters a row."""
    one = generator()
    one.generate("p", PEOPLE, temperature=1.0, seed=1)
    words_ = -(-VOCABULARY.size // 32)
    table = device.sampler.table(words_)
    masks, parameters, asked = table.transferred, device.sampler.transferred, device.asked
    one.generate("p", PEOPLE, temperature=1.0, seed=1)
    assert table.transferred == masks
    assert device.sampler.transferred - parameters <= 128 * (device.asked - asked)
    assert np.isfinite(table.hits) and table.hits > 0


def test_rows_with_penalties_are_not_drawn_ahead() -> None:
    for given, alone in (({}, True), ({"presence_penalty": 1.0}, False), ({"logit_bias": {5: 1.0}}, False)):
        output = Output(VOCABULARY, None, SamplingParams(**given), max_new_tokens=5)
        row = Speculator([], Fixed(4)).start([5], output)
        assert row.is_drawn_alone is alone
