"""Steps of many matchers at once, one for each row of a batch; `fill_next_token_bitmasks` writes their masks."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from structgen.engines.protocols import Matcher
from structgen.errors import MatcherStateError, StructgenError, TokenError


def batch_accept_token(matchers: Sequence[Matcher | None], token_ids: Any) -> list[bool]:
    """Advance each matcher by its token, and say which took it; one that did not is as before. None takes everything.

    ``token_ids`` are integers[N] for N matchers: an array, a sequence or a tensor on the host.

    Raises:
        TokenError: an id outside a vocabulary, or another number of ids than of matchers; no matcher has moved.
    """
    found = host_integers(token_ids, "token_ids", TokenError)
    if len(found) != len(matchers):
        raise TokenError(f"got {len(found)} token ids for {len(matchers)} matchers; wanted one each")
    pairs = list(zip(matchers, found, strict=True))
    for matcher, token_id in pairs:
        if matcher is not None and not 0 <= token_id < matcher.grammar.vocabulary.size:
            raise TokenError.out_of_range(token_id, matcher.grammar.vocabulary.size)
    return [matcher is None or matcher.accept_token(token_id) for matcher, token_id in pairs]


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
            matcher accepted fewer (those before it in the batch have moved, it and those behind it have not).
    """
    each = [steps] * len(matchers) if isinstance(steps, Integral) else steps
    counts = host_integers(each, "steps", MatcherStateError)
    if len(counts) != len(matchers) or min(counts, default=0) < 0:
        raise MatcherStateError(f"cannot roll back {counts} steps of {len(matchers)} matchers; wanted one count each")
    for matcher, count in zip(matchers, counts, strict=True):
        if matcher is not None:
            matcher.rollback(count)


def host_integers(values: Any, name: str, error: type[StructgenError]) -> list[int]:
    """A one-dimensional array, sequence or tensor of integers as a list; anything else raises ``error``."""
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as cause:  # ragged, or a tensor on a device
        raise error(f"{name} is no array on the host ({cause}); wanted one-dimensional integers") from cause
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise error(f"{name} is {array.dtype} with shape {array.shape}; wanted one-dimensional integers")
    found: list[int] = array.tolist()
    return found
