"""What the model said about prefixes, and bounds on the mass of the language after them: a trie in arrays."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import numpy as np
import numpy.typing as npt

from structgen.core.constraints.base import T
from structgen.core.kernels.aligned import calls as k
from structgen.core.whole_files import replacing
from structgen.errors import GenerationError
from structgen.generation.models.prefix_reader import Prefix, make_reader
from structgen.generation.sampling import LogProbs, allowed_token_ids
from structgen.generation.target.target import Target, text_log_prob
from structgen.options import check_count

EOS = -1  # the token of the edge that ends a text, whatever id the model spells it with
DEFAULT_MEMORY = 2 << 30
_NODE = np.dtype(
    [
        ("parent", np.int32),
        ("token", np.int32),
        ("depth", np.int32),
        ("count", np.int32),
        ("start", np.int64),
        ("used", np.int64),
        ("logp", np.float64),
        ("high", np.float64),
        ("low", np.float64),
        ("mass", np.float64),
        ("child", np.int32),
        ("sibling", np.int32),
    ]
)
_EDGE = np.dtype([("token", np.int32), ("child", np.int32), ("logp", np.float64)])
Draft = Callable[[Sequence[int]], Sequence[int]]
"""Tokens that may come after these (without the prompt's): a guess, to be read in the same call."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A prefix to be read: what the mask allows after it, and where it hangs.

    ``parent`` is a node, -1 for the root, ``_PREVIOUS`` for the read before; ``node``: the evicted one, or -1.
    """

    prefix: Prefix
    allowed: npt.NDArray[np.int64]
    may_end: bool
    parent: int
    node: int = -1


class PrefixStore(Generic[T]):
    """Expanded prefixes of a target: allowed tokens with log-probabilities, and bounds.

    A node is a prefix after which the model was asked. Its upper bound is the sum over allowed tokens of probability
    times the bound after them (1 where nothing is known yet); its lower bound the same with 0. The cached
    log-probabilities define P: two samplers of one store draw from one distribution, to the last bit.

    Not for several threads at once.

    Args:
        target: the distribution.
        memory: bytes for edges (16 each). Beyond, the edges of prefixes not used for longest are dropped, to be asked
            for again; their bounds stay, so no bound ever rises. Nodes (72 bytes each) are never dropped.
        draft: guesses of continuations, read with the prefix. A guess costs model tokens and saves calls; it never
            changes a distribution.
    """

    def __init__(self, target: Target[T], *, memory: int = DEFAULT_MEMORY, draft: Draft | None = None) -> None:
        check_count("memory", memory)
        self.target = target
        self.memory = memory
        self.draft = draft
        self.reader = make_reader(target.model, target.prompt_ids, target.max_tokens)
        self._eos = np.array(target.ends)
        self._bitmask = np.zeros((1, (target.vocabulary.size + 31) // 32), dtype=np.int32)
        self._matcher = target.matcher()
        self._at: list[int] = []  # the tokens that the matcher has read
        self.nodes = np.zeros(256, dtype=_NODE)
        self.edges = np.zeros(4096, dtype=_EDGE)
        self.node_count = self.edge_count = 0
        self.clock = 0

    # --- what is known ---
    @property
    def log_z_bounds(self) -> tuple[float, float]:
        """Logarithms (nats) of the lower and the upper bound of Z = P(L), the probability of the constraint's texts."""
        if not self.node_count:
            return -math.inf, 0.0
        low, high = float(self.nodes["low"][0]), float(self.nodes["high"][0])
        return min(low, high), high  # both are sums, which round

    @property
    def tv_bound(self) -> float:
        """A bound of the total variation distance between what "asap" draws now and the target: 1 - low / high."""
        low, high = self.log_z_bounds
        return 0.0 if high == -math.inf else max(0.0, -math.expm1(low - high))

    @property
    def memory_bytes(self) -> int:
        """Bytes of nodes and edges in use."""
        return self.node_count * _NODE.itemsize + self.edge_count * _EDGE.itemsize

    def prefix_of(self, node: int) -> list[int]:
        """The tokens of a node."""
        parents, tokens, prefix = self.nodes["parent"], self.nodes["token"], []
        while node > 0:
            prefix.append(int(tokens[node]))
            node = int(parents[node])
        return prefix[::-1]

    def edges_of(self, node: int) -> npt.NDArray[Any]:
        """A view of a node's edges: fields token (``EOS`` ends the text), child and logp."""
        start = int(self.nodes["start"][node])
        return self.edges[start : start + int(self.nodes["count"][node])]

    # --- growing ---
    def expand(self, requests: Iterable[tuple[int, int]], protect: Iterable[int] = ()) -> int:
        """Ask the model about prefixes, all in one call where they fit, and update the bounds.

        Args:
            requests: (node, number of an edge without child); (node, -1) where a node's edges were evicted;
                (-1, -1) for the root. Requests that are met already are left out.
            protect: nodes whose edges must not be evicted now.

        Returns:
            prefixes that the model was asked about; prefixes that the automaton knows to lead nowhere cost nothing.
        """
        reads: list[_Read] = []
        for node, edge in dict.fromkeys(requests):
            if node < 0:
                if not self.node_count:
                    self._plan([], -1, reads)
            elif edge < 0:
                if self.nodes["start"][node] < 0:
                    read = self._look(self.prefix_of(node), -1, node)
                    assert read is not None, "it was not dead before"
                    reads.append(read)
            elif (next_edge := self.edges_of(node)[edge])["child"] == k.UNSEEN:
                self._plan([*self.prefix_of(node), int(next_edge["token"])], node, reads)
        if not reads:
            return 0
        logits = self.reader.read([read.prefix for read in reads])
        created = -1
        for read, row in zip(reads, logits, strict=True):
            parent = created if read.parent == _PREVIOUS else read.parent
            if read.parent == _PREVIOUS and (created < 0 or self._edge(parent, read.prefix[-1]) < 0):
                created = -1  # a filter has removed the guess
                continue
            created = self._add(read, parent, self.target.log_probs(row))
        if self.edge_count * _EDGE.itemsize > self.memory:
            self.evict(protect)
        return len(reads)

    def expand_best_first(self, count: int, batch: int = 32) -> int:
        """Ask about the most probable prefixes not asked about yet, which tightens the bounds fastest without
        randomness. Returns how many there were (fewer than ``count`` only if the language is exhausted)."""
        done = 0
        if not self.node_count:
            done = self.expand([(-1, -1)])
        while done < count:
            requests = self._best(min(batch, count - done))
            if not requests:
                break
            done += self.expand(requests)
        return done

    def _best(self, count: int) -> list[tuple[int, int]]:
        """The unseen edges of highest path probability. O(nodes + edges)."""
        nodes = self.nodes[: self.node_count]
        holding = np.flatnonzero((nodes["start"] >= 0) & (nodes["count"] > 0))
        holding = holding[np.argsort(nodes["start"][holding])]
        owner = np.repeat(holding, nodes["count"][holding])  # blocks of edges lie side by side
        edges = self.edges[: self.edge_count]
        unseen = np.flatnonzero(edges["child"] == k.UNSEEN)
        score = nodes["logp"][owner[unseen]] + edges["logp"][unseen]
        best = unseen[np.argsort(-score, kind="stable")[:count]]
        return [(int(owner[e]), int(e - nodes["start"][owner[e]])) for e in best]

    def _plan(self, prefix: list[int], parent: int, reads: list[_Read]) -> None:
        """Find out what the automaton allows after a prefix and after its guessed continuations."""
        guess = self.draft(prefix) if self.draft and self._reach(parent, prefix) > _GUESS_WHERE else ()
        read = self._look(prefix, parent)
        if read is None:
            self._add_dead(prefix[-1] if prefix else EOS, parent)
            return
        reads.append(read)
        for token in guess:
            if token not in read.allowed:
                return
            prefix = [*prefix, int(token)]
            read = self._look(prefix, _PREVIOUS)
            if read is None:
                return
            reads.append(read)

    def _reach(self, parent: int, prefix: list[int]) -> float:
        """Logarithm of a bound of the share of walks that come to a prefix."""
        if parent < 0:
            return 0.0
        nodes, edge = self.nodes, self._edge(parent, prefix[-1])
        return float(nodes["logp"][parent] + self.edges_of(parent)["logp"][edge] - nodes["high"][0])

    def _look(self, prefix: list[int], parent: int, node: int = -1) -> _Read | None:
        """The mask after a prefix; None if it leads nowhere."""
        self._move(prefix)
        remaining = self.target.max_tokens - len(prefix)
        if self.target.cannot_end(self._matcher, remaining):
            return None
        self._matcher.fill_next_token_bitmask(self._bitmask, 0)
        allowed = allowed_token_ids(self._bitmask[0], self.target.vocabulary.size)
        ends = np.isin(allowed, self._eos)
        allowed, may_end = allowed[~ends] if remaining else allowed[:0], bool(ends.any())
        if not may_end and not len(allowed):
            return None
        return _Read(tuple(prefix), allowed, may_end, parent, node)

    def _move(self, prefix: list[int]) -> None:
        """Bring the matcher to a prefix."""
        common = 0
        while common < min(len(prefix), len(self._at)) and prefix[common] == self._at[common]:
            common += 1
        self._matcher.rollback(len(self._at) - common)
        self._at = prefix[:common]
        for token in prefix[common:]:
            if not self._matcher.accept_token(token):
                raise GenerationError(f"The mask allows token {token} after {self._at}, but the matcher refuses it.")
            self._at.append(token)

    def _add(self, read: _Read, parent: int, log_probs: LogProbs) -> int:
        """Write a node's edges, link it and update the bounds of its ancestors."""
        tokens, values = read.allowed, log_probs[read.allowed]
        if read.may_end:
            tokens = np.append(tokens, EOS)
            values = np.append(values, text_log_prob(log_probs, self.target.ends))
        order = np.argsort(-values, kind="stable")
        order = order[values[order] > -math.inf]
        start, count = self.edge_count, len(order)
        self._grow(count)
        block = self.edges[start : start + count]
        block["token"], block["logp"] = tokens[order], values[order]
        block["child"] = np.where(block["token"] == EOS, k.COMPLETE, k.UNSEEN)
        self.edge_count += count
        node = read.node if read.node >= 0 else self._new_node(read.prefix[-1] if read.prefix else EOS, parent)
        row = self.nodes[node]
        row["start"], row["count"] = start, count
        row["mass"] = np.logaddexp.reduce(block["logp"]) if count else -math.inf
        child = int(row["child"])
        while child >= 0:  # the node is back after its eviction
            block["child"][block["token"] == self.nodes["token"][child]] = child
            child = int(self.nodes["sibling"][child])
        self._refresh(node)
        return node

    def _add_dead(self, token: int, parent: int) -> None:
        """A node without edges, after which there is nothing."""
        node = self._new_node(token, parent)
        self.nodes["high"][node] = self.nodes["mass"][node] = -math.inf
        self._refresh(parent)

    def _new_node(self, token: int, parent: int) -> int:
        node = self.node_count
        if node == len(self.nodes):
            self.nodes = np.concatenate([self.nodes, np.zeros_like(self.nodes)])
        self.node_count += 1
        logp, depth, sibling = 0.0, 0, -1
        if parent >= 0:
            edge = int(self.nodes["start"][parent]) + self._edge(parent, token)
            self.edges["child"][edge] = node
            logp = float(self.nodes["logp"][parent] + self.edges["logp"][edge])
            depth = int(self.nodes["depth"][parent]) + 1
            sibling = int(self.nodes["child"][parent])
            self.nodes["child"][parent] = node
        self.nodes[node] = (parent, token, depth, 0, 0, self.clock, logp, 0.0, -math.inf, 0.0, -1, sibling)
        return node

    def _edge(self, node: int, token: int) -> int:
        """The number of the edge with a token; -1 if there is none."""
        edges = np.flatnonzero(self.edges_of(node)["token"] == token)
        return int(edges[0]) if len(edges) else -1

    def _refresh(self, node: int) -> None:
        nodes, edges = self.nodes, self.edges
        k.refresh(
            node, nodes["parent"], nodes["start"], nodes["count"], nodes["high"], nodes["low"], edges["logp"],
            edges["child"],
        )  # fmt: skip

    def _grow(self, count: int) -> None:
        if self.edge_count + count > len(self.edges):
            more = max(len(self.edges), count)
            self.edges = np.concatenate([self.edges, np.zeros(more, dtype=_EDGE)])

    def evict(self, protect: Iterable[int] = ()) -> None:
        """Drop the edges of the prefixes not used for longest, until half of the memory bound is free."""
        nodes = self.nodes[: self.node_count]
        kept = set(protect)
        room = self.memory // (2 * _EDGE.itemsize)
        holding = np.flatnonzero((nodes["start"] >= 0) & (nodes["count"] > 0))
        order = holding[np.argsort(-nodes["used"][holding], kind="stable")]
        edges = np.zeros(len(self.edges), dtype=_EDGE)
        top = 0
        for node in sorted(order.tolist(), key=lambda node: node not in kept):
            start, count = int(nodes["start"][node]), int(nodes["count"][node])
            if node in kept or node == 0 or top + count <= room:
                edges[top : top + count] = self.edges[start : start + count]
                nodes["start"][node] = top
                top += count
            else:
                nodes["start"][node] = -1
        self.edges, self.edge_count = edges, top

    # --- keeping ---
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the store to a file (numpy's ``.npz``), whole or not at all.

        Raises:
            GenerationError: the target cannot be told apart in another process; name ``model_id``, ``constraint_id``.
        """
        if not self.target.lasting:
            raise GenerationError(
                "Give the target a model_id and a constraint_id: the store could not be loaded again."
            )
        with replacing(path) as file:
            np.savez_compressed(
                file, key=self.target.key, nodes=self.nodes[: self.node_count], edges=self.edges[: self.edge_count]
            )

    @classmethod
    def load(cls, path: str | os.PathLike[str], target: Target, **options: Any) -> PrefixStore:
        """Read a store that was saved for the same target; ``options`` as for the class.

        Raises:
            GenerationError: the file is of another target, or no store.
        """
        store = cls(target, **options)
        try:
            with np.load(path, allow_pickle=False) as file:
                key, nodes, edges = str(file["key"]), file["nodes"], file["edges"]
        except Exception as error:  # numpy and zipfile raise errors of all kinds
            raise GenerationError(f"{path} is no prefix store: {error}") from error
        if key != target.key or nodes.dtype != _NODE or edges.dtype != _EDGE:
            raise GenerationError(f"{path} is the store of another target (key {key}, not {target.key}).")
        if not _holds_together(nodes, edges, target.vocabulary.size):
            raise GenerationError(f"The prefix store {path} is damaged; delete it, or draw its samples anew.")
        store.node_count, store.edge_count = len(nodes), len(edges)
        store.nodes = np.concatenate([nodes, np.zeros(max(256, len(nodes)), dtype=_NODE)])
        store.edges = np.concatenate([edges, np.zeros(max(4096, len(edges)), dtype=_EDGE)])
        store.clock = int(nodes["used"].max(initial=0))
        return store


def _holds_together(nodes: npt.NDArray[Any], edges: npt.NDArray[Any], size: int) -> bool:
    """Whether a stored trie is one: each node lies after its parent, edges and children are there, numbers are
    numbers. Walks read it without looking, so a wrong one would send them astray or round for ever."""
    if nodes.ndim != 1 or edges.ndim != 1:
        return False
    count, positions = len(nodes), np.arange(len(nodes))
    parent, child, sibling, start = (nodes[name].astype(np.int64) for name in ("parent", "child", "sibling", "start"))
    last = start + nodes["count"]
    is_node = edges["child"] >= 0
    fits = [
        (parent[1:] >= 0) & (parent < positions)[1:],
        parent[:1] == -1,
        (nodes["token"] >= EOS) & (nodes["token"] < size) & (nodes["count"] >= 0) & (nodes["depth"] >= 0),
        (start >= -1) & ((start < 0) | (last <= len(edges))),
        (child == -1) | ((child > positions) & (child < count)),
        (sibling == -1) | ((sibling > 0) & (sibling < positions)),
        (edges["token"] >= EOS) & (edges["token"] < size) & (edges["child"] < count),
        is_node | np.isin(edges["child"], (k.UNSEEN, k.COMPLETE)),
        *(~np.isnan(nodes[name]) for name in ("logp", "high", "low", "mass")),
        ~np.isnan(edges["logp"]),
    ]
    if not all(map(np.all, fits)):
        return False
    owners = np.flatnonzero((start >= 0) & (nodes["count"] > 0))
    owned = np.repeat(owners, nodes["count"][owners])
    owned_edges = np.concatenate([np.arange(start[node], last[node]) for node in owners.tolist()] or [np.zeros(0, int)])
    after = edges["child"][owned_edges]
    return bool((parent[after[after >= 0]] == owned[after >= 0]).all())


_GUESS_WHERE = math.log(0.05)  # guesses where fewer walks come cost more than they save
_PREVIOUS = -(1 << 40)  # as a read's parent: the read before it
