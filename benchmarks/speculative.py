"""Speculative decoding against the plain loop: tokens per forward of the target, time, and where it goes.

    python benchmarks/speculative.py --data DATA [--limit N] [--dtype bfloat16] [--drafts auto,ngram,...]

DATA is a folder of MaskBench files. Each prompt is written by the plain loop and by every draft, one after the other,
so that both meet the same state of the machine; ratios are medians over prompts of (time plain / time with drafts).
Reading the prompt counts as a forward, and its time counts; what is done once a generator (the cost curve) does not.
"total" is the ratio of the summed times. Tasks:

- ``json``: a schema and "write a realistic object that satisfies it" (``--limit`` schemas of each source).
- ``extract``: a schema and a text that holds a valid instance's values: copying pays.
- ``free``: prose without a constraint.
- ``same-schema`` (draft ``auto+store`` on ``json``): with a datastore of earlier outputs for the same schemas, those of
  ``extract`` and of other wordings of the request (``EARLIER``).

A draft keeps what it learned from task to task, its own outputs included ("memory" is part of "auto"): as in a server
that is asked for the same schemas again. No draft ever sees the output that it is measured on.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, product
from pathlib import Path
from typing import Any

import structgen
from structgen.benchmarking.table import markdown_table
from structgen.errors import StructgenError
from structgen.generation.decoding.stats import GenerationStats
from structgen.generation.speculative.datastore import Datastore

SOURCES = ("Kubernetes", "Glaiveai2K", "Github_easy", "Github_medium", "Snowplow")
MAX_PROMPT_TOKENS = 620
EARLIER = (
    "Give an example.",
    "Invent an entry for a test database. Answer in JSON.",
    "Fill in this schema with plausible values.",
)
FREE = (
    "Explain in a few sentences why the sky is blue.",
    "Tell a short story about a lighthouse keeper and a lost dog.",
    "What are the advantages and disadvantages of electric cars?",
    "Give advice to someone who starts a new job next week.",
    "Describe how bread is baked, step by step.",
    "Write a letter to a friend about a holiday in the mountains.",
    "Summarise the history of the printing press.",
    "How does a bicycle stay upright?",
)


@dataclass(frozen=True)
class Task:
    """A prompt and what it is to be answered with."""

    kind: str
    name: str
    prompt: str
    constraint: Any = None


@dataclass
class Figures:
    """What one draft did on one kind of task."""

    tokens: list[int] = field(default_factory=list)
    forwards: list[int] = field(default_factory=list)
    ratios: list[float] = field(default_factory=list)
    seconds: tuple[float, float] = (0.0, 0.0)  # of the plain loop, with drafts
    draft_share: list[float] = field(default_factory=list)
    mask_share: list[float] = field(default_factory=list)
    different: int = 0
    drafted: dict[str, int] = field(default_factory=dict)
    accepted: dict[str, int] = field(default_factory=dict)

    def add(self, stats: GenerationStats, seconds_plain: float, same: bool) -> None:
        """Add an output."""
        self.tokens.append(stats.output_tokens)
        self.forwards.append(stats.target_forwards)
        self.ratios.append(seconds_plain / stats.seconds)
        self.seconds = (self.seconds[0] + seconds_plain, self.seconds[1] + stats.seconds)
        self.draft_share.append(stats.draft_seconds / stats.seconds)
        self.mask_share.append(stats.mask_seconds / stats.seconds)
        self.different += not same
        for total, counts in ((self.drafted, stats.drafted), (self.accepted, stats.accepted)):
            for name, count in counts.items():
                total[name] = total.get(name, 0) + count

    def last(self) -> tuple[int, int, str]:
        """Tokens, forwards and speed of the latest output."""
        return self.tokens[-1], self.forwards[-1], f"{self.ratios[-1]:.2f}"

    def cells(self) -> list[str]:
        """The columns of the table."""
        ratio = statistics.median(self.ratios)
        rates = ", ".join(
            f"{name} {self.accepted.get(name, 0)}/{count}" for name, count in sorted(self.drafted.items())
        )
        return [
            f"{sum(self.tokens) / sum(self.forwards):.2f}",
            f"{ratio:.2f}",
            f"{self.seconds[0] / self.seconds[1]:.2f}",
            f"{100 * statistics.mean(self.draft_share):.1f} %",
            f"{100 * statistics.mean(self.mask_share):.1f} %",
            f"{self.different} of {len(self.tokens)}",
            rates,
        ]


def json_tasks(folder: Path, generator: structgen.Generator, limit: int) -> Iterator[Task]:
    """``limit`` schemas of each source whose prompts are not too long, with both prompts for each."""
    for source in SOURCES:
        found = 0
        for path in sorted(folder.glob(f"{source}*.json")):
            if found == limit:
                break
            record = json.loads(path.read_text(encoding="utf-8"))
            instance = next((test["data"] for test in record.get("tests", ()) if test["valid"]), None)
            if not instance:
                continue
            text = json.dumps(record["schema"])
            if len(generator.tokenizer.encode(text)) > MAX_PROMPT_TOKENS - 150:
                continue
            try:
                constraint = structgen.json_schema(record["schema"])
                constraint.compile(generator.vocabulary)
            except StructgenError:
                continue
            found += 1
            yield Task("json", path.stem, "Write a realistic JSON object that satisfies the schema.", constraint)
            lines = "\n".join(_lines(instance))[:1200]
            yield Task("extract", path.stem, f"Extract the data from this text.\n\n{lines}", constraint)


def _lines(value: Any, label: str = "") -> Iterator[str]:
    """A value as lines of text, "where: what"."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _lines(item, f"{label} {key}".strip())
    elif isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _lines(item, f"{label} {number}".strip())
    else:
        yield f"{label}: {value}"


