"""Tagged text beside XGrammar's structural tags: the same masks along random walks, the same texts after mutations.

Left out, since they say something else there: special tokens (XGrammar's free text may hold them as text), JSON
(XGrammar's default spelling is another), budgets of tokens and characters.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from structgen.core.compilers import compile_json_schema, compile_regex, compile_tag_dispatch
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from tests.core.engines.composed.oracle import allowed

xgrammar: Any = pytest.importorskip("xgrammar")

LETTERS = 'ab<>/t12,; no!"]'
PIECES = ["<t1>", "<t2>", "</t>", "<t", "1>a", "b</t>", "a</t><t2>", ", ", "no", "x<t1>", ">a</", "a!", '"a"', '"]']
TOKENS = [*(letter.encode() for letter in LETTERS), *(piece.encode() for piece in PIECES), b"x", b"\n", b"\xc3\xa9"]
WORDS = Vocabulary([*TOKENS, None], eos_token_ids=len(TOKENS))
WITHOUT_END = r"(?:(?!</t>)[\s\S])*"


def around(begin: str, content: dict[str, Any], end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def tag(begin: str, pattern: str, end: Any) -> dict[str, Any]:
    return around(begin, {"type": "regex", "pattern": pattern}, end)


def ours(tags: dict[Any, str] | list[tuple[Any, str]], **options: Any) -> Callable[[], Grammar]:
    pairs = tags.items() if isinstance(tags, dict) else tags
    return lambda: compile_tag_dispatch([(t, compile_regex(p, WORDS)) for t, p in pairs], WORDS, **options)


def triggered(*tags: dict[str, Any], **options: Any) -> dict[str, Any]:
    given = {"triggers": ["<t"], "tags": [*tags] or [ONE, TWO]}
    return {"type": "triggered_tags", **given, **options}


def sequence(*elements: dict[str, Any]) -> dict[str, Any]:
    return {"type": "sequence", "elements": [*elements]}


def text(*excludes: str) -> dict[str, Any]:
    return {"type": "any_text", "excludes": [*excludes]}


def separated(**options: Any) -> dict[str, Any]:
    return {"type": "tags_with_separator", "tags": [ONE, TWO], "separator": ", ", **options}


AFTER_ONE = tag("", "a+", "!")
ONE, TWO = tag("<t1>", "a+", "</t>"), tag("<t2>", "[ab]*", "!")
PAIR: dict[Any, str] = {("<t1>", "</t>"): "a+", ("<t2>", "!"): "[ab]*"}
ENUM = {"enum": ["a", "ab"]}
CASES: dict[str, tuple[dict[str, Any], Callable[[], Grammar]]] = {
    "triggered tags": (triggered(), ours(PAIR, triggers=["<t"])),
    "at least one": (triggered(at_least_one=True), ours(PAIR, triggers=["<t"], free_text="after", min_uses=1)),
    "stop after first": (triggered(stop_after_first=True), ours(PAIR, triggers=["<t"], free_text="before", max_uses=1)),
    "just one": (
        triggered(stop_after_first=True, at_least_one=True),
        ours(PAIR, free_text="none", min_uses=1, max_uses=1),
    ),
    "excludes": (triggered(excludes=["no", "b<", "1>"]), ours(PAIR, triggers=["<t"], excludes=["no", "b<", "1>"])),
    "begin alike": (
        triggered(ONE, tag("<t1>", "[ab]+", ["!", "</t>"]), triggers=["<t1>"]),
        ours([(("<t1>", "</t>"), "a+"), (("<t1>", "!"), "[ab]+"), (("<t1>", "</t>"), "[ab]+")]),
    ),
    "separator": (separated(), ours(PAIR, free_text="none", separator=", ")),
    "separator, at least one": (
        separated(at_least_one=True),
        ours(PAIR, free_text="none", separator=", ", min_uses=1),
    ),
    "separator, stop after first": (separated(stop_after_first=True), ours(PAIR, free_text="none", max_uses=1)),
    "dispatch": (
        {"type": "dispatch", "rules": [["<t1>", AFTER_ONE], ["<t2>", tag("", "[ab]+", "]")]], "excludes": ["no"]},
        ours({("<t1>", "!"): "a+", ("<t2>", "]"): "[ab]+"}, excludes=["no"]),
    ),
    "dispatch once": (
        {"type": "dispatch", "rules": [["<t1>", AFTER_ONE]], "loop": False},
        ours({("<t1>", "!"): "a+"}, max_uses=1, free_text="before"),
    ),
    "a thought, then text": (
        sequence(around("<t1>", text(), "</t>"), text("<t1>", "</t>")),
        ours({("<t1>", "</t>"): WITHOUT_END}, free_text="after", min_uses=1, max_uses=1, excludes=["</t>"]),
    ),
    "calls, or text": (
        {"type": "or", "elements": [separated(at_least_one=True), text("<t1>", "<t2>")]},
        ours(PAIR, free_text="instead", separator=", "),
    ),
    "repeat": (
        {"type": "repeat", "min": 1, "max": 3, "content": ONE},
        ours({("<t1>", "</t>"): "a+"}, free_text="none", min_uses=1, max_uses=3),
    ),
    "until a stop": (
        around("", triggered(excludes=["]"]), "]"),
        ours(PAIR, triggers=["<t"], stop="]"),
    ),
    "JSON in a tag": (
        triggered(around("<t1>", {"type": "json_schema", "json_schema": ENUM}, "</t>"), triggers=["<t1>"]),
        lambda: compile_tag_dispatch({("<t1>", "</t>"): compile_json_schema(ENUM, WORDS)}, WORDS),
    ),
    "tags in a tag": (
        triggered(around("<t2>", separated(), "]"), triggers=["<t2>"]),
        lambda: compile_tag_dispatch({("<t2>", "]"): ours(PAIR, free_text="none", separator=", ")()}, WORDS),
    ),
}


class Peer:
    """XGrammar's matcher, as far as it is compared."""

    def __init__(self, format_: dict[str, Any]) -> None:
        info = xgrammar.TokenizerInfo([*TOKENS, b""], xgrammar.VocabType.RAW, stop_token_ids=[len(TOKENS)])
        described = json.dumps({"type": "structural_tag", "format": format_})
        self.compiled = xgrammar.GrammarCompiler(info).compile_structural_tag(described)

    def start(self) -> Any:
        return xgrammar.GrammarMatcher(self.compiled)

    def allowed(self, matcher: Any) -> set[int]:
        bitmask = xgrammar.allocate_token_bitmask(1, WORDS.size)
        matcher.fill_next_token_bitmask(bitmask)
        bits = np.unpackbits(bitmask.numpy().view(np.uint8), bitorder="little")[: WORDS.size]
        return set(np.flatnonzero(bits).tolist())


