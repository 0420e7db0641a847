"""Strings are text and name no file, whatever they look like; files import what lies beside them."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import structgen
from structgen import Vocabulary, compile_lark, lark
from structgen.core.constraints.specs import ConstraintSpec
from structgen.core.constraints.text import LarkConstraint
from structgen.core.grammars.dialects.llguidance.reader import read_llguidance
from structgen.core.grammars.lark_reader import read_lark
from structgen.errors import ConstraintError
from structgen.integrations.engine_requests import engine_constraint

pytest.importorskip("lark")
BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), None], eos_token_ids=256)
KEY = 'KEY: "hunter2"\n'
_watched: list[str] | None = None


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _watched is not None and event == "open" and isinstance(arguments[0], (str, bytes, os.PathLike)):
        _watched.append(os.fsdecode(arguments[0]))


sys.addaudithook(_hook)


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[str]]]:
    """Which grammars of the working directory have been opened or asked for; it holds some."""
    global _watched
    for name in ("private.lark", "sub/private.lark", "one.lark", "start: KEY.lark", "common.lark"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(KEY)
    (tmp_path / "one.json").write_text('{"const": "hunter2"}')
    monkeypatch.chdir(tmp_path)
    _watched = []
    inside = str(tmp_path)

    def found() -> list[str]:
        return [path for path in _watched or () if not os.path.isabs(path) or path.startswith(inside)]

    yield found
    _watched = None


def by_request(text: str) -> None:
    ConstraintSpec("grammar", text).compile(BYTES)


def by_engine(text: str) -> None:
    engine_constraint("grammar", text, BYTES).compile(BYTES)


def by_row(text: str) -> None:
    ConstraintSpec("lark", text).compile(BYTES)


def by_tag(text: str) -> None:
    tag = {"type": "structural_tag", "format": {"type": "grammar", "grammar": text}}
    engine_constraint("structural_tag", tag, BYTES).compile(BYTES)


def contextual(text: str) -> None:
    LarkConstraint(text, lexer="contextual").compile(BYTES)


WAYS: list[Callable[[str], object]] = [
    by_request, by_engine, by_row, by_tag, contextual, read_lark, read_llguidance,
    lambda text: LarkConstraint(text).instruction() and LarkConstraint(text).compile(BYTES),
]  # fmt: skip
PATHS = [
    "one.lark", " one.lark", "one.lark\n", "{here}/one.lark", "../{name}/one.lark", "nowhere.lark",
    "/etc/hostname.lark", "start: KEY.lark", "sub/private.lark",
]  # fmt: skip
IMPORTS = [
    "start: KEY\n%import .sub.private.KEY\n",
    "start: KEY\n%import .private.KEY",
    "start: KEY\n%import private.KEY\n",
    "start: KEY\n%import sub.private.KEY\n",
    "start: KEY\n%import .sub.private (KEY)\n",
    "start: K\n%import .sub.private.KEY -> K\n",
    "start: KEY\n%import \\\n .sub.private.KEY\n",
    "start: KEY\n%import sub.nowhere.KEY\n",
    "start: KEY\n%import .nowhere.KEY\n",
    "start: KEY\n%import common.KEY\n",
    "start: KEY\n%import .common.KEY\n",
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("text", [*PATHS, *IMPORTS], ids=repr)
def test_texts_open_no_file(
    way: Callable[[str], object], text: str, opened: Callable[[], list[str]], tmp_path: Path
) -> None:
    text = text.replace("{here}", str(tmp_path)).replace("{name}", tmp_path.name)
    with pytest.raises(ConstraintError) as refused:
        way(text)
    assert opened() == []
    assert "hunter2" not in str(refused.value) and "No such file" not in str(refused.value)


@pytest.mark.parametrize("there, not_there", [(".sub.private", ".sub.nowhere"), ("private", "absent")])
def test_errors_do_not_tell_which_files_there_are(there: str, not_there: str, opened: Callable[[], list[str]]) -> None:
    said = []
    for name in (there, not_there):
        with pytest.raises(ConstraintError) as refused:
            by_request(f"start: KEY\n%import {name}.KEY\n")
        said.append(str(refused.value).replace(name.rpartition(".")[2], "NAME").replace(name, "NAME"))
    assert said[0].split("\n")[0] == said[1].split("\n")[0] and "there is no grammar 'NAME'" in said[0]


@pytest.mark.parametrize("way", [by_request, by_engine, by_row, by_tag, contextual, read_lark])
def test_texts_import_from_larks_library(way: Callable[[str], object]) -> None:
    way("start: INT name\n%import common.INT\n%import python.name\n")


def test_programs_name_files(opened: Callable[[], list[str]], tmp_path: Path) -> None:
    (tmp_path / "main.lark").write_text("start: KEY\n%import .sub.private.KEY\n")
    for lexer in ("dynamic", "contextual"):
        for source in ("main.lark", Path("main.lark"), tmp_path / "main.lark", str(tmp_path / "main.lark")):
            assert compile_lark(source, BYTES, lexer=lexer).matcher().accept_bytes(b"hunter2")
            assert lark(source, lexer=lexer).compile(BYTES).matcher().accept_bytes(b"hunter2")
    named = read_lark("start: KEY\n%import sub.private.KEY\n", import_paths=[tmp_path])
    assert len(named.grammar.terminals) == 1


def test_what_others_write_never_comes_through_the_door_for_programs() -> None:
    """``lark`` and ``compile_lark`` read some strings as paths: nothing that reads requests or rows imports them."""
    root = Path(structgen.__file__).parent
    folders = ("server", "integrations", "benchmarking", "generation/batch_files", "core/tool_calls")
    found = []
    paths = [path for folder in folders for path in (root / folder).rglob("*.py")]
    assert {path.name for path in paths} >= {"formats.py", "engine_requests.py", "lines.py", "definitions.py"}
    for path in [*paths, *root.glob("core/constraints/s*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                found += [(path.name, alias.name) for alias in node.names if alias.name in ("lark", "compile_lark")]
    assert found == []


@pytest.mark.skipif(sys.platform != "linux", reason="Linux's devices")
@pytest.mark.parametrize("path", ["/dev/zero", "/dev/full"])
def test_files_without_end_are_not_read_on(path: str) -> None:
    for make in (lark, structgen.gbnf):
        with pytest.raises(ConstraintError, match="too long"):
            make(Path(path)).compile(BYTES)
    with pytest.raises(ConstraintError, match="more than 268,435,456 bytes"):
        structgen.json_schema(path)


@pytest.mark.parametrize("text", ["one.json", "{here}/one.json", "file:///etc/passwd", "/etc/passwd"])
def test_schemas_of_requests_are_no_paths(text: str, opened: Callable[[], list[str]], tmp_path: Path) -> None:
    text = text.replace("{here}", str(tmp_path))
    for given in (text, {"$ref": text}, {"$schema": text}, {"$id": text, "$ref": "#/x"}):
        written = given if isinstance(given, str) else json.dumps(given)
        for compiled in (
            lambda given=given: engine_constraint("json", given, BYTES).compile(BYTES),
            lambda written=written: ConstraintSpec("schema", written).compile(BYTES),
        ):
            try:
                compiled()
                assert given == {"$schema": text}  # a name, which nothing looks up
            except ConstraintError as refused:
                assert "hunter2" not in str(refused)
    assert opened() == []
