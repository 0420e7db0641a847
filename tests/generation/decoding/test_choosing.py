"""One draw for many rows: single calls, batches and drafts write the same; penalties and bias reach the draw."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError, OptionsError
from structgen.generation.decoding.choosing import choose
from structgen.generation.decoding.few_tokens import FewTokens, allow_all
from structgen.generation.decoding.output import Output
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import SamplingParams
from tests.fakes import CharTokenizer, WordsMatcher, vocabulary, words
from tests.generation.decoding.writing import decode

VOCABULARY = vocabulary(b'{"', b'":', b"ab", b"bc", eos=1)
PEOPLE = words('{"name": "Ada", "age": 36}', '{"name": "Bob", "age": 7}', '{"name": "Al"}')
X, Y = VOCABULARY.tokens.index(b"x"), VOCABULARY.tokens.index(b"y")
SAMPLING: dict[str, dict[str, Any]] = {
    "greedy": {},
    "sampled": {"temperature": 1.3, "seed": 4},
    "filtered": {"temperature": 1.3, "seed": 4, "top_k": 9, "top_p": 0.9, "min_p": 0.01},
    "typical": {"temperature": 1.3, "seed": 4, "typical_p": 0.8, "top_h": 0.9},
    "penalised": {"temperature": 1.0, "seed": 4, "repetition_penalty": 1.4, "frequency_penalty": 0.7},
    "greedy, penalised": {"presence_penalty": 2.0, "logit_bias": {VOCABULARY.tokens.index(b"a"): 1.5}},
}


def generator(**options: Any) -> Generator:
    model = TinyModel(VOCABULARY.size, seed=3, order=3)
    return Generator(model, CharTokenizer(eos=1), vocabulary=VOCABULARY, **options)


@pytest.mark.parametrize("name", SAMPLING)
def test_a_batch_writes_what_single_calls_write(name: str) -> None:
    options = {**SAMPLING[name], "max_new_tokens": 30}
    prompts, constraints = ["p", "q", "pp", "r"], [PEOPLE, None, PEOPLE, None]
    together = generator().batch(prompts, constraints, **options)
    for row, (prompt, constraint) in enumerate(zip(prompts, constraints, strict=True)):
        own = {**options, "seed": options["seed"] + row} if "seed" in options else options
        alone = generator().generate(prompt, constraint, **own)
        assert alone.token_ids == together[row].token_ids
        assert alone.logprob == together[row].logprob


@pytest.mark.first_case
@pytest.mark.parametrize("name", SAMPLING)
@pytest.mark.parametrize("draft", ["ngram", "recycling", "auto"])
def test_drafts_change_nothing(name: str, draft: str) -> None:
    options = {**SAMPLING[name], "max_new_tokens": 40}
    plain, drafting = generator(), generator(draft=draft)
    for prompt, constraint in (("ababab", None), ("p", PEOPLE)):
        for _ in range(2):  # the second time with what was learned
            drafted = drafting.batch([prompt, prompt + "a"], constraint, **options)
        expected = plain.batch([prompt, prompt + "a"], constraint, **options)
        assert [result.token_ids for result in drafted] == [result.token_ids for result in expected]
        assert [result.logprob for result in drafted] == pytest.approx([result.logprob for result in expected])


def test_penalties_look_at_the_prompt_and_at_what_was_chosen() -> None:
    """Greedy text over a flat model repeats a letter; each penalty makes it change."""
    flat = TinyModel(VOCABULARY.size, scale=0.0, bias=np.where(np.arange(VOCABULARY.size) == X, 0.3, 0.0))
    one = Generator(flat, CharTokenizer(eos=1), vocabulary=VOCABULARY)
    assert one.generate("p", max_new_tokens=4).text == "xxxx"
    assert one.generate("p", max_new_tokens=4, presence_penalty=1.0).text[0] == "x"
    assert one.generate("p", max_new_tokens=4, presence_penalty=1.0).text.count("x") == 1
    assert one.generate("p", max_new_tokens=4, frequency_penalty=0.2).text.count("x") == 2
    biased = one.generate("p", max_new_tokens=4, logit_bias={Y: 5.0}).text
    assert biased == "yyyy"
    assert one.generate("y", max_new_tokens=1, logit_bias={Y: 0.4}).text == "y"
    assert one.generate("y", max_new_tokens=1, logit_bias={Y: 0.4}, repetition_penalty=2.0).text == "x"


def test_forced_tokens_are_not_counted() -> None:
    history = WordsMatcher(VOCABULARY, [b"aaaab", b"aaaac"])
    output = Output(VOCABULARY, history, SamplingParams(presence_penalty=1.0), max_new_tokens=20)
    output.advance_forced()
    while output.finish_reason is None:
        logits = np.zeros((1, VOCABULARY.size), np.float32)
        choose([output], logits)
        output.advance_forced()
    adjustments = output.request(0, 0).adjustments
    chosen = len(output.token_ids) - output.stats.forced_tokens
    assert (0 if adjustments is None else len(adjustments.token_ids)) <= chosen


def test_bias_of_a_token_that_does_not_exist() -> None:
    with pytest.raises(OptionsError, match=f"names token {VOCABULARY.size}; the vocabulary has"):
        generator().generate("p", PEOPLE, logit_bias={VOCABULARY.size: 1.0})


@pytest.mark.parametrize(
    ("option", "said"), [("max_tokens", "did you mean 'max_new_tokens'"), ("temprature", "did you mean 'temperature'")]
)
def test_an_option_that_does_not_exist(option: str, said: str) -> None:
    with pytest.raises(OptionsError, match=f"there is no option '{option}'; {said}"):
        generator().generate("p", PEOPLE, **{option: 1})  # type: ignore[call-overload]


def test_logits_of_one_row_that_are_no_numbers() -> None:
    outputs = [Output(VOCABULARY, None, SamplingParams(), max_new_tokens=5) for _ in range(2)]
    for output in outputs:
        output.advance_forced()
    logits = np.zeros((2, VOCABULARY.size), np.float32)
    logits[1] = np.nan
    with pytest.raises(GenerationError, match=f"nan over the {VOCABULARY.size} allowed tokens"):
        choose(outputs, logits)


@pytest.mark.parametrize("size", [1, 31, 32, 33, 64, 100])
def test_masks_that_allow_little(size: int) -> None:
    every = Vocabulary([b"%d" % i for i in range(size)] + [None], eos_token_ids=size)
    bitmask = allow_all(every)
    assert FewTokens(bitmask, size + 1)() == list(range(size + 1))
    assert FewTokens(bitmask, 1)() is None
    rng = np.random.default_rng(size)
    few = FewTokens(bitmask, 3)
    for count in (0, 1, 2, 3, 4):
        bits = np.zeros(32 * bitmask.shape[1], np.bool_)
        ids = np.sort(rng.choice(size + 1, min(count, size + 1), replace=False))
        bits[ids] = True
        bitmask[0] = np.packbits(bits, bitorder="little").view(np.int32)
        assert few() == (ids.tolist() if len(ids) <= 3 else None)


@pytest.mark.parametrize("name", SAMPLING)
def test_masks_made_beside_the_model_change_nothing(name: str) -> None:
    """The overlapped loop: forced tokens are seen after the next call has begun."""
    wanted = words('{"name": "Ada", "age": 36}', '{"name": "Bob", "age": 7}', '{"name": "Al"}', '{"n": 1}')
    params = SamplingParams(**SAMPLING[name])

    def written(overlapped: bool, budget: int) -> list[tuple[list[int], str | None, float]]:
        outputs = [
            Output(VOCABULARY, wanted.compile(VOCABULARY).matcher() if row % 3 else None, params, max_new_tokens=budget)
            for row in range(6)
        ]
        prompts = [[5 + row, 9] for row in range(6)]
        for _ in decode(TinyModel(VOCABULARY.size, seed=3), prompts, outputs, overlapped=overlapped):
            pass
        assert all(output.pending == [] or output.finish_reason for output in outputs)
        return [(output.token_ids, output.finish_reason, output.log_prob) for output in outputs]

    for budget in (24, 40):
        assert written(True, budget) == written(False, budget)
