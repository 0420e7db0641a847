"""Tagged text against a simulation that reads it byte by byte, over random tags, counts and vocabularies."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from structgen.compilers import compile_choice, compile_lark, compile_regex
from structgen.engines.composed.tag_dispatch import compile_tag_dispatch, free_text_dfa, word_search
from structgen.engines.json.compiled import compile_json_schema
from structgen.errors import ConstraintError, OptionsError
from structgen.vocabulary.vocabulary import Vocabulary
from tests.engines.composed.oracle import allowed, check_walks, remembered, vocabulary

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)


class Simulation:
    """All readings of a text. A reading: free text since the last part, or what is left of a part and its closing."""

    def __init__(
        self,
        tags: Mapping[str | tuple[str, str], list[str]],
        least: int,
        most: int | None,
        stop: str | None,
        free_text: str,
    ) -> None:
        self.parts = {
            (tag if isinstance(tag, str) else tag[0]).encode(): [
                (word + ("" if isinstance(tag, str) else tag[1])).encode() for word in words
            ]
            for tag, words in tags.items()
        }
        self.least, self.most, self.free_text = least, 10**6 if most is None else most, free_text
        self.stop = None if stop is None else stop.encode()

    def run(self, text: bytes) -> tuple[bool, bool]:
        """Whether the text has a completion, and whether it is one of the language."""
        readings = {("text", 0, b"")}
        for byte in text:
            readings = {after for reading in readings for after in self.step(reading, bytes([byte]))}
        return bool(readings), any(self.accepts(reading) for reading in readings)

    def accepts(self, reading: tuple[str, int, bytes]) -> bool:
        kind, used, text = reading
        return kind == "done" or (
            kind == "text" and self.stop is None and used >= self.least and "�" not in text.decode(errors="replace")
        )

    def step(self, reading: tuple[str, int, bytes], byte: bytes) -> list[tuple[str, int, bytes]]:
        kind, used, text = reading
        if kind == "done":
            return []
        if kind == "part":
            return [self.part(used, text[1:])] if text[:1] == byte else []
        text += byte
        if not begins_utf8(text):
            return []
        is_bare = self.free_text == "none" or (self.free_text == "before" and used == self.most)
        for trigger, words in self.parts.items():
            if text == trigger or (text.endswith(trigger) and not is_bare):
                return [self.part(used, word) for word in words] if used < self.most else []
        if self.stop is not None and (text == self.stop or (text.endswith(self.stop) and not is_bare)):
            return [("done", used, b"")] if used >= self.least else []
        if is_bare:
            wanted = [] if used == self.most else list(self.parts)
            wanted += [self.stop] if self.stop is not None and used >= self.least else []
            return [(kind, used, text)] if any(word.startswith(text) for word in wanted) else []
        return [(kind, used, text)]

    def part(self, used: int, left: bytes) -> tuple[str, int, bytes]:
        return ("part", used, left) if left else ("text", used + 1, b"")


def begins_utf8(text: bytes) -> bool:
    """Whether some text in UTF-8 begins so."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


