"""Tells the user, once, that kernels are being compiled: the only long wait of a fresh installation.

numba compiles when a kernel's module is imported and keeps the result beside the module (``__pycache__``) or, where
that cannot be written to, in the user's cache folder. Later imports load it and say nothing.
"""

from __future__ import annotations

import sys
from typing import Any

from numba.core import event

_COMPILE = "numba:compile"  # numba's event of a real compilation; a load from the cache does not trigger it


class _Announcement(event.Listener):
    """Prints one line on standard error when the first of our kernels is compiled."""

    def on_start(self, event: Any) -> None:
        module = getattr(getattr(event.data["dispatcher"], "py_func", None), "__module__", None) or ""
        if module.startswith("structgen."):
            stop_listening()
            print("structgen: compiling kernels, once per installation (about a minute) ...", file=sys.stderr)

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


_announcement = _Announcement()
event.register(_COMPILE, _announcement)


def stop_listening() -> None:
    """Say nothing from now on."""
    event.unregister(_COMPILE, _announcement)
