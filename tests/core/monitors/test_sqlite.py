"""SELECT statements over databases, judged by SQLite: it prepares each, and those that it prepares may be written."""

from __future__ import annotations

import pickle
import random
import re
import sqlite3
from typing import Any

import pytest

import structgen
from structgen.core.constraints.parts import BYTES
from structgen.core.engines.laws import check_laws, mask_of
from structgen.core.monitors.sqlite import sqlite_terminals
from structgen.core.monitors.sqlite_schema import KEYWORDS, SqliteSchema
from structgen.errors import ConstraintError
from tests.many import MANY, cases

DATABASES = {
    "shop": """
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
        CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customers(id), total REAL, placed);
        CREATE TABLE items (order_id INTEGER REFERENCES orders, product INTEGER REFERENCES products(id), count INTEGER);
        CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, price REAL);
    """,
    "odd names": """
        CREATE TABLE "order" ("group" TEXT, "a b" TEXT, "say ""hi"" x" INTEGER, Größe REAL, "true" INTEGER);
        CREATE TABLE "T1" (x, y, "X y");
        CREATE TABLE node (id INTEGER PRIMARY KEY, parent INTEGER REFERENCES node(id), key TEXT);
        CREATE VIEW big AS SELECT "group", count(*) AS n FROM "order" GROUP BY 1;
        CREATE VIEW broken AS SELECT missing FROM nowhere;
        CREATE TABLE made (a INTEGER, b INTEGER GENERATED ALWAYS AS (a + 1) VIRTUAL);
    """,
    "one table": "CREATE TABLE t (c);",
    "taken names": """
        CREATE TABLE q1 (c1, c2, q1); CREATE TABLE c1 (c1 REFERENCES q1(c1), ");--" INT, "c'd" INT, "g
h" INT);
        CREATE TABLE count ("with" INT, "recursive" INT, "materialized" INT, lower INT, "é" INT, "﻿" INT);
    """,
}
WORDS = [
    "SELECT ",
    " FROM ",
    " JOIN ",
    " ON ",
    " WHERE ",
    "name",
    "t1.",
    ".id",
    " AND ",
    " = ",
    ", ",
    " AS t",
    "count(",
]
WORDS += [" IN (SELECT ", "(SELECT ", " UNION SELECT ", " EXCEPT SELECT ", "CASE WHEN ", " THEN ", " ELSE ", " END"]
WORDS += [" EXISTS (SELECT ", " GROUP BY ", "WITH q1(c1) AS (SELECT ", "WITH q1(c1, c2", "WITH ", ", q2(", ") SELECT "]
WORDS += ["q1", "q2", "c1", "c2", ".c1"]
FORMS = [r" IN \(SELECT ", r"^SELECT \(SELECT ", " UNION ", " EXCEPT | INTERSECT ", " JOIN ", " GROUP BY ", "EXISTS"]
FORMS += ["SELECT CASE WHEN .* END .*FROM", "WHERE .*CASE WHEN .* END", r"WHERE .*\(SELECT "]
FORMS += [r"^WITH q\d.* q\d\(.*FROM q\d", r"^WITH q\d.*FROM q\d.*JOIN q\d", r"^WITH q\d.*JOIN q\d"]
TOKENS: list[bytes | None] = [*(bytes([byte]) for byte in range(256)), *(word.encode() for word in WORDS), None]
VOCABULARY = structgen.Vocabulary(TOKENS, eos_token_ids=len(TOKENS) - 1)


def opened(name: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.executescript(DATABASES[name])
    return connection


def prepares(connection: sqlite3.Connection, statement: str) -> bool:
    try:
        connection.execute(f"EXPLAIN {statement}")
    except sqlite3.Error:
        return False
    return True


def whole_queries(statement: str) -> list[str]:
    """It, and what reads each table that it makes: SQLite looks at those alone that are read."""
    depth, made = 0, list[str]()
    for match in re.finditer(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]|SELECT|\bq\d(?=\()""", statement):
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if not depth and match[0][0] == "q":
            made.append(match[0])
        elif not depth and match[0] == "SELECT":
            return [statement, *(f"{statement[: match.start()]}SELECT * FROM {table}" for table in made)]
    raise AssertionError(statement)


def written(grammar: structgen.CompiledGrammar, rng: random.Random) -> str:
    """A statement of random tokens, ended by the shortest completion."""
    matcher, text = grammar.matcher(), b""
    for _ in range(rng.choice([5, 20, 40, 120])):
        allowed = [token for token in map(int, mask_of(matcher).nonzero()[0]) if TOKENS[token]]
        words = [token for token in allowed if token >= 256]
        if not allowed:
            break
        token = rng.choice(words if words and rng.random() < 0.65 else allowed)
        assert matcher.accept_token(token)
        text += TOKENS[token] or b""
    end = matcher.shortest_completion()
    assert matcher.accept_bytes(end) and matcher.is_accepting()
    assert matcher.stats["empty_suggestions"] == 0
    return (text + end).decode()


@pytest.mark.parametrize("name", DATABASES)
def test_what_is_written_is_prepared_and_all_names_exist(name: str) -> None:
    connection = opened(name)
    schema = SqliteSchema.read(connection)
    assert "broken" not in schema.tables
    names = {*schema.tables, *(column for columns in schema.tables.values() for column in columns)}
    grammar = structgen.sqlite_select(connection).compile(VOCABULARY)
    left = set(FORMS)
    for seed in cases(1_000, 12):
        statement = written(grammar, random.Random(seed))
        for query in whole_queries(statement):
            assert prepares(connection, query), query
        left -= {form for form in left if re.search(form, statement)}
        quoted = filter(None, re.findall(r"""'(?:[^']|'')*'|"((?:[^"]|"")+)\"""", statement))
        assert {text.replace('""', '"') for text in quoted} <= names, statement
    assert not left or not MANY, left


