"""How far are samples of each method from the target, and what does a sample cost?

    PYTHONPATH=. python benchmarks/aligned.py enumerable [--plot docs/images/aligned.png]
    PYTHONPATH=. python benchmarks/aligned.py gad --gad DATA/gad --output gad.jsonl [--only SLIA] [--seconds 120]
    PYTHONPATH=. python benchmarks/aligned.py warm --tokenizers DATA/tokenizers [--vocabulary llama3]

enumerable: languages small enough to enumerate under a tiny n-gram model. KL(samples || target) of the first 300
samples of a fresh store, less the floor (the mean KL of 300 samples of the target itself), the mean of several seeds.
gad: tasks of the Grammar-Aligned Decoding paper with the built-in model: tokens and calls of the model to the first
exact sample, to 100, and for 100 more; calls of one draw of 100 from a fresh store (where the first got so many);
effective sample size of 100 weighted samples from a fresh store.
warm: samples a second from a store that knows the whole language, and bytes a node of a narrow grammar.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import structgen
from structgen.benchmarking.table import markdown_table
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.models.tiny import TinyModel
from structgen.generation.target import METHODS, Budget, Method, PrefixStore, Sample, Sampler, Target
from structgen.generation.target.methods import SPECIFICATIONS

N = 300
LENGTH = 7  # tokens of a text in the enumerable set
TEXT = 96  # most tokens of a text in gad
Ids = tuple[int, ...]
VOCABULARY = Vocabulary([None, *(bytes([byte]) for byte in b"ab01()+"), b"ab", b"01", b"a+"], eos_token_ids=0)
LANGUAGES: dict[str, Callable[[], Any]] = {
    "choice": lambda: structgen.compile_choice(["a", "ab", "abab", "ba01", "01", "b+0", "0000", "(a)"], VOCABULARY),
    "skewed": lambda: structgen.compile_regex("000|1[01]{2}", VOCABULARY),
    "sum": lambda: structgen.compile_lark('start: t | t "+" t\nt: "a" | "b" | "(" t ")"', VOCABULARY),
    "even": lambda: structgen.compile_regex("(aa|bb|a0)*", VOCABULARY),
}


class PromptCopy:
    """What followed the last tokens where they occurred in the prompt: examples are often copied, at least in part.

    Args:
        prompt_ids: the prompt.
        length: most tokens of a guess.
        match: tokens that must agree.
    """

    def __init__(self, prompt_ids: Sequence[int], length: int = 8, match: int = 3) -> None:
        self._prompt, self._length, self._match = list(prompt_ids), length, match
        self._after: dict[tuple[int, ...], int] = {}
        for end in range(match, len(self._prompt)):  # the last occurrence wins
            self._after[tuple(self._prompt[end - match : end])] = end

    def __call__(self, prefix: Sequence[int]) -> Sequence[int]:
        """The guess after a prefix of the text; empty for none. O(match)."""
        last = [*self._prompt[len(self._prompt) - self._match :], *prefix][-self._match :]
        start = self._after.get(tuple(last))
        return () if start is None else self._prompt[start : start + self._length]


def truth_of(model: TinyModel, grammar: Any, max_tokens: int) -> tuple[dict[Ids, float], float]:
    """The target by enumeration, and Z."""
    matcher, mass = grammar.matcher(), dict[Ids, float]()

    def visit(ids: Ids, log_p: float) -> None:
        row = model.prefill([[1, *ids]])[0][0].astype(float)
        row -= np.logaddexp.reduce(row)
        for token in range(VOCABULARY.size):
            if token == 0 and matcher.is_accepting():
                mass[ids] = math.exp(log_p + row[0])
            elif token and len(ids) < max_tokens and matcher.accept_token(token):
                visit((*ids, token), log_p + row[token])
                matcher.rollback(1)

    visit((), 0.0)
    z = sum(mass.values())
    return {ids: p / z for ids, p in mass.items()}, z


def kl(shares: dict[Ids, float], truth: dict[Ids, float]) -> float:
    """KL(shares || truth) in nats."""
    total = sum(shares.values())
    return sum(value / total * math.log(value / total / truth[ids]) for ids, value in shares.items() if value)


def floor(truth: dict[Ids, float], n: int, repetitions: int = 2000) -> float:
    """The mean of KL(n samples of the truth || truth): its bias, about (texts - 1) / 2n."""
    p = np.array(list(truth.values()))
    draws = np.random.default_rng(0).multinomial(n, p / p.sum(), size=repetitions)
    ratios = np.where(draws > 0, draws / (n * p), 1.0)
    return float((draws / n * np.log(ratios)).sum(axis=1).mean())


def shares(samples: Sequence[Sample], method: Method) -> dict[Ids, float]:
    """What the samples say of each text. Plain masking is judged as it is used: every sample counts one."""
    weighted = SPECIFICATIONS[method].weighted and method != "local"
    found: dict[Ids, float] = {}
    for sample in samples:
        found[sample.token_ids] = found.get(sample.token_ids, 0.0) + (math.exp(sample.log_weight) if weighted else 1.0)
    return found


def divergences(
    target: Target, truth: dict[Ids, float], method: Method, seeds: int
) -> Iterator[tuple[float, dict[str, float]]]:
    """KL of the first N samples of fresh stores, and costs a sample."""
    for seed in range(seeds):
        run = Sampler(PrefixStore(target), method, seed=seed, width=8).draw(N, Budget(attempts=200_000))
        n = max(1, len(run.samples))
        costs = {"nodes": (run.steps - run.hits) / n, "calls": run.model_calls / n, "steps": run.steps / n}
        yield kl(shares(run.samples, method), truth), {**costs, "ess": run.ess}


def enumerable(options: argparse.Namespace) -> None:
    """Print the table of divergences."""
    found: dict[Method, list[list[float]]] = {method: [] for method in METHODS}
    zs = []
    for name, compile_ in LANGUAGES.items():
        for model_seed in range(options.models):
            model, grammar = TinyModel(VOCABULARY.size, seed=model_seed, scale=1.0), compile_()
            truth, z = truth_of(model, grammar, LENGTH)
            target = Target(model, [1], grammar, VOCABULARY, max_tokens=LENGTH)
            base = floor(truth, N)
            zs.append(z)
            line = []
            for method in METHODS:
                runs = list(divergences(target, truth, method, options.seeds))
                excess = float(np.mean([value for value, _ in runs])) - base
                keys = ("nodes", "calls", "steps", "ess")
                found[method].append([excess, *(float(np.mean([costs[key] for _, costs in runs])) for key in keys)])
                line.append(f"{method} {excess:.3f}")
            print(
                f"{name} {model_seed}: {len(truth)} texts, Z {z:.2g}, floor {base:.3f}; {', '.join(line)}",
                file=sys.stderr,
            )
    print(f"Z from {min(zs):.2g} to {max(zs):.2g}, {len(zs)} targets, {options.seeds} seeds")
    lines = []
    for method, rows in found.items():
        table = np.array(rows)
        mean = table.mean(axis=0)
        lines.append([method, f"{mean[0]:.4f}", f"{table[:, 0].max():.4f}", *(f"{x:.3g}" for x in mean[1:])])
    head = ["method", "KL above floor, mean", "worst", "prefixes a sample", "calls a sample", "uncached", "ESS of 300"]
    print(markdown_table(head, lines))
    if options.plot:
        plot_divergence(options)


def plot_divergence(options: argparse.Namespace) -> None:
    """KL of the samples so far against their number, over the floor, for one target."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    model, grammar = TinyModel(VOCABULARY.size, seed=0, scale=1.0), LANGUAGES["sum"]()
    truth, z = truth_of(model, grammar, LENGTH)
    target = Target(model, [1], grammar, VOCABULARY, max_tokens=LENGTH)
    counts = [10, 20, 50, 100, 200, 500, 1000]
    figure, axes = pyplot.subplots(figsize=(7, 4.2))
    for method in ("local", "asap", "mh", "smc", "weighted", "exact"):
        curves = []
        for seed in range(options.seeds):
            run = Sampler(PrefixStore(target), method, seed=seed, width=8).draw(counts[-1])
            curve = []
            for n in counts:
                curve.append(kl(shares(run.samples[:n], method), truth))
            curves.append(curve)
        axes.plot(counts, np.mean(curves, axis=0), marker="o", markersize=3, label=method)
    axes.plot(counts, [floor(truth, n) for n in counts], "k--", label="floor: the target's own samples")
    axes.set(xscale="log", yscale="log", xlabel="samples from a fresh store", ylabel="KL to the target (nats)")
    axes.set_title(f"Samples of a small grammar, P(L) = {z:.2g}, {len(truth)} texts")
    axes.legend(fontsize=8)
    figure.tight_layout()
    options.plot.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.plot, dpi=110)


