"""What a monitor is: a function of the text so far that says which names may come next."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeAlias, runtime_checkable

from structgen.core.text_sets.names import NameSet
from structgen.errors import GenerationError

COUNTS = ("empty_suggestions", "monitor_timeouts", "monitor_failures")
Suggestion: TypeAlias = "NameSet | Iterable[str] | None"
"""Names that may come; none at all: nothing may; None: whatever the constraint allows."""


class ToolFailure(Exception):
    """The tool that a monitor asks has failed: nothing is said of what comes after this text."""


@runtime_checkable
class Monitor(Protocol):
    """Says which names may come after a text. A **pure function**: the same text has the same answer, always.

    So going back, forks and drafts cost nothing. An exception becomes a `GenerationError`; a `TimeoutError` or a
    `ToolFailure` is no restriction, counted in ``monitor_timeouts`` and ``monitor_failures`` of the matcher's
    statistics.
    """

    def suggest(self, text: str) -> Suggestion:
        """The names that may come right after a text."""
        ...


@runtime_checkable
class TerminalMonitor(Monitor, Protocol):
    """A monitor of a grammar's terminal: what it suggests are some of its names.

    Attributes:
        names: all names that it may ever suggest. Others that it suggests are left out.
    """

    @property
    def names(self) -> NameSet:
        """See the class."""
        ...


@runtime_checkable
class TriggerMonitor(Monitor, Protocol):
    """A monitor of names wherever certain texts have come; see ``monitored``.

    Attributes:
        triggers: the texts after which it is asked, such as ``(".",)``.

    If it has an attribute ``is_slow``, which is true, a generator asks it about what was drawn only, and draws again
    where its answer refuses that.
    """

    @property
    def triggers(self) -> tuple[str, ...]:
        """See the class."""
        ...


def asked(monitor: Monitor, text: bytes, stats: dict[str, int]) -> frozenset[str] | NameSet | None:
    """What a monitor suggests after a text. A character that is cut is left out of it.

    Raises:
        GenerationError: the monitor raised, or answered with something that is no names.
    """
    shown = text.decode(errors="ignore")
    try:
        answer = monitor.suggest(shown)
        if answer is None or isinstance(answer, NameSet):
            return answer
        names = frozenset([answer] if isinstance(answer, str) else answer)
        if not all(isinstance(name, str) for name in names):
            raise TypeError("it suggests what is no text")
    except (TimeoutError, ToolFailure) as error:
        stats["monitor_timeouts" if isinstance(error, TimeoutError) else "monitor_failures"] += 1
        return None
    except Exception as error:
        raise GenerationError(
            f"the monitor {type(monitor).__name__} failed after the text {shown[-80:]!r}: "
            f"{type(error).__name__}: {error}",
            text=shown,
        ) from error
    return names


def new_stats() -> dict[str, int]:
    """What is counted of monitors: answers that left nothing and were put aside, that came too late, that failed."""
    return dict.fromkeys(COUNTS, 0)
