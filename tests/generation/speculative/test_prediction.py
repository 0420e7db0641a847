"""Predicted texts: the outputs of the plain loop, whatever was predicted, in fewer forwards; counts by hand."""

from __future__ import annotations

import random
from typing import Any

import pytest

from structgen.errors import GenerationError, OptionsError
from structgen.generation.decoding.output import Output
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel, TinyReader
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.request import Request
from structgen.generation.scheduler.scheduler import Scheduler
from structgen.generation.speculative.length import CostAware, Fixed
from structgen.generation.speculative.ngram import NgramDrafter
from structgen.generation.speculative.prediction import Prediction
from structgen.generation.speculative.speculator import Speculator
from structgen.generation.speculative.tree import TAIL
from tests.fakes import CharTokenizer, NestedMatcher, vocabulary
from tests.generation.decoding import plain_loop

VOCABULARY = vocabulary(b'{"', b'":', b"nd", b"[a", eos=1)
MODEL = TinyModel(VOCABULARY.size, seed=3, scale=3.0)
ENCODE = CharTokenizer(eos=1).encode


def edited(text: str, rng: random.Random) -> str:
    """With pieces replaced, left out and put in."""
    for _ in range(rng.randrange(4)):
        at, size = rng.randrange(len(text) + 1), rng.randrange(4)
        text = text[:at] + "".join(rng.choices("abx[<", k=rng.randrange(4))) + text[at + size :]
    return text


@pytest.mark.full
@pytest.mark.parametrize(
    "speculator", [Speculator([]), Speculator([NgramDrafter()], CostAware()), Speculator([], Fixed(6))]
)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_outputs_are_what_they_are_without(speculator: Speculator, temperature: float) -> None:
    rng = random.Random(0)
    scheduler = Scheduler(TinyReader(MODEL), spell=ENCODE)
    handles = []
    for seed in range(12):

        def fresh(seed: int = seed) -> Output:
            matcher = NestedMatcher(VOCABULARY) if seed % 3 else None
            return Output(VOCABULARY, matcher, SamplingParams(temperature, seed=seed), max_new_tokens=40)

        single = fresh()
        plain_loop.decode(MODEL, [[5, seed]], [single])
        text = single.text if seed % 4 == 0 else edited(single.text, rng)
        request = Request([5, seed], fresh(), speculator, prediction=text.encode("ascii", "ignore").decode())
        handles.append((single, scheduler.submit(request)))
    while not scheduler.is_idle:
        scheduler.step()
    for single, handle in handles:
        assert handle.error is None and handle.output.token_ids == single.token_ids
        stats, prediction = handle.output.stats, handle.request.prediction
        assert prediction is not None
        assert stats.accepted_prediction_tokens + stats.rejected_prediction_tokens == len(prediction)


def test_what_was_predicted_takes_few_forwards() -> None:
    """Right text is read many tokens at once, up to an edit and soon after it."""
    characters = vocabulary(eos=1)
    generator = Generator(TinyModel(characters.size, scale=3.0), CharTokenizer(eos=1), vocabulary=characters)
    options: dict[str, Any] = {"max_new_tokens": 60, "temperature": 1.0, "seed": 1}
    plain = generator.generate("p", **options)
    for prediction, most, wrong in ((plain.text, 8, 1), (plain.text[:20] + "~~~" + plain.text[20:], 12, 5)):
        tries = [generator.generate("p", prediction=prediction, **options) for _ in range(10)]
        assert all(result.token_ids == plain.token_ids for result in tries) and len(plain.token_ids) == 60
        result = min(tries, key=lambda each: each.stats.target_forwards)  # lengths follow the clock: others may be busy
        assert result.stats.target_forwards <= most
        assert result.stats.rejected_prediction_tokens <= wrong
        assert result.stats.accepted_prediction_tokens >= 59 - wrong  # a token without text is among them


def test_places_are_found_again() -> None:
    """The longest context, the nearest of equals, against a search by hand; exact counts where no token repeats."""
    rng = random.Random(1)
    for _ in range(300):
        tokens = [rng.randrange(4) for _ in range(rng.randrange(1, 30))]
        tail = tuple(rng.randrange(4) for _ in range(rng.randrange(1, TAIL)))
        index = rng.randrange(len(tokens) + 3)
        found, agreed = Prediction(tokens).after((index, 5), tail)
        if index < len(tokens) and tokens[index] == tail[-1]:
            assert (found, agreed) == (index + 1, 6)
            continue
        ends = {
            length: [end for end in range(length, len(tokens)) if tuple(tokens[end - length : end]) == tail[-length:]]
            for length in (12, 8, 6, 4, 3, 2, 1)
            if length <= len(tail)
        }
        best = next((each for each in ends.items() if each[1] and (each[0] > 1 or len(each[1]) == 1)), None)
        if best is None:
            assert (found, agreed) == (index + 1, 0)
        else:
            assert agreed == best[0] and found in best[1]
            assert abs(found - index) == min(abs(end - index) for end in best[1])
    text = list(range(50))
    for at in range(1, 40):
        assert Prediction(text).agreed(text) == 50
        assert Prediction(text).agreed([*text[:at], 99, *text[at + 1 :]]) == 49  # another in the place of one
        assert Prediction(text).agreed([*text[:at], *text[at + 5 :]]) == 44  # left out: the first behind is no surprise
        assert Prediction(text).agreed([*text[:at], 97, 98, 99, *text[at:]]) == 49  # put in
    assert Prediction(text).agreed([*text, *text]) == 50


@pytest.mark.parametrize("prediction", [3, ["a", 4], b"a"])
def test_what_is_no_prediction(prediction: Any) -> None:
    generator = Generator(MODEL, CharTokenizer(eos=1), vocabulary=VOCABULARY)
    with pytest.raises(OptionsError, match="prediction"):
        generator.generate("p", prediction=prediction)


def test_one_a_prompt() -> None:
    generator = Generator(MODEL, CharTokenizer(eos=1), vocabulary=VOCABULARY)
    options: dict[str, Any] = {"max_new_tokens": 20, "temperature": 1.0, "seed": 0}
    plain = generator.batch(["p", "q"], **options)
    predicted = generator.batch(["p", "q"], prediction=[plain[0].text, None], **options)
    assert [one.token_ids for one in plain] == [one.token_ids for one in predicted]
    assert predicted[1].stats.rejected_prediction_tokens == 0 and not predicted[1].stats.drafted
    with pytest.raises(GenerationError, match="2 prompts, but 1 predictions"):
        generator.batch(["p", "q"], prediction=["a"])
    with pytest.raises(GenerationError, match="speculator"):
        Scheduler(TinyReader(MODEL)).submit(
            Request([1], Output(VOCABULARY, None, SamplingParams(), max_new_tokens=2), prediction="a")
        )