def shorten(prompt: str, shots: int) -> str:
    """A task's prompt with its shortest examples only: a small model reads 8,192 tokens, a CPU few a second."""
    head, *examples, question = prompt.split("Question:")
    return "Question:".join([head, *sorted(examples, key=len)[:shots], question])


def fitting(prompt: str, shots: int, tokenizer: Any, limit: int) -> tuple[int, list[int]]:
    """So many examples, or as many as fit: their number and the tokens; -1 where not even the question fits."""
    for count in range(shots, -1, -1):
        ids = tokenizer.encode(shorten(prompt, count))
        if len(ids) <= limit:
            return count, ids
    return -1, ids


def gad(options: argparse.Namespace) -> None:
    """Append one JSON line a task to the output."""
    import torch

    from structgen.generation.models.transformers_store import load_transformers

    warnings.simplefilter("ignore")
    torch.set_num_threads(options.threads)
    model, tokenizer = load_transformers(None)
    vocabulary = Vocabulary.from_transformers(tokenizer, size=model.vocab_size, eos_token_ids=model.eos_token_ids)
    tasks = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(options.gad.glob("*.json"))]
    tasks = [task for task in tasks if task["suite"] == options.only and task["name"] not in options.skip]
    tasks = [task for task in tasks if not options.tasks or task["name"] in options.tasks]
    for task in sorted(tasks, key=lambda task: len(shorten(task["prompt"], options.shots))):
        shots, ids = fitting(task["prompt"], options.shots, tokenizer, (model.context_length or 1 << 30) - TEXT)
        entry: dict[str, Any] = {"task": task["name"], "prompt_tokens": len(ids), "shots": shots}
        if shots < 0:
            print(f"{task['name']}: {len(ids)} tokens without any example are more than the model reads; left out")
            continue
        target = Target(model, ids, structgen.lark(task["grammar"]), vocabulary, max_tokens=TEXT)
        plans: list[tuple[str, Method, tuple[int, ...]]] = [
            ("exact", "exact", (1, 99, 100)), ("weighted", "weighted", (100,)), ("at once", "exact", (100,)),
            *((other, other, (100,)) for other in options.others),
        ]  # fmt: skip
        for name, method, sizes in plans:
            if name == "at once" and entry["exact"][1]["samples"] < 99:
                continue
            store = PrefixStore(target, draft=PromptCopy(ids, options.draft) if options.draft else None)
            store.expand([(-1, -1)])  # the prompt is read before the clock starts
            sampler = Sampler(store, method, seed=0)
            seconds = options.seconds if method == "exact" else options.seconds / 2
            budget = Budget(model_tokens=options.tokens, seconds=seconds)
            runs = [row(sampler, n, budget) for n in sizes]
            entry[name] = runs
            entry.setdefault("log_z", []).append(runs[-1]["log_z_bounds"])
            entry["bytes_a_node"] = store.memory_bytes / store.node_count
        print(json.dumps(entry))
        if options.output:
            with options.output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")


