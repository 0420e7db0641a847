"""``structgen check`` for grammars: size, time, and what of them has no effect."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

from structgen.cli.common import byte_vocabulary, err, lark_dialect, out, print_json
from structgen.compilers import compile_gbnf, compile_lark
from structgen.errors import GrammarWarning

SUFFIXES = (".lark", ".gbnf")


def _compiled(path: Path) -> Any:
    if path.suffix == ".gbnf":
        return compile_gbnf(path, byte_vocabulary())
    return compile_lark(path, byte_vocabulary(), dialect=lark_dialect(path))


def run(file: str, as_json: bool) -> int:
    """Compile a grammar file and report; the exit code. Errors are raised (line, column and a caret)."""
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", GrammarWarning)
        grammar: Any = _compiled(Path(file))
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
