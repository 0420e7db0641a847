"""The tiny model keeps the protocol's promises: rows are independent, crop and select are exact."""

from __future__ import annotations

import numpy as np

from structgen.generation.models.tiny import TinyModel


def test_forward_is_prefill_of_the_longer_prompt() -> None:
    model = TinyModel(20, order=3)
    _, cache = model.prefill([[1, 2], [3]])
    logits = model.forward([[4, 5], [6, 7]], cache)
    assert logits.shape == (2, 2, 20)
    assert np.array_equal(logits[0, 1], model.prefill([[1, 2, 4, 5]])[0][0])
    assert np.array_equal(logits[1, 0], model.prefill([[3, 6]])[0][0])


def test_crop_and_select() -> None:
    model = TinyModel(20, order=3)
    _, cache = model.prefill([[1, 2], [3, 4]])
    model.forward([[5, 6], [7, 8]], cache)
    cache.crop(3)
    cache.select([1])
    assert cache.length == 3
    assert np.array_equal(model.forward([[9]], cache)[0, 0], model.prefill([[3, 4, 7, 9]])[0][0])


def test_a_tree_is_its_paths() -> None:
    model = TinyModel(20, order=3)
    _, cache = model.prefill([[1, 2], [3]])
    logits = model.forward_tree([[4, 5, 6], [7]], [[-1, 0, 0], [-1]], cache)
    assert np.array_equal(logits[0, 2], model.prefill([[1, 2, 4, 6]])[0][0])
    assert np.array_equal(logits[1, 0], model.prefill([[3, 7]])[0][0])
    cache.keep([[0, 2], []])
    assert cache.sequences == [[1, 2, 4, 6], [3]]


def test_tokens_see_what_they_are_told() -> None:
    model = TinyModel(20, order=3)
    _, cache = model.prefill([[1, 2, 3], [4]])
    assert cache.held().tolist() == [[True, True, True], [False, False, True]]
    visible = np.array([[[1, 0, 1, 1, 0], [0, 1, 0, 0, 1]], [[0, 0, 1, 1, 0], [0, 0, 1, 1, 1]]], dtype=np.bool_)
    logits = model.forward_visible([[5, 6], [7, 8]], visible, np.zeros((2, 2), dtype=np.int64), cache)
    for row, texts in enumerate([[[1, 3, 5], [2, 6]], [[4, 7], [4, 7, 8]]]):
        for place, text in enumerate(texts):
            assert np.array_equal(logits[row, place], model.prefill([text])[0][0])
    assert cache.sequences == [[1, 2, 3, 5, 6], [4, 7, 8]]
