"""Monitors that ask tools in processes: answers, errors, and what is late or lost is no restriction."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import structgen
from structgen.core.engines.laws import check_laws
from structgen.core.monitors.protocol import ToolFailure
from structgen.core.monitors.tools import ToolMonitor
from structgen.core.workers import Watch
from structgen.errors import ConstraintError, GenerationError, OptionsError
from tests.core.monitors.test_sqlite import VOCABULARY

pytestmark = pytest.mark.full  # processes are started
BYTES: list[bytes | None] = [*(bytes([byte]) for byte in range(256)), b".lo", b"json.l", b"s(", b".ax", None]
PYTHON = structgen.Vocabulary(BYTES, eos_token_ids=len(BYTES) - 1)


class Odd:
    """A tool with moods."""

    greeting: Any = None

    def __init__(self, setting: Any, watch: Watch) -> None:
        self.setting = setting

    def __call__(self, text: str) -> Any:
        if text.endswith("late."):
            time.sleep(30)
        if text.endswith("lost."):
            os._exit(3)
        if text.endswith("error."):
            return ValueError("no")
        return None if text.endswith("any.") else [self.setting, "b"]


class OneText(Odd):
    """A tool with one name to suggest."""

    def __call__(self, text: str) -> Any:
        return self.setting


def test_an_answer_of_one_text_is_one_name() -> None:
    monitor = ToolMonitor(OneText, "ab")
    assert monitor.suggest("x.") == ("ab",)
    monitor.close()


def test_what_no_process_can_have_is_refused_at_once() -> None:
    wrong: list[tuple[Any, Any]] = [("Odd", "ab"), (None, "ab"), (lambda setting, watch: None, "ab"), (Odd, lambda: 0)]
    for make, setting in wrong:
        with pytest.raises(OptionsError, match="make"):
            ToolMonitor(make, setting)


def test_answers_and_what_is_late_or_lost() -> None:
    monitor = ToolMonitor(Odd, "ab", timeout=0.5)
    assert monitor.suggest("x.") == ("ab", "b") and monitor.suggest("any.") is None
    with pytest.raises(TimeoutError, match=r"within 0\.5 s"):
        monitor.suggest("late.")
    for text in ("lost.", "error."):
        with pytest.raises(ToolFailure):
            monitor.suggest(text)
    assert monitor.suggest("y.") == ("ab", "b")
    monitor.close()
    assert monitor.suggest("z.") == ("ab", "b")
    matcher = structgen.monitored(structgen.regex(r"\w+\.\w+;?"), monitor).compile(VOCABULARY).matcher()
    for before, name in ((b"lost.", b"zz"), (b"error.", b"zz"), (b"late.", b"zz"), (b"x.", b"ab")):
        walker = matcher.fork()
        assert walker.accept_bytes(before + name) and walker.is_accepting()
        assert matcher.fork().accept_bytes(before + b"zz") == (name == b"zz")  # so say its forks
    assert matcher.stats == matcher.stats | {"monitor_timeouts": 1, "monitor_failures": 2, "empty_suggestions": 0}
    monitor.close()
    with pytest.raises(OptionsError, match="timeout"):
        ToolMonitor(Odd, "ab", timeout=0)


def broken(setting: Any, watch: Watch) -> Any:
    raise ImportError("no such tool")


def test_a_process_that_does_not_start_is_an_error() -> None:
    matcher = structgen.monitored(structgen.regex(r"\w+\.\w+;?"), ToolMonitor(broken)).compile(VOCABULARY).matcher()
    with pytest.raises(GenerationError, match=r"did not start.*__main__"):
        matcher.accept_bytes(b"x.zz")


def test_jedi_names_attributes_that_exist() -> None:
    pytest.importorskip("jedi")
    monitor = structgen.JediMonitor("import json, textwrap\n", timeout=60)
    grammar = structgen.monitored(None, monitor).compile(PYTHON)
    for code, allowed in (
        ("json.loads", True),
        ("json.lods", False),
        ("text = 'a'\ntext.upper", True),
        ("text = 'a'\ntext.uper", False),
        ("textwrap.TextWrapper().wrap", True),
        ("textwrap.TextWrapper().warp", False),
        ("x = 1.5 # json.lods", True),
        ("'json.lods'", True),
        ("def f(x):\n    return x.anything", True),
        ("from .some import thing", True),
    ):
        matcher = grammar.matcher()
        assert (matcher.accept_bytes(code.encode()) and matcher.is_accepting()) == allowed, code
    matcher = grammar.matcher()
    assert matcher.accept_token(BYTES.index(b"json.l")) and matcher.forced_bytes() == b"oad"
    assert not matcher.accept_token(BYTES.index(b".ax"))
    check_laws(grammar, walks=1, steps=3, prefixes=[b"json"], tokens=range(40, len(BYTES)))
    monitor.close()


@dataclass(eq=False)
class After:
    """A monitor that knows the text before."""

    monitor: ToolMonitor
    text: str
    triggers = (".",)

    def suggest(self, text: str) -> Any:
        return self.monitor.suggest(self.text + text) if text == "." else None


def test_jedi_on_hidden_names_of_the_standard_library() -> None:
    """What stands after a dot in a file of Python's may be written wherever jedi lists it."""
    pytest.importorskip("jedi")
    import parso

    source = (Path(os.__file__).parent / "textwrap.py").read_text()
    monitor, listed, hidden = structgen.JediMonitor(timeout=60), 0, 0
    leaf = parso.parse(source).get_first_leaf()
    dots = []
    while leaf is not None:
        following = leaf.get_next_leaf()
        if leaf.value == "." and following is not None and following.type == "name":
            dots.append((leaf.end_pos, following.value))
        leaf = following
    lines = source.splitlines(keepends=True)
    for (line, column), name in dots[::6]:
        text = "".join(lines[: line - 1]) + lines[line - 1][:column]
        names = monitor.suggest(text) or ()
        matcher = structgen.monitored(None, After(monitor, text[:-1])).compile(PYTHON).matcher()
        hidden += 1
        listed += name in names
        if names:
            assert not matcher.accept_bytes(b".surely_not ")
            assert matcher.accept_bytes(f".{name} ".encode()) == (name in names), (line, name)
    assert listed > 0.6 * hidden > 6
    monitor.close()


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConstraintError, match="need jedi"):
        structgen.JediMonitor()
    monkeypatch.undo()
    pytest.importorskip("jedi")
    with pytest.raises(OptionsError, match="kinds"):
        structgen.JediMonitor(only=["thing"])
    wrong: list[tuple[str, Any]] = [("only", 5), ("only", "module"), ("prefix", None), ("path", 5), ("project", 5)]
    for option, value in [*wrong, ("project", "/nowhere/at/all"), ("timeout", float("nan"))]:
        with pytest.raises(OptionsError, match=option):
            structgen.JediMonitor(**{option: value})
    kinds: list[Any] = [(), [], frozenset()]
    for none in kinds:
        structgen.JediMonitor(only=none)
