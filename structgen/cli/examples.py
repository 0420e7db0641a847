"""``structgen examples``: documents of a schema."""

from __future__ import annotations

import sys

from structgen.cli.common import INVALID, fail, print_json
from structgen.cli.compare import constraint_in, schema_text
from structgen.core.answers.examples import examples as examples_of
from structgen.errors import UnsatisfiableSchemaError
from structgen.options import JsonOptions


def run(schema: str, n: int, style: str, size: int, seed: int, options: JsonOptions, as_json: bool) -> int:
    """Write them, a line each; the exit code.

    Raises:
        SchemaError: the schema cannot be used. OptionsError: no such style.
    """
    source = constraint_in(schema, schema_text(schema))
    try:
        drawn = examples_of(source, n, style=style, size=size, seed=seed, options=options)  # type: ignore[arg-type]
    except UnsatisfiableSchemaError as error:
        fail(error, INVALID, as_json)
    if as_json:
        print_json([{"text": one.text, "note": one.note, "pointer": one.pointer} for one in drawn])
        return 0
    for one in drawn:
        sys.stdout.write(one.text + "\n")
        if style == "invalid":
            sys.stdout.flush()
            print(f"  {one.note}: {one.pointer}", file=sys.stderr)
    return 0
