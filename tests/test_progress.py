"""What takes long says so while it goes on: to a callback, else to the log."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import structgen as sg
from structgen import progress
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from structgen.generation.speculative import draft_options
from structgen.progress import ProgressEvent, report_progress, waiting
from tests.fakes import CharTokenizer, vocabulary

WORDS = vocabulary(eos=1)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS", 0.03)
    time.sleep(0.05)  # a watching thread of before sleeps as long as was said then
    monkeypatch.setattr(progress, "_WATCH", progress._Watch())


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)
    assert condition()


def test_it_is_told_while_one_waits_and_at_the_end() -> None:
    events: list[ProgressEvent] = []
    with report_progress(events.append), waiting("working", 3) as wait:
        until(lambda: events)
        wait.advance(2)
        until(lambda: events[-1].done == 2)
        assert not any(event.is_over for event in events)
    assert events[-1].is_over and events[-1].seconds >= events[0].seconds >= 0.03
    assert [event.is_over for event in events].count(True) == 1
    assert {(event.what, event.total) for event in events} == {("working", 3)}
    assert str(events[0]) == "working (0 of 3) ..." and str(events[-1]).startswith("working: 0.")
    time.sleep(0.1)
    assert events[-1].is_over  # nothing comes after


def test_what_is_short_says_nothing(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS", 20.0)
    events: list[ProgressEvent] = []
    with caplog.at_level(logging.DEBUG, "structgen"), report_progress(events.append):
        for _ in range(1000):
            with waiting("working"):
                pass
    assert not events and not caplog.records


@pytest.mark.parametrize(("once", "level"), [(False, logging.INFO), (True, logging.WARNING)])
def test_without_a_callback_it_is_logged_once_and_at_the_end(
    once: bool, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "structgen"), waiting("working", once=once):
        until(lambda: caplog.records)
        time.sleep(0.15)
    assert [(record.name, record.levelno) for record in caplog.records] == [("structgen", level)] * 2
    assert caplog.messages[0] == "working ..." and caplog.messages[1].startswith("working: ")


@pytest.mark.full
def test_waits_in_waits_and_in_threads() -> None:
    events: list[ProgressEvent] = []

    def work(name: str) -> None:
        with report_progress(events.append), waiting(name), waiting(f"{name} within"):
            until(lambda: {f"{name} within", name} <= {event.what for event in events})

    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    over = [event.what for event in events if event.is_over]
    assert sorted(over) == sorted(f"{number}{rest}" for number in range(5) for rest in ("", " within"))
    until(lambda: not [thread for thread in threading.enumerate() if thread.name == "structgen-progress"])


def test_a_callback_that_fails_is_logged_and_harms_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: ProgressEvent) -> None:
        raise ZeroDivisionError

    with report_progress(fail), waiting("working"):
        until(lambda: caplog.records)
    assert caplog.records[0].exc_info is not None and caplog.records[0].exc_info[0] is ZeroDivisionError


def test_what_fails_is_over_too() -> None:
    events: list[ProgressEvent] = []
    with pytest.raises(ZeroDivisionError), report_progress(events.append), waiting("working"):
        until(lambda: events)
        raise ZeroDivisionError
    assert events[-1].is_over


def test_no_callback_leaves_the_outer_one() -> None:
    events: list[ProgressEvent] = []
    with report_progress(events.append), report_progress(None), waiting("working"):
        until(lambda: events)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_tells_of_its_own() -> None:
    code = """
import os, time
from structgen import progress
progress.SECONDS = 0.03
with progress.waiting("of the parent"):
    child = os.fork()
    events = []
    if child == 0:
        with progress.report_progress(events.append), progress.waiting("of the child"):
            time.sleep(0.5)
        os._exit(0 if {event.what for event in events} == {"of the child"} and events[-1].is_over else 1)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


