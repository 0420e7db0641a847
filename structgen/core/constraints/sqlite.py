"""SELECT statements over the tables and columns of a SQLite database, as a constraint."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from itertools import count, islice

from structgen.core.constraints.text import GbnfConstraint, gbnf
from structgen.core.monitors.sqlite import ALIASES, sqlite_terminals
from structgen.core.monitors.sqlite_schema import SqliteSchema, folded

_SELECT = r"""
root ::= ("WITH " FIRST made (", " SECOND made)? " ")? query limit?
query ::= "SELECT " "DISTINCT "? items from group? order? | compound (" ORDER BY 1" " DESC"?)?
items ::= "*" | item (", " item)*
item ::= early | aggregate | "(SELECT " ("count(*)" | called) " FROM " TABLES (" WHERE " simple)? ")"
early ::= called | "CASE" (" WHEN " simple " THEN " result)+ (" ELSE " result)? " END"
simple ::= comparison ((" AND " | " OR ") comparison)*
comparison ::= called " " compared " " (literal | called) | called " IS " "NOT "? "NULL" | called " NOT"? " LIKE " text
result ::= literal | called
compound ::= one (union one)+ | two (union two)+ | three (union three)+
made ::= "(c1) AS (SELECT " item inner (union "SELECT " item inner)* limit? ")"
  | "(c1, c2) AS (SELECT " item ", " item inner (union "SELECT " item ", " item inner)* limit? ")"
  | "(c1, c2, c3) AS (SELECT " item ", " item ", " item inner limit? ")"
inner ::= " FROM " TABLES (" WHERE " simple)? group?
union ::= " UNION " | " UNION ALL " | " EXCEPT " | " INTERSECT "
one ::= "SELECT " item from group?
two ::= "SELECT " item ", " item from group?
three ::= "SELECT " item ", " item ", " item from group?
from ::= " FROM " TABLES (JOINED " ON " condition)* (" WHERE " condition)?
group ::= " GROUP BY " COLUMN (", " COLUMN)* (" HAVING " aggregate " " compared " " literal)?
order ::= " ORDER BY " COLUMN " DESC"? (", " COLUMN " DESC"?)*
limit ::= " LIMIT " [1-9] [0-9]{0,3}
condition ::= all (" OR " all)*
all ::= test (" AND " test)*
test ::= "NOT "? "(" condition ")" | value " " compared " " (literal | value) | value " IS " "NOT "? "NULL"
  | value " NOT"? " IN (" (literal (", " literal)* | subquery) ")" | value " NOT"? " LIKE " text
  | value " BETWEEN " literal " AND " literal | "NOT "? "EXISTS (" subquery ")"
subquery ::= "SELECT " (early | "count(*)") from
aggregate ::= "count(*)" | ("count" | "sum" | "avg" | "min" | "max") "(" "DISTINCT "? COLUMN ")"
value ::= called | "(" subquery ")"
  | "CASE" (" WHEN " condition " THEN " (literal | value))+ (" ELSE " (literal | value))? " END"
called ::= COLUMN | ("lower" | "upper" | "length" | "abs" | "round" | "trim" | "date") "(" COLUMN ")"
compared ::= "=" | "<>" | "<" | "<=" | ">" | ">="
literal ::= "-"? ("0" | [1-9] [0-9]{0,14}) ("." [0-9]{1,9})? | text
text ::= "'" ([^'\x00-\x1f] | "''"){0,200} "'"
"""
# Before its FROM a SELECT holds no JOIN, and one in WITH none at all: where no table may be joined, a statement must be
# able to end without a name. There is no WITH RECURSIVE: SQLite prepares what never ends, too.


def sqlite_select(database: sqlite3.Connection | SqliteSchema, aliases: Iterable[str] = ALIASES) -> GbnfConstraint:
    """A SELECT statement that SQLite prepares, in which every table and column exists. The value is its text.

    It has joins, subqueries as values and after IN, CASE, conditions, groups, aggregates, UNION and its like (of one to
    three columns), order and limit, and up to two tables of its own, ``WITH q1(c1, c2) AS (SELECT ...)``; keywords are
    capitals, with one blank between words. For a grammar of your own see ``sqlite_terminals``.

    Args:
        database: an open connection, whose names are read once, or what was read of one.
        aliases: names that tables may be given.

    Raises:
        ConstraintError: the database has no tables; an alias that is none.
    """
    schema = SqliteSchema.of(database)
    tables = {folded(table) for table in schema.tables}
    free = (name for number in count(1) if (name := f"q{number}") not in tables)
    made = tuple(islice(free, 2))
    source = _SELECT.replace("FIRST", f'"{made[0]}"').replace("SECOND", f'"{made[1]}"')
    return gbnf(source, terminals=sqlite_terminals(schema, aliases, made))
