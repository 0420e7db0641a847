"""Are masks that are remembered equal, bit for bit, to masks that a fresh matcher makes anew?

    python benchmarks/mask_memory.py DATA/maskbench --sample 800 --most 30 --styles exact,default,indented

The instances of real schemas are walked through as benchmarks/maskbench.py does, by matchers that remember. At some
places of each (drawn at random, at most --most an instance) a fresh matcher without memory reads the same text and
makes its mask. The exit code is 1 if one differs; the first differences are printed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # measure this checkout

import structgen
from structgen.benchmarking.coverage import choose_files
from structgen.benchmarking.engines import own_vocabulary
from structgen.benchmarking.vocabularies import NAMES, load_vocabulary
from structgen.core.engines.json.matcher import JsonMatcher

# Options, and how instances are spelled under them.
STYLES: dict[str, tuple[structgen.JsonOptions, dict[str, Any]]] = {
    "exact": (structgen.JsonOptions.exact(), {}),
    "default": (structgen.JsonOptions(), {}),
    "indented": (structgen.JsonOptions(whitespace=2), {"indent": 2}),
    "compact": (structgen.JsonOptions(whitespace="compact"), {"separators": (",", ":")}),
    "declared": (structgen.JsonOptions(key_order="declared"), {}),
}


def compared(grammar: Any, tokens: list[int], places: set[int], bitmask: Any) -> Iterator[tuple[bytes, list[int]]]:
    """For each place that is reached: the text before it, and the ids of tokens that the two masks differ in."""
    matcher, text = grammar.matcher(), b""
    matcher.fill_next_token_bitmask(bitmask, 0)
    for place, token in enumerate(tokens):
        if place in places:
            fresh = JsonMatcher(grammar, remembers=False)
            assert fresh.accept_bytes(text)
            fresh.fill_next_token_bitmask(bitmask, 1)
            differing = np.unpackbits((bitmask[0] ^ bitmask[1]).view(np.uint8), bitorder="little")
            yield text, [int(each) for each in np.flatnonzero(differing)]
        if not matcher.advance_and_fill(token, bitmask, 0):
            return
        text += grammar.vocabulary.tokens[token]


def main() -> int:
    """Compare, print; 1 if something differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of MaskBench files")
    parser.add_argument("--sample", type=int, default=800)
    parser.add_argument("--most", type=int, default=30, help="places of an instance")
    parser.add_argument("--styles", type=lambda text: text.split(","), default=["exact"], help=", ".join(STYLES))
    parser.add_argument("--vocabulary", choices=NAMES, default="o200k")
    parser.add_argument("--tokenizers", type=Path, help="folder of tiktoken rank files (default: DATA/../tokenizers)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    tokenizers = options.tokenizers or options.data.resolve().parent / "tokenizers"
    read = load_vocabulary(options.vocabulary, tokenizers)
    vocabulary = own_vocabulary(read)
    bitmask = structgen.allocate_token_bitmask(2, vocabulary.size)
    rng, failures = random.Random(options.seed), 0
    for style in options.styles:
        json_options, spelling = STYLES[style]
        count = schemas = 0
        for path in choose_files(options.data, "*.json", options.sample, options.seed, None):
            case = json.loads(path.read_text(encoding="utf-8"))
            try:
                grammar = structgen.compile_json_schema(case["schema"], vocabulary, json_options)
            except structgen.ConstraintError:
                continue
            schemas += 1
            for test in case["tests"]:
                tokens = read.encode(json.dumps(test["data"], ensure_ascii=False, **spelling))
                places = set(rng.sample(range(len(tokens)), min(options.most, len(tokens))))
                for text, ids in compared(grammar, tokens, places, bitmask):
                    count += 1
                    if ids:
                        failures += 1
                        shown = [vocabulary.tokens[each] for each in ids[:5]]
                        print(f"{path.name}: behind {text[-60:]!r} {len(ids)} tokens differ, {shown}")
        print(f"{style}: {count:,} masks of {schemas:,} schemas compared, {failures} of all so far differ")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
