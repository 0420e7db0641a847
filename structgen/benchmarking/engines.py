"""The engines under comparison after one narrow interface.

An engine owns one preallocated bitmask row; a session's ``fill`` and ``accept`` are the engine's own bound calls, so
that the harness adds nothing to what is timed. The peers' adapters are in `peers`, loaded when one is asked for.

Two styles: "exact" accepts every spelling of a valid document, to judge given instances; "generation" is what a user
gets by default. In both, an engine that knows that it does not enforce a keyword is asked to refuse the schema.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from structgen.benchmarking.vocabularies import BenchVocabulary

# Engine name → "module:class". Any other "module:class" on the path is taken as it is (a fake engine in the tests).
ENGINES = {
    "none": "structgen.benchmarking.engines:Unconstrained",
    "structgen": "structgen.benchmarking.engines:Structgen",
    "llguidance": "structgen.benchmarking.peers:LLGuidance",
    "xgrammar": "structgen.benchmarking.peers:XGrammar",
    "outlines_core": "structgen.benchmarking.peers:OutlinesCore",
}
# What each engine of ENGINES needs installed.
PACKAGES = {"llguidance": "llguidance", "xgrammar": "xgrammar", "outlines_core": "outlines_core"}

Style = Literal["exact", "generation"]


class Refused(Exception):
    """The engine does not take this schema, in its own words."""


@dataclass(frozen=True, slots=True)
class Session:
    """One document on its way: ``fill`` writes the next-token mask into the engine's row, ``accept`` advances.

    ``step`` is both in one call, for engines that have it: it advances, and writes the mask of what comes then.
    ``free`` is True where nothing is masked; ``matcher`` is structgen's own, for its own decoder.
    """

    fill: Callable[[], object]
    accept: Callable[[int], bool]
    step: Callable[[int], bool] | None = None
    free: bool = False
    matcher: Any = None


class Engine(Protocol):
    """What the harness asks of an engine.

    Attributes:
        version: for the record.
        row: int32 [ceil(V / 32)], bit ``t % 32`` of word ``t // 32`` is token ``t``'s.
    """

    version: str
    row: npt.NDArray[np.int32]

    def __init__(self, vocabulary: BenchVocabulary, style: Style = "exact") -> None: ...

    def compile(self, schema_text: str) -> Callable[[], Session]:
        """A maker of sessions for the schema; raises Refused."""


Starts = Callable[[], Session]


class GrammarEngine(Engine, Protocol):
    """An engine that reads context-free grammars, too."""

    def grammar_compiler(self, lark: str, gbnf: str) -> Callable[[], Starts]:
        """What compiles a grammar to a maker of sessions, given the same language in both notations ("": not there).

        What is no part of the engine's own compilation has been done when this returns. Raises Refused, also later.
        """


def load_engine(name: str, vocabulary: BenchVocabulary, style: Style = "exact") -> Engine:
    """Build the engine called ``name`` (a key of ENGINES or "module:class")."""
    module, _, attribute = ENGINES.get(name, name).partition(":")
    engine: Engine = getattr(importlib.import_module(module), attribute)(vocabulary, style)
    return engine


def new_row(vocabulary: BenchVocabulary) -> npt.NDArray[np.int32]:
    """A bitmask row, all zero."""
    return np.zeros((len(vocabulary.tokens) + 31) // 32, dtype=np.int32)


def own_vocabulary(vocabulary: BenchVocabulary) -> Any:
    """It as a ``structgen.Vocabulary``."""
    from structgen.core.vocabulary.vocabulary import Vocabulary

    return Vocabulary(
        vocabulary.tokens, eos_token_ids=[vocabulary.eos_token_id], special_token_ids=vocabulary.special_token_ids
    )


def package_version(package: str) -> str:
    """The installed version; a checkout that is only on the path has none (``checkout``)."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "checkout"


class Unconstrained:
    """No constraint: every schema is taken, nothing is masked."""

    def __init__(self, vocabulary: BenchVocabulary, style: Style = "exact") -> None:
        self.version = ""
        self.row = ~new_row(vocabulary)

    def compile(self, schema_text: str) -> Callable[[], Session]:
        """See Engine."""
        return lambda: Session(lambda: None, lambda token_id: True, free=True)


class Structgen:
    """structgen with ``JsonOptions.exact()`` or ``JsonOptions()``; reading the schema's text counts as compile time."""

    def __init__(self, vocabulary: BenchVocabulary, style: Style = "exact") -> None:
        structgen: Any = importlib.import_module("structgen")
        self.version = structgen.__version__
        self._compile = structgen.compile_json_schema
        self._options = structgen.JsonOptions.exact() if style == "exact" else structgen.JsonOptions()
        self._vocabulary = own_vocabulary(vocabulary)
        self._bitmask = structgen.allocate_token_bitmask(1, len(vocabulary.tokens))
        self.row = self._bitmask[0]

    def compile(self, schema_text: str) -> Callable[[], Session]:
        """See Engine."""
        from structgen.errors import ConstraintError

        try:
            grammar = self._compile(json.loads(schema_text), self._vocabulary, self._options)
        except ConstraintError as error:
            raise Refused(f"{type(error).__name__}: {error}") from error

        return self._sessions(grammar)

    def grammar_compiler(self, lark: str, gbnf: str) -> Callable[[], Starts]:
        """See GrammarEngine. Lark's own loader reads the text here."""
        from structgen.core.engines.cfg.compiled import compile_grammar
        from structgen.core.grammars.lark_reader import read_lark

        normal = read_lark(lark).grammar
        return lambda: self._sessions(compile_grammar(normal, self._vocabulary))

    def _sessions(self, grammar: Any) -> Starts:
        def start() -> Session:
            matcher = grammar.matcher()
            fill = partial(matcher.fill_next_token_bitmask, self._bitmask, 0)
            advance, bitmask = matcher.advance_and_fill, self._bitmask
            return Session(fill, matcher.accept_token, lambda token_id: advance(token_id, bitmask), matcher=matcher)

        return start
