"""What does a step of a batch cost beside the model: masks, closing in time, application and drawing?

    python benchmarks/batch_step.py DATA                        DATA: the folder with maskbench/ and tokenizers/
    python benchmarks/batch_step.py DATA --before CHECKOUT      with another checkout's step, by turns

B outputs of real schemas are written on a CPU, each led through an instance of its schema by a bonus on the next token;
the other logits are random. A step takes a token for every row and gets all ready for the next model call. Beside it
XGrammar's fill, application and acceptance with torch's softmax and multinomial (argmax and logsumexp if greedy), on
the same logits and rows. Medians and 90th percentiles of the steps of one run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, os.environ.get("CHECKOUT") or str(Path(__file__).resolve().parents[1]))  # what is measured

import torch

import structgen
from structgen.benchmarking.coverage import choose_files
from structgen.benchmarking.vocabularies import load_vocabulary
from structgen.generation.decoding.output import Output
from structgen.generation.sampling import SamplingParams

BONUS = 40.0
SIZE = 128_000  # tokens: the first of o200k's, which is a vocabulary of its own
BUDGET = 512


class Rows:
    """B places, in each a document on its way.

    Attributes:
        wanted: the next token of each place's document.
    """

    def __init__(self, documents: list[tuple[Any, list[int]]], batch: int, seed: int) -> None:
        self._documents, self._rng = documents, np.random.default_rng(seed)
        self.places: list[tuple[Any, list[int], int]] = [self.next() for _ in range(batch)]

    def next(self) -> tuple[Any, list[int], int]:
        grammar, tokens = self._documents[int(self._rng.integers(len(self._documents)))]
        return grammar, tokens, 0

    @property
    def wanted(self) -> list[int]:
        return [tokens[place] for _, tokens, place in self.places]

    def advance(self) -> list[int]:
        """Move on by a token; the places where a new document begins."""
        fresh = []
        for row, (grammar, tokens, place) in enumerate(self.places):
            ends = place + 1 >= len(tokens)
            self.places[row] = self.next() if ends else (grammar, tokens, place + 1)
            if ends:
                fresh.append(row)
        return fresh


def documents(
    data: Path, vocabulary: Any, encode: Callable[[str], list[int]], count: int, size: int = SIZE, least: int = 20
) -> list[tuple[str, Any, list[int]]]:
    """(schema as JSON, compiled grammar, tokens of an instance that both engines take), ``count`` of them."""
    found = []
    for path in choose_files(data / "maskbench", "*.json", 40 * count, 0, None):
        task = json.loads(path.read_text(encoding="utf-8"))
        texts = [json.dumps(test["data"], ensure_ascii=False) for test in task["tests"] if test["valid"]]
        try:
            grammar = structgen.compile_json_schema(task["schema"], vocabulary, structgen.JsonOptions.exact())
        except structgen.StructgenError:
            continue
        for text in texts:
            tokens = encode(text)
            matcher = grammar.matcher()
            if least <= len(tokens) <= 300 and max(tokens) < size and all(map(matcher.accept_token, tokens)):
                found.append((json.dumps(task["schema"]), grammar, tokens))
                break
        if len(found) == count:
            break
    return found


class Own:
    """A step of this library: all rows at once, or row by row where the checkout knows nothing else."""

    def __init__(self, rows: Rows, vocabulary: Any, temperature: float) -> None:
        self._vocabulary, self._temperature = vocabulary, temperature
        self._outputs = [self._output(place[0], row) for row, place in enumerate(rows.places)]
        try:
            from structgen.generation.decoding.choosing import choose
        except ImportError:  # an older checkout
            self._choose = None
        else:
            self._choose = choose

    def _output(self, grammar: Any, seed: int) -> Output:
        params = SamplingParams(self._temperature, seed=seed)
        output = Output(self._vocabulary, grammar.matcher(), params, max_new_tokens=BUDGET)
        output.advance_forced()
        return output

    def step(self, logits: torch.Tensor) -> list[int]:
        if self._choose is None:
            for row, output in enumerate(self._outputs):
                output.choose(logits[row])  # type: ignore[attr-defined]
                output.advance_forced()
        else:
            self._choose(self._outputs, logits)
            for output in self._outputs:
                output.advance_forced()
        return [output.token_ids[-1] for output in self._outputs]

    def renew(self, rows: Rows, fresh: list[int]) -> None:
        for row in fresh:
            self._outputs[row] = self._output(rows.places[row][0], row)

    def stuck(self, rows: Rows) -> list[int]:
        """Rows whose output has ended or gone ahead of its document (forced tokens)."""
        return [
            row
            for row, (output, place) in enumerate(zip(self._outputs, rows.places, strict=True))
            if output.finish_reason is not None or output.token_ids != place[1][: place[2]]
        ]


class Peer:
    """A step of XGrammar and torch."""

    def __init__(self, rows: Rows, schemas: dict[int, str], tokens: list[bytes], eos: int, temperature: float) -> None:
        from structgen.benchmarking.peers import XGrammarBatch

        self._schemas, self._temperature = schemas, temperature
        self._batch = XGrammarBatch(tokens, eos, [schemas[id(place[0])] for place in rows.places])
        self._taken: list[tuple[int, bool]] = []

    def step(self, logits: torch.Tensor) -> list[int]:
        """Mask, draw, accept; what was taken."""
        self._batch.fill()
        self._batch.apply(logits)
        if self._temperature:
            chosen = torch.multinomial(torch.softmax(logits / self._temperature, dim=-1), 1)[:, 0]
        else:
            chosen = logits.argmax(dim=-1)
        torch.logsumexp(logits, dim=-1)  # for log-probabilities, which the other has, too
        tokens: list[int] = chosen.tolist()
        self._taken = list(zip(tokens, self._batch.accept(tokens), strict=True))
        return tokens

    def stuck(self, rows: Rows) -> list[int]:
        """Rows whose output has ended or left its document."""
        before = [place[1][place[2] - 1] if place[2] else -1 for place in rows.places]
        return [
            row for row, (token, ok) in enumerate(self._taken)
            if not ok or before[row] not in (-1, token) or self._batch.is_terminated(row)
        ]  # fmt: skip

    def renew(self, rows: Rows, fresh: list[int]) -> None:
        """Begin new documents."""
        for row in fresh:
            self._batch.restart(row, self._schemas[id(rows.places[row][0])])


def measure(engine: Any, rows: Rows, base: torch.Tensor, steps: int) -> tuple[list[float], int]:
    """Seconds of each step, and how many tokens were those that were wanted."""
    times, right = [], 0
    numbers = range(len(rows.places))
    for step in range(steps):
        logits = base[step % len(base)].clone()
        wanted = rows.wanted
        logits[numbers, wanted] += BONUS
        start = time.perf_counter()
        tokens = engine.step(logits)
        times.append(time.perf_counter() - start)
        right += sum(one == other for one, other in zip(tokens, wanted, strict=True))
        fresh = rows.advance()
        for row in engine.stuck(rows):
            if row not in fresh:
                rows.places[row] = rows.next()
                fresh.append(row)
        engine.renew(rows, fresh)
    return times, right


def cases(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One result an engine, batch and temperature."""
    bench = load_vocabulary("o200k", arguments.data / "tokenizers")
    tokens = [*bench.tokens[: SIZE - 1], b""]
    vocabulary = structgen.Vocabulary([token or None for token in tokens], eos_token_ids=SIZE - 1)
    given = documents(arguments.data, vocabulary, bench.encode, 48)
    pairs = [(grammar, document) for _, grammar, document in given]
    schemas = {id(grammar): schema for schema, grammar, _ in given}
    base = torch.randn(4, max(arguments.batch), SIZE, generator=torch.Generator().manual_seed(1)) * 3
    for batch in arguments.batch:
        for temperature in (0.0, 0.8):
            for name in arguments.engine:
                rows = Rows(pairs, batch, 7)
                engine: Any = (
                    Own(rows, vocabulary, temperature)
                    if name == "structgen"
                    else Peer(rows, schemas, tokens, SIZE - 1, temperature)
                )
                measure(engine, rows, base[:, :batch], 30)  # rows of masks that every output needs once
                times, right = measure(engine, rows, base[:, :batch], arguments.steps)
                yield {
                    "engine": name, "batch": batch, "temperature": temperature, "right": right / batch / len(times),
                    "p50": 1e3 * float(np.median(times)), "p90": 1e3 * float(np.quantile(times, 0.9)),
                }  # fmt: skip


