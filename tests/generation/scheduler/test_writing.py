"""Outputs over a tiny model: soundness, the exact local distribution, forcing, steering, stop strings."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError, IncompleteOutputError
from structgen.generation.decoding.output import Output
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import SamplingParams
from tests.fakes import FakeMatcher, NestedMatcher, WordsMatcher, vocabulary
from tests.generation.decoding.writing import decode

VOCABULARY = vocabulary(b"ab", b"bc", b"[[", b"]]", b"xx", eos=1)
PROMPT = [5, 6]


def write(
    matcher: FakeMatcher | None,
    *,
    model: TinyModel | None = None,
    params: SamplingParams | None = None,
    budget: int = 50,
    stop: tuple[str, ...] = (),
    vocabulary: Vocabulary = VOCABULARY,
) -> Output:
    output = Output(vocabulary, matcher, params or SamplingParams(), max_new_tokens=budget, stop=stop)
    for _ in decode(model or TinyModel(vocabulary.size), [PROMPT], [output]):
        pass
    return output


def test_outputs_are_in_the_language_and_parameters_reproduce() -> None:
    words = [b"abc", b"abd", b"b", b"bcbc", b"xyz"]
    for seed in range(30):
        params = SamplingParams(1.0, seed=seed)
        output = write(WordsMatcher(VOCABULARY, words), params=params)
        assert output.text.encode() in words
        assert output.finish_reason == "stop"
        assert b"".join(VOCABULARY.tokens[token] for token in output.token_ids) == output.text.encode()
        assert write(WordsMatcher(VOCABULARY, words), params=params).token_ids == output.token_ids


def _local_distribution(words: list[bytes], model: TinyModel) -> dict[tuple[int, ...], float]:
    """Every token sequence that spells a word, with its probability under the local target, by enumeration."""
    done: dict[tuple[int, ...], float] = {}
    open_: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while open_:
        ids, prob = open_.pop()
        matcher = WordsMatcher(VOCABULARY, words)
        for token in ids:
            assert matcher.accept_token(token)
        weights = np.exp(model.prefill([PROMPT + list(ids)])[0][0].astype(float))
        legal = [t for t in range(VOCABULARY.size) if WordsMatcher.accept_token(_copy(matcher), t)]
        for token in legal:
            share = prob * weights[token] / sum(weights[t] for t in legal)
            if token in VOCABULARY.eos_token_ids:
                done[ids] = done.get(ids, 0.0) + share
            else:
                open_.append(((*ids, token), share))
    return done


def _copy(matcher: WordsMatcher) -> WordsMatcher:
    twin = WordsMatcher(matcher.vocabulary, matcher.words)
    twin.history = list(matcher.history)
    return twin


@pytest.mark.full
def test_samples_follow_the_local_distribution() -> None:
    """G-test over all token sequences: 1,500 samples, fixed seeds, 99.9 % quantile of chi²."""
    words = [b"ab", b"abc", b"bc", b"b"]
    model = TinyModel(VOCABULARY.size, seed=3, scale=1.0)
    exact = _local_distribution(words, model)
    assert math.isclose(sum(exact.values()), 1)
    counts: dict[tuple[int, ...], int] = dict.fromkeys(exact, 0)
    samples = 1500
    for seed in range(samples):
        output = write(WordsMatcher(VOCABULARY, words), model=model, params=SamplingParams(1.0, seed=seed))
        counts[tuple(output.token_ids)] += 1
    statistic = 2 * sum(n * math.log(n / (exact[ids] * samples)) for ids, n in counts.items() if n)
    quantile = {5: 20.52, 6: 22.46, 7: 24.32, 8: 26.12}[len(exact) - 1]
    assert statistic < quantile


def test_log_prob_is_that_of_the_local_distribution_whatever_the_filters() -> None:
    words = [b"ab", b"abc", b"bc", b"b"]
    model = TinyModel(VOCABULARY.size, seed=3)
    exact = _local_distribution(words, model)
    for seed in range(10):
        params = SamplingParams(1.7, top_k=2, seed=seed)
        output = write(WordsMatcher(VOCABULARY, words), model=model, params=params)
        assert math.isclose(math.exp(output.log_prob), exact[tuple(output.token_ids)], rel_tol=1e-6)


def test_forced_tokens_cost_no_forward() -> None:
    model = TinyModel(VOCABULARY.size)
    output = write(WordsMatcher(VOCABULARY, [b"aXXXXb1", b"aXXXXb2"]), model=model)
    assert output.stats.forced_tokens == 6 and output.stats.output_tokens == 7
    assert output.stats.target_forwards == model.forwards == 1


def test_a_single_word_needs_no_model_at_all() -> None:
    model = TinyModel(VOCABULARY.size)
    output = write(WordsMatcher(VOCABULARY, [b"only"]), model=model)
    assert (output.text, output.finish_reason, model.forwards) == ("only", "stop", 0)


@pytest.mark.full
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_every_budget_gives_a_whole_output_or_an_error(temperature: float) -> None:
    """The model loves openers, so that every output would run on for ever if it were not steered."""
    bias = np.zeros(VOCABULARY.size)
    for opener in (b"[", b"<", b"[[", b"x"):
        bias[VOCABULARY.tokens.index(opener)] = 12.0
    reasons = set()
    for budget, seed in itertools.product([*range(1, 20), 33], range(2)):
        model = TinyModel(VOCABULARY.size, bias=bias, seed=seed)
        params = SamplingParams(temperature, seed=seed)
        output = write(NestedMatcher(VOCABULARY), model=model, params=params, budget=budget)
        assert NestedMatcher(VOCABULARY).completion(output.text.encode()) == b""
        assert output.stats.output_tokens <= budget
        reasons.add(output.finish_reason)
    assert reasons == {"length"}


def test_steering_uses_long_tokens_when_bytes_do_not_fit() -> None:
    """The closer has 12 bytes; as one token it fits where its bytes would not."""
    whole = vocabulary(NestedMatcher.CLOSER)
    bias = np.zeros(whole.size)
    bias[whole.tokens.index(b"<")] = 50.0
    output = write(NestedMatcher(whole), model=TinyModel(whole.size, bias=bias), budget=5, vocabulary=whole)
    assert output.text == "<</longcloser>/longcloser>."
    assert output.finish_reason == "length"


def test_steering_finds_the_way_without_single_bytes() -> None:
    coarse = Vocabulary([None, b"[", b"]", b"].", b"x", b"."], eos_token_ids=0)
    bias = np.array([0, 30.0, 0, 0, 0, 0])
    for budget in range(1, 12):
        output = write(NestedMatcher(coarse), model=TinyModel(6, bias=bias), budget=budget, vocabulary=coarse)
        assert NestedMatcher(coarse).completion(output.text.encode()) == b""
        assert output.stats.output_tokens <= budget


def test_a_budget_below_the_shortest_output_raises_at_once() -> None:
    with pytest.raises(IncompleteOutputError, match="Raise max_new_tokens to at least 4") as caught:
        write(WordsMatcher(VOCABULARY, [b"aaaa"]), budget=3)
    assert caught.value.partial == ""


def test_several_end_ids_count_as_one_forced_end() -> None:
    twin = vocabulary(eos=2)
    model = TinyModel(twin.size)
    assert write(WordsMatcher(twin, [b"only"]), model=model, vocabulary=twin).finish_reason == "stop"
    assert model.forwards == 0


def test_an_empty_mask_raises_with_the_state() -> None:
    narrow = Vocabulary([None, b"a"], eos_token_ids=0)
    with pytest.raises(GenerationError, match=r"allows no token after 1 tokens, text 'a'"):
        write(_Lying(narrow, [b"ab"]), vocabulary=narrow)


class _Lying(WordsMatcher):
    """Claims a completion that its vocabulary cannot spell."""

    def shortest_completion(self) -> bytes:
        return b"a"


def test_mask_and_matcher_that_disagree_raise() -> None:
    class Disagreeing(WordsMatcher):
        def accept_token(self, token_id: int) -> bool:
            return False

    with pytest.raises(GenerationError, match="the matcher refuses it"):
        write(Disagreeing(VOCABULARY, [b"abc", b"b"]))


def test_free_text_runs_to_its_budget_or_end() -> None:
    output = write(None, budget=7, params=SamplingParams(1.0, seed=1))
    assert output.finish_reason == "length" and output.stats.output_tokens == 7
    bias = np.zeros(VOCABULARY.size)
    bias[0] = 99.0
    output = write(None, model=TinyModel(VOCABULARY.size, bias=bias))
    assert (output.text, output.finish_reason, output.token_ids) == ("", "stop", [])


def test_stop_string_cuts_free_text() -> None:
    full = write(None, budget=30, params=SamplingParams(1.0, seed=4)).text
    stop = full[10:13]
    output = write(None, budget=30, params=SamplingParams(1.0, seed=4), stop=("never", stop))
    assert output.text == full[: full.index(stop)] and output.finish_reason == "stop"


def test_stop_string_under_a_constraint_needs_a_whole_output() -> None:
    words = [b"yes", b"yes-and-no"]
    bias = np.zeros(VOCABULARY.size)
    bias[VOCABULARY.tokens.index(b"-")] = 99.0
    model = TinyModel(VOCABULARY.size, bias=bias)
    assert write(WordsMatcher(VOCABULARY, words), model=model, stop=("-",)).text == "yes"
    with pytest.raises(IncompleteOutputError, match=r"stop string.*Leave out stop strings") as caught:
        write(WordsMatcher(VOCABULARY, words), model=model, stop=("and",))
    assert caught.value.partial == "yes-"


def test_settled_text_never_takes_back() -> None:
    """What is shown early is a prefix of what is shown later, with a stop string and characters cut in two."""
    tokens = [None, *(bytes([byte]) for byte in "añ€😀".encode()), b"a"]
    vocab = Vocabulary(tokens, eos_token_ids=0)
    for seed in range(20):
        output = Output(vocab, None, SamplingParams(1.0, seed=seed), max_new_tokens=40, stop=("aaa", "ñ€"))
        shown = [""]
        for _ in decode(TinyModel(vocab.size), [PROMPT], [output]):
            shown.append(output.shown(output.settled_data()))
        assert all(later.startswith(early) for early, later in itertools.pairwise(shown))
        assert shown[-1] == output.text


def test_batches_are_what_each_row_is_alone() -> None:
    def fresh(seed: int) -> Output:
        matcher = [
            WordsMatcher(VOCABULARY, [b"abcabcabc1", b"abcabcabc2", b"x"]),
            NestedMatcher(VOCABULARY),
            None,
            WordsMatcher(VOCABULARY, [b"a", b"b"]),
        ][seed % 4]
        return Output(VOCABULARY, matcher, SamplingParams(1.0, seed=seed), max_new_tokens=6 + seed * 3)

    model = TinyModel(VOCABULARY.size)
    prompts = [[3], [4, 5, 6, 7], [8, 9], [1, 2, 3], [4], [7, 7], [2], [3, 3]]
    together = [fresh(seed) for seed in range(8)]
    for _ in decode(model, prompts, together):
        pass
    for seed, output in enumerate(together):
        alone = fresh(seed)
        for _ in decode(model, [prompts[seed]], [alone]):
            pass
        assert (alone.token_ids, alone.log_prob) == (output.token_ids, output.log_prob)
        assert alone.finish_reason == output.finish_reason
    assert max(output.stats.target_forwards for output in together) < sum(o.stats.output_tokens for o in together)
