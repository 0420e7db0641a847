"""Every line of the server's log is one JSON object; what comes again and again has one a minute."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
import os
import threading
from typing import Any

import pytest

from structgen.progress import ProgressEvent
from structgen.server.logs import LogLines, LogWaits, RareLog, tame_loop


def line_of(message: str, *arguments: Any, error: BaseException | None = None) -> dict[str, Any]:
    raised = None if error is None else (type(error), error, error.__traceback__)
    line = LogLines().format(logging.LogRecord("x.y", logging.WARNING, "", 0, message, arguments, raised))
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


@pytest.mark.parametrize("text", ["plain", 'a "quoted"\nline', "{no json", "{} and more", "[1]", "\ud800"])
def test_what_is_no_object_becomes_one(text: str) -> None:
    assert line_of("%s", text) == {"event": "log", "level": "warning", "logger": "x.y", "message": text}


def test_objects_stay_as_they_are() -> None:
    assert line_of('{"id": "a", "status": 200}') == {"id": "a", "status": 200}


def test_errors_are_a_field() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError as error:
        found = line_of('{"id": 1}', error=error)
    assert found["message"] == '{"id": 1}' and found["error"].startswith("Traceback") and "two\nlines" in found["error"]


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [json.loads(record.message) for record in caplog.records]


def test_waits_are_told_at_their_beginning_and_end(caplog: pytest.LogCaptureFixture) -> None:
    tell = LogWaits()
    with caplog.at_level(logging.INFO, "structgen.server"):
        for seconds, is_over in ((1.0, False), (2.0, False), (3.0, True)):
            tell(ProgressEvent("loading", 0, None, seconds, is_over))
    assert [(line["event"], line["seconds"]) for line in lines(caplog)] == [("waiting", 1.0), ("over", 3.0)]


def test_what_happens_again_and_again_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    log = RareLog()
    threads = [threading.Thread(target=log.warn, args=("x", "y")) for _ in range(100)]
    for thread in threads:
        thread.start()
        thread.join()
    assert [json.loads(record.message) for record in caplog.records] == [{"event": "x", "message": "y", "times": 1}]


def test_files_that_run_out_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    """As asyncio tells of it: once for each connection that it tries to take on, thousands of times a second."""
    loop = asyncio.new_event_loop()
    tame_loop(loop)
    error = OSError(errno.EMFILE, os.strerror(errno.EMFILE))
    for _ in range(1000):
        loop.call_exception_handler({"message": "socket.accept() out of system resource", "exception": error})
    loop.call_exception_handler({"message": "something else"})
    loop.close()
    assert [record.name for record in caplog.records] == ["structgen.server", "asyncio"]
    assert "too many open files" in caplog.records[0].message
