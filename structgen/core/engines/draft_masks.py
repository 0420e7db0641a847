"""Drafts for servers: the masks of all tokens of a draft tree or list in one call, and what of a draft would be taken.

Functions over the `Matcher` protocol, for all engines. They walk the matcher itself, step by step and back, so that
`Matcher.stats` counts what budgets gave up on the way. Afterwards, and after errors, state and history are as before.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.engines.batches import host_integers
from structgen.core.engines.bitmask import check_row
from structgen.core.engines.draft_trees import NO_TOKEN, DraftTrees, walk_tree
from structgen.core.engines.protocols import Matcher
from structgen.errors import BitmaskError, TokenError


def traverse_draft_tree(
    retrieve_next_token: Any,
    retrieve_next_sibling: Any,
    draft_tokens: Any,
    matcher: Matcher,
    bitmask: npt.NDArray[np.int32],
    time_threshold: float = -1.0,
) -> bool:
    """Write the mask after each node of a draft tree into the row of its number; SGLang's and XGrammar's shape.

    Node 0 is the root, where the matcher stands; its own token is not looked at. Row i is the mask after the tokens on
    the path to node i. It is all zero after a token that is refused or ends the sequence, and at nodes that no link
    leads to; rows from the number of nodes on stay.

    Args:
        retrieve_next_token: integers[N], array, sequence or tensor on the host: the first child of each node, or -1.
        retrieve_next_sibling: integers[N]: the next child of the same parent, or -1.
        draft_tokens: integers[N]: token ids, or -1 for none, which is refused.
        matcher: its state is the same afterwards.
        bitmask: int32[at least N, ceil(V / 32)], C-contiguous; mutated.
        time_threshold: seconds; once they are over, no other node is begun, and its row is zero. Not above 0: no limit.

    Returns:
        Whether all was done in time.

    Raises:
        BitmaskError: a bitmask or links that do not fit, before anything is written.
        TokenError: draft tokens outside the vocabulary, before anything is written.

    O(N) masks and steps.
    """
    deadline = perf_counter() + time_threshold
    vocab_size = matcher.grammar.vocabulary.size
    children = host_integers(retrieve_next_token, "retrieve_next_token", BitmaskError)
    siblings = host_integers(retrieve_next_sibling, "retrieve_next_sibling", BitmaskError)
    tokens = host_integers(draft_tokens, "draft_tokens", TokenError)
    links = [np.array(each, np.int64)[None] for each in (children, siblings, tokens)]
    trees = DraftTrees.checked(links[0], links[1], links[2], vocab_size)
    rows = _rows(bitmask, 0, trees.tokens.shape[1], vocab_size)
    if time_threshold > 0:
        return walk_tree(matcher, trees, 0, rows, 0, deadline) is not None
    matcher.fill_trees([matcher], trees, rows, [0])
    return True


def fill_draft_token_bitmasks(
    matcher: Matcher, draft_tokens: Any, bitmask: npt.NDArray[np.int32], index: int = 0
) -> int:
    """Write the masks of a draft without branches: before each of its K tokens and after the last. vLLM's shape.

    Row ``index`` is the mask where the matcher stands, row ``index + i`` the one after i draft tokens; all zero from
    after the first token on that is refused, or after the end of sequence. Other rows stay.

    Args:
        matcher: its state is the same afterwards.
        draft_tokens: integers[K], array, sequence or tensor on the host: token ids, or -1 for none, which is refused.
        bitmask: int32[at least index + K + 1, ceil(V / 32)], C-contiguous; mutated.
        index: the first row.

    Returns:
        How many draft tokens would be taken.

    Raises:
        BitmaskError, TokenError: as of `traverse_draft_tree`.
    """
    tokens = host_integers(draft_tokens, "draft_tokens", TokenError)
    vocab_size = matcher.grammar.vocabulary.size
    chain = DraftTrees.chain(tokens, vocab_size)
    rows = _rows(bitmask, index, len(tokens) + 1, vocab_size)
    return int(matcher.fill_trees([matcher], chain, rows, [0]).sum()) - 1


def validate_tokens(matcher: Matcher, tokens: Any) -> list[int]:
    """The longest beginning of ``tokens`` that the matcher would accept; its state is the same afterwards.

    vLLM's name and meaning. ``tokens`` are integers[K], array, sequence or tensor on the host; -1 is none and ends it.

    Raises:
        TokenError: ids outside the vocabulary, wherever they stand.
    """
    ids = host_integers(tokens, "tokens", TokenError)
    _check_tokens(ids, matcher.grammar.vocabulary.size)
    taken = 0
    try:
        for token in ids:
            if token == NO_TOKEN or not matcher.accept_token(token):
                break
            taken += 1
    finally:
        matcher.rollback(taken)
    return ids[:taken]


def find_jump_forward_string(matcher: Matcher) -> str:
    """The text that must come next, in whole characters; "" where nothing is forced. XGrammar's name.

    `Matcher.forced_bytes` as text: of a long one the beginning, and how it goes on once that is accepted. It ends
    before a character that is not forced whole, and before a special token, which has no text. "" within a character.
    """
    forced = matcher.forced_bytes()
    try:
        return forced.decode()
    except UnicodeDecodeError as error:
        return forced[: error.start].decode()


def _check_tokens(tokens: list[int], vocab_size: int) -> None:
    for token in tokens:
        if not NO_TOKEN <= token < vocab_size:
            raise TokenError.out_of_range(token, vocab_size)


def _rows(bitmask: npt.NDArray[np.int32], first: int, count: int, vocab_size: int) -> npt.NDArray[np.int32]:
    """These rows of the bitmask, after checking that it has them."""
    check_row(bitmask, first, vocab_size)
    check_row(bitmask, first + count - 1, vocab_size)
    return (bitmask if bitmask.ndim == 2 else bitmask[None])[first : first + count]
