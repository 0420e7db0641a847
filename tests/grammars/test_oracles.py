"""The grammars that ship against independent parsers of their languages: Python's own, or a few lines written here."""

from __future__ import annotations

import ast
import csv
import datetime
import io
import json
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import pytest

pytest.importorskip("lark")

from structgen import compile_gbnf
from tests.grammars.shipped import BYTES, FOLDER, accepts, corpus, grammar, judge, mutants, parses, walk


def is_json(text: str) -> bool:
    try:
        json.loads(text, parse_constant=lambda name: 1 / 0)  # NaN and Infinity are no JSON
    except (ValueError, ZeroDivisionError):
        return False
    return True


def is_python(text: str, mode: str = "eval") -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            ast.parse(text.lstrip(" "), mode=mode)
    except (SyntaxError, ValueError):
        return False
    return True


def is_date(text: str) -> bool:
    """By ``datetime``, which has no year 0, no leap seconds and no durations."""
    if text.startswith("P"):
        return (
            re.fullmatch(r"(?!.*[PT]$)P(\d+Y)?(\d+M)?(\d+D)?(T(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?|P\d+W", text)
            is not None
        )
    day = r"\d{4}-(\d\d-\d\d|\d{3}|W\d\d-\d)"
    clock = r"\d\d:\d\d(:\d\d([.,]\d+)?)?(Z|[+-]\d\d:\d\d)?"
    if not re.fullmatch(rf"{day}(T{clock})?|{clock}", text, re.ASCII):  # (``datetime`` reads many other forms)
        return False
    text = re.sub(r"(:\d\d):60", r"\1:59", re.sub("^0000", "0400", text))
    try:
        if re.match(r"\d{4}-\d{3}", text):
            date = datetime.date(int(text[:4]), 1, 1) + datetime.timedelta(int(text[5:8]) - 1)
            return date.year == int(text[:4]) and (len(text) == 8 or is_date(text[9:]))
        (datetime.datetime if text[4] == "-" else datetime.time).fromisoformat(text)
    except ValueError:
        return False
    return True


def is_csv(text: str) -> bool:
    try:
        list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error:
        return False
    return True


def is_plan(text: str) -> bool:
    bare = re.sub(r";[^\n]*\n", "\n", text)
    name, number = r"[a-z][a-z0-9_-]*", r"[0-9]+(\.[0-9]+)?"
    action = rf"\s*\(\s*{name}(\s+{name})*\s*\)\s*"
    timed = rf"\s*{number}\s*:{action}(\[\s*{number}\s*\])?\s*"
    return re.fullmatch(rf"\s*({action})*|({timed})+", bare, re.IGNORECASE | re.ASCII) is not None


DATUM = re.compile(
    r"""(?P<blank>(?:[ \t\r\n]|;[^\n]*\n)+)|(?P<open>\#?\()|(?P<close>\))|(?P<mark>'|`|,@?)
    |(?P<text>"(?:[^"\\\x00-\x09\x0b-\x1f\x7f]|\\["\\abnrt]|\\x[0-9a-fA-F]+;)*")
    |(?P<dot>(?<=[ \t\r\n])\.(?=[ \t\r\n]))
    |(?P<atom>\#\\(?:alarm|backspace|delete|escape|newline|null|return|space|tab|[!-~])|\#true|\#false|\#t|\#f
    |[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?
    |[A-Za-z!$%&*/:<=>?^_~][A-Za-z0-9!$%&*/:<=>?^_~+.@-]*
    |[+-](?:[A-Za-z!$%&*/:<=>?^_~+@-][A-Za-z0-9!$%&*/:<=>?^_~+.@-]*)?|\.\.\.)(?=[ \t\r\n()";]|$)""",
    re.VERBOSE,
)


@dataclass
class Level:
    """A list that is open."""

    kind: str
    data: int = 0
    data_at_dot: int | None = None
    mark_waits: bool = False


