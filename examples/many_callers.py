"""Many callers at once in one process, without a server: their outputs share the model's calls.

python examples/many_callers.py [MODEL]
"""

from __future__ import annotations

import asyncio
import sys

from structgen import Generator, choice

TICKETS = ["I cannot log in.", "You charged me twice.", "Do you sell gift cards?"]
AREAS = choice(["login", "billing", "other"])


async def answer_all(generator: Generator) -> list[str]:
    """The areas of all tickets."""
    asked = (generator.agenerate(f"Login, billing or other? {ticket}", AREAS) for ticket in TICKETS)
    return [result.value for result in await asyncio.gather(*asked)]


def main(generator: Generator) -> list[str]:
    """Print an area a ticket."""
    areas = asyncio.run(answer_all(generator))
    for ticket, area in zip(TICKETS, areas, strict=True):
        print(f"{area}: {ticket}")
    return areas


if __name__ == "__main__":
    main(Generator(*sys.argv[1:2]))
