"""Adapters of the peers: the one module that imports them, each when its engine is made.

A peer is called by the cheapest route that its Python API has, with the defaults that `engines` describes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
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


def _llguidance_tokenizer(vocabulary: BenchVocabulary) -> Any:
    import llguidance

    wrapper = llguidance.TokenizerWrapper(_LLGuidanceTokenizer(vocabulary))
    return llguidance.LLTokenizer(wrapper, n_vocab=len(vocabulary.tokens))


class LLGuidance:
    """llguidance with its defaults: free whitespace, ``oneOf`` not coerced, what it does not cover refused."""

    def __init__(self, vocabulary: BenchVocabulary, style: Style = "exact") -> None:
        import llguidance

        self.version = package_version("llguidance")
        self._matcher: Any = llguidance.LLMatcher
        self._tokenizer = _llguidance_tokenizer(vocabulary)
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


class XGrammarBatch:
    """Many outputs of xgrammar at once, on torch tensors: its own batch calls.

    Args:
        tokens, eos: bytes of each id, and the end of sequence.
        schemas: of each row, as JSON.
    """

    def __init__(self, tokens: list[bytes], eos: int, schemas: list[str]) -> None:
        import xgrammar

        self._x: Any = xgrammar
        info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[eos])
        self._compiler = xgrammar.GrammarCompiler(info)
        self._compiled: dict[str, Any] = {}
        self._batch = xgrammar.BatchGrammarMatcher()
        self._bitmask = xgrammar.allocate_token_bitmask(len(schemas), len(tokens))
        self._matchers = [self._matcher(schema) for schema in schemas]

    def _matcher(self, schema: str) -> Any:
        if schema not in self._compiled:
            self._compiled[schema] = self._compiler.compile_json_schema(schema, any_order=True)
        return self._x.GrammarMatcher(self._compiled[schema])

    def fill(self) -> None:
        """The masks of all rows."""
        self._batch.batch_fill_next_token_bitmask(self._matchers, self._bitmask)

    def apply(self, logits: Any) -> None:
        """Mask logits [rows, V], a torch tensor, in place."""
        self._x.apply_token_bitmask_inplace(logits, self._bitmask)

    def accept(self, tokens: list[int]) -> list[bool]:
        """Advance each row by a token; which took it."""
        return list(self._batch.batch_accept_token(self._matchers, tokens))

    def is_terminated(self, row: int) -> bool:
        """Whether a row has ended."""
        return bool(self._matchers[row].is_terminated())

    def restart(self, row: int, schema: str) -> None:
        """Begin a new output in a row."""
        self._matchers[row] = self._matcher(schema)


class XGrammarRows:
    """Many outputs of xgrammar as engines ask for their masks: row by row, in one call, along draft trees.

    Args:
        tokens, eos: bytes of each id, and the end of sequence.
        schemas: of each row, as JSON.
        tree: first children and next siblings of the nodes of a draft tree, torch tensors; each row has one like it.
    """

    def __init__(self, tokens: list[bytes], eos: int, schemas: list[str], tree: tuple[Any, Any]) -> None:
        import xgrammar

        info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[eos])
        compiler = xgrammar.GrammarCompiler(info)
        compiled = {schema: compiler.compile_json_schema(schema, any_order=True) for schema in schemas}
        self._matchers: list[Any] = [xgrammar.GrammarMatcher(compiled[schema]) for schema in schemas]
        self._tree, self._nodes = tree, len(tree[0])
        self._bitmask = xgrammar.allocate_token_bitmask(self._nodes * len(schemas), len(tokens))
        self._batch = xgrammar.BatchGrammarMatcher(max_threads=1)

    def fill(self) -> None:
        """The masks of all rows, a call a row."""
        for row, matcher in enumerate(self._matchers):
            matcher.fill_next_token_bitmask(self._bitmask, row)

    def fill_batch(self) -> None:
        """The masks of all rows in one call."""
        self._batch.batch_fill_next_token_bitmask(self._matchers, self._bitmask[: len(self._matchers)])

    def trees(self, drafts: Any) -> None:
        """The masks along each row's tree of tokens, ``drafts`` [rows, nodes]; a call a row."""
        for row, matcher in enumerate(self._matchers):
            part = self._bitmask[self._nodes * row : self._nodes * (row + 1)]
            matcher.traverse_draft_tree(*self._tree, drafts[row], part)

    def accept(self, row: int, token: int) -> bool:
        """Advance a row."""
        return bool(self._matchers[row].accept_token(token))