def slowed(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    """Have a function take long."""
    function = getattr(owner, name)

    def slow(*args: Any, **kwargs: Any) -> Any:
        time.sleep(0.2)
        return function(*args, **kwargs)

    monkeypatch.setattr(owner, name, slow)


def test_a_generator_tells_of_compiling_and_of_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    slowed(monkeypatch, draft_options, "prepare_for_trees")
    from structgen.core.engines.json import compiled

    slowed(monkeypatch, compiled, "lower")
    events: list[ProgressEvent] = []
    generator = Generator(TinyModel(WORDS.size), CharTokenizer(eos=1), vocabulary=WORDS, progress=events.append)
    generator.generate("p", {"const": "not compiled before"}, draft="ngram", max_new_tokens=60)
    told = [event.what for event in events if event.is_over]
    others = ("making the first tables of a vocabulary", "writing an output", "reading a prompt of 1 tokens")
    assert [what for what in told if what not in others] == [
        "compiling the schema",
        "preparing drafts",
    ]
    assert progress._CALLBACK.get() is None


def test_compilers_tell_the_log(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    from structgen.core import compilers

    for name in ("compile_grammar", "embed"):
        slowed(monkeypatch, compilers, name)
    with caplog.at_level(logging.INFO, "structgen"):
        sg.compile_gbnf('root ::= "a"', WORDS)
        sg.compile_regex("ab", WORDS)
        sg.compile_choice(["a"], WORDS)
    assert [message.partition(":")[0] for message in caplog.messages[1::2]] == [
        "compiling the grammar",
        "compiling the regular expression",
        "compiling the choice",
    ]


def test_parts_are_told_one_by_one_once_it_takes_long(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "PART_SECONDS", 0.0)
    with caplog.at_level(logging.INFO, "structgen"), waiting("working", 4, each=True) as wait:
        wait.advance()
        until(lambda: caplog.records)
        assert caplog.messages == ["working (1 of 4) ..."]
        wait.advance()
        wait.advance()
        time.sleep(0.1)
        assert caplog.messages[1:] == ["working (2 of 4) ...", "working (3 of 4) ..."]
    assert caplog.messages[3].startswith("working: ") and len(caplog.messages) == 4
    events: list[ProgressEvent] = []
    with report_progress(events.append), waiting("working", each=True) as wait:
        wait.advance(3)
        assert not events
        until(lambda: events)
        wait.advance()
        assert events[-1].done == 4 and str(events[-1]) == "working (4) ..."


def test_of_many_parts_in_a_moment_the_last_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "structgen"), waiting("working", each=True) as wait:
        until(lambda: caplog.records)
        for _ in range(1000):
            wait.advance()
    assert len(caplog.messages) < 50


class Slow(TinyModel):
    """A model that takes its time for each call."""

    def read_after(self, texts: Any) -> Any:
        time.sleep(0.05)
        return super().read_after(texts)


def slow_generator(events: list[ProgressEvent]) -> Generator:
    return Generator(Slow(WORDS.size), CharTokenizer(eos=1), vocabulary=WORDS, progress=events.append)


def test_writing_an_output_is_told() -> None:
    events: list[ProgressEvent] = []
    slow_generator(events).generate("prompt", {"type": "string", "minLength": 5, "maxLength": 9})
    told = {event.what for event in events}
    assert "writing an output" in told and any(what.startswith("reading a prompt of ") for what in told)
    assert max(event.done for event in events if event.what == "writing an output") >= 3


def test_a_stream_tells_of_what_is_not_seen() -> None:
    events: list[ProgressEvent] = []
    list(slow_generator(events).stream("prompt", {"type": "string", "minLength": 5, "maxLength": 9}))
    told = {event.what for event in events}
    assert "writing an output" not in told and any(what.startswith("reading a prompt of ") for what in told)


@pytest.mark.full
def test_a_batch_tells_that_it_goes_on_and_of_each_row(caplog: pytest.LogCaptureFixture) -> None:
    events: list[ProgressEvent] = []
    rows: list[Any] = []
    slow_generator(events).batch(list("abcd"), {"type": "string", "maxLength": 9}, batch_size=1, progress=rows.append)
    assert [row.done for row in rows] == [0, 1, 2, 3, 4] and rows[0].seconds == 0.0
    told = [event for event in events if event.what == "writing a batch"]
    assert [event.total for event in told] == [4] * len(told) and {event.done for event in told} >= {0, 1, 2, 3}
    with caplog.at_level(logging.INFO, "structgen"):
        Generator(Slow(WORDS.size), CharTokenizer(eos=1), vocabulary=WORDS).batch(
            list("abcd"), batch_size=1, max_new_tokens=20
        )
    assert any(message.startswith("writing a batch (") for message in caplog.messages)


def test_options_that_are_weighed_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from structgen.generation import generator

    slowed(monkeypatch, generator, "option_log_probs")
    events: list[ProgressEvent] = []
    slow_generator(events).choice("p", ["ab", "cd"])
    assert {event.what for event in events} >= {"reading 2 options"}
