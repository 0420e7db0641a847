"""The flat trie against dictionaries of dictionaries, and its walk against a test of every token by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from structgen.core.vocabulary.trie import Trie, build_trie, subtrie, trie_from_arrays

# Few distinct bytes, the extreme ones among them, so that tokens share prefixes and whole values.
TOKENS = st.lists(st.lists(st.sampled_from([0, 1, 97, 255]), max_size=5).map(bytes), max_size=40)


def make(tokens: list[bytes]) -> Trie:
    offsets = np.cumsum([0, *map(len, tokens)]).astype(np.int32)
    return build_trie(tokens, np.frombuffer(b"".join(tokens), np.uint8).copy(), offsets)


def nested(tokens: list[bytes]) -> dict[Any, Any]:
    """The textbook trie: byte to child, and under "ids" the ids that end at the node."""
    root: dict[Any, Any] = {"ids": []}
    for token_id, token in enumerate(tokens):
        node = root
        for byte in token:
            node = node.setdefault(byte, {"ids": []})
        if token:
            node["ids"].append(token_id)
    return root


def flattened(node: dict[Any, Any], depth: int = 0) -> list[list[Any]]:
    """Rows [byte, depth, nodes in the subtree, ids] in depth-first order."""
    rows: list[list[Any]] = []
    for byte in sorted(key for key in node if key != "ids"):
        below = flattened(node[byte], depth + 1)
        rows += [[byte, depth, 1 + len(below), node[byte]["ids"]], *below]
    return rows


def chain(trie: Trie, token: int) -> list[int]:
    ids = []
    while token >= 0:
        ids.append(token)
        token = int(trie.next_same[token])
    return ids


@given(TOKENS)
def test_nodes_are_those_of_the_nested_trie(tokens: list[bytes]) -> None:
    trie = make(tokens)
    rows = [
        [int(trie.byte[i]), int(trie.depth[i]), int(trie.subtree_end[i]) - i, chain(trie, int(trie.token[i]))]
        for i in range(len(trie))
    ]
    assert rows == flattened(nested(tokens))
    assert trie.max_depth == max(map(len, tokens), default=0)


def walk(trie: Trie, allowed: set[bytes]) -> set[int]:
    """The loop of the module's documentation; the automaton's state is the text itself, dead outside ``allowed``."""
    states = [b""] * (trie.max_depth + 1)
    found = set()
    node = 0
    while node < len(trie):
        state = states[trie.depth[node]] + bytes([trie.byte[node]])
        if state not in allowed:
            node = int(trie.subtree_end[node])
            continue
        states[trie.depth[node] + 1] = state
        found.update(chain(trie, int(trie.token[node])))
        node += 1
    return found


@given(TOKENS, st.data())
def test_walk_finds_the_tokens_whose_prefixes_are_all_allowed(tokens: list[bytes], data: st.DataObject) -> None:
    prefixes = {token[:end] for token in tokens for end in range(1, len(token) + 1)}
    allowed = data.draw(st.sets(st.sampled_from(sorted(prefixes)))) if prefixes else set()
    expected = {
        i for i, token in enumerate(tokens) if token and all(token[:n] in allowed for n in range(1, len(token) + 1))
    }
    assert walk(make(tokens), allowed) == expected


@pytest.mark.full
@given(TOKENS, st.data())
def test_subtrie_is_the_trie_of_the_kept_tokens(tokens: list[bytes], data: st.DataObject) -> None:
    keep = data.draw(st.lists(st.booleans(), min_size=len(tokens), max_size=len(tokens)))
    part = subtrie(make(tokens), np.array(keep, dtype=np.bool_))
    whole = make([token if kept else b"" for token, kept in zip(tokens, keep, strict=True)])
    for name, array in whole.arrays().items():
        np.testing.assert_array_equal(part.arrays()[name], array, strict=True)


def test_subtrie_checks_the_shape_of_keep() -> None:
    with pytest.raises(ValueError, match=r"keep is bool\[2\], expected bool\[1\]"):
        subtrie(make([b"a"]), np.ones(2, dtype=np.bool_))


@given(TOKENS)
def test_arrays_read_back_give_the_trie(tokens: list[bytes]) -> None:
    trie = make(tokens)
    read = trie_from_arrays(trie.arrays(), len(tokens))
    assert read is not None
    assert all(np.array_equal(read.arrays()[name], array) for name, array in trie.arrays().items())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("subtree_end", 0),
        ("subtree_end", 99),
        ("depth", 1),
        ("depth", -1),
        ("token", 3),
        ("token", -2),
        ("next_same", 0),
        ("next_same", 3),
    ],
)
def test_arrays_that_would_lead_a_kernel_astray_are_refused(name: str, value: int) -> None:
    arrays = {key: array.copy() for key, array in make([b"ab", b"c", b"c"]).arrays().items()}
    arrays[name][0] = value
    assert trie_from_arrays(arrays, 3) is None


def test_arrays_of_another_vocabulary_type_or_shape_are_refused() -> None:
    arrays = make([b"ab", b"c"]).arrays()
    assert trie_from_arrays(arrays, 3) is None
    assert trie_from_arrays({**arrays, "depth": arrays["depth"].astype(np.int64)}, 2) is None
    assert trie_from_arrays({**arrays, "depth": arrays["depth"][:-1]}, 2) is None
    assert trie_from_arrays({"byte": arrays["byte"]}, 2) is None
