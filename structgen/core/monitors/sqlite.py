"""SQL over the names of a SQLite database: which tables and columns may come, by the statement so far.

Names are SQLite's: ASCII case does not matter, what is no plain word or is a keyword stands in double quotes. A column
is looked up as SQLite does it: in the tables of its SELECT, then in those around it, by name, or by table or alias and
name; in each SELECT it must be in one table only. Columns before FROM are of one table, or of two that a foreign key
links, so that the tables that follow can always be named.

``WITH q1(c1, c2) AS (...)`` makes a table of the statement: of the names that the terminals were told, with the columns
that stand in its parentheses, from the end of its SELECT on.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

from structgen.core.bounded_cache import BoundedCache
from structgen.core.monitors.sqlite_schema import KEYWORDS, WORD, SqliteSchema, folded, spelled
from structgen.core.text_sets.names import NameSet
from structgen.errors import ConstraintError

ALIASES = ("t1", "t2", "t3")
WITH_COLUMNS = ("c1", "c2", "c3")
MAX_ANSWERS = 256
MAX_DATABASES = 64  # with tables of statements, each by these
_TOKEN = re.compile(r"""'(?:[^']|'')*'?|"(?:[^"]|"")*"?|[\w$]+|[^\s\w]""", re.ASCII)
_ENDS_TABLES = frozenset({"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "ON"})


class _Reference(NamedTuple):
    """A column: the table or alias that is named (folded; "": none), and the column (folded)."""

    table: str
    column: str


_Tables = tuple[tuple[str, str], ...]
"""Tables of a SELECT: the name by which each is called there, and the table, both folded."""


@dataclass
class _Scope:
    """A SELECT so far.

    Attributes:
        references: columns before FROM.
        tables: see `_Tables`.
        free: columns that were named without a table, of this SELECT or within it.
        phase: "items", "tables" or "conditions".
    """

    references: set[_Reference] = field(default_factory=set)
    tables: _Tables = ()
    free: set[str] = field(default_factory=set)
    phase: str = "items"


class _Database:
    """The names of a schema with aliases, folded and as they are written, and what statements may name next.

    Args:
        with_tables: names that tables of a statement may have.
    """

    def __init__(self, schema: SqliteSchema, aliases: Iterable[str], with_tables: Iterable[str] = ()) -> None:
        self.schema = schema
        self.aliases, self.with_tables = tuple(aliases), tuple(with_tables)
        self._extended: BoundedCache[tuple[str, tuple[str, ...]], _Database] = BoundedCache(MAX_DATABASES)
        self.columns = {folded(table): {folded(c): c for c in columns} for table, columns in schema.tables.items()}
        self.sources: dict[str, _Tables] = dict(self._sources())
        self.joins = {text: name for text, name in self._joins()}
        self.references: dict[str, _Reference] = dict(self._references())
        self.all_references = frozenset(self.references.values())

    def __reduce__(self) -> tuple[Any, ...]:
        return _Database, (self.schema, self.aliases, self.with_tables)

    @property
    def made(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """The tables of the statement, with their columns."""
        return tuple(each for each in self.schema.tables.items() if each[0] in self.with_tables)

    @cached_property
    def widest(self) -> _Database:
        """With all tables that a statement may make."""
        database = self
        for name in self.with_tables:
            database = database.extended(name, WITH_COLUMNS)
        return database

    def extended(self, name: str, columns: tuple[str, ...]) -> _Database:
        """With one more table; itself if no table of a statement has such a name, or such columns."""
        is_named = name in self.with_tables and set(columns) <= set(WITH_COLUMNS)
        if not is_named or len(set(columns)) < len(columns) or folded(name) in self.columns:
            return self
        database = self._extended.get((name, columns))
        if database is None:
            schema = SqliteSchema({**self.schema.tables, name: columns}, self.schema.links)
            database = self._extended.put((name, columns), _Database(schema, self.aliases, self.with_tables))
        return database

    def _sources(self) -> Iterator[tuple[str, _Tables]]:
        """What may stand after FROM: a table, with an alias or without, and two that are linked."""
        for table in self.schema.tables:
            yield spelled(table), ((folded(table), folded(table)),)
            for alias in self.aliases:
                yield f"{spelled(table)} AS {spelled(alias)}", ((folded(alias), folded(table)),)
        for table, column, other, target in self.schema.links:
            for ends in (((table, column), (other, target)), ((other, target), (table, column))):
                yield from self._linked(*ends)

    def _linked(self, one: tuple[str, str], two: tuple[str, str]) -> Iterator[tuple[str, _Tables]]:
        """Two tables with the condition that links them: of each its name and the column."""
        tables = one[0], two[0]
        for names in (tables, self.aliases[:2]):
            if len({*map(folded, names)}) == 2:
                pairs = zip(tables, names, strict=True)
                called = [spelled(t) if t == n else f"{spelled(t)} AS {spelled(n)}" for t, n in pairs]
                condition = f"{spelled(names[0])}.{spelled(one[1])} = {spelled(names[1])}.{spelled(two[1])}"
                text = f"{called[0]} JOIN {called[1]} ON {condition}"
                yield text, tuple(zip(map(folded, names), map(folded, tables), strict=True))

    def _joins(self) -> Iterator[tuple[str, tuple[str, str]]]:
        for table, kind in product(self.schema.tables, (" JOIN ", " LEFT JOIN ")):
            yield f"{kind}{spelled(table)}", (folded(table), folded(table))
            for alias in self.aliases:
                yield f"{kind}{spelled(table)} AS {spelled(alias)}", (folded(alias), folded(table))

    def _references(self) -> Iterator[tuple[str, _Reference]]:
        for table, columns in self.schema.tables.items():
            for column in columns:
                yield spelled(column), _Reference("", folded(column))
                for name in (table, *self.aliases):
                    yield f"{spelled(name)}.{spelled(column)}", _Reference(folded(name), folded(column))

    # --- what may come ---
    def holders(self, reference: _Reference, tables: _Tables) -> int:
        """In how many tables a column is."""
        return sum(reference.table in ("", name) and reference.column in self.columns[table] for name, table in tables)

    def is_known(self, reference: _Reference, scopes: list[_Scope]) -> bool:
        """Whether SQLite finds the column, in one of the SELECTs from the innermost on."""
        for scope in reversed(scopes):
            count = self.holders(reference, scope.tables)
            if count or scope.phase == "items":
                return count == 1
        return False

    def fits(self, references: Iterable[_Reference], tables: _Tables) -> bool:
        """Whether each column is in one of the tables, and in one only."""
        return all(self.holders(reference, tables) == 1 for reference in references)


class _Statement:
    """The SELECTs that a text is in, outermost first.

    Attributes:
        scopes: they.
        database: with the tables that the statement has made so far.
    """

    def __init__(self, database: _Database, text: str) -> None:
        self.database = database
        self._made: tuple[str, tuple[str, ...]] | None = None  # the table that the SELECT in parentheses is of
        self._frames: list[_Scope | None] = []
        tokens = [token for token in _TOKEN.findall(text) if token[0] != "'"]
        number = 0
        while number < len(tokens):
            number += self._read(tokens, number)
        self.scopes = [scope for scope in self._frames if scope is not None]

    def _read(self, tokens: list[str], number: int) -> int:
        """Take the token of a number; gives how many were read."""
        token, word = tokens[number], tokens[number].upper()
        scope = next((frame for frame in reversed(self._frames) if frame is not None), None)
        if token == "(":
            self._frames.append(None)
        elif token == ")":
            del self._frames[-1:]
            if not self._frames and self._made is not None:
                self.database, self._made = self.database.extended(*self._made), None
        elif word == "SELECT":
            self._frames[-1:] = [_Scope()]
        elif not self._frames and word not in KEYWORDS:
            return self._with(tokens, number)
        elif scope is None or (number and tokens[number - 1].upper() == "AS"):
            pass
        elif word in ("FROM", "JOIN"):
            return self._table(scope, tokens, number)
        elif word in _ENDS_TABLES:
            scope.phase = "conditions"
        elif word not in KEYWORDS and (token[0] == '"' or token[0].isalpha() or token[0] == "_"):
            return self._reference(scope, tokens, number)
        return 1

    def _with(self, tokens: list[str], number: int) -> int:
        """A table of the statement: its name, its columns in parentheses, AS."""
        if tokens[number + 1 : number + 2] != ["("] or ")" not in tokens[number:]:
            return 1
        end = tokens.index(")", number)
        self._made = tokens[number], tuple(tokens[number + 2 : end : 2])
        return end - number + 1

    def _table(self, scope: _Scope, tokens: list[str], number: int) -> int:
        scope.phase = "tables"
        following = tokens[number + 1 : number + 4]
        if not following:
            return 1
        has_alias = len(following) == 3 and following[1].upper() == "AS"
        scope.tables += ((folded(following[2 if has_alias else 0]), folded(following[0])),)
        return 4 if has_alias else 2

    def _reference(self, scope: _Scope, tokens: list[str], number: int) -> int:
        following = tokens[number + 1 : number + 3]
        if following[:1] == ["("]:
            return 1  # a function
        is_of_table = len(following) == 2 and following[0] == "."
        reference = _Reference("", folded(tokens[number]))
        if is_of_table:
            reference = _Reference(folded(tokens[number]), folded(following[1]))
        if reference not in self.database.all_references:
            return 1
        if scope.phase == "items":
            scope.references.add(reference)
        if not reference.table:
            for frame in self._frames:
                if frame is not None:
                    frame.free.add(reference.column)
        return 3 if is_of_table else 1


class _SqliteMonitor:
    """What the monitors of a database have in common: the answers by what they depend on."""

    def __init__(self, database: _Database) -> None:
        self._database = database
        self._answers: BoundedCache[Hashable, NameSet | tuple[str, ...]] = BoundedCache(MAX_ANSWERS)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._database,)

    def suggest(self, text: str) -> NameSet | tuple[str, ...]:
        """See `structgen.core.monitors.protocol.Monitor`."""
        statement = _Statement(self._database, text)
        database, scopes = statement.database, statement.scopes
        asked = ((scope.phase, frozenset(scope.references), scope.tables, frozenset(scope.free)) for scope in scopes)
        key = database.made, *asked
        answer = self._answers.get(key)
        if answer is None:
            names = tuple(self._names(database, scopes)) if scopes else ()
            answer = self._answers.put(key, NameSet.build(names) if names else ())
        return answer

    def _names(self, database: _Database, scopes: list[_Scope]) -> Iterator[str]:
        raise NotImplementedError


class SqliteTables(_SqliteMonitor):
    """What may stand after FROM: tables that have the columns before it."""

    @cached_property
    def names(self) -> NameSet:
        """See `structgen.core.monitors.protocol.TerminalMonitor`."""
        return NameSet.build(self._database.widest.sources)

    def _names(self, database: _Database, scopes: list[_Scope]) -> Iterator[str]:
        references = scopes[-1].references
        return (text for text, tables in database.sources.items() if database.fits(references, tables))


class SqliteJoins(_SqliteMonitor):
    """`` JOIN orders AS t2``: one more table, of another name, in which no column is that was named without a table."""

    @cached_property
    def names(self) -> NameSet:
        """See `structgen.core.monitors.protocol.TerminalMonitor`."""
        return NameSet.build(self._database.widest.joins)

    def _names(self, database: _Database, scopes: list[_Scope]) -> Iterator[str]:
        scope = scopes[-1]
        taken = {name for name, _ in scope.tables}
        for text, (name, table) in database.joins.items():
            if name not in taken and scope.free.isdisjoint(database.columns[table]):
                yield text


class SqliteColumns(_SqliteMonitor):
    """Columns, with their table or its alias or without, that are in one of the tables that there are or may be."""

    @cached_property
    def names(self) -> NameSet:
        """See `structgen.core.monitors.protocol.TerminalMonitor`."""
        return NameSet.build(self._database.widest.references)

    def _names(self, database: _Database, scopes: list[_Scope]) -> Iterator[str]:
        scope = scopes[-1]
        if scope.phase != "items":
            yield from (text for text, one in database.references.items() if database.is_known(one, scopes))
            return
        left = [tables for tables in database.sources.values() if database.fits(scope.references, tables)]
        for text, one in database.references.items():
            if any(database.holders(one, tables) == 1 for tables in left):
                yield text


def sqlite_terminals(
    database: sqlite3.Connection | SqliteSchema, aliases: Iterable[str] = ALIASES, with_tables: Iterable[str] = ()
) -> dict[str, SqliteTables | SqliteJoins | SqliteColumns]:
    """Terminals of a grammar of SELECT statements whose names are those of a database: give them as ``terminals=``.

    ``TABLES`` stands after ``FROM``, ``JOINED`` after that, ``COLUMN`` wherever a column does. What they allow can be
    completed, and names what exists, if each SELECT of the grammar has a FROM, and a subquery before the FROM around it
    no ``JOINED``. What else SQLite asks of a statement is the grammar's matter.

    Args:
        database: an open connection, which is read once, or what was read of one.
        aliases: names that tables may be given (``orders AS t1``).
        with_tables: names of tables that the grammar makes: after ``WITH q1(c1, c2) AS (SELECT ...)`` there is ``q1``
            with these columns, of ``c1``, ``c2`` and ``c3`` each once. A SELECT in such parentheses has no ``JOINED``.

    Raises:
        ConstraintError: no tables; a name that is none, or that a table of the database has.
    """
    schema = SqliteSchema.of(database)
    for names in (aliases, with_tables):
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise ConstraintError(f"names of tables are words in a list, not {names!r:.100}")
    aliases, with_tables = tuple(aliases), tuple(with_tables)
    for name in (*aliases, *with_tables):
        if not isinstance(name, str) or not WORD.fullmatch(name) or name.upper() in KEYWORDS:
            raise ConstraintError(f"an alias is a word that is no keyword of SQL, not {name!r:.100}")
    taken = {folded(table) for table in schema.tables}
    for name in with_tables:
        if folded(name) in taken:
            raise ConstraintError(f"a statement cannot make the table {name!r:.100}: there is one; choose another name")
        taken.add(folded(name))
    of_all = _Database(schema, aliases, with_tables)
    return {"TABLES": SqliteTables(of_all), "JOINED": SqliteJoins(of_all), "COLUMN": SqliteColumns(of_all)}