class LLGuidanceBatch:
    """The same of llguidance: its executor fills rows in parallel (on a machine with cores to spare), its matchers
    advance one by one."""

    def __init__(self, vocabulary: BenchVocabulary, schemas: list[str]) -> None:
        import llguidance
        import llguidance.numpy as helper

        self._fill = partial(helper.fill_next_token_bitmask_par, llguidance.LLExecutor())
        tokenizer = _llguidance_tokenizer(vocabulary)
        compile_ = llguidance.LLMatcher.grammar_from_json_schema
        self._prototypes = [llguidance.LLMatcher(tokenizer, compile_(schema)) for schema in schemas]
        self._bitmask = helper.allocate_token_bitmask(len(schemas), len(vocabulary.tokens))
        self._pairs = [(prototype.deep_copy(), row) for row, prototype in enumerate(self._prototypes)]

    def fill(self) -> None:
        """The masks of all rows."""
        self._fill(self._pairs, self._bitmask)

    def accept(self, tokens: list[int]) -> list[bool]:
        """Advance each row by a token; which took it."""
        return [matcher.consume_token(token) for (matcher, _), token in zip(self._pairs, tokens, strict=True)]

    def restart(self, row: int) -> None:
        """Begin a new output in a row."""
        self._pairs[row] = (self._prototypes[row].deep_copy(), row)


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


def xgrammar_application(kernel: str) -> Callable[[Any, Any], None]:
    """xgrammar's way to apply bitmasks [B, W] to logits [B, V] in place, torch tensors on one device.

    Args:
        kernel: "triton", "cuda" (compiled with nvcc when it is asked for), "torch" or "cpu".

    Raises:
        ImportError: it does not run here; why.
    """
    name = f"apply_token_bitmask_inplace_{kernel}"
    try:
        module = import_module(f"xgrammar.kernels.{name}")
    except Exception as error:  # a compiler that fails says so in many ways
        raise ImportError(f"{type(error).__name__}: {error}") from error
    apply: Callable[[Any, Any], None] = getattr(module, name)
    return apply


def xgrammar_processor(tokens: list[bytes], eos: int, schema: str) -> Callable[[], Callable[[Any, Any], Any]]:
    """What makes xgrammar's logits processor for transformers, one a generation; scores are masked in place."""
    import xgrammar

    info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, vocab_size=len(tokens), stop_token_ids=[eos])
    compiled = xgrammar.GrammarCompiler(info).compile_json_schema(schema, strict_mode=True)
    module = import_module("xgrammar.contrib.hf")
    return lambda: module.LogitsProcessor(compiled)


def llguidance_processor(
    vocabulary: BenchVocabulary, schema: str, rows: int
) -> Callable[[], Callable[[Any, Any], Any]]:
    """The same of llguidance, which has no class for it: its executor fills, its numpy helper masks in place."""
    import llguidance
    import llguidance.numpy as helper

    tokenizer = _llguidance_tokenizer(vocabulary)
    prototype = llguidance.LLMatcher(tokenizer, llguidance.LLMatcher.grammar_from_json_schema(schema))
    executor = llguidance.LLExecutor()

    def make() -> Callable[[Any, Any], Any]:
        matchers = [prototype.deep_copy() for _ in range(rows)]
        pairs = [(matcher, row) for row, matcher in enumerate(matchers)]
        bitmask = helper.allocate_token_bitmask(rows, len(vocabulary.tokens))
        is_first = True

        def process(input_ids: Any, scores: Any) -> Any:
            nonlocal is_first
            if not is_first:
                for matcher, token in zip(matchers, input_ids[:, -1].tolist(), strict=True):
                    if not matcher.is_stopped():
                        matcher.consume_token(token)
            is_first = False
            helper.fill_next_token_bitmask_par(executor, pairs, bitmask)
            helper.apply_token_bitmask_inplace(scores.numpy(), bitmask)
            return scores

        return process

    return make
