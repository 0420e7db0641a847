"""Many prompts at once, each with a schema of its own; a row that fails leaves the others alone.

Files of prompts on the command line: `structgen batch`, docs/batch.md.

python examples/batch_with_errors.py [MODEL]
"""

from __future__ import annotations

import json
import sys
from typing import Any

from structgen import Generator, StructgenError

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "age": {"type": "integer", "minimum": 0, "maximum": 130},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
ROWS: list[tuple[str, Any]] = [
    ("Ada Lovelace, 36, a mathematician", PERSON),
    ("Alan Turing, 41, from London", PERSON),
    ("This row has a schema that is none", {"type": "persn"}),
    ("Is seven a prime?", {"enum": ["yes", "no"]}),
]


def main(generator: Generator) -> dict[int, dict[str, Any]]:
    """Print a line of JSON a row, as rows are done."""
    prompts, schemas = zip(*ROWS, strict=True)
    lines: dict[int, dict[str, Any]] = {}
    for row, outcome in generator.stream_batch(prompts, schemas, max_new_tokens=80):
        if isinstance(outcome, StructgenError):
            lines[row] = {"row": row, "error": str(outcome)}
        else:
            lines[row] = {"row": row, "value": outcome.value}
        print(json.dumps(lines[row]))
    return lines


if __name__ == "__main__":
    main(Generator(*sys.argv[1:2]))
