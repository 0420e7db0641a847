"""Token bitmasks: allocate them, fill them for a batch, apply them to logits.

int32[batch, ceil(V / 32)]; bit t % 32 of word t // 32 says whether token t is allowed, as in xgrammar, llguidance and
vLLM.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import lru_cache
from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structgen.core.engines.logits import HostLogits, host_logits
from structgen.core.kernels.calls import address_of, writable_address
from structgen.core.kernels.sampling import calls
from structgen.core.kernels.sampling.layout import CACHED_BYTES, FEW_FORBIDDEN
from structgen.errors import BitmaskError

if TYPE_CHECKING:
    from structgen.core.engines.protocols import Matcher


def packed(bits: npt.NDArray[np.bool_], width: int) -> npt.NDArray[np.int32]:
    """bool[n] as int32[width]; what is after the n bits is 0. ``n`` is at most ``32 * width``."""
    padded = np.pad(bits, (0, 32 * width - len(bits)))
    return np.packbits(padded, bitorder="little").view(np.int32)


def unpacked(row: npt.NDArray[np.int32], size: int | None = None) -> npt.NDArray[np.bool_]:
    """The first ``size`` bits of int32[width] (default: all) as bool[size]."""
    return np.unpackbits(row.view(np.uint8), count=size, bitorder="little").view(np.bool_)


def row_of(ids: Sequence[int] | npt.NDArray[np.int64], width: int) -> npt.NDArray[np.int32]:
    """int32[width] that allows these tokens and no others."""
    bits = np.zeros(32 * width, np.bool_)
    bits[ids] = True
    return packed(bits, width)


def allows(row: npt.NDArray[np.int32], ids: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which of some tokens int32[width] allows: bool[n]."""
    return (row[ids >> 5] >> (ids & 31).astype(np.int32) & 1).astype(np.bool_)


# Waking a thread costs tens of µs and a mask takes one or two, so small batches are filled by the caller.
MASKS_PER_THREAD = 64
LOGITS_PER_THREAD, PARTS_PER_THREAD = 1 << 18, 4
MASKED_PER_DRAWN = 8  # logits that are masked while one is drawn from
_INT32 = np.dtype(np.int32)


def numbers_by_key(keys: Sequence[Hashable]) -> list[list[int]]:
    """The numbers of equal keys, group by group, in the order of the first of each. Linear."""
    if keys and keys.count(keys[0]) == len(keys):  # mostly, and then in a tenth of the time
        return [list(range(len(keys)))]
    groups: dict[Hashable, list[int]] = {}
    for number, key in enumerate(keys):
        groups.setdefault(key, []).append(number)
    return list(groups.values())


