"""The door to what is private in Lark: its loader, its parse table, its scanners, and the conflicts it tells its log.

No other module touches these (``tests/test_fences.py``); the versions of Lark that are known to have them stand in
pyproject.toml. Imports Lark when used.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any


@dataclass(frozen=True, eq=False)
class Lexer:
    """Names of the terminals that a lexer tries, in order, and those of each one's keywords."""

    terminals: list[str]
    keywords: dict[str, list[str]]


@dataclass(frozen=True, eq=False)
class LalrParser:
    """What Lark has built for ``parser="lalr", lexer="contextual"``.

    Attributes:
        terminals: definitions by name, in Lark's order.
        states: by state and name of a symbol, (is it a reduction, rule) or (False, next state).
        start, end: the states where parsing begins and ends.
        ignored: names of ignored terminals.
        newline: name of the terminal that the indenter looks at; None without one.
        conflicts: whether Lark resolved conflicts, or priorities decide.
    """

    terminals: dict[str, Any]
    states: Mapping[int, Mapping[str, tuple[bool, Any]]]
    start: int
    end: int
    ignored: list[str]
    newline: str | None
    conflicts: bool
    _contextual: Any

    def lexers(self) -> tuple[list[Lexer], dict[int, int]]:
        """The distinct lexers, and the number of each state's. Compiles their expressions."""
        lexers, numbers, lexer_of = list[Lexer](), dict[int, int](), dict[int, int]()
        for state, lexer in self._contextual.lexers.items():
            if id(lexer) not in numbers:
                numbers[id(lexer)] = len(lexers)
                terminals = _names(lexer.scanner)  # which makes the callbacks, too
                keywords = {name: _names(callback.scanner) for name, callback in lexer.callback.items()}
                lexers.append(Lexer(terminals, keywords))
            lexer_of[state] = numbers[id(lexer)]
        return lexers, lexer_of


class MissingImport(Exception):
    """What ``%import`` names is in none of the places where it is looked for. ``name``: of the grammar."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def load_grammar(text: str, file: Path | None, folders: list[str]) -> Any:
    """``lark.load_grammar.Grammar``: terminal and rule definitions after imports and ``%extend``.

    A grammar that is no file (None) imports from ``folders`` and Lark's library, and from nowhere else.

    Raises:
        MissingImport: it imports from another grammar, which is in neither.
    """
    from lark.load_grammar import PackageResource, stdlib_loader
    from lark.load_grammar import load_grammar as load

    def library(base: Any, path: str) -> tuple[Any, str]:
        """The last place: Lark would go on to files below the working directory, if only to say that they are there."""
        if isinstance(base, str):  # a file imports what lies beside it, which is looked for next
            raise FileNotFoundError(path)
        try:
            found: tuple[Any, str] = stdlib_loader(base, path)
        except OSError:
            raise MissingImport(PurePath(path).stem) from None
        return found

    class Text(PackageResource):
        """To Lark, what a package imports is for loaders to find; what another name imports, are files."""

        def __str__(self) -> str:
            return "<grammar>"

    name = Text("", "") if file is None else str(file)
    grammar, _ = load(text, name, [*folders, library], False)  # type: ignore[no-untyped-call]
    return grammar


def build_lalr(grammar: Any, start: str, postlex: Any) -> LalrParser:
    """Build Lark's own parser of a loaded grammar and read it.

    Not for several threads at once: Lark's log, which alone tells of conflicts, is listened to meanwhile.

    Raises:
        re.error: a terminal's expression, among those of its lexer, cannot be used. Others: what Lark raises.
    """
    from lark import Lark
    from lark.utils import logger

    heard = _Conflicts()
    level, handlers, propagate = logger.level, logger.handlers, logger.propagate
    logger.handlers, logger.propagate = [heard], False
    logger.setLevel(logging.DEBUG)
    try:
        lark = Lark(grammar, parser="lalr", lexer="contextual", start=start, postlex=postlex)
    finally:
        logger.setLevel(level)
        logger.handlers, logger.propagate = handlers, propagate
    return _read(lark, start, heard.any or any(rule.options.priority for rule in lark.rules))


def _read(lark: Any, start: str, conflicts: bool) -> LalrParser:
    table, postlex = lark.parser.parser._parse_table, lark.options.postlex
    rows = table.states.items()
    return LalrParser(
        {terminal.name: terminal for terminal in lark.terminals},
        {state: {name: (str(kind) == "Reduce", to) for name, (kind, to) in row.items()} for state, row in rows},
        table.start_states[start],
        table.end_states[start],
        list(lark.ignore_tokens),
        postlex.NL_type if postlex else None,
        bool(conflicts),
        lark.parser.lexer.lexer if postlex else lark.parser.lexer,
    )


def _names(scanner: Any) -> list[str]:
    return [terminal.name for terminal in scanner.terminals]


class _Conflicts(logging.Handler):
    """Listens to Lark's log for conflicts that it resolves."""

    any = False

    def emit(self, record: logging.LogRecord) -> None:
        """Note a conflict."""
        self.any |= "conflict" in record.getMessage().lower()
