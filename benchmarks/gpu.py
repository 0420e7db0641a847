"""What do masks, drawn tokens and judged drafts cost on a GPU, beside what moving their bytes must cost?

    python benchmarks/gpu.py                          on the GPU that is here, all questions
    python benchmarks/gpu.py --only apply,draw --rows 1,64 --vocabularies 128000
    python benchmarks/gpu.py --device cpu --small     a rehearsal: does it run?

- **floor**: bytes a second that a copy and a fill move; what is compared with below.
- **apply**: masks to logits in place, against xgrammar's Triton, CUDA and torch kernels; masks of few tokens (a key),
  of half of them at random, of nearly all (inside a string). Floor: the bytes of the forbidden logits and of the masks.
- **draw**: mask and sample, the transfers down and up included ("device": without waiting for the host), against
  torch's mask, softmax and multinomial. Floor: the bytes of the logits that masks allow by words, and of the masks.
- **step**: a forward of a Llama-shaped model with random weights and a draw, with masks (half of them new each step)
  and without.
- **tree**: verification of draft trees of 32 nodes, against a draw by torch and a walk on the host.

Prints tables of medians (and 95th percentiles) in µs, and with --json writes every figure.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from structgen.benchmarking.peers import xgrammar_application
from structgen.benchmarking.table import markdown_table
from structgen.core.engines.apply import apply_bitmask
from structgen.core.engines.apply.triton_here import triton_runs_on
from structgen.generation.sampling import SamplingParams
from structgen.generation.sampling.device_batch import Batch
from structgen.generation.sampling.device_trees import Drafted, verify_trees
from structgen.generation.sampling.sampler import DrawRequest
from structgen.generation.sampling.torch_sampler import TorchSampler

Record = dict[str, Any]
KINDS = {"few": 0.0005, "half": 0.5, "most": 0.97}
PARTS = ("floor", "apply", "draw", "step", "tree")
PARAMS = {
    "greedy": SamplingParams(),
    "temperature": SamplingParams(temperature=0.8),
    "top_k, top_p": SamplingParams(temperature=0.8, top_k=50, top_p=0.95),
}
NODES = 32


class Clock:
    """Times of a call in µs: by events on a GPU, after what is queued; by the wall's clock otherwise.

    Args:
        device: where the calls work.
        repeats: how many times are taken, after a tenth as many to warm up.
    """

    def __init__(self, device: torch.device, repeats: int) -> None:
        self.device, self.repeats = device, repeats
        self._ballast = torch.zeros(8192, 8192, dtype=torch.float16, device=device) if device.type == "cuda" else None

    def __call__(self, call: Callable[[], object]) -> list[float]:
        """Times of the work that the call gives to the device, which is kept busy until all of it is queued."""
        if self._ballast is None:
            return self.wall(call)
        self._warm(call)
        times = []
        for _ in range(self.repeats):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            torch.mm(self._ballast, self._ballast)
            start.record()
            call()
            end.record()
            torch.cuda.synchronize()
            times.append(1e3 * start.elapsed_time(end))
        return times

    def wall(self, call: Callable[[], object]) -> list[float]:
        """Times from the call to the end of its work."""
        self._warm(call)
        times = []
        for _ in range(self.repeats):
            start = time.perf_counter()
            call()
            self._finish()
            times.append(1e6 * (time.perf_counter() - start))
        return times

    def _warm(self, call: Callable[[], object]) -> None:
        for _ in range(max(2, self.repeats // 10)):
            call()
        self._finish()

    def _finish(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()


def figures(times: list[float]) -> Record:
    """Median and tail, µs."""
    return {"median": statistics.median(times), "p95": float(np.percentile(times, 95))}


def masks(rows: int, vocabulary: int, kind: str, seed: int = 0) -> np.ndarray:
    """Random bitmasks, int32 [rows, W], each allowing at least one token."""
    rng = np.random.default_rng(seed)
    made = np.zeros((rows, -(-vocabulary // 32)), np.int32)
    for row in made:  # row by row: a thousand at once would take gigabytes
        allowed = rng.random(32 * len(row)) < KINDS[kind]
        allowed[rng.integers(vocabulary)] = True
        allowed[vocabulary:] = False
        row[:] = np.packbits(allowed, bitorder="little").view(np.int32)
    return made


def sampler_on(device: torch.device) -> TorchSampler:
    """The kernels where Triton compiles them, else the torch operations (on a CPU too: they are what is rehearsed)."""
    if triton_runs_on(device.type):
        from structgen.generation.sampling.triton_sampler import TritonSampler

        return TritonSampler(device)
    return TorchSampler(device)


def asked(rows: int, params: SamplingParams) -> list[DrawRequest]:
    """One request a row."""
    return [DrawRequest(params, seed, 0, seed, seed) for seed in range(rows)]


def bandwidth(clock: Clock, options: argparse.Namespace) -> Iterator[Record]:
    """Bytes a second of reading and writing, and of writing alone."""
    source = torch.zeros((1 << 22) if options.small else (1 << 28), dtype=torch.float32, device=clock.device)
    target = torch.empty_like(source)
    for name, call, size in (
        ("copy", partial(target.copy_, source), 2 * 4 * source.numel()),
        ("fill", partial(target.fill_, 1.0), 4 * source.numel()),
    ):
        found = figures(clock(call))
        yield {"part": "floor", "what": name, "bytes": size, **found, "GB/s": size / found["median"] / 1e3}


def application(clock: Clock, options: argparse.Namespace, rates: dict[str, float]) -> Iterator[Record]:
    """Masks applied in place; applying them again changes nothing, so the same logits serve."""
    peers: dict[str, Callable[[Any, Any], None]] = {"structgen": apply_bitmask}
    for kernel in ("triton", "cuda", "torch"):
        try:
            if kernel != "torch" and clock.device.type != "cuda":
                raise ImportError("needs a GPU")
            apply = xgrammar_application(kernel)
            apply(torch.zeros(1, 32, device=clock.device), torch.ones(1, 1, dtype=torch.int32, device=clock.device))
            peers[f"xgrammar {kernel}"] = apply
        except Exception as error:  # a peer that does not run here must not end the run
            print(f"xgrammar's {kernel} kernel is left out: {str(error)[:150]!r}")
    for rows, vocabulary, logits in _logits(clock.device, options):
        for kind in KINDS:
            words = masks(rows, vocabulary, kind)
            there = torch.from_numpy(words).to(clock.device)
            forbidden = rows * vocabulary - int(np.bitwise_count(words.view(np.uint32)).sum())
            floor = (forbidden * logits.element_size() / rates["fill"] + words.nbytes / rates["copy"]) * 1e6
            for name, apply in peers.items():
                yield {
                    "part": "apply", "what": name, "rows": rows, "vocabulary": vocabulary, "mask": kind,
                    "floor": floor, **figures(clock(partial(apply, logits, there))),
                }  # fmt: skip


def _logits(device: torch.device, options: argparse.Namespace) -> Iterator[tuple[int, int, torch.Tensor]]:
    dtype = getattr(torch, options.dtype)
    generator = torch.Generator(device).manual_seed(0)
    for vocabulary in options.vocabularies:
        for rows in options.rows:
            yield rows, vocabulary, torch.randn(rows, vocabulary, generator=generator, device=device).to(dtype)


def drawing(clock: Clock, options: argparse.Namespace, rates: dict[str, float]) -> Iterator[Record]:
    """Tokens on the host, from logits and masks; and how much of it is work of the device."""
    sampler = sampler_on(clock.device)
    for rows, vocabulary, logits in _logits(clock.device, options):
        words = masks(rows, vocabulary, "half")
        read = 32 * int(np.count_nonzero(words)) * logits.element_size() + words.nbytes
        place: Record = {"part": "draw", "rows": rows, "vocabulary": vocabulary, "floor": read / rates["copy"] * 1e6}
        sent = sampler.send(words)
        for name, params in PARAMS.items():
            requests = asked(rows, params)
            wall = figures(clock.wall(partial(sampler.draw, logits, sent, requests)))
            yield {**place, "what": f"structgen, {name}", **wall}
            device = figures(clock(partial(sampler.drawn, logits, sent, Batch.of(requests))))
            yield {**place, "what": f"structgen, {name}, device", **device}
        there = torch.from_numpy(words).to(clock.device)
        for name, by_torch in (("greedy", torch_argmax), ("temperature", torch_multinomial)):
            wall = figures(clock.wall(partial(by_torch, logits, there)))
            yield {**place, "what": f"torch, {name}", **wall}


def torch_masked(logits: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """A masked copy, by the fastest way here: draws must not change the logits."""
    copied = logits.clone()
    apply_bitmask(copied, words)
    return copied


def torch_argmax(logits: torch.Tensor, words: torch.Tensor) -> list[int]:
    """The likeliest allowed tokens."""
    return list(torch_masked(logits, words).argmax(1).tolist())


def torch_multinomial(logits: torch.Tensor, words: torch.Tensor) -> list[int]:
    """A token each, by softmax and multinomial."""
    probs = torch.softmax(torch_masked(logits, words).float() / 0.8, 1)
    return list(torch.multinomial(probs, 1)[:, 0].tolist())


def forwards(clock: Clock, options: argparse.Namespace) -> Iterator[Record]:
    """A decoding step with a constraint and one without, at the largest batch that was asked for and at one row."""
    try:
        from transformers import LlamaConfig, LlamaForCausalLM
    except ImportError as error:
        print(f"steps are left out: {error}")
        return
    vocabulary = options.vocabularies[-1]
    config = LlamaConfig(
        vocab_size=vocabulary, hidden_size=options.hidden, intermediate_size=4 * options.hidden,
        num_hidden_layers=options.layers, num_attention_heads=options.hidden // 64,
        num_key_value_heads=max(1, options.hidden // 256), tie_word_embeddings=True,
    )  # fmt: skip
    with torch.device(clock.device):
        model = LlamaForCausalLM(config).to(getattr(torch, options.dtype)).eval()
    sampler = sampler_on(clock.device)
    for rows in sorted({1, min(64, max(options.rows))}):
        tokens = torch.zeros(rows, 1, dtype=torch.int64, device=clock.device)
        requests = asked(rows, PARAMS["temperature"])
        free, repeating = masks(rows, vocabulary, "most") | -1, masks(rows, vocabulary, "most", 1)
        seeds = iter(range(2, 1 << 30))

        @torch.no_grad()
        def step(
            constrained: bool, rows: int = rows, free: Any = free, old: Any = repeating, tokens: Any = tokens,
            requests: Any = requests, seeds: Any = seeds,
        ) -> None:  # fmt: skip
            logits = model(input_ids=tokens, use_cache=False).logits[:, -1]
            bitmask = free
            if constrained:  # half of the rows are new; as a server, while the device computes
                rng = np.random.default_rng(next(seeds))
                bitmask = old.copy()
                bitmask[::2, 0] = rng.integers(1, 1 << 30, len(bitmask[::2]))
            sampler.draw(logits, sampler.send(bitmask), requests)

        for name, constrained in (("free", False), ("constrained", True)):
            yield {
                "part": "step", "what": name, "rows": rows, "vocabulary": vocabulary,
                **figures(clock.wall(partial(step, constrained))),
            }  # fmt: skip


def trees(clock: Clock, options: argparse.Namespace) -> Iterator[Record]:
    """All nodes of draft trees drawn, and the accepted paths on the host."""
    vocabulary, sampler = options.vocabularies[-1], sampler_on(clock.device)
    rng = np.random.default_rng(0)
    for count in sorted({1, min(16, max(options.rows))}):
        nodes = count * NODES
        logits = torch.randn(nodes, vocabulary, device=clock.device).to(getattr(torch, options.dtype))
        words = masks(nodes, vocabulary, "half")
        parents = [-1, *(int(rng.integers(0, place)) for place in range(1, NODES))]
        tokens = list(range(NODES))
        drafted = []
        for first in range(0, nodes, NODES):
            rows = np.arange(first, first + NODES)
            drafted.append(Drafted(tokens, parents, PARAMS["temperature"], first, 0, rows, rows))
        sent, there = sampler.send(words), torch.from_numpy(words).to(clock.device)

        by_torch = partial(walk_trees, logits, there, drafted)
        for name, call in (("structgen", partial(verify_trees, sampler, logits, sent, drafted)), ("torch", by_torch)):
            yield {
                "part": "tree", "what": name, "rows": count, "vocabulary": vocabulary,
                **figures(clock.wall(call)),
            }  # fmt: skip


def walk_trees(logits: torch.Tensor, words: torch.Tensor, drafted: list[Drafted]) -> list[int]:
    """The last node of each path: a draw of all nodes by torch, then a walk on the host."""
    drawn, last = torch_multinomial(logits, words), []
    for tree in drafted:
        children = dict(zip(zip(tree.parents, tree.tokens, strict=True), range(NODES), strict=True))
        node, following = 0, cast(int | None, 0)
        while following is not None:
            node = following
            following = children.get((node, drawn[int(tree.logits_rows[node])]))
        last.append(node)
    return last


def measure(options: argparse.Namespace) -> list[Record]:
    """All parts that were asked for."""
    clock = Clock(torch.device(options.device), options.repeats)
    records = list(bandwidth(clock, options))
    rates = {record["what"]: record["GB/s"] * 1e9 for record in records}
    for part, found in {
        "apply": partial(application, clock, options, rates), "draw": partial(drawing, clock, options, rates),
        "step": partial(forwards, clock, options), "tree": partial(trees, clock, options),
    }.items():  # fmt: skip
        if part in options.only:
            records += found()
    return records


def report(records: list[Record]) -> str:
    """Markdown: a table for each part, a row for each place, a column for each way."""
    rates = [[record["what"], f"{record['GB/s']:,.0f}"] for record in records if record["part"] == "floor"]
    parts = ["## floor", markdown_table(["", "GB/s"], rates)]
    for part in PARTS[1:]:
        some = [record for record in records if record["part"] == part]
        if not some:
            continue
        names = list(dict.fromkeys(record["what"] for record in some))
        places = dict.fromkeys(map(_place, some))
        rows = []
        for place in places:
            here = {
                r["what"]: r for r in some if place == (r["rows"], r["vocabulary"], r.get("mask", ""), r.get("floor"))
            }
            shown = [f"{here[n]['median']:,.1f} ({here[n]['p95']:,.1f})" if n in here else "" for n in names]
            floor = "" if place[3] is None else f"{place[3]:,.1f}"
            rows.append([f"B = {place[0]:,}, V = {place[1]:,} {place[2]}".strip(), floor, *shown])
        parts += [f"## {part}, µs: median (95th percentile)", markdown_table(["", "floor", *names], rows)]
    return "\n\n".join(parts)


def _place(record: Record) -> tuple[Any, ...]:
    return record["rows"], record["vocabulary"], record.get("mask", ""), record.get("floor")


def numbers(text: str) -> list[int]:
    """Integers between commas."""
    return [int(each) for each in text.split(",")]


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Options; ``--small`` replaces the sizes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(PARTS))
    parser.add_argument("--rows", type=numbers, default=[1, 4, 16, 64, 256, 1024])
    parser.add_argument("--vocabularies", type=numbers, default=[49_152, 128_256, 200_000])
    parser.add_argument("--dtype", default="bfloat16", choices=["float32", "float16", "bfloat16"])
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--hidden", type=int, default=2048, help="of the model, a multiple of 256")
    parser.add_argument("--layers", type=int, default=16)
    parser.add_argument("--small", action="store_true", help="sizes that a CPU goes through in seconds")
    parser.add_argument("--json", type=Path, help="where to write every figure")
    options = parser.parse_args(arguments)
    if options.small:
        options.rows, options.vocabularies, options.repeats = [1, 3], [500, 2100], 3
        options.hidden, options.layers = 256, 1
    return options


def main(arguments: list[str] | None = None) -> None:
    """Measure, print, write."""
    options = parse(arguments)
    records = measure(options)
    name = torch.cuda.get_device_name(options.device) if options.device.startswith("cuda") else platform.machine()
    print(f"{name}, torch {torch.__version__}, {options.dtype}, {options.repeats} repeats\n\n{report(records)}")
    if options.json:
        options.json.write_text(json.dumps({"device": name, "torch": torch.__version__, "records": records}, indent=1))


if __name__ == "__main__":
    main()