SHAPES = [
    "SELECT {} FROM customers",
    "SELECT {} FROM customers AS t1",
    "SELECT {} FROM orders JOIN customers ON orders.customer = customers.id",
    "SELECT {} FROM orders AS t1 JOIN customers AS t2 ON t1.customer = t2.id",
    "SELECT count(*) FROM products AS t1 JOIN items AS t2 ON t1.id = t2.product WHERE {} IS NULL",
    "SELECT count(*) FROM orders WHERE orders.id IN (SELECT items.order_id FROM items WHERE {} = 1)",
    "SELECT name, CASE WHEN {} = 1 THEN 'a' ELSE city END FROM customers",
    "SELECT name FROM customers UNION SELECT {} FROM orders",
    "SELECT total FROM orders WHERE id IN (SELECT order_id FROM items WHERE count = 1) ORDER BY {} DESC",
    "WITH q1(c1) AS (SELECT name FROM customers) SELECT {} FROM q1",
    "WITH q1(c1, c2) AS (SELECT {}, count(*) FROM customers) SELECT c2 FROM q1 AS t1",
    "WITH q1(c1, c2) AS (SELECT id, name FROM products) SELECT count(*) FROM items JOIN q1 ON {} = product",
    "WITH q1(c1) AS (SELECT id FROM orders), q2(c1) AS (SELECT {} FROM q1) SELECT q2.c1 FROM q2",
    "WITH q1(c1) AS (SELECT id FROM orders), q2(c1) AS (SELECT c1 FROM q1) SELECT {} FROM q2",
]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_column_may_come_where_sqlite_finds_it_and_nowhere_else(shape: str) -> None:
    connection = opened("shop")
    columns = sqlite_terminals(connection, with_tables=["q1", "q2"])["COLUMN"].names
    grammar = structgen.sqlite_select(connection).compile(BYTES)
    reached = 0
    for column in columns:
        statement = shape.format(column)
        matcher = grammar.matcher()
        taken = matcher.accept_bytes(statement.encode()) and matcher.is_accepting()
        assert taken == prepares(connection, statement), statement
        reached += taken
    assert 0 < reached < len(columns)


def test_a_join_never_makes_a_column_ambiguous() -> None:
    connection = opened("shop")
    grammar = structgen.sqlite_select(connection).compile(BYTES)
    for first in ("id", "city", "customers.id", "customers.city"):
        for table in ("orders", "items AS t1", "products", "customers", "customers AS t2"):
            name = table.split()[-1]
            statement = f"SELECT {first} FROM customers JOIN {table} ON 1 = 1"
            matcher = grammar.matcher()
            taken = matcher.accept_bytes(f"SELECT {first} FROM customers JOIN {table} ON ".encode())
            assert taken == (prepares(connection, statement) and name != "customers"), statement


