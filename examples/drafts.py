"""Several tokens a model call, and the same output: speculative decoding.

python examples/drafts.py [MODEL]
"""

from __future__ import annotations

import sys

from structgen import GenerationResult, Generator

SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}, "country": {"enum": ["France", "Italy", "Spain"]}},
        "required": ["city", "country"],
        "additionalProperties": False,
    },
    "minItems": 3,
    "maxItems": 3,
}


def main(generator: Generator) -> tuple[GenerationResult, GenerationResult]:
    """Print both outputs' model calls."""
    prompt = "Three cities: Paris, Rome and Madrid."
    plain = generator.generate(prompt, SCHEMA, max_new_tokens=150)
    drafted = generator.generate(prompt, SCHEMA, max_new_tokens=150, draft="auto")
    print(drafted.text)
    for name, result in (("plain", plain), ("drafted", drafted)):
        stats = result.stats
        print(f"{name}: {stats.output_tokens} tokens, {stats.target_forwards} model calls, {stats.seconds:.1f} s")
    return plain, drafted


if __name__ == "__main__":
    main(Generator(*sys.argv[1:2]))