def application(rows: int) -> list[list[str]]:
    """Cells of a table: bitmasks over logits alone, by turns with XGrammar's kernel; milliseconds."""
    from structgen.benchmarking.peers import xgrammar_application

    peer, rng, cells = xgrammar_application("cpu"), np.random.default_rng(0), []
    for name, share in (("few", 0.001), ("half", 0.5), ("nearly all", 0.97)):
        bitmask = np.packbits(rng.random((rows, SIZE)) < share, axis=1, bitorder="little").view(np.int32)
        for dtype in (torch.float32, torch.bfloat16):
            logits = torch.randn(rows, SIZE).to(dtype)
            times: tuple[list[float], list[float]] = ([], [])
            for _ in range(15):
                for own, seconds in zip((True, False), times, strict=True):
                    copy = logits.clone()
                    start = time.perf_counter()
                    if own:
                        structgen.apply_token_bitmask_inplace(copy, bitmask)
                    else:
                        peer(copy, torch.from_numpy(bitmask))
                    seconds.append(time.perf_counter() - start)
            shown = [f"{1e3 * float(np.median(each)):.2f} ({1e3 * min(each):.2f})" for each in times]
            cells.append([name, str(dtype).removeprefix("torch."), *shown])
    return cells


def main() -> None:
    """Measure and print a table, milliseconds a step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--batch", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--engine", nargs="+", default=["structgen", "xgrammar"])
    parser.add_argument("--before", type=Path, help="another checkout, whose step is measured, too")
    parser.add_argument("--json", action="store_true", help="a line a result, nothing else")
    arguments = parser.parse_args()
    results = []
    if arguments.before:
        command = [sys.executable, __file__, str(arguments.data), "--json", "--engine", "structgen"]
        command += ["--batch", *map(str, arguments.batch), "--steps", str(arguments.steps)]
        environment = {**os.environ, "CHECKOUT": str(arguments.before.resolve())}
        out = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        results += [{**json.loads(line), "engine": "structgen, before"} for line in out.stdout.splitlines()]
    for result in cases(arguments):
        results.append(result)
        if arguments.json:
            print(json.dumps(result), flush=True)
    if not arguments.json:
        from structgen.benchmarking.table import markdown_table

        results.sort(key=lambda r: (r["batch"], r["temperature"]))
        names, numbers = ("engine", "batch", "temperature"), ("p50", "p90", "right")
        cells = [[*(str(r[name]) for name in names), *(f"{r[name]:.2f}" for name in numbers)] for r in results]
        print(markdown_table(["", "rows", "temperature", "p50 ms", "p90 ms", "as wanted"], cells))
        print(f"\nApplication alone, {max(arguments.batch)} rows, median (least) ms:\n")
        print(markdown_table(["allowed", "logits", "structgen", "xgrammar"], application(max(arguments.batch))))


if __name__ == "__main__":
    main()
