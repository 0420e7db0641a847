"""Patterns as automata, against JavaScript and interegular."""

from __future__ import annotations

import json
import os
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import interegular
import numpy as np
import pytest

from structgen.core.regex.dfa import accepts, from_table, shortest
from structgen.core.regex.pattern import full_match_dfa, pattern_dfa
from structgen.errors import PatternError, TooComplexError
from tests.core.regex import ecma_oracle

DATA = Path(os.environ.get("STRUCTGEN_DATA") or Path(__file__).resolve().parents[4] / "shared" / "data")
needs_node = pytest.mark.skipif(ecma_oracle.node() is None, reason="needs node")


def random_pattern(source: random.Random, depth: int) -> str:
    """A pattern with every kind of assertion, at most ``depth`` levels deep."""
    kind = source.random()
    if depth == 0 or kind < 0.3:
        return source.choice(["a", "b", "c", "[ab]", "[^a]", ".", r"\w", r"\d", r"\s", "€", "é"])
    inner = random_pattern(source, depth - 1)
    if kind < 0.5:
        return inner + random_pattern(source, depth - 1)
    if kind < 0.62:
        return f"(?:{inner}|{random_pattern(source, depth - 1)})"
    if kind < 0.75:
        return f"(?:{inner})" + source.choice(["*", "+", "?", "{2}", "{1,3}", "{0,2}?", "{2,}"])
    if kind < 0.92:
        before, after = source.choice([("^", ""), ("", "$"), ("(?=", ")"), ("(?!", ")"), ("(?<=", ")"), ("(?<!", ")")])
        return before + inner + after
    return source.choice([r"\b", r"\B", r"(?<!^a)", r"(?<=\bab)", "(?<![a-c]$)", "(?<=a(?=b))", "(?<!a(?=b))"])


@needs_node
@pytest.mark.parametrize("seed", range(4))
def test_assertions_agree_with_javascript(seed):
    source = random.Random(seed)
    cases = []  # no character beyond U+FFFF: V8 finds \B even between the halves of a surrogate pair
    for _ in range(250):
        texts = ["".join(source.choice("abc1_ é€") for _ in range(source.randint(0, 6))) for _ in range(30)]
        cases.append((random_pattern(source, 4), texts))
    decided = 0
    for (pattern, texts), expected in zip(cases, ecma_oracle.search_all(cases), strict=True):
        try:
            dfa = pattern_dfa(pattern, max_states=1000)
        except TooComplexError:
            continue
        assert expected is not None
        decided += 1
        assert [accepts(dfa, text) for text in texts] == expected, pattern
    assert decided > 200


@pytest.mark.parametrize(
    "pattern",
    ["a", "[a-c]{2,4}", "(ab|cd)*e?", "x{3,}y", "[^a-y]+z", "(a|b)*abb", "((a?b){2}|c+){1,2}", "a.?b", "0|[1-9]+"],
)
def test_language_equals_interegular(pattern):
    """Isomorphic to interegular's reduced automaton on ASCII, as minimal automata of one language are."""
    theirs = interegular.parse_pattern(pattern).to_fsm().reduce()
    table = np.full((len(theirs.states), 256), -1, np.int32)
    names = {state: i for i, state in enumerate([theirs.initial, *(theirs.states - {theirs.initial})])}
    for state, row in theirs.map.items():
        for code in range(128):
            target = row.get(theirs.alphabet[chr(code)])
            table[names[state], code] = -1 if target is None else names[target]
    flags = np.array([state in theirs.finals for state in names], np.uint8)
    ours = full_match_dfa(rf"(?=[\0-\x7f]*$)(?:{pattern})".replace(".", r"[^\n]"))
    assert from_table(table, flags).digest == ours.digest


