"""How many quotes are not in their source: three of each document, with ``QuoteOf`` and with plain strings.

    python benchmarks/grounded_quotes.py --documents 300 [--plain 60]

Documents are letters of six sentences, whose names, dates and complaints are drawn by seed. A quote counts as outside
if `str.find` does not find it.
"""

from __future__ import annotations

import argparse
import random
from typing import Annotated, Any

from pydantic import Field

from structgen import Corpus, Generator, QuoteOf, json_schema

NAMES = ["Okafor", "Lind", "Brandt", "Iyer", "Moreau", "Tanaka", "Silva", "Novak"]
PLACES = ["Quay Street", "Mill Lane", "Station Road", "the old harbour", "Castle Square"]
FAULTS = ["the roof has been leaking", "the boiler does not start", "the lift stands still", "the drains smell"]
SENTENCES = [
    "I rent the flat on the {n}. floor of {n} {place}.",
    "Since {n} {month} {fault}.",
    "I wrote to your office on {n} {month} and nobody came.",
    "My neighbour {name} saw it and took {n} photographs.",
    "The repair was offered to me at {n}{n} euros, which I refuse to pay.",
    "On {n} {month} {name} promised that it would be mended within {n} days.",
    "The heating works, but {fault}.",
]
TASK = "Quote three passages of this letter, word for word, that say what is wrong."
MONTHS = ["January", "March", "April", "July", "October"]


def letter(seed: int) -> str:
    """A letter of six sentences."""
    rng = random.Random(seed)
    texts = [
        sentence.format(
            n=rng.randint(2, 28), place=rng.choice(PLACES), month=rng.choice(MONTHS), fault=rng.choice(FAULTS),
            name=rng.choice(NAMES),
        )
        for sentence in rng.sample(SENTENCES, 6)
    ]  # fmt: skip
    return f"Dear {rng.choice(NAMES)},\n" + "\n".join(texts) + f"\nYours, {rng.choice(NAMES)}"


def main() -> None:
    """Ask for both kinds of each document, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="The seed of the first.")
    parser.add_argument("--plain", type=int, help="Ask for plain strings of so many of them only.")
    asked = parser.parse_args()
    numbers = range(asked.first, asked.first + asked.documents)
    plain = numbers if asked.plain is None else numbers[: asked.plain]
    generator, size = Generator(), Field(min_length=8, max_length=60)
    for name, seeds in (("QuoteOf", numbers), ("plain string", plain)):
        sources = [letter(seed) for seed in seeds]
        prompts = [f"{TASK}\n\n{text}" for text in sources]
        kinds: list[Any] = [
            Annotated[str, QuoteOf(Corpus.build(text, "word")), size] if name == "QuoteOf" else Annotated[str, size]
            for text in sources
        ]
        answers = [json_schema(Annotated[list[kind], Field(min_length=3, max_length=3)]) for kind in kinds]  # type: ignore[valid-type]
        quotes = wrong = done = 0
        for row, result in generator.stream_batch(prompts, answers, max_new_tokens=160):
            if isinstance(result, Exception):
                raise result
            done, quotes = done + 1, quotes + len(result.value)
            wrong += sum(sources[row].find(quote) < 0 for quote in result.value)
            if done % 20 == 0 or done == len(sources):
                print(f"{name}: {done} documents; outside of the source: {wrong} of {quotes}", flush=True)


if __name__ == "__main__":
    main()
