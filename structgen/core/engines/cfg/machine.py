"""The memory of one grammar's machine, and calls of its kernel."""

from __future__ import annotations

from array import array
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from structgen.core.engines.cfg.analysis import CfgTables
from structgen.core.engines.cfg.token_index import CfgLexicon
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.kernels.cfg import machine as k
from structgen.core.kernels.cfg import tables as kt
from structgen.core.kernels.heaps import Heap
from structgen.errors import GrammarError

FIRST_HEAP, FIRST_HASH, FIRST_SCRATCH, FIRST_MASKS, FIRST_LEVEL = 1 << 17, 1 << 12, 1 << 16, 1 << 18, 16
BUFFERS = (kt.a_at, kt.b_at, kt.c_at, kt.e_at)
MOST_WORDS = k.LOCAL  # ids have 27 bits


class CfgAutomata:
    """The terminals' automata as positions: arrays that the kernel reads, shared by all machines of a grammar.

    Positions of a class of terminals that stand for no text of their own (embedded ones and the end) have no edges.
    """

    def __init__(self, grammar: ContextFreeGrammar, tables: CfgTables) -> None:
        wanted = [(t, c) for c, members in enumerate(tables.classes) for t in members if t not in tables.embedded]
        wanted += [(t, -1) for t in tables.ignored]
        requests = array("q")
        self.first: list[tuple[int, int]] = []  # first position and terminal of each automaton, ascending
        size = transitions = 0
        for t, c in wanted:
            dfa = grammar.terminals[t].dfa
            requests.extend((dfa.transitions.ctypes.data, dfa.accepting.ctypes.data, len(dfa), c))
            self.first.append((size, t))
            size += len(dfa)
            transitions += dfa.transitions.size
        rows, edges = _read_automata(requests, len(wanted), 3 * size + 64, 3 * transitions + 64)
        pseudo = [(tables.embedded[t], 1) for t in tables.embedded] + [(len(tables.classes), 1)]
        self.positions = size
        self.classes = np.concatenate([rows[:, 0], [c for c, _ in pseudo]]).astype(np.int32)
        self.accepts = np.concatenate([rows[:, 1], [a for _, a in pseudo]]).astype(np.int32)
        self.edges = np.concatenate([rows[:, 2], [len(edges) // 3] * (len(pseudo) + 1)]).astype(np.int32)
        self.edge = edges.astype(np.int32)
        starts: list[list[int]] = [[] for _ in range(len(tables.classes) + 1)]
        self.ignored: list[int] = []
        for (position, _), (_, c) in zip(self.first, wanted, strict=True):
            (starts[c] if c >= 0 else self.ignored).append(position)
        for i, (c, _) in enumerate(pseudo):
            starts[c].append(size + i)
        self.starts = starts


def _read_automata(
    requests: array[int], count: int, position_words: int, edge_words: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Positions int64[n, 3] and edges, from the addresses of automata."""
    header = np.zeros(k.HEADER, np.int64)
    rows, edges = np.empty(position_words, np.int64), np.empty(edge_words, np.int64)
    for position, data in ((kt.a_at, rows), (kt.b_at, edges)):
        header[position], header[position + k.CAPACITY] = data.ctypes.data, data.size
    header[k.H_CAP] = k.HEADER
    root = np.array([header.ctypes.data])
    k.run(root.ctypes.data, k.READ_AUTOMATA, requests.buffer_info()[0], count, 0)
    return rows[: header[k.H_ATOP]].reshape(-1, 3), edges[: header[k.H_BTOP]].copy()


class CfgMachine(Heap):
    """What one grammar has learned while texts were read: the kernel's memory.

    While the kernel lacks room (a flag is up) it changes nothing, until room was made.

    Two heaps grow on demand. The one of masks is emptied when it would outgrow ``mask_bytes``. The one of records holds
    the states of matchers, so it is never emptied: once it is larger than ``state_bytes``, new matchers get a new
    machine (`CfgGrammar.machine`), and this one goes when its last matcher does.

    Attributes:
        start: the configurations before any text.
    """

    def __init__(
        self, tables: CfgTables, automata: CfgAutomata, lexicon: CfgLexicon, mask_bytes: int, state_bytes: int
    ) -> None:
        super().__init__(k.run, k.REHASH, k.HEADER, k.SINK_WORDS, FIRST_HEAP, FIRST_HASH)
        self.tables = tables
        self.automata = automata
        self.lexicon = lexicon
        self.width = lexicon.width
        self.evictions = 0
        self._mask_bytes, self.state_bytes = mask_bytes, state_bytes
        self.heap[k.HEADER + k.LEX_TABLE : k.HEADER + k.LEX_KEY] = -1
        self._masks = np.empty(min(FIRST_MASKS, max(mask_bytes // 8, 1)), np.int64)
        self._place_masks(1, 1)
        for position in BUFFERS:
            self._set(position, np.empty(FIRST_SCRATCH, np.int64))
        self._set(kt.move_at, np.zeros(3 * k.MOVES, np.int64))
        self._set_levels(FIRST_LEVEL)
        self._set_lexicon()
        self._set_tables()
        self.start = self.call(k.INITIAL, tables.start, 0, 0)

    @property
    def memory_bytes(self) -> int:
        """Bytes in use: records, masks, moves and working memory."""
        grown = sum(
            self._arrays[position].nbytes - 8 * FIRST_SCRATCH for position in BUFFERS
        )  # the first is hardly touched
        return int(8 * (self.heap[k.H_TOP] + self.heap[k.H_MTOP]) + self._hash.nbytes + grown) + 8 * 3 * k.MOVES

    @property
    def is_full(self) -> bool:
        """Whether new matchers should have a new machine."""
        return 8 * int(self.heap[k.H_TOP]) > self.state_bytes

    def provide(self, result: int) -> None:
        """Give the kernel the room that it asked for with RETRY; all its results so far stay valid.

        Raises:
            GrammarError: the states need more memory than ids can name.
        """
        flag = int(self.heap[k.H_FLAG])
        for position in BUFFERS:
            self.heap[position + k.TOP] = 0
        if flag & k.HEAP_FULL and 2 * len(self.heap) > MOST_WORDS:
            self.heap[k.H_FLAG] = 0
            raise GrammarError(
                f"the states of the grammar need more than {8 * MOST_WORDS >> 20} MiB: the text has too many parses",
                hint="Make the grammar less ambiguous (nested optional tails, palindromes), or the text shorter.",
            )
        self._grow_records()
        if flag & k.SCRATCH_FULL:
            for position in BUFFERS:
                self._set(position, np.empty(4 * len(self._arrays[position]), np.int64))
        if flag & k.LEVELS_FULL:
            self._set_levels(2 * int(self.heap[k.H_WIDTH_OF_LEVEL]))
        if flag & k.MASKS_FULL:
            self._grow_masks()
        self.heap[k.H_FLAG] = 0

    # --- what Python reads of the heap ---
    def configurations(self, configs: int) -> list[tuple[int, int]]:
        """Item set and lexer state of each configuration."""
        words = self.key(configs, k.CONFIGS_KEY)
        return [(word >> k.K_BITS, word & k.K_MASK) for word in words]

    def key(self, record: int, offset: int) -> list[int]:
        """Key of a record whose kind has its key at ``offset``."""
        n = int(self.heap[record + 1]) & ((1 << 40) - 1)
        words: list[int] = self.heap[record + offset : record + offset + n].tolist()
        return words

    def lexer(self, d: int) -> tuple[list[int], list[int]]:
        """The classes that may follow an ignored terminal in a lexer state, and its positions."""
        classes, *positions = self.key(d, k.LEX_KEY)
        return self.key(classes, k.CLASSES_KEY) if classes else [], positions

    def pseudo_classes(self, d: int) -> list[int]:
        """The classes of no text of their own (embedded terminals, the end) that may stand at a lexer state."""
        first = int(self.heap[k.H_PSEUDO])
        kinds = (int(self.automata.classes[p]) for p in self.lexer(d)[1])
        return [kind for kind in kinds if kind >= first]

    def measure(self, positions: list[int], suffixes: list[int]) -> None:
        """Give the kernel what BOUND needs: bytes of a shortest word from each position on, and of each suffix."""
        self._set(kt.least_of, np.array(suffixes, np.int64))
        self._set(kt.to_go_from, np.array(positions, np.int64))

    def clear_masks(self) -> None:
        """Forget all masks."""
        self._place_masks(1, int(self.heap[k.H_EPOCH]) + 1)

    def _grow_masks(self) -> None:
        """Double the heap of masks, or empty it if that exceeds the bound (a single mask may exceed it)."""
        used = int(self.heap[k.H_MTOP])
        if 16 * len(self._masks) <= self._mask_bytes or self._evicted_at == int(self.heap[k.H_TOP]):
            grown = np.empty(2 * len(self._masks), np.int64)
            grown[:used] = self._masks[:used]
            self._masks = grown
            self._place_masks(used, int(self.heap[k.H_EPOCH]))
        else:
            self.evictions += 1
            self._evicted_at = int(self.heap[k.H_TOP])
            self.clear_masks()

    # --- addresses ---
    def _place_masks(self, top: int, epoch: int) -> None:
        self._set(kt.mask_at, self._masks)
        self.heap[k.H_MTOP], self.heap[k.H_EPOCH] = top, epoch

    _evicted_at = -1

    def _set_levels(self, width: int) -> None:
        depth = self.lexicon.depth + 3
        self._set(kt.level_at, np.empty(depth * width, np.int64))
        self.heap[k.H_WIDTH_OF_LEVEL] = width
        for position in (kt.count_at, kt.deferred_at, kt.path_at, kt.near_at):
            self._set(position, np.zeros(depth + 1, np.int64))

    def _set_lexicon(self) -> None:
        words = self.lexicon
        self._set(kt.trie_at, words.nodes)
        self._set(kt.kinds_at, words.below)
        self._set(kt.token_at, words.order)
        self._set(kt.tokens_before, words.before)
        self._set(kt.root_of, words.root)
        self._set(kt.next_same, words.next_same)
        self._set(kt.offset_of, words.vocabulary.token_offsets)
        self._set(kt.byte_at, words.vocabulary.token_bytes)
        self._set(kt.eos_at, words.eos)
        self._set(kt.slice_kinds, words.slices.kinds)
        self._set(kt.slice_end, words.slices.ends)
        self._set(kt.slice_row, words.slices.rows)
        self._set(kt.residue_at, words.slices.residues)
        self._set(kt.remainder_end, words.slices.remainder_ends)
        self._set(kt.remainder_at, words.slices.remainders)
        self._set(kt.group_from, words.slices.groups)
        self._set(kt.group_at, words.slices.members)
        self.heap[k.H_NODES], self.heap[k.H_EOSES] = len(words.nodes), len(words.eos)
        self.heap[k.H_DEPTH], self.heap[k.H_WIDTH] = words.depth, words.width

    def _set_tables(self) -> None:
        tables, automata = self.tables, self.automata
        self._set(kt.head_of, np.full(len(tables.empty), -1, np.int64))
        self._set(kt.is_pending, np.zeros(len(tables.members), np.int64))
        self._set(kt.segment_at, np.zeros(2 * len(tables.empty), np.int64))
        self._set(kt.cont_of, np.zeros(len(tables.empty), np.int64))
        self.heap[k.H_COMPONENTS] = len(tables.members)
        self._set(kt.known_wide, np.zeros(len(automata.classes), np.int32))
        self._set(kt.known_stays, np.zeros(len(automata.classes), np.int64))
        self._set(kt.known_lasts, np.zeros(len(automata.classes), np.int64))
        self.heap[k.H_TERMINALS], self.heap[k.H_PSEUDO] = (
            len(tables.classes),
            len(tables.classes) - len(tables.embedded),
        )
        for position, data in (
            (kt.edges_from, automata.edges),
            (kt.edge_at, automata.edge),
            (kt.class_of, automata.classes),
            (kt.is_accepting, automata.accepts),
        ):
            self._set(position, data)
        self._set(kt.ignored_at, _ints(automata.ignored))
        self.heap[k.H_IGNOREDS] = len(automata.ignored)
        for position, numbers in (
            (kt.first_of, tables.first),
            (kt.next_of, tables.next),
            (kt.is_nullable, tables.nullable),
            (kt.can_be_empty, tables.empty),
            (kt.scc_of, tables.component),
            (kt.is_recursive, tables.loops),
        ):
            self._set(position, _ints(numbers))
        for position, lists in ((kt.members_from, tables.members), (kt.starts_from, automata.starts)):
            self._set(position, _ints([0, *accumulate(map(len, lists))]))
            self._set(position + 2, _ints([n for part in lists for n in part]))
        for position, pairs in ((kt.corners_from, tables.corners), (kt.scans_from, tables.scans)):
            self._set(position, _ints([0, *accumulate(map(len, pairs))]))
            self._set(position + 2, _ints([n for part in pairs for pair in part for n in pair]))


def _ints(numbers: list[int]) -> npt.NDArray[np.int32]:
    return np.array(numbers or [0], np.int32)
