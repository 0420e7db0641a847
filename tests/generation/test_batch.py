"""Batches: results and errors by row, lazy prompts, progress. The oracle is a loop of ``generate``."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from structgen.core.constraints.base import Constraint
from structgen.errors import GenerationError, IncompleteOutputError, OptionsError, SchemaError, StructgenError
from structgen.generation.batch import BatchProgress
from structgen.generation.generator import Generator
from structgen.generation.models.padded_rows import PaddedReader
from structgen.generation.models.tiny import TinyModel
from structgen.generation.results import GenerationResult
from tests.fakes import CharTokenizer, vocabulary, words
from tests.tiny_folder import make_folder

VOCABULARY = vocabulary(b'{"', b'":', eos=1)
OPTIONS: dict[str, Any] = {"temperature": 1.0, "max_new_tokens": 30}


def padded() -> Generator:
    """Rows are read together from the start."""
    model = TinyModel(VOCABULARY.size)
    found = Generator(model, CharTokenizer(eos=1), vocabulary=VOCABULARY)
    found.reader = PaddedReader(model)
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("transformers", reason="transformers is not installed")
    return make_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(params=["padded", "apart"])
def generator(request: pytest.FixtureRequest) -> Generator:
    if request.param == "padded":
        return padded()
    found = Generator(request.getfixturevalue("folder"))
    assert found.reader.reads_apart
    return found


COLOURS = {"enum": ["red", "green", "blue"]}
NUMBERS = {"type": "array", "items": {"type": "integer", "maximum": 99, "minimum": 0}, "maxItems": 6}
PROMPT = 'a colour: "red"'


def outcome(written: Callable[[], GenerationResult]) -> tuple[Any, ...]:
    try:
        result = written()
    except StructgenError as error:
        return type(error).__name__, error.args
    return result.token_ids, result.text, result.finish_reason


def told(row: GenerationResult | StructgenError) -> tuple[Any, ...]:
    return (type(row).__name__, row.args) if isinstance(row, StructgenError) else outcome(lambda: row)


# Rows that are refused at each of the places where one can be, among others that are not.
PROMPTS: list[Any] = [PROMPT, PROMPT, [], PROMPT, "", PROMPT, 7, PROMPT + "s"] + [f"{PROMPT} {n}" for n in range(6)]
CONSTRAINTS: list[Any] = [
    COLOURS,
    {"type": "string", "minLength": 100},  # does not fit in the budget
    COLOURS,  # prompt without messages
    {"type": "what"},  # no schema
    None,
    {"type": "string", "pattern": "a(?=b)c", "minLength": 2},  # nothing satisfies it
    COLOURS,
    NUMBERS,
    *[NUMBERS] * 6,
]


@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_each_row_is_what_a_call_of_its_own_gives(generator: Generator, batch_size: int) -> None:
    rows = generator.batch(
        PROMPTS, CONSTRAINTS, seed=5, batch_size=batch_size, return_exceptions=True, **OPTIONS
    )  # fmt: skip
    pairs = zip(PROMPTS, CONSTRAINTS, strict=True)
    alone = [
        outcome(lambda p=prompt, c=constraint, s=5 + row: generator.generate(p, c, seed=s, **OPTIONS))  # type: ignore[misc]
        for row, (prompt, constraint) in enumerate(pairs)
    ]
    assert [told(row) for row in rows] == alone
    failed = [row for row, result in enumerate(rows) if isinstance(result, StructgenError)]
    assert {1, 2, 3, 5, 6} <= set(failed) and len(failed) < len(rows) / 2
    assert all(rows[row].row == row for row in failed)  # type: ignore[union-attr]


def test_what_is_raised_names_the_row_and_has_the_others(generator: Generator) -> None:
    with pytest.raises(IncompleteOutputError, match=r"^row 1: ") as raised:
        generator.batch(PROMPTS, CONSTRAINTS, seed=5, **OPTIONS)
    error = raised.value
    assert error.row == 1 and error.results[1] is error and len(error.results) == len(PROMPTS)
    in_place = generator.batch(PROMPTS, CONSTRAINTS, seed=5, return_exceptions=True, **OPTIONS)
    assert [told(row) for row in error.results] == [told(row) for row in in_place]
    again = pickle.loads(pickle.dumps(in_place[1]))
    assert (again.row, str(again), again.partial) == (1, str(in_place[1]), in_place[1].partial)  # type: ignore[union-attr]


def test_what_is_wrong_with_the_call_is_raised_at_the_call(generator: Generator) -> None:
    def none() -> Iterator[str]:
        raise AssertionError("no prompt is read")
        yield ""

    for kind, options in (
        (SchemaError, {"constraints": {"type": "what"}}),
        (OptionsError, {"temperature": -1.0}),
        (OptionsError, {"batch_size": 0}),
        (OptionsError, {"seed": 1, "seeds": [1]}),
        (ValueError, {"unknown": 1}),
    ):
        with pytest.raises(kind) as raised:
            generator.stream_batch(none(), **options)
        assert getattr(raised.value, "row", None) is None
    for prompts in ("a prompt", {"role": "user", "content": "a prompt"}, 7, None):
        with pytest.raises(GenerationError, match="several prompts"):
            generator.batch(prompts)  # type: ignore[arg-type]


@pytest.mark.parametrize("batch_size", [1, 4])
def test_endless_prompts_are_read_as_rows_come_free(generator: Generator, batch_size: int) -> None:
    read, done = 0, set[int]()

    def prompts() -> Iterator[str]:
        nonlocal read
        for number in itertools.count():
            assert read - len(done) < batch_size
            read += 1
            yield f"{PROMPT} {number}"

    constraints = itertools.cycle([COLOURS, NUMBERS, {"type": "what"}])
    rows = generator.stream_batch(prompts(), constraints, seed=1, batch_size=batch_size, **OPTIONS)
    for row, result in rows:
        done.add(row)
        assert isinstance(result, SchemaError) == (row % 3 == 2)
        if len(done) == 12:
            break
    rows.close()
    assert max(done) <= 12 + batch_size
    assert generator.generate(PROMPT, COLOURS).value in COLOURS["enum"]  # nothing is left of the others


def test_as_many_constraints_and_seeds_as_prompts(generator: Generator) -> None:
    for options in ({"constraints": [COLOURS]}, {"seeds": [1, 2, 3]}):
        with pytest.raises(GenerationError, match="2 prompts, but"):
            generator.batch([PROMPT, PROMPT], **options)
    with pytest.raises(GenerationError, match="constraints for 1 prompts only") as raised:
        generator.batch(iter([PROMPT, PROMPT]), iter([COLOURS]))
    assert raised.value.row is None
    seeds = [7, 1, 7]
    rows = generator.batch([PROMPT] * 3, NUMBERS, seeds=iter(seeds), **OPTIONS)
    assert [row.text for row in rows] == [generator.generate(PROMPT, NUMBERS, seed=s, **OPTIONS).text for s in seeds]


def test_progress_counts_rows(generator: Generator) -> None:
    seen: list[BatchProgress] = []
    rows = generator.batch(PROMPTS, CONSTRAINTS, return_exceptions=True, progress=seen.append, **OPTIONS)
    assert [progress.done for progress in seen] == list(range(len(PROMPTS) + 1))
    failed = sum(isinstance(row, StructgenError) for row in rows)
    tokens = sum(len(row.token_ids) for row in rows if isinstance(row, GenerationResult))
    assert (seen[-1].failed, seen[-1].total, seen[-1].tokens) == (failed, len(PROMPTS), tokens)
    generator.batch(iter([PROMPT]), COLOURS, progress=seen.append)
    assert seen[-1].total is None


def test_an_error_of_the_model_is_no_row_s() -> None:
    class Broken(PaddedReader):
        def read(self, parts: Any) -> Any:
            raise RuntimeError("the device is lost")

    broken = padded()
    broken.reader = Broken(broken.model)
    with pytest.raises(RuntimeError, match="the device is lost"):
        broken.batch(["a", "b"], NUMBERS, return_exceptions=True)


def test_values_that_a_constraint_refuses_stay_in_their_rows() -> None:
    constraint = words("12")

    class Picky:
        compile, instruction, parse_partial = constraint.compile, constraint.instruction, constraint.parse_partial

        def parse(self, text: str) -> int:
            raise LookupError(f"no {text}")

    assert isinstance(Picky(), Constraint)
    rows = padded().batch(["a", "b"], [Picky(), words("12")], return_exceptions=True)
    assert isinstance(rows[0], GenerationError) and "LookupError" in str(rows[0]) and rows[0].row == 0
    assert isinstance(rows[0].__cause__, LookupError) and getattr(rows[1], "value", None) == 12
