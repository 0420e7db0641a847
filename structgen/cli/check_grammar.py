"""``structgen check`` for grammars: size, time, and what of them has no effect."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

from structgen.cli.common import byte_vocabulary, err, out, print_json
from structgen.compilers import compile_gbnf, compile_lark
from structgen.errors import GrammarWarning

SUFFIXES = (".lark", ".gbnf")


def run(file: str, as_json: bool) -> int:
    """Compile a grammar file and report; the exit code. Errors are raised (line, column and a caret)."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GrammarWarning)
        compiler = compile_lark if file.endswith(".lark") else compile_gbnf
        grammar: Any = compiler(Path(file), byte_vocabulary())
        source = grammar.source
    remarks = [str(warning.message) for warning in caught if issubclass(warning.category, GrammarWarning)]
    milliseconds = 1e3 * (time.perf_counter() - start)
    if as_json:
        counts = {"rules": len(source.rules), "terminals": len(source.terminals)}
        print_json({"covered": True, **counts, "warnings": remarks, "milliseconds": milliseconds})
        return 0
    for remark in remarks:
        err.print(f"warning: {remark}", markup=False, soft_wrap=True)
    out.print(f"{len(source.rules)} rules, {len(source.terminals)} terminals; compiled in {milliseconds:.1f} ms")
    out.print("[green]covered[/]: every output is a text of the grammar")
    return 0
