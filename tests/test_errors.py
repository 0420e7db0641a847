"""Every error survives a pickle and a copy with its message, what it carries, its notes and its place in the tree."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

import structgen
from structgen import errors
from structgen.core.vocabulary.vocabulary import TextVocabulary

# Something for every argument that errors of the tree need.
ARGUMENTS: dict[str, Any] = {
    "message": "a message",
    "pattern": "a(b",
    "position": 2,
    "limit": 7,
    "budget": "states",
    "partial": "[1,",
    "pointer": "/properties/a",
    "keyword": "type",
    "hint": "Do this.",
    "line": 1,
    "column": 3,
    "source": "root ::= x",
    "attempts": ("an attempt",),
    "text": '{"a": 1}',
    "value": {"a": 1},
    "name": "get_weather",
    "reasons": ("a reason",),
}


def tree(kind: type[errors.StructgenError] = errors.StructgenError) -> Iterator[type[errors.StructgenError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from tree(below)


@pytest.mark.parametrize("kind", list(tree()), ids=lambda kind: kind.__name__)
def test_errors_pickle(kind: type[errors.StructgenError]) -> None:
    wanted = inspect.signature(kind).parameters if inspect.isfunction(kind.__init__) else {}
    given = {name: ARGUMENTS[name] for name in wanted if name in ARGUMENTS}
    error = kind(**given) if given else kind("a message")
    error.add_note("a note")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(other) is kind and str(other) == str(error) and other.args == error.args
        assert vars(other) == vars(error) and other.__notes__ == ["a note"]


@pytest.mark.parametrize("dialect", ["llama.cpp", "xgrammar"])
@pytest.mark.parametrize("grammar", ["root ::= (", 'root ::= "a" (\n', 'root ::= "a" ("b" |\n', "root ::=\n\n"])
def test_a_grammar_that_ends_too_early_shows_where(dialect: Any, grammar: str) -> None:
    """A place behind the last line feed is told as the end of the last line, with its caret."""
    try:
        structgen.compile_gbnf(grammar, TextVocabulary(), dialect=dialect)
    except structgen.GrammarError as error:
        assert 0 < error.line <= len(grammar.splitlines())
        assert any(line.strip() == "^" for line in str(error).splitlines()), str(error)