CASES: list[dict[str, Any]] = [
    {"tags": {"<a>": ["b", "ab"]}},
    {"tags": {"<a>": ["b", "a<"], "<b": ["", ">"]}, "least": 1},
    {"tags": {("<", ">"): ["a", "b<"]}, "most": 2, "stop": ">b"},
    {"tags": {"ab": ["a", "b"], "ba": ["<"]}, "most": 1},
    {"tags": {"aa": ["a", "aa"], "<": [">"]}, "least": 1, "most": 1, "free_text": "before"},
    {"tags": {("a", "a"): ["b"], "b": ["a", "<"]}, "least": 1, "most": 3, "free_text": "none", "stop": "<<"},
    {"tags": {"é": ["a"], "<b>": ["b"]}, "most": 2, "stop": "aa"},
    {"tags": {"a": ["b"]}, "most": 0, "stop": "<"},
    {"tags": {"ab": ["<"]}, "least": 2, "most": 2, "stop": "bb", "free_text": "before"},
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_against_the_simulation(case: dict[str, Any], seed: int) -> None:
    rng = random.Random(seed)
    words = vocabulary("ab<>", rng, longer=30)
    tags, least, most = case["tags"], case.get("least", 0), case.get("most")
    stop, free_text = case.get("stop"), case.get("free_text", "anywhere")
    grammar = compile_tag_dispatch(
        {tag: compile_choice(options, words) for tag, options in tags.items()},
        words,
        min_uses=least,
        max_uses=most,
        stop=stop,
        free_text=free_text,
    )
    judge = remembered(Simulation(tags, least, most, stop, free_text).run)
    check_walks(grammar, judge, rng, walks=3, steps=8)


def test_tool_calls() -> None:
    """JSON and a Lark grammar in one text, with tokens that cross the ends of parts."""
    pytest.importorskip("lark")
    tokens = [b'{"a":', b'1}</tool> and then "', b"x <tool>", b"ol>{", b"}</", b"<to", b"n</code", b"<code>m"]
    words = Vocabulary([bytes([byte]) for byte in range(256)] + [None, *tokens], eos_token_ids=256)
    schema = {"properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
    grammar = compile_tag_dispatch(
        {
            ("<tool>", "</tool>"): compile_json_schema({"type": "object", **schema}, words),
            ("<code>", "</code>"): compile_lark('start: ("m" | "n")+\n%ignore " "', words),
        },
        words,
        min_uses=1,
    )
    matcher = grammar.matcher()
    assert matcher.shortest_completion() in (b'<tool>{"a":0}</tool>', b"<code>m</code>", b"<code>n</code>")
    for token in (259, 257, 258):  # x <tool>  {"a":  1}</tool> and then "
        assert token in allowed(matcher) and matcher.accept_token(token)
    assert matcher.is_accepting() and {262, 264} <= allowed(matcher)
    assert matcher.accept_bytes(b"<code>m n  n") and 263 in allowed(matcher)
    assert matcher.accept_token(263) and matcher.forced_bytes() == b">" and not matcher.accept_token(256)
    assert matcher.accept_bytes(b">") and matcher.accept_token(256)
    matcher.rollback(7)
    assert matcher.accept_token(262) and matcher.accept_token(260) and matcher.forced_bytes() == b'"a":'


def test_free_text_is_utf8_without_the_words() -> None:
    words = [b"ab", b"ba", "é".encode(), b"<<"]
    search = word_search(words)
    inside, up_to = free_text_dfa(search), free_text_dfa(search, 1)
    rng = random.Random(1)
    for _ in range(2000):
        text = "".join(rng.choices("ab<éê€😀", k=rng.randint(0, 5))).encode()
        holds = any(word in text for word in words)
        assert accepts(inside, text) == (bool(text) and not holds)
        ends = [(text.find(word) + len(word), i) for i, word in enumerate(words) if word in text]
        assert accepts(up_to, text) == (bool(ends) and min(ends) == (len(text), 1)), text
    assert not accepts(inside, b"\xc0\x80") and not accepts(inside, b"\xed\xa0\x80") and not accepts(inside, b"\xc3")


def accepts(dfa: Any, text: bytes) -> bool:
    state = 0
    for byte in text:
        state = int(dfa.transitions[state, byte])
        if state < 0:
            return False
    return bool(dfa.accepting[state])


def test_many_tags_and_uses() -> None:
    """Tags share what reads their free text; counts are rules."""
    part = compile_regex("[0-9]", BYTES)
    grammar = compile_tag_dispatch({f"<tool {i}>": part for i in range(200)}, BYTES, min_uses=100, max_uses=400)
    matcher = grammar.matcher()
    for i in range(400):
        assert not matcher.accept_token(256) or i >= 100
        if matcher.is_terminated():
            matcher.rollback()
        assert matcher.accept_bytes(b"Now: <tool %d>7" % (i % 200))
    assert not matcher.accept_bytes(b"<tool 1>") and matcher.accept_bytes(b" <tool x>")
    assert np.flatnonzero(matcher.next_bytes())[0] == 0 and matcher.is_accepting()


@pytest.mark.parametrize(
    ("tags", "stop", "message"),
    [
        ([], None, "at least one tag"),
        ([""], None, "empty"),
        (["a"], "", "empty"),
        (["<a", "<a>"], None, "'<a' is in '<a>'"),
        (["<a>"], "a", "'a' is in '<a>'"),
        (["\ud800"], None, "surrogate"),
        ([("a", "\udc00")], None, "surrogate"),
        ([("a", "b", "c")], None, "closing string"),
        ([7], None, "closing string"),
        ([("a", "b"), "a"], None, "'a' is in 'a'"),
    ],
)
def test_bad_tags(tags: list[Any], stop: str | None, message: str) -> None:
    part = compile_regex("x", BYTES)
    with pytest.raises(ConstraintError, match=message):
        compile_tag_dispatch(dict.fromkeys(tags, part), BYTES, stop=stop)


@pytest.mark.parametrize(
    "options",
    [
        {"min_uses": -1},
        {"max_uses": 10**6},
        {"min_uses": 2, "max_uses": 1},
        {"min_uses": 1.5},
        {"free_text": "some"},
        {"free_text": "before"},
    ],
    ids=str,
)
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(OptionsError):
        compile_tag_dispatch({"a": compile_regex("x", BYTES)}, BYTES, **options)
