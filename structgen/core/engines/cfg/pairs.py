"""Pairs of a grammar's configurations and a state of an automaton: the machine of an intersection.

The grammar's machine stays as it is; the automaton reads the same bytes beside it. A pair is live if some text
completes both. Which states are live with a set of configurations is found once for each set, from the relations of
what the configurations still wait for: O(configurations × positions) look-ups.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from structgen.core.bounded_cache import BoundedCache
from structgen.core.engines.cfg.pair_completion import PairCompletions
from structgen.core.engines.cfg.pair_rows import RowMachine
from structgen.core.engines.cfg.relations import MAX_STATES, Relations
from structgen.core.kernels.cfg import machine as k
from structgen.core.kernels.heap_layout import ACCEPT, ADVANCE, DEAD, ENDS, FILL, NEXT_BYTES
from structgen.core.regex.dfa import Dfa

if TYPE_CHECKING:
    from structgen.core.engines.cfg.compiled import CfgGrammar

Q_BITS = MAX_STATES.bit_length()
Q_MASK = (1 << Q_BITS) - 1
MASK_BYTES, MACHINE_BYTES = 64 << 20, 128 << 20
AT_END = -2  # in place of the class of a terminal: nothing is read any more
MOST_SETS = 1 << 16
"""Sets of live states that are kept, of each kind."""


class PairMachine:
    """What is known of one intersection's states. A state is ``configurations << Q_BITS | state of the automaton``.

    It is called as a kernel of states is (`structgen.core.engines.state_matcher`), and makes room itself.

    Attributes:
        configurations: the grammar's machine, which no other grammar uses.
        start: the state before any text; DEAD if there is no text.
        completions: short texts, for closing an output.
    """

    def __init__(self, grammar: CfgGrammar, dfa: Dfa, relations: Relations) -> None:
        self.configurations = machine = RowMachine(grammar, dfa, MACHINE_BYTES, MACHINE_BYTES)
        self.lock, self.root = machine.lock, self
        self._relations, self._grammar = relations, grammar
        self._classes: list[int] = machine.automata.classes.tolist()
        self._step: list[list[int]] = dfa.transitions.tolist()
        self._accepting: list[bool] = dfa.accepting.tolist()
        self._tokens = machine.lexicon.vocabulary.tokens
        self._masks: BoundedCache[int, bytes] = BoundedCache(MASK_BYTES, len)
        self._forget()
        self.start = self._checked(machine.start, 0)
        self.completions = PairCompletions(self, dfa)

    @property
    def is_full(self) -> bool:
        """Whether new matchers should have a new machine."""
        return self.configurations.is_full

    @property
    def memory_bytes(self) -> int:
        """Bytes of the grammar's machine, and of masks."""
        return self.configurations.memory_bytes + self._masks.memory_bytes

    def call(self, operation: int, state: int, y: int = 0, z: int = 0) -> int:
        """Run an operation of all state machines."""
        with self.lock:
            return self.run(operation, state, y, z)

    def run(self, operation: int, state: int, y: int, z: int) -> int:
        """As `call`, of who holds the lock."""
        configs, q = state >> Q_BITS, state & Q_MASK
        if operation == FILL:
            mask = self._masks.get(state) or self._new_mask(state)
            ctypes.memmove(y, mask, len(mask))
            return 1
        machine = self.configurations
        if operation == ACCEPT:
            return self._after(machine.call(ACCEPT, configs, y), q, self._tokens[y])
        if operation == ADVANCE:
            return self._after(machine.call(ADVANCE, configs, y, z), q, ctypes.string_at(y, z))
        if operation == NEXT_BYTES:
            flags = np.zeros(256, np.bool_)
            for byte, _ in self.after_bytes(state):
                flags[byte] = True
            bits = np.packbits(flags, bitorder="little").tobytes()
            ctypes.memmove(y, bits, len(bits))
            return 1
        assert operation == ENDS
        return machine.call(ENDS, configs) & int(self._accepting[q])

    def after_bytes(self, state: int) -> Iterable[tuple[int, int]]:
        """The bytes that may come next, and the states after them."""
        configs, row, byte = state >> Q_BITS, self._step[state & Q_MASK], np.zeros(1, np.uint8)
        next_bytes = np.zeros(32, np.uint8)
        self.configurations.call(NEXT_BYTES, configs, next_bytes.ctypes.data)
        for number in np.flatnonzero(np.unpackbits(next_bytes, bitorder="little")).tolist():
            if row[number] >= 0:
                byte[0] = number
                after = self._checked(self.configurations.call(ADVANCE, configs, byte.ctypes.data, 1), row[number])
                if after != DEAD:
                    yield number, after

    def bound(self, state: int) -> int:
        """Bytes that the configurations of a state need, whatever the automaton says."""
        return self.configurations.bound(state >> Q_BITS, self._grammar)

    @staticmethod
    def automaton_state(state: int) -> int:
        """The state of the automaton in a state."""
        return state & Q_MASK

    # --- steps and masks ---
    def _after(self, configs: int, q: int, data: bytes) -> int:
        """The state after the automaton has read text too; DEAD if it cannot be completed."""
        if configs == DEAD or not data:
            return DEAD
        for byte in data:
            q = self._step[q][byte]
            if q < 0:
                return DEAD
        return self._checked(configs, q)

    def _checked(self, configs: int, q: int) -> int:
        return configs << Q_BITS | q if configs != DEAD and self._live(configs) >> q & 1 else DEAD

    def _new_mask(self, state: int) -> bytes:
        mask = self.configurations.fill_pairs(
            state >> Q_BITS, state & Q_MASK, lambda configs: self._relations.words(self._live(configs))
        )
        return self._masks.put(state, mask.tobytes())

    # --- what is live ---
    def _live(self, configs: int) -> int:
        """The states of the automaton that are live with a set of configurations."""
        live = self._of_configs.get(configs)
        if live is None:
            if len(self._of_configs) > MOST_SETS or len(self._of_items) > MOST_SETS:
                self._forget()
            live = 0
            for items, d in self.configurations.configurations(configs):
                live |= self._of_configuration(items, d)
                if live == self._relations.all:
                    break
            self._of_configs[configs] = live
        return live

    def _of_configuration(self, items: int, d: int) -> int:
        """Those live with an item set and a lexer state: a terminal can end so that its item set goes on."""
        relations, of_classes, every, live = self._relations, self._of_classes, self._relations.all, 0
        for position, kind in self._positions.get(d) or self._new_positions(d):
            if kind == AT_END:
                live |= self._accepting_states
            else:
                after = of_classes.get((items, kind))
                after = self._after_class(items, kind) if after is None else after
                live |= relations.exits[position] if after == every else relations.before_position(position, after)
            if live == every:
                break
        return live

    def _new_positions(self, d: int) -> list[tuple[int, int]]:
        """The positions of a lexer state with their classes, those first that leave most states."""
        inside, most = self.configurations.automata.positions, self._relations.most_before
        positions = sorted(self.configurations.lexer(d)[1], key=lambda p: -most[p] if p < inside else 0)
        ordered = self._positions[d] = [(p, self._classes[p] if p < inside else AT_END) for p in positions]
        return ordered

    def _after_class(self, items: int, kind: int) -> int:
        """The states live after a terminal of a class, or after ignored text (-1)."""
        live = self._of_classes.get((items, kind))
        if live is None:
            after = items if kind < 0 else self.configurations.call(k.GOTO_ITEMS, items, kind, 0)
            live = self._of_classes[items, kind] = self._live_at(after)
        return live

    def _live_at(self, items: int) -> int:
        """The states live between terminals, at an item set."""
        live = self._of_items.get(items)
        if live is None:
            keys = self.configurations.key(items, k.ITEMS_KEY)
            for after in {item & k.K_MASK for item in keys if item != k.END_ITEM}:
                self._settle(after)
            live = self._of_items[items] = self._union(keys)
        return live

    def _union(self, items: Iterable[int]) -> int:
        """The states live with any of some items, as far as their continuations are known."""
        live, relations = 0, self._relations
        for item in items:
            if item == k.END_ITEM:
                live |= relations.end
            else:
                live |= relations.before_suffix(item >> k.K_BITS, self._of_continuations.get(item & k.K_MASK, 0))
            if live == relations.all:
                break
        return live

    def _settle(self, continuation: int) -> None:
        """Find the states live at a continuation and at all that it leads to: a least fixpoint over these."""
        if continuation in self._of_continuations:
            return
        items: dict[int, list[int]] = {}
        users: dict[int, list[int]] = {}
        stack = [continuation]
        while stack:
            each = stack.pop()
            if each in items or each in self._of_continuations:
                continue
            items[each] = self.configurations.key(each, k.CONT_KEY)
            for item in items[each]:
                if item != k.END_ITEM:
                    users.setdefault(item & k.K_MASK, []).append(each)
                    stack.append(item & k.K_MASK)
        self._of_continuations.update(dict.fromkeys(items, 0))
        changed = list(items)  # those further in come last, and are taken first
        while changed:
            each = changed.pop()
            live = self._union(items[each])
            if live | self._of_continuations[each] != self._of_continuations[each]:
                self._of_continuations[each] |= live
                changed += users.get(each, ())

    def _forget(self) -> None:
        """Forget all sets of live states: they can be found again."""
        self._relations.forget()
        self._accepting_states = sum(1 << q for q, accepts in enumerate(self._accepting) if accepts)
        self._positions: dict[int, list[tuple[int, int]]] = {}
        self._of_configs: dict[int, int] = {}
        self._of_classes: dict[tuple[int, int], int] = {}
        self._of_items: dict[int, int] = {}
        self._of_continuations: dict[int, int] = {}


def run(machine: PairMachine, operation: int, x: int, y: int, z: int) -> int:
    """`PairMachine.run` as an entry of a kernel."""
    return machine.run(operation, x, y, z)