@pytest.mark.parametrize(
    ("pattern", "same"),
    [
        (r"^(?!foo|bar).*$", r"^(?![^]*[\n\r\u2028\u2029])(?!foo)(?!bar)"),
        (r"^(?=a)(?=.*b)[a-z]*$", r"^a[a-z]*b[a-z]*$"),
        (r"(?<=^a)b", r"^ab"),
        (r"^a\b", r"^a(?:$|\W)"),
        (r"^((?!mode).)*$", r"^(?!.*mode).*$"),
        (r"", r"[^]*"),
        (r"a.*b|a.*b.*", r"a.*b"),
    ],
)
def test_different_spellings_are_one_automaton(pattern, same):
    assert pattern_dfa(pattern).digest == pattern_dfa(same).digest


def test_no_text_matches():
    assert pattern_dfa(r"$a").is_empty
    assert pattern_dfa(r"^(?=a)b").is_empty


@pytest.mark.parametrize("pattern", ["^.{0,255}$", "^[a-z]{1,1000}$", "(?:a?){200}b", "^(?:[ab]{0,9}c){9}$"])
def test_counted_repetition(pattern):
    dfa = pattern_dfa(pattern)
    assert not dfa.is_empty
    assert len(dfa) < 8200


def test_budget():
    with pytest.raises(TooComplexError) as error:
        pattern_dfa("(a|b)*a(a|b){15}$", max_states=1000)
    assert (error.value.budget, error.value.limit) == ("automaton states", 1000)
    with pytest.raises(TooComplexError):
        pattern_dfa("a{100000000}")


def test_cached_and_safe_from_threads():
    with ThreadPoolExecutor(8) as pool:
        digests = set(pool.map(lambda i: pattern_dfa(f"^x{{{i % 4},9}}y$").digest, range(64)))
    assert len(digests) == 4
    assert pattern_dfa("^cached$") is pattern_dfa("^cached$")


def real_patterns() -> list[str]:
    found: dict[str, None] = {}

    def visit(node: object) -> None:
        if isinstance(node, dict):
            if isinstance(node.get("pattern"), str):
                found[node["pattern"]] = None
            if isinstance(node.get("patternProperties"), dict):
                found.update(dict.fromkeys(node["patternProperties"]))
            node = list(node.values())
        for child in node if isinstance(node, list) else ():
            visit(child)

    for path in sorted((DATA / "maskbench").glob("*.json"))[::8]:
        text = path.read_text()
        if '"pattern' in text:
            visit(json.loads(text)["schema"])
    return list(found)


@needs_node
@pytest.mark.skipif(not (DATA / "maskbench").is_dir(), reason="needs the maskbench data (STRUCTGEN_DATA)")
def test_real_patterns_agree_with_javascript():
    source = random.Random(1)
    cases = []
    for pattern in real_patterns():
        try:
            dfa = pattern_dfa(pattern)
        except (PatternError, TooComplexError):
            continue
        texts = []
        for _ in range(6):
            text = walk(dfa, source)
            at = source.randrange(len(text) + 1)
            texts += [text, text[:at] + source.choice("aZ0 -_.:/\n") + text[at + 1 :], text[:at] + text[at + 1 :]]
        cases.append((pattern, texts))
    assert len(cases) > 100
    for (pattern, texts), expected in zip(cases, ecma_oracle.search_all(cases), strict=True):
        assert [accepts(pattern_dfa(pattern), text) for text in texts] == expected, pattern


def walk(dfa, source: random.Random) -> str:
    """A random accepted text."""
    if dfa.is_empty:
        return ""
    state, data = 0, bytearray()
    for _ in range(source.randint(0, 30)):
        live = np.flatnonzero(dfa.transitions[state] >= 0).tolist()
        if not live:
            break
        printable = [byte for byte in live if 32 <= byte < 127]
        data.append(source.choice(printable if printable and source.random() < 0.9 else live))
        state = int(dfa.transitions[state, data[-1]])
    return (bytes(data) + (shortest(dfa, state) or b"")).decode()
