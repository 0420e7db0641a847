"""What do drafts give to one who asks for the first time, and what does it cost to begin?

    python benchmarks/fresh_drafts.py DATA [--backend transformers] [--schemas N] [--temperature T] [--no-plain]

DATA is a folder of MaskBench files. Each of 20 prompts has a schema that was not met before, by turns "write a
realistic object" and "extract the data from this text"; nothing is asked twice. One generator drafts
(``draft="auto"``), another does not, by turns, so that both meet the same state of the machine; each has its own copy
of the model, since drafts may have weights rearranged. Printed are tokens a forward (reading the prompt counts as one),
how many times as fast as plain, by the clock and by seconds of the processor (all threads: run with OMP_NUM_THREADS=1),
in all and as the median of outputs; and what the first output with drafts took beyond the same output again: seconds
and bytes of memory.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from speculative import Task, json_tasks

import structgen
from structgen.benchmarking.table import markdown_table
from structgen.errors import StructgenError

FIRST = "Ada, 36, from London"
FIRST_SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@dataclass
class Spent:
    """What a call took: seconds by the clock and of the processor, and bytes that memory grew by."""

    clock: float = 0.0
    processor: float = 0.0
    grown: int = 0


@dataclass
class Sums:
    """What outputs gave and took, with drafts and plain."""

    tokens: int = 0
    forwards: int = 0
    different: int = 0
    drafted: list[Spent] = field(default_factory=list)
    plain: list[Spent] = field(default_factory=list)

    def times(self, what: str) -> tuple[float, float]:
        """How many times as fast as plain: in all, and the median of outputs."""
        pairs = [(getattr(p, what), getattr(d, what)) for p, d in zip(self.plain, self.drafted, strict=True)]
        return sum(p for p, _ in pairs) / sum(d for _, d in pairs), statistics.median(p / d for p, d in pairs)


def resident() -> int:
    """Bytes of memory that this process holds (Linux; 0 elsewhere)."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def spent(generator: structgen.Generator, task: Task, **options: Any) -> tuple[structgen.GenerationResult, Spent]:
    """An output, and what it took. Prompts are read anew."""
    generator.reader.forget_prefixes()
    gc.collect()
    before, start, processor = resident(), time.perf_counter(), time.process_time()
    result = generator.generate(task.prompt, task.constraint, **options)
    return result, Spent(time.perf_counter() - start, time.process_time() - processor, resident() - before)


def first_use(generator: structgen.Generator, **options: Any) -> None:
    """Print what the first output with drafts takes beyond the third."""
    task = Task("first", "first", FIRST, structgen.json_schema(FIRST_SCHEMA))
    spent(generator, task, draft=None, **options)  # what any first output takes
    times = [spent(generator, task, **options)[1] for _ in range(3)]
    print(
        f"first use: {times[0].clock - times[2].clock:.2f} s ({times[0].processor - times[2].processor:.2f} s of the "
        f"processor), {times[0].grown / 2**20:.0f} MiB; the output then takes {times[2].clock:.2f} s"
    )


def fresh_tasks(folder: Path, generator: structgen.Generator, schemas: int) -> Iterator[Task]:
    """A task for each schema, of both kinds by turns."""
    tasks = list(json_tasks(folder, generator, -(-schemas // 5)))
    yield from (tasks[place + place // 2 % 2] for place in range(0, 2 * schemas, 2))


def main() -> None:
    """Run and print."""
    options = arguments()
    drafting = structgen.Generator(options.model, backend=options.backend, draft="auto")
    plain = None if options.no_plain else structgen.Generator(options.model, backend=options.backend)
    sampling = {"temperature": options.temperature, "seed": 0, "max_new_tokens": options.max_new_tokens}
    held = resident()
    first_use(drafting, **sampling)
    sums = Sums()
    rows = []
    for number, task in enumerate(fresh_tasks(options.data, drafting, options.schemas)):
        try:
            outputs = {}
            for generator in (drafting, plain) if number % 2 else (plain, drafting):
                if generator is not None:
                    outputs[generator] = spent(generator, task, **sampling)
        except StructgenError as error:
            print(f"{task.kind} {task.name}: {error}"[:160], file=sys.stderr)
            continue
        result, took = outputs[drafting]
        sums.tokens += result.stats.output_tokens
        sums.forwards += result.stats.target_forwards
        sums.drafted.append(took)
        row = [task.kind, task.name, str(result.stats.output_tokens), str(result.stats.target_forwards)]
        row.append(f"{100 * result.stats.draft_seconds / result.stats.seconds:.0f} %")
        if plain is not None:
            expected, alone = outputs[plain]
            sums.plain.append(alone)
            sums.different += expected.token_ids != result.token_ids
            row += [f"{alone.clock / took.clock:.2f}", f"{alone.processor / took.processor:.2f}"]
        rows.append(row)
        print(*row, file=sys.stderr, flush=True)
        if options.verbose:
            print(json.dumps(result.text), result.stats.drafted, result.stats.accepted, file=sys.stderr)
    head = ["task", "schema", "tokens", "forwards", "drafting"]
    print(markdown_table(head if plain is None else [*head, "speed by clock", "by processor"], rows))
    print(
        f"{sums.tokens / sums.forwards:.2f} tokens a forward; {(resident() - held) / 2**20:.0f} MiB more than at first"
    )
    if plain is not None:
        for what in ("clock", "processor"):
            whole, median = sums.times(what)
            print(f"by {what}: {whole:.2f} times as fast as plain in all, {median:.2f} the median")
        print(f"{sums.different} of {len(rows)} outputs differ from plain")


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of MaskBench files")
    parser.add_argument("--schemas", type=int, default=20)
    parser.add_argument("--backend", help="llamacpp or transformers")
    parser.add_argument("--model")
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--max-new-tokens", type=int, default=160)
    parser.add_argument("--no-plain", action="store_true", help="count tokens a forward only")
    parser.add_argument("--verbose", action="store_true", help="show outputs, and who drafted what")
    return parser.parse_args()


if __name__ == "__main__":
    main()
