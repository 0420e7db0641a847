"""Which outputs are alike: those of one value; else by the words that they share."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from contextlib import suppress

import numpy as np

from structgen.errors import StructgenError
from structgen.generation.decoding.critics import Candidate
from structgen.generation.search.scores import Values

ROUNDS = 20
_WORD = re.compile(r"\w+|[^\w\s]")


def clusters_of(outputs: Sequence[Candidate], count: int) -> list[Hashable]:
    """A name of the cluster of each output: its value where some have one value, else one of ``count``."""
    values = [_value(one) for one in outputs]
    if len(set(values)) < len(values):
        return list(values)
    return list(_k_means(tf_idf([one.text for one in outputs]), count))


def _value(one: Candidate) -> Hashable:
    with suppress(StructgenError, TypeError, ValueError):
        return json.dumps(one.value, sort_keys=True)
    return one.text


def tf_idf(texts: Sequence[str]) -> Values:
    """[n, words], each line of length 1: how often each word is in a text, the rarer in all of them the more."""
    counts = [Counter(_WORD.findall(text.lower())) for text in texts]
    words = sorted({word for each in counts for word in each})
    seen = np.array([sum(word in each for each in counts) for word in words], np.float64)
    table = np.array([[each[word] for word in words] for each in counts], np.float64).reshape(len(texts), len(words))
    table *= 1 + np.log((1 + len(texts)) / (1 + seen))
    return np.asarray(table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12))


def _k_means(points: Values, count: int) -> list[int]:
    """Lloyd's rounds from the first point and those that are farthest from each other."""
    centres = points[:1]
    while len(centres) < min(count, len(points)):
        far = _distances(points, centres).min(axis=1)
        if not far.max() > 0:
            break
        centres = np.concatenate([centres, points[[int(far.argmax())]]])
    labels = np.zeros(len(points), np.int64)
    for _ in range(ROUNDS):
        before, labels = labels, _distances(points, centres).argmin(axis=1)
        centres = np.stack(
            [points[labels == k].mean(axis=0) if (labels == k).any() else c for k, c in enumerate(centres)]
        )
        if np.array_equal(before, labels):
            break
    return [int(label) for label in labels]


def _distances(points: Values, centres: Values) -> Values:
    return np.asarray(((points[:, None] - centres[None]) ** 2).sum(axis=-1).clip(min=0.0))
