"""What masks distort, and samples that are not distorted: dice that the model would rather not roll.

python examples/exact_sampling.py [MODEL]
"""

from __future__ import annotations

import sys
from collections import Counter

from structgen import Generator, regex

# All numbers from 1 to 9, but of those with two digits only 10: with masks, whoever begins with 1 may end at 10.
NUMBERS = regex("[1-9]|10")


def main(generator: Generator, n: int = 50) -> dict[str, Counter[str]]:
    """Print how often each text comes with masks alone, and in the model's own distribution given the constraint."""
    counts = {}
    for method in ("local", "exact"):
        run = generator.sample("A number between 1 and 10:", NUMBERS, n, method, seed=0, max_new_tokens=6)
        counts[method] = Counter(run.texts)
        print(f"{method}: {dict(counts[method].most_common())}")
    low, high = run.z_bounds
    print(f"The model writes such a number with a probability between {low:.3g} and {high:.3g}.")
    return counts


if __name__ == "__main__":
    main(Generator(*sys.argv[1:2]))
