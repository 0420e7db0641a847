"""Tokens a second of llama.cpp beside transformers' in one run: plain and with drafts, one row and many.

    python benchmarks/llamacpp.py [--rows 1 16] [--tokens 96] [--repeats 2] [--out results/llamacpp.json]

The built-in model: through llama.cpp with its weights as they are (Q4_1), through transformers in float32. Each package
that brings llama.cpp runs in a process of its own, and so does transformers; they take turns, so that what else the
machine does falls on all. A schema whose outputs are long enough is written greedily; the time is the model's and
everything around it, without loading and without the prompts' first reading.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SCHEMA = {
    "type": "array",
    "minItems": 3,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "born": {"type": "integer"},
            "field": {"enum": ["maths", "physics"]},
        },
        "required": ["name", "born", "field"],
        "additionalProperties": False,
    },
}
PROMPT = "List scientists of the {0}th century."
READERS = ("llama_cpp", "cyllama", "transformers")


def make(reader: str) -> Any:
    """A generator of the built-in model."""
    from structgen.generation.generator import Generator
    from structgen.generation.models.built_in import default_model_file
    from structgen.generation.models.llamacpp.model import load_gguf

    if reader == "transformers":
        return Generator(backend="transformers")
    return Generator(*load_gguf(default_model_file(), package=reader))


def serve_turns(reader: str) -> None:
    """Measure what standard input asks for, a line each: rows, tokens, draft."""
    generator = make(reader)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        rows, tokens, draft = json.loads(line)
        prompts = [PROMPT.format(10 + row % 11) for row in range(rows)]
        options: dict[str, Any] = {"max_new_tokens": tokens, "draft": draft, "schema_in_prompt": False}
        generator.batch(prompts, SCHEMA, **{**options, "max_new_tokens": 60})  # prompts, masks, the cost curve
        start = time.perf_counter()
        results = generator.batch(prompts, SCHEMA, **options)
        seconds = time.perf_counter() - start
        written = sum(result.stats.output_tokens for result in results)
        calls = sum(result.stats.target_forwards for result in results)
        curve = generator._cost.curve if draft else None
        print(
            json.dumps(
                {
                    "tokens_a_second": written / seconds,
                    "tokens": written,
                    "forwards": calls,
                    "curve": curve and dict(zip(curve.counts, curve.times, strict=True)),
                }
            ),
            flush=True,
        )


def main() -> None:
    """Run the table; each figure is the best of its repeats."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--tokens", type=int, default=96, help="budget of an output")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--readers", nargs="+", default=list(READERS))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.reader:
        serve_turns(options.reader)
        return
    workers = {
        reader: subprocess.Popen(
            [sys.executable, __file__, "--reader", reader], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for reader in options.readers
    }
    answers = {reader: asked(worker, None) for reader, worker in workers.items()}
    found: list[dict[str, Any]] = []
    for rows in options.rows:
        for draft in (None, "auto"):
            best: dict[str, Any] = {}
            for _ in range(options.repeats):
                for reader, worker in workers.items():
                    answers[reader] = asked(worker, (rows, options.tokens, draft))
                    if answers[reader]["tokens_a_second"] > best.get(reader, {}).get("tokens_a_second", 0.0):
                        best[reader] = answers[reader]
            for reader, answer in best.items():
                found.append({"reader": reader, "rows": rows, "draft": draft, **answer})
                print(
                    f"{reader:>12}  {rows:>2} rows  {draft or 'plain':>5}  {answer['tokens_a_second']:7.1f} tokens/s  "
                    f"{answer['tokens'] / answer['forwards']:.2f} tokens a call and row",
                    flush=True,
                )
    for worker in workers.values():
        worker.communicate()
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def asked(worker: Any, question: Any) -> dict[str, Any]:
    """Send a question (None: none, it is loading) and wait for the answer."""
    if question is not None:
        worker.stdin.write(json.dumps(question) + "\n")
        worker.stdin.flush()
    line = worker.stdout.readline()
    if not line:
        raise SystemExit(f"a worker has ended: {worker.args}")
    answer: dict[str, Any] = json.loads(line)
    return answer


if __name__ == "__main__":
    main()
