"""Are token masks the same, bit for bit, in two versions of this library, or with and without numba's JIT?

    python benchmarks/mask_digests.py DATA/maskbench --sample 120 --out before.json      (in one checkout)
    STRUCTGEN_JIT=1 python benchmarks/mask_digests.py DATA/maskbench --sample 120 --compare before.json

For real schemas and their instances, and for the grammars of grammars/ with both lexers and their corpora, the mask
before each token goes into one digest a grammar. Only what all versions export is used. The exit code is 1 if a
digest differs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # measure this checkout

import structgen
from structgen.benchmarking.coverage import choose_files
from structgen.benchmarking.vocabularies import NAMES, load_vocabulary

GRAMMARS = Path(__file__).parents[1] / "grammars"


def digest(matcher: Any, documents: list[list[int]], size: int) -> tuple[str, int]:
    """The digest of the masks before all tokens that are taken, and how many there were."""
    found, count = hashlib.sha256(), 0
    bitmask = structgen.allocate_token_bitmask(1, size)
    for tokens in documents:
        matcher.reset()
        for token in tokens:
            matcher.fill_next_token_bitmask(bitmask)
            found.update(bitmask.tobytes())
            count += 1
            if not matcher.accept_token(token):
                break
        else:
            matcher.fill_next_token_bitmask(bitmask)
            found.update(bitmask.tobytes())
    return found.hexdigest(), count


def schemas(data: Path, sample: int, vocabulary: Any, encode: Any) -> Iterator[tuple[str, str, int]]:
    """(name, digest, tokens) of a sample of MaskBench's schemas."""
    for path in choose_files(data, "*.json", sample, 0, None):
        task = json.loads(path.read_text(encoding="utf-8"))
        documents = [encode(json.dumps(test["data"], ensure_ascii=False)) for test in task["tests"][:6]]
        try:
            grammar = structgen.compile_json_schema(task["schema"], vocabulary, structgen.JsonOptions.exact())
        except structgen.StructgenError as error:
            yield path.stem, type(error).__name__, 0
            continue
        yield path.stem, *digest(grammar.matcher(), documents, vocabulary.size)


def grammars(vocabulary: Any, encode: Any) -> Iterator[tuple[str, str, int]]:
    """(name, digest, tokens) of the grammars of grammars/, with both lexers."""
    for path in sorted(GRAMMARS.glob("*.lark")):
        texts = (GRAMMARS / "corpus" / f"{path.stem}.txt").read_text(encoding="utf-8").split("\n")[:8]
        documents = [encode(text) for text in texts if text]
        for lexer in ("dynamic", "contextual"):
            try:
                grammar = structgen.compile_lark(path.read_text(encoding="utf-8"), vocabulary, lexer=lexer)
            except structgen.StructgenError as error:
                yield f"{path.stem} {lexer}", type(error).__name__, 0
                continue
            yield f"{path.stem} {lexer}", *digest(grammar.matcher(), documents, vocabulary.size)


def main() -> int:
    """Print digests or compare them with an earlier run's."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of MaskBench files")
    parser.add_argument("--sample", type=int, default=120)
    parser.add_argument("--vocabulary", choices=NAMES, default="o200k")
    parser.add_argument("--tokenizers", type=Path, help="folder of tiktoken rank files (default: DATA/../tokenizers)")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compare", type=Path)
    options = parser.parse_args()
    bench = load_vocabulary(options.vocabulary, options.tokenizers or options.data.resolve().parent / "tokenizers")
    vocabulary = structgen.Vocabulary(bench.tokens, eos_token_ids=bench.eos_token_id)
    rows = [*schemas(options.data, options.sample, vocabulary, bench.encode), *grammars(vocabulary, bench.encode)]
    found = {name: value for name, value, _ in rows}
    print(f"{len(found)} grammars, {sum(count for *_, count in rows):,} masks")
    if options.out:
        options.out.write_text(json.dumps(found, indent=1))
    before = json.loads(options.compare.read_text()) if options.compare else found
    differ = [name for name in before.keys() | found.keys() if before.get(name) != found.get(name)]
    print(f"{len(differ)} differ", *sorted(differ)[:20], sep="\n  ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
