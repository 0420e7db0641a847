"""The choice of threads on models of a billion parameters and more, with random weights, by the clock.

    python benchmarks/llamacpp_threads.py [--sizes 1B 8B] [--types Q4_0 Q8_0] [--tokens 48] [--folder FOLDER]

For each size and type a file is written (0.6 to 8.5 GB, deleted at the end), and single tokens, calls of eight tokens
and a prompt of 128 are read with one thread, with all, and with as many as are chosen; by turns, on a quiet machine and
with one other busy process. What is printed is tokens a second, and the chosen of the better fixed number.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # what is measured

from default_path import busy  # noqa: E402

from structgen.generation.models.llamacpp.files import open_file  # noqa: E402
from structgen.generation.models.llamacpp.threads import TimedContext  # noqa: E402
from tests.generation.models.llamacpp.gguf_files import byte_level  # noqa: E402

PROMPT, BATCH = 128, 8
ROUNDS = 3


class Shape(NamedTuple):
    """Of a Llama."""

    layers: int
    width: int
    heads: int
    key_heads: int
    inner: int


SHAPES = {  # TinyLlama's, Llama 3.2's, Llama 3's
    "1B": Shape(22, 2048, 32, 4, 5632),
    "3B": Shape(28, 3072, 24, 8, 8192),
    "8B": Shape(32, 4096, 32, 8, 14336),
}
VOCABULARY = 32_000


def write(path: Path, shape: Shape, kind: str) -> None:
    """A file with random weights; layers share theirs, as numbers cost the same whatever they are."""
    import gguf

    writer = gguf.GGUFWriter(path, "llama")

    def tokens(into: Any) -> None:
        """The tests' tokenizer, filled up."""
        add = into.add_token_list, into.add_token_types
        into.add_token_list = lambda known: add[0]([*known, *(f"<{i}>" for i in range(VOCABULARY - len(known)))])
        into.add_token_types = lambda known: add[1]([*known, *[1] * (VOCABULARY - len(known))])
        byte_level(into)

    tokens(writer)
    writer.add_context_length(2048)
    writer.add_embedding_length(shape.width)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.key_heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(shape.width // shape.heads)
    writer.add_vocab_size(VOCABULARY)
    rng, of = np.random.default_rng(0), gguf.GGMLQuantizationType[kind]

    def made(rows: int, columns: int) -> Any:
        weights = rng.standard_normal((rows, columns), np.float32) / np.sqrt(columns)
        return gguf.quants.quantize(weights, of)

    keys = shape.width // shape.heads * shape.key_heads
    sizes = {
        "attn_q": (shape.width, shape.width),
        "attn_k": (keys, shape.width),
        "attn_v": (keys, shape.width),
        "attn_output": (shape.width, shape.width),
        "ffn_gate": (shape.inner, shape.width),
        "ffn_up": (shape.inner, shape.width),
        "ffn_down": (shape.width, shape.inner),
    }
    layer = {name: made(*size) for name, size in sizes.items()}
    norm, ends = np.ones(shape.width, np.float32), made(VOCABULARY, shape.width)
    for name in ("token_embd.weight", "output.weight"):
        writer.add_tensor(name, ends, raw_dtype=of)
    writer.add_tensor("output_norm.weight", norm)
    for number in range(shape.layers):
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"blk.{number}.{name}.weight", norm)
        for name, weights in layer.items():
            writer.add_tensor(f"blk.{number}.{name}.weight", weights, raw_dtype=of)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def rate(context: Any, count: int, size: int) -> float:
    """Tokens a second of so many calls of so many tokens each, behind an empty sequence."""
    context.remove(0, 0)
    start = time.perf_counter()
    for place in range(count):
        first = place * size
        positions = list(range(first, first + size))
        context.decode([100 + p % 99 for p in positions], positions, [[0]] * size, [False] * (size - 1) + [True])
    return count * size / (time.perf_counter() - start)


def measure(path: Path, tokens: int) -> None:
    """All of one file."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    file = open_file(path, device="cpu")
    contexts: dict[str, Any] = {
        "one thread": file.start(2048, 1, 1),
        "all threads": file.start(2048, 1, cores),
        "chosen": TimedContext(file.start(2048, 1, cores), cores),
    }
    for place in ("quiet", "busy"):
        with busy(place == "busy"):
            for what, count, size in (("token", tokens, 1), ("eight", max(2, tokens // 8), 8), ("prompt", 1, PROMPT)):
                seen: dict[str, list[float]] = {name: [] for name in contexts}
                rate(contexts["chosen"], count, size)  # what it learns
                for _, (name, context) in itertools.product(range(ROUNDS), contexts.items()):
                    seen[name].append(rate(context, count, size))
                rates = {name: float(np.median(each)) for name, each in seen.items()}
                ratio = rates["chosen"] / max(rates["one thread"], rates["all threads"])
                each = "  ".join(f"{name} {value:7.2f}" for name, value in rates.items())
                print(f"{path.stem:<10} {place:<5} {what:<6} {each}  {ratio:.2f} of the better", flush=True)


def main() -> None:
    """Write the files and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", default=["1B", "8B"], choices=SHAPES)
    parser.add_argument("--types", nargs="+", default=["Q4_0", "Q8_0"])
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for size, kind in itertools.product(options.sizes, options.types):
            path = Path(folder) / f"{size}-{kind}.gguf"
            write(path, SHAPES[size], kind)
            measure(path, options.tokens if size == "1B" else max(8, options.tokens // 4))
            path.unlink()


if __name__ == "__main__":
    main()
