"""SGLang's two classes over structgen's engines. Imports SGLang; `plugin` imports it where it is wanted."""

from __future__ import annotations

import dataclasses
import inspect
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    GrammarStats,
    InvalidGrammarObject,
    register_vocab_mask_buffer,
)
from sglang.srt.runtime_context import get_serving
from sglang.srt.utils import is_pin_memory_available

from structgen.core.constraints.rules import compile_masks
from structgen.core.engines.bitmask import apply_token_bitmask_inplace
from structgen.core.engines.draft_masks import find_jump_forward_string
from structgen.errors import IntegrationError, StructgenError
from structgen.integrations.engine_matcher import RequestMatcher, fill_rows
from structgen.integrations.engine_requests import engine_constraint, engine_vocabulary
from structgen.options import JsonOptions

MAX_KEPT = 128
"""Grammars that SGLang keeps to copy for requests; its own cache has no end."""
ANY_JSON = "$$ANY$$"


def json_options() -> JsonOptions:
    """What the server's arguments say of JSON's whitespace. Otherwise a space after separators, as models write it.

    Raises:
        IntegrationError: ``--constrained-json-whitespace-pattern``.
    """
    serving = get_serving()
    if serving.constrained_json_whitespace_pattern is not None:
        raise IntegrationError(
            "structgen has no constrained_json_whitespace_pattern; it writes a space after separators, or none with "
            "constrained_json_disable_any_whitespace, or up to n with constrained_json_max_whitespace_cnt"
        )
    if serving.constrained_json_disable_any_whitespace:
        return JsonOptions(whitespace="compact")
    if serving.constrained_json_max_whitespace_cnt is not None:
        return JsonOptions(whitespace="any", max_whitespace_run=serving.constrained_json_max_whitespace_cnt)
    return JsonOptions()


class SglangGrammarObject(BaseGrammarObject):
    """One request's grammar; what its methods are for is said by SGLang's class.

    Attributes:
        request: the matcher.
        key_string: what was asked for, for messages.
    """

    def __init__(self, request: RequestMatcher, key_string: str, grammar_stats: GrammarStats) -> None:
        super().__init__()
        self.request = request
        self.key_string = key_string
        self.grammar_stats = grammar_stats

    def accept_token(self, token: int) -> None:
        """Advance. After the end tokens change nothing.

        Raises:
            ValueError: the token is not allowed.
        """
        if not self.request.accept(token):
            raise ValueError(f"structgen does not allow token {token} here\nKey string: {self.key_string:.200}")
        self.current_token = token

    def rollback(self, k: int) -> None:
        """Undo the last ``k`` tokens."""
        self.request.rollback(k)

    def is_terminated(self) -> bool:
        """Whether the end was accepted."""
        return self.request.matcher.is_terminated()

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """int32[batch_size, ceil(vocab_size / 32)] on the processor, all tokens allowed."""
        return allocate(vocab_size, batch_size)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the mask of the next token into a row."""
        self.request.fill(vocab_mask, idx)

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """Fill the rows of these grammars; other rows stay."""
        if all(isinstance(entry.grammar, SglangGrammarObject) for entry in entries):
            fill_rows([(entry.row, entry.grammar.request) for entry in entries], vocab_mask)
            return
        for entry in entries:
            entry.grammar.fill_vocab_mask(vocab_mask, entry.row)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow all tokens in all rows."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """The mask on a device."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Set the logits of disallowed tokens to -inf, where they are."""
        apply_token_bitmask_inplace(logits, vocab_mask)

    def copy(self) -> SglangGrammarObject:
        """The same grammar at the start, for another request."""
        stats = dataclasses.replace(self.grammar_stats, is_cache_hit=True, tree_traversal_time=[])
        return SglangGrammarObject(self.request.fresh(), self.key_string, stats)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The text that must come next, if any."""
        forced = find_jump_forward_string(self.request.matcher)
        return ([], forced) if forced else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """That text; a state has no number here."""
        return helper[1], -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """Take the tokens that the text with what was forced is cut into, in place of those accepted.

        Raises:
            ValueError: they are not allowed; the state is as it was.
        """
        pairs = zip(old_output_ids, new_output_ids, strict=False)
        same = next((number for number, (old, new) in enumerate(pairs) if old != new), None)
        same = min(len(old_output_ids), len(new_output_ids)) if same is None else same
        self.request.rollback(len(old_output_ids) - same)
        if not self.request.accept_all(new_output_ids[same:]):
            self.request.accept_all(old_output_ids[same:])
            raise ValueError(
                f"structgen does not allow {new_output_ids[same:]} in place of {old_output_ids[same:]}\n"
                f"Key string: {self.key_string:.200}"
            )


class SglangBackend(BaseGrammarBackend):
    """The backend of a server.

    Args:
        tokenizer: of transformers.
        vocab_size: width of the logits.
        eos_token_ids: of the model.

    Raises:
        IntegrationError: a setting that structgen does not take.
        TokenizerError: the bytes of the tokens are not known.
    """

    def __init__(self, tokenizer: Any, vocab_size: int, eos_token_ids: Iterable[int]) -> None:
        super().__init__()
        self.cache = KeptGrammars()
        self.options = json_options()
        ends = {*eos_token_ids, *(getattr(tokenizer, "additional_stop_token_ids", None) or ())}
        self.vocabulary = engine_vocabulary(tokenizer, vocab_size, ends)

    def initialize_vocab_mask_buffer(self, name: str, vocab_size: int, max_rows: int, device: Any) -> torch.Tensor:
        """A buffer that SGLang fills again each step."""
        return register_vocab_mask_buffer(name, allocate(vocab_size, max_rows), max_rows)

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """A JSON schema as text, or ``$$ANY$$``."""
        return self._compiled("json", "true" if key_string == ANY_JSON else key_string)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """A regular expression."""
        return self._compiled("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """A grammar: XGrammar's EBNF, GBNF, Lark's or llguidance's."""
        return self._compiled("grammar", key_string, "ebnf")

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """Structural tags as JSON text."""
        return self._compiled("structural_tag", key_string)

    @property
    def is_support_token_filter(self) -> bool:
        """For strict thinking."""
        return True

    @staticmethod
    def set_token_filter(
        vocab_mask: torch.Tensor,
        token_ids: list[int],
        batch_idx: int,
        is_allowed: bool = True,
        reset_vocab_mask: bool = True,
    ) -> None:
        """Allow these tokens in a row, or forbid them; SGLang's own function."""
        from sglang.srt.constrained.torch_ops.token_filter_torch_ops import set_token_filter_torch

        set_token_filter_torch(vocab_mask, token_ids, batch_idx, is_allowed, reset_vocab_mask)

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """See `SglangGrammarObject`; these three are asked of the backend where only thinking is filtered."""
        return allocate(vocab_size, batch_size)

    move_vocab_mask = staticmethod(SglangGrammarObject.move_vocab_mask)
    apply_vocab_mask = staticmethod(SglangGrammarObject.apply_vocab_mask)

    def _compiled(self, kind: str, value: str, reported: str | None = None) -> BaseGrammarObject:
        """What is asked for at the start, or what is wrong with it."""
        try:
            grammar = compile_masks(engine_constraint(kind, value, self.vocabulary, self.options), self.vocabulary)
        except StructgenError as error:
            return InvalidGrammarObject(str(error))
        return SglangGrammarObject(RequestMatcher(grammar), value, GrammarStats(dispatch_type=reported or kind))