def row(sampler: Sampler, n: int, budget: Budget) -> dict[str, Any]:
    """What drawing ``n`` samples cost."""
    run = sampler.draw(n, budget)
    keys = (
        "stopped_by",
        "attempts",
        "model_tokens",
        "model_calls",
        "steps",
        "seconds",
        "ess",
        "log_z_bounds",
        "tv_bound",
    )
    top = max((sample.log_prob for sample in run.samples), default=0.0)
    weights = np.exp([sample.log_weight - run.log_z_bounds[1] for sample in run.samples])
    share = float(sum(weights[i] for i, s in enumerate(run.samples) if s.log_prob == top) / max(weights.sum(), 1e-300))
    # The share of the likeliest text that was drawn; its probability under the target lies in exp(top - log_z_bounds).
    return {"samples": len(run.samples), "top": top, "share": share, **{key: getattr(run, key) for key in keys}}


class NoiseModel:
    """Random logits for any vocabulary, cheap and the same for the same prefix."""

    context_length = None

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size
        self._noise = np.random.default_rng(0).normal(size=2 * vocab_size).astype(np.float32)

    def prefill(self, prompts: Any) -> tuple[npt.NDArray[np.float32], None]:
        """See ``LanguageModel.prefill``; the cache is never used."""
        shifts = [hash(tuple(prompt)) % self.vocab_size for prompt in prompts]
        return np.stack([self._noise[shift : shift + self.vocab_size] for shift in shifts]), None


