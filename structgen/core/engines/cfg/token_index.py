"""What the grammar machine needs to know of a vocabulary, whatever the grammar: its trie in one word a node."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from structgen.core.engines.cfg.slices import Slices, load_slices, packed_nodes
from structgen.core.kernels.cfg import machine as k
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import TokenizerError


@dataclass(frozen=True, eq=False)
class CfgLexicon:
    """A vocabulary's trie as the kernel walks it.

    Attributes:
        vocabulary: the tokens.
        nodes: int64[N], ``byte | depth << 8 | subtree size << 19 | (token + 1) << 43``.
        below: int64[N + ...], kinds of bytes below each node (`k.KINDS_BELOW`).
        order: int32, all tokens in the order of their nodes.
        before: int32[N + 1], how many of these stand before each node.
        root: int32[256], node of each first byte or -1.
        next_same: int32[V], the next token with the same bytes.
        eos: int32, end-of-sequence ids.
        slices: what tokens of text of some kinds of characters are (`structgen.core.engines.cfg.slices`).
        depth: bytes of the longest token.
    """

    vocabulary: Vocabulary
    nodes: npt.NDArray[np.int64]
    below: npt.NDArray[np.int64]
    order: npt.NDArray[np.int32]
    before: npt.NDArray[np.int32]
    root: npt.NDArray[np.int32]
    next_same: npt.NDArray[np.int32]
    eos: npt.NDArray[np.int32]
    slices: Slices
    depth: int

    @property
    def width(self) -> int:
        """int32 words of a mask row."""
        return -(-self.vocabulary.size // 32)


@lru_cache(8)
def lexicon(vocabulary: Vocabulary) -> CfgLexicon:
    """The lexicon of a vocabulary; kept for the last few. About 10 ms for 200,000 tokens whose trie is built.

    The slices are kept in the cache folder; making them takes 0.3 s.

    Raises:
        TokenizerError: more than 2**20 - 2 ids, or a token of more than 2,047 bytes.
    """
    trie = vocabulary.trie
    if vocabulary.size > (1 << 20) - 2 or trie.max_depth > k.DEPTH_MASK or len(trie) > k.SIZE_MASK:
        raise TokenizerError(
            f"the vocabulary is too large for grammars: {vocabulary.size} ids (at most {(1 << 20) - 2}), longest token "
            f"of {trie.max_depth} bytes (at most {k.DEPTH_MASK})"
        )
    nodes = packed_nodes(trie)
    root = np.full(256, -1, np.int32)
    first = np.flatnonzero(trie.depth == 0)
    root[trie.byte[first]] = first
    below = np.empty(len(nodes) + 2 * (k.DEPTH_MASK + 2), np.int64)
    header = np.array([0])
    k.run(header.ctypes.data, k.KINDS_BELOW, nodes.ctypes.data, len(nodes), below.ctypes.data)
    order, before = trie.in_order
    eos = np.array(vocabulary.eos_token_ids, np.int32)
    slices = load_slices(vocabulary)
    return CfgLexicon(vocabulary, nodes, below, order, before, root, trie.next_same, eos, slices, trie.max_depth)
