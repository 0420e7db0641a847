"""How many quotes are not in their source: three of each document, with ``QuoteOf`` and with plain strings.

    python benchmarks/grounded_quotes.py --documents 300

Documents are letters of six sentences, whose names, dates and complaints are drawn by seed. A quote counts as outside
if `str.find` does not find it.
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Annotated, Any

from pydantic import Field

from structgen import Corpus, Generator, QuoteOf

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


def outside(generator: Generator, source: str, kind: Any) -> tuple[int, int]:
    """(quotes, those that the source does not have) of one answer."""
    prompt = f"Quote three passages of this letter, word for word, that say what is wrong.\n\n{source}"
    answer = Annotated[list[kind], Field(min_length=3, max_length=3)]
    quotes = generator.generate(prompt, answer, max_new_tokens=160).value
    return len(quotes), sum(source.find(quote) < 0 for quote in quotes)


def main() -> None:
    """Ask for both kinds of each document, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=1e9, help="Stop after so long.")
    asked = parser.parse_args()
    generator, start = Generator(), time.monotonic()
    size = Field(min_length=8, max_length=60)
    counts = {"QuoteOf": [0, 0], "plain string": [0, 0]}
    for number in range(asked.documents):
        if time.monotonic() - start > asked.seconds:
            break
        source = letter(number)
        quoted = Annotated[str, QuoteOf(Corpus.build(source, "word")), size]
        for name, kind in (("QuoteOf", quoted), ("plain string", Annotated[str, size])):
            for place, count in enumerate(outside(generator, source, kind)):
                counts[name][place] += count
        shown = ", ".join(f"{name} {wrong} of {quotes}" for name, (quotes, wrong) in counts.items())
        print(f"{number + 1} documents; outside of the source: {shown}", flush=True)


if __name__ == "__main__":
    main()
