"""How long does compiling take, to the first mask, for the built-in model's vocabulary and for others?

    python benchmarks/compile_default.py DATA/maskbench DATA/tokenizers --out compile.json

Processor time of the process (milliseconds). Each constraint is measured in a process of its own, in which imports are
done, the vocabulary is loaded, its tables are made (reported apart) and another constraint of the same kind has been
compiled: "first" is compiling and the first mask of a constraint that the process has not seen, "again" the least of
three more (what is kept for the process helps). The tools are made of real schemas of objects, those of functions
first. Two columns are the bars of the built-in vocabulary, and how the others stand to o200k.
"""

from __future__ import annotations

import argparse
import gc
import json
import multiprocessing
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # measure this checkout

import structgen
from structgen.benchmarking.vocabularies import load_vocabulary
from structgen.core import compilers
from structgen.core.constraints.tools import tool_call

GRAMMARS = Path(__file__).parents[1] / "grammars"
VOCABULARIES = ("built-in", "o200k", "cl100k", "bytes")
BARS = {"regex": 5, "json.lark": 60, "python_expression.lark": 250}
BARS |= {"1 tool": 20, "16 tools": 60, "128 tools": 300, "500 tools": 1200}
FUNCTIONS = ("Glaiveai2K", "BFCL", "MCPspec", "Github_easy", "Github_medium")
Make = Callable[[structgen.Vocabulary], Any]


def vocabulary_called(name: str, tokenizers: Path) -> structgen.Vocabulary:
    """A vocabulary with its special tokens' names, where the tokenizer is the built-in model's."""
    if name == "built-in":
        from structgen.generation.models.built_in import default_model_file
        from structgen.generation.models.llamacpp.files import open_file
        from structgen.generation.models.llamacpp.tokenizer import GgufTokenizer

        return structgen.Vocabulary.from_transformers(GgufTokenizer(open_file(default_model_file())))
    bench = load_vocabulary(name, tokenizers)
    return structgen.Vocabulary(bench.tokens, eos_token_ids=bench.eos_token_id)


def tools(data: Path, count: int, skipped: int = 0) -> list[dict[str, Any]]:
    """So many tools whose parameters are different real schemas."""
    found: list[dict[str, Any]] = []
    paths = [path for kind in FUNCTIONS for path in sorted(data.glob(f"{kind}*.json"))]
    for path in paths[skipped:]:
        schema = json.loads(path.read_text(encoding="utf-8"))["schema"]
        if not isinstance(schema, dict) or schema.get("type") != "object" or "$schema" in schema:
            continue
        function = {"name": f"{path.stem.partition('---')[2]}_{len(found)}"[-60:], "parameters": schema}
        try:
            tool_call("hermes", [{"type": "function", "function": function}])
        except structgen.StructgenError:
            continue
        found.append({"type": "function", "function": function})
        if len(found) == count:
            return found
    raise SystemExit(f"{data} has {len(found)} schemas that can be tools; {count} are needed")


def constraints(data: Path, only: str) -> dict[str, tuple[Callable[[], Make], Callable[[], Make]]]:
    """By name: one to warm up with, and the one to measure; each is made when it is asked for."""

    def lark(path: Path, lexer: str = "dynamic") -> Callable[[], Make]:
        return lambda: lambda v: compilers.compile_lark(path, v, lexer=lexer)

    def calls(count: int, form: str, skipped: int = 0, choice: str = "required") -> Callable[[], Make]:
        def read() -> Make:
            given = tools(data, count, skipped)
            return lambda v: tool_call(form, given, tool_choice=choice).compile(v)

        return read

    def plain(make: Make) -> Callable[[], Make]:
        return lambda: make

    other = plain(lambda v: compilers.compile_regex(r"[ab]{3}c?\d*", v))
    warm = lark(GRAMMARS / "arithmetic.lark")
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    found = {
        "regex": (other, plain(lambda v: compilers.compile_regex(r"[A-Z][a-zé]{2,8}-\d{3,5}(/[^/]+)*", v))),
        "regex of Unicode classes": (other, plain(lambda v: compilers.compile_regex(r"\w{2,8}@([^\s/]+)*", v))),
        "choice": (other, plain(lambda v: compilers.compile_choice([f"option {n} é" for n in range(300)], v))),
        "tag_dispatch": (
            plain(lambda v: compilers.compile_tag_dispatch({"<a>": compilers.compile_json_schema({}, v)}, v)),
            plain(lambda v: compilers.compile_tag_dispatch({"<f>": compilers.compile_json_schema(schema, v)}, v)),
        ),
    }
    for path in sorted(GRAMMARS.glob("*.lark")):
        if path.stem not in ("arithmetic", "python_subset"):
            found[path.name] = warm, lark(path)
    contextual = GRAMMARS / "arithmetic.lark", GRAMMARS / "python_subset.lark"
    found["python_subset.lark, contextual"] = lark(contextual[0], "contextual"), lark(contextual[1], "contextual")
    for form in ("hermes", "qwen3_coder"):
        for count in (1, 16, 128, 500):
            name = f"{count} tool{'s' * (count > 1)}" + (f", {form}" if form != "hermes" else "")
            found[name] = calls(1, form, 40), calls(count, form)
    found["16 tools, auto"] = calls(1, "hermes", 40, "auto"), calls(16, "hermes", 0, "auto")
    return {name: entry for name, entry in found.items() if not only or any(part in name for part in only.split(","))}


