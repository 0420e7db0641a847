"""One output and many on the built-in model: against another checkout, against one by one, beside a long prompt.

    python benchmarks/scheduler.py pairs CHECKOUT [--draft auto]    single outputs, by turns with another checkout's
    python benchmarks/scheduler.py rows [--draft auto]              16 outputs at once against one by one
    python benchmarks/scheduler.py beside                           steps of 16 rows while a prompt is read
    python benchmarks/scheduler.py goodput [--draft auto]           1, 4, 16 and 32 rows with drafts against without

Seconds are of the processor (all threads), since other work on the machine disturbs clocks more.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, os.environ.get("CHECKOUT") or str(Path(__file__).resolve().parents[1]))  # what is measured

from structgen import Generator

TEXT = {"type": "string", "maxLength": 20}
SCHEMAS: list[Any] = [
    {
        "properties": {"name": TEXT, "age": {"type": "integer", "minimum": 0, "maximum": 120}},
        "required": ["name", "age"],
    },
    {"properties": {"city": TEXT, "population": {"type": "integer"}, "capital": {"type": "boolean"}}},
    {"properties": {"tags": {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 4}}, "required": ["tags"]},
]
SCHEMAS = [{"type": "object", "additionalProperties": False, **schema} for schema in SCHEMAS]
PROMPTS = [
    "Describe a person named Ada who loves mathematics and trains.",
    "Tell me about a city in Italy with old bridges and canals.",
    "Write two sentences about the sea in winter.",
    "Who is a famous chemist? Answer briefly.",
]


def task(number: int) -> tuple[str, Any, dict[str, Any]]:
    """Prompt, constraint and options of a task; every fourth is free text, every second is sampled."""
    constraint = None if number % 4 == 3 else SCHEMAS[number % 4]
    options = {"max_new_tokens": 40, "temperature": 0.8 * (number % 2), "seed": number}
    return f"{PROMPTS[number % len(PROMPTS)]} ({number})", constraint, options


def serve(draft: str | None) -> None:
    """Answer task numbers on standard input with seconds, seconds to the first text, and the tokens."""
    generator = Generator(backend="transformers", draft=draft)
    print("ready", flush=True)
    for line in sys.stdin:
        prompt, constraint, options = task(int(line))
        start, first, tokens = time.process_time(), 0.0, list[int]()
        for event in generator.stream(prompt, constraint, **options):
            first = first or time.process_time() - start
            if event.result is not None:
                tokens = list(event.result.token_ids)
        print(json.dumps([time.process_time() - start, first, tokens]), flush=True)


def pairs(checkout: str, draft: str | None, tasks: int) -> None:
    """Single outputs of this checkout and another, by turns."""
    workers = {}
    for name, folder in (("other", checkout), ("this", str(Path(__file__).resolve().parents[1]))):
        command = [sys.executable, __file__, "serve", *(["--draft", draft] if draft else [])]
        environment = {**os.environ, "CHECKOUT": folder, "PYTHONPATH": folder}
        workers[name] = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    found: dict[str, list[Any]] = {name: [] for name in workers}
    for number in range(-1, tasks + 1):
        for name in sorted(workers, reverse=bool(number % 2)):
            reads, writes = workers[name].stdout, workers[name].stdin
            assert reads is not None and writes is not None
            if number >= 0:
                print(number, file=writes, flush=True)
            found[name].append(reads.readline() if number < 0 else json.loads(reads.readline()))
    both = list(zip(found["this"], found["other"], strict=True))[2:]  # without what is done once
    seconds, first = (statistics.median(this[i] / other[i] for this, other in both) for i in (0, 1))
    same = sum(this[2] == other[2] for this, other in both)
    print(f"{len(both)} tasks: seconds x {seconds:.2f}, to the first text x {first:.2f}, {same} with the same tokens")
    for worker in workers.values():
        worker.terminate()


def rows(draft: str | None, count: int) -> None:
    """A batch against the same outputs one by one; two rounds, the first warms up."""
    generator = Generator(backend="transformers", draft=draft)
    given = [task(number) for number in range(count)]
    for _ in range(2):
        options: dict[str, Any] = {"max_new_tokens": 40, "temperature": 0.8}
        start = time.process_time()
        alone = [generator.generate(p, c, seed=row, **options) for row, (p, c, _) in enumerate(given)]
        middle = time.process_time()
        together = generator.batch([p for p, _, _ in given], [c for _, c, _ in given], seed=0, **options)
        end = time.process_time()
    tokens = sum(len(result.token_ids) for result in together)
    same = sum(a.token_ids == b.token_ids for a, b in zip(alone, together, strict=True))
    speeds = tokens / (middle - start), tokens / (end - middle)
    print(f"{count} rows: {speeds[0]:.0f} tokens/s one by one, {speeds[1]:.0f} at once; {same} with the same tokens")


def beside(count: int) -> None:
    """Steps of rows that are written, without and with a prompt that joins."""
    from structgen.generation.decoding.output import Output
    from structgen.generation.models.runner_factory import ragged_reader
    from structgen.generation.sampling import SamplingParams
    from structgen.generation.scheduler.request import Request, State
    from structgen.generation.scheduler.scheduler import Scheduler

    generator = Generator(backend="transformers")
    reader = ragged_reader(generator.model, 0)

    def request(prompt: int, tokens: int, seed: int) -> Request:
        ids = [random.Random(seed).randrange(1000, 20000) for _ in range(prompt)]
        params = SamplingParams(1.0, seed=seed)
        return Request(ids, Output(generator.vocabulary, None, params, max_new_tokens=tokens))

    def timed(scheduler: Scheduler) -> float:
        start = time.process_time()
        scheduler.step()
        return time.process_time() - start

    alone = Scheduler(reader)
    alone.submit(request(150, 1, 1000))
    print(f"a prompt of 150 tokens alone: {timed(alone):.3f} s")
    for size in (150, 600):
        scheduler = Scheduler(reader)
        handles = [scheduler.submit(request(50, 200, row)) for row in range(count)]
        while any(handle.state is not State.WRITING for handle in handles):
            scheduler.step()
        without = [timed(scheduler) for _ in range(8)]
        late = scheduler.submit(request(size, 1, 2000 + size))
        steps = []
        while late.state is not State.DONE:
            steps.append(timed(scheduler))
        scheduler.close()
        print(
            f"{count} rows: a step {statistics.median(without):.3f} s; beside a prompt of {size}: "
            f"{statistics.median(steps):.3f} s, at most {max(steps):.3f} s; its first token after {sum(steps):.3f} s"
        )


def goodput(draft: str, most: int) -> None:
    """So many rows at once with drafts and without, by turns; tokens a second of the processor."""
    generator = Generator(draft=draft)

    def write(count: int, first: int, **options: Any) -> tuple[float, int]:
        chosen = [task(first + number) for number in range(count)]
        generator.reader.forget_prefixes()  # who comes second would find the prompts read
        start = time.process_time()
        results = generator.batch(
            [p for p, _, _ in chosen], [c for _, c, _ in chosen],
            seed=first, max_new_tokens=40, temperature=0.8, **options,
        )  # fmt: skip
        seconds = time.process_time() - start
        forwards = max(result.stats.target_forwards for result in results)
        return sum(len(result.token_ids) for result in results) / seconds, forwards

    first = 0
    for count in (1, 4, 16, 32):
        write(count, 5000 + count)  # weights are rearranged once for each number of tokens
        ratios, steps = [], []
        for _ in range(5 if count < 16 else 3):
            first += most  # texts that were not written before: they would be remembered
            (fast, few), (plain, many) = write(count, first), write(count, first, draft=None)
            ratios.append(fast / plain)
            steps.append(f"{few} for {many}")
        print(f"{count} rows: tokens/s x {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}); "
              f"model calls {steps[-1]}", flush=True)  # fmt: skip


def main() -> None:
    """See the module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("pairs", "rows", "beside", "goodput", "serve"))
    parser.add_argument("checkout", nargs="?", default="")
    parser.add_argument("--draft")
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--rows", type=int, default=16)
    given = parser.parse_args()
    if given.what == "serve":
        serve(given.draft)
    elif given.what == "pairs":
        pairs(given.checkout, given.draft, given.tasks)
    elif given.what == "rows":
        rows(given.draft, given.rows)
    elif given.what == "goodput":
        goodput(given.draft or "auto", 32)
    else:
        beside(given.rows)


if __name__ == "__main__":
    main()
