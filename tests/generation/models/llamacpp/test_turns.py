"""Threads and forks: calls of one model take turns, and a child without the model's threads says so."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jsonschema
import pytest

from structgen import Generator
from structgen.generation.models.threads import Turn
from tests.generation.models.llamacpp.conftest import Loaded
from tests.programs import ROOT

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}
FORK = """
import os, signal, sys
from structgen import Generator, ModelError
from structgen.generation.models.llamacpp.model import load_gguf
model, tokenizer = load_gguf(sys.argv[1], package=sys.argv[2], threads=2)
generator = Generator(model, tokenizer)
if sys.argv[3] == "used":
    generator.generate("Hi", max_new_tokens=2)
sys.stdout.flush()
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
signal.alarm(60)
for made in (generator, Generator(*load_gguf(sys.argv[1], package=sys.argv[2], threads=2))):
    try:
        print(repr(made.generate("Hi", max_new_tokens=2).text))
    except ModelError as error:
        print(type(error).__name__, error)
"""


def test_calls_from_several_threads_take_turns(tiny: Loaded) -> None:
    """Also of two generators of one model, of which one drafts."""
    plain = Generator(*tiny)
    generators = [plain, Generator(*tiny, draft="ngram"), plain, plain]

    def write(generator: Generator) -> list[str]:
        generator.choice("Hi", ["a", "b"])
        streamed = [event.text for event in generator.stream("Hi", SCHEMA, max_new_tokens=30)][-1]
        batch = generator.batch(["Hi"], SCHEMA, max_new_tokens=30)
        return [generator.generate("Hi", SCHEMA, max_new_tokens=30).text, batch[0].text, streamed]

    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(write, generators):
            for text in found:
                jsonschema.validate(json.loads(text), SCHEMA)


def test_a_context_is_read_with_by_one_thread_at_a_time(tiny: Loaded) -> None:
    """llama.cpp would end the process."""
    model = tiny[0]

    def read(seed: int) -> int:
        for round_ in range(20):
            logits, cache = model.prefill([[5 + seed, 6, 7 + round_]])
            model.forward([[8]], cache)
            assert logits.shape[0] == 1
        return seed

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(read, range(4))) == [0, 1, 2, 3]


@pytest.mark.first_case
@pytest.mark.parametrize("used", ["used", "not yet"])
def test_a_fork_says_that_threads_are_gone(tiny_file: Path, package: str, used: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK, str(tiny_file), package, used],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    if used == "used":
        assert first.startswith("ModelError This process was forked") and second == first and "spawn" in first
    else:
        assert first == second and first.startswith("'")


TORCH_FORK = """
import os, signal, sys, torch
from structgen import ModelError
from structgen.generation.models.runner_factory import ragged_reader
from structgen.generation.models.model_runner import Part
from structgen.generation.models.transformers_model import TransformersModel
from tests.generation.models.llamacpp.gguf_files import as_transformers
torch.set_num_threads(int(sys.argv[1]))
made = as_transformers(300)
reader = ragged_reader(TransformersModel(made))
sys.stdout.flush()
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
signal.alarm(60)
for find in (lambda: reader, lambda: ragged_reader(TransformersModel(made))):
    try:
        found = find()
        found.read([Part(found.open([1, 2])[0], [1, 2])])
        print("read")
    except ModelError as error:
        print(type(error).__name__, error)
"""


@pytest.mark.full
@pytest.mark.parametrize("threads", [1, 2])
def test_a_fork_says_that_threads_of_torch_are_gone(threads: int) -> None:
    pytest.importorskip("transformers", reason="transformers runs the model")
    done = subprocess.run(
        [sys.executable, "-c", TORCH_FORK, str(threads)], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.startswith("ModelError This process was forked") for line in lines] == [threads > 1] * 2


def test_a_turn_goes_to_whoever_asked_first() -> None:
    turn, order = Turn(), list[int]()
    gates = [threading.Event() for _ in range(3)]

    def take(number: int) -> None:
        gates[number].set()
        with turn, turn:
            order.append(number)

    threads = [threading.Thread(target=take, args=(number,)) for number in range(3)]
    with turn:
        for number, thread in enumerate(threads):
            thread.start()
            gates[number].wait()
            while len(turn._waiting) <= number:
                pass
    with turn:
        order.append(3)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3]
