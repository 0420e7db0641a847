"""Our scheduler behind ``model.generate(custom_generate=...)``: what it writes and returns."""

from __future__ import annotations

import time
from typing import Any

import pytest

import structgen
from structgen.errors import ConstraintError, IncompleteOutputError, OptionsError, TokenizerError
from structgen.integrations.transformers import GrammarLogitsProcessor, generate
from tests.integrations.transformers.small import CASES, EOS, PAD, VOCABULARY, ids, llama, text_of, texts, tokenizer

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

PROMPTS = ids("Name it:", "ab", "What then, if not that?")
ONE = ids("Name it:")


def run(ours: Any, prompts: dict[str, Any] = PROMPTS, seed: int = 0, **options: Any) -> Any:
    torch.manual_seed(seed)
    options = {"max_new_tokens": 60, "do_sample": False, **options}
    return llama().generate(**prompts, custom_generate=ours, **options)


@pytest.mark.parametrize("draft", [None, "ngram"])
@pytest.mark.parametrize("name", CASES)
def test_greedy_is_what_the_processor_writes(name: str, draft: Any) -> None:
    """Ids, prompts, ends and padding included."""
    ours = generate(CASES[name].constraint, VOCABULARY, draft=draft)
    processor = GrammarLogitsProcessor(CASES[name].constraint, VOCABULARY)
    expected = llama().generate(**PROMPTS, logits_processor=[processor], max_new_tokens=60, do_sample=False)
    found = run(ours)
    found[found == EOS[1]], expected[expected == EOS[1]] = EOS[0], EOS[0]  # which end is not told
    assert torch.equal(found, expected)
    one = run(ours, ONE, return_dict_in_generate=True)
    assert isinstance(one, transformers.generation.GenerateDecoderOnlyOutput)
    assert text_of(one.sequences[0, ONE["input_ids"].shape[1] :]) == texts(expected, PROMPTS)[0]


def test_sampling_follows_the_settings() -> None:
    case = CASES["pairs"]
    ours = generate(case.constraint, VOCABULARY)
    options: dict[str, Any] = {"do_sample": True, "temperature": 1.4, "top_k": 0, "num_return_sequences": 2}
    first, again, other = (texts(run(ours, seed=seed, **options), PROMPTS) for seed in (3, 3, 4))
    assert first == again != other and len(set(first)) > 1 and all(map(case.is_valid, [*first, *other]))
    greedy = texts(run(ours), PROMPTS)
    assert texts(run(ours, do_sample=True, top_k=1), PROMPTS) == greedy
    assert texts(run(ours, do_sample=True, top_p=1e-9), PROMPTS) == greedy
    assert texts(run(ours, do_sample=True, temperature=1e-4), PROMPTS) == greedy


def test_the_distribution_is_that_of_the_processor() -> None:
    case, seeds = CASES["choice"], 150
    ours, processor = generate(case.constraint, VOCABULARY), GrammarLogitsProcessor(case.constraint, VOCABULARY)
    options: dict[str, Any] = {"do_sample": True, "top_k": 0, "top_p": 0.9, "temperature": 4.0, "max_new_tokens": 60}
    torch.manual_seed(0)
    many = {key: value.expand(seeds, -1) for key, value in ONE.items()}
    found = texts(llama().generate(**many, custom_generate=ours, **options), many)
    expected = texts(llama().generate(**many, logits_processor=[processor], **options), many)
    for text in {*found, *expected}:
        one, two = found.count(text), expected.count(text)
        p = (one + two) / (2 * seeds)
        assert abs(one - two) / seeds <= 4.5 * (2 * p * (1 - p) / seeds) ** 0.5


def test_texts_are_closed_within_max_length() -> None:
    case = CASES["object"]
    ours = generate(case.constraint, VOCABULARY)
    for budget in (8, 12):
        for seed in range(4):
            out = run(ours, seed=seed, do_sample=True, max_new_tokens=budget)
            assert out.shape[1] <= PROMPTS["input_ids"].shape[1] + budget
            assert all(map(case.is_valid, texts(out, PROMPTS)))
    with pytest.raises(IncompleteOutputError):
        run(ours, max_new_tokens=2)


def test_a_constraint_a_row_and_all_ends() -> None:
    each = [CASES["choice"], CASES["pairs"], CASES["list"]]
    out = run(generate([case.constraint for case in each], VOCABULARY), num_return_sequences=2, do_sample=True)
    assert all(each[place // 2].is_valid(text) for place, text in enumerate(texts(out, PROMPTS)))
    with pytest.raises(ConstraintError, match="2 constraints for 4 prompts"):
        run(generate([None, each[0].constraint], VOCABULARY), ids("a", "b", "c", "d"))
    made = tokenizer()
    ours = generate(structgen.choice(["yes please"]), made)
    out = run(ours, ONE, eos_token_id=[1], pad_token_id=PAD)
    assert out[0, -1] == 1 and made.decode(out[0, ONE["input_ids"].shape[1] : -1]) == "yes please"


def test_a_streamer_gets_prompt_tokens_and_end() -> None:
    class Streamer:
        def __init__(self) -> None:
            self.pieces: list[list[int]] = []
            self.ended = 0

        def put(self, value: Any) -> None:
            self.pieces.append(value.flatten().tolist())

        def end(self) -> None:
            self.ended += 1

    streamer = Streamer()
    out = run(generate(CASES["pairs"].constraint, VOCABULARY, streamer=streamer), ONE)
    assert (
        [token for piece in streamer.pieces for token in piece] == out[0].tolist()
        and streamer.ended == 1
        and len(streamer.pieces) > 2
    )


def test_a_stopping_criterion_closes_the_text() -> None:
    class Stop(transformers.StoppingCriteria):  # type: ignore[name-defined]
        def __call__(self, input_ids: Any, scores: Any, **options: Any) -> Any:
            return torch.full((len(input_ids),), input_ids.shape[1] >= ONE["input_ids"].shape[1] + 2)

    case = CASES["pairs"]
    ours = generate(case.constraint, VOCABULARY)
    long, short = texts(run(ours, ONE), ONE)[0], texts(run(ours, ONE, stopping_criteria=[Stop()]), ONE)[0]
    assert case.is_valid(short) and len(short) < len(long)
    started = time.monotonic()
    (endless,) = texts(
        run(generate(structgen.regex("x[ab]*y"), VOCABULARY), ONE, max_new_tokens=400, max_time=0.01), ONE
    )
    assert endless[0] == "x" and endless[-1] == "y" and time.monotonic() - started < 60


REFUSED: list[dict[str, Any]] = [
    {"num_beams": 2}, {"repetition_penalty": 1.3}, {"min_new_tokens": 3}, {"prompt_lookup_num_tokens": 3},
    {"return_dict_in_generate": True, "output_scores": True}, {"bad_words_ids": [[5]]}, {"guidance_scale": 2.0},
]  # fmt: skip


@pytest.mark.parametrize("options", REFUSED, ids=lambda options: next(iter(options)))
def test_what_is_not_done_is_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(OptionsError, match="is not for custom_generate"):
        run(generate(CASES["choice"].constraint, VOCABULARY), ONE, **options)


def test_wrong_choices_say_what_to_do() -> None:
    with pytest.raises(TokenizerError, match="pass its tokenizer"):
        generate(CASES["choice"].constraint, llama())
    with pytest.raises(OptionsError, match="the tokenizer of this model"):
        llama(0, 64).generate(torch.tensor([[5]]), custom_generate=generate(CASES["choice"].constraint, VOCABULARY))
