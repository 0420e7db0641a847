"""Votes over a model whose distribution is summed exactly, and drafts that are shown to a second pass."""

from __future__ import annotations

import json
import random
from typing import Any, Literal

import pydantic
import pytest

import structgen
from structgen.errors import IncompleteOutputError, OptionsError, RefusedValueError
from structgen.generation.fields.asking import Fields
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from structgen.generation.options import GenerationOptions
from structgen.generation.refining import Refine, first_json, second_prompt
from structgen.generation.target.results import Budget
from tests.fakes import CharTokenizer, vocabulary
from tests.many import cases

SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": ["low", "high", "lower"]}, "b": {"type": "boolean"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def generator() -> Generator:
    words = vocabulary(b'"l', b"ow", b"er", b": ", b'{"')
    model = TinyModel(words.size, seed=5, order=3, scale=0.7)
    return Generator(model, CharTokenizer(), vocabulary=words)


ONE = structgen.choice(["low", "high", "lower"])


@pytest.mark.parametrize("draw, n", [("iid", len(cases(4000, 400))), ("distinct", 10_000)])
def test_shares_are_the_probabilities(generator: Generator, draw: Any, n: int) -> None:
    """Of independent draws the masked ones, up to chance; of all distinct ones the model's own, exactly."""
    exact = generator.generate("x", ONE, schema_in_prompt=False, fields=Fields(eps=1e-12, model_tokens=5000))
    belief, vote = exact.fields[""].value, generator.vote("x", ONE, n=n, draw=draw, seed=1, schema_in_prompt=False)
    assert vote.failed == 0 and belief is not None
    for value, share in vote.fields[""].values:
        option = belief.option(value)
        assert option is not None
        if draw == "iid":
            assert abs(share - option.local) < 4 * (0.25 / n) ** 0.5
        else:
            assert share == pytest.approx(option.prob, abs=1e-9)
    if draw == "distinct":
        assert len({one.token_ids for one in vote.results}) == len(vote.results) < n
        assert vote.value == belief.options[0].value


def test_a_mixture_is_an_answer_only_if_the_constraint_takes_it(generator: Generator) -> None:
    class Pair(pydantic.BaseModel):
        a: Literal[1, 2]
        b: Literal[1, 2]

    class Equal(Pair):
        @pydantic.model_validator(mode="after")
        def check(self) -> Equal:
            if self.a != self.b:
                raise ValueError("a is b")
            return self

    for seed in cases(40, 6):
        vote = generator.vote("x", Equal, n=9, seed=100 * seed, schema_in_prompt=False)
        assert isinstance(vote.value, Equal) and vote.failed + len(vote.results) == 9
        assert json.loads(vote.text) == vote.value.model_dump()
        free = generator.vote("x", Pair, n=3, seed=seed, schema_in_prompt=False)
        assert json.loads(free.text) == free.value.model_dump()


def test_of_outputs_that_think_the_answer_votes(generator: Generator) -> None:
    """Their thoughts differ."""
    ways: tuple[tuple[Any, Any], ...] = ((ONE, "value"), (structgen.json_schema(SCHEMA), "fields"))
    for answer, by in ways:
        vote = generator.vote("x", structgen.think(answer, max_think_tokens=4), n=9, by=by, seed=1, max_new_tokens=80)
        answers = [each.value for each in vote.results]
        assert vote.text.count("think") == 0 and vote.value in answers
        assert vote.share == pytest.approx(answers.count(vote.value) / len(answers)) and vote.share > 0.2
    assert vote.fields.keys() == {"/a", "/b"}
    with pytest.raises(OptionsError, match="constraint"):
        generator.vote("x", structgen.think())


def test_distinct_draws_that_fail_are_counted_or_named(generator: Generator) -> None:
    class Odd(pydantic.RootModel[Literal[1, 2, 3, 4]]):
        @pydantic.model_validator(mode="after")
        def is_odd(self) -> Odd:
            if self.root % 2 == 0:
                raise ValueError("even")
            return self

    vote = generator.vote("x", Odd, n=4, draw="distinct", seed=1, schema_in_prompt=False)
    assert (len(vote.results), vote.failed) == (2, 2)
    budget = Budget(model_tokens=1)
    with pytest.raises(IncompleteOutputError, match="budget"):
        generator.vote("x", SCHEMA, n=3, draw="distinct", seed=1, budget=budget)


