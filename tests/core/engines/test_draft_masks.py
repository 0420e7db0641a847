"""Masks of drafts for every engine: against a matcher of its own for every path, and against XGrammar's."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import structgen
from structgen.core.engines.draft_trees import DraftTrees, fill_trees_of
from structgen.errors import BitmaskError, MatcherStateError, StructgenError, TokenError
from tests.core.engines.fixed_texts import FixedTexts

PIECES = [
    b'{"',
    b'":',
    b'", "',
    b'"}',
    b"true",
    b"null",
    b"12",
    b"ab",
    b"abc",
    b"(a",
    b"))",
    "é".encode(),
    b"\xc3",
    b"<t>",
]
END = 256 + len(PIECES)
VOCABULARY = structgen.Vocabulary([*(bytes([byte]) for byte in range(256)), *PIECES, None], eos_token_ids=END, size=300)
SCHEMA = {
    "type": "object",
    "properties": {"abc": {"type": ["integer", "null"]}, "é": {"type": "string"}, "list": {"type": "array"}},
    "required": ["abc"],
    "additionalProperties": False,
}
NESTED = 'start: "(" start ")" | "a" /[bc12]+/? | "é"+'
GRAMMARS: dict[str, Callable[[], Any]] = {
    "json": lambda: structgen.compile_json_schema(SCHEMA, VOCABULARY),
    "json of distinct items": lambda: structgen.compile_json_schema(
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, VOCABULARY
    ),
    "cfg": lambda: structgen.compile_lark(NESTED, VOCABULARY),
    "lalr": lambda: structgen.compile_lark(NESTED, VOCABULARY, lexer="contextual"),
    "composed": lambda: structgen.compile_lark(
        'start: "(" start ")" | "<t>" %json {"type": ["object", "integer"]} /[ab]+/', VOCABULARY
    ),
    "tags": lambda: structgen.compile_tag_dispatch(
        {("<t>", "</t>"): structgen.compile_json_schema({"enum": [12, "ab", None]}, VOCABULARY)}, VOCABULARY
    ),
    "fixed": lambda: FixedTexts((b"abc", b"abc12", b"abab", b"(a))", "éé".encode()), VOCABULARY),
}
Tree = tuple[list[int], list[int], list[int]]
"""Children, siblings, tokens."""


@cache
def grammar(name: str) -> Any:
    return GRAMMARS[name]()


def mask_of(matcher: Any) -> npt.NDArray[np.int32]:
    row = structgen.allocate_token_bitmask(1, matcher.grammar.vocabulary.size)
    matcher.fill_next_token_bitmask(row)
    return row[0]


def allowed(matcher: Any) -> list[int]:
    return np.flatnonzero(np.unpackbits(mask_of(matcher).view(np.uint8), bitorder="little")).tolist()


def walked(name: str, rng: np.random.Generator, steps: int) -> tuple[Any, list[int]]:
    """A matcher some allowed tokens on, and these."""
    matcher, tokens = grammar(name).matcher(), []
    for _ in range(steps):
        tokens.append(int(rng.choice(allowed(matcher))))
        assert matcher.accept_token(tokens[-1])
        if matcher.is_terminated():
            break
    return matcher, tokens


def random_tree(matcher: Any, rng: np.random.Generator, size: int) -> tuple[Tree, list[list[int]]]:
    """A tree of mostly allowed tokens in an order of its own, and the path of tokens to each node."""
    paths: list[list[int]] = [[]]
    parents = [-1]
    for _ in range(size - 1):
        parent = int(rng.integers(max(0, len(paths) - 4), len(paths)))
        probe = matcher.copy()
        viable = all(token >= 0 and probe.accept_token(token) for token in paths[parent])
        choices = allowed(probe) if viable else []
        token = rng.choice(choices) if choices and rng.random() < 0.8 else rng.integers(-1, VOCABULARY.size)
        parents.append(parent)
        paths.append([*paths[parent], int(token)])
    names = [0, *(1 + rng.permutation(size - 1)).tolist()]  # children may come before their parents
    children, siblings, tokens = [-1] * size, [-1] * size, [0] * size
    for node in range(1, size):
        own, parent = names[node], names[parents[node]]
        tokens[own], siblings[own], children[parent] = paths[node][-1], children[parent], own
    return (children, siblings, tokens), [path for _, path in sorted(zip(names, paths, strict=True))]


def expected_row(name: str, before: list[int], path: list[int]) -> npt.NDArray[np.int32]:
    """The mask of a matcher of its own; zeros if it refuses a token."""
    fresh = grammar(name).matcher()
    assert all(fresh.accept_token(token) for token in before)
    if all(token >= 0 and fresh.accept_token(token) for token in path):
        return mask_of(fresh)
    return np.zeros(-(-VOCABULARY.size // 32), np.int32)


def check_unchanged(matcher: Any, name: str, before: list[int]) -> None:
    """Its mask, its end and its history are those of a matcher that accepted these tokens."""
    fresh = grammar(name).matcher()
    assert all(fresh.accept_token(token) for token in before)
    assert np.array_equal(mask_of(matcher), mask_of(fresh))
    assert matcher.is_accepting() == fresh.is_accepting() and matcher.is_terminated() == fresh.is_terminated()
    assert matcher.state_key() == fresh.state_key()
    twin = matcher.fork()
    twin.rollback(len(before))
    assert np.array_equal(mask_of(twin), mask_of(grammar(name).matcher()))
    with pytest.raises(MatcherStateError):
        twin.rollback(1)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", GRAMMARS)
def test_every_node_has_the_mask_of_its_path(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matcher, before = walked(name, rng, int(rng.integers(0, 8)))
    size = int(rng.integers(1, 30))
    (children, siblings, tokens), paths = random_tree(matcher, rng, size)
    bitmask = np.full((size + 2, -(-VOCABULARY.size // 32)), 5, np.int32)
    assert structgen.traverse_draft_tree(children, siblings, tokens, matcher, bitmask)
    for node, path in enumerate(paths):
        assert np.array_equal(bitmask[node], expected_row(name, before, path)), path
    assert (bitmask[size:] == 5).all()
    check_unchanged(matcher, name, before)


@pytest.mark.parametrize("seed", range(6))
def test_trees_of_many_matchers_in_one_call(seed: int) -> None:
    """Of all engines, some twice; each node against a matcher of its own."""
    rng = np.random.default_rng(seed)
    names = [*GRAMMARS, *rng.choice([*GRAMMARS], 4)]
    pairs = [walked(name, rng, int(rng.integers(0, 8))) for name in names]
    size = int(rng.integers(1, 12))
    trees, paths = zip(*(random_tree(matcher, rng, size) for matcher, _ in pairs), strict=True)
    children, siblings, tokens = (np.array(each, np.int64) for each in zip(*trees, strict=True))
    found = DraftTrees.checked(children, siblings, tokens, VOCABULARY.size)
    rows = (size + 1) * rng.permutation(len(names))
    bitmask = np.full(((size + 1) * len(names), -(-VOCABULARY.size // 32)), 5, np.int32)
    taken = fill_trees_of([matcher for matcher, _ in pairs], found, bitmask, rows.tolist())
    for tree, (name, (matcher, before)) in enumerate(zip(names, pairs, strict=True)):
        for node, path in enumerate(paths[tree]):
            assert np.array_equal(bitmask[rows[tree] + node], expected_row(name, before, path)), (name, path)
            probe = matcher.copy()
            assert taken[tree, node] == all(token >= 0 and probe.accept_token(token) for token in path)
        assert (bitmask[rows[tree] + size] == 5).all()
        check_unchanged(matcher, name, before)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", GRAMMARS)
def test_lists_of_drafts(name: str, seed: int) -> None:
    """Each row against a matcher of its own, and what is valid against stepping."""
    rng = np.random.default_rng(seed)
    matcher, before = walked(name, rng, int(rng.integers(0, 5)))
    drafts = walked(name, rng, 12)[1][len(before) :] if seed % 2 else []
    probe = matcher.copy()
    while len(drafts) < 8 and not probe.is_terminated():
        token = int(rng.choice(allowed(probe)) if rng.random() < 0.9 else rng.integers(-1, VOCABULARY.size))
        drafts.append(token)
        if token < 0 or not probe.accept_token(token):
            drafts += [token, -1]
            break
    valid = structgen.validate_tokens(matcher, drafts)
    stepped = grammar(name).matcher()
    assert all(stepped.accept_token(token) for token in before)
    taken = [token >= 0 and stepped.accept_token(token) for token in drafts]
    assert valid == drafts[: [*taken, False].index(False)]
    bitmask = np.full((len(drafts) + 4, -(-VOCABULARY.size // 32)), 5, np.int32)
    assert structgen.fill_draft_token_bitmasks(matcher, drafts, bitmask, 2) == len(valid)
    for row in range(len(drafts) + 1):
        assert np.array_equal(bitmask[2 + row], expected_row(name, before, drafts[:row])), drafts[:row]
    assert (bitmask[:2] == 5).all() and (bitmask[len(drafts) + 3 :] == 5).all()
    check_unchanged(matcher, name, before)


def test_behind_the_end() -> None:
    matcher = grammar("fixed").matcher()
    tokens = [*b"abc", END]
    assert structgen.validate_tokens(matcher, [*tokens, ord("1")]) == tokens
    bitmask = structgen.allocate_token_bitmask(6, VOCABULARY.size)
    assert structgen.fill_draft_token_bitmasks(matcher, [*tokens, -1], bitmask) == 4
    assert bitmask[3].any() and not bitmask[4:].any()
    assert all(map(matcher.accept_token, tokens))
    assert structgen.validate_tokens(matcher, [ord("1")]) == [] and structgen.find_jump_forward_string(matcher) == ""
    assert structgen.traverse_draft_tree([1, -1], [-1, -1], [0, ord("1")], matcher, bitmask) and not bitmask[:2].any()
    check_unchanged(matcher, "fixed", tokens)


def test_nodes_without_a_link_are_zero() -> None:
    bitmask = structgen.allocate_token_bitmask(3, VOCABULARY.size)
    tokens = [0, 10**9, ord("a")]  # one that no link leads to is not looked at, as the root's
    assert structgen.traverse_draft_tree([2, -1, -1], [-1] * 3, tokens, grammar("fixed").matcher(), bitmask)
    assert bitmask[0].any() and not bitmask[1].any() and bitmask[2].any()


def test_long_chains_and_wide_levels() -> None:
    """Neither depth nor width is bounded by Python's stack."""
    size, matcher = 3000, structgen.compile_regex("a*", VOCABULARY).matcher()
    links, none, tokens = [*range(1, size), -1], [-1] * size, [ord("a")] * size
    bitmask = structgen.allocate_token_bitmask(size, VOCABULARY.size)
    assert structgen.traverse_draft_tree(links, none, tokens, matcher, bitmask) and (bitmask == mask_of(matcher)).all()
    bitmask[:] = 0
    children, siblings = [1, *none[1:]], [-1, *links[1:]]
    assert structgen.traverse_draft_tree(children, siblings, tokens, matcher, bitmask)
    assert (bitmask == mask_of(matcher)).all()