def allocate_token_bitmask(batch_size: int, vocab_size: int) -> npt.NDArray[np.int32]:
    """A bitmask with all tokens allowed: int32[batch_size, ceil(vocab_size / 32)], all -1.

    Raises:
        BitmaskError: a size is not positive.
    """
    if not (isinstance(batch_size, Integral) and isinstance(vocab_size, Integral) and min(batch_size, vocab_size) >= 1):
        raise BitmaskError(f"sizes must be positive, got batch_size={batch_size!r}, vocab_size={vocab_size!r}")
    return np.full((batch_size, -(-vocab_size // 32)), -1, np.int32)


def check_row(bitmask: npt.NDArray[np.int32], index: int, vocab_size: int) -> tuple[int, int]:
    """Address of the first row and number of rows, after checking dtype, shape, layout and that row ``index`` exists.

    Raises:
        BitmaskError: what is wrong, and what is wanted.
    """
    width = -(-vocab_size // 32)
    if not isinstance(bitmask, np.ndarray) or bitmask.dtype != _INT32:
        raise BitmaskError(f"the bitmask is {getattr(bitmask, 'dtype', type(bitmask).__name__)}; {_wanted(width)}")
    shape = bitmask.shape
    if len(shape) not in (1, 2) or shape[-1] != width:
        raise BitmaskError(f"the bitmask has shape {shape}; {_wanted(width)} (vocabulary of {vocab_size} tokens)")
    try:
        address = writable_address(bitmask)
    except TypeError:
        raise BitmaskError(f"the bitmask is not contiguous or not writeable; {_wanted(width)}") from None
    rows = shape[0] if len(shape) == 2 else 1
    if not 0 <= index < rows:
        raise BitmaskError(f"row {index} is out of range; the bitmask has {rows} rows")
    return address, rows


def _wanted(width: int) -> str:
    return f"wanted a C-contiguous int32 array of shape [batch, {width}]; allocate_token_bitmask makes one"


@lru_cache(1)
def worker_threads() -> ThreadPoolExecutor:
    """Threads for kernels over rows, as many as there are processors."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="structgen-mask")


def in_parts(part: Callable[[int, int], None], rows: int, threads: int) -> None:
    """Call ``part(first, last)`` for all rows, in so many threads at most; each takes what is left, so that a busy
    processor holds up little."""
    threads = min(rows, threads)
    if threads > 1:  # asking for the processors takes longer than a small batch on some systems
        threads = min(os.cpu_count() or 1, threads)
    if threads < 2:
        part(0, rows)
        return
    bounds = np.linspace(0, rows, min(rows, PARTS_PER_THREAD * threads) + 1).astype(int).tolist()
    left = iter(list(pairwise(bounds)))

    def work() -> None:
        for first, last in left:
            part(first, last)

    helping = [worker_threads().submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        begun = [helper for helper in helping if not helper.cancel()]  # what has not begun finds nothing left
        wait(begun)
    for helper in begun:
        helper.result()


def threads_for_logits(rows: int, columns: int) -> int:
    """How many threads pay for a kernel over logits."""
    return rows * columns // LOGITS_PER_THREAD


def check_apart(matchers: Sequence[Matcher | None]) -> None:
    """Refuse one matcher in two rows.

    Raises:
        BitmaskError: says so.
    """
    given = matchers if None not in matchers else [matcher for matcher in matchers if matcher is not None]
    if len(set(map(id, given))) < len(given):
        raise BitmaskError("a matcher occurs twice in the batch; fork it, so that each row has its own")


def fill_next_token_bitmasks(matchers: Sequence[Matcher | None], bitmask: npt.NDArray[np.int32]) -> None:
    """Fill row i of ``bitmask`` for ``matchers[i]``; None leaves its row as it is.

    Rows of JSON Schema grammars are filled in one call without the GIL; large batches use several threads.

    Raises:
        BitmaskError: wrong dtype, shape or layout, or fewer rows than matchers.
    """
    rows = [row for row, matcher in enumerate(matchers) if matcher is not None]
    fill_bitmask_rows([matcher for matcher in matchers if matcher is not None], bitmask, rows)


def fill_bitmask_rows(
    matchers: Sequence[Matcher],
    bitmask: npt.NDArray[np.int32],
    rows: Sequence[int],
) -> None:
    """Fill rows of ``bitmask``, each for its matcher; see `fill_next_token_bitmasks`.

    Args:
        matchers, rows: as many, each once.
        bitmask: mutated.

    Raises:
        BitmaskError: as above.
    """
    check_apart(matchers)

    def part(first: int, last: int) -> None:
        kinds: list[Any] = list(map(type, matchers[first:last]))
        for chosen in numbers_by_key(kinds):
            if len(chosen) == len(matchers):
                kinds[0].fill_all(matchers, bitmask, rows)
                return
            numbers = [first + number for number in chosen]
            members = [matchers[number] for number in numbers]
            kinds[chosen[0]].fill_all(members, bitmask, [rows[number] for number in numbers])

    try:
        in_parts(part, len(matchers), len(matchers) // MASKS_PER_THREAD)
    except AttributeError:
        wrong = [type(one) for one in matchers if not hasattr(one, "fill_all")]
        if not wrong:
            raise
        raise BitmaskError(f"matchers are what grammar.matcher() makes, and there is a {wrong[0].__name__}") from None


def apply_token_bitmask_inplace(logits: Any, bitmask: Any, indices: Any = None) -> None:
    """Set the logits of disallowed tokens to -inf: one call for a batch, where the logits are.

    Args:
        logits: floating numpy array or torch tensor on any device, [V'] or [batch, V']; mutated. Tokens from the mask's
            width on are disallowed.
        bitmask: int32 [rows, words], numpy or torch.
        indices: the rows of ``logits`` to mask, each with the mask row of the same number: a sequence, an array or a
            tensor of integers; None: all.

    Raises:
        BitmaskError: shapes or dtypes that do not fit.
    """
    if _is_on_a_device(logits):
        from structgen.core.engines.apply import apply_bitmask

        apply_bitmask(logits, bitmask, indices)
        return
    mask = _host_bitmask(bitmask)
    batch = logits[None] if getattr(logits, "ndim", 0) == 1 else logits
    host = host_logits(batch)
    rows = _named_rows(indices, host.rows, len(mask))
    _apply(host, host, mask, rows if isinstance(rows, range) else rows.tolist())
    if host.owner is not batch:  # whose rows do not lie side by side
        batch[...] = host.owner


def write_masked(logits: Any, bitmask: npt.NDArray[np.int32], target: Any, indices: Sequence[int]) -> list[int]:
    """Write logits to ``target``, -inf for disallowed tokens; both are in the processor's memory.

    Args:
        logits: floating [batch, V'], numpy or torch.
        bitmask: int32 [batch, words], C-contiguous.
        target: of the same shape and type, or the same object; its adjacent columns lie side by side.
        indices: ascending: the rows that are masked. The others are not written.

    Returns:
        The rows where no allowed token has a logit above -inf.

    Raises:
        BitmaskError: shapes or dtypes that do not fit.
    """
    given = into = host_logits(logits)
    if target is not logits:
        into = host_logits(target)
        if into.owner is not target or (into.rows, into.columns, into.kind) != (given.rows, given.columns, given.kind):
            raise BitmaskError(
                f"the target is {target.dtype} with shape {tuple(target.shape)}; wanted that of the logits"
            )
    if not len(indices):
        return []
    if indices[0] < 0 or indices[-1] >= min(given.rows, len(bitmask)):
        raise BitmaskError(f"indices {list(indices)!r:.200} do not fit {given.rows} by {len(bitmask)}")
    empty = _apply(given, into, bitmask, indices)
    return [row for row, is_empty in zip(indices, empty, strict=True) if is_empty] if 1 in empty else []


def _apply(host: HostLogits, into: HostLogits, mask: npt.NDArray[np.int32], rows: Sequence[int]) -> list[int]:
    """Mask rows of logits into other memory, or the same: which have nothing left."""
    words, start = mask.shape[1], address_of(mask)
    sources, masks = _addresses(host.address, host.stride, rows), _addresses(start, 4 * words, rows)
    targets = sources if into is host else _addresses(into.address, into.stride, rows)
    threads = threads_for_logits(len(rows), host.columns) // MASKED_PER_DRAWN
    few = FEW_FORBIDDEN if len(rows) * host.stride <= CACHED_BYTES else 0
    if threads < 2:
        return calls.apply(sources, masks, targets, host.columns, words, host.kind, few)
    empty = [0] * len(rows)

    def part(first: int, last: int) -> None:
        these = slice(first, last)
        empty[these] = calls.apply(sources[these], masks[these], targets[these], host.columns, words, host.kind, few)

    in_parts(part, len(rows), threads)
    return empty


def _addresses(start: int, stride: int, rows: Sequence[int]) -> Sequence[int]:
    """Where rows lie."""
    if isinstance(rows, range) and rows.step == 1 and stride:
        return range(start + stride * rows.start, start + stride * rows.stop, stride)
    return [start + stride * row for row in rows]


def _named_rows(indices: Any, rows: int, masks: int) -> range | npt.NDArray[np.int64]:
    """The rows to mask, all if none are named.

    Raises:
        BitmaskError: there are none such in the logits or in the bitmask.
    """
    if indices is None and rows <= masks:
        return range(rows)
    named = np.arange(rows) if indices is None else np.asarray(indices.cpu() if hasattr(indices, "cpu") else indices)
    named = named.astype(np.int64) if named.size == 0 else named
    fits = named.ndim == 1 and np.issubdtype(named.dtype, np.integer)
    if not fits or (named.size and not 0 <= named.min() <= named.max() < min(rows, masks)):
        raise BitmaskError(f"rows {named.tolist()!r:.200} do not fit {rows} rows of logits, {masks} mask rows")
    return named


def _is_on_a_device(logits: Any) -> bool:
    """Whether they are a torch tensor that the processor does not see."""
    device = getattr(logits, "device", None)
    return device is not None and getattr(device, "type", "cpu") != "cpu"


def _host_bitmask(bitmask: Any) -> npt.NDArray[np.int32]:
    """The bitmask as a C-contiguous numpy array [rows, words]."""
    given = bitmask if isinstance(bitmask, np.ndarray) else np.asarray(getattr(bitmask, "cpu", lambda: bitmask)())
    mask = np.ascontiguousarray(np.atleast_2d(given))
    if mask.dtype != np.int32 or mask.ndim != 2:
        raise BitmaskError(f"the bitmask is {given.dtype} with shape {given.shape}; wanted int32 [batch, words]")
    return mask
