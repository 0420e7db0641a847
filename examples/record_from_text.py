"""A record from a text, as an instance of a class.

python examples/record_from_text.py [MODEL]
"""

from __future__ import annotations

import sys
from typing import Literal

from pydantic import BaseModel, Field

from structgen import Generator

TEXT = "Order 4711: Grace Hopper wants two keyboards and a monitor, to be sent to Arlington by express."


class Item(BaseModel):
    product: Literal["keyboard", "monitor", "mouse"]
    quantity: int = Field(ge=1, le=99)


class Order(BaseModel):
    number: int = Field(ge=1, le=99_999)
    customer: str = Field(min_length=1, max_length=40)
    city: str = Field(max_length=30)
    shipping: Literal["standard", "express"]
    items: list[Item] = Field(min_length=1, max_length=5)


def main(generator: Generator) -> Order:
    """Print the order, and how it was written."""
    # The model is told the keys and their types, or, if it is large enough to follow it, the schema.
    result = generator.generate(TEXT, Order, max_new_tokens=200)
    order = result.value  # an Order, to type checkers too
    print(order.model_dump_json(indent=2))
    print(f"{result.stats.output_tokens} tokens, {result.stats.forced_tokens} of them forced by the schema")
    return order


if __name__ == "__main__":
    main(Generator(*sys.argv[1:2]))