def first_mask(make: Make, vocabulary: structgen.Vocabulary) -> tuple[float, float]:
    """Milliseconds until it is compiled, and until the first mask is there."""
    bitmask = structgen.allocate_token_bitmask(1, vocabulary.size)
    gc.collect()
    began = process_time()
    grammar = make(vocabulary)
    compiled = process_time()
    grammar.matcher().fill_next_token_bitmask(bitmask)
    return 1000 * (compiled - began), 1000 * (process_time() - began)


def measure(name: str, data: Path, vocabulary: structgen.Vocabulary, again: int) -> dict[str, float]:
    """The figures of one constraint, in this process."""
    from structgen.core.constraints.cache import COMPILED

    warnings.simplefilter("ignore")
    warm, wanted = constraints(data, "")[name]
    other, make = warm(), wanted()
    tables = first_mask(other, vocabulary)[1]
    first_mask(other, vocabulary)
    compiled, mask = first_mask(make, vocabulary)
    times = []
    for _ in range(again):
        COMPILED.__init__()  # type: ignore[misc]
        times.append(first_mask(make, vocabulary)[1])
    return {"tables": tables, "compile": compiled, "first": mask, "again": min(times, default=mask)}


def _child(pipe: Any, name: str, data: Path, vocabulary: structgen.Vocabulary, again: int) -> None:
    try:
        pipe.send(measure(name, data, vocabulary, again))
    except structgen.StructgenError as error:
        pipe.send({"error": str(error)})


def apart(name: str, data: Path, vocabulary: structgen.Vocabulary, again: int) -> dict[str, Any]:
    """The same in a process of its own, in which nothing was compiled before."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_child, args=(theirs, name, data, vocabulary, again))
    process.start()
    theirs.close()
    try:
        found: dict[str, Any] = ours.recv()
    except EOFError:
        found = {"error": "the process ended"}
    process.join()
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of MaskBench files")
    parser.add_argument("tokenizers", type=Path, help="folder of tiktoken rank files")
    parser.add_argument("--vocabularies", default=",".join(VOCABULARIES))
    parser.add_argument("--only", default="", help="parts of names of constraints, with commas between them")
    parser.add_argument("--again", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    chosen = options.vocabularies.split(",")
    rows: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in constraints(options.data, options.only)}
    for each in chosen:
        vocabulary = vocabulary_called(each, options.tokenizers)
        for name, row in rows.items():
            row[each] = apart(name, options.data, vocabulary, options.again)
    print("| processor ms to the first mask: first / again | bar | " + " | ".join(chosen) + " |")
    print("|---|---:|" + "---:|" * len(chosen))
    for name, row in rows.items():
        shown = [row[v].get("error") or f"{row[v]['first']:.1f} / {row[v]['again']:.1f}" for v in chosen]
        print(f"| {name} | {BARS.get(name, '')} | " + " | ".join(shown) + " |")
    made = {v: max((row[v].get("tables", 0) for row in rows.values()), default=0) for v in chosen}
    print("Before that, once a process (tables, modules):", ", ".join(f"{v} {ms:.0f} ms" for v, ms in made.items()))
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
