"""The server's log: one JSON object a line, whoever writes it; what comes again and again is logged once a minute."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from collections.abc import Mapping
from typing import Any

from structgen.progress import CONSTRAINT_LOG, ProgressEvent

LOG = logging.getLogger("structgen.server")
RARE_SECONDS = 60.0


class LogLines(logging.Formatter):
    """Messages that are JSON objects as they are; others, and what was raised, as the fields of one."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        text = record.getMessage()
        if not (record.exc_info or record.stack_info) and _is_object(text):
            return text
        fields = {"event": "log", "level": record.levelname.lower(), "logger": record.name, "message": text}
        if record.exc_info:
            fields["error"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stack"] = record.stack_info
        return json.dumps(fields)


def _is_object(text: str) -> bool:
    if not text.startswith("{") or "\n" in text:
        return False
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def log_to_stderr() -> None:
    """Have all that the process logs, warnings of Python included, on standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines())
    logging.getLogger().addHandler(handler)
    logging.captureWarnings(True)
    mute_constraints()
    for name, level in (("structgen", logging.INFO), ("uvicorn.error", logging.WARNING)):
        logging.getLogger(name).setLevel(level)
    logging.getLogger("structgen.generation.models.llamacpp").setLevel(
        logging.ERROR
    )  # its warnings are about what we ask for


def mute_constraints() -> None:
    """Have nothing logged that holds text of constraints: answers say it to who asked."""
    CONSTRAINT_LOG.setLevel(logging.CRITICAL)


def log_event(event: str, **fields: Any) -> None:
    """A line about the server."""
    LOG.info(json.dumps({"event": event, **fields}))


class LogWaits:
    """A ``progress`` callback: a line when something that takes long is waited for, and one when it is over."""

    def __init__(self) -> None:
        self._waits = set[str]()

    def __call__(self, event: ProgressEvent) -> None:
        """Tell of it."""
        if event.is_over or event.what not in self._waits:
            log_event("over" if event.is_over else "waiting", message=event.what, seconds=round(event.seconds, 1))
        (self._waits.discard if event.is_over else self._waits.add)(event.what)


class RareLog:
    """A log in which what happens again and again has one line a minute."""

    def __init__(self) -> None:
        self._logged: dict[str, tuple[float, int]] = {}  # when, and how often since

    def warn(self, event: str, message: str) -> None:
        """Log an event, with how often it happened since it was logged."""
        since, count = self._logged.get(event, (-RARE_SECONDS, 0))
        now = time.monotonic()
        if now - since < RARE_SECONDS:
            self._logged[event] = since, count + 1
            return
        self._logged[event] = now, 0
        LOG.warning(json.dumps({"event": event, "message": message, "times": count + 1}))


def tame_loop(loop: asyncio.AbstractEventLoop) -> None:
    """Have an event loop that can open no more files say so once a minute, not for each try."""
    log, former = RareLog(), loop.get_exception_handler()

    def handle(loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        if str(context.get("message", "")).startswith("socket.accept() out of system resource"):
            log.warn("out_of_files", "no more connections can be accepted: too many open files (ulimit -n)")
        elif former is not None:
            former(loop, dict(context))
        else:
            loop.default_exception_handler(dict(context))

    loop.set_exception_handler(handle)