def test_arrays_and_tensors() -> None:
    torch = pytest.importorskip("torch")
    rows = []
    for kind in (list, np.array, torch.tensor):
        bitmask = structgen.allocate_token_bitmask(3, VOCABULARY.size)
        drafts = kind(list(b"ab"))
        assert structgen.traverse_draft_tree(
            kind([1, 2, -1]), kind([-1, -1, -1]), kind([7, *b"ab"]), grammar("fixed").matcher(), bitmask
        )
        rows.append(bitmask.tolist())
        assert structgen.fill_draft_token_bitmasks(grammar("fixed").matcher(), drafts, bitmask) == 2
        assert bitmask.tolist() == rows[0] == rows[-1]
        assert structgen.validate_tokens(grammar("fixed").matcher(), drafts) == list(b"ab")


def test_a_time_that_is_over() -> None:
    """The root is written, what was not begun is zero, and the matcher is back."""
    matcher = grammar("json").matcher()
    bitmask = structgen.allocate_token_bitmask(3, VOCABULARY.size)
    tree = [1, 2, -1], [-1, -1, -1], [0, *b'{"']
    assert not structgen.traverse_draft_tree(*tree, matcher, bitmask, time_threshold=1e-9)
    assert np.array_equal(bitmask[0], mask_of(matcher)) and not bitmask[1:].any()
    check_unchanged(matcher, "json", [])
    assert structgen.traverse_draft_tree(*tree, matcher, bitmask, time_threshold=60) and bitmask.any(axis=1).all()


