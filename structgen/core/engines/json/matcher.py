"""The matcher: where an output stands in its grammar. The only mutable state of a constraint."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import numbers_by_key
from structgen.core.engines.byte_sets import EVERY_BYTE, byte_set
from structgen.core.engines.draft_trees import DraftTrees
from structgen.core.engines.matcher import BaseMatcher
from structgen.core.engines.protocols import TOO_LONG
from structgen.core.kernels.json import layout, machine
from structgen.errors import MatcherStateError, TokenError

if TYPE_CHECKING:
    from structgen.core.engines.json.compiled import JsonGrammar
    from structgen.core.engines.json.masks.context import KernelContext

FIRST_TRAIL, FIRST_ARENA, FIRST_TEXT = 64, 64, 256
AT_ONCE = 1 << 15  # items by which memory doubles no more
# Equal configurations are merged at the end of each kernel call, so long texts are read in pieces: a text with many
# values that each have several alternatives would otherwise be read once for each combination.
PIECE = 16
LONG_PIECE = 1 << 16  # inside a string, where no alternatives begin
_QUOTE = byte_set(b'"')
_BEFORE, _STEPS, _TOP = layout.STATE_BEFORE, layout.STATE_STEPS, layout.STATE_TOP
_LENGTH, _ENDED, _COUNT = layout.STATE_LENGTH, layout.STATE_ENDED, layout.STATE_COUNT
_CONFIGURATIONS = layout.STATE_CONFIGURATIONS
# What matchers begin with, copied: one configuration, which awaits the root's value; no open container; no text.
_START = array("q", (-1, 0, 0, 0, 0, 1, layout.VALUE, 0, 0, -1)) + array("q", bytes(8 * (FIRST_TRAIL - 10)))
_ARENA = array("q", bytes(8 * FIRST_ARENA))
_TEXT = array("B", bytes(FIRST_TEXT))


class JsonMatcher(BaseMatcher["JsonGrammar"]):
    """One output in progress; see `structgen.core.engines.protocols.Matcher`. Make one with `JsonGrammar.matcher`.

    What it is lies in arrays that kernels read and write (`layout.BLOCK_SIZE`): the trail of its states, the arena of
    its open containers (frames, which are never changed; a state says how far the arena is in use) and, where items
    must be distinct, its text. What is rolled back makes room.
    """

    __slots__ = (
        "_arena", "_at", "_block", "_remainders", "_remembers", "_rows", "_size", "_tables", "_text", "_trail",
        "_vocabulary",
    )  # fmt: skip

    def __init__(self, grammar: JsonGrammar, *, remembers: bool = True) -> None:
        """``remembers``: whether masks that were made before are copied; else each is made anew, for tests."""
        super().__init__(grammar)
        tables, trail = grammar.tables, _START[:]
        trail[_CONFIGURATIONS + 1] = tables.root
        trail[_CONFIGURATIONS + 2] = 0 if tables.grammar[layout.H_WHITESPACE] == layout.ANY else 1
        self._own(remembers, trail, _ARENA[:], _TEXT[:] if tables.distinct else _TEXT[:1], 0)

    @property
    def stats(self) -> dict[str, int]:
        """Budget hits so far; each may narrow what is allowed, none widens it.

        ``dropped_alternatives``: parses given up for want of room. ``exhausted_searches``: searches for a distinct item
        that ended without one when their steps ran out (most often there is none).
        """
        return {"dropped_alternatives": self.dropped, "exhausted_searches": self._block[layout.B_SEARCHES]}

    @property
    def dropped(self) -> int:
        """Configurations given up for want of room."""
        return self._block[layout.B_DROPPED]

    @dropped.setter
    def dropped(self, count: int) -> None:
        self._block[layout.B_DROPPED] = count

    def _fill(self, bitmask: npt.NDArray[np.int32], index: int, out: int) -> None:
        context = self._rows.context()
        status = machine.run(context.address, layout.FILL, self._at, out, 0)
        if status >= layout.MISS:
            self._fill_on(context, status, out)

    def _fill_on(self, context: KernelContext, status: int, out: int) -> None:
        """Give the kernel what the mask lacks, until it is done."""
        first = 0
        while status >= layout.MISS:
            if status != layout.STALE:
                first = context.registers[layout.RESUME]
            self._provide(context, status)
            status = machine.fill(context.address, self._at, out, first)

    def accept_token(self, token_id: int) -> bool:
        """See `Matcher.accept_token`."""
        if not 0 <= token_id < self._size:
            raise TokenError.out_of_range(token_id, self._size)
        if self._in_use:
            raise MatcherStateError.in_use()
        if self._terminated:
            return False
        self._in_use = True
        try:
            context = self._rows.context()
            status = machine.run(context.address, layout.STEP, self._at, token_id, 0)
            return status == layout.ALIVE or self._stepped(context, status, token_id, 0)
        finally:
            self._in_use = False

    def advance_and_fill(self, token_id: int, bitmask: npt.NDArray[np.int32], index: int = 0) -> bool:
        """See `Matcher.advance_and_fill`. One call of the kernel."""
        out = self._row_address(bitmask, index)
        if not 0 <= token_id < self._size:
            raise TokenError.out_of_range(token_id, self._size)
        if self._in_use:
            raise MatcherStateError.in_use()
        if self._terminated:
            return False
        self._in_use = True
        try:
            context = self._rows.context()
            status = machine.run(context.address, layout.STEP, self._at, token_id, out)
            return status == layout.ALIVE or self._stepped(context, status, token_id, out)
        finally:
            self._in_use = False

    @classmethod
    def fill_all(cls, matchers: Sequence[Self], bitmask: npt.NDArray[np.int32], rows: Sequence[int]) -> None:
        """See `Matcher.fill_all`: one call of the kernel for those that share their mask rows."""
        with _entered(matchers):
            for chosen in _sharing(matchers):
                if len(chosen) == len(matchers):
                    cls._group_filled(matchers, bitmask, rows)
                    break
                members, places = [matchers[number] for number in chosen], [rows[number] for number in chosen]
                cls._group_filled(members, bitmask, places)

    @classmethod
    def _group_filled(cls, matchers: Sequence[Self], bitmask: npt.NDArray[np.int32], rows: Sequence[int]) -> None:
        """The masks of matchers that share their mask rows."""
        jobs, count = _jobs(matchers, bitmask, rows), len(matchers)
        context, first = matchers[0]._rows.context(), 0
        while (first := machine.fills(context.address, jobs.buffer_info()[0], first, count)) < count:
            job = layout.JOB_SIZE * first
            matchers[first]._fill_on(context, jobs[job + layout.J_STATUS], jobs[job + layout.J_OUT])
            first += 1

    @classmethod
    def advance_and_fill_all(
        cls, matchers: Sequence[Self], token_ids: Sequence[int], bitmask: npt.NDArray[np.int32], rows: Sequence[int]
    ) -> list[bool]:
        """`advance_and_fill` of many matchers, each with its token, which its vocabulary has, and its row: one call
        of the kernel for those that share their mask rows. See `batch_advance_and_fill`."""
        with _entered(matchers):
            taken = [False] * len(matchers)
            running = [number for number, matcher in enumerate(matchers) if not matcher._terminated]
            for chosen in _sharing([matchers[number] for number in running]):
                if len(chosen) == len(matchers):
                    return cls._group_stepped(matchers, token_ids, bitmask, rows)
                numbers = [running[index] for index in chosen]
                members = [matchers[number] for number in numbers]
                tokens, places = [token_ids[number] for number in numbers], [rows[number] for number in numbers]
                for number, is_taken in zip(numbers, cls._group_stepped(members, tokens, bitmask, places), strict=True):
                    taken[number] = is_taken
            return taken

    @classmethod
    def _group_stepped(
        cls, matchers: Sequence[Self], token_ids: Sequence[int], bitmask: npt.NDArray[np.int32], rows: Sequence[int]
    ) -> list[bool]:
        """The steps of matchers that share their mask rows, none of which has ended."""
        jobs, count = _jobs(matchers, bitmask, rows), len(matchers)
        jobs[layout.J_TOKEN :: layout.JOB_SIZE] = array("q", token_ids)
        context, taken = matchers[0]._rows.context(), list[bool]()
        while (first := len(taken)) < count:
            last = machine.steps(context.address, jobs.buffer_info()[0], first, count)
            done = jobs[layout.JOB_SIZE * first + layout.J_STATUS : layout.JOB_SIZE * (last + 1) : layout.JOB_SIZE]
            taken += [
                status == layout.ALIVE
                or matchers[number]._stepped(
                    context, status, token_ids[number], jobs[layout.JOB_SIZE * number + layout.J_OUT]
                )
                for number, status in enumerate(done, first)
            ]
        return taken

    @classmethod
    def fill_trees(
        cls, matchers: Sequence[Self], trees: DraftTrees, bitmask: npt.NDArray[np.int32], rows: Sequence[int]
    ) -> npt.NDArray[np.bool_]:
        """See `Matcher.fill_trees`: one call of the kernel for those that share their mask rows."""
        taken = np.zeros(trees.tokens.shape, np.bool_)
        with _entered(matchers):
            for chosen in _sharing(matchers):
                members, firsts = [matchers[number] for number in chosen], [rows[number] for number in chosen]
                taken[chosen] = cls._group_walked(members, trees.of(chosen), bitmask, firsts)
        return taken

    @classmethod
    def _group_walked(
        cls, matchers: Sequence[Self], trees: DraftTrees, bitmask: npt.NDArray[np.int32], rows: Sequence[int]
    ) -> npt.NDArray[np.bool_]:
        """Walk the trees of matchers that share their mask rows."""
        begins = [matcher._block[layout.B_PLACE] for matcher in matchers]
        numbers = np.array(rows)[:, None] + np.arange(trees.tokens.shape[1])
        start = _first_address(matchers[0], bitmask, [int(numbers.min()), int(numbers.max())])
        jobs = _tree_jobs([matcher._at for matcher in matchers], begins, trees)
        jobs[..., layout.J_OUT] = start + 4 * bitmask.shape[-1] * numbers
        try:
            cls._walk(matchers, jobs)
            taken = jobs[..., layout.J_STATUS] == layout.ALIVE
            bitmask[numbers[jobs[..., layout.J_STATUS] == layout.NOT_YET]] = 0
            ends = np.isin(trees.tokens, matchers[0]._vocabulary.eos_token_ids)
            for tree, node in np.argwhere(ends & (jobs[..., layout.J_STATUS] == layout.DEAD)).tolist():
                if node:  # there is no mask behind it
                    before = jobs[tree, jobs[tree, node, layout.J_PARENT] - tree * jobs.shape[1]]
                    matchers[tree]._block[layout.B_PLACE] = int(before[layout.J_PLACE])
                    taken[tree, node] = matchers[tree]._may_stop()
            return taken
        finally:
            for matcher, begin in zip(matchers, begins, strict=True):
                matcher._block[layout.B_PLACE] = begin

    @classmethod
    def _walk(cls, matchers: Sequence[Self], jobs: npt.NDArray[np.int64]) -> None:
        """Do the jobs of trees."""
        context, number = matchers[0]._rows.context(), 0
        while (number := machine.trees(context.address, jobs.ctypes.data, number)) >= 0:
            tree, node = divmod(number, jobs.shape[1])
            matcher, job = matchers[tree], jobs[tree, node]
            token_id, out, status = (int(job[field]) for field in (layout.J_TOKEN, layout.J_OUT, layout.J_STATUS))
            if node:
                status = matcher._step_on(context, status, token_id, out)
            else:
                matcher._fill_on(context, status, out)
                status = layout.ALIVE
            if status == layout.DEAD:
                ctypes.memset(out, 0, 4 * matcher._rows.lexicon.width)
            job[layout.J_STATUS], job[layout.J_PLACE] = status, matcher._block[layout.B_PLACE]

    def _step_on(self, context: KernelContext, status: int, token_id: int, out: int) -> int:
        """Whether the token is text that is taken, DEAD or ALIVE, after a step that was not done at once."""
        while layout.MISS <= status < layout.FILLING:
            self._provide(context, status)
            status = machine.step(context.address, self._at, token_id, out)
        if status >= layout.FILLING:
            self._fill_on(context, status - layout.FILLING, out)
            return layout.ALIVE
        return status

    def _stepped(self, context: KernelContext, status: int, token_id: int, out: int) -> bool:
        """Whether the token is taken, after a step that was not done at once; the mask after it goes to ``out``."""
        if self._step_on(context, status, token_id, out) == layout.ALIVE:
            return True
        if token_id not in self._vocabulary.eos_token_ids or not self._terminate():
            return False
        if out:
            ctypes.memset(out, 0, 4 * self._rows.lexicon.width)
        return True

    def _accept(self, data: bytes) -> bool:
        text = np.frombuffer(data, np.uint8)  # first: it refuses what is no bytes
        data = bytes(data)
        if not data:
            self._repeat(ended=self._terminated)
            return True
        if self._terminated:
            return False
        block, before, dropped = self._block, self._block[layout.B_PLACE], self.dropped
        context = self._rows.context()
        context.set_data(text)
        try:
            end = 0
            while end < len(data):
                start, end = end, self._piece_end(data, end)
                while (status := machine.advance(context.address, self._at, start, end)) >= layout.MISS:
                    self._provide(context, status)
                if status == layout.DEAD:
                    block[layout.B_PLACE], self.dropped = before, dropped
                    return False
                if start:
                    self._join_steps()
        finally:
            context.set_data(self._vocabulary.token_bytes)
        return True

    def _piece_end(self, data: bytes, start: int) -> int:
        """Where the next piece of a text ends: at a quote or an escape, if all configurations are inside of strings."""
        end = min(start + PIECE, len(data))
        if end < len(data) and min(self._threads()[::4], default=0) >= layout.STRING:
            longest = min(start + LONG_PIECE, len(data))
            ends = (data.find(one, start, longest) for one in (b'"', b"\\"))
            end = max(end, min((mark for mark in ends if mark >= 0), default=longest))
        return end

    def _rollback(self, steps: int) -> None:
        """O(steps)."""
        trail, record = self._trail, self._block[layout.B_PLACE]
        top = trail[record + _TOP]
        if not 0 <= steps <= trail[record + _STEPS]:
            raise MatcherStateError.past_the_start(steps, trail[record + _STEPS])
        for _ in range(steps):
            record = trail[record + _BEFORE]
        self._block[layout.B_PLACE] = record
        self._terminated = bool(trail[record + _ENDED])
        if top != trail[record + _TOP]:
            self._remainders.clear()

    def reset(self) -> None:
        """See `Matcher.reset`."""
        if self._in_use:
            raise MatcherStateError.in_use()
        self.__init__(self._grammar, remembers=self._remembers)  # type: ignore[misc]

    def _fork(self) -> JsonMatcher:
        """O(steps), as memory is copied."""
        twin = self._twin(self._trail[: self._end()], self._block[layout.B_PLACE])
        twin._block[layout.B_DROPPED] = self.dropped
        return twin

    def _copy(self) -> JsonMatcher:
        """O(size of the arena)."""
        state = self._trail[self._block[layout.B_PLACE] : self._end()]
        state[_BEFORE], state[_STEPS] = -1, 0
        return self._twin(state, 0)

    def is_accepting(self) -> bool:
        """See `Matcher.is_accepting`."""
        if self._in_use:
            raise MatcherStateError.in_use()
        self._in_use = True
        try:
            return self._may_stop()
        finally:
            self._in_use = False

    def _may_stop(self) -> bool:
        if self._terminated:
            return False
        context = self._rows.context()
        while (status := machine.accepting(context.address, self._at)) >= layout.MISS:
            self._provide(context, status)
        return status == layout.ALIVE

    def _mark_next_bytes(self, out: npt.NDArray[np.int32]) -> None:
        context = self._rows.context()
        while (status := machine.next_bytes(context.address, self._at, out.ctypes.data)) >= layout.MISS:
            self._provide(context, status)

    def shortest_completion(self) -> bytes:
        """See `Matcher.shortest_completion`; O(depth) for values whose value nodes were completed before."""
        if self._terminated or self.is_accepting():
            return b""
        text = self._grammar.completions.complete(self)
        self._grammar.lengths.bytes_of(text)  # which notes bytes that are no tokens
        return text

    def likely_texts(self, written: bytes) -> list[bytes]:
        """See `Matcher.likely_texts`."""
        return [] if self._terminated else self._grammar.completions.likely(self, written)

    def completion_bound(self) -> int:
        """See `Matcher.completion_bound`. O(threads), and O(depth) for frames that were not asked for before."""
        if self._terminated:
            return 0
        bound = self._grammar.lengths.least(self._threads(), self._arena, self._remainders)
        return bound if bound < TOO_LONG else super().completion_bound()

    def completion_is_spelled(self) -> bool:
        """See `Matcher.completion_is_spelled`: whether no piece of any text so far had a byte that is no token."""
        return self._grammar.lengths.all_spelled

    def state_key(self, *, same_matcher: bool = False) -> Hashable:
        """See `Matcher.state_key`. None where items must be distinct, and for other matchers within a container."""
        if self._tables.distinct:
            return None
        threads = self._threads()
        # Frames are this matcher's own, and never changed.
        if not same_matcher and any(frame >= 0 for frame in threads[3::4]):
            return None
        return threads.tobytes(), self._terminated

    def bytes_to_stop(self) -> int:
        """See `Matcher.bytes_to_stop`: outside of strings JSON has no A, so here is one, and only a quote ends it."""
        return _QUOTE if self.next_bytes()[ord("A")] else EVERY_BYTE

    def configurations(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The parse state for inspection: int64[n, 4] configurations, and the arena their frames lie in."""
        return np.array(self._threads(), np.int64).reshape(-1, 4), np.array(self._arena, np.int64)

    # --- internals ---
    def _own(self, remembers: bool, trail: array[int], arena: array[int], text: array[int], record: int) -> None:
        """Take these arrays, in which the present state is at ``record`` of the trail."""
        grammar = self._grammar
        tables = self._tables = grammar.tables
        self._rows, self._vocabulary, self._size = grammar.rows, grammar.vocabulary, grammar.vocabulary.size
        # Bytes from the end of a value in a frame on, of frames that were asked for.
        self._remainders: dict[int, int] = {}
        self._remembers, self._trail, self._arena, self._text = remembers, trail, arena, text
        block = self._block = array("q", (  # in the order of the layout
            tables.addresses.buffer_info()[0], *trail.buffer_info(), *arena.buffer_info(), *text.buffer_info(),
            record, 0, 0, tables.number if remembers else 0,
        ))  # fmt: skip
        self._at = block.buffer_info()[0]

    def _note_addresses(self) -> None:
        block = self._block
        block[layout.B_TRAIL], block[layout.B_TRAIL_SIZE] = self._trail.buffer_info()
        block[layout.B_ARENA], block[layout.B_ARENA_SIZE] = self._arena.buffer_info()
        block[layout.B_TEXT], block[layout.B_TEXT_SIZE] = self._text.buffer_info()

    def _twin(self, trail: array[int], record: int) -> JsonMatcher:
        """Another matcher with its own arrays, of which the trail is given."""
        twin = object.__new__(JsonMatcher)
        BaseMatcher.__init__(twin, self._grammar)
        state = self._block[layout.B_PLACE]
        used, length = self._trail[state + _TOP], self._trail[state + _LENGTH]
        trail.extend([0] * FIRST_TRAIL)
        arena, text = self._arena[: max(used, FIRST_ARENA)], self._text[: max(2 * length, FIRST_TEXT)]
        twin._own(self._remembers, trail, arena, text, record)
        twin._terminated = self._terminated
        return twin

    def _end(self) -> int:
        """Where the present state ends in the trail."""
        record = self._block[layout.B_PLACE]
        return record + _CONFIGURATIONS + 4 * self._trail[record + _COUNT]

    def _threads(self) -> array[int]:
        """The configurations, four words each."""
        return self._trail[self._block[layout.B_PLACE] + _CONFIGURATIONS : self._end()]

    def _provide(self, context: KernelContext, status: int) -> None:
        """Give a kernel what it asked for, of this matcher's memory or of the context's."""
        registers = context.registers
        text_is_short = self._tables.distinct and registers[layout.POSITION] + 2 > len(self._text)
        if status == layout.SHORT or (status == layout.FULL and text_is_short):
            need = _CONFIGURATIONS + 4 * registers[layout.ALTERNATIVES]
            _extend(self._trail, self._end() + need)
            _extend(self._arena, self._trail[self._block[layout.B_PLACE] + _TOP] + registers[layout.USED])
            if self._tables.distinct:
                _extend(self._text, registers[layout.POSITION] + 2)
            self._note_addresses()
        else:
            self._rows.resolve(context, status)

    def _repeat(self, *, ended: bool) -> None:
        """A step after which the configurations are the same."""
        record, end = self._block[layout.B_PLACE], self._end()
        _extend(self._trail, 2 * end - record)
        self._note_addresses()
        trail = self._trail
        trail[end : 2 * end - record] = trail[record:end]
        trail[end + _BEFORE], trail[end + _ENDED] = record, ended
        trail[end + _STEPS] += 1
        self._block[layout.B_PLACE] = end

    def _join_steps(self) -> None:
        """Make one step of the last two."""
        trail, record, end = self._trail, self._block[layout.B_PLACE], self._end()
        joined = trail[record + _BEFORE]
        before = trail[joined + _BEFORE]
        trail[joined : joined + end - record] = trail[record:end]
        trail[joined + _BEFORE] = before
        trail[joined + _STEPS] -= 1
        self._block[layout.B_PLACE] = joined

    def _terminate(self) -> bool:
        if not self._may_stop():
            return False
        self._repeat(ended=True)
        self._terminated = True
        return True


