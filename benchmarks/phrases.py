"""What phrases cost that a grammar's texts must not hold: 20 words and SELECT statements.

    python benchmarks/phrases.py DATA/tokenizers --runs 5

Compiling (the grammar is compiled before, as it is with and without phrases), a mask after each token of the corpus'
statements that no phrase is in, when the state is new and when it was asked before; medians, and the worst.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # measure this checkout

import numpy as np

import structgen
from structgen.benchmarking.engines import own_vocabulary
from structgen.benchmarking.vocabularies import NAMES, load_vocabulary
from structgen.core.engines.bitmask import allocate_token_bitmask

GRAMMAR = Path(__file__).resolve().parents[1] / "grammars/sql_select.lark"
WORDS = ["secret", "password", "token", "delete", "insert", "drop", "alter", "grant", "salary", "ssn"]
WORDS += ["card", "passport", "admin", "root", "shadow", "user", "truncate", "union", "0000", "'x"]
TEXTS = [
    "select name, city from customers where age >= 18 and city = 'Rome' order by name desc limit 10",
    "select distinct c.name, count(orders.id) from customers c left join orders on orders.cid = c.id group by c.name",
    "select * from products where price * 2 < 100 or (stock is not null and not stock in (1, 2, 3))",
    "select max(a.b + 1.5) as m from t a join u on a.x = u.x where u.y like 'ab' group by a.c having max(a.b) > 3",
]


def walked(grammar: Any, ids: list[int], bitmask: Any) -> list[float]:
    """Microseconds of each mask along a text."""
    matcher, times = grammar.matcher(), []
    for token in ids:
        began = time.perf_counter()
        matcher.fill_next_token_bitmask(bitmask, 0)
        times.append(1e6 * (time.perf_counter() - began))
        if not matcher.accept_token(token):
            raise SystemExit(f"token {token} is refused")
    return times


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizers", type=Path, help="folder of tiktoken rank files")
    parser.add_argument("--vocabulary", choices=NAMES, default="o200k")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    bench = load_vocabulary(arguments.vocabulary, arguments.tokenizers)
    vocabulary = own_vocabulary(bench)
    bitmask = allocate_token_bitmask(1, vocabulary.size)
    source = structgen.lark(GRAMMAR)
    source.compile(vocabulary)
    compiled, cold, warm = [], [], []
    for run in range(arguments.runs):
        words = [*WORDS[:-1], f"{WORDS[-1]}{run}"]  # others than before: nothing is remembered
        began = time.perf_counter()
        grammar = (source & structgen.avoiding(words)).compile(vocabulary)
        compiled.append(time.perf_counter() - began)
        for text in TEXTS:
            ids = bench.encode(text)
            cold += walked(grammar, ids, bitmask)
            warm += walked(grammar, ids, bitmask)
    print(f"compile {1e3 * float(np.median(compiled)):.0f} ms (worst {1e3 * max(compiled):.0f})")
    for name, times in (("new", cold), ("met before", warm)):
        median, high, worst = np.percentile(times, [50, 99, 100])
        print(f"mask, {name}: median {median:.1f} µs, 99 % below {high:.1f}, worst {worst:.1f} ({len(times)})")


if __name__ == "__main__":
    main()
