"""What a grammar is read from, text or a file, and what bounds compiling it: time, whatever loops it sits in, nesting.

A string is text and a ``Path`` is a file, here and nowhere else. Strings of requests and of lines in a file are a
stranger's; whatever they look like, they name no file, and they import from Lark's library only. A program may name a
file by a string (`named_file`); that is decided where it calls the library, and never of a stranger's text.

Sizes are bounded where things grow, by numbers that do not depend on the machine; so is what Lark's loader is given
(`structgen.core.grammars.lark_size`), as it cannot be stopped. Time is the last resort: each long loop of ours asks
for it (`structgen.core.regex.steps.check_time`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from structgen.core.regex.steps import OutOfTime, is_time_limited, time_limit
from structgen.errors import ConstraintError, GrammarError, GrammarTooComplexError, TooComplexError

MAX_SECONDS = 8
"""CPU seconds that reading a grammar, or making its automata, may take."""
MAX_TEXT = 2_000_000
"""Characters of a grammar's text."""
MAX_STATES = 200_000
"""Automaton states of all terminals together; each takes about a kilobyte."""

Refusal = Callable[[str, str, int], Exception]


def grammar_refusal(text: str, line: int = 0, column: int = 0) -> Refusal:
    """Makes errors for a grammar, of what is too much, its budget and its limit."""
    return lambda message, budget, limit: GrammarTooComplexError(
        message, budget=budget, limit=limit, line=line, column=column, source=text
    )


def check_text(text: str) -> None:
    """Raises GrammarTooComplexError for a text that is too long, GrammarError for one that is no Unicode text."""
    if len(text) > MAX_TEXT:
        raise GrammarTooComplexError("the grammar's text is too long", budget="characters", limit=MAX_TEXT)
    lone = re.search("[\ud800-\udfff]", text)
    if lone is not None:
        line = text.count("\n", 0, lone.start()) + 1
        column = lone.start() - text.rfind("\n", 0, lone.start())
        raise GrammarError("half of a surrogate pair, which is not a character", line=line, column=column)


@contextmanager
def limited(refuse: Refusal) -> Iterator[None]:
    """Run a block that compiles; what is too much for it raises what ``refuse`` makes.

    That is: ``MAX_SECONDS`` of this thread's processor time, the recursion limit, the memory that can be had, and
    automata that are too large. Blocks inside others are part of these.
    """
    if is_time_limited():
        yield
        return
    try:
        with time_limit(MAX_SECONDS):
            yield
    except OutOfTime:
        raise refuse(f"compiling takes more than {MAX_SECONDS} seconds", "seconds", MAX_SECONDS) from None
    except RecursionError:
        raise refuse("nested too deeply", "recursion limit", sys.getrecursionlimit()) from None
    except MemoryError:
        raise refuse("compiling needs more memory than there is", "memory", 0) from None
    except TooComplexError as error:
        raise refuse(error.message, error.budget or "size", error.limit) from None


SUFFIX = ".lark"


def load_text(source: str | Path) -> tuple[str, Path | None]:
    """The text of a source, and its file; None: it is none.

    Raises:
        ConstraintError: neither text nor path, or the file cannot be read.
    """
    if isinstance(source, str):
        return source, None
    if not isinstance(source, Path):
        raise ConstraintError(f"a grammar is text or a Path, not {type(source).__name__}")
    try:
        with source.open(encoding="utf-8") as file:
            return file.read(MAX_TEXT + 1), source  # what is longer is refused, and may have no end
    except UnicodeDecodeError as error:
        raise ConstraintError(
            f"the grammar {str(source)!r} is not UTF-8: {error.reason} at byte {error.start}. Convert: iconv -t UTF-8"
        ) from error
    except OSError as error:
        raise ConstraintError(f"cannot read the grammar {str(source)!r}: {error}") from error


def named_file(source: str | Path) -> str | Path:
    """What a program gives: a string of one line that ends in ``.lark`` names a file, and becomes a ``Path``.

    For the doors of the Python API alone (``lark``, ``compile_lark``).
    """
    if isinstance(source, str) and "\n" not in source.strip() and source.strip().endswith(SUFFIX):
        return Path(source.strip())
    return source
