"""The tables of a SQLite database and their columns, and how SQLite spells and compares names."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from structgen.errors import ConstraintError

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ALL_KEYWORDS = """
ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN BY CASCADE CASE
CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP
DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE EXCEPT EXCLUDE EXCLUSIVE
EXISTS EXPLAIN FAIL FALSE FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB GROUP GROUPS HAVING IF IGNORE
IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL JOIN KEY LAST LEFT LIKE LIMIT MATCH
MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR ORDER OTHERS OUTER OVER PARTITION PLAN PRAGMA
PRECEDING PRIMARY QUERY RAISE RANGE RECURSIVE REFERENCES REGEXP REINDEX RELEASE RENAME REPLACE RESTRICT RETURNING
RIGHT ROLLBACK ROW ROWS SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO TRANSACTION TRIGGER TRUE UNBOUNDED
UNION UNIQUE UPDATE USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW WITH WITHOUT
"""  # of SQLite 3.50, and the names of truth values
KEYWORDS = frozenset(_ALL_KEYWORDS.split())


def spelled(name: str) -> str:
    """A name as SQL writes it."""
    if WORD.fullmatch(name) and name.upper() not in KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def folded(text: str) -> str:
    """A name without its quotes and without ASCII case, by which SQLite compares names."""
    if text[:1] == '"':
        text = text[1:-1].replace('""', '"')
    return "".join(char.lower() if char.isascii() else char for char in text)


_Link = tuple[str, str, str, str]


@dataclass(frozen=True)
class SqliteSchema:
    """Tables and views of a database, and what links them.

    Attributes:
        tables: the columns, by table.
        links: foreign keys of one column: table, column, the table and the column that it refers to.
    """

    tables: dict[str, tuple[str, ...]]
    links: tuple[_Link, ...] = ()

    def __hash__(self) -> int:
        return hash((tuple(self.tables.items()), self.links))

    @classmethod
    def of(cls, database: sqlite3.Connection | SqliteSchema) -> SqliteSchema:
        """That of an open database, or another one; without tables that have no column that can be seen.

        Raises:
            ConstraintError: it is neither, cannot be read, or no table has a column.
        """
        if not isinstance(database, (SqliteSchema, sqlite3.Connection)):
            raise ConstraintError(f"expected an open sqlite3.Connection or a SqliteSchema, not {database!r:.100}")
        try:
            schema = database if isinstance(database, SqliteSchema) else cls.read(database)
        except sqlite3.Error as error:
            raise ConstraintError(f"the tables of the database cannot be read: {error}") from error
        tables = {table: columns for table, columns in schema.tables.items() if columns}
        if not tables:
            raise ConstraintError("the database has no tables to ask about, or none has a column")
        return cls(tables, schema.links)

    @classmethod
    def read(cls, connection: sqlite3.Connection) -> SqliteSchema:
        """That of an open database: its tables and the views that can be read, hidden columns left out.

        Raises:
            ConstraintError: it has none.
        """
        query = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
        )
        tables: dict[str, tuple[str, ...]] = {}
        for (table,) in connection.execute(query + " ORDER BY name").fetchall():
            try:
                connection.execute(f"EXPLAIN SELECT * FROM {spelled(table)}")
                columns = connection.execute(f"PRAGMA table_xinfo({spelled(table)})").fetchall()
            except sqlite3.Error:  # a view of what is no longer there, a module that is not loaded
                continue
            tables[table] = tuple(name for _, name, *_, hidden in columns if hidden != 1)
        if not tables:
            raise ConstraintError("the database has no tables to ask about")
        return cls(tables, tuple(cls._links(connection, tables)))

    @staticmethod
    def _links(connection: sqlite3.Connection, tables: Mapping[str, tuple[str, ...]]) -> Iterator[_Link]:
        by_name = {folded(name): name for name in tables}
        for table in tables:
            keys = connection.execute(f"PRAGMA foreign_key_list({spelled(table)})").fetchall()
            numbers = [key[0] for key in keys]
            for number, _, other, column, target, *_ in keys:
                other = by_name.get(folded(other))
                if other is None or numbers.count(number) > 1:
                    continue
                if target is None:  # the primary key is meant
                    primary = [c[1] for c in connection.execute(f"PRAGMA table_info({spelled(other)})") if c[5]]
                    target = primary[0] if len(primary) == 1 else None
                columns = {folded(name): name for name in tables[other]}
                if target is not None and folded(target) in columns:
                    yield table, column, other, columns[folded(target)]
