"""What search finds, and what it costs: ``python benchmarks/searching.py RESULTS.json`` (options: ``--items 40``,
``--backend transformers``, ``--times``: without the exact search).

The three tasks of ``prompt_forms`` in turn, JSON under a schema, with the built-in model on one thread. For each item:
greedy decoding, beam search (4 beams, by the sum of log-probabilities and by their mean), and the exact search with a
budget of 2,000 tokens of the model. Then 16 arithmetic samples against 16 single draws. RESULTS.json keeps each item:
a run that was broken off goes on from there. Seconds are processor time; an item's methods run one after the other.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prompt_forms import TASKS, Item, generator_of, items_of

from structgen import Generator, json_schema
from structgen.generation.target.results import Budget

BUDGET = 2000
METHODS: dict[str, dict[str, Any]] = {
    "greedy": {"method": "beam", "num_beams": 1, "early_stopping": True},
    "beam": {"method": "beam", "num_beams": 4, "length_penalty": 0.0},
    "beam by length": {"method": "beam", "num_beams": 4},
    "exact": {"method": "exact", "budget": Budget(model_tokens=BUDGET)},
}


def searched(generator: Generator, item: Item, samples: int, methods: Iterable[str]) -> dict[str, Any]:
    """What each method found of an item, and its processor seconds."""
    shared: Any = {"prompt": item.text, "constraint": json_schema(item.schema), "max_new_tokens": 80}
    generator.search(**shared, method="beam", num_beams=1)  # the prompt is then read, and the constraint compiled
    found: dict[str, Any] = {}
    for name in methods:
        options = METHODS[name]
        begun = time.process_time()
        run = generator.search(**shared, **options)
        seconds = time.process_time() - begun
        best = run.results[0]
        found[name] = {
            "log_prob": best.log_prob_global, "text": best.text, "gap": run.gap, "calls": run.stats.model_calls,
            "tokens": run.stats.tokens_read, "output": len(best.token_ids), "seconds": seconds,
        }  # fmt: skip
    if samples:
        begun = time.process_time()
        for seed in range(samples):
            generator.search(**shared, method="arithmetic", n=1, seed=seed)
        middle = time.process_time()
        generator.search(**shared, method="arithmetic", n=samples, seed=0)
        found["samples"] = {"single": middle - begun, "together": time.process_time() - middle}
    return found


def report(items: list[dict[str, Any]]) -> None:
    """The figures of the issue."""
    names = [name for name in METHODS if name in items[0]]
    if "exact" in names:
        report_exact(items)
    for name in names:
        sums = {what: sum(item[name][what] for item in items) for what in ("log_prob", "calls", "tokens", "seconds")}
        print(name, {what: round(value / len(items), 3) for what, value in sums.items()})
    greedy = sum(item["greedy"]["seconds"] for item in items)
    print("beam 4 / greedy", round(sum(item["beam by length"]["seconds"] for item in items) / greedy, 2))
    sampled = [item["samples"] for item in items if "samples" in item]
    if sampled:
        together, single = (sum(one[what] for one in sampled) for what in ("together", "single"))
        print("samples together / single", round(together / single, 2))


def report_exact(items: list[dict[str, Any]]) -> None:
    """What was proven."""
    exact = [item["exact"] for item in items]
    # llama.cpp's logits depend on what is read in the same call: the same text has another number, by up to 0.4 nats.
    best = [max((item[name] for name in METHODS if name != "exact"), key=lambda one: one["log_prob"]) for item in items]
    pairs = [(one, other) for one, other in zip(exact, best, strict=True) if one["text"] != other["text"]]
    less = sum(one["log_prob"] < other["log_prob"] for one, other in pairs)
    proven = [one for one in exact if not one["gap"]]
    gaps = [one["gap"] for one in exact if one["gap"]]
    print(f"{len(items)} items; of exact {less} texts are less likely than another's, {len(pairs) - less} likelier")
    print(
        f"proven within {BUDGET} tokens: {len(proven)}; median gap of the others {statistics.median(gaps or [0]):.2f}"
    )


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--items", type=int, default=40)
    parser.add_argument("--samples", type=int, default=16)
    parser.add_argument("--sampled", type=int, default=6, help="items of which samples are drawn")
    parser.add_argument("--backend", default="llamacpp", help="llamacpp, or transformers in float32")
    parser.add_argument("--times", action="store_true", help="without the exact search")
    options = parser.parse_args()
    methods = [name for name in METHODS if name != "exact" or not options.times]
    done: list[dict[str, Any]] = json.loads(options.results.read_text()) if options.results.exists() else []
    each = -(-options.items // len(TASKS))
    in_turn = [item for items in zip(*(items_of(task, each, 0) for task in TASKS), strict=True) for item in items]
    if options.backend == "llamacpp":
        generator, _ = generator_of(None, "llamacpp")
    else:
        import torch

        torch.set_num_threads(1)
        generator = Generator(backend=options.backend)
    for number, item in enumerate(in_turn[len(done) : options.items], len(done)):
        done.append(searched(generator, item, options.samples if number < options.sampled else 0, methods))
        options.results.write_text(json.dumps(done, indent=0))
    report(done)


if __name__ == "__main__":
    main()
