"""Does it do what it says? Schemas as in JSONSchemaBench, outputs judged by python-jsonschema.

The whole benchmark, with peers and times: `structgen bench jsonschemabench`, docs/benchmarking.md.

python examples/evaluation.py [MODEL]
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema

from structgen import Generator, IncompleteOutputError, SchemaError

SCHEMAS = Path(__file__).parents[1] / "schemas"


@dataclass
class Score:
    """What became of the schemas: ``valid`` and ``invalid`` outputs, schemas ``refused``, budgets ``too_small``."""

    valid: int = 0
    invalid: int = 0
    refused: int = 0
    too_small: int = 0


def judged(schema: Any, value: Any) -> bool:
    """What a library that has no part in this says."""
    validator = jsonschema.validators.validator_for(schema)
    return bool(validator(schema, format_checker=validator.FORMAT_CHECKER).is_valid(value))


def main(generator: Generator, folder: Path = SCHEMAS) -> Score:
    """Write one output for each schema of a folder, and count."""
    score = Score()
    for path in sorted(folder.glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        try:
            text = generator.generate("Write a realistic example.", schema, max_new_tokens=250).text
        except SchemaError as error:  # said before anything is written, with the place in the schema
            score.refused += 1
            print(f"{path.name}: refused: {error}")
            continue
        except IncompleteOutputError:
            score.too_small += 1
            print(f"{path.name}: no value fits the budget")
            continue
        good = judged(schema, json.loads(text))
        score.valid += good
        score.invalid += not good
        print(f"{path.name}: {'valid' if good else 'INVALID'}: {text:.60}")
    print(score)
    return score


if __name__ == "__main__":
    main(Generator(*sys.argv[1:2]))
