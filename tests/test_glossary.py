"""The code uses the words of docs/glossary.md, and none that it retires."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path

from structgen.options import JsonOptions

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "structgen"

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


@cache
def modules() -> dict[str, ast.Module]:
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def names(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    """What a module names itself, and whether as a variable or parameter."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, False
        elif isinstance(node, ast.arg):
            yield node.arg, True
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, True
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr, False


def parts(name: str) -> set[str]:
    return set(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().split("_"))


def occurrences(word: str, found: Iterator[set[str]]) -> int:
    return sum(not words.isdisjoint(FORMS.get(word, (word,))) for words in found)


CALLED = re.compile(r"(?i)error|refus|warn|badinput|unsupported|too_|^log|^option|^argument")


def called(function: ast.expr) -> str:
    """The last names of what a call calls."""
    if isinstance(function, ast.Attribute):
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        return f"{owner}.{function.attr}" if owner.lower() in {"log", "logger"} else function.attr
    return function.id if isinstance(function, ast.Name) else ""


def messages(tree: ast.AST) -> Iterator[str]:
    """Texts of errors, of what is logged, and of options."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and CALLED.search(called(node.func)):
            for part in [*node.args, *(keyword.value for keyword in node.keywords)]:
                for text in ast.walk(part):
                    if isinstance(text, ast.Constant) and isinstance(text.value, str):
                        yield text.value


def prose(path: Path) -> str:
    """A page without code, and without the bitmask rows that it names in full."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`|\]\([^)]*\)|(?i:bitmask rows?)", "", text)


def counted() -> dict[str, dict[str, int]]:
    """How often the words of the tables above are there."""
    every = {path: list(names(tree)) for path, tree in modules().items()}
    pages = [ROOT / "README.md", *(path for path in (ROOT / "docs").rglob("*.md") if path.name != "glossary.md")]
    lines = [set(re.findall(r"[a-z]+", line.lower())) for path in pages for line in prose(path).splitlines()]
    texts = [
        (path, set(re.findall(r"[a-z]+", re.sub(r"--[\w-]+", "", text).lower())))
        for path, tree in modules().items()
        for text in messages(tree)
        if text not in OPTIONS
    ]
    named = Counter[str]()
    for word in NAMES:
        named[word] = occurrences(
            word,
            (
                parts(name)
                for path, found in every.items()
                if path.startswith(COUNTED_IN.get(word, ""))
                for name, _ in found
                if name not in OPTIONS
            ),
        )
    variables = Counter(name for found in every.values() for name, is_variable in found if is_variable)
    return {
        "NAMES": dict(named),
        "VARIABLES": {word: variables[word] for word in VARIABLES},
        "MESSAGES": {
            word: occurrences(word, (words for path, words in texts if not path.startswith(EXEMPT_IN.get(word, "?"))))
            for word in MESSAGES
        },
        "PAGES": {word: occurrences(word, iter(lines)) for word in PAGES},
    }


def test_retired_words_are_gone() -> None:
    """docs/glossary.md says what to say."""
    assert {(table, word): n for table, words in counted().items() for word, n in words.items() if n} == {}


def test_the_glossary_names_every_word_that_is_counted() -> None:
    page = (ROOT / "docs/glossary.md").read_text(encoding="utf-8").partition("## Retired words")[2]
    words = {*NAMES, *VARIABLES, *MESSAGES, *PAGES}
    assert [word for word in sorted(words) if not any(form in page for form in FORMS.get(word, (word,)))] == []


def test_words_are_seen() -> None:
    tree = ast.parse("def rest_of(told):\n    goalGraph = told\n    raise ValueError(f'no way {told} behind')")
    assert [part for name, _ in names(tree) for part in sorted(parts(name))] == ["of", "rest", "told", "goal", "graph"]
    assert list(messages(tree)) == ["no way ", " behind"]
