"""The code uses the words of docs/glossary.md, and none that it retires."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import fields
from functools import cache
from pathlib import Path

from structgen.options import JsonOptions
from tests.package_sources import PATHS, tree

ROOT = Path(__file__).parents[1]

# Retired as parts of names: of functions, classes, parameters, variables and attributes.
NAMES = (
    "row",
    "thread",
    "branch",
    "rest",
    "told",
    "duty",
    "obligation",
    "goal",
    "behind",
    "beside",
    "way",
    "witness",
    "proof",
    "trust",
    "descent",
)
# Retired as whole names of variables and parameters, which say nothing.
VARIABLES = ("found", "place", "own", "at", "known")
# In texts of errors, logs and options.
MESSAGES = ("row", "rest", "told", "duty", "obligation", "goal", "behind", "beside", "way")
# In README.md and docs/, code and the glossary aside.
PAGES = ("row", "rest", "told", "duty", "obligation", "goal", "behind", "beside")
FORMS = {
    "told": ("tell", "tells", "told"),
    "rest": ("rest", "rests"),
    "duty": ("duty", "duties"),
    "obligation": ("obligation", "obligations"),
    "goal": ("goal", "goals"),
    "way": ("way", "ways"),
    "witness": ("witness", "witnesses"),
    "row": ("row", "rows"),
    "thread": ("thread", "threads"),
    "branch": ("branch", "branches"),
    "proof": ("proof", "proofs"),
}
# Options keep the names that users know them by, in code and in messages.
OPTIONS = {field.name for field in fields(JsonOptions)}
MACHINES = ("core/kernels/json", "core/kernels/cfg", "core/kernels/lalr")
# Elsewhere these words are the field's own: rows of bitmasks, threads of a processor, branches of schemas and trees,
# witnesses and proofs of containment.
COUNTED_IN = {
    "row": ("core/grammars", "core/json_schema", "generation/batch", "generation/models", "generation/scheduler"),
    "thread": MACHINES,
    "branch": (*MACHINES, "core/engines/composed"),
    "witness": ("core/engines/lalr",),
    "proof": ("core/engines/lalr",),
}
# Messages there are about rows of bitmasks and logits.
EXEMPT_IN = {"row": ("core/engines/apply", "core/engines/bitmask", "core/engines/logits", "generation/sampling")}


FORMS_OF = {word: FORMS.get(word, (word,)) for word in (*NAMES, *MESSAGES, *PAGES)}


def names(module: ast.AST) -> Iterator[tuple[str, bool]]:
    """What a module names itself, and whether as a variable or parameter."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, False
        elif isinstance(node, ast.arg):
            yield node.arg, True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, True
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
            yield node.attr, False


def is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


@cache
def parts(name: str) -> frozenset[str]:
    return frozenset(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_"))


def retired(words: AbstractSet[str], among: Iterable[str]) -> list[str]:
    """Which of some retired words are there, in any of their forms."""
    return [word for word in among if not words.isdisjoint(FORMS_OF[word])]


CALLED = re.compile(r"(?i)error|refus|warn|badinput|unsupported|too_|^log|^option|^argument")


def called(function: ast.expr) -> str:
    """The last names of what a call calls."""
    if isinstance(function, ast.Attribute):
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        return f"{owner}.{function.attr}" if owner.lower() in {"log", "logger"} else function.attr
    return function.id if isinstance(function, ast.Name) else ""


def messages(module: ast.AST) -> Iterator[str]:
    """Texts of errors, of what is logged, and of options."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and CALLED.search(called(node.func)):
            for part in [*node.args, *(keyword.value for keyword in node.keywords)]:
                for text in ast.walk(part):
                    if isinstance(text, ast.Constant) and isinstance(text.value, str):
                        yield text.value


def prose(path: Path) -> str:
    """A page without code, and without the bitmask rows that it names in full."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`|\]\([^)]*\)|(?i:bitmask rows?)", "", text)


def test_no_name_is_retired() -> None:
    """docs/glossary.md says what to say."""
    wrong = []
    for path in PATHS:
        words = [word for word in NAMES if path.startswith(COUNTED_IN.get(word, ""))]
        for name, is_variable in set(names(tree(path))):
            if (is_variable and name in VARIABLES) or (name not in OPTIONS and retired(parts(name), words)):
                wrong.append(f"{path}: {name}")
    assert wrong == []


def test_no_message_has_a_retired_word() -> None:
    wrong = []
    for path in PATHS:
        words = [word for word in MESSAGES if not path.startswith(EXEMPT_IN.get(word, "?"))]
        for text in messages(tree(path)):
            said = set(re.findall(r"[a-z]+", re.sub(r"--[\w-]+", "", text).lower()))
            wrong += [f"{path}: {word}: {text}" for word in retired(said, words) if text not in OPTIONS]
    assert wrong == []


def test_no_page_has_a_retired_word() -> None:
    pages = [ROOT / "README.md", *(path for path in (ROOT / "docs").rglob("*.md") if path.name != "glossary.md")]
    lines = [(path, line) for path in pages for line in prose(path).splitlines()]
    assert [pair for pair in lines if retired(set(re.findall(r"[a-z]+", pair[1].lower())), PAGES)] == []


def test_the_glossary_names_every_word_that_is_counted() -> None:
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").partition("## Retired words")[2]
    words = {*NAMES, *VARIABLES, *MESSAGES, *PAGES}
    assert [word for word in sorted(words) if not any(form in page for form in FORMS.get(word, (word,)))] == []


def test_words_are_seen() -> None:
    source = ast.parse("def rest_of(told):\n    goalGraph = told\n    raise ValueError(f'no way {told} behind')")
    assert [part for name, _ in names(source) for part in sorted(parts(name))] == [
        "of",
        "rest",
        "told",
        "goal",
        "graph",
    ]
    assert list(messages(source)) == ["no way ", " behind"]
