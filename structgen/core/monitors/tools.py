"""Monitors that ask a slow tool, in a process of its own, and do not wait for it for long."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from typing import Any

from structgen.core.bounded_cache import BoundedCache
from structgen.core.monitors.protocol import ToolFailure
from structgen.core.workers import Limits, LostWorker, Server, Watch, Worker, WorkerError
from structgen.errors import ConstraintError, OptionsError

MAX_ANSWERS = 1024


class ToolMonitor:
    """A monitor whose answers come from a process, which is started when it is first asked.

    An answer that takes longer than ``timeout`` is no restriction (a `TimeoutError`), nor is one that the tool fails
    over (`ToolFailure`); a process that was late or lost is replaced. Texts that it was asked about are remembered. May
    be used in several threads; they are answered one after the other.

    Attributes:
        triggers, is_slow: see `structgen.core.monitors.protocol.TriggerMonitor`.

    Args:
        make: builds what is in the process: a class or function of a module. It is called with texts and answers with
            names, None for no restriction, or an exception that it has caught.
        setting: what ``make`` is given, with a watch; must pickle.
        timeout: seconds.

    Raises:
        OptionsError: a ``timeout`` that is none; a ``make`` or ``setting`` that cannot be sent to a process.
    """

    is_slow = True

    def __init__(
        self,
        make: Callable[[Any, Watch], Server],
        setting: Any = None,
        *,
        timeout: float = 2.0,
        triggers: tuple[str, ...] = (".",),
    ) -> None:
        if not isinstance(timeout, (int, float)) or isinstance(timeout, bool) or not timeout > 0:
            raise OptionsError(f"timeout is seconds above 0, not {timeout!r:.60}", option="timeout", value=timeout)
        if not callable(make):
            raise OptionsError(f"make is a class or function of a module, not {make!r:.60}", option="make", value=make)
        try:
            pickle.dumps((make, setting))
        except Exception as error:  # of whatever class they are
            raise OptionsError(
                f"make and setting are sent to a process, and these cannot be: {error}; make is a class or function of "
                "a module, setting a value that pickles",
                option="make",
            ) from error
        self.timeout, self.triggers = float(timeout), triggers
        self._make, self._setting = make, setting
        self._lock = threading.Lock()
        self._worker: Worker | None = None
        self._answers: BoundedCache[str, tuple[tuple[str, ...] | None]] = BoundedCache(MAX_ANSWERS)

    def suggest(self, text: str) -> tuple[str, ...] | None:
        """See `structgen.core.monitors.protocol.Monitor`.

        Raises:
            TimeoutError: it takes too long. ToolFailure: the tool failed, or its process was lost.
            ConstraintError: the process did not start.
        """
        if not self.is_asked(text):
            return None
        with self._lock:
            answer = self._answers.get(text) or self._answers.put(text, (self._asked(text),))
            return answer[0]

    def is_asked(self, text: str) -> bool:
        """Whether the tool has something to say after a text: what a look at the text tells."""
        return True

    def close(self) -> None:
        """End the process; it is started again when it is needed."""
        with self._lock:
            if self._worker is not None:
                self._worker.close()
            self._worker = None

    def _started(self) -> Worker:
        """The process, up for the first time: where that fails, the tool would never answer."""
        try:
            return Worker(self._make, self._setting, Limits(self.timeout))
        except WorkerError as error:
            raise ConstraintError(
                f"the process of a {type(self).__name__} did not start: {error}. It imports the script that Python "
                'runs; put what the script does below `if __name__ == "__main__":`'
            ) from error

    def _asked(self, text: str) -> tuple[str, ...] | None:
        worker = self._worker = self._worker or self._started()
        try:
            answer = worker.run(text)
        except LostWorker as error:
            if error.outcome == "timeout":
                raise TimeoutError(f"no answer within {self.timeout:g} s") from error
            raise ToolFailure(str(error)) from error
        except WorkerError as error:
            raise ToolFailure(str(error)) from error
        if isinstance(answer, Exception):
            raise ToolFailure(f"{type(answer).__name__}: {answer}") from answer
        return None if answer is None else (answer,) if isinstance(answer, str) else tuple(answer)
