"""Consoles; what a command waits for, shown on standard error."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from rich.console import Console
from rich.errors import LiveError
from rich.markup import escape

from structgen.progress import ProgressEvent

if TYPE_CHECKING:
    from rich.status import Status

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


class WaitLine:
    """A ``progress`` callback: a spinner with the seconds on a terminal, else one line for each thing waited for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # events come from several threads
        self._waits: dict[str, ProgressEvent] = {}  # what goes on, the latest last
        self._spinner: Status | None = None

    def __call__(self, event: ProgressEvent) -> None:
        """Show it."""
        with self._lock:
            is_new = event.what not in self._waits
            if event.is_over:
                self._waits.pop(event.what, None)
            else:
                self._waits[event.what] = event
            if err.is_terminal and self._spin():
                if event.is_over:
                    err.print(f"[dim]{escape(str(event))}[/]", soft_wrap=True)
            elif is_new and not event.is_over:
                err.print(str(event), markup=False, soft_wrap=True)

    def _spin(self) -> bool:
        """Show what goes on, if anything does. False: something else is drawn on the terminal."""
        if not self._waits:
            if self._spinner is not None:
                self._spinner.stop()
                self._spinner = None
            return True
        latest = next(reversed(self._waits.values()))
        shown = f"[dim]{escape(str(latest))} {latest.seconds:.0f} s[/]"
        if self._spinner is not None:
            self._spinner.update(shown)
            return True
        from rich.status import Status  # of use where something is waited for

        spinner = Status(shown, console=err)
        try:
            spinner.start()
        except LiveError:  # a bar: rows are being written
            return False
        self._spinner = spinner
        return True
