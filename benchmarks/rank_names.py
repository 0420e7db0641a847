"""How many tokens the model reads for the exact ten likeliest of very many names.

    python benchmarks/rank_names.py NAMES.txt --prompt "..." --prompt "..."

NAMES.txt has a name a line. For each prompt: tokens read, whether the ranking is certain, the bound on what was missed.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from itertools import islice
from pathlib import Path

from structgen import Generator, NameSet, one_of


def main() -> None:
    """Rank the names for each prompt, and print a line of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", type=Path)
    parser.add_argument("--prompt", action="append", required=True)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("-k", type=int, default=10)
    parser.add_argument("--model-tokens", type=int, default=4096)
    parser.add_argument("--spelling", choices=["any", "canonical"], default="any")
    asked = parser.parse_args()
    with asked.names.open(encoding="utf-8") as lines:
        names = NameSet.build(islice(filter(None, map(str.strip, lines)), asked.count))
    generator, read = Generator(), []
    for prompt in asked.prompt:
        start = time.process_time()
        found = generator.rank(
            prompt, one_of(names), asked.k, model_tokens=asked.model_tokens, max_new_tokens=40, spelling=asked.spelling
        )
        read.append(found.stats.tokens_read)
        print(
            f"{read[-1]:6} tokens, exact {found.exact}, missed {found.missed:.2e}, the {len(found.values)}th has "
            f"{math.exp(found.values[-1].logprob):.1e}, "
            f"{time.process_time() - start:.1f} s of processor time: {[each.text for each in found.values[:3]]}",
            flush=True,
        )
    print(f"{len(names):,} names, {len(read)} prompts: {statistics.median(read):.0f} tokens at the median")


if __name__ == "__main__":
    main()
