"""Guidance against transformers' processor, and its degenerate settings."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.errors import OptionsError
from structgen.generation.generator import Generator
from structgen.generation.models.guided_sequences import GuidedSequences, log_softmax, pushed
from structgen.generation.models.model_runner import Part
from structgen.generation.models.padded_rows import PaddedReader
from structgen.generation.models.prefix_reader import make_reader
from structgen.generation.models.tiny import TinyModel, TinyReader
from structgen.generation.search.beam import Beam
from structgen.generation.search.guidance import Guidance, GuidedReader, context_aware
from structgen.generation.search.space import distribution_of
from tests.generation.search.small_worlds import PROMPT, world
from tests.server.tiny import generator

WORDS = structgen.regex("(red|green|blue|grey) (cat|dog|cow)")


@dataclass(eq=False)
class Asked:
    prompt: list[int]
    without: list[int]
    salt: str = ""


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


def test_generate_is_guided_as_search_is(tiny: Generator) -> None:
    """Greedy output: a beam of one; drawn, drafted, streamed and in batches it is one text."""
    for scale in (0.0, 1.0, 1.5, 4.0):
        guidance = Guidance(without="Pets?", scale=scale)
        (best,) = tiny.search(
            "A pet: ", WORDS, num_beams=1, early_stopping=True, score="local", guidance=guidance
        ).results
        found = tiny.generate("A pet: ", WORDS, guidance=guidance)
        assert found.text == best.text and found.logprob == pytest.approx(best.logprob)
        plain = tiny.generate("A pet: " if scale else "Pets?", WORDS)
        assert scale not in (0.0, 1.0) or plain.text == found.text
        drawn: dict[str, Any] = {"temperature": 1.0, "seed": 5, "guidance": guidance}
        one = tiny.generate("A pet: ", WORDS, **drawn)
        assert tiny.generate("A pet: ", WORDS, draft="ngram", **drawn).text == one.text
        assert tiny.generate("A pet: ", WORDS, prediction="green cow", **drawn).text == one.text
        assert tiny.batch(["Q", "A pet: ", "A pet: and more"], WORDS, **{**drawn, "seed": 4})[1].text == one.text
        *_, last = tiny.stream("A pet: ", WORDS, **drawn)
        assert last.result is not None and last.result.text == one.text


def test_guidance_of_generate_draws_the_guided_distribution(tiny: Generator) -> None:
    """The log-probability of what is drawn is what the two prompts say, token by token."""
    guidance = context_aware("Pets?", 1.0)
    for seed in range(5):
        result = tiny.generate("A pet: ", WORDS, temperature=1.0, seed=seed, guidance=guidance, log_mass=True)
        run = tiny.search("A pet: ", WORDS, method="exact", n=12, guidance=guidance)
        (same,) = (one for one in run.results if one.token_ids == result.token_ids)
        assert result.logprob == pytest.approx(same.logprob)


@pytest.mark.parametrize("options", [
    {"guidance": 1.5}, {"guidance": Guidance(without="x", plausibility=0.1)},
    {"guidance": Guidance(without="x"), "fields": True}, {"guidance": Guidance(without="x"), "choose": "value"},
])  # fmt: skip
def test_guidance_that_cannot_be(tiny: Generator, options: dict[str, Any]) -> None:
    with pytest.raises(OptionsError, match="guidance") as raised:
        tiny.generate("A pet: ", WORDS, **options)
    assert raised.value.option == "guidance"


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_guided_rows_are_what_both_texts_say(padded: bool, seed: int) -> None:
    """Rows of random ages over a model of order 3, parts of random sizes, chains and trees."""
    rng, model, scale = random.Random(seed), TinyModel(30, order=3), 1.5
    reader = GuidedSequences(PaddedReader(model) if padded else TinyReader(model), model, scale)
    texts: dict[int, tuple[list[int], list[int], list[int]]] = {}  # prompt, other, what the row holds
    owners = list[Any]()

    def expected(row: int, more: list[int]) -> Any:
        prompt, other, held = texts[row]
        text = [*held, *more]
        given, without = (log_softmax(model.prefill([each])[0][0]) for each in (text, [*other, *text[len(prompt) :]]))
        return pushed(given, without, scale)

    for _ in range(40):
        parts = []
        while len(texts) < 3:
            asked = Asked([rng.randrange(4) for _ in range(rng.randrange(1, 6))], [5, *rng.choices(range(4), k=2)])
            owners.append(asked)
            list(reader.expecting([asked]))
            text = [*asked.prompt, *rng.choices(range(30), k=rng.randrange(3))]
            row, held = reader.open(text, asked.salt)
            texts[row] = asked.prompt, asked.without, text[:held]
            parts.append(Part(row, text[held:]))
        new = {part.sequence for part in parts}
        for row in texts.keys() - new:
            tokens = rng.choices(range(30), k=2)
            parts.append(Part(row, tokens, [-1, rng.choice([-1, 0])] if seed else None, last_only=not seed))
        reading = reader.read(parts)
        for part, start in zip(parts, reading.starts, strict=True):
            chain = part.parents is None or part.parents[1] == 0
            branch = list(part.tokens) if chain else list(part.tokens[1:])
            assert np.allclose(reading.logits[start + len(part.tokens) * (not part.last_only) - (not part.last_only)],
                               expected(part.sequence, branch))  # fmt: skip
            if not part.last_only:
                assert np.allclose(reading.logits[start], expected(part.sequence, list(part.tokens[:1])))
            if part.parents is not None:
                reader.keep(part.sequence, [0, 1] if chain else [1])
            texts[part.sequence][2].extend(branch)
        for gone in rng.sample(sorted(texts), rng.randrange(3)):
            reader.remember(gone, "")
            reader.drop(gone)
            del texts[gone]


def test_coroutines_take_no_guidance(tiny: Generator) -> None:
    import asyncio

    with pytest.raises(OptionsError, match="coroutines"):
        asyncio.run(tiny.agenerate("A pet: ", WORDS, guidance=Guidance(without="x")))
