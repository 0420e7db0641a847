"""The faults themselves: each is another program, and all kinds occur."""

from __future__ import annotations

import ast

from tests.mutants import run
from tests.mutants.operators import faulty, mutants

SOURCE = '''
"""Docstring 1."""
import os

def f(a: int, b: bool = False) -> int:
    """Docstring 2."""
    found = []
    for i in range(3):
        if a < i and not b:
            found.append(i)
            continue
        found += [x for x in (1, 2) if x != a]
    if max(found) + 1 == 4:
        raise ValueError(f"message {a + 1}")
    return min(found) if found else 0
'''


def test_each_is_another_program_that_compiles() -> None:
    found = mutants(SOURCE)
    texts = [ast.unparse(faulty(SOURCE, mutant)) for mutant in found]
    assert len(set(texts)) == len(texts) and ast.unparse(ast.parse(SOURCE)) not in texts
    for mutant in found:
        compile(faulty(SOURCE, mutant), "mutant", "exec")
    assert len({(mutant.function, mutant.change) for mutant in found}) == len(found)


def test_all_kinds_occur() -> None:
    changes = {mutant.change for mutant in mutants(SOURCE)}
    assert {"a < i -> a <= i", "not b -> b", "a < i and (not b) -> a < i or not b", "False -> True"} <= changes
    assert {"continue -> pass", "found.append(i) -> pass", "max -> min", "0 -> 1"} <= changes
    assert any(change.endswith("-> if True") for change in changes)
    assert "[x for x in (1, 2) if x != a] -> [x for x in (1, 2)]" in changes
    assert not any("message" in change or "Docstring" in change or "a: int" in change for change in changes)


def test_every_module_has_tests() -> None:
    for path in run.modules(
        [
            "structgen/core/engines/json",
            "structgen/core/json_schema",
            "structgen/core/regex",
            "structgen/core/engines/composed",
        ]
    ):
        assert run.tests_of(path)
    assert all(tests for tests in run.TESTS.values())
