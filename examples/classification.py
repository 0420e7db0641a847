"""Labels with their probabilities: exact, from the model's own numbers, without sampling.

python examples/classification.py [MODEL]
"""

from __future__ import annotations

import sys

from structgen import ChoiceResult, Generator

REVIEWS = ["The soup was cold and the waiter was rude.", "Best evening in years!", "It was food."]
LABELS = ["positive", "negative", "neutral"]


def main(generator: Generator) -> list[ChoiceResult]:
    """Print the labels of all reviews, likeliest first."""
    results = []
    for review in REVIEWS:
        result = generator.choice(f"Is this review positive, negative or neutral? {review}", LABELS)
        ranked = sorted(result.probs.items(), key=lambda item: -item[1])
        print(review, "|", ", ".join(f"{label} {prob:.0%}" for label, prob in ranked))
        results.append(result)
    return results


if __name__ == "__main__":
    main(Generator(*sys.argv[1:2]))
