"""Sets of names and documents: time to build and to open, bytes, and masks along random walks.

Usage: python benchmarks/sorted_texts.py [--names 1000000] [--text FILE] [--ranks FILE] [--walks 200] [--peers]

Times are of one thread: processor seconds to build, wall-clock milliseconds to open, microseconds of processor time a
mask (warm: the same walks a second time). The vocabulary is that of a rank file of tiktoken, if one is given.
``--peers`` measures those of `sorted_peers` too, in the same process, over o200k: with its rank file and the .json
alongside it.
"""

from __future__ import annotations

import argparse
import base64
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import sorted_peers

from structgen import Corpus, NameSet, Vocabulary, allocate_token_bitmask, compile_choice, json_schema
from structgen.benchmarking.vocabularies import load_vocabulary
from structgen.core.compilers import compile_names, compile_quotes
from structgen.core.engines.protocols import Grammar

STEPS = 12


def vocabulary_of(ranks: Path | None) -> Vocabulary:
    """The bytes, or a rank file of tiktoken."""
    if ranks is None:
        return Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
    tokens = [base64.b64decode(line.split()[0]) for line in ranks.read_bytes().splitlines() if line]
    return Vocabulary([*tokens, None], eos_token_ids=len(tokens))


def some_names(count: int) -> Iterator[str]:
    """Names of two or three made-up words, 15 bytes or so."""
    rng = random.Random(0)
    parts = ["".join(rng.choice("aeioubcdfgklmnprstvz") for _ in range(rng.randint(2, 6))) for _ in range(4000)]
    for number in range(count):
        yield " ".join(rng.choice(parts) for _ in range(rng.randint(2, 3))) + f" {number % 97}"


def timed(call: Callable[[], object]) -> float:
    """Processor seconds."""
    begun = time.process_time()
    call()
    return time.process_time() - begun


def masks(grammar: Grammar, walks: int, seed: int) -> list[float]:
    """Microseconds of each mask of random walks."""
    rng = random.Random(seed)
    bitmask = allocate_token_bitmask(1, grammar.vocabulary.size)
    times = []
    for _ in range(walks):
        matcher = grammar.matcher()
        for _ in range(STEPS):
            begun = time.thread_time_ns()
            matcher.fill_next_token_bitmask(bitmask)
            times.append((time.thread_time_ns() - begun) / 1000)
            bits = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little"))
            if not len(bits) or not matcher.accept_token(int(rng.choice(bits.tolist()))) or matcher.is_terminated():
                break
    return times


def report(name: str, grammar: Grammar, walks: int) -> None:
    """Print the quantiles of masks, the first time and warm."""
    for what in ("first", "warm"):
        times = masks(grammar, walks, 1)
        p50, p99 = np.percentile(times, [50, 99])
        print(f"{name}: masks {what}: p50 {p50:.1f} µs, p99 {p99:.0f} µs ({len(times):,})")


def main() -> None:
    """Build, open, walk."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--names", type=int, default=1_000_000)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--ranks", type=Path)
    parser.add_argument("--walks", type=int, default=200)
    parser.add_argument("--peers", action="store_true")
    asked = parser.parse_args()
    vocabulary = vocabulary_of(asked.ranks)
    listed = list(some_names(asked.names))
    print(f"names: {timed(lambda: NameSet.build(listed)):.2f} s to build")
    names = NameSet.build(listed)
    with tempfile.TemporaryDirectory() as folder:
        names.save(Path(folder) / "names")
        begun = time.perf_counter()
        NameSet.open(Path(folder) / "names")
        print(f"names: {len(names):,}, open {1000 * (time.perf_counter() - begun):.1f} ms", end=", ")
    print(f"{names.memory_bytes / len(names):.1f} B a name")
    report("names", compile_names(names, vocabulary), asked.walks)
    few = listed[:100_000]
    print(f"choice of {len(few):,}: {timed(lambda: compile_choice(few, vocabulary)):.2f} s", end=", ")
    print(f"{compile_choice(few, vocabulary).memory_bytes / 1e6:.1f} MB")
    text = asked.text.read_text("utf-8", "replace")[:10_000_000] if asked.text else " ".join(listed)[:10_000_000]
    print(f"text: {timed(lambda: Corpus.build(text)):.2f} s to index {len(text.encode()):,} bytes")
    corpus = Corpus.build(text)
    report("text", compile_quotes(corpus, vocabulary), asked.walks)
    schema = {"type": "string", "x-structgen": {"quoteOf": "text"}}
    constraint = json_schema(schema, sources={"text": corpus})
    print(f"text in JSON: {timed(lambda: constraint.compile(vocabulary)):.2f} s to compile")
    report("text in JSON", constraint.compile(vocabulary), asked.walks)
    schema = {"type": "string", "x-structgen": {"oneOf": "names"}}
    constraint = json_schema(schema, sources={"names": names})
    print(f"names in JSON: {timed(lambda: constraint.compile(vocabulary)):.2f} s to compile")
    report("names in JSON", constraint.compile(vocabulary), asked.walks)
    if asked.peers:
        sorted_peers.measure(listed, text, load_vocabulary("o200k", asked.ranks.parent))


if __name__ == "__main__":
    main()
