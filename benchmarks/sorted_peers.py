"""What others offer for many names and for quotes, in the run of `sorted_texts`: llguidance, marisa-trie, transformers.

llguidance: a quote by ``%regex {"substring_words": ...}``, names by an ``enum``. marisa-trie and transformers: the trie
of token sequences of GENRE (De Cao et al., 2021), which lists all keys below a prefix, as the function that
transformers' `PrefixConstrainedLogitsProcessor` asks.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from structgen.benchmarking.engines import Refused
from structgen.benchmarking.peers import LLGuidance
from structgen.benchmarking.vocabularies import BenchVocabulary

WALKS, STEPS = 60, 12
_SHIFT = 0x800  # so that no token is half of a surrogate pair


def quantiles(times: list[float]) -> str:
    """The middle and the 99th percentile of microseconds."""
    p50, p99 = np.percentile(times, [50, 99])
    return f"p50 {p50:,.1f} µs, p99 {p99:,.0f} µs ({len(times):,})"


def measure(names: list[str], text: str, vocabulary: BenchVocabulary) -> None:
    """Print what each peer takes, at the sizes that it takes."""
    for size in (100_000, 300_000):
        part = text[:size]
        lark = f"start: QUOTE\nQUOTE: %regex {json.dumps({'substring_words': part})}\n"
        _llguidance(f"words of {size:,} bytes", lark, None, [part[n : n + 60] for n in _starts(part)], vocabulary)
    for count in (10_000, 100_000):
        schema = json.dumps({"type": "string", "enum": names[:count]})
        chosen = random.Random(2).sample(names[:count], WALKS)
        _llguidance(f"enum of {count:,}", None, schema, [json.dumps(name) for name in chosen], vocabulary)
    for count in (10_000, 100_000):
        _genre(names[:count], vocabulary)


def _starts(text: str) -> Iterator[int]:
    rng = random.Random(3)
    return (text.find(" ", rng.randrange(len(text) - 200)) + 1 for _ in range(WALKS))


def _llguidance(what: str, lark: str | None, schema: str | None, texts: list[str], vocabulary: BenchVocabulary) -> None:
    engine = LLGuidance(vocabulary)
    begun = time.process_time()
    try:
        starts = engine.compile(schema) if schema is not None else engine.grammar_compiler(lark or "", "")()
        starts()
    except Refused as error:
        print(f"llguidance, {what}: refused: {str(error)[:120]!r}")
        return
    took, times = time.process_time() - begun, list[float]()
    for text in texts:
        session = starts()
        for token in vocabulary.encode(text)[:STEPS]:
            begun_ns = time.thread_time_ns()
            session.fill()
            times.append((time.thread_time_ns() - begun_ns) / 1000)
            if not session.accept(token):
                break
    print(f"llguidance, {what}: {took:.2f} s to compile, masks {quantiles(times)}")


def _genre(names: list[str], vocabulary: BenchVocabulary) -> None:
    import marisa_trie
    import torch
    from transformers import PrefixConstrainedLogitsProcessor

    sequences = [vocabulary.encode(name) for name in names]
    begun = time.process_time()
    trie = marisa_trie.Trie(["".join(chr(_SHIFT + 0xD800 + token) for token in sequence) for sequence in sequences])
    took, size = time.process_time() - begun, len(trie.tobytes())

    def allowed(batch: int, ids: torch.Tensor) -> list[int]:
        prefix = "".join(chr(_SHIFT + 0xD800 + token) for token in ids.tolist())
        keys = trie.keys(prefix)
        following = {ord(key[len(prefix)]) - 0xD800 - _SHIFT for key in keys if len(key) > len(prefix)}
        return [*following, *([vocabulary.eos_token_id] if prefix in trie else [])]

    processor: Any = PrefixConstrainedLogitsProcessor(allowed, 1)
    asked, masked = list[float](), list[float]()
    scores = torch.zeros(1, len(vocabulary.tokens))
    for sequence in random.Random(2).sample(sequences, WALKS):
        for count in range(len(sequence) + 1):
            ids = torch.tensor([sequence[:count]], dtype=torch.long)
            asked.append(_microseconds(partial(allowed, 0, ids[0])))
            masked.append(_microseconds(partial(processor, ids, scores)))
    print(f"marisa-trie, {len(names):,} names: {took:.2f} s to build, {size / len(names):.1f} B a name", end=", ")
    print(f"tokens after a prefix {quantiles(asked)}; in transformers' processor {quantiles(masked)}")


def _microseconds(call: Callable[[], Any]) -> float:
    begun = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - begun) / 1000
