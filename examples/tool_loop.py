"""Functions that a model calls until it has an answer. A call's arguments always satisfy the function's types.

python examples/tool_loop.py [MODEL]
"""

from __future__ import annotations

import sys
from typing import Literal

import structgen.tools
from structgen import Generator

PRICES = {"keyboard": 49.0, "monitor": 199.0, "mouse": 19.0}


def price(product: Literal["keyboard", "monitor", "mouse"], quantity: int = 1) -> str:
    """What some of a product cost.

    Args:
        product: what is asked for
        quantity: how many
    """
    if not 1 <= quantity <= 99:
        raise ValueError("between 1 and 99 can be bought at once")  # the model is told, and may try again
    return f"{quantity} x {product}: {quantity * PRICES[product]:.2f} euros"


def main(generator: Generator) -> structgen.tools.ToolRun:
    """Print the calls and the answer."""
    run = structgen.tools.run(
        generator,
        "What do two monitors cost?",
        [price],
        tool_choice="required",
        max_calls=2,
        result_role="user",  # for chat templates without the role "tool"
        max_new_tokens=120,
    )
    for made in run.calls:
        print(made.call.name, made.call.arguments, "->", made.error or made.result)
    print(run.answer)
    return run


if __name__ == "__main__":
    main(Generator(*sys.argv[1:2]))
