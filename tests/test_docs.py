"""The code blocks of README.md and docs/ run; those fenced as ``python model`` need a language model and only compile.

Blocks of one page share a namespace and run in order, as a reader would type them.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")))]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[tuple[int, str, str]]:
    """(first line, words after ``python``, code) of each Python block."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        (text[: match.start(3)].count("\n") + 1, match[2].strip(), match[3])
        for match in FENCE.finditer(text)
        if match[1] == "python"
    ]


SLOW = {"docs/integrations/transformers.md"}  # its blocks load a model


@pytest.mark.parametrize("page", [pytest.param(page, marks=pytest.mark.full if page in SLOW else ()) for page in PAGES])
def test_python_blocks(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("documentation")  # whose classes and functions are looked up in it, as in any module
    monkeypatch.setitem(sys.modules, module.__name__, module)
    namespace: dict[str, Any] = vars(module)
    for line, words, code in blocks(page):
        assert words in ("", "model"), f"{page}:{line}: unknown kind of block: {words}"
        program = compile("\n" * (line - 1) + code, str(ROOT / page), "exec", dont_inherit=True)
        if not words:
            exec(program, namespace)


LINK = re.compile(r"\]\(([^)\s]+)\)")
LINKING = [*PAGES, *(path.name for path in sorted(ROOT.glob("*.md"))), "benchmarks/RESULTS.md", "grammars/README.md"]


def prose(path: Path) -> str:
    """A page without its fences, whose code may look like links and headings."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """What links can lead to in a page: its headings, as GitHub and the site name them, and what has an id."""
    text = prose(path)
    headings = re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    titles = [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings]
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}
    return slugs | set(re.findall(r'id="([^"]+)"', text))


@pytest.mark.parametrize("page", sorted(set(LINKING)))
def test_links_lead_somewhere(page: str) -> None:
    lost = []
    for target in LINK.findall(prose(ROOT / page)):
        place, _, anchor = target.partition("#")
        path = (ROOT / page).parent / place if place else ROOT / page
        is_there = path.exists() and (not anchor or path.suffix != ".md" or anchor in anchors(path))
        if "://" not in target and not target.startswith("mailto:") and not is_there:
            lost.append(target)
    assert lost == []


@pytest.mark.parametrize("page", PAGES)
def test_pages_that_are_named_are_there(page: str) -> None:
    """Those that are no links, too."""
    own = {"report.md"}  # what a command writes
    folders = (ROOT, ROOT / "docs", (ROOT / page).parent)
    named = set(re.findall(r"(?<![\w/.*-])((?:\.\./|\w[\w.-]*/)*[\w-]+\.md)\b", prose(ROOT / page))) - own
    titles = {Path(target.partition("#")[0]).name for target in LINK.findall(prose(ROOT / page))}
    assert [name for name in named - titles if not any((folder / name).exists() for folder in folders)] == []


def test_pages_that_the_code_names_are_there() -> None:
    """In docstrings, errors and the help of commands; of other projects' pages these are all."""
    others = {"docs/parametric.md", "docs/syntax.md", "docs/defining_structures/ebnf_grammar.md"}
    lost = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "structgen").rglob("*.py")
        for name in re.findall(r"\bdocs/[\w/-]+\.md\b", path.read_text(encoding="utf-8"))
        if name not in others and not (ROOT / name).exists()
    }
    assert lost == set()


def test_there_are_examples() -> None:
    """The fence pattern finds them."""
    assert sum(len(blocks(page)) for page in PAGES) >= 15


def shell_lines(page: str) -> list[str]:
    """What a reader types into a shell."""
    text = (ROOT / page).read_text(encoding="utf-8")
    fences = "\n".join(match[3] for match in FENCE.finditer(text) if match[1] in ("console", "bash", "sh"))
    return re.findall(r"^\$ (.+)$", fences.replace("\\\n", " "), re.MULTILINE)


def flaws(line: str, root: Any) -> list[str]:
    """What a line of the shell names that is not there: commands and their options, targets of make, extras of pip."""
    words = shlex.split(line, comments=True)
    if words[:1] == ["make"]:
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        return [word for word in words[1:] if "=" not in word and word not in targets]
    if words[:2] == ["pip", "install"]:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        named = re.findall(r"(?:^|[ ']|structgen_?-?lm[^ ]*|\.)\[([a-z,]+)\]", " ".join(words))
        return [extra for one in named for extra in one.split(",") if extra not in project["optional-dependencies"]]
    if words[:1] != ["structgen"]:
        return []
    command, rest = root, words[1:]
    while rest and rest[0] in getattr(command, "commands", {}):
        command, rest = command.commands[rest[0]], rest[1:]
    if hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        return rest[:1]
    known = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
    given = [word.partition("=")[0] for word in rest if re.match(r"--?[a-zA-Z]", word)]
    return [flag for flag in given if flag not in {*known, "--help", "--version"}]


@pytest.mark.parametrize("page", PAGES)
def test_shell_lines_name_what_there_is(page: str) -> None:
    typer = pytest.importorskip("typer")
    from structgen.cli.commands import app

    root = typer.main.get_command(app)
    assert {line: found for line in shell_lines(page) if (found := flaws(line, root))} == {}


def test_flaws_are_found() -> None:
    typer = pytest.importorskip("typer")
    from structgen.cli.commands import app

    root = typer.main.get_command(app)
    lines = {"make dmeo": ["dmeo"], "pip install '.[serv,lark]'": ["serv"], "structgen chek x": ["chek"]}
    lines |= {"structgen check x --jsn": ["--jsn"], "structgen bench covrage": ["covrage"], "make docs": []}
    assert {line: flaws(line, root) for line in lines} == lines


def test_the_readme_takes_two_minutes() -> None:
    """At 300 words a minute, without code and addresses."""
    text = FENCE.sub("", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(re.sub(r"\]\([^)]*\)", "]", text).split()) <= 620
