"""Beam, best-first and exact search against the list of all outputs, and against transformers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import structgen
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import IncompleteOutputError, OptionsError
from structgen.generation.decoding.hypothesis import Hypothesis, Rules
from structgen.generation.models.prefix_reader import BatchReader, BranchReader, make_reader
from structgen.generation.models.tiny import TinyModel
from structgen.generation.search.beam import Beam
from structgen.generation.search.best_first import BestFirst
from structgen.generation.search.exact import Exact
from structgen.generation.search.method import Method
from structgen.generation.search.results import SearchOutcome
from structgen.generation.search.scores import REGULARISERS
from structgen.generation.target.results import Budget
from tests.generation.search.small_worlds import PROMPT, VOCABULARY, World, gap_of, tokens_of, world
from tests.many import cases

ALL = [pytest.param(seed, marks=() if seed < 8 else pytest.mark.full) for seed in cases(200, 20)]


def ordered(made: World, penalty: float = 0.0, kind: int = 0) -> list[tuple[float, tuple[int, ...]]]:
    scores = [(pair[kind] / (len(tokens) + 1) ** penalty, tokens) for tokens, pair in made.outputs.items()]
    return sorted(scores, key=lambda one: -one[0])


def check_valid(made: World, outcome: SearchOutcome) -> None:
    for _, node in outcome.finished:
        tokens = node.hypothesis.tokens
        assert tokens in made.outputs
        assert (node.log_prob, node.log_local) == pytest.approx(made.outputs[tokens], abs=1e-5)


@pytest.mark.parametrize("case", ALL)
def test_exact_finds_the_best_of_all_outputs(case: int) -> None:
    made = world(case)
    for penalty in (0.0, 0.7):
        for n in (1, 3):
            method = Exact(length_penalty=penalty, merge="none", read_ahead=1 + case % 4, num_beams=case % 3)
            outcome = made.run(method, n)
            check_valid(made, outcome)
            best = ordered(made, penalty)[:n]
            given = [score for score, _ in outcome.finished][: len(best)]
            assert given == pytest.approx([score for score, _ in best], abs=1e-5)
            assert outcome.gap == 0


@pytest.mark.parametrize("case", ALL)
def test_best_first_is_beam_search_that_never_stops_early(case: int) -> None:
    made = world(case, limit=6)
    for size, penalty in ((1, 1.0), (2, 0.0), (3, 1.0), (5, 0.5)):
        beam = made.run(Beam(num_beams=size, length_penalty=penalty, early_stopping="never"), 1)
        first = made.run(BestFirst(num_beams=size, length_penalty=penalty, read_ahead=1 + case % 3), 1)
        check_valid(made, beam)
        if gap_of([score for score, _ in beam.finished]) > 1e-4:
            assert tokens_of(first) == tokens_of(beam)


@pytest.mark.parametrize("case", ALL)
def test_a_huge_beam_is_the_list_of_all_outputs(case: int) -> None:
    made = world(case, limit=4)
    for kind, score in enumerate(("global", "local")):
        outcome = made.run(Beam(num_beams=4096, score=score, early_stopping="never", length_penalty=0.0))  # type: ignore[arg-type]
        best = sorted((pair[kind] for pair in made.known.values()), reverse=True)
        assert [one for one, _ in outcome.finished] == pytest.approx(best, abs=1e-5)
        assert set(tokens_of(outcome)) == set(made.known)


@pytest.mark.parametrize("uid", REGULARISERS)
@pytest.mark.parametrize("case", cases(200, 6))
def test_regularisers_are_what_brute_force_says(uid: str, case: int) -> None:
    made = world(case)

    def regularised(tokens: tuple[int, ...]) -> float:
        u, least = [], []
        for place in range(len(tokens) + 1):
            allowed, log_probs = made.choices(tokens[:place]), made.log_probs(tokens[:place])
            if len(allowed) > 1:
                u.append(-float(log_probs[[*tokens, 0][place]]))
                least.append(min(-float(log_probs[token]) for token in allowed))
        if not u:
            return 0.0
        mean = sum(u) / len(u)
        return {
            "greedy": sum((one - low) ** 2 for one, low in zip(u, least, strict=True)),
            "variance": sum((one - mean) ** 2 for one in u) / len(u),
            "local": sum((one - before) ** 2 for one, before in zip(u, [0, *u], strict=False)) / len(u),
            "max": max(u),
            "squared": sum(one * one for one in u),
        }[uid]

    scores = {tokens: pair[0] - 0.5 * regularised(tokens) for tokens, pair in made.outputs.items()}
    options: dict[str, Any] = {"uid": uid, "uid_weight": 0.5, "length_penalty": 0.0}
    outcome = made.run(Beam(num_beams=400, early_stopping="never", **options))
    for score, node in outcome.finished:
        assert score == pytest.approx(scores[node.hypothesis.tokens], abs=1e-4)
    if REGULARISERS[uid].rises:
        exact = made.run(Exact(**options))
        assert exact.finished[0][0] == pytest.approx(max(scores.values()), abs=1e-4)
    else:
        with pytest.raises(OptionsError, match="may fall"):
            Exact(**options)


@pytest.mark.parametrize("case", cases(200, 12))
def test_one_beam_is_greedy(case: int) -> None:
    """Under the greedy regulariser with a great weight too."""
    made, tokens = World(world(case).grammar, world(case, scale=3.0).model, 30), tuple[int, ...]()
    while (best := max(made.allowed(tokens), key=lambda token: made.log_probs(tokens)[token])) != 0:
        tokens = (*tokens, best)
        if len(tokens) == 20:
            return
    assert tokens_of(made.run(Beam(num_beams=1, early_stopping=True))) == [tokens]
    heavy = Beam(num_beams=1, early_stopping=True, uid="greedy", uid_weight=1e6)
    assert tokens_of(made.run(heavy)) == [tokens]


def shortest(made: World) -> int:
    return min(map(len, made.outputs))


@pytest.mark.parametrize("case", cases(200, 12))
@pytest.mark.parametrize(
    "method", [Beam(), BestFirst(), Exact(), Beam(num_beams=1)], ids=lambda one: type(one).__name__
)
def test_budgets_are_kept_from_the_shortest_output_on(method: Method, case: int) -> None:
    made = world(case)
    for limit in range(shortest(made), 6):
        narrow = World(made.grammar, made.model, limit)
        if not narrow.closes:
            continue
        outcome = narrow.run(method)
        assert outcome.finished
        check_valid(narrow, outcome)


def test_budgets_of_the_model_are_kept_and_the_gap_bounds_what_is_missed() -> None:
    made = World(structgen.compile_regex("[abc]{6}", VOCABULARY), TinyModel(6, scale=0.3), 6)
    best = ordered(made)[0][0]
    for tokens in (10, 40, 100, 10_000):
        method = Exact(budget=Budget(model_tokens=tokens), num_beams=1)
        outcome = made.run(method)
        assert outcome.gap is not None
        assert outcome.finished[0][0] <= best + 1e-5 <= outcome.finished[0][0] + outcome.gap + 2e-5
        assert (outcome.stopped_by is None) == (outcome.gap == 0)
    assert outcome.gap == 0


def test_equal_prefixes_are_read_once_and_forced_tokens_with_the_one_before() -> None:
    made = World(structgen.compile_regex("a(bc){3}[ab]c", VOCABULARY), TinyModel(6), 12)
    asked: list[tuple[int, ...]] = []
    space = made.space(Beam())
    read = space.reader.read
    space.reader.read = lambda prefixes: (asked.extend(prefixes), read(prefixes))[1]  # type: ignore[method-assign, func-returns-value]
    Beam().run(space, 1, np.random.default_rng(0))
    assert len(asked) == len(set(asked))
    assert space.reader.calls < 12


def test_any_reader_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    made = world(3, limit=8)
    readers: list[Any] = [make_reader, lambda model, prompt, _, states=False: BatchReader(model, prompt), branches]
    for method in (Beam(), BestFirst(), Exact(length_penalty=0.5)):
        outcomes = []
        for kind in readers:
            monkeypatch.setattr("tests.generation.search.small_worlds.make_reader", kind)
            outcomes.append([(score, node.hypothesis.tokens) for score, node in made.run(method, 2).finished])
        assert outcomes[0] == outcomes[1] == outcomes[2]


def branches(model: TinyModel, prompt: list[int], _: int, *, states: bool) -> BranchReader:
    return BranchReader(model.ragged_reader(), prompt)


def test_stop_strings_end_outputs_that_are_whole() -> None:
    made = World(structgen.compile_regex("(a|ab|abc)b?c?", VOCABULARY), TinyModel(6, scale=0.1), 5)
    for _, node in made.run(Beam(num_beams=8), stop=("c",)).finished:
        assert "c" not in node.hypothesis.text and node.hypothesis.text in ("a", "ab", "abb")


def test_what_does_not_fit_says_so() -> None:
    root = Hypothesis.root(Rules(structgen.compile_regex("a{9}", VOCABULARY)), 5)
    with pytest.raises(IncompleteOutputError, match="max_new_tokens to at least 9"):
        root.check_closes()


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (Beam, {"num_beams": 0}, "num_beams"),
        (Beam, {"early_stopping": "ever"}, "early_stopping"),
        (Beam, {"patience": 2}, "patience says"),
        (Beam, {"score": "both"}, "score"),
        (Beam, {"uid": "even"}, "uid"),
        (Beam, {"uid_weight": math.nan}, "uid_weight"),
        (Beam, {"merge": "all"}, "merge"),
        (Beam, {"length_penalty": "1"}, "length_penalty"),
        (BestFirst, {"length_penalty": -1.0}, "use method='beam'"),
        (Exact, {"budget": 5}, "budget"),
        (Exact, {"uid": "variance", "uid_weight": 1.0}, "may fall"),
    ],
)
def test_bad_options_are_refused_by_name(kind: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionsError, match=message):
        kind(**options)


@pytest.fixture(scope="module")
def llama() -> Any:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=6, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.8,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


@pytest.mark.full
@pytest.mark.parametrize("case", cases(200, 20))
def test_beams_are_those_of_transformers(llama: Any, case: int) -> None:
    """Where these end whole: transformers goes on with beams that lead nowhere, and cuts others at the end."""
    import torch

    from structgen.generation.models.transformers_model import TransformersModel

    made = World(world(case).grammar, TransformersModel(llama), 12)
    size, penalty = 1 + case % 4, (1.0, 0.0, 0.6, -0.5)[case // 4 % 4]
    stopping: Any = (True, False, "never")[case % 3]

    def allowed(_: int, ids: Any) -> list[int]:
        return made.allowed(tuple(ids.tolist()[len(PROMPT) :])) if 0 not in ids.tolist() else [0]

    theirs = llama.generate(
        torch.tensor([PROMPT]), attention_mask=torch.ones(1, 2, dtype=torch.long), num_beams=size, eos_token_id=0,
        pad_token_id=0, length_penalty=penalty, early_stopping=stopping, max_length=len(PROMPT) + 13, do_sample=False,
        num_return_sequences=size, prefix_allowed_tokens_fn=allowed, output_scores=True, return_dict_in_generate=True,
    )  # fmt: skip
    outcome = made.run(Beam(num_beams=size, length_penalty=penalty, early_stopping=stopping))
    check_some_valid(made, outcome)
    if size == 1:
        sequences = [ids[len(PROMPT) :] for ids in theirs.sequences.tolist()]
        if 0 in sequences[0]:
            assert tokens_of(outcome)[0] == tuple(sequences[0][: sequences[0].index(0)])
        return
    scores = theirs.sequences_scores.tolist()
    ended = [(score, ids[len(PROMPT) :]) for score, ids in zip(scores, theirs.sequences.tolist(), strict=True)]
    ended = [(score, ids) for score, ids in ended if 0 in ids and score > -1e8]
    if len(ended) < size or gap_of([score for score, _ in ended]) < 1e-4:
        return
    assert tokens_of(outcome)[:size] == [tuple(ids[: ids.index(0)]) for _, ids in ended]
    assert [score for score, _ in outcome.finished][:size] == pytest.approx([score for score, _ in ended], abs=1e-4)


def check_some_valid(made: World, outcome: SearchOutcome) -> None:
    assert outcome.finished
    for _, node in outcome.finished:
        matcher = made.grammar.matcher()
        assert all(matcher.accept_token(token) for token in node.hypothesis.tokens) and matcher.is_accepting()
        assert len(node.hypothesis.tokens) <= made.limit


@pytest.mark.full
def test_a_large_vocabulary_is_cut_and_read_again() -> None:
    """More may follow than is kept: what is read again goes on where that ended."""
    tokens = [
        None,
        *(bytes([byte]) for byte in range(256)),
        *(bytes([97 + a, 97 + b]) for a in range(26) for b in range(26)),
    ]
    vocabulary = Vocabulary(tokens, eos_token_ids=0)
    made = World(structgen.compile_regex("[a-z]{2}", vocabulary), TinyModel(len(tokens), scale=0.2), 2, vocabulary)
    outcome = made.run(Exact(merge="none", num_beams=0), 700)
    best = ordered(made)[:700]
    assert [score for score, _ in outcome.finished][:700] == pytest.approx([score for score, _ in best], abs=1e-4)
