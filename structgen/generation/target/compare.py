"""Plain masking, ASAp and exact samples of one target side by side: how far apart they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from structgen.core.whole_files import replacing
from structgen.generation.target.methods import METHODS
from structgen.generation.target.results import Budget, Method, SampleRun
from structgen.generation.target.samplers import Sampler
from structgen.generation.target.store import PrefixStore
from structgen.generation.target.target import Target

COMPARED: tuple[Method, ...] = ("asap", "local", "exact")  # ASAp first: it starts from a store that knows nothing
_SHOWN: tuple[Method, ...] = ("local", "asap", "exact")


@dataclass(frozen=True)
class ComparedText:
    """A text that was drawn.

    Attributes:
        text: its text.
        target: bounds of its probability under the target, by the spellings that were seen.
        shares: the share of each method's samples.
    """

    text: str
    target: tuple[float, float]
    shares: dict[Method, float]


@dataclass(frozen=True)
class Comparison:
    """Texts in the order of their probability under the target, and the runs of the methods."""

    texts: list[ComparedText]
    runs: dict[Method, SampleRun]

    def distance(self, method: Method, other: Method = "exact") -> float:
        """Total variation distance between the samples of two methods. Biased upwards: two runs of one method differ
        by about sqrt(texts / samples)."""
        return sum(abs(text.shares[method] - text.shares[other]) for text in self.texts) / 2


def compare(
    target: Target,
    n: int,
    *,
    seed: int = 0,
    budget: Budget | None = None,
    methods: Sequence[Method] = COMPARED,
    store: PrefixStore | None = None,
) -> Comparison:
    """Draw ``n`` samples by each method, one after the other from one store (a fresh one if none is given)."""
    store = store or PrefixStore(target)
    # Seeds of their own: with common random numbers the methods would agree more than they do.
    numbered = enumerate(methods, start=seed * len(METHODS))
    runs = {method: Sampler(store, method, seed=number).draw(n, budget) for number, method in numbered}
    low, high = store.log_z_bounds
    spellings: dict[str, dict[tuple[int, ...], float]] = {}
    for run in runs.values():
        for sample in run.samples:
            spellings.setdefault(sample.text, {})[sample.token_ids] = sample.log_prob
    texts = []
    for text, log_probs in spellings.items():
        mass = sum(math.exp(log_prob - high) for log_prob in log_probs.values())
        shares = {method: _share(run, text) for method, run in runs.items()}
        upper = min(1.0, mass * math.exp(high - low)) if low > -math.inf else 1.0
        texts.append(ComparedText(text, (mass, upper), shares))
    return Comparison(sorted(texts, key=lambda text: -text.target[0]), runs)


def _share(run: SampleRun, text: str) -> float:
    return sum(sample.text == text for sample in run.samples) / max(1, len(run.samples))


def plot(comparison: Comparison, path: str, *, most: int = 12, labels: Mapping[Method, str] | None = None) -> None:
    """Draw the likeliest texts as bars, one group a text, and save them (the suffix of the path names the format).

    Raises:
        ImportError: matplotlib is not installed (extra ``plots``).
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = {"local": "masks only (local)", "asap": "ASAp", "exact": "exact", **(labels or {})}
    drawn = sorted(comparison.texts, key=lambda text: -max(text.target[0], *text.shares.values()))[:most]
    drawn.sort(key=lambda text: -text.target[0])
    order: list[Method] = [method for method in _SHOWN if method in comparison.runs]
    order += [method for method in comparison.runs if method not in order]
    height = 0.8 / (len(order) + 1)
    figure, axes = pyplot.subplots(figsize=(8, 1.2 + 0.5 * len(drawn)))
    rows = range(len(drawn))
    for number, method in enumerate(order):
        places = [row + number * height for row in rows]
        axes.barh(places, [text.shares[method] for text in drawn], height, label=names.get(method, method))
    middle = [sum(text.target) / 2 for text in drawn]
    spread = [(text.target[1] - text.target[0]) / 2 for text in drawn]
    places = [row + len(order) * height for row in rows]
    axes.barh(places, middle, height, xerr=spread, color="0.4", label="P(text) / P(L), with its bounds")
    axes.set_yticks([row + 0.3 for row in rows], [_short(text.text) for text in drawn], fontsize=7, family="monospace")
    axes.invert_yaxis()
    axes.set_xlabel("share of the samples")
    axes.legend(fontsize=8)
    figure.tight_layout()
    target = Path(path) if Path(path).suffix else Path(f"{path}.png")
    with replacing(target) as file:
        figure.savefig(file, format=target.suffix[1:], dpi=110)
    pyplot.close(figure)


def _short(text: str, length: int = 48) -> str:
    shown = text.replace("\n", "\\n").replace("$", r"\$")
    return shown if len(shown) <= length else shown[: length // 2 - 1] + "…" + shown[-length // 2 :]
