"""What do masks of context-free grammars cost, beside llguidance and xgrammar, on the same texts?

    PYTHONPATH=. python benchmarks/grammars.py [--gad DATA/gad] [--tokenizers DATA/tokenizers] [--vocabulary o200k]
        [--only json sql_select]

Grammars: those of grammars/, and the tasks of the Grammar-Aligned Decoding paper; 21 texts each,
its corpus and random walks. Each text is tokenized; before every token the mask is computed, then the token accepted.
"cold" is the first pass of a fresh grammar over all texts, "warm" the second. structgen and llguidance read the Lark
grammar, xgrammar the same language as GBNF where grammars/ has it. Compile time: Lark's own loading is not counted for
structgen; the first mask is for all. "texts" are those that the engine took whole; a text ends where it is refused.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np

import structgen
from structgen.benchmarking.engines import GrammarEngine, Refused, Starts, Structgen, load_engine
from structgen.benchmarking.table import markdown_table
from structgen.benchmarking.vocabularies import BenchVocabulary, load_vocabulary

ENGINES_READING_GRAMMARS = ("structgen", "llguidance", "xgrammar")
BYTES = structgen.Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)
GRAMMARS = Path(__file__).parents[1] / "grammars"
CONTROL = {0x2400 + code: code for code in range(32)}  # pictures of control characters in the corpora


def corpora(gad: Path | None) -> Iterator[tuple[str, str, str, list[str]]]:
    """(name, Lark grammar, the same as GBNF or "", texts). Those that need an indenter are left out."""
    for path in sorted(GRAMMARS.glob("*.lark")):
        text, gbnf = path.read_text(encoding="utf-8"), path.with_suffix(".gbnf")
        texts = (GRAMMARS / "corpus" / f"{path.stem}.txt").read_text(encoding="utf-8").split("\n")[:-1]
        if "%declare" not in text:
            yield path.stem, text, gbnf.read_text() if gbnf.exists() else "", [t.translate(CONTROL) for t in texts]
    for path in sorted(gad.glob("*.json")) if gad else []:
        yield "gad", json.loads(path.read_text(encoding="utf-8"))["grammar"], "", []


def walks(grammar: Any, count: int) -> list[str]:
    """Texts by random bytes that the grammar allows, completed after a while."""
    found = []
    for seed in range(count):
        choose, matcher, text = random.Random(seed), grammar.matcher(), b""
        while len(text) < 160 and not (len(text) > 40 and matcher.is_accepting()):
            following = np.flatnonzero(matcher.next_bytes())
            if not len(following):
                break
            byte = bytes([int(choose.choice(following.tolist()))])
            matcher.accept_bytes(byte)
            text += byte
        found.append((text + matcher.shortest_completion()).decode().strip())  # (llguidance takes no blank first)
    return found


def pace(start: Starts, documents: list[list[int]]) -> tuple[list[float], int]:
    """µs of mask + advance at every token, and how many documents were taken whole."""
    times, taken = [], 0
    for tokens in documents:
        session = start()
        fill, accept = session.fill, session.accept
        for token in tokens:
            before = time.perf_counter_ns()
            fill()
            ok = accept(token)
            times.append((time.perf_counter_ns() - before) / 1000)
            if not ok:
                break
        else:
            taken += 1
    return times, taken


def measure(engine: GrammarEngine, text: str, gbnf: str, documents: list[list[int]]) -> dict[str, list[float]]:
    """Times of one engine on one grammar (compilation: to the first mask), and the number of documents that it took."""
    compile_ = engine.grammar_compiler(text, gbnf)
    before = time.perf_counter_ns()
    compile_()().fill()
    spent = (time.perf_counter_ns() - before) / 1e6
    start = compile_()
    cold, taken = pace(start, documents)
    warm, _ = pace(start, documents)
    return {"cold": cold, "warm": warm, "compile": [spent], "taken": [taken]}


LENGTHS = {
    "left recursion": ('start: start "a" | "b"', b"b" + b"a" * 20_000),
    "right recursion": ('start: "a" start | "b"', b"a" * 20_000),
    "centre recursion": ('start: "a" start "b" | "c"', b"a" * 10_000 + b"c" + b"b" * 10_000),
    "S -> S S or a": ('start: start start | "a"', b"a" * 20_000),
}


def lengths(vocabulary: BenchVocabulary) -> None:
    """Print how a step's time depends on the length of the text, by single bytes."""
    ours = Structgen(vocabulary)
    ids = {token: number for number, token in enumerate(vocabulary.tokens) if len(token) == 1}
    rows = []
    for name, (text, data) in LENGTHS.items():
        times, taken = pace(ours.grammar_compiler(text, "")(), [[ids[bytes([byte])] for byte in data]])
        assert taken
        rows.append([name, f"{np.median(times[:1000]):.2f}", f"{np.median(times[-1000:]):.2f}"])
    print(markdown_table(["µs a step, of 20,000", "first 1,000, p50", "last 1,000, p50"], rows))


def main(arguments: list[str]) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gad", type=Path)
    parser.add_argument("--tokenizers", type=Path)
    parser.add_argument("--vocabulary", default="o200k")
    parser.add_argument("--only", nargs="*", help="names of grammars, or gad")
    parser.add_argument("--lengths", action="store_true", help="time against length instead")
    options = parser.parse_args(arguments)
    vocabulary: BenchVocabulary = load_vocabulary(options.vocabulary, options.tokenizers)
    if options.lengths:
        lengths(vocabulary)
        return 0
    engines = {name: cast(GrammarEngine, load_engine(name, vocabulary)) for name in ENGINES_READING_GRAMMARS}
    groups: dict[str, dict[str, dict[str, list[float]]]] = {}
    for name, text, gbnf, texts in corpora(options.gad):
        if options.only and name not in options.only:
            continue
        written = walks(structgen.compile_lark(text, BYTES), 21 - len(texts))
        documents = [vocabulary.encode(document) for document in [*texts, *written]]
        group = groups.setdefault(name, {})
        for engine, adapter in engines.items():
            try:
                found = measure(adapter, text, gbnf, documents)
            except Refused as error:
                print(f"{engine} does not read {name}: {str(error)[:200]}", file=sys.stderr)
                continue
            times = group.setdefault(engine, {key: [] for key in found})
            for key, values in found.items():
                times[key] += values
    table(groups)
    return 0


def table(groups: dict[str, dict[str, dict[str, list[float]]]]) -> None:
    """Print the figures, and structgen's in proportion to the others'."""
    lines = []
    for name, group in groups.items():
        rows = {}
        for engine, times in group.items():
            cold = np.array(times["cold"])
            quantiles = np.quantile(cold, [0.5, 0.99])
            rows[engine] = np.array([cold.mean(), *quantiles, np.mean(times["warm"]), np.mean(times["compile"])])
            lines.append([name, engine, *(f"{value:.3g}" for value in rows[engine]), f"{sum(times['taken'])}"])
        for engine in list(rows)[1:]:
            ratios = [f"{value:.3f}" for value in rows["structgen"] / rows[engine]]
            lines.append([name, f"ratio to {engine}", *ratios, ""])
    head = ["grammar", "engine", "cold mean", "p50", "p99", "warm mean", "compile + first mask, ms", "texts"]
    print(markdown_table(head, lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
