"""What each filter adds to a step of the built-in model, at 200,000 tokens: ``python benchmarks/filters.py``.

A draw at temperature 0.8 with each filter of the table alone, and with several together, less one without filters, over
200,000 logits of which all are allowed: those of the built-in model after some texts, each four times with noise (its
vocabulary has 49,152), and normal ones, which are flatter than a model's. A step is a token that the built-in model
writes on one thread, of its own smaller vocabulary. Medians of processor time, all in one run, the filters by turns.
"""

from __future__ import annotations

import statistics
import time

import numpy as np
import numpy.typing as npt

from structgen import Generator
from structgen.core.constraints.text import regex
from structgen.generation.filters.table import FILTERS
from structgen.generation.models.built_in import default_model_file
from structgen.generation.models.llamacpp.model import load_gguf
from structgen.generation.sampling.host import HostSampler
from structgen.generation.sampling.params import SamplingParams
from structgen.generation.sampling.sampler import DrawRequest

SIZE, ROUNDS, TOKENS = 200_000, 60, 120
TEXTS = ["The capital of France is", '{"name": "', "Once upon a time", "def main(", "Dear Sir or Madam,", "1, 2, 3,"]
USUAL = {
    "top_n_sigma": 1.0, "top_h": 0.4, "top_k": 50, "top_p": 0.95, "min_p": 0.05, "typical_p": 0.95,
    "epsilon_cutoff": 3e-4, "eta_cutoff": 3e-4, "bregman_cost": 0.05,
}  # fmt: skip
KINDS: dict[str, dict[str, float]] = {
    "no filter": {},
    **{one.name: {one.name: USUAL[one.name]} for one in FILTERS},
    "top_k, top_p, min_p": {name: USUAL[name] for name in ("top_k", "top_p", "min_p")},
    "typical_p, top_p": {name: USUAL[name] for name in ("typical_p", "top_p")},
}


def rows(generator: Generator) -> dict[str, list[npt.NDArray[np.float32]]]:
    """Logits by kind."""
    rng, found = np.random.default_rng(0), list[npt.NDArray[np.float32]]()
    for text in TEXTS:
        row = np.asarray(generator.model.prefill([generator.tokenizer.encode(text)])[0][0], np.float32)
        row = np.tile(row, -(-SIZE // len(row)))[:SIZE]
        found.append(row + rng.normal(0, 1, SIZE).astype(np.float32))
    return {"model": found, "normal": [rng.normal(0, 3, SIZE).astype(np.float32) for _ in TEXTS]}


def step_seconds(generator: Generator) -> float:
    """Processor seconds of a token."""
    any_text = regex(r"[\s\S]*")
    generator.generate("Tell a story.", any_text, max_new_tokens=8)
    begun = time.process_time()
    count = generator.generate("Tell a story.", any_text, max_new_tokens=TOKENS, temperature=0.8, seed=0).stats
    return (time.process_time() - begun) / count.output_tokens


def main() -> None:
    """See above."""
    generator = Generator(*load_gguf(default_model_file(), threads=1))
    step, sampler = step_seconds(generator), HostSampler()
    mask = np.full((1, -(-SIZE // 32)), -1, np.int32)
    print(f"a step of the built-in model: {1e3 * step:.2f} ms")
    for kind, lines in rows(generator).items():
        seconds: dict[str, list[float]] = {name: [] for name in KINDS}
        for number in range(ROUNDS):
            for name, options in KINDS.items():
                params = SamplingParams(0.8, **options)  # type: ignore[arg-type]
                request = DrawRequest(params, 1, number, 0, 0)
                begun = time.process_time()
                sampler.draw(lines[number % len(lines)][None], mask, [request])
                seconds[name].append(time.process_time() - begun)
        plain = statistics.median(seconds["no filter"])
        print(f"{kind} logits, a draw without filters {1e3 * plain:.2f} ms ({plain / step:.3f} of a step)")
        for name, taken in seconds.items():
            more = statistics.median(taken) - plain
            print(f"  {name:22} {1e3 * more:6.2f} ms more, {more / step:6.3f} of a step")


if __name__ == "__main__":
    main()