def warm(options: argparse.Namespace) -> None:
    """Print samples a second and bytes a node."""
    from structgen.benchmarking.vocabularies import load_vocabulary

    bench = load_vocabulary(options.vocabulary, options.tokenizers)
    tokens = [token or None for token in bench.tokens]
    vocabulary = Vocabulary(tokens, eos_token_ids=len(tokens), size=len(tokens) + 1)
    dates = structgen.compile_regex("199[0-9]-(0[1-9]|1[0-2])", vocabulary)
    numbers = structgen.compile_lark('start: "f(" e ")"\ne: "0" | "1" | "x" | "(" e "+" e ")"', vocabulary)
    for name, grammar, length in (("dates", dates, 4), ("sums", numbers, 10)):
        target = Target(NoiseModel(vocabulary.size), [1], grammar, vocabulary, max_tokens=length)
        store = PrefixStore(target)
        start = time.perf_counter()
        nodes = store.expand_best_first(options.nodes)
        spent = time.perf_counter() - start
        print(f"{name}: {nodes} prefixes in {spent:.1f} s, {store.memory_bytes / store.node_count:.0f} bytes a node")
        if store.tv_bound < 1e-9:  # known whole
            for n in (1000, 20_000):
                run = Sampler(store, "exact", seed=0, width=256).draw(n)
            rate, steps = len(run.samples) / run.seconds, run.steps / len(run.samples)
            print(f"  warm: {rate:,.0f} samples a second of {steps:.1f} steps; {run.model_calls} calls of the model")


def main(arguments: list[str]) -> int:
    """Run one of the benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["enumerable", "gad", "warm"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--models", type=int, default=3)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--gad", type=Path)
    parser.add_argument("--only", default="SLIA")
    parser.add_argument("--skip", nargs="*", default=[], help="tasks to leave out")
    parser.add_argument("--tasks", nargs="*", default=[], help="only these tasks")
    parser.add_argument("--others", nargs="*", default=[], help="more methods, each with a fresh store")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--shots", type=int, default=2)
    parser.add_argument("--draft", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=1500)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokenizers", type=Path)
    parser.add_argument("--vocabulary", default="o200k")
    parser.add_argument("--nodes", type=int, default=4000)
    options = parser.parse_args(arguments)
    {"enumerable": enumerable, "gad": gad, "warm": warm}[options.what](options)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
