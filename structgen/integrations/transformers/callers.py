"""Who calls a logits processor: whether its scores may be masked where they lie."""

from __future__ import annotations

import sys
from functools import lru_cache
from types import CodeType
from typing import Any

# transformers' loops that keep the model's logits, if they were asked to, in a local of this name; else it is None.
LOOPS, KEPT_LOGITS = ("_sample", "_beam_search", "_assisted_decoding"), "raw_logits"


def owns_its_scores(depth: int) -> bool:
    """Whether the caller's caller is a loop of transformers that hands over scores which nobody looks at again.

    Anything else (an older version, a list that is called by itself) is not known, and so is no.

    Args:
        depth: frames from this function to the processor's ``__call__``.
    """
    utils = sys.modules.get("transformers.generation.utils")
    if utils is None:
        return False
    frame = sys._getframe(depth + 1)  # of transformers' list of processors
    loop = frame.f_back
    if loop is None or (frame.f_code, loop.f_code) not in _known(utils):
        return False
    names = loop.f_locals
    keeps = names.get(KEPT_LOGITS, ()) is not None
    if isinstance(
        names, dict
    ):  # Python 3.12 and older: a copy, which would hold the model's outputs until the next look
        names.clear()
    return not keeps


@lru_cache(1)
def _known(utils: Any) -> frozenset[tuple[CodeType, CodeType]]:
    """The list of processors and each loop, as code."""
    try:
        loops = [getattr(utils.GenerationMixin, name).__code__ for name in LOOPS]
        return frozenset((utils.LogitsProcessorList.__call__.__code__, loop) for loop in loops)
    except AttributeError:
        return frozenset()