def is_datum(text: str) -> bool:
    """By tokens that end at delimiters (R7RS, section 7.1.1) and a stack of open lists."""
    stack, offset = [Level("top")], 0
    while offset < len(text):
        token = DATUM.match(text, offset)
        if token is None:
            return False
        offset, kind, level = token.end(), token.lastgroup, stack[-1]
        if kind == "open":
            stack.append(Level(token[0]))
        elif kind == "mark":
            level.mark_waits = True
        elif kind == "close":
            if len(stack) < 2 or level.mark_waits or level.data_at_dot == level.data:
                return False
            stack.pop()
        elif kind == "dot":
            if level.kind != "(" or not level.data or level.data_at_dot is not None or level.mark_waits:
                return False
            level.data_at_dot = level.data
        if kind in ("close", "text", "atom"):
            level = stack[-1]
            level.data, level.mark_waits = level.data + 1, False
            if level.data_at_dot is not None and level.data > level.data_at_dot + 1:
                return False
    return len(stack) == 1 and stack[0].data == 1 and not stack[0].mark_waits


EXACT: dict[str, Callable[[str], bool]] = {
    "json": is_json,
    "iso_date": is_date,
    "pddl_plan": is_plan,
    "s_expression": is_datum,
}
WITHIN: dict[str, Callable[[str], bool]] = {**EXACT, "csv": is_csv, "python_expression": is_python}


@pytest.mark.parametrize("name", WITHIN)
def test_what_is_accepted_is_of_the_language(name: str) -> None:
    compiled = grammar(name, "dynamic")
    for seed in range(60):
        text = walk(compiled, seed, 12 + seed)
        assert WITHIN[name](text), text
    for text in [*corpus(name), *mutants(corpus(name), 400, name)]:
        assert WITHIN[name](text) or not accepts(compiled, text), text


@pytest.mark.parametrize("name", EXACT)
def test_what_is_of_the_language_is_accepted(name: str) -> None:
    for text in [*corpus(name, ".invalid"), *mutants(corpus(name), 400, f"{name} 2")]:
        assert accepts(grammar(name, "dynamic"), text) == EXACT[name](text), text


def test_every_day_of_four_centuries() -> None:
    compiled, day = grammar("iso_date", "dynamic"), datetime.date(1999, 12, 20)
    while day.year < 2040:
        year, week, weekday = day.isocalendar()
        for text in (day.isoformat(), day.strftime("%Y-%j"), f"{year}-W{week:02}-{weekday}"):
            assert accepts(compiled, text), text
        day += datetime.timedelta(days=5)
    for year in range(1600, 2400):
        long = datetime.date(year, 12, 28).isocalendar().week == 53
        assert accepts(compiled, f"{year}-W53-7") == long, year


def test_what_the_csv_module_writes() -> None:
    random = Random(1)
    for _ in range(60):
        rows = [["".join(random.choices('ab ,"\né', k=random.randrange(4))) for _ in range(3)] for _ in range(3)]
        text = io.StringIO(newline="")
        csv.writer(text).writerows(rows)
        assert accepts(grammar("csv", "dynamic"), text.getvalue())


def test_python_expressions_as_python_writes_them() -> None:
    texts = [text for text in corpus("python_expression") if ":=" not in text]
    for text in texts:
        assert accepts(grammar("python_expression", "dynamic"), ast.unparse(ast.parse(text, mode="eval"))), text


@pytest.mark.full
def test_python_programs() -> None:
    """The subset by Lark's own LALR parser and indenter: all that it takes is Python."""
    parser = judge("python_subset", "contextual")
    for text in corpus("python_subset"):
        assert parses(parser, text) and is_python(text, "exec"), text
        assert parses(parser, ast.unparse(ast.parse(text)) + "\n"), text
    for text in corpus("python_subset", ".invalid"):
        assert not parses(parser, text) and not is_python(text, "exec"), text
    for text in mutants(corpus("python_subset"), 800, "programs"):
        assert is_python(text, "exec") or not parses(parser, text), text


@pytest.mark.parametrize("name", [path.stem for path in FOLDER.glob("*.gbnf")])
def test_gbnf_has_the_same_language(name: str) -> None:
    ours, other = compile_gbnf(FOLDER / f"{name}.gbnf", BYTES), grammar(name, "dynamic")
    texts = [*corpus(name), *corpus(name, ".invalid"), *mutants(corpus(name), 150, name)]
    for text in [*texts, *(walk(compiled, seed) for compiled in (ours, other) for seed in range(20))]:
        assert accepts(ours, text) == accepts(other, text), text
