"""The engines under comparison behind one narrow interface.

An engine owns one preallocated bitmask row; a session's ``fill`` and ``accept`` are the engine's own bound calls, so
that the harness adds nothing to what is timed. Peers are called by the cheapest route that their Python API has.

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
    "llguidance": "structgen.benchmarking.engines:LLGuidance",
    "xgrammar": "structgen.benchmarking.engines:XGrammar",
    "outlines_core": "structgen.benchmarking.engines:OutlinesCore",
}
# What each engine of ENGINES needs installed.
PACKAGES = {"llguidance": "llguidance", "xgrammar": "xgrammar", "outlines_core": "outlines_core"}

Style = Literal["exact", "generation"]


class Refused(Exception):
    """The engine does not take this schema, in its own words."""


@dataclass(frozen=True, slots=True)
class Session:
    """One document on its way: ``fill`` writes the next-token mask into the engine's row, ``accept`` advances.

    ``free`` is True where nothing is masked; ``matcher`` is structgen's own, for its own decoder.
    """

    fill: Callable[[], object]
    accept: Callable[[int], bool]
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


def load_engine(name: str, vocabulary: BenchVocabulary, style: Style = "exact") -> Engine:
    """Build the engine called ``name`` (a key of ENGINES or "module:class")."""
    module, _, attribute = ENGINES.get(name, name).partition(":")
    engine: Engine = getattr(importlib.import_module(module), attribute)(vocabulary, style)
    return engine


def _new_row(vocabulary: BenchVocabulary) -> npt.NDArray[np.int32]:
    return np.zeros((len(vocabulary.tokens) + 31) // 32, dtype=np.int32)


def _version(package: str) -> str:
    """The installed version; a checkout that is only on the path has none (``checkout``)."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "checkout"


class Unconstrained:
    """No constraint: every schema is taken, nothing is masked."""

    def __init__(self, vocabulary: BenchVocabulary, style: Style = "exact") -> None:
        self.version = ""
        self.row = ~_new_row(vocabulary)

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
            fill = partial(matcher.fill_next_token_bitmask, self._bitmask, 0)
            return Session(fill, matcher.accept_token, matcher=matcher)

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
    """llguidance with its defaults: free whitespace, ``oneOf`` not coerced, what it does not cover refused."""

    def __init__(self, vocabulary: BenchVocabulary, style: Style = "exact") -> None:
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
    """xgrammar with free whitespace. "exact": strict_mode off (undeclared members allowed, as JSON Schema says);
    "generation": its default, strict_mode on. It has no switch to refuse what it does not enforce."""

    def __init__(self, vocabulary: BenchVocabulary, style: Style = "exact") -> None:
        import xgrammar

        self._strict = style == "generation"

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
            grammar = self._compiler.compile_json_schema(schema_text, any_whitespace=True, strict_mode=self._strict)
        except (RuntimeError, ValueError) as error:
            raise Refused(str(error).strip()) from error

        def start() -> Session:
            matcher = self._matcher(grammar)
            return Session(partial(matcher.fill_next_token_bitmask, self._bitmask, 0), matcher.accept_token)

        return start


class OutlinesCore:
    """outlines_core: the schema as a regular expression, and an index of all its states over the vocabulary."""

    def __init__(self, vocabulary: BenchVocabulary, style: Style = "exact") -> None:
        import outlines_core

        self.version = _version("outlines_core")
        self._core: Any = outlines_core
        ids: dict[bytes, list[int]] = {}
        for token_id, token in enumerate(vocabulary.tokens):
            if token:
                ids.setdefault(token, []).append(token_id)
        self._vocabulary = outlines_core.Vocabulary(vocabulary.eos_token_id, ids)
        self._eos = vocabulary.eos_token_id
        self.row = _new_row(vocabulary)

    def compile(self, schema_text: str) -> Callable[[], Session]:
        """See Engine."""
        try:
            expression = self._core.json_schema.build_regex_from_schema(schema_text)
            index = self._core.Index(expression, self._vocabulary)
        except (RuntimeError, ValueError, TypeError) as error:
            raise Refused(str(error).strip()) from error
        address, words = self.row.ctypes.data, len(self.row)

        def start() -> Session:
            guide = self._core.Guide(index)

            def accept(token_id: int) -> bool:
                if token_id != self._eos:  # after it there is nothing to advance to
                    guide.advance(token_id, return_tokens=False)
                return True

            return Session(partial(guide.write_mask_into, address, words, 4), accept)

        return start