def _sharing(matchers: Sequence[JsonMatcher]) -> list[list[int]]:
    """The numbers of matchers, by the mask rows that they share."""
    return numbers_by_key([id(matcher._rows) for matcher in matchers])


def _first_address(matcher: JsonMatcher, bitmask: npt.NDArray[np.int32], rows: Sequence[int]) -> int:
    """The address of a bitmask's first row, after a look whether it has these."""
    for row in rows:
        matcher._row_address(bitmask, row)
    return matcher._row_address(bitmask, 0)


def _jobs(matchers: Sequence[JsonMatcher], bitmask: npt.NDArray[np.int32], rows: Sequence[int]) -> array[int]:
    """Jobs of matchers that share their mask rows, and with these the size of their vocabulary: where each is, and
    where its mask goes."""
    start, row_bytes = _first_address(matchers[0], bitmask, [min(rows), max(rows)]), 4 * bitmask.shape[-1]
    jobs = array("q", bytes(8 * layout.JOB_SIZE * len(matchers)))
    jobs[layout.J_BLOCK :: layout.JOB_SIZE] = array("q", [matcher._at for matcher in matchers])
    jobs[layout.J_OUT :: layout.JOB_SIZE] = array("q", [start + row_bytes * row for row in rows])
    return jobs


def _tree_jobs(blocks: Sequence[int], begins: Sequence[int], trees: DraftTrees) -> npt.NDArray[np.int64]:
    """int64[trees, nodes, JOB_SIZE]: the jobs of trees, but for the addresses of masks. The first of a tree has that of
    the next one as its sibling."""
    count, nodes = trees.tokens.shape
    offsets = nodes * np.arange(count)[:, None]
    jobs = np.empty((count, nodes, layout.JOB_SIZE), np.int64)
    jobs[..., layout.J_BLOCK] = np.array(blocks)[:, None]
    jobs[..., layout.J_TOKEN] = trees.tokens
    jobs[..., layout.J_STATUS] = layout.NOT_YET
    jobs[..., layout.J_CHILD] = np.where(trees.children < 0, -1, trees.children + offsets)
    jobs[..., layout.J_SIBLING] = np.where(trees.siblings < 0, -1, trees.siblings + offsets)
    jobs[:, 0, layout.J_SIBLING] = [*offsets[1:, 0].tolist(), -1]
    jobs[:, 0, layout.J_TOKEN], jobs[:, 0, layout.J_PARENT] = layout.NO_TOKEN, -1
    jobs[:, 0, layout.J_PLACE] = begins
    return jobs


class _entered:
    """Mark matchers as in use for a block, each for this thread alone."""

    __slots__ = ("_matchers",)

    def __init__(self, matchers: Sequence[JsonMatcher]) -> None:
        self._matchers = matchers

    def __enter__(self) -> None:
        for number, matcher in enumerate(self._matchers):
            if matcher._in_use:
                self._matchers = self._matchers[:number]
                self.__exit__()
                raise MatcherStateError.in_use()
            matcher._in_use = True

    def __exit__(self, *error: object) -> None:
        for matcher in self._matchers:
            matcher._in_use = False


def _extend(memory: array[int], size: int) -> None:
    """Make room for ``size`` items at least: twice what there was while that is little, then an eighth more, so that no
    step of a long output stands out."""
    have = len(memory)
    if size > have:
        more = max(size - have, min(have, max(AT_ONCE, have >> 3)))
        memory.extend(array(memory.typecode, bytes(memory.itemsize * more)))
