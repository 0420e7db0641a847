"""What holds under every method: valid outputs, budgets kept from the shortest output on, seeds that repeat."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from structgen.generation.search import METHODS
from tests.generation.search.small_worlds import World, tokens_of, world
from tests.many import cases


def made(name: str) -> Any:
    """A method with options under which it has something to do."""
    kind = METHODS[name]
    more: dict[str, Any] = {"phrases": ["bc", "a"], "bonus": 2.0} if name == "phrases" else {}
    if any(one.name == "critic" for one in fields(kind)):
        more["critic"] = lambda some: [1 / (1 + len(each.text)) for each in some]
    if any(one.name == "boundary" for one in fields(kind)):
        more["boundary"] = lambda text: text.endswith(("b", "ab"))
    return kind(**more)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("case", cases(200, 2))
def test_outputs_are_valid_and_fit(name: str, case: int) -> None:
    one, method = world(case), made(name)
    for limit in range(min(map(len, one.outputs)), one.limit + 1):
        narrow = World(one.grammar, one.model, limit)
        if not narrow.closes:
            continue
        run = narrow.run(method, 2, seed=case)
        assert run.finished and set(tokens_of(run)) <= set(narrow.outputs)
        again = narrow.run(method, 2, seed=case)
        assert [(score, node.hypothesis.tokens) for score, node in again.finished] == [
            (score, node.hypothesis.tokens) for score, node in run.finished
        ]