def test_tables_that_a_statement_makes_are_there_from_their_end_on() -> None:
    connection = opened("shop")
    grammar = structgen.sqlite_select(connection).compile(BYTES)
    for statement, expected in (
        ("WITH q1(c1) AS (SELECT name FROM customers) SELECT c1 FROM q1", True),
        ("WITH q1(c1) AS (SELECT name FROM customers LIMIT 3) SELECT name FROM orders, q1", False),
        ("WITH q1(c1) AS (SELECT name FROM q1) SELECT c1 FROM q1", False),
        ("WITH q1(c1) AS (SELECT name FROM q2), q2(c1) AS (SELECT name FROM customers) SELECT c1 FROM q1", False),
        ("WITH q1(c1) AS (SELECT name FROM customers) SELECT c2 FROM q1", False),
        ("WITH q1(c1) AS (SELECT name FROM customers) SELECT c1 FROM q2", False),
        ("WITH q1(c1, c2) AS (SELECT name FROM customers) SELECT c1 FROM q1", False),
        ("WITH q1(c1) AS (SELECT sum(total) FROM orders GROUP BY customer) SELECT max(c1) FROM q1", True),
        ("WITH q1(c1) AS (SELECT id FROM orders UNION SELECT id FROM items) SELECT count(*) FROM q1", False),
        ("SELECT c1 FROM q1", False),
        ("WITH q1(c1) AS (SELECT id FROM orders) SELECT id FROM orders WHERE id IN (SELECT c1 FROM q1)", True),
        ("WITH q1(c1) AS (SELECT id FROM orders) SELECT q1.c1, t2.c1 FROM q1 JOIN q1 AS t2 ON t2.c1 = q1.c1", False),
        ("WITH q1(c1) AS (SELECT id FROM orders) SELECT count(*) FROM q1 JOIN q1 AS t2 ON t2.c1 = q1.c1", True),
    ):
        matcher = grammar.matcher()
        taken = matcher.accept_bytes(statement.encode()) and matcher.is_accepting()
        assert taken == expected, statement
        assert prepares(connection, statement) or not taken, statement


def test_names_of_made_tables_are_free_ones() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript('CREATE TABLE Q1 (c1, c9); CREATE TABLE "q3" (c2);')
    matcher = structgen.sqlite_select(connection).compile(BYTES).matcher()
    statement = "WITH q2(c1) AS (SELECT c9 FROM Q1), q4(c1) AS (SELECT c2 FROM q3) SELECT c1 FROM q2"
    assert matcher.accept_bytes(statement.encode()) and matcher.is_accepting() and prepares(connection, statement)
    with pytest.raises(ConstraintError, match="there is one"):
        sqlite_terminals(connection, with_tables=["q1"])
    wrong: list[Any] = [["q5", "Q5"], ["select"], [""], [5]]
    for names in wrong:
        with pytest.raises(ConstraintError):
            sqlite_terminals(connection, with_tables=names)


def test_laws() -> None:
    check_laws(structgen.sqlite_select(opened("odd names")).compile(VOCABULARY), walks=6 if MANY else 1, steps=6)


def test_own_grammars_and_case() -> None:
    source = 'root ::= "select " COLUMN " as c, " COLUMN " from " TABLES (JOINED " on " COLUMN "=" COLUMN)? ";"'
    grammar = structgen.gbnf(source, terminals=sqlite_terminals(opened("shop"), ["o", "c"])).compile(BYTES)
    for statement, expected in (
        ("select name as c, city from customers;", True),
        ("select name as c, price from products;", True),
        ("select name as c, total from orders;", False),
        ("select o.total as c, c.name from orders AS o JOIN customers AS c ON o.customer = c.id;", True),
        ("select c.name as c, c.price from products AS c LEFT JOIN items ON product=c.id;", False),
    ):
        matcher = grammar.matcher()
        assert (matcher.accept_bytes(statement.encode()) and matcher.is_accepting()) == expected, statement


def test_it_is_sent_and_equal_schemas_are_equal() -> None:
    connection = opened("odd names")
    schema = SqliteSchema.read(connection)
    twin = pickle.loads(pickle.dumps(structgen.sqlite_select(schema)))
    assert twin.compile(BYTES).matcher().accept_bytes(b'SELECT "say ""hi"" x" FROM "order"')
    assert schema == SqliteSchema.read(connection) and hash(schema) == hash(SqliteSchema.read(connection))


def test_keywords_are_all_that_sqlite_reserves() -> None:
    connection = sqlite3.connect(":memory:")
    for word in KEYWORDS:
        connection.execute(f'CREATE TABLE "{word}" ("{word}")')
        assert prepares(connection, f'SELECT "{word}"."{word}", "{word}" FROM "{word}"')
    assert not any(prepares(connection, f"SELECT 0 {word} {word}") for word in ("SELECT", "ORDER", "WHERE"))


def test_what_is_refused() -> None:
    with pytest.raises(ConstraintError, match="no tables"):
        structgen.sqlite_select(sqlite3.connect(":memory:"))
    closed = sqlite3.connect(":memory:")
    closed.close()
    wrong: list[Any] = [closed, "shop.db", None, SqliteSchema({}), SqliteSchema({"t": ()})]
    for database in wrong:
        with pytest.raises(ConstraintError):
            structgen.sqlite_select(database)
    lists: list[Any] = ["ab", None]
    for aliases in lists:
        with pytest.raises(ConstraintError, match="in a list"):
            structgen.sqlite_select(opened("shop"), aliases)
    for alias in ("select", "a b", ""):
        with pytest.raises(ConstraintError, match="no keyword"):
            structgen.sqlite_select(opened("shop"), [alias])
