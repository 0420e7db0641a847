"""What a decoder needs of a language model: two calls and a cache that can be cropped and thinned.

Sequences of a batch are independent. Token ids are plain ints; logits are whatever the model computes with (a torch
tensor or a numpy array), read through ``structgen.generation.sampling``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

Logits: TypeAlias = Any
"""A torch tensor or numpy array of floats; its last axis is the vocabulary (padded width)."""


class Cache(Protocol):
    """The keys and values of the tokens read so far, for each sequence of the batch."""

    @property
    def length(self) -> int:
        """Tokens held in each sequence, left padding included."""
        ...

    def crop(self, length: int) -> None:
        """Forget all but the first ``length`` tokens of every sequence."""
        ...

    def select(self, sequences: Sequence[int]) -> None:
        """Keep these sequences only, in this order; a sequence may be named more than once, and is then there as
        often."""
        ...


class LanguageModel(Protocol):
    """A causal language model over a fixed vocabulary. What it can do besides it says in ``ModelCapabilities``."""

    @property
    def vocab_size(self) -> int:
        """Width of the logits; may exceed the number of tokens (padding)."""
        ...

    @property
    def context_length(self) -> int | None:
        """Most tokens, prompt included, that the model reads; None where there is no limit."""
        ...

    def prefill(self, prompts: Sequence[Sequence[int]]) -> tuple[Logits, Any]:
        """Read the prompts (one a sequence, lengths may differ): logits [sequences, V] of each sequence's next token,
        and a Cache."""
        ...

    def forward(self, token_ids: Sequence[Sequence[int]], cache: Any) -> Logits:
        """Append n tokens to every sequence of the cache: logits [sequences, n, V] after each of them."""
        ...


class TreeCache(Cache, Protocol):
    """A cache that can be thinned to the accepted path of a tree."""

    def keep(self, kept: Sequence[Sequence[int]]) -> None:
        """Of the tokens that the last call appended, keep these (indices, ascending) of each sequence; sequences may
        differ."""
        ...


class TreeLanguageModel(LanguageModel, Protocol):
    """A language model that reads a tree of tokens at once: what speculative decoding needs."""

    def forward_tree(self, token_ids: Sequence[Sequence[int]], parents: Sequence[Sequence[int]], cache: Any) -> Logits:
        """Append a tree to every sequence of a ``TreeCache``: logits [sequences, n, V] after each node; sequences may
        differ in size.

        ``parents`` holds for each node the index of its parent in the same sequence, smaller than its own, or -1. A
        node sees the cache as it was, its ancestors and itself. n is the largest sequence's size; what stands beyond a
        sequence's own nodes means nothing. Call ``keep`` before the next call of the model.
        """
        ...


class VisibleCache(TreeCache, Protocol):
    """A cache that says which of its columns are tokens."""

    def held(self) -> Any:
        """Which columns hold a token of the sequence: bool [sequences, length]."""
        ...

    def close_up(self, first: int, kept: Sequence[int]) -> None:
        """Of the columns from ``first`` on, keep these (counted from there, ascending) of every sequence."""
        ...


class VisibleLanguageModel(TreeLanguageModel, Protocol):
    """A language model that is told what each token sees: one forward for trees of drafts and tries of prefixes."""

    @property
    def full_attention(self) -> bool:
        """Whether ``forward_visible`` can be used; False where layers look at what they like (a sliding window)."""
        ...

    def forward_visible(self, token_ids: Sequence[Sequence[int]], visible: Any, positions: Any, cache: Any) -> Logits:
        """Append n tokens to every sequence of a ``VisibleCache``: logits [sequences, n, V] after each of them.

        ``visible``, bool [sequences, n, columns + n], says which columns of the cache, these tokens' own included, each
        token sees; ``positions``, int64 [sequences, n], its place in its own text.
        """
        ...
