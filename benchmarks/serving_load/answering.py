"""Answers bodies of chats, a line each on standard input, with a ``Generator``; started by ``lone``.

    python answering.py BACKEND [DRAFT]

Each answer is a line: seconds to the first text, seconds to the end, and the text.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[2])  # the checkout, in place of this folder


def main() -> None:
    """See the module's docstring."""
    from structgen import Generator, json_schema

    generator = Generator(backend=sys.argv[1], draft=sys.argv[2] if len(sys.argv) > 2 else None)
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        schema = asked.get("structured_outputs", {}).get("json")
        constraint = None if schema is None else json_schema(schema)
        start, first, text = time.perf_counter(), 0.0, ""
        for event in generator.stream(
            asked["messages"], constraint, schema_in_prompt=False,
            temperature=asked["temperature"], seed=asked["seed"], max_new_tokens=asked["max_tokens"],
        ):  # fmt: skip
            first = first or (time.perf_counter() - start if event.delta else 0.0)
            text = event.text
        print(json.dumps([first, time.perf_counter() - start, text]), flush=True)


if __name__ == "__main__":
    main()
