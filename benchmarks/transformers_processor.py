"""Milliseconds that logits processors of transformers add to a step: ``python benchmarks/transformers_processor.py``.

Every processor is shown the same sequences as `generate` would: a prompt, then a token more a step, of a document that
satisfies the schema; scores are as wide as SmolLM2's vocabulary. XGrammar's and llguidance's mask the given scores in
place; ours does where ``generate`` hands over scores that nobody looks at again ("in place"), else it leaves them as
they are. llguidance has no processor: its executor, and the helper for numpy, take the place of one.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import structgen
from structgen.benchmarking.peers import llguidance_processor, xgrammar_processor
from structgen.benchmarking.vocabularies import BenchVocabulary, load_vocabulary
from structgen.integrations.transformers import GrammarLogitsProcessor

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "address": {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False},
    },
    "required": ["name", "age", "tags", "address"],
    "additionalProperties": False,
}
DOCUMENT = {
    "name": "Ada Lovelace of London",
    "age": 36,
    "tags": ["mathematics", "the analytical engine", "poetry"],
    "address": {"city": "London, St James's Square"},
}
PROMPT = 200  # tokens
Make = Callable[[], Callable[[Any, Any], Any]]


def seconds_a_step(make: Make, tokens: list[int], rows: int, width: int, runs: int) -> float:
    """The median over the steps of the fastest of some runs."""
    import torch

    sequences = torch.tensor([[1] * PROMPT + tokens] * rows)
    scores = torch.randn(rows, width)
    times = np.empty((runs, len(tokens)))
    for run in range(runs):
        processor = make()
        for step in range(len(tokens)):
            own, ids = scores.clone(), sequences[:, : PROMPT + step].contiguous()
            own[:, tokens[step]] = 25.0  # the likeliest by far
            start = time.perf_counter()
            masked = processor(ids, own)
            times[run, step] = time.perf_counter() - start
            assert bool(torch.isfinite(masked[0, tokens[step]])), "the document is not allowed"
    return float(np.median(times.min(axis=0)))


def processors(vocabulary: BenchVocabulary, rows: int) -> dict[str, Make]:
    """By name."""
    eos, schema = vocabulary.eos_token_id, json.dumps(SCHEMA)
    own = structgen.Vocabulary(vocabulary.tokens, eos_token_ids=eos)
    spelled = [token or f"<special {number}>".encode() for number, token in enumerate(vocabulary.tokens)]
    found: dict[str, Make] = {
        "structgen": lambda: GrammarLogitsProcessor(SCHEMA, own),
        "structgen, in place": lambda: GrammarLogitsProcessor(SCHEMA, own, in_place=True),
        "structgen, budget": lambda: GrammarLogitsProcessor(SCHEMA, own, max_new_tokens=400),
    }
    peers: dict[str, Callable[[], Make]] = {
        "xgrammar": lambda: xgrammar_processor(spelled, eos, schema),
        "llguidance": lambda: llguidance_processor(vocabulary, schema, rows),
    }
    for name, peer in peers.items():
        try:
            found[name] = peer()
        except ImportError as error:
            print(f"{name}: {error}")
    return found


def main() -> None:
    """Print a table."""
    import torch

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", default="smollm2")
    parser.add_argument("--tokenizers", type=Path, default=Path("tokenizers"))
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16, 64])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="names of processors")
    options = parser.parse_args()
    torch.set_num_threads(1)
    vocabulary = load_vocabulary(options.vocabulary, options.tokenizers)
    tokens = vocabulary.encode(json.dumps(DOCUMENT, separators=(",", ":")))
    for rows in options.rows:
        line = [f"{rows:4} rows"]
        chosen = processors(vocabulary, rows).items()
        for name, make in ((n, m) for n, m in chosen if options.only is None or n in options.only):
            seconds = seconds_a_step(make, tokens, rows, len(vocabulary.tokens), options.runs)
            line.append(f"{name} {1e3 * seconds:.3f} ms")
        print("   ".join(line))


if __name__ == "__main__":
    main()
