"""Deterministic models: logits after a text, and outputs, are the same to the last bit whatever is beside them."""

from __future__ import annotations

import importlib.util
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structgen import Generator
from structgen.errors import ModelError, OptionsError
from structgen.generation.decoding.output import Output
from structgen.generation.decoding.prompts import prompt_token_ids
from structgen.generation.models.llamacpp.files import PACKAGES
from structgen.generation.models.llamacpp.model import load_gguf
from structgen.generation.models.model_runner import Part
from structgen.generation.models.runner_factory import ragged_reader
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import SamplingParams, to_numpy
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.request import Request
from tests.generation.models.llamacpp.gguf_files import as_transformers, write_llama

SCHEMA = {
    "type": "object", "properties": {"a": {"type": "string", "maxLength": 12}, "b": {"type": "integer"}},
    "required": ["a", "b"], "additionalProperties": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("gguf", reason="gguf writes the files of these tests")
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_llama(path, context=1024)
    return path


def of_llama(package: str) -> Callable[[Path], Any]:
    def load(path: Path) -> Any:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
        return load_gguf(path, package=package, threads=2, deterministic=True)[0]

    return load


def of_transformers(path: Path) -> Any:
    pytest.importorskip("transformers", reason="transformers runs the model")
    from structgen.generation.models.transformers_model import TransformersModel

    return TransformersModel(as_transformers(262))


MODELS: dict[str, Callable[[Path], Any]] = {
    **{package: of_llama(package) for package in PACKAGES},
    "transformers": of_transformers,
}


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", sorted(MODELS))
def test_logits_after_a_text_are_always_the_same(kind: str, seed: int, file: Path) -> None:
    """Rows come and go, share what others have read, are read in pieces, dropped midway and read again."""
    reader = ragged_reader(MODELS[kind](file), deterministic=True)
    rng = random.Random(seed)
    stems = [[rng.randrange(2, 250) for _ in range(120)] for _ in range(3)]
    texts = [rng.choice(stems)[: rng.randrange(1, 120)] + rng.choices(range(2, 250), k=20) for _ in range(12)]
    known: dict[tuple[int, ...], np.ndarray[Any, Any]] = {}
    rows: dict[int, tuple[list[int], int]] = {}
    compared = 0
    for _ in range(150):
        act = rng.random()
        if (act < 0.2 and len(rows) < (reader.max_sequences or 6)) or not rows:
            text = rng.choice(texts)
            row, held = reader.open(text)
            rows[row] = text, held
        elif act < 0.3:
            row = rng.choice(list(rows))
            if rows[row][1]:
                reader.remember(row)
            reader.drop(row)
            del rows[row]
        elif act < 0.33:
            reader.forget_prefixes()
        else:
            parts, ends = [], []
            for row in rng.sample(sorted(rows), rng.randrange(1, len(rows) + 1)):
                text, held = rows[row]
                end = min(len(text), held + rng.choice([1, 1, 2, 7, 40, 200]))
                if end > held:
                    parts.append(Part(row, text[held:end], last_only=rng.random() < 0.5))
                    ends.append((text, held, end))
                    rows[row] = text, end
            if not parts:
                continue
            reading = reader.read(parts)
            for part, (text, held, end), start in zip(parts, ends, reading.starts, strict=True):
                for place in [end] if part.last_only else range(held + 1, end + 1):
                    got = to_numpy(reading.logits[start + (0 if part.last_only else place - held - 1)])
                    first = known.setdefault(tuple(text[:place]), got.copy())
                    assert np.array_equal(first, got)
                    compared += first is not got
    assert compared > 100


def outputs(generator: Generator, seeds: list[int], **limits: Any) -> dict[int, tuple[Any, ...]]:
    """What requests with these seeds give, all in one scheduler."""
    scheduler = generator.scheduler(SchedulerLimits(**limits))
    constraint = generator_constraint()
    handles = {}
    for seed in seeds:
        ids = prompt_token_ids(generator.tokenizer, f"{'Tell me of a person. ' * (seed % 4)}Number {seed % 3}.")
        matcher = constraint.compile(generator.vocabulary).matcher()
        params = SamplingParams(1.0 if seed % 2 else 0.0, seed=seed)
        output = Output(generator.vocabulary, matcher, params, max_new_tokens=40, prompt_ids=ids)
        handles[seed] = scheduler.submit(Request(ids, output))
    while not scheduler.is_idle:
        for event in scheduler.step():
            assert event.error is None
    return {
        seed: (handle.output.token_ids, handle.output.token_log_probs, handle.output.text)
        for seed, handle in handles.items()
    }


def generator_constraint() -> Any:
    from structgen import json_schema

    return json_schema(SCHEMA)


@pytest.mark.full
@pytest.mark.parametrize("kind", sorted(MODELS))
def test_seeded_requests_in_traffic_are_what_they_are_alone(kind: str, file: Path) -> None:
    if kind == "transformers":
        model = of_transformers(file)
        _, tokenizer = load_gguf(file, threads=1)
    else:
        MODELS[kind](file)
        model, tokenizer = load_gguf(file, package=kind, threads=1, deterministic=True)
    generator = Generator(model, tokenizer, deterministic=True)
    seeds = list(range(6 if kind == "transformers" else 16))  # calls of torch are slow
    alone = dict[int, tuple[Any, ...]]()
    for seed in seeds:
        generator.reader.forget_prefixes()
        alone |= outputs(generator, [seed])
    order = random.Random(1).sample(seeds, len(seeds))
    few = 330 * generator.reader.token_bytes if generator.reader.token_bytes else None
    assert outputs(generator, order) == alone
    assert outputs(generator, seeds, sequences=3, step_tokens=24, least_chunk=5) == alone
    assert outputs(generator, order, max_bytes=few) == alone  # rows are set aside, and read again


def test_batches_and_single_calls_give_the_same(file: Path) -> None:
    generator = Generator(*load_gguf(file, threads=1, deterministic=True), deterministic=True)
    prompts = [f"Person {number}" for number in range(6)]
    options: dict[str, Any] = {"temperature": 1.0, "max_new_tokens": 40, "prediction": '{"a": "x", "b": 1}'}
    single = [generator.generate(prompt, SCHEMA, seed=row, **options) for row, prompt in enumerate(prompts)]
    for size in (2, 5):
        batch = generator.batch(prompts, SCHEMA, seed=0, batch_size=size, **options)
        assert [(one.text, one.logprob) for one in batch] == [(one.text, one.logprob) for one in single]


def test_what_cannot_be_deterministic_says_so(file: Path) -> None:
    with pytest.raises(ModelError, match=r"load_gguf\(path, deterministic=True\)"):
        Generator(*load_gguf(file, threads=1), deterministic=True)
    made = load_gguf(file, threads=1, deterministic=True)
    with pytest.raises(OptionsError, match="drafts save nothing"):
        Generator(*made, deterministic=True, draft="ngram")
    with pytest.raises(OptionsError, match="drafts save nothing"):
        Generator(*made, deterministic=True).generate("Hi", SCHEMA, draft="ngram")
    with pytest.raises(ModelError, match="drafts save nothing"):
        Generator(*made).generate("Hi", SCHEMA, draft="ngram")
    with pytest.raises(ModelError, match="sequences that are read apart"):
        ragged_reader(TinyModel(257), deterministic=True)
    with pytest.raises(ModelError, match=r"of 1024 tokens take .* raise it, or lower context_length"):
        load_gguf(file, deterministic=True, context_length=512, cache_bytes=600 * made[0].ragged_reader().token_bytes)


@pytest.mark.full
def test_a_resumed_batch_ends_as_an_unbroken_one(file: Path, tmp_path: Path) -> None:
    from tests.cli.running import run as run_command

    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"id": n, "prompt": f"Person {n}"}) + "\n" for n in range(8)))
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps(SCHEMA))
    whole, broken = tmp_path / "whole.jsonl", tmp_path / "broken.jsonl"

    def run(output: Path, *options: str) -> None:
        arguments = ["batch", str(rows), "--schema", str(schema), "-o", str(output), "--model", str(file)]
        more = ["--max-new-tokens", "40", "--temperature", "1", "--deterministic", *options]
        code, _, errors = run_command(*arguments, *more)
        assert code == 0, errors

    run(whole)
    lines = {json.loads(line)["id"]: line for line in whole.read_text().splitlines()}
    broken.write_text("".join(lines[n] + "\n" for n in (1, 4, 5)))
    run(broken, "--batch-size", "2")
    assert {json.loads(line)["id"]: line for line in broken.read_text().splitlines()} == lines