class KeptGrammars(OrderedDict[tuple[str, str], BaseGrammarObject]):
    """SGLang's cache of grammars with an end: those used last. It is used by the scheduler's thread alone."""

    def get(self, key: Any, default: Any = None) -> Any:
        """The grammar under a key, which is now the one used last."""
        if key not in self:
            return default
        self.move_to_end(key)
        return self[key]

    def __setitem__(self, key: tuple[str, str], value: BaseGrammarObject) -> None:
        super().__setitem__(key, value)
        while len(self) > MAX_KEPT:
            self.popitem(last=False)


def after_reasoning(backend: SglangBackend, tokenizer: Any) -> BaseGrammarBackend:
    """The backend as the server's reasoning parser wants it: what is asked for begins after the thinking.

    SGLang does so for its own backends, and not for registered ones.
    """
    serving = get_serving()
    if not serving.reasoning_parser:
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(model_type=serving.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.get_think_end_token_ids(tokenizer):  # as the scheduler decides it
        return backend
    wrapped = ReasonerGrammarBackend(backend, parser, tokenizer, enable_strict_thinking=serving.enable_strict_thinking)
    wrapped.cache = KeptGrammars()
    return wrapped


def allocate(vocab_size: int, batch_size: int) -> torch.Tensor:
    """int32[batch_size, ceil(vocab_size / 32)], all tokens allowed; pinned where memory can be."""
    shape = (batch_size, -(-vocab_size // 32))
    return torch.full(shape, -1, dtype=torch.int32, pin_memory=is_pin_memory_available())


_OVERRIDDEN = {
    SglangGrammarObject: (
        "accept_token", "rollback", "is_terminated", "allocate_vocab_mask", "fill_vocab_mask",
        "fill_vocab_mask_batched", "reset_vocab_mask", "move_vocab_mask", "apply_vocab_mask", "copy",
        "try_jump_forward", "jump_forward_str_state", "jump_and_retokenize",
    ),
    SglangBackend: (
        "initialize_vocab_mask_buffer", "dispatch_json", "dispatch_regex", "dispatch_ebnf", "dispatch_structural_tag",
        "set_token_filter",
    ),
}  # fmt: skip


def check_interface() -> str:
    """What of SGLang's classes is not as these are made for; "" if all is."""
    for ours, names in _OVERRIDDEN.items():
        theirs = ours.__mro__[1]
        for name in names:
            wanted, own_interface = (
                [parameter for parameter in inspect.signature(getattr(kind, name)).parameters if parameter != "self"]
                for kind in (theirs, ours)
            )
            if own_interface != wanted:
                return f"{theirs.__name__}.{name} takes {wanted}"
    return ""
