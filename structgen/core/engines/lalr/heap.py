"""The memory in which the kernel of the LALR machine works: its records, as Python reads them, and its tables."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import numpy.typing as npt

from structgen.core.engines.lalr.liveness_tables import LivenessTables, parser_arrays
from structgen.core.engines.lalr.tables import CLOSING, DEDENT, INDENT, OPENING, TAB_WIDTH, LalrTables
from structgen.core.kernels.heaps import Heap
from structgen.core.kernels.lalr import machine as k
from structgen.core.kernels.lalr import tables as kt
from structgen.core.regex.utf8 import Utf8Tree, utf8_tree
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GrammarError

FIRST_HEAP, FIRST_HASH, FIRST_UNKNOWN = 1 << 17, 1 << 13, 1 << 12
MOST_WORDS = 1 << 30


class LalrHeap(Heap):
    """What a grammar's machine has in memory. `LalrMachine` decides what the kernel cannot.

    Attributes:
        tables: the grammar in numbers.
        width: int32 words of a mask row.
    """

    def __init__(
        self, tables: LalrTables, liveness_tables: LivenessTables | None, vocabulary: Vocabulary, mask_bytes: int
    ) -> None:
        super().__init__(k.run, k.REHASH, k.HEADER, k.SINK_WORDS, FIRST_HEAP, FIRST_HASH)
        self.tables = tables
        self.width = -(-vocabulary.size // 32)
        self._set(kt.unknown_at, np.zeros(FIRST_UNKNOWN, np.int64))
        self._set_characters(utf8_tree(tables.automata.segments))
        self._set_tables()
        self._set_liveness_tables(liveness_tables)
        self._set_vocabulary(vocabulary)
        rows = max(1, mask_bytes // (4 * self.width))
        self._set(kt.mask_at, np.empty(rows * self.width, np.int32))
        self.heap[k.H_MASK_CAP], self.heap[k.H_EPOCH] = rows, 1

    def live(self, config: int) -> int:
        """YES, NO or UNKNOWN, of what the kernel can tell by itself."""
        with self.lock:
            while (result := k.run(self.root, k.LIVE, config, 0, 0)) == k.RETRY:
                self._grow()
            return result

    @property
    def memory_bytes(self) -> int:
        """Bytes in use."""
        masks = int(self.heap[k.H_MASK_COUNT]) * self.width * 4
        return int(8 * self.heap[k.H_TOP]) + self._hash.nbytes + masks

    def _grow(self) -> None:
        flag = int(self.heap[k.H_FLAG])
        if flag & k.HEAP_FULL and 2 * len(self.heap) > MOST_WORDS:
            self.heap[k.H_FLAG] = 0
            raise GrammarError(f"the states of the grammar need more than {8 * MOST_WORDS >> 20} MiB")
        self._grow_records()
        if flag & k.UNKNOWN_FULL:
            self._set(kt.unknown_at, np.zeros(4 * len(self._arrays[kt.unknown_at]), np.int64))
        self.heap[k.H_FLAG] = 0

    # --- what Python reads of the heap ---
    def config(self, config: int) -> tuple[int, int, int, int]:
        """Parser, lexer state, fallback and column of a configuration."""
        parser, d, fallback, column = self.heap[config + k.CONFIG_KEY : config + k.CONFIG_KEY + 4].tolist()
        return parser, d, fallback, column

    def parser(self, parser: int) -> tuple[int, int, int]:
        """Stack, indentations and open brackets of a parser."""
        node, indent, brackets = self.heap[parser + k.PARSER_KEY : parser + k.PARSER_KEY + 3].tolist()
        return node, indent, brackets

    def pair(self, record: int) -> tuple[int, int]:
        """What is below a stack's node or an indentation, and its state or column."""
        return int(self.heap[record + k.PAIR_KEY]), int(self.heap[record + k.PAIR_KEY + 1])

    def levels(self, indent: int) -> list[int]:
        """Columns of a stack of indentations, the outermost first."""
        columns = []
        while indent:
            indent, column = self.pair(indent)
            columns.append(column)
        return columns[::-1]

    def lexer(self, d: int) -> tuple[int, list[tuple[int, int]]]:
        """Lexer and threads (terminal, state) of a lexer state."""
        first = d + k.LEX_CLEAN + 2 * self.bit_words
        n = int(self.heap[d + 1]) & k.STATE_MASK
        number, *threads = self.heap[first : first + n].tolist()
        return number, [(terminal_state >> 32, terminal_state & 0xFFFFFFFF) for terminal_state in threads]

    def lexer_of(self, parser: int) -> int:
        """The lexer of a parser's next lexeme."""
        return int(self.tables.lexer_of[self.pair(self.parser(parser)[0])[1]])

    @property
    def bit_words(self) -> int:
        """Words of a row of bits by terminal."""
        return (len(self.tables.terminals) + 63) >> 6

    def set_bits(self, position: int, terminals: set[int]) -> None:
        """Set bits of terminals in the row at a place of the heap."""
        for terminal in terminals:
            word, bit = divmod(terminal, 64)
            value = int(self.heap[position + word]) | 1 << bit
            self.heap[position + word] = value - (1 << 64) if value >> 63 else value

    def set_clean(self, lexer: int, terminals: set[int]) -> None:
        """Say that a lexer is prepared, and which terminals can be finished cleanly from its start."""
        clean = self._arrays[kt.clean_at]
        for terminal in terminals:
            word, bit = divmod(terminal, 64)
            index = lexer * self.bit_words + word
            value = int(clean[index]) | 1 << bit
            clean[index] = value - (1 << 64) if value >> 63 else value
        self._arrays[kt.is_prepared][lexer] = 1

    # --- addresses ---
    def _set_characters(self, tree: Utf8Tree) -> None:
        automata = self.tables.automata
        ascii_class = np.zeros(128, np.int32)
        for first, last, name in automata.segments:
            if first < 128:
                ascii_class[first : min(last, 127) + 1] = name
        below: list[set[int]] = []
        for leaf, children in zip(tree.leaf.tolist(), tree.children.tolist(), strict=True):  # children come first
            inside = {child for child in children if child >= 0}
            below.append(inside if leaf else set().union(*(below[child] for child in inside)))
        self.heap[k.H_CLASSES] = automata.classes
        self._set(kt.ascii_class, ascii_class)
        self._set(kt.lead_node, tree.root)
        self._set(kt.child_at, np.ascontiguousarray(tree.children).reshape(-1))
        self._set(kt.is_leaf, tree.leaf.astype(np.int32))
        self._set(kt.below_from, _ints([0, *accumulate(map(len, below))]))
        self._set(kt.below_at, _ints([name for inside in below for name in sorted(inside)]))
        self._set(kt.transition_at, np.ascontiguousarray(automata.transitions).reshape(-1))
        self._set(kt.flags_of, automata.flags)
        self._set(kt.keywords_of, automata.keywords)

    def _set_tables(self) -> None:
        tables = self.tables
        numbers = {name: i for i, name in enumerate(tables.terminals)}
        count = len(tables.terminals)
        self._set(kt.scratch_at, np.zeros(count + 16, np.int64))
        self._set(kt.stack_at, np.zeros(k.STACK, np.int64))
        for position, data in parser_arrays(tables).items():
            self._set(position, data)
        self.heap[k.H_TERMINALS], self.heap[k.H_STATES] = count, len(tables.action)
        self.heap[k.H_NONTERMINALS] = tables.goto.shape[1]
        self.heap[k.H_END], self.heap[k.H_END_STATE] = count - 1, tables.end
        self._set(kt.lexer_at, tables.lexer_of)
        self._set(kt.starts_from, _ints([0, *accumulate(map(len, tables.lexers))]))
        starts = tables.automata.starts
        threads = [terminal << 32 | starts[terminal] for lexer in tables.lexers for terminal in lexer]
        self._set(kt.lexer_start, np.array(threads or [0], np.int64))
        self._set(kt.retyped_at, tables.retyped.reshape(-1))
        self.heap[k.H_KEYWORD_COUNT] = tables.retyped.shape[1]
        self._set(kt.is_ignored, _ints([int(i in tables.ignored) for i in range(count)]))
        self._set(kt.clean_at, np.zeros(len(tables.lexers) * self.bit_words, np.int64))
        self._set(kt.is_prepared, np.zeros(len(tables.lexers), np.int32))
        self.heap[k.H_DISTRUST] = tables.distrust
        brackets = [(name in OPENING) - (name in CLOSING) if tables.newline >= 0 else 0 for name in tables.terminals]
        self._set(kt.bracket_of, _ints(brackets))
        self.heap[k.H_NEWLINE], self.heap[k.H_TAB_WIDTH] = tables.newline, TAB_WIDTH
        self.heap[k.H_INDENT], self.heap[k.H_DEDENT] = numbers.get(INDENT, -1), numbers.get(DEDENT, -1)
        classes = self._arrays[kt.ascii_class]
        for position, character in ((k.H_BLANK, " "), (k.H_TAB, "\t"), (k.H_LINE_END, "\n")):
            self.heap[position] = int(classes[ord(character)]) if tables.newline >= 0 else -1

    def _set_liveness_tables(self, liveness_tables: LivenessTables | None) -> None:
        if liveness_tables:
            for position, data in liveness_tables.arrays.items():
                self._set(position, data)
            self._set(kt.scratch_at, np.zeros(max(liveness_tables.scratch, len(self.tables.terminals) + 16), np.int64))
            self.heap[k.H_PROVED], self.heap[k.H_EXACT] = 1, liveness_tables.exact

    def _set_vocabulary(self, vocabulary: Vocabulary) -> None:
        trie = vocabulary.trie
        self._set(kt.trie_byte, trie.byte)
        self._set(kt.trie_depth, trie.depth)
        self._set(kt.trie_end, trie.subtree_end)
        self._set(kt.trie_token, trie.token)
        order, before = trie.in_order
        self._set(kt.token_at, order)
        self._set(kt.tokens_before, before)
        self._set(kt.path_at, np.zeros(trie.max_depth + 2, np.int32))
        self._set(kt.open_at, np.empty(len(trie) + 1, np.int32))
        self.heap[k.H_TRIE_SIZE] = len(trie)
        self._set(kt.offset_of, vocabulary.token_offsets)
        self._set(kt.byte_at, vocabulary.token_bytes)
        eos = _ints(list(vocabulary.eos_token_ids))
        self._set(kt.eos_at, eos)
        self.heap[k.H_EOSES], self.heap[k.H_WIDTH] = len(vocabulary.eos_token_ids), self.width
        self._set(kt.level_at, np.zeros(trie.max_depth + 2, np.int64))
        self._set(kt.inside_at, np.empty(len(trie), np.int64))
        self.call(k.CLASSES_INSIDE, 0)


def _ints(numbers: list[int]) -> npt.NDArray[np.int32]:
    return np.array(numbers or [0], np.int32)
