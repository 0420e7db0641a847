"""Peers as their users call them on many outputs at once, on tensors and from transformers: for the scripts here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from structgen.benchmarking.peers import llguidance_tokenizer
from structgen.benchmarking.vocabularies import BenchVocabulary


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
        tokenizer = llguidance_tokenizer(vocabulary)
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

    tokenizer = llguidance_tokenizer(vocabulary)
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
