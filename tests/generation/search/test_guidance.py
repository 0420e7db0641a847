"""Guidance against transformers' processor, and its degenerate settings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import structgen
from structgen.errors import OptionsError
from structgen.generation.generator import Generator
from structgen.generation.models.prefix_reader import make_reader
from structgen.generation.search.beam import Beam
from structgen.generation.search.guidance import Guidance, GuidedReader, context_aware
from structgen.generation.search.space import distribution_of
from tests.generation.search.small_worlds import PROMPT, world
from tests.server.tiny import generator

WORDS = structgen.regex("(red|green|blue|grey) (cat|dog|cow)")


@pytest.fixture(scope="module")
def tiny() -> Generator:
    return generator(template=None, order=100)


def guided(tiny: Generator, n: int = 12, **options: Any) -> list[tuple[str, float]]:
    run = tiny.search("A pet: ", WORDS, method="exact", n=n, guidance=Guidance(without="Pets?", **options))
    return [(one.text, one.log_prob_global) for one in run.results]


def test_a_scale_of_one_is_the_prompt_and_zero_the_other(tiny: Generator) -> None:
    for scale, prompt in ((1.0, "A pet: "), (0.0, "Pets?")):
        run = tiny.search(prompt, WORDS, method="exact", n=12)
        found = guided(tiny, scale=scale)
        assert [text for text, _ in found] == run.texts
        assert [one for _, one in found] == pytest.approx([one.log_prob_global for one in run.results])
    assert guided(tiny, scale=4.0) != guided(tiny, scale=1.0)


@pytest.mark.full
@pytest.mark.parametrize("scale", [1.5, 3.0, -0.5])
def test_it_is_the_processor_of_transformers(scale: float) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    process = pytest.importorskip("transformers.generation.logits_process")
    from structgen.generation.models.transformers_model import TransformersModel

    torch.manual_seed(2)
    config = transformers.LlamaConfig(
        vocab_size=6, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.8,
    )  # fmt: skip
    llama = transformers.LlamaForCausalLM(config).eval()
    model, other = TransformersModel(llama), [4, 3, 5]
    prefixes: list[tuple[int, ...]] = [(), (3,), (3, 1), (5,), (5, 2, 2)]
    reader = GuidedReader(make_reader(model, PROMPT, 8), make_reader(model, other, 8), scale)
    found = reader.read(prefixes)[:, 0]
    for prefix, line in zip(prefixes, found, strict=True):
        ids = torch.tensor([[*PROMPT, *prefix]])
        with torch.no_grad():
            logits = llama(ids).logits[:, -1]
            theirs = process.UnbatchedClassifierFreeGuidanceLogitsProcessor(
                scale, llama, torch.tensor([[*other, *prefix]]), use_cache=False
            )
            expected = torch.log_softmax(theirs(ids[:, :0], logits), -1)[0].numpy()
        assert np.allclose(line - np.logaddexp.reduce(line), expected, atol=1e-4)


def test_what_is_implausible_comes_last() -> None:
    """Judged by probabilities after the prompt; the order within either part is the guided one."""
    made = world(3)
    hypothesis = made.space(Beam()).root.hypothesis
    both = np.log([[0.02, 0.5, 0.1, 0.3, 0.05, 0.03], [0.1, 0.01, 0.4, 0.3, 0.1, 0.09]])
    plain = distribution_of(hypothesis, both[0])
    weighed = Guidance(without="", plausibility=0.5).weigh(hypothesis, both)
    given = distribution_of(hypothesis, both[1]).log_probs
    low = given < np.log(0.5) + given.max()
    assert low.any() and np.array_equal(weighed.log_probs < -1e3, low)
    assert np.array_equal(weighed.log_probs[~low], plain.log_probs[~low])


def test_context_aware_decoding_is_guidance_and_every_method_takes_it(tiny: Generator) -> None:
    assert context_aware("x", 0.5) == Guidance(without="x", scale=1.5)
    for method in ("beam", "best_first", "gumbel", "arithmetic", "diverse", "cautious"):
        run = tiny.search("A pet: ", WORDS, method=method, n=2, seed=0, guidance=context_aware("Pets: "))
        assert all(text.split()[1] in ("cat", "dog", "cow") for text in run.texts)
    for options, name in (({"scale": float("nan")}, "scale"), ({"plausibility": 2}, "plausibility")):
        with pytest.raises(OptionsError, match=name):
            Guidance(without="x", **options)
    with pytest.raises(OptionsError, match="guidance"):
        tiny.search("A pet: ", WORDS, guidance=1.5)
