"""Are greedy outputs with drafts those of the plain loop, token by token, with a real model?

    PYTHONPATH=.:benchmarks python benchmarks/identity.py --data DATA [--limit 10] [--max-new-tokens 40]

DATA is a folder of MaskBench files; ``--limit`` schemas of each source of benchmarks/speculative.py, by turns with one
of its two prompts. Every kind of draft, two static tree shapes, and batches of four are compared with the plain loop of
one row. A difference would be a tie that another order of summation in float32 decides otherwise.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from speculative import json_tasks

import structgen
from structgen.benchmarking.table import markdown_table
from structgen.errors import StructgenError
from structgen.generation.speculative.draft_options import NAMES
from structgen.generation.speculative.forced import CanonicalTokens, ForcedDrafter
from structgen.generation.speculative.length import Fixed
from structgen.generation.speculative.ngram import NgramDrafter
from structgen.generation.speculative.recycling import RecyclingDrafter
from structgen.generation.speculative.speculator import Speculator

BATCH = 4


def drafts(generator: structgen.Generator) -> dict[str, Any]:
    """Everything that can draft without other weights, and static trees."""

    def static(*shape: int) -> Speculator:
        sources = (
            ForcedDrafter(CanonicalTokens(generator.tokenizer, generator.vocabulary)),
            NgramDrafter(),
            RecyclingDrafter(generator.model.vocab_size),
        )
        return Speculator(sources, Fixed(24), shape=shape)

    return {**{name: name for name in NAMES}, "shape 4,2,2,1": static(4, 2, 2, 1), "chain": static(*[1] * 12)}


def main() -> None:
    """Compare and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("--max-new-tokens", type=int, default=40)
    parser.add_argument("--drafts", nargs="*", help="only these; none: all")
    options = parser.parse_args()
    generator = structgen.Generator(backend="transformers")
    pairs = list(json_tasks(options.data, generator, options.limit))
    tasks = [pairs[2 * number + number % 2] for number in range(len(pairs) // 2)]
    settings: Any = {"temperature": 0.0, "max_new_tokens": options.max_new_tokens}
    plain, same, forwards = [], Counter[str](), Counter[str]()
    chosen = {name: draft for name, draft in drafts(generator).items() if name in (options.drafts or [name])}
    done = []
    for task in tasks:
        try:
            expected = generator.generate(task.prompt, task.constraint, **settings).token_ids
        except StructgenError as error:  # the budget is too small for the schema
            print(f"{task.name}: {error}"[:120], file=sys.stderr)
            continue
        plain.append(expected)
        done.append(task)
        for name, draft in chosen.items():
            result = generator.generate(task.prompt, task.constraint, draft=draft, **settings)
            same[name] += result.token_ids == expected
            forwards[name] += result.stats.target_forwards
            if result.token_ids != expected:
                print(f"{task.kind} {task.name} {name}: outputs part", file=sys.stderr)
        print(len(done), task.kind, task.name, file=sys.stderr, flush=True)
    for name in ("auto", "recycling"):
        for start in range(0, len(done), BATCH):
            some = done[start : start + BATCH]
            prompts, constraints = [task.prompt for task in some], [task.constraint for task in some]
            for result, expected in zip(
                generator.batch(prompts, constraints, draft=name, **settings), plain[start:], strict=False
            ):
                same[f"batches of {BATCH}, {name}"] += result.token_ids == expected
    rows = []
    for name, count in same.items():
        rows.append([name, f"{count} of {len(plain)}", f"{forwards[name] or ''}"])
    print(markdown_table(["draft", "same outputs", "forwards"], rows))


if __name__ == "__main__":
    main()
