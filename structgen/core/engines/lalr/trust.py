"""Whether what an LALR parser may take next can always be written, so that no parser is at a dead end."""

from __future__ import annotations

from dataclasses import replace

from structgen.core.engines.lalr.lexer_simulation import Lexemes
from structgen.core.engines.lalr.tables import DEDENT, INDENT, LalrTables


def with_trust(tables: LalrTables) -> LalrTables:
    """The tables, distrusted too if some parser may run into a dead end because of what its lexers find.

    A parser that takes a terminal is at a viable prefix if Lark has resolved no conflict: some row of terminals
    completes it. That is what may come behind the first symbols of rules. If all of it can be written with terminals
    that each lexer ends cleanly wherever they may stand, there is a text. Linear in the parse table, nearly.
    """
    if tables.distrust:
        return tables
    clean = frozenset(_clean_everywhere(tables))
    return replace(tables, distrust=not _can_go_on(tables, clean), clean=clean)


def _can_go_on(tables: LalrTables, clean: frozenset[int]) -> bool:
    """Whether everything behind the first symbols of rules has a text of clean terminals."""
    written: set[int] = set()  # nonterminals with such a text

    def is_written(symbol: int) -> bool:
        return symbol in written if symbol >= 0 else ~symbol in clean

    grown = True
    while grown:
        fresh = {origin for origin, body in tables.rules if origin not in written and all(map(is_written, body))}
        grown = bool(fresh)
        written |= fresh
    return all(is_written(symbol) for _, body in tables.rules for symbol in body[1:])


def _clean_everywhere(tables: LalrTables) -> set[int]:
    """The terminals that can be finished cleanly in every state that takes them; the indenter sees to its own."""
    lexemes, names = Lexemes(tables), tables.terminals
    found = set(range(len(names) - 1))
    for state, row in enumerate(tables.action):
        taken = {int(terminal) for terminal in row.nonzero()[0]} & found
        if taken:
            found -= taken - lexemes.clean_start(int(tables.lexer_of[state])).keys()
            found |= {t for t in taken if t == tables.newline or names[t] in (INDENT, DEDENT)}
    return found
