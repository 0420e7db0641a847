"""A query in a grammar that knows the tables: no other name, and no other statement, can be written.

python examples/sql_by_grammar.py [MODEL]
"""

from __future__ import annotations

import sys

from structgen import Generator, lark

TABLES = {"customers": ["id", "name", "city"], "orders": ["id", "customer_id", "total"]}


def grammar(tables: dict[str, list[str]]) -> str:
    """A SELECT of one table, with conditions on its own columns, in Lark's language."""
    rules = [" | ".join(f"{table}_query" for table in tables)]
    lines = [f"start: {rules[0]}"]
    for table, columns in tables.items():
        names = " | ".join(f'"{column}"' for column in columns)
        lines += [
            f'{table}_query: "SELECT " {table}_columns " FROM {table}" [where_{table}] [" LIMIT " NUMBER] ";"',
            f'{table}_columns: "*" | {table}_column (", " {table}_column)~0..2',
            f'where_{table}: " WHERE " {table}_condition [" AND " {table}_condition]',
            f"{table}_condition: {table}_column OPERATOR value",
            f"{table}_column: {names}",
        ]
    lines += [
        "value: NUMBER | TEXT",
        'OPERATOR: " = " | " < " | " > " | " LIKE "',
        "NUMBER: /[1-9][0-9]{0,5}/",
        "TEXT: /'[A-Za-z0-9 %]{0,20}'/",
    ]
    return "\n".join(lines)


def main(generator: Generator) -> str:
    """Print a query."""
    question = f"Tables: {TABLES}. Write a SQL query: the names of all customers in Berlin."
    query = generator.generate(question, lark(grammar(TABLES)), max_new_tokens=80).text
    print(query)
    return query


if __name__ == "__main__":
    main(Generator(*sys.argv[1:2]))
