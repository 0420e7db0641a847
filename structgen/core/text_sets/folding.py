"""Documents as they would be typed: line breaks, hyphens at line ends and typographic signs folded, with a map back.

Letters and digits stay: what is folded is white space, hyphens, quotation marks, and signs for several letters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from structgen.errors import OptionsError

Fold = Literal["spaces", "hyphens", "soft-hyphens", "quotes", "ligatures"]
FOLDS: tuple[Fold, ...] = get_args(Fold)
"""All rules; `RULES` says what they do."""
_QUOTES = {**dict.fromkeys("‘’‚‛", "'"), **dict.fromkeys("“”„‟", '"')}
_LIGATURES = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬆ": "st"}

# By rule, in the order in which they are tried: an expression, and what takes the place of its match.
RULES: dict[Fold, tuple[str, Callable[[str], str]]] = {
    "hyphens": (r"(?<=[^\W\d_])[-\u2010\u00ad][ \t]*(?:\r\n?|\n)[ \t]*(?=[^\W\d_])", lambda text: ""),
    "soft-hyphens": (r"\u00ad", lambda text: ""),
    "spaces": (r"\s+", lambda text: " "),
    "quotes": (f"[{''.join(_QUOTES)}]", _QUOTES.__getitem__),
    "ligatures": (f"[{''.join(_LIGATURES)}]", _LIGATURES.__getitem__),
}


class Folded(NamedTuple):
    """A text that was folded.

    Attributes:
        text: what is left of it.
        origin: int32[2, code points of ``text``], where what each stands for begins and ends in the source.
    """

    text: str
    origin: npt.NDArray[np.int32]


def checked_folds(folds: Iterable[str] | bool) -> tuple[Fold, ...]:
    """The rules, each once, in one order; True: all of them.

    Raises:
        OptionsError: there is no such rule.
    """
    if isinstance(folds, bool):
        return FOLDS if folds else ()
    if not isinstance(folds, Iterable):
        raise OptionsError(f"fold must be a list of rules, or True, not {folds!r:.100}", option="fold", value=folds)
    given = [folds] if isinstance(folds, str) else list(folds)
    wrong = next((fold for fold in given if fold not in FOLDS), None)
    if wrong is not None:
        raise OptionsError(f"fold must be of {', '.join(FOLDS)}, not {wrong!r:.100}", option="fold", value=wrong)
    return tuple(fold for fold in FOLDS if fold in given)


def folded(text: str, folds: tuple[Fold, ...]) -> Folded:
    """A text by these rules. Linear."""
    pieces: list[str] = []
    origins: list[npt.NDArray[np.int32]] = []
    done = 0
    for begin, end, short in _changes(text, folds):
        pieces += (text[done:begin], short)
        plain = np.arange(done, begin, dtype=np.int32)
        origins += (np.stack([plain, plain + 1]), np.full((2, len(short)), [[begin], [end]], np.int32))
        done = end
    plain = np.arange(done, len(text), dtype=np.int32)
    return Folded("".join([*pieces, text[done:]]), np.concatenate([*origins, np.stack([plain, plain + 1])], axis=1))


def _changes(text: str, folds: tuple[Fold, ...]) -> Iterable[tuple[int, int, str]]:
    """What is folded: begin, end, what stands in its place."""
    chosen = [(name, *rule) for name, rule in RULES.items() if name in folds]
    if "soft-hyphens" in folds:  # which part no run of blanks
        chosen = [(name, expression.replace(r"\s+", r"\s[\s\u00ad]*"), short) for name, expression, short in chosen]
    if not chosen:
        return
    joint = re.compile("|".join(f"({expression})" for _, expression, _ in chosen))
    for match in joint.finditer(text):
        assert match.lastindex is not None
        short = chosen[match.lastindex - 1][2](match.group())
        if short != match.group():
            yield match.start(), match.end(), short
