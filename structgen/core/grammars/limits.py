"""What bounds compiling a grammar or an expression: its time, whatever loops it sits in, and how deep it is nested.

Sizes are bounded where things grow, by numbers that do not depend on the machine; so is what Lark's loader is given
(`structgen.core.grammars.lark_size`), as it cannot be stopped. Time is the last resort: each long loop of ours asks
for it (`structgen.core.regex.steps.check_time`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from structgen.core.regex.steps import OutOfTime, is_time_limited, time_limit
from structgen.errors import GrammarError, GrammarTooComplexError, TooComplexError

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
        raise GrammarError("half of a surrogate pair, which no text can have", line=line, column=column)


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
