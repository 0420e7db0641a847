"""The engines under comparison behind one narrow interface, each set to accept every spelling of a valid document.

An engine owns one preallocated bitmask row; a session's ``fill`` and ``accept`` are the engine's own bound calls, so
that the harness adds nothing to what is timed. Peers are called by the cheapest route that their Python API has.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from structgen.benchmarking.vocabularies import BenchVocabulary

# Engine name → "module:class". Any other "module:class" on the path is taken as it is (a fake engine in the tests).
ENGINES = {
    "structgen": "structgen.benchmarking.engines:Structgen",
    "llguidance": "structgen.benchmarking.engines:LLGuidance",
    "xgrammar": "structgen.benchmarking.engines:XGrammar",
}


class Refused(Exception):
    """The engine does not take this schema, in its own words."""


@dataclass(frozen=True, slots=True)
class Session:
    """One document on its way: ``fill`` writes the next-token mask into the engine's row, ``accept`` advances."""

    fill: Callable[[], object]
    accept: Callable[[int], bool]


class Engine(Protocol):
    """What the harness asks of an engine.

    Attributes:
        version: for the record.
        row: int32 [ceil(V / 32)], bit ``t % 32`` of word ``t // 32`` is token ``t``'s.
    """

    version: str
    row: npt.NDArray[np.int32]

    def __init__(self, vocabulary: BenchVocabulary) -> None: ...

    def compile(self, schema_text: str) -> Callable[[], Session]:
        """A maker of sessions for the schema; raises Refused."""


def load_engine(name: str, vocabulary: BenchVocabulary) -> Engine:
    """Build the engine called ``name`` (a key of ENGINES or "module:class")."""
    module, _, attribute = ENGINES.get(name, name).partition(":")
    engine: Engine = getattr(importlib.import_module(module), attribute)(vocabulary)
    return engine


def _new_row(vocabulary: BenchVocabulary) -> npt.NDArray[np.int32]:
    return np.zeros((len(vocabulary.tokens) + 31) // 32, dtype=np.int32)


def _version(package: str) -> str:
    """The installed version; a checkout that is only on the path has none."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


class Structgen:
    """structgen with ``JsonOptions.exact()``; reading the schema's text counts as compile time."""

    def __init__(self, vocabulary: BenchVocabulary) -> None:
        structgen: Any = importlib.import_module("structgen")
        self.version = _version("structgen")
        self._compile = structgen.compile_json_schema
        self._options = structgen.JsonOptions.exact()
        self._vocabulary = structgen.Vocabulary(
            vocabulary.tokens, eos_token_ids=[vocabulary.eos_token_id], special_token_ids=vocabulary.special_token_ids
        )
        self._bitmask = structgen.allocate_token_bitmask(1, len(vocabulary.tokens))
        self.row = self._bitmask[0]

    def compile(self, schema_text: str) -> Callable[[], Session]:
        """See Engine."""
        from structgen.errors import ConstraintError

        try:
            grammar = self._compile(json.loads(schema_text), self._vocabulary, self._options)
        except ConstraintError as error:
            raise Refused(f"{type(error).__name__}: {error}") from error

        def start() -> Session:
            matcher = grammar.matcher()
            return Session(partial(matcher.fill_next_token_bitmask, self._bitmask, 0), matcher.accept_token)

        return start


class _LLGuidanceTokenizer:
    """The tokenizer object that llguidance's TokenizerWrapper asks for; special ids need distinct bytes."""

    bos_token_id = None

    def __init__(self, vocabulary: BenchVocabulary) -> None:
        self.eos_token_id = vocabulary.eos_token_id
        self.special_token_ids = vocabulary.special_token_ids
        self.tokens = [token or f"<|special_{i}|>".encode() for i, token in enumerate(vocabulary.tokens)]
        self._encode = vocabulary.encode

    def __call__(self, text: bytes | str) -> list[int]:
        return self._encode(text if isinstance(text, str) else text.decode())


class LLGuidance:
    """llguidance with free whitespace, ``oneOf`` not coerced, unknown keywords refused, default slices."""

    def __init__(self, vocabulary: BenchVocabulary) -> None:
        import llguidance

        self.version = _version("llguidance")
        self._matcher: Any = llguidance.LLMatcher
        self._tokenizer = llguidance.LLTokenizer(
            llguidance.TokenizerWrapper(_LLGuidanceTokenizer(vocabulary)), n_vocab=len(vocabulary.tokens)
        )
        self.row = _new_row(vocabulary)

    def compile(self, schema_text: str) -> Callable[[], Session]:
        """See Engine."""
        options = {"whitespace_flexible": True, "coerce_one_of": False, "lenient": False}
        try:
            grammar = self._matcher.grammar_from_json_schema(schema_text, overrides=options)
        except ValueError as error:
            raise Refused(str(error).strip()) from error
        prototype = self._matcher(self._tokenizer, grammar)
        if prototype.is_error():
            raise Refused(prototype.get_error().strip())
        address, size = self.row.ctypes.data, self.row.nbytes

        def start() -> Session:
            matcher = prototype.deep_copy()
            return Session(partial(matcher.unsafe_compute_mask_ptr, address, size), matcher.consume_token)

        return start


class XGrammar:
    """xgrammar with free whitespace and strict_mode off (undeclared members allowed, as JSON Schema says)."""

    def __init__(self, vocabulary: BenchVocabulary) -> None:
        import xgrammar

        self.version = _version("xgrammar")
        self._matcher: Any = xgrammar.GrammarMatcher
        info = xgrammar.TokenizerInfo(
            vocabulary.tokens,
            xgrammar.VocabType.RAW,
            vocab_size=len(vocabulary.tokens),
            stop_token_ids=[vocabulary.eos_token_id],
        )
        # Its cache of parts of grammars stays on, as by default, but bounded: thousands of schemas come by.
        self._compiler = xgrammar.GrammarCompiler(info, cache_limit_bytes=1 << 30)
        self._bitmask = xgrammar.allocate_token_bitmask(1, len(vocabulary.tokens))
        self.row = self._bitmask[0].numpy()

    def compile(self, schema_text: str) -> Callable[[], Session]:
        """See Engine."""
        try:
            grammar = self._compiler.compile_json_schema(schema_text, any_whitespace=True, strict_mode=False)
        except (RuntimeError, ValueError) as error:
            raise Refused(str(error).strip()) from error

        def start() -> Session:
            matcher = self._matcher(grammar)
            return Session(partial(matcher.fill_next_token_bitmask, self._bitmask, 0), matcher.accept_token)

        return start
