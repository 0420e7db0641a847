"""Claims from a letter, each with a quote that proves it: the letter as a page, with the quotes highlighted.

python examples/grounded_extraction.py [MODEL] > claims.html
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Annotated, cast

from pydantic import BaseModel, Field

from structgen import Corpus, Generator, Quote, QuoteOf, json_schema

LETTER = """\
Dear Ms Okafor,

I rent the flat on the third floor of 12 Quay Street. Since the storm of 3 March the roof has been
leaking into the bedroom. I wrote to your office on 5 March and again on 19 March. Nobody came.
On 2 April the ceiling fell onto the bed; my neighbour Mr Lind saw it and took photographs.

The heating works. I have paid the rent for April in full, “under protest”.

Yours sincerely,
Ida Brandt
"""
SOURCE = Corpus.build({"letter": LETTER}, boundary="word", fold=True)
"""Folded: a quote may go over the end of a line, and the model writes plain quotation marks."""


class Claim(BaseModel):
    claim: str = Field(min_length=1, max_length=120)
    quote: Annotated[str, QuoteOf(SOURCE), Field(min_length=8, max_length=100)]


Claims = Annotated[list[Claim], Field(min_length=3, max_length=3)]

STYLE = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1a1c20; --mark: #ffe08a; --faint: #595e66; --link: #0b57a4 }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181c; --ink: #e7e9ec; --mark: #5c4a00; --faint: #a4a9b1; --link: #8ab8f0 } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.6 system-ui, sans-serif }
main { max-width: 68rem; margin: auto; padding: 1.5rem; display: grid; gap: 2rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)) }
.letter { white-space: pre-wrap; overflow-wrap: anywhere }
mark { background: var(--mark); color: inherit } mark:target { outline: 2px solid currentColor }
a { color: var(--link) } small { color: var(--faint); display: block }
"""


def highlighted(letter: str, quotes: Sequence[Quote]) -> str:
    """The letter as HTML, with a ``mark`` for what is quoted. Where quotes overlap, a part has the numbers of both."""
    spans = [quote.places[0] for quote in quotes]
    borders = sorted({0, len(letter), *(place.start for place in spans), *(place.end for place in spans)})
    parts, begun = [], set[int]()
    for start, end in pairwise(borders):
        numbers = [n for n, place in enumerate(spans, 1) if place.start <= start and end <= place.end]
        text = escape(letter[start:end])
        first = next((n for n in numbers if n not in begun), None)
        begun.update(numbers)
        id = "" if first is None else f' id="quote-{first}"'
        shown = " ".join(map(str, numbers))
        parts.append(f'<mark{id} data-claims="{shown}">{text}</mark>' if numbers else text)
    return "".join(parts)


def page(letter: str, claims: Sequence[Claim]) -> str:
    """The letter and its claims as an HTML page that asks for nothing else."""
    quotes = [cast(Quote, claim.quote) for claim in claims]
    starts = [quote.places[0].start for quote in quotes]
    items = [
        f'<li id="claim-{number}">{escape(claim.claim)}<br><a href="#quote-{starts.index(start) + 1}">'
        f"<q>{escape(quote)}</q></a><small>characters {start} to {quote.places[0].end}</small></li>"
        for number, (claim, quote, start) in enumerate(zip(claims, quotes, starts, strict=True), 1)
    ]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Claims and their quotes</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body><main>'
        f'<section><h1>The letter</h1><div class="letter">{highlighted(letter, quotes)}</div></section>'
        f"<section><h2>What it claims</h2><ol>{''.join(items)}</ol></section></main></body></html>\n"
    )


def main(generator: Generator) -> tuple[list[Claim], str]:
    """Print the page."""
    prompt = f"List three claims of this letter. Quote the words that prove each.\n\n{LETTER}"
    claims = generator.generate(prompt, json_schema(Claims), max_new_tokens=400).value
    made = page(LETTER, claims)
    print(made)
    return claims, made


if __name__ == "__main__":
    main(Generator(*sys.argv[1:2]))
