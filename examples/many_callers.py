"""Many callers at once in one process, without a server: their outputs share the model's calls.

python examples/many_callers.py [MODEL]
"""

from __future__ import annotations

import asyncio
import sys

from structgen import Generator, choice
from structgen.serving.engine import AsyncEngine

TICKETS = ["I cannot log in.", "You charged me twice.", "Do you sell gift cards?"]
AREAS = choice(["login", "billing", "other"])


async def answer_all(engine: AsyncEngine) -> list[str]:
    """The areas of all tickets."""
    asked = (engine.agenerate(f"Login, billing or other? {ticket}", AREAS) for ticket in TICKETS)
    return [result.value for result in await asyncio.gather(*asked)]


def main(generator: Generator) -> list[str]:
    """Print an area a ticket."""
    engine = AsyncEngine(generator)
    try:
        areas = asyncio.run(answer_all(engine))
    finally:
        engine.close()
    for ticket, area in zip(TICKETS, areas, strict=True):
        print(f"{area}: {ticket}")
    return areas


if __name__ == "__main__":
    main(Generator(*sys.argv[1:2]))