def test_votes_that_cannot_be(generator: Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    class Never(pydantic.RootModel[Literal[1, 2]]):
        @pydantic.model_validator(mode="after")
        def refuse(self) -> Never:
            raise ValueError("never")

    with pytest.raises(RefusedValueError):
        generator.vote("x", Never, n=3, seed=1)
    wrong: list[dict[str, Any]] = [{"n": 0}, {"by": "mean"}, {"draw": "best"}, {"draw": "distinct", "temperature": 1.0}]
    for options in [*wrong, {"utility": 5}]:
        with pytest.raises(OptionsError):
            generator.vote("x", SCHEMA, **options)
    with monkeypatch.context() as patched:
        patched.setattr(generator, "batch", lambda *_, **__: pytest.fail("drawn before the options were read"))
        for options in ({"by": "mean"}, {"utility": 5}):
            with pytest.raises(OptionsError):
                generator.vote("x", SCHEMA, **options)
    with pytest.raises(OptionsError, match="constraint"):
        generator.vote("x", None)


@pytest.mark.parametrize("how", [Refine(), Refine("json", "both"), Refine(examples=[("t", {"a": "low"})])])
def test_the_second_pass_is_what_its_prompt_gives(generator: Generator, how: Refine) -> None:
    how = Refine(how.draft, how.show, how.examples, max_draft_tokens=20)
    result = generator.refine("x", SCHEMA, how=how, max_new_tokens=60)
    shown = second_prompt("x", result.draft, structgen.json_schema(SCHEMA), how)
    again = generator.generate(shown, SCHEMA, max_new_tokens=60)
    assert (result.text, result.token_ids, result.value) == (again.text, again.token_ids, again.value)
    given = generator.refine("x", SCHEMA, text=result.draft, how=how, max_new_tokens=60)
    assert given.text == result.text and given.draft == result.draft


@pytest.mark.parametrize("seed", cases(200, 10))
def test_a_draft_that_satisfies_the_constraint_is_the_answer(
    generator: Generator, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any spelling; else, and where more is asked for than a value, there is a second pass."""
    rng = random.Random(seed)
    value = generator.generate("x", SCHEMA, temperature=1.0, seed=seed, max_new_tokens=60).value
    draft = json.dumps(value, indent=rng.choice([None, 1]), separators=rng.choice([None, (",", ":")]))
    monkeypatch.setattr("structgen.generation.refining._drafted", lambda *_: draft)
    result = generator.refine("x", SCHEMA, how=Refine("json"), max_new_tokens=60)
    assert result.unchanged and result.value == value == json.loads(result.text) and not result.stats.target_forwards
    matcher = structgen.json_schema(SCHEMA).compile(generator.vocabulary).matcher()
    assert all(map(matcher.accept_token, result.token_ids)) and matcher.is_accepting()
    shorter = len(result.token_ids) - 1
    asked: list[GenerationOptions] = [
        {"log_mass": True, "max_new_tokens": 60}, {"max_new_tokens": shorter}, {"fields": True, "max_new_tokens": 60},
    ]  # fmt: skip
    for options in asked:
        try:
            again = generator.refine("x", SCHEMA, how=Refine("json"), **options)
        except structgen.IncompleteOutputError:
            continue
        assert not again.unchanged and again.stats.target_forwards
    assert not generator.refine("x", SCHEMA, text=draft, how=Refine("json"), max_new_tokens=60).unchanged
    wrong = json.dumps({**value, "other": 1})
    monkeypatch.setattr("structgen.generation.refining._drafted", lambda *_: wrong)
    assert not generator.refine("x", SCHEMA, how=Refine("json"), max_new_tokens=60).unchanged


@pytest.mark.parametrize(
    "draft, expected",
    [
        ('{\n  "a": "low",\n  "b": true\n}', '{"a": "low", "b": true}'), ("as prose", "as prose"),
        (r'{"a":"\ud800"}', r'{"a":"\ud800"}'), ('{"a":\n1e999}', '{"a":\n1e999}'),
    ],
)  # fmt: skip
def test_the_prediction_is_spaced_as_outputs_are(
    generator: Generator, draft: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever can be spelled so without loss; what cannot is what it was."""
    predicted, generate = list[Any](), generator.generate

    def recorded(*arguments: Any, **options: Any) -> Any:
        predicted.append(options["prediction"])
        return generate(*arguments, **options)

    monkeypatch.setattr(generator, "generate", recorded)
    for text in (draft, None):
        monkeypatch.setattr("structgen.generation.refining._drafted", lambda *_: draft)
        how = Refine("prose" if draft.startswith("{\n") else "json")
        generator.refine("x", SCHEMA, text=text, how=how, max_new_tokens=60)
    assert predicted == [expected, expected]


@pytest.mark.parametrize(
    "text, expected",
    [
        ('Sure: ```json\n{"a": [1, "}"]} \n``` and', '{"a": [1, "}"]}'), ("[1, {}] x", "[1, {}]"), ("none", None),
        ('{"a": 1', None), ('x {"a": {"b": 2}', None), ("é [[]]", "[[]]"),
    ],
)  # fmt: skip
def test_the_first_whole_json(text: str, expected: str | None) -> None:
    assert first_json(text) == expected


def test_refinements_that_cannot_be(generator: Generator) -> None:
    wrong: list[dict[str, Any]] = [{"draft": "verse"}, {"examples": ["x"]}, {"max_draft_tokens": 0}, {"drafter": 3}]
    for options in wrong:
        with pytest.raises(OptionsError):
            Refine(**options)
    more: list[dict[str, Any]] = [{"constraint": None}, {"text": 3}, {"how": "json"}, {"temprature": 1}]
    for options in more:
        with pytest.raises(OptionsError):
            generator.refine("x", **{"constraint": SCHEMA, **options})
