"""Processor time of a step's masks inside vLLM and SGLang, in turns with XGrammar: ``engine_fills.py DATA``.

    python benchmarks/engine_fills.py DATA [--rows 64 256] [--trees 64]   DATA: the folder with maskbench/, tokenizers/

Outputs of 32 real schemas are led along instances, each row at another token. ``fill``: the masks of all rows, as
vLLM's manager asks for them without drafts; XGrammar's is a call a row, as vLLM makes it, or its own call for a batch.
``trees``: the walk along a draft tree of 8 nodes for each row, as SGLang asks for it: the next tokens of the instance
in two branches, and refused ones; XGrammar's is its own walk. Medians over the steps, milliseconds of one thread.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, os.environ.get("CHECKOUT") or str(Path(__file__).resolve().parents[1]))  # what is measured
sys.path.append(str(Path(__file__).resolve().parent))

import torch
from batch_step import documents

import structgen
from structgen.benchmarking.peers import XGrammarRows
from structgen.benchmarking.vocabularies import load_vocabulary
from structgen.core.engines import bitmask
from structgen.core.engines.draft_trees import DraftTrees, fill_trees_of
from structgen.integrations.engine_matcher import RequestMatcher, fill_rows

Case = tuple[str, Any, list[int]]
CHILDREN, SIBLINGS = torch.tensor([1, 2, 3, 4, -1, 6, -1, -1]), torch.tensor([-1, 5, -1, 7, -1, -1, -1, -1])
NODES = len(CHILDREN)
SCHEMAS, STEPS = 32, 40


class Own:
    """structgen's requests, a matcher a row."""

    def __init__(self, cases: list[Case], size: int) -> None:
        self.requests = [RequestMatcher(grammar) for _, grammar, _ in cases]
        self.places = list(enumerate(self.requests))
        self.mask = torch.from_numpy(structgen.allocate_token_bitmask(NODES * len(cases), size))

    def fill(self) -> None:
        """The masks of all rows in one call."""
        fill_rows(self.places, self.mask)

    def trees(self, drafts: torch.Tensor) -> None:
        """The masks of all nodes of all rows."""
        shape, matchers = drafts.shape, [request.matcher for request in self.requests]
        children, siblings = (np.broadcast_to(links.numpy(), shape) for links in (CHILDREN, SIBLINGS))
        trees = DraftTrees.checked(children, siblings, drafts.numpy(), matchers[0].grammar.vocabulary.size)
        fill_trees_of(matchers, trees, self.mask.numpy(), range(0, NODES * len(matchers), NODES))

    def accept(self, row: int, token: int) -> bool:
        """Advance a row."""
        return self.requests[row].accept(token)


class Peer(XGrammarRows):
    """XGrammar's matchers."""

    def __init__(self, cases: list[Case], tokens: list[bytes], eos: int) -> None:
        super().__init__(tokens, eos, [schema for schema, _, _ in cases], (CHILDREN, SIBLINGS))


def milliseconds(call: Callable[..., object], *given: Any) -> float:
    """Processor time of a call."""
    start = time.process_time_ns()
    call(*given)
    return (time.process_time_ns() - start) / 1e6


def drafted(tokens: list[int], place: int) -> list[int]:
    """The tokens of a tree: four that come next, a branch that leaves them after one, and what nobody asked for."""
    a, b, c, d = tokens[place : place + 4]
    return [0, a, b, c, d, b, c, a]


def measured(cases: list[Case], engines: list[Any], names: list[str]) -> dict[str, list[float]]:
    """Milliseconds of each step, by engine and what it did; rows begin at different tokens."""
    times: dict[str, list[float]] = {}
    places = [row % max(1, len(tokens) - STEPS - 4) for row, (_, _, tokens) in enumerate(cases)]
    for engine in engines:
        assert all(engine.accept(row, t) for row, place in enumerate(places) for t in cases[row][2][:place])
    for _ in range(STEPS):
        drafts = torch.tensor([drafted(tokens, place) for (_, _, tokens), place in zip(cases, places, strict=True)])
        for engine in engines:
            for name in (each for each in names if hasattr(engine, each)):
                given = (drafts,) if name == "trees" else ()
                times.setdefault(f"{type(engine).__name__} {name}", []).append(
                    milliseconds(getattr(engine, name), *given)
                )
            assert all([engine.accept(row, cases[row][2][place]) for row, place in enumerate(places)])
        places = [place + 1 for place in places]
    return times


def main() -> None:
    """Print medians, and the 90th percentiles."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--rows", type=int, nargs="*", default=[64, 256])
    parser.add_argument("--trees", type=int, nargs="*", default=[64])
    parser.add_argument("--own", action="store_true", help="without XGrammar")
    options = parser.parse_args()
    torch.set_num_threads(1)
    bitmask.MASKS_PER_THREAD = 1 << 30
    bench = load_vocabulary("o200k", options.data / "tokenizers")
    vocabulary = structgen.Vocabulary([t or None for t in bench.tokens], eos_token_ids=bench.eos_token_id)
    found = documents(options.data, vocabulary, bench.encode, 2 * SCHEMAS, len(bench.tokens), STEPS + 8)
    spelled = [token or f"<special {number}>".encode() for number, token in enumerate(bench.tokens)]
    if not options.own:
        takes = Peer(found, spelled, bench.eos_token_id).accept
        found = [case for row, case in enumerate(found) if all(takes(row, token) for token in case[2])]
    found = found[:SCHEMAS]
    for rows, names in [(r, ["fill", "fill_batch"]) for r in options.rows] + [(r, ["trees"]) for r in options.trees]:
        cases = [found[row % len(found)] for row in range(rows)]
        for _ in range(2):  # the first time masks are made that every output needs once
            engines: list[Any] = [Own(cases, len(bench.tokens))]
            engines += [] if options.own else [Peer(cases, spelled, bench.eos_token_id)]
            times = measured(cases, engines, names)
        for name, each in times.items():
            print(
                f"{rows:4} rows   {name:16} {np.median(each):8.3f} ms   p90 {np.quantile(each, 0.9):8.3f}", flush=True
            )


if __name__ == "__main__":
    main()