@pytest.mark.parametrize("name", CASES)
def test_same_masks_and_texts(name: str) -> None:
    format_, make = CASES[name]
    grammar, peer, rng = make(), Peer(format_), random.Random(name)
    texts = []
    for _ in range(40):
        matcher, other, tokens = grammar.matcher(), peer.start(), list[int]()
        for _ in range(rng.randint(1, 16)):
            mask = allowed(matcher)
            assert mask == peer.allowed(other), [TOKENS[t] for t in tokens]
            usual = [t for t in mask if t < len(LETTERS) + len(PIECES)]
            likely = [t for t in usual if t >= len(LETTERS) or rng.random() < 0.3]
            if not likely:
                likely = usual or [len(TOKENS)]
            token = rng.choice(likely)
            if token == len(TOKENS):
                break
            assert matcher.accept_token(token) and other.accept_token(token)
            tokens.append(token)
        texts.append("".join(TOKENS[t].decode() for t in tokens))
    for text in texts:
        for _ in range(10):
            at, gone = rng.randint(0, len(text)), rng.choice([0, 0, 1, 3])
            mutant = text[:at] + rng.choice(["", *LETTERS, *PIECES]) + text[at + gone :]
            assert taken(grammar, mutant) == taken_there(peer, mutant), mutant


def taken(grammar: Grammar, text: str) -> str:
    matcher = grammar.matcher()
    return "no" if not matcher.accept_bytes(text.encode()) else "whole" if matcher.is_accepting() else "open"


def taken_there(peer: Peer, text: str) -> str:
    matcher = peer.start()
    if not matcher.accept_string(text):
        return "no"
    return "whole" if len(TOKENS) in peer.allowed(matcher) else "open"