def test_an_error_on_the_way_leaves_no_trace() -> None:
    matcher = grammar("fixed").matcher()
    real = type(matcher).accept_token

    class Failing(type(matcher)):  # type: ignore[misc]
        def accept_token(self, token_id: int) -> bool:
            if token_id == ord("c"):
                raise MemoryError
            return real(self, token_id)

    failing = Failing(matcher.grammar)
    bitmask = structgen.allocate_token_bitmask(4, VOCABULARY.size)
    calls: list[Callable[[], Any]] = [
        lambda: structgen.validate_tokens(failing, list(b"abc")),
        lambda: structgen.fill_draft_token_bitmasks(failing, list(b"abc"), bitmask),
        lambda: structgen.traverse_draft_tree([1, 2, 3, -1], [-1] * 4, [0, *b"abc"], failing, bitmask),
    ]
    for call in calls:
        with pytest.raises(MemoryError):
            call()
        check_unchanged(failing, "fixed", [])


WIDTH = -(-VOCABULARY.size // 32)
BAD_TREES: dict[str, tuple[Any, Any, Any, Any, type[StructgenError], str]] = {
    "lengths": ([-1], [-1, -1], [0, 1], (2, WIDTH), BitmaskError, "1 children, 2 siblings, 2 tokens"),
    "empty": ([], [], [], (2, WIDTH), BitmaskError, "and a root"),
    "sibling of the root": ([1, -1, -1], [2, -1, -1], [0, 1, 2], (3, WIDTH), BitmaskError, "no sibling"),
    "link out of range": ([1, 3, -1], [-1] * 3, [0, 1, 2], (3, WIDTH), BitmaskError, r"retrieve_next_token\[1\] is 3"),
    "link below": ([1, -2, -1], [-1] * 3, [0, 1, 2], (3, WIDTH), BitmaskError, "is -2; wanted -1"),
    "circle": ([1, 0, -1], [-1] * 3, [0, 1, 2], (3, WIDTH), BitmaskError, "is 0; wanted"),
    "circle below": ([1, 2, 1], [-1] * 3, [0, 1, 2], (3, WIDTH), BitmaskError, "no tree"),
    "own sibling": ([1, -1, -1], [-1, 1, -1], [0, 1, 2], (3, WIDTH), BitmaskError, "no tree"),
    "two parents": ([1, 2, -1], [-1, 2, -1], [0, 1, 2], (3, WIDTH), BitmaskError, "no tree"),
    "floats": ([0.5], [-1], [0], (1, WIDTH), BitmaskError, "retrieve_next_token is float64"),
    "Booleans": ([-1], [True], [0], (1, WIDTH), BitmaskError, "retrieve_next_sibling is bool"),
    "two dimensions": ([-1], [-1], [[0]], (1, WIDTH), TokenError, r"shape \(1, 1\)"),
    "ragged": ([-1], [-1], [[0], [1, 2]], (1, WIDTH), TokenError, "wanted one-dimensional"),
    "token too large": ([1, -1], [-1] * 2, [0, 300], (2, WIDTH), TokenError, "token id 300 is out of range"),
    "token too small": ([1, -1], [-1] * 2, [0, -2], (2, WIDTH), TokenError, "token id -2 is out of range"),
    "huge token": ([1, -1], [-1] * 2, [0, 2**80], (2, WIDTH), TokenError, "wanted one-dimensional integers"),
    "too few rows": ([1, -1], [-1] * 2, [0, 1], (1, WIDTH), BitmaskError, "row 1 is out of range"),
    "one row": ([1, -1], [-1] * 2, [0, 1], (WIDTH,), BitmaskError, "row 1 is out of range"),
    "too narrow": ([1, -1], [-1] * 2, [0, 1], (2, WIDTH - 1), BitmaskError, "shape"),
}


@pytest.mark.parametrize("name", BAD_TREES)
def test_bad_trees_raise_before_anything_is_written(name: str) -> None:
    children, siblings, tokens, shape, error, message = BAD_TREES[name]
    bitmask = np.full(shape, 5, np.int32)
    matcher = grammar("cfg").matcher()
    with pytest.raises(error, match=message):
        structgen.traverse_draft_tree(children, siblings, tokens, matcher, bitmask)
    assert (bitmask == 5).all()
    check_unchanged(matcher, "cfg", [])


@pytest.mark.parametrize("tokens", [[ord("a"), 300], [-2], [0.5], [[1]], ["a"], None, "ab", [2**80], [True]])
def test_bad_drafts(tokens: Any) -> None:
    matcher, bitmask = grammar("fixed").matcher(), np.full((4, WIDTH), 5, np.int32)
    with pytest.raises(TokenError):
        structgen.validate_tokens(matcher, tokens)
    with pytest.raises(TokenError):
        structgen.fill_draft_token_bitmasks(matcher, tokens, bitmask)
    assert (bitmask == 5).all()
    check_unchanged(matcher, "fixed", [])


@pytest.mark.parametrize("index", [-1, 2, 4])
def test_rows_that_are_not_there(index: int) -> None:
    bitmask = np.full((4, WIDTH), 5, np.int32)
    with pytest.raises(BitmaskError, match="out of range"):
        structgen.fill_draft_token_bitmasks(grammar("fixed").matcher(), list(b"ab"), bitmask, index)
    assert (bitmask == 5).all()


def test_a_single_row() -> None:
    row = np.full(WIDTH, 5, np.int32)
    assert structgen.fill_draft_token_bitmasks(grammar("fixed").matcher(), [], row) == 0
    assert np.array_equal(row, mask_of(grammar("fixed").matcher()))
    assert structgen.traverse_draft_tree([-1], [-1], [0], grammar("fixed").matcher(), row)
    assert np.array_equal(row, mask_of(grammar("fixed").matcher()))


@pytest.mark.parametrize("name", GRAMMARS)
def test_jump_forward_strings_are_forced(name: str) -> None:
    """Whole characters of what is forced: as many as there are, and the matcher stays."""
    for seed in range(8):
        matcher, before = walked(name, np.random.default_rng(seed), seed)
        text, forced = structgen.find_jump_forward_string(matcher), matcher.forced_bytes()
        assert text == forced[: len(text.encode())].decode() and forced.startswith(text.encode())
        rest = forced[len(text.encode()) :]
        assert all(not decodes(rest[:end]) for end in range(1, 5) if rest[:end])
        check_unchanged(matcher, name, before)


def decodes(data: bytes) -> bool:
    try:
        return bool(data.decode())
    except UnicodeDecodeError:
        return False


def test_jump_forward_strings_end_at_whole_characters() -> None:
    matcher = FixedTexts(("xéa".encode(), "xèb".encode()), VOCABULARY).matcher()
    assert matcher.forced_bytes() == b"x\xc3" and structgen.find_jump_forward_string(matcher) == "x"
    assert matcher.accept_bytes(b"x\xc3\xa9") and structgen.find_jump_forward_string(matcher) == "a"
    matcher.rollback()
    assert matcher.accept_bytes(b"x\xc3") and structgen.find_jump_forward_string(matcher) == ""
    within = FixedTexts(("éab".encode(),), VOCABULARY).matcher()
    assert within.accept_bytes(b"\xc3") and structgen.find_jump_forward_string(within) == ""
    special = structgen.compile_lark('start: "ab" <[269]> "c"', VOCABULARY).matcher()
    assert structgen.find_jump_forward_string(special) == "ab"


def test_long_jump_forward_strings_come_in_pieces() -> None:
    text = "aé" * 1500
    matcher, found = structgen.compile_choice([text], VOCABULARY).matcher(), []
    while piece := structgen.find_jump_forward_string(matcher):
        found.append(piece)
        assert matcher.accept_bytes(piece.encode())
    assert "".join(found) == text and len(found) > 1


PEER_SCHEMAS: list[Any] = [  # which mean the same to both: no free strings, whose escapes are spelled differently
    {
        "type": "object",
        "properties": {
            "abc": {"type": "integer"},
            "é": {"type": "string", "pattern": "^[ab]{1,3}$"},
            "list": {"type": "array", "items": {"type": "boolean"}, "maxItems": 2},
        },
        "required": ["abc"],
        "additionalProperties": False,
    },
    {"type": "array", "items": {"enum": ["ab", "abc", 12, None]}},
    {"const": {"abc": ["é", 12]}},
    {"anyOf": [{"type": "boolean"}, {"type": "integer"}, {"enum": ["true"]}]},
]


@pytest.mark.parametrize("schema", PEER_SCHEMAS, ids=json.dumps)
def test_as_xgrammar(schema: Any) -> None:
    """Compact JSON with keys in order, walked by what both allow: the same tree masks, and jump-forward strings where
    both force one."""
    xgrammar = pytest.importorskip("xgrammar", reason="XGrammar is not installed")
    torch = pytest.importorskip("torch")
    words = [*(bytes([byte]) for byte in range(256)), *PIECES, b"<end>"]
    info = xgrammar.TokenizerInfo(words, vocab_size=VOCABULARY.size, stop_token_ids=[END])
    theirs = xgrammar.GrammarMatcher(
        xgrammar.GrammarCompiler(info).compile_json_schema(
            json.dumps(schema), any_whitespace=False, separators=(",", ":")
        )
    )
    ours = structgen.compile_json_schema(schema, VOCABULARY, structgen.JsonOptions(whitespace="compact")).matcher()
    same = forced = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        theirs.reset()
        ours.reset()
        for _ in range(seed):
            common = [token for token in allowed(ours) if token != END and theirs.fork().accept_token(token)]
            if not common:
                break
            token = int(rng.choice(common))
            assert ours.accept_token(token) and theirs.accept_token(token)
        (children, siblings, tokens), paths = random_tree(ours, rng, 20)
        mine = structgen.allocate_token_bitmask(20, VOCABULARY.size)
        other = torch.zeros(mine.shape, dtype=torch.int32)
        assert structgen.traverse_draft_tree(children, siblings, tokens, ours, mine)
        assert theirs.traverse_draft_tree(*map(torch.tensor, (children, siblings, tokens)), other)
        assert np.array_equal(mine, other.numpy()), [
            p for p, a, b in zip(paths, mine, other.numpy(), strict=True) if (a != b).any()
        ]
        same += int(mine.any(axis=1).sum())
        try:
            jump = theirs.find_jump_forward_string()
        except UnicodeDecodeError:  # theirs is not cut at whole characters
            continue
        own = structgen.find_jump_forward_string(ours)
        if jump and own:
            assert own == jump
            forced += 1
    assert same > 30
    assert forced
