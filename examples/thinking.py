"""Free thinking within a budget of tokens, then an answer that is constrained.

python examples/thinking.py [MODEL]
"""

from __future__ import annotations

import sys
from typing import Any

from structgen import GenerationResult, Generator, think

ANSWER = {
    "type": "object",
    "properties": {"prime": {"type": "boolean"}, "divisor": {"type": ["integer", "null"], "minimum": 2, "maximum": 99}},
    "required": ["prime", "divisor"],
    "additionalProperties": False,
}


def main(generator: Generator) -> GenerationResult:
    """Print the thoughts, then the answer."""
    constraint = think(ANSWER, max_think_tokens=60)
    result = generator.generate("Is 91 a prime number?", constraint, max_new_tokens=120)
    answer: dict[str, Any] = result.value
    print(result.text)
    print("answer:", answer)
    return result


if __name__ == "__main__":
    main(Generator(*sys.argv[1:2]))
