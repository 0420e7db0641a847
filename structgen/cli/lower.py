"""``structgen lower``: a schema for a provider, and what that loses."""

from __future__ import annotations

import json
import sys

from structgen.cli.common import INVALID, fail, print_json
from structgen.cli.compare import schema_text
from structgen.core.answers.compare import Difference
from structgen.core.answers.targets.lowered import lower as lower_schema
from structgen.core.json_schema.loading import load_schema
from structgen.errors import UnsatisfiableSchemaError
from structgen.options import JsonOptions

_MEANINGS = {
    "equal": "answers say exactly what the schema allows",
    "narrower": "answers cannot say all that the schema allows",
    "wider": "answers may say what the schema refuses: check them",
    "incomparable": "answers may say what the schema refuses, and cannot say all that it allows: check them",
    "unknown": "it was not decided what answers may say: check them",
}


def run(schema: str, target: str, options: JsonOptions, as_json: bool) -> int:
    """Write it; the exit code: 0 within the target's limits, 1 beyond.

    Raises:
        SchemaError: the schema cannot be used. OptionsError: no such target.
    """
    try:
        lowered = lower_schema(load_schema(schema_text(schema)), target, options=options)
    except UnsatisfiableSchemaError as error:
        fail(error, INVALID, as_json)
    only = {"refused": lowered.comparison.new_only, "unsaid": lowered.comparison.old_only}
    if as_json:
        print_json(
            {
                "target": lowered.target.name, "as_of": lowered.target.as_of, "verdict": lowered.verdict,
                "sent": lowered.sent, "lost": lowered.lost, "beyond": lowered.beyond,
                **{name: _text(one) for name, one in only.items()},
            }
        )  # fmt: skip
        return INVALID if lowered.beyond else 0
    print(json.dumps(lowered.sent, indent=2, ensure_ascii=False))
    sys.stdout.flush()
    said = [f"{lowered.verdict}: {_MEANINGS[lowered.verdict]} ({lowered.target.title}, {lowered.target.as_of})"]
    said += [f"  {name}: {_text(one)}" for name, one in only.items() if one is not None]
    said += [f"  lost at {where or 'the root'}: {what}" for where, what in lowered.lost]
    said += [f"  beyond: {one}" for one in lowered.beyond]
    print(*said, sep="\n", file=sys.stderr)
    return INVALID if lowered.beyond else 0


def _text(one: Difference | None) -> str | None:
    return None if one is None else one.text