def free_tasks(limit: int) -> list[Task]:
    """Prose."""
    return [Task("free", str(number), prompt) for number, prompt in enumerate(FREE[: 2 * limit])]


def main() -> None:
    """Run and print the table."""
    options = arguments()
    if options.threads:
        import torch

        torch.set_num_threads(options.threads)
    generator = structgen.Generator(options.model, backend="transformers", device=options.device, dtype=options.dtype)
    tasks = [*json_tasks(options.data, generator, options.limit), *free_tasks(options.limit)]
    tasks = [task for task in tasks if task.kind in options.kinds.split(",")]
    drafts = options.drafts.split(",")
    figures: dict[tuple[str, str], Figures] = {}
    sampling = {"temperature": options.temperature, "seed": 0, "max_new_tokens": options.max_new_tokens}
    generator.generate("Hello.", draft="auto", max_new_tokens=4)  # measures the cost curve, packs weights
    store = earlier_outputs(generator, tasks, sampling) if "auto+store" in drafts else None
    plain: dict[tuple[str, str], Any] = {}
    for _, same_schema in groupby(tasks, key=lambda task: task.name):
        group = list(same_schema)
        for task in group:
            try:
                plain[task.kind, task.name] = generator.generate(task.prompt, task.constraint, **sampling)
            except StructgenError as error:
                print(f"{task.kind} {task.name}: {error}"[:160], file=sys.stderr)
        for task, draft in product(group, drafts):
            expected = plain.get((task.kind, task.name))
            if expected is None or (draft == "auto+store" and task.kind != "json"):
                continue
            chosen: Any = ["auto", store] if draft == "auto+store" else draft
            result = generator.generate(task.prompt, task.constraint, draft=chosen, **sampling)
            same = result.token_ids == expected.token_ids
            entry = figures.setdefault((task.kind, draft), Figures())
            entry.add(result.stats, expected.stats.seconds, same)
            print(task.kind, task.name, draft, *entry.last(), file=sys.stderr, flush=True)
    head = ["task", "draft", "tokens a forward", "speed", "total", "drafting", "masks", "differ", "accepted / drafted"]
    print(markdown_table(head, [[kind, draft, *entry.cells()] for (kind, draft), entry in sorted(figures.items())]))


def earlier_outputs(generator: structgen.Generator, tasks: list[Task], sampling: dict[str, Any]) -> Datastore:
    """A datastore of outputs for the same schemas and other requests."""
    texts = []
    for task in tasks:
        prompts = {"extract": [task.prompt], "json": EARLIER}.get(task.kind, ())
        for prompt in prompts:
            try:
                result = generator.generate(prompt, task.constraint, draft=["auto"], **sampling)
                texts.append(result.token_ids)
            except StructgenError as error:
                print(f"{task.kind} {task.name}: {error}"[:160], file=sys.stderr)
    return Datastore.build(texts, generator.vocabulary)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of MaskBench files")
    parser.add_argument("--limit", type=int, default=8, help="schemas of each source")
    parser.add_argument("--kinds", default="json,extract,free")
    parser.add_argument("--drafts", default="auto,forced,ngram,recycling,auto+store")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--max-new-tokens", type=int, default=160)
    parser.add_argument("--threads", type=int, help="of torch")
    parser.add_argument("--model")
    parser.add_argument("--device")
    parser.add_argument("--dtype")
    return parser.parse_args()


if __name__ == "__main__":
    main()
