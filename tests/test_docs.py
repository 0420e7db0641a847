"""The code blocks of README.md and docs/ run; those fenced as ``python model`` need a language model and only compile.

Blocks of one page share a namespace and run in order, as a reader would type them. They print what the ``text``
after them says. Figures that pages state are those of benchmarks/RESULTS.md, and what they name in code is there.
"""

from __future__ import annotations

import re
import shlex
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from structgen import JsonOptions
from tests.test_messages import flags, public, variables

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")))]
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"\s*^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A Python block of a page: its first line, the words after ``python``, its code, and what it prints if told."""

    line: int
    words: str
    code: str
    printed: str | None


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        Block(
            text[: match.start(3)].count("\n") + 1,
            match[2].strip(),
            match[3],
            printed[1] if (printed := PRINTED.match(text, match.end())) else None,
        )
        for match in FENCE.finditer(text)
        if match[1] == "python"
    ]


SLOW = {"docs/integrations/transformers.md"}  # its blocks load a model


@pytest.mark.parametrize("page", [pytest.param(page, marks=pytest.mark.full if page in SLOW else ()) for page in PAGES])
def test_python_blocks(page: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    module = ModuleType("documentation")  # whose classes and functions are looked up in it, as in any module
    monkeypatch.setitem(sys.modules, module.__name__, module)
    namespace: dict[str, Any] = vars(module)
    for line, words, code, printed in blocks(page):
        assert words in ("", "model"), f"{page}:{line}: unknown kind of block: {words}"
        program = compile("\n" * (line - 1) + code, str(ROOT / page), "exec", dont_inherit=True)
        if not words:
            capsys.readouterr()
            exec(program, namespace)
            if printed is not None:
                assert capsys.readouterr().out == printed, f"{page}:{line}"


LINK = re.compile(r"\]\(([^)\s]+)\)")
FOLDERS = [
    str(path.relative_to(ROOT))
    for path in sorted(
        [*(ROOT / "structgen").rglob("*.md"), ROOT / "grammars/README.md", *(ROOT / "benchmarks").rglob("*.md")]
    )
]
LINKING = [*PAGES, *(path.name for path in sorted(ROOT.glob("*.md"))), *FOLDERS]


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


# What pages name in code that is another project's, of the standard library, of scripts of this repository, or made up.
OTHERS = {
    "docs/contributing.md": "--durations --kernel --sample since= subschemas=",
    "docs/decisions/0003-kernels-by-address.md": "STRUCTGEN_PLATFORM cache=",
    "docs/development.md": "--no-deps",
    "docs/grammars.md": "--grammar-file --json-schema age= capture= flags= force_json_field_order= indent= "
    "json_string= loop_after_dispatch= max_consecutive_whitespaces= max_whitespace_cnt= parser= separators= "
    "stop_capture= strict_mode=",
    "docs/how_to/tool_calls.md": "on_error=",  # of structgen.tools.run
    "docs/install.md": "--no-deps STRUCTGEN_PLATFORM",
    "docs/integrations/README.md": "is_function_calling_model= should_use_structured_outputs= "
    "use_structured_outputs_internally=",
    "docs/integrations/in_process.md": "output_type=",
    "docs/integrations/llamacpp.md": "threads=",  # of load_gguf
    "docs/integrations/mlx.md": "logits_processors=",
    "docs/integrations/remote.md": "client=",
    "docs/integrations/sglang.md": "--constrained-json-disable-any-whitespace --constrained-json-max-whitespace-cnt "
    "--constrained-json-whitespace-pattern --enable-strict-thinking --reasoning-parser",
    "docs/integrations/training.md": "generation_kwargs= use_vllm=",
    "docs/integrations/transformers.md": "custom_generate= logits_processor= streamer=",
    "docs/integrations/vllm.md": "--structured-outputs-config --tokenizer-mode --tool-strict-level parameter=",
    "docs/json_schema.md": "indent=",
    "docs/moving.md": "api_key= base_url=",
    "docs/python_types.md": "regex_engine= val_json_bytes=",
    "docs/releasing.md": "--sample",
    "docs/security.md": "--markdown --minutes",
    "docs/serving.md": "STRUCTGEN_API_KEY STRUCTGEN_SERVE_ STRUCTGEN_SERVE_PORT",
    "docs/speculative.md": "shape=",
    "docs/tools.md": "on_error= result_role= string= to=",
}


def unknown_names(text: str) -> set[str]:
    """What a page names in code and nothing of structgen has: parameters, options of the command, variables."""
    found = set()
    for code in re.findall(r"`([^`\n]+)`", text):
        found |= {name for name in re.findall(r"(?<![\w.-])--[a-z][a-z-]+", code) if name not in flags() | {"--help"}}
        found |= {name for name in re.findall(r"\bSTRUCTGEN_[A-Z_]+\b", code) if name not in variables()}
        found |= {name for name in re.findall(r"\bJsonOptions\.\w+", code) if not hasattr(JsonOptions(), name[12:])}
        parameters = re.findall(r'(?<![\w<"-])([a-z][a-z_]+)=(?=[^=])', code)
        found |= {f"{name}=" for name in parameters if name not in public()}
    return found


@pytest.mark.parametrize("page", PAGES)
def test_names_in_pages_are_those_of_the_code(page: str) -> None:
    """No more and no fewer others than are listed, so that the list does not outlive what it excuses."""
    assert unknown_names(prose(ROOT / page)) == set(OTHERS.get(page, "").split())


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


@pytest.mark.parametrize("page, most", [("README.md", 900), ("docs/architecture.md", 1_500)])
def test_first_pages_are_short(page: str, most: int) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").split()) <= most


def test_results_fit_a_page() -> None:
    """What is older is in benchmarks/history/."""
    assert (ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8").count("\n") <= 150


FIGURE = re.compile(r"(?<![\w.-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w-])")


def figures(text: str) -> set[str]:
    """The numbers of a text, code and addresses aside."""
    return set(FIGURE.findall(re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)))


def measured(page: str) -> dict[str, set[str]]:
    """The figures of a page's tables that have a column of them, by line; reasons are told in a column of their own."""
    found: dict[str, set[str]] = {}
    head: list[str] = []
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        head = head or cells
        if any(word in {"figure", "structgen"} for word in head) and cells != head:
            columns = [cell for name, cell in zip(head, cells, strict=False) if name not in {"what limits it", ""}]
            found[line] = {figure for cell in columns for figure in figures(cell)}
        if not cells:
            head = []
    return found


@pytest.mark.parametrize("page", ["README.md", "docs/performance.md"])
def test_figures_of_pages_are_those_of_the_results(page: str) -> None:
    known = figures((ROOT / "benchmarks/RESULTS.md").read_text(encoding="utf-8"))
    wrong = {line: sorted(found - known) for line, found in measured(page).items() if found - known}
    assert wrong == {} and len(measured(page)) > 3
