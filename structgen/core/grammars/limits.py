"""What bounds compiling a grammar or an expression: its time, whatever loops it sits in, and how deep it is nested.

Sizes are bounded where things grow, by numbers that do not depend on the machine. Time is the last resort: Lark's
loader and its construction of parse tables are not ours, and exponential in more ways than can be foreseen.
"""

from __future__ import annotations

import copy
import ctypes
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TypeVar

from structgen.errors import GrammarError, GrammarTooComplexError, TooComplexError

MAX_SECONDS = 8
"""CPU seconds that reading a grammar, or making its automata, may take."""
MAX_TEXT = 2_000_000
"""Characters of a grammar's text."""
MAX_STATES = 200_000
"""Automaton states of all terminals together; each takes about a kilobyte."""

Refusal = Callable[[str, str, int], Exception]
T = TypeVar("T")
_WATCH_EVERY = 0.05
_CORE = Path(__file__).parents[1]
# Code that may be interrupted anywhere: it computes, takes no locks, and calls no kernels (which would return as if an
# error of theirs had been lost). Lark's is, too.
_INTERRUPTIBLE = (
    f"{_CORE / 'grammars'}{os.sep}",
    *(
        str(_CORE / "regex" / f"{name}.py")
        for name in ("charset", "ecma_parser", "free_text", "lookaround", "nfa", "substrings")
    ),
    *(str(_CORE / "engines" / "lalr" / name) for name in ("tables.py", "terminals.py")),
    f"{Path(re.__file__).parent}{os.sep}",
    copy.__file__,
)


class _Overtime(BaseException):
    """Raised inside what takes too long. Not an Exception, so that nobody on the way takes it for theirs."""


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
    """Run a block that computes and takes no locks; what is too much for it raises what ``refuse`` makes.

    That is: ``MAX_SECONDS`` of this thread's CPU time (where the system cannot tell, seconds), the recursion limit, the
    memory that can be had, and automata that are too large. Blocks inside others are part of these.
    """
    if getattr(_limited, "here", False):
        yield
        return
    _limited.here = True
    watch = _Watch(threading.get_ident())
    try:
        with watch:
            yield
    except _Overtime:
        raise refuse(f"compiling takes more than {MAX_SECONDS} seconds", "seconds", MAX_SECONDS) from None
    except RecursionError:
        raise refuse("nested too deeply", "recursion limit", sys.getrecursionlimit()) from None
    except MemoryError:
        raise refuse("compiling needs more memory than there is", "memory", 0) from None
    except TooComplexError as error:
        raise refuse(error.message, error.budget or "size", error.limit) from None
    finally:
        _limited.here = False


_limited = threading.local()


class _Watch:
    """Looks at a thread from another one, and interrupts it when its time is up.

    An exception that another thread sets is raised where the thread goes on. So it is only set while the innermost
    function is one that may be interrupted: no lock is left taken and nothing half imported.
    """

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._fired = False
        self._now = _clock_of(thread)
        self._end = self._now() + MAX_SECONDS

    def __enter__(self) -> None:
        threading.Thread(target=self._watch, name="structgen-limits", daemon=True).start()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._over.set()
        with self._lock:
            if self._fired and kind is not _Overtime:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), None)

    def _watch(self) -> None:
        while not self._over.wait(_WATCH_EVERY):
            if self._now() < self._end:
                continue
            with self._lock:
                frame = sys._current_frames().get(self._thread)
                if frame is None or self._over.is_set():
                    return
                if self._may_interrupt(frame):
                    self._fired = True
                    error = ctypes.py_object(_Overtime)
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread), error)
                    return

    def _may_interrupt(self, frame: FrameType) -> bool:
        name = frame.f_code.co_filename
        if frame.f_globals.get("__name__", "").partition(".")[0] == "lark":
            return True
        return name != __file__ and name.startswith(_INTERRUPTIBLE)


def _clock_of(thread: int) -> Callable[[], float]:
    """The CPU time of a thread, to be asked from any; a clock on the wall where the system does not tell it."""
    if not hasattr(time, "pthread_getcpuclockid"):
        return time.monotonic
    clock = time.pthread_getcpuclockid(thread)
    return lambda: time.clock_gettime(clock)
