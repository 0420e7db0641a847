"""What does a constraint inside another cost, beside the same constraint with a level less?

    PYTHONPATH=. python benchmarks/composition.py [--tokenizers DATA/tokenizers] [--vocabulary o200k] [--only NAME ...]

Both sides of a pair read the same part of a text, the nested side inside what is around it, which is read before and
behind and not counted. The part is tokenized; before each of its tokens the mask is computed, then the token accepted.
"cold" is the first pass of a fresh grammar, in a process of its own, "warm" the second; of some such processes the
least time of each token counts. What the vocabulary alone decides (tries, places inside tokens) is made before.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import structgen
from structgen.benchmarking.engines import new_row
from structgen.benchmarking.table import markdown_table
from structgen.benchmarking.vocabularies import BenchVocabulary, load_vocabulary
from structgen.core.constraints.base import Constraint

CALL = {
    "type": "object",
    "properties": {
        "name": {"enum": ["get_weather", "get_time"]},
        "arguments": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "notes": {"type": "string"}},
            "required": ["city"],
        },
    },
    "required": ["name", "arguments"],
}
ARGUMENTS = {"city": "Santiago de Compostela", "days": 3, "notes": "mostly (metric) ones, <b>please</b>"}
CALL_TEXT = json.dumps({"name": "get_weather", "arguments": ARGUMENTS})
SPEECH = 'I look it up for you (this takes a while, "as always"): '
SCHEMA = structgen.json_schema(CALL)
EMBEDDED = structgen.lark(f"start: %json {json.dumps(CALL)}")
FUNCTION_RULES = f'start: NAME "(" %json {json.dumps(CALL)} ")" ";"?\nNAME: /[a-z_]+/\n'
FUNCTION, SPACED = structgen.lark(FUNCTION_RULES), structgen.lark(FUNCTION_RULES + "%ignore /[ \\n]+/\n")
SUM = structgen.lark('start: term (("+" | "-") term)*\nterm: NUMBER | "(" start ")"\nNUMBER: /[0-9]+/\n%ignore " "\n')
WORDS = structgen.lark('start: (WORDS | %json {"type": ["object", "string"]})*\nWORDS: /[^{"<]+/')
LINE = structgen.regex("[^\\n]*")
LINES = structgen.json_lines(CALL)
GRAMMARS = Path(__file__).parents[1] / "grammars"
SQL = structgen.lark((GRAMMARS / "sql_select.lark").read_text(encoding="utf-8"))
SQL_TEXT = (GRAMMARS / "corpus" / "sql_select.txt").read_text(encoding="utf-8").split("\n")[1]
TOOLS = structgen.tag_dispatch({("<tool>", "</tool>"): SCHEMA})


def tagged(content: Any) -> Constraint:
    """The content between tags in free text."""
    return structgen.tag_dispatch({("<part>", "</part>"): content})


BEFORE, BEHIND = f"{SPEECH}<part>", f"</part> {SPEECH}"


@dataclass(frozen=True)
class Pair:
    """A constraint with a level more, and one without it, which read the same part of a text.

    Attributes:
        levels: how many times ``BEFORE`` and ``BEHIND`` are around the part on the nested and on the flat side.
    """

    name: str
    nested: Constraint
    flat: Constraint
    part: str
    levels: tuple[int, int] = (1, 0)


PAIRS = [
    Pair("%json in a tag; the schema in a tag", tagged(EMBEDDED), tagged(SCHEMA), CALL_TEXT, (1, 1)),
    Pair("name(%json) in a tag; alone", tagged(FUNCTION), FUNCTION, f"call_tool({CALL_TEXT});"),
    Pair("name(%json), %ignore, in a tag; alone", tagged(SPACED), SPACED, f"call_tool  (\n  {CALL_TEXT} ) ;"),
    Pair("JSON lines in a tag; alone", tagged(LINES), LINES, f"{CALL_TEXT}\n{CALL_TEXT}\n"),
    Pair("tags in a tag; alone", tagged(TOOLS), TOOLS, f"{SPEECH}<tool>{CALL_TEXT}</tool> {SPEECH}"),
    Pair("name(%json) two tags deep; in one", tagged(tagged(FUNCTION)), tagged(FUNCTION), f"f({CALL_TEXT});", (2, 1)),
    Pair("words and %json in a tag; alone", tagged(WORDS), WORDS, 'look at {"a": 1} and then "so what" but 12'),
    Pair("sums (Lark) in a tag; alone", tagged(SUM), SUM, "(12 + 345) - (67 - (8 + 1024)) + 5"),
    Pair("SQL (Lark) in a tag; alone", tagged(SQL), SQL, SQL_TEXT),
    Pair("a line of text in a tag; alone", tagged(LINE), LINE, SPEECH + SPEECH),
]


Times = list[list[float]]
"""Of the compilation, of each token of the part in the cold pass, and in the warm one, µs."""


def measure(
    constraint: Constraint, part: str, levels: int, vocabulary: BenchVocabulary, own: structgen.Vocabulary
) -> Times:
    """The times of one constraint."""
    row = new_row(vocabulary)
    gc.collect()
    before = time.perf_counter_ns()
    grammar = constraint.compile(own)
    found = [[(time.perf_counter_ns() - before) / 1000]]
    pieces = [vocabulary.encode(text) for text in (BEFORE * levels, part, BEHIND * levels)]
    for _ in ("cold", "warm"):
        matcher, times = grammar.matcher(), []
        for is_part, tokens in zip((False, True, False), pieces, strict=True):
            for token in tokens:
                before = time.perf_counter_ns()
                matcher.fill_next_token_bitmask(row)
                taken = matcher.accept_token(token)
                times += [(time.perf_counter_ns() - before) / 1000] if is_part else []
                assert taken, "the text is in the language"
        assert matcher.is_accepting()
        found.append(times)
    return found


def apart(work: Callable[[], Times], runs: int) -> list[float]:
    """What a function takes in processes of its own, so that nothing it compiles warms another: the least of some runs.

    Returns:
        The compilation, and p50, p99 and most of the cold pass and of the warm one.
    """
    context, found = multiprocessing.get_context("fork"), []
    for _ in range(runs):
        ours, theirs = context.Pipe()
        process = context.Process(target=lambda to: to.send(work()), args=(theirs,))
        process.start()
        theirs.close()
        found.append(ours.recv())
        process.join()
    compiled, cold, warm = (np.min(times, axis=0) for times in zip(*found, strict=True))
    return [compiled[0], *np.quantile(cold, [0.5, 0.99, 1]), *np.quantile(warm, [0.5, 0.99, 1])]


def table_rows(
    pairs: list[Pair], vocabulary: BenchVocabulary, own: structgen.Vocabulary, runs: int
) -> Iterator[list[str]]:
    """Three lines a pair: nested, flat, and the first in proportion to the second."""
    for pair in pairs:
        sides = zip((pair.nested, pair.flat), pair.levels, strict=True)
        nested, flat = (apart(partial(measure, side, pair.part, deep, vocabulary, own), runs) for side, deep in sides)
        for name, figures in ((pair.name, nested), ("", flat)):
            yield [name, *(f"{figure:.3g}" if figure < 1000 else f"{figure:.0f}" for figure in figures)]
        yield ["ratio", *(f"{a / b:.2f}" for a, b in zip(nested, flat, strict=True))]


def main(arguments: list[str]) -> int:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokenizers", type=Path)
    parser.add_argument("--vocabulary", default="o200k")
    parser.add_argument("--runs", type=int, default=5, help="processes for each side, of which the least counts")
    parser.add_argument("--only", nargs="*", help="words in the names of pairs")
    options = parser.parse_args(arguments)
    vocabulary = load_vocabulary(options.vocabulary, options.tokenizers)
    own = structgen.Vocabulary([token or None for token in vocabulary.tokens], eos_token_ids=vocabulary.eos_token_id)
    other = structgen.lark('start: "x" %json {"type": "object"}')  # loads what is loaded once
    measure(tagged(other), 'x{"a": "b"}', 1, vocabulary, own)
    chosen = [pair for pair in PAIRS if not options.only or any(word in pair.name for word in options.only)]
    head = ["nested; flat", "compile, µs", "cold p50", "p99", "max", "warm p50", "p99", "max"]
    print(markdown_table(head, list(table_rows(chosen, vocabulary, own, options.runs))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
