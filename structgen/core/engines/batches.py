"""Steps of many matchers at once, one for each row of a batch; `fill_next_token_bitmasks` writes their masks."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import MASKS_PER_THREAD, check_apart, check_row, in_parts, numbers_by_key
from structgen.core.engines.protocols import Matcher
from structgen.errors import MatcherStateError, StructgenError, TokenError


def batch_accept_token(matchers: Sequence[Matcher | None], token_ids: Any) -> list[bool]:
    """Advance each matcher by its token, and say which took it; one that did not is as before. None takes everything.

    ``token_ids`` are integers[N] for N matchers: an array, a sequence or a tensor on the host.

    Raises:
        TokenError: an id outside a vocabulary, or another number of ids than of matchers; no matcher has moved.
    """
    ids = _checked_tokens(matchers, token_ids, _sizes(matchers))
    return [m is None or m.accept_token(token_id) for m, token_id in zip(matchers, ids, strict=True)]


def batch_advance_and_fill(
    matchers: Sequence[Matcher | None], token_ids: Any, bitmask: npt.NDArray[np.int32]
) -> list[bool]:
    """`Matcher.advance_and_fill` for each matcher, with its token and the row of its number; says which took it.

    One that did not is as before, and so is its row. None takes everything, and its row stays. Matchers of JSON Schema
    grammars are stepped in one call without the GIL; large batches use several threads.

    Args:
        matchers: N of them, each once.
        token_ids: integers[N]: an array, a sequence or a tensor on the host.
        bitmask: int32[N or more, ceil(V / 32)], C-contiguous; mutated.

    Raises:
        TokenError: an id outside a vocabulary, or another number of ids than of matchers.
        BitmaskError: wrong dtype, shape or layout, fewer rows than matchers, or one matcher twice.
            After either, no matcher has moved.
    """
    sizes = _sizes(matchers)
    ids = _checked_tokens(matchers, token_ids, sizes)
    places = [index for index, matcher in enumerate(matchers) if matcher is not None]
    check_apart(matchers)
    for size in sizes:
        check_row(bitmask, places[-1], size)
    taken = [True] * len(ids)

    def part(first: int, last: int) -> None:
        kinds: list[Any] = [type(matchers[index]) for index in places[first:last]]
        for chosen in numbers_by_key(kinds):
            if len(chosen) == len(ids):
                taken[:] = kinds[0].advance_and_fill_all(matchers, ids, bitmask, places)
                return
            rows = [places[first + number] for number in chosen]
            members: list[Any] = [matchers[row] for row in rows]
            tokens = [ids[row] for row in rows]
            steps = kinds[chosen[0]].advance_and_fill_all(members, tokens, bitmask, rows)
            for row, step in zip(rows, steps, strict=True):
                taken[row] = step

    in_parts(part, len(places), len(places) // MASKS_PER_THREAD)
    return taken


def batch_accept_bytes(matchers: Sequence[Matcher | None], texts: Sequence[bytes]) -> list[bool]:
    """Advance each matcher by its text as one step, and say which took it; one that did not is as before.

    None takes everything.

    Raises:
        TokenError: another number of texts than of matchers; no matcher has moved.
    """
    if len(texts) != len(matchers):
        raise TokenError(f"got {len(texts)} texts for {len(matchers)} matchers; wanted one each")
    return [m is None or m.accept_bytes(text) for m, text in zip(matchers, texts, strict=True)]


def batch_rollback(matchers: Sequence[Matcher | None], steps: Any = 1) -> None:
    """Undo the last steps of each matcher: integers[N] for N matchers, or one integer for all. None stays.

    Raises:
        MatcherStateError: another number of counts than of matchers or a negative one (no matcher has moved); or a
            matcher accepted fewer (those before it in the batch have moved, it and those after it have not).
    """
    each = [steps] * len(matchers) if isinstance(steps, Integral) else steps
    counts = host_integers(each, "steps", MatcherStateError)
    if len(counts) != len(matchers) or min(counts, default=0) < 0:
        raise MatcherStateError(f"cannot roll back {counts} steps of {len(matchers)} matchers; wanted one count each")
    for matcher, count in zip(matchers, counts, strict=True):
        if matcher is not None:
            matcher.rollback(count)


def _sizes(matchers: Sequence[Matcher | None]) -> set[int]:
    """The sizes of the matchers' vocabularies."""
    grammars = {id(grammar): grammar for grammar in [m.grammar for m in matchers if m is not None]}
    return {grammar.vocabulary.size for grammar in grammars.values()}


def _checked_tokens(matchers: Sequence[Matcher | None], token_ids: Any, sizes: set[int]) -> list[int]:
    """A token for each matcher, of its vocabulary; these have ``sizes``."""
    are_ids = type(token_ids) is list and set(map(type, token_ids)) == {int}  # mostly, and then in a tenth of the time
    ids: list[int] = token_ids if are_ids else host_integers(token_ids, "token_ids", TokenError)
    if len(ids) != len(matchers):
        raise TokenError(f"got {len(ids)} token ids for {len(matchers)} matchers; wanted one each")
    if not ids or (min(ids) >= 0 and max(ids) < min(sizes, default=0)):
        return ids
    for matcher, token_id in zip(matchers, ids, strict=True):
        if matcher is not None and not 0 <= token_id < matcher.grammar.vocabulary.size:
            raise TokenError.out_of_range(token_id, matcher.grammar.vocabulary.size)
    return ids


def host_integers(values: Any, name: str, error: type[StructgenError]) -> list[int]:
    """A one-dimensional array, sequence or tensor of integers as a list; anything else raises ``error``."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as cause:  # ragged, or a tensor on a device
        raise error(f"{name} is no array on the host ({cause}); wanted one-dimensional integers") from cause
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise error(f"{name} is {array.dtype} with shape {array.shape}; wanted one-dimensional integers")
    integers: list[int] = array.tolist()
    return integers
