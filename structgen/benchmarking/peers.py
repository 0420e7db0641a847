"""Adapters of the peers: the one module that imports them, each when its engine is made.

A peer is called by the cheapest route that its Python API has, with the defaults that `engines` describes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from structgen.benchmarking.engines import Refused, Session, Starts, Style, new_row, package_version
from structgen.benchmarking.vocabularies import BenchVocabulary


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


def llguidance_tokenizer(vocabulary: BenchVocabulary) -> Any:
    """A vocabulary as llguidance wants it."""
    import llguidance

    wrapper = llguidance.TokenizerWrapper(_LLGuidanceTokenizer(vocabulary))
    return llguidance.LLTokenizer(wrapper, n_vocab=len(vocabulary.tokens))


class LLGuidance:
    """llguidance with its defaults: free whitespace, ``oneOf`` not coerced, what it does not cover refused."""

    def __init__(self, vocabulary: BenchVocabulary, style: Style = "exact") -> None:
        import llguidance

        self.version = package_version("llguidance")
        self._matcher: Any = llguidance.LLMatcher
        self._tokenizer = llguidance_tokenizer(vocabulary)
        self.row = new_row(vocabulary)

    def compile(self, schema_text: str) -> Callable[[], Session]:
        """See Engine."""
        options = {"whitespace_flexible": True, "coerce_one_of": False, "lenient": False}
        try:
            grammar = self._matcher.grammar_from_json_schema(schema_text, overrides=options)
        except ValueError as error:
            raise Refused(str(error).strip()) from error
        return self._sessions(grammar)

    def grammar_compiler(self, lark: str, gbnf: str) -> Callable[[], Starts]:
        """See GrammarEngine. Reading the text is part of the compilation, since it cannot be told apart."""
        return lambda: self._sessions(self._matcher.grammar_from_lark(lark))

    def _sessions(self, grammar: str) -> Starts:
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

        self.version = package_version("xgrammar")
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

        return self._sessions(grammar)

    def grammar_compiler(self, lark: str, gbnf: str) -> Callable[[], Starts]:
        """See GrammarEngine. Reads GBNF; masks are made by the compiler, but for what depends on the stack."""
        if not gbnf:
            raise Refused("there is no GBNF of it")

        def compile_() -> Starts:
            try:
                return self._sessions(self._compiler.compile_grammar(gbnf))
            except (RuntimeError, ValueError) as error:
                raise Refused(str(error).strip()) from error

        return compile_

    def _sessions(self, grammar: Any) -> Starts:
        def start() -> Session:
            matcher = self._matcher(grammar)
            return Session(partial(matcher.fill_next_token_bitmask, self._bitmask, 0), matcher.accept_token)

        return start


class OutlinesCore:
    """outlines_core: the schema as a regular expression, and an index of all its states over the vocabulary."""

    def __init__(self, vocabulary: BenchVocabulary, style: Style = "exact") -> None:
        import outlines_core

        self.version = package_version("outlines_core")
        self._core: Any = outlines_core
        ids: dict[bytes, list[int]] = {}
        for token_id, token in enumerate(vocabulary.tokens):
            if token:
                ids.setdefault(token, []).append(token_id)
        self._vocabulary = outlines_core.Vocabulary(vocabulary.eos_token_id, ids)
        self._eos = vocabulary.eos_token_id
        self.row = new_row(vocabulary)

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
