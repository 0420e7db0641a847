"""An object while it is written: what is known of it so far, as Python values, for a page that fills as one looks.

python examples/streaming_partial.py [MODEL]
"""

from __future__ import annotations

import sys
from typing import Annotated

from pydantic import BaseModel, Field

from structgen import Generator


class Recipe(BaseModel):
    title: str = Field(max_length=40)
    minutes: int = Field(ge=1, le=240)
    ingredients: list[Annotated[str, Field(max_length=20)]] = Field(min_length=2, max_length=4)


def main(generator: Generator) -> tuple[list[Recipe], Recipe]:
    """Print what is new, then the whole."""
    seen: list[Recipe] = []
    prompt = "Invent a recipe for pancakes: title, minutes, ingredients."
    for event in generator.stream(prompt, Recipe, max_new_tokens=150):
        if event.partial is not None and (not seen or event.partial != seen[-1]):
            seen.append(event.partial)
            print(event.partial)
        if event.result is not None:  # the last event
            recipe = event.result.value
    print(repr(recipe))
    return seen, recipe


if __name__ == "__main__":
    main(Generator(*sys.argv[1:2]))
