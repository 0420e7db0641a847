"""The logits processor in ``model.generate``: against our own loop, against beams in plain Python, and under everything
that decodes."""

from __future__ import annotations

import random
import re
import warnings
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.core.engines.protocols import Grammar
from structgen.errors import (
    ConstraintError,
    GenerationError,
    IncompleteOutputError,
    OptionsError,
    TokenizerError,
)
from structgen.generation.decoding.output import Output
from structgen.generation.models.transformers_model import TransformersModel
from structgen.generation.sampling import SamplingParams
from structgen.integrations.transformers import GrammarLogitsProcessor
from tests.generation.decoding.plain_loop import decode
from tests.integrations.transformers.small import (
    CASES,
    EOS,
    PAD,
    VOCABULARY,
    WIDTH,
    Case,
    ids,
    llama,
    text_of,
    texts,
    tokenizer,
)

torch = pytest.importorskip("torch", reason="torch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

PROMPTS = ids("Name it:", "ab", "What then, if not that?")
BUDGET = 60


def run(processor: Any, prompts: dict[str, Any] = PROMPTS, seed: int = 0, **options: Any) -> list[str]:
    """The texts of a `generate`."""
    torch.manual_seed(seed)
    options = {"max_new_tokens": BUDGET, "do_sample": False, **options}
    sequences = llama().generate(**prompts, logits_processor=[processor], **options)
    return texts(sequences, prompts)


def rows(prompts: dict[str, Any]) -> list[list[int]]:
    return [r[m.bool()].tolist() for r, m in zip(prompts["input_ids"], prompts["attention_mask"], strict=True)]


# What it writes.


@pytest.mark.first_case
@pytest.mark.parametrize("name", CASES)
def test_greedy_is_what_the_plain_loop_writes(name: str) -> None:
    case = CASES[name]
    grammar = GrammarLogitsProcessor(case.constraint, VOCABULARY)
    written = run(grammar)
    compiled = structgen.json_schema(case.constraint) if isinstance(case.constraint, dict) else case.constraint
    matchers = [compiled.compile(VOCABULARY).matcher() for _ in written]
    outputs = [Output(VOCABULARY, matcher, SamplingParams(), max_new_tokens=BUDGET) for matcher in matchers]
    expected = decode(TransformersModel(llama()), rows(PROMPTS), outputs)
    assert written == [output.text for output in expected] and all(map(case.is_valid, written))


def test_a_constraint_a_row() -> None:
    each = [CASES["pairs"], CASES["choice"], CASES["object"]]
    together = run(GrammarLogitsProcessor([case.constraint for case in each], VOCABULARY))
    alone = [run(GrammarLogitsProcessor(case.constraint, VOCABULARY), one(row))[0] for row, case in enumerate(each)]
    assert together == alone
    sampled = run(
        GrammarLogitsProcessor([case.constraint for case in each], VOCABULARY), do_sample=True, num_return_sequences=2
    )
    assert all(each[place // 2].is_valid(text) for place, text in enumerate(sampled))


def test_free_text_beside_a_constraint_is_as_without() -> None:
    free = texts(llama().generate(**PROMPTS, max_new_tokens=20, do_sample=False), PROMPTS)
    written = run(GrammarLogitsProcessor([None, CASES["choice"].constraint, None], VOCABULARY), max_new_tokens=20)
    assert written[::2] == free[::2] and CASES["choice"].is_valid(written[1])


def one(row: int) -> dict[str, Any]:
    """A prompt of the batch on its own."""
    return {"input_ids": torch.tensor([rows(PROMPTS)[row]]), "attention_mask": torch.ones(1, len(rows(PROMPTS)[row]))}


def test_all_ends_are_allowed_and_nothing_else_behind_a_whole_text() -> None:
    processor = GrammarLogitsProcessor(structgen.choice(["ab"]), VOCABULARY)
    begun = processor(torch.tensor([[7]]), torch.zeros(1, WIDTH))
    assert allowed(begun) == {VOCABULARY.tokens.index(b"ab"), 3 + ord("a")}
    assert allowed(processor(torch.tensor([[7, VOCABULARY.tokens.index(b"ab")]]), torch.zeros(1, WIDTH))) == set(EOS)


def allowed(scores: Any, row: int = 0) -> set[int]:
    return set(torch.isfinite(scores[row]).nonzero().flatten().tolist())


def test_scores_that_are_given_stay_as_they_are() -> None:
    """`generate` hands out the same tensor as the model's logits, and prompt lookup uses one for many calls."""
    scores = torch.randn(3, WIDTH)
    before = scores.clone()
    masked = GrammarLogitsProcessor(CASES["choice"].constraint, VOCABULARY)(PROMPTS["input_ids"], scores)
    assert torch.equal(scores, before) and torch.isneginf(masked).any()
    assert torch.equal(masked[torch.isfinite(masked)], before[torch.isfinite(masked)])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_masks_are_those_of_the_matcher(dtype: str) -> None:
    """At every step of random walks, in a batch."""
    rng = random.Random(3)
    compiled = CASES["pairs"].constraint.compile(VOCABULARY)
    matchers = [compiled.matcher() for _ in range(4)]
    processor = GrammarLogitsProcessor(CASES["pairs"].constraint, VOCABULARY)
    sequences = [[9]] * 4
    for _ in range(25):
        masked = processor(torch.tensor(sequences), torch.zeros(4, WIDTH, dtype=getattr(torch, dtype)))
        assert masked.dtype == getattr(torch, dtype)
        chosen = []
        for row, matcher in enumerate(matchers):
            if matcher.is_terminated():
                chosen.append(PAD)
                continue
            mask = np.zeros((1, -(-VOCABULARY.size // 32)), np.int32)
            matcher.fill_next_token_bitmask(mask)
            expected = set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())
            assert allowed(masked, row) == expected
            chosen.append(rng.choice(sorted(expected)))
            assert matcher.accept_token(chosen[-1])
        sequences = [[*sequence, token] for sequence, token in zip(sequences, chosen, strict=True)]


# Beams.


def plain_beams(case: Case, prompt: list[int], beams: int, length: int) -> list[tuple[float, str]]:
    """Beam search in plain Python, over the model's log-probabilities masked (not renormalised), scores by length."""
    compiled = case.constraint.compile(VOCABULARY)
    running, done = [(0.0, list[int]())], list[tuple[float, list[int]]]()
    for _ in range(length):
        found = []
        for score, written in running:
            matcher = compiled.matcher()
            assert all(map(matcher.accept_token, written))
            with torch.inference_mode():
                log_probs = llama()(torch.tensor([[*prompt, *written]])).logits[0, -1].float().log_softmax(-1)
            mask = np.zeros((1, -(-VOCABULARY.size // 32)), np.int32)
            matcher.fill_next_token_bitmask(mask)
            tokens = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
            found += [(score + float(log_probs[token]), [*written, token]) for token in tokens]
        found.sort(key=lambda pair: -pair[0])
        ended = [pair for pair in found[:beams] if pair[1][-1] in EOS]
        done += [(score / len(written), written) for score, written in ended]
        running = [pair for pair in found if pair[1][-1] not in EOS][:beams]
        done = sorted(done, key=lambda pair: -pair[0])[:beams]
        if not running:
            break
    return [(score, text_of(written)) for score, written in done]


@pytest.mark.parametrize("beams", [2, 4])
def test_beams_are_those_of_plain_python(beams: int) -> None:
    case = CASES["pairs"]
    processor = GrammarLogitsProcessor(case.constraint, VOCABULARY)
    for row in range(3):
        out = llama().generate(
            **one(row), logits_processor=[processor], num_beams=beams, num_return_sequences=beams, do_sample=False,
            max_new_tokens=40, early_stopping="never", return_dict_in_generate=True, output_scores=True,
        )  # fmt: skip
        expected = plain_beams(case, rows(PROMPTS)[row], beams, 40)
        assert texts(out.sequences, one(row)) == [text for _, text in expected]
        assert out.sequences_scores.tolist() == pytest.approx([score for score, _ in expected], abs=1e-4)


def test_a_batch_of_beams_is_each_alone() -> None:
    each = [CASES["pairs"], CASES["object"], CASES["list"]]
    options: dict[str, Any] = {"num_beams": 3, "num_return_sequences": 2, "max_new_tokens": 40}
    together = run(GrammarLogitsProcessor([case.constraint for case in each], VOCABULARY), **options)
    alone = [run(GrammarLogitsProcessor(c.constraint, VOCABULARY), one(row), **options) for row, c in enumerate(each)]
    assert together == [text for pair in alone for text in pair]


def test_beams_of_equal_prompts_stay_under_their_own_constraints() -> None:
    """Texts that are alike so far, under constraints that go on otherwise."""
    each = [structgen.regex("ab{5}"), structgen.regex("a[cd]{5}|e{6}"), structgen.regex("[a-e]{3}"), None]
    prompts = ids(*["ab"] * len(each))
    for options in ({"num_beams": 3, "num_return_sequences": 2}, {"do_sample": True, "num_return_sequences": 3}):
        together = run(GrammarLogitsProcessor(each, VOCABULARY), prompts, max_new_tokens=8, **options)
        copies = options["num_return_sequences"]
        for number, (constraint, judge) in enumerate(zip(each, ("ab{5}", "a[cd]{5}|e{6}", "[a-e]{3}"), strict=False)):
            own = together[number * copies : (number + 1) * copies]
            assert re.fullmatch(judge, own[0]), own
            if "num_beams" in options:
                assert own == run(GrammarLogitsProcessor(constraint, VOCABULARY), one(1), max_new_tokens=8, **options)


def test_a_row_goes_on_from_a_row_of_its_own_constraint() -> None:
    processor = GrammarLogitsProcessor([structgen.regex("ab{5}"), structgen.regex("a[cd]{5}|e{6}")], VOCABULARY)
    for step in (["p", "p", "q", "q"], ["pa", "pa", "qa", "qe"], ["pab", "pab", "qee", "qac"]):
        masked = processor(ids(*step)["input_ids"], torch.zeros(4, WIDTH))
    assert allowed(masked, 2) == {3 + ord("e")}
    assert allowed(masked, 3) == {3 + ord("c"), 3 + ord("d")}


@pytest.mark.filterwarnings("ignore:The text has ended")
def test_random_beams_are_masked_as_their_texts_alone() -> None:
    """Rows change places within their prompts, some take what is not allowed, some calls come twice."""
    rng = random.Random(7)
    pool = [r"a[ab]{0,3}c|b{2,6}", r"[abc]{3}(c|aa)?", r"a(b|c)*", r"(ab|ac|b)+c"]
    compiled = [structgen.regex(pattern).compile(VOCABULARY) for pattern in pool]
    letters = [3 + byte for byte in b"abc"]
    for _ in range(25):
        group, own = rng.randrange(1, 5), [rng.randrange(len(pool)) for _ in range(rng.randrange(1, 4))]
        processor = GrammarLogitsProcessor([structgen.regex(pool[number]) for number in own], VOCABULARY)
        prompts = [[rng.choice(letters)] * 2 for _ in own]
        written = [list[int]() for _ in range(group * len(own))]
        for _ in range(8):
            sequences = torch.tensor([[*prompts[row // group], *text] for row, text in enumerate(written)])
            for _ in range(rng.choice([1, 1, 2])):
                masked = processor(sequences, torch.zeros(len(written), WIDTH))
                for row, text in enumerate(written):
                    assert allowed(masked, row) == may_come(compiled[own[row // group]], text), (own, written, row)
            parents = [row - row % group + rng.randrange(group) for row in range(len(written))]
            written = [
                [*written[parent], rng.choice(letters if rng.random() < 0.2 else sorted(allowed(masked, parent)))]
                for parent in parents
            ]


def may_come(grammar: Grammar, text: list[int]) -> set[int]:
    """What a fresh matcher allows behind a text; its ends, where the text is over or not allowed."""
    matcher = grammar.matcher()
    if not all(not matcher.is_terminated() and matcher.accept_token(token) for token in text):
        return set(EOS)
    if matcher.is_terminated():
        return set(EOS)
    mask = np.zeros((1, -(-VOCABULARY.size // 32)), np.int32)
    matcher.fill_next_token_bitmask(mask)
    return set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())


# Assistants.


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("help_", [{"prompt_lookup_num_tokens": 4}, {"assistant": 1}], ids=["lookup", "assistant"])
def test_help_changes_no_greedy_text(name: str, help_: dict[str, int]) -> None:
    processor = GrammarLogitsProcessor(CASES[name].constraint, VOCABULARY)
    options = helped(help_)
    for row in range(3):
        assert run(processor, one(row), **options) == run(processor, one(row))


def helped(help_: dict[str, int]) -> dict[str, Any]:
    return {"assistant_model": llama(help_["assistant"])} if "assistant" in help_ else dict(help_)


@pytest.mark.first_case
@pytest.mark.parametrize("name", CASES)
def test_sampled_texts_under_assistance_are_valid(name: str) -> None:
    processor = GrammarLogitsProcessor(CASES[name].constraint, VOCABULARY)
    for seed in range(6):
        for help_ in ({"prompt_lookup_num_tokens": 3}, {"assistant": 1}, {"assistant": 0}):
            (text,) = run(processor, one(seed % 3), seed, do_sample=True, top_k=0, **helped(help_))
            assert CASES[name].is_valid(text), (seed, help_, text)


@pytest.mark.full
def test_an_assistant_samples_the_same_distribution() -> None:
    """Of a choice, over many seeds: each text about as often as its probability under the masked model."""
    case, seeds = CASES["choice"], 150
    processor = GrammarLogitsProcessor(case.constraint, VOCABULARY)
    plain = count(run(processor, one(0), seed, do_sample=True, top_k=0)[0] for seed in range(seeds))
    helped_ = count(
        run(processor, one(0), seed, do_sample=True, top_k=0, assistant_model=llama(1))[0] for seed in range(seeds)
    )
    for text in {*plain, *helped_}:
        p = (plain.get(text, 0) + helped_.get(text, 0)) / (2 * seeds)
        assert abs(plain.get(text, 0) - helped_.get(text, 0)) / seeds <= 4.5 * (2 * p * (1 - p) / seeds) ** 0.5


def count(found: Any) -> dict[str, int]:
    counts = dict[str, int]()
    for text in found:
        counts[text] = counts.get(text, 0) + 1
    return counts


def test_scores_of_an_assistant_with_another_vocabulary_are_left_alone() -> None:
    processor = GrammarLogitsProcessor(CASES["choice"].constraint, VOCABULARY, WIDTH)
    target, other = torch.tensor([[5, 6]]), torch.tensor([[8, 9, 10]])
    first = processor(target, torch.zeros(1, WIDTH))
    narrow = torch.randn(1, 40)
    assert processor(other, narrow) is narrow
    assert torch.equal(processor(target, torch.zeros(1, WIDTH)), first)


def test_an_assistant_with_its_own_tokenizer_of_the_same_width() -> None:
    """Its sequences are other prompts to the processor, between the calls of one generation."""
    case, rng = CASES["pairs"], random.Random(5)
    compiled = case.constraint.compile(VOCABULARY)
    processor = GrammarLogitsProcessor(case.constraint, VOCABULARY, WIDTH)
    written = list[int]()
    matcher = compiled.matcher()
    while not matcher.is_terminated():
        foreign = [200, 201, *[token + 1 for token in written]]
        for extra in range(3):  # its drafts
            processor(torch.tensor([[*foreign, *[210] * extra]]), torch.zeros(1, WIDTH))
        whole = torch.tensor([[50, 51, *written, 60, 61]])  # a draft, translated; it is turned down
        for end in range(2 + len(written), whole.shape[1] + 1):
            masked = processor(whole[:, :end], torch.zeros(1, WIDTH))
            if end == 2 + len(written):
                token = rng.choice(sorted(allowed(masked)))
        assert matcher.accept_token(token)
        written.append(token)
    assert case.is_valid(text_of(written))


def test_where_xgrammar_fails() -> None:
    """Its processor asserts with an assistant and when used again, and writes what it should not with prompt lookup."""
    xgrammar = pytest.importorskip("xgrammar", reason="xgrammar is not installed")
    assert hasattr(xgrammar.contrib.hf, "LogitsProcessor")
    case = CASES["pairs"]
    tokens = [token or f"<special {number}>".encode() for number, token in enumerate(VOCABULARY.tokens)]
    info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, vocab_size=WIDTH, stop_token_ids=list(EOS))
    compiled = xgrammar.GrammarCompiler(info).compile_regex(r"[a-c]{2,5} =[0-9]{1,4}(;[a-c]{2,5} =[0-9]{1,4}){0,2}")
    for options in ({"prompt_lookup_num_tokens": 4}, {"assistant_model": llama(1)}):
        ours, theirs = 0, 0
        for seed in range(6):
            (text,) = run(GrammarLogitsProcessor(case.constraint, VOCABULARY), one(0), seed, do_sample=True, **options)
            ours += bool(case.is_valid(text))
            try:
                peer = xgrammar.contrib.hf.LogitsProcessor(compiled)
                theirs += bool(case.is_valid(run(peer, one(0), seed, do_sample=True, **options)[0]))
            except (AssertionError, RuntimeError, ValueError):
                continue
        assert ours == 6
        if theirs == 6:
            warnings.warn(f"xgrammar {xgrammar.__version__} now does {list(options)}; say so in the docs", stacklevel=1)


# Used again, and what it is shown.


def test_used_again_for_any_prompt() -> None:
    """Prompts that begin alike, that are each other's continuation, and whole outputs with more behind them."""
    case = CASES["pairs"]
    processor = GrammarLogitsProcessor(case.constraint, VOCABULARY)
    prompts = ["ab", "abc", "a", "ab", "ab =1", "ab =12;", "zzz"]
    for seed, begun in enumerate(prompts * 2):
        helped_ = [{}, {"prompt_lookup_num_tokens": 3}, {"assistant_model": llama(1)}][seed % 3]
        fresh = GrammarLogitsProcessor(case.constraint, VOCABULARY)
        assert run(processor, ids(begun), **helped_) == run(fresh, ids(begun))
    sequence = ids("ab")["input_ids"]
    for _ in range(4):  # a conversation: the last output and something new
        sequence = torch.cat([sequence, torch.tensor([[7, 8]])], dim=1)
        prompt = {"input_ids": sequence, "attention_mask": torch.ones_like(sequence)}
        sequence = llama().generate(**prompt, logits_processor=[processor], max_new_tokens=BUDGET, do_sample=False)
        assert texts(sequence, prompt) == run(GrammarLogitsProcessor(case.constraint, VOCABULARY), prompt)


def test_a_cut_off_output_goes_on_and_reset_makes_it_a_prompt() -> None:
    case = CASES["pairs"]
    processor = GrammarLogitsProcessor(case.constraint, VOCABULARY)
    whole = run(processor, one(0))[0]
    begun = llama().generate(**one(0), logits_processor=[processor], max_new_tokens=3, do_sample=False)
    rest = {"input_ids": begun, "attention_mask": torch.ones_like(begun)}
    assert texts(begun, one(0))[0] + run(processor, rest)[0] == whole
    begun = llama().generate(**one(0), logits_processor=[processor], max_new_tokens=3, do_sample=False)
    processor.reset()
    assert case.is_valid(run(processor, rest)[0])


def test_dead_prefixes_may_only_end_and_come_alive_again() -> None:
    processor = GrammarLogitsProcessor(CASES["choice"].constraint, VOCABULARY)
    fresh = processor(torch.tensor([[5]]), torch.zeros(1, WIDTH))
    whole = torch.tensor([[5, 3 + ord("z"), 3 + ord("y"), WIDTH + 7, PAD]])
    scores = torch.randn(1, WIDTH)
    for end in range(2, 6):
        masked = processor(whole[:, :end], scores)
        assert allowed(masked) == set(EOS) and torch.equal(masked[0, list(EOS)], scores[0, list(EOS)])
    assert torch.equal(processor(torch.tensor([[5]]), torch.zeros(1, WIDTH)), fresh)


def test_what_other_processors_leave_nothing_of_is_told() -> None:
    processor = GrammarLogitsProcessor(structgen.choice(["ab"]), VOCABULARY)
    with pytest.warns(RuntimeWarning, match="min_new_tokens"):
        (text,) = run(processor, one(0), min_new_tokens=9)
    assert text == "ab"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(processor, one(0), do_sample=True, bad_words_ids=[[3 + ord("a")]]) == ["ab"]


def test_an_end_that_generate_does_not_know_is_told() -> None:
    processor = GrammarLogitsProcessor(structgen.choice(["ab"]), VOCABULARY)
    with pytest.warns(RuntimeWarning, match="eos_token_id=\\[0, 1\\]"):
        (text,) = run(processor, one(0), eos_token_id=280)
    assert text == "ab"


# Budgets.


@pytest.mark.first_case
@pytest.mark.parametrize("options", [{}, {"do_sample": True, "top_k": 0}, {"num_beams": 3}, {"assistant": 1}], ids=str)
def test_texts_are_closed_within_the_budget(options: dict[str, Any]) -> None:
    case = CASES["object"]
    for budget in (8, 9, 12, 20):
        processor = GrammarLogitsProcessor(case.constraint, VOCABULARY, max_new_tokens=budget)
        for seed in range(4):
            more = {**options, **helped(options)} if "assistant" in options else options
            more.pop("assistant", None)
            (text,) = run(processor, one(seed % 3), seed, max_new_tokens=budget, **more)
            assert case.is_valid(text), (budget, seed, text)


def test_a_wide_budget_changes_no_greedy_text() -> None:
    for case in CASES.values():
        plain = run(GrammarLogitsProcessor(case.constraint, VOCABULARY))
        assert run(GrammarLogitsProcessor(case.constraint, VOCABULARY, max_new_tokens=BUDGET)) == plain


def test_a_budget_that_nothing_fits_in_is_refused() -> None:
    with pytest.raises(IncompleteOutputError, match="Raise it to at least 3"):
        GrammarLogitsProcessor(structgen.choice(["ab ab"]), VOCABULARY, max_new_tokens=2)


# Whatever comes.


@pytest.mark.full
def test_random_constraints_in_random_ways() -> None:
    rng = random.Random(11)
    for round_ in range(25):
        name, seed = rng.choice(list(CASES)), rng.randrange(1000)
        options: dict[str, Any] = {"do_sample": rng.random() < 0.7, "top_k": rng.choice([0, 5]), "temperature": 1.5}
        if not options["do_sample"]:
            options = {"do_sample": False}
        way = rng.choice(["batch", "beams", "sequences", "lookup", "assistant"])
        prompts = PROMPTS if way in ("batch", "beams") else one(rng.randrange(3))
        if way == "beams":
            options["num_beams"] = 3
        elif way == "sequences" and options["do_sample"]:
            options["num_return_sequences"] = 3
        elif way == "lookup":
            options["prompt_lookup_num_tokens"] = rng.randrange(1, 6)
        elif way == "assistant":
            options["assistant_model"] = llama(rng.randrange(3))
        budget = rng.choice([None, 24, 40])
        processor = GrammarLogitsProcessor(CASES[name].constraint, VOCABULARY, max_new_tokens=budget)
        for text in run(processor, prompts, seed, max_new_tokens=budget or 200, **options):
            assert CASES[name].is_valid(text), (round_, name, way, seed, budget, text)


# What is refused.


def test_a_real_tokenizer_and_padded_logits() -> None:
    made = tokenizer()
    processor = GrammarLogitsProcessor(structgen.choice(["yes please", "no"]), made, eos_token_ids=[0, 1])
    prompt = made("ab = 12", return_tensors="pt")
    out = llama().generate(
        input_ids=prompt["input_ids"], attention_mask=prompt["attention_mask"], logits_processor=[processor],
        max_new_tokens=30, do_sample=False, eos_token_id=[0, 1], pad_token_id=2,
    )  # fmt: skip
    assert made.decode(out[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True) in ("yes please", "no")


def test_wrong_choices_say_what_to_do() -> None:
    constraint = CASES["choice"].constraint
    with pytest.raises(TokenizerError, match="pass its tokenizer"):
        GrammarLogitsProcessor(constraint, llama())
    with pytest.raises(TokenizerError, match="AutoTokenizer"):
        GrammarLogitsProcessor(constraint, "HuggingFaceTB/SmolLM2-135M")
    with pytest.raises(TokenizerError, match="no tokenizer that structgen can read"):
        GrammarLogitsProcessor(constraint, object())
    with pytest.raises(OptionsError, match="width of the model's logits"):
        GrammarLogitsProcessor(constraint, VOCABULARY, 100)
    with pytest.raises(OptionsError, match="vocab_size must be an integer"):
        GrammarLogitsProcessor(constraint, VOCABULARY, "wide")  # type: ignore[arg-type]
    with pytest.raises(ConstraintError, match="list of constraints is empty"):
        GrammarLogitsProcessor([], VOCABULARY)
    with pytest.raises(TokenizerError, match="pass the tokenizer of this model"):  # of a model with fewer tokens
        GrammarLogitsProcessor(constraint, VOCABULARY)(torch.tensor([[5]]), torch.zeros(1, 90))
    with pytest.raises(TokenizerError, match="the prompt has the token 5000"):  # of a model with more
        GrammarLogitsProcessor(constraint, VOCABULARY)(torch.tensor([[5000]]), torch.zeros(1, 9000))
    with pytest.raises(ConstraintError, match="2 constraints for 3 sequences"):
        run(GrammarLogitsProcessor([constraint, None], VOCABULARY))
    with pytest.raises(ConstraintError, match="each 2 that lie side by side are not of one prompt"):
        run(GrammarLogitsProcessor([constraint, None], VOCABULARY), ids("a", "b", "c", "d"))


def test_a_vocabulary_without_the_bytes_is_told() -> None:
    poor = structgen.Vocabulary([None, b"a", b"b"], eos_token_ids=0)
    with pytest.raises((ConstraintError, GenerationError)):
        GrammarLogitsProcessor(structgen.choice(["xyz"]), poor)(torch.tensor([[1]]), torch.zeros(1, 3))
