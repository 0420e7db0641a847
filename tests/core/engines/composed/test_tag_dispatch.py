"""Tagged text against a simulation that reads it byte by byte, over random tags, counts and vocabularies."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from structgen.core.compilers import compile_choice, compile_lark, compile_regex
from structgen.core.engines.composed.tag_dispatch import compile_tag_dispatch
from structgen.core.engines.json.compiled import compile_json_schema
from structgen.core.regex.free_text import free_text_dfa, word_search
from structgen.core.vocabulary.special_tokens import SpecialToken
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, OptionsError
from tests.core.engines.composed.oracle import allowed, check_walks, remembered, vocabulary

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)


Tagged = list[tuple[str, str, list[str]]]
"""Tags of a case: what begins them, what closes them, and the texts of their parts."""
Reading = tuple[str, int, bytes]


class Simulation:
    """All readings of a text. A reading is free text since the last part, or words of which something is left.

    Readings are ``(kind, parts before it, text)``: "free": the text so far; "part" and "end": what is left to write.
    """

    def __init__(
        self,
        tags: Tagged,
        *,
        least: int = 0,
        most: int | None = None,
        stop: str | None = None,
        free_text: str = "anywhere",
        triggers: list[str] | None = None,
        excludes: list[str] | None = None,
        separator: str = "",
    ) -> None:
        self.least, self.most, self.free_text = least, 10**6 if most is None else most, free_text
        self.stop, self.separator = None if stop is None else stop.encode(), separator.encode()
        self.parts = [b"".join(map(str.encode, (begin, word, end))) for begin, end, words in tags for word in words]
        self.triggers = [trigger.encode() for trigger in triggers or {begin for begin, _, _ in tags}]
        self.excludes = [text.encode() for text in excludes or []]

    def run(self, text: bytes) -> tuple[bool, bool]:
        """Whether the text has a completion, and whether it is one of the language."""
        readings = self.between(0)
        for byte in text:
            readings = {after for reading in readings for after in self.step(reading, bytes([byte]))}
        return bool(readings), any(self.accepts(reading) for reading in readings)

    def text_before(self, used: int) -> bool:
        """Whether a part may come behind free text."""
        places = ("anywhere", "before", "after") if used else ("anywhere", "before")
        return used < self.most and self.free_text in places

    def text_at_end(self, used: int) -> bool:
        """Whether free text may be the end."""
        allowed = {
            "anywhere": True,
            "after": True,
            "before": used < self.most or used == 0,
            "instead": used == 0,
            "none": False,
        }
        return used >= self.least and allowed[self.free_text]

    def between(self, used: int) -> set[Reading]:
        """Readings behind ``used`` parts."""
        found: set[Reading] = set()
        if self.text_before(used) or self.text_at_end(used):
            found.add(("free", used, b""))
        if used < self.most and not self.text_before(used):
            before = self.separator if used else b""
            parts = [before + part for part in self.parts if before + part or used < self.least]
            found |= {reading for part in parts for reading in self.part(used, part)}
        if used >= self.least and not self.text_at_end(used):
            found.add(("end", used, self.stop or b""))
        return found

    def part(self, used: int, left: bytes) -> set[Reading]:
        return {("part", used, left)} if left else self.between(used + 1)

    def accepts(self, reading: Reading) -> bool:
        kind, used, text = reading
        if kind == "free":
            is_utf8 = "\N{REPLACEMENT CHARACTER}" not in text.decode(errors="replace")
            return self.stop is None and self.text_at_end(used) and is_utf8
        return kind == "end" and not text

    def step(self, reading: Reading, byte: bytes) -> set[Reading]:
        kind, used, text = reading
        if kind != "free":
            if text[:1] != byte:
                return set()
            return self.part(used, text[1:]) if kind == "part" else {("end", used, text[1:])}
        text += byte
        if not begins_utf8(text) or any(text.endswith(word) for word in self.excludes):
            return set()
        if self.stop is not None and text.endswith(self.stop):
            return {("end", used, b"")} if self.text_at_end(used) else set()
        for trigger in self.triggers:
            if text.endswith(trigger):
                rests = {part[len(trigger) :] for part in self.parts if part.startswith(trigger)}
                return {after for rest in rests if self.text_before(used) for after in self.part(used, rest)}
        return {("free", used, text)}


def begins_utf8(text: bytes) -> bool:
    """Whether some text in UTF-8 begins so."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


A: Tagged = [("<a>", "", ["b", "ab"])]
AB: Tagged = [("<a", ">", ["b", "a<"]), ("<b", "", ["", ">"])]
CASES: list[dict[str, Any]] = [
    {"tags": A},
    {"tags": AB, "least": 1},
    {"tags": [("<", ">", ["a", "b<"])], "most": 2, "stop": ">b"},
    {"tags": [("ab", "", ["a", "b"]), ("ba", "", ["<"])], "most": 1},
    {
        "tags": [("aa", "", ["a", "aa"]), ("<", "", [">"])],
        "least": 1,
        "most": 1,
        "free_text": "before",
    },
    {
        "tags": [("a", "a", ["b"]), ("b", "", ["a", "<"])],
        "least": 1,
        "most": 3,
        "free_text": "none",
        "stop": "<<",
    },
    {"tags": [("é", "", ["a"]), ("<b>", "", ["b"])], "most": 2, "stop": "aa"},
    {"tags": [("a", "", ["b"])], "most": 0, "stop": "<"},
    {"tags": [("ab", "", ["<"])], "least": 2, "most": 2, "stop": "bb", "free_text": "before"},
    # the same beginning, with other ends and other parts
    {"tags": [("<", ">", ["a", "ab"]), ("<", "", ["b", "ab"]), ("<", "b", ["a"])]},
    {"tags": [("ab", ">", ["a"]), ("ab", ">", ["b", "a"])], "least": 1, "most": 2, "free_text": "after"},
    # one trigger of several tags
    {"tags": [("<a>", ">", ["b"]), ("<b", ">", ["a", ""])], "triggers": ["<"]},
    {"tags": [("aab", "", ["a"]), ("aa<", "a", ["b"]), ("bb", "", ["a"])], "triggers": ["aa", "b"], "stop": "<<"},
    # what free text must not hold
    {"tags": A, "excludes": ["bb", "éa"], "least": 1},
    {"tags": [("<a>", "", ["b"])], "excludes": ["b<", "a>b", "<a>b"], "stop": ">>"},
    # where free text may be
    {"tags": A, "free_text": "after"},
    {"tags": AB, "free_text": "after", "least": 1, "most": 2, "stop": ">a"},
    {"tags": A, "free_text": "after", "most": 1, "excludes": ["bb"]},
    {"tags": A, "free_text": "instead", "separator": ";"},
    {"tags": AB, "free_text": "instead", "most": 2, "stop": "b>"},
    # nothing but parts
    {"tags": A, "free_text": "none", "separator": "<;"},
    {"tags": [("", "", ["a", "ab"]), ("<", ">", ["b"])], "free_text": "none", "separator": ";", "least": 2},
    {"tags": [("", "", ["a", "", "b<"])], "free_text": "none", "most": 2, "stop": "<"},
    {"tags": [("", "", ["a", ""])], "free_text": "none"},
    {"tags": A, "free_text": "none", "separator": "b", "least": 1, "most": 3, "stop": "b<"},
]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("case", CASES, ids=str)
def test_against_the_simulation(case: dict[str, Any], seed: int) -> None:
    rng = random.Random(seed)
    words = vocabulary("ab<>;" if "separator" in case else "ab<>", rng, longer=30)
    options = {{"least": "min_uses", "most": "max_uses"}.get(name, name): value for name, value in case.items()}
    tags = [((begin, end), compile_choice(texts, words)) for begin, end, texts in options.pop("tags")]
    grammar = compile_tag_dispatch(tags, words, **options)
    check_walks(grammar, remembered(Simulation(**case).run), rng, walks=3, steps=8)


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


def test_one_trigger_of_many_tags() -> None:
    """Parts that begin alike are read side by side, none is given up."""
    schemas = [{"properties": {"name": {"const": f"tool {i}"}}, "required": ["name"]} for i in range(100)]
    alike = [(("<t>", "</t>"), compile_json_schema({"type": "object", **schema}, BYTES)) for schema in schemas]
    matcher = compile_tag_dispatch(alike, BYTES).matcher()
    for i in (0, 63, 64, 99):
        assert matcher.accept_bytes(b'Now: <t>{"name": "tool %d"}</t> ' % i)
    assert matcher.is_accepting() and not any(matcher.stats.values())
    digit = compile_regex("[0-9]", BYTES)
    matcher = compile_tag_dispatch({f"<tool {i}>": digit for i in range(200)}, BYTES, triggers=["<tool"]).matcher()
    assert matcher.accept_bytes(b"Now: <tool") and matcher.forced_bytes() == b" "
    assert matcher.accept_bytes(b" 199>7 <tool 19>1") and not matcher.accept_bytes(b"<tool x")


PART = compile_regex("x", BYTES)


@pytest.mark.parametrize(
    ("tags", "options", "message"),
    [
        ([], {}, "at least one tag"),
        ([""], {}, "empty"),
        (["a"], {"stop": ""}, "empty"),
        (["<a", "<a>"], {}, "'<a' is in '<a>'"),
        (["<a>"], {"stop": "a"}, "'a' is in '<a>'"),
        (["<a>"], {"stop": "<a>"}, "'<a>' is in '<a>'"),
        (["\ud800"], {}, "surrogate"),
        ([("a", "\udc00")], {}, "surrogate"),
        ([("a", "b", "c")], {}, "closing string"),
        ([7], {}, "closing string"),
        (["<a", "<b"], {"triggers": ["<a"]}, "'<b' begins with none of the triggers '<a'"),
        (["<a", "<b"], {"triggers": ["<", "x"]}, "no tag begins with the trigger 'x'"),
        (["<a"], {"triggers": ["<", "<a"]}, "no tag begins with the trigger '<a'"),
        (["<a"], {"triggers": [""]}, "empty"),
        (["<a"], {"triggers": [3]}, "triggers and separator are a string or a SpecialToken"),
        (["<a"], {"excludes": ["x", "a"]}, r"'a', which free text must not hold \(excludes\), is in '<a'"),
        (["<a"], {"excludes": [""]}, "at least one character"),
        (["<a"], {"excludes": [SpecialToken(3)]}, "holds no special token anyway"),
        (["<a"], {"excludes": ["\udc00"]}, "surrogate"),
        (["<a"], {"separator": "", "free_text": "none"}, "empty"),
    ],
    ids=str,
)
def test_bad_tags(tags: list[Any], options: dict[str, Any], message: str) -> None:
    for given in (dict.fromkeys(tags, PART), [(tag, PART) for tag in tags]):
        with pytest.raises(ConstraintError, match=message):
            compile_tag_dispatch(given, BYTES, **options)


@pytest.mark.parametrize("tags", [["<a"], "ab", [("<a", 1, 1)], 7, [["<a", 1]]], ids=str)
def test_what_is_no_mapping_and_no_pairs(tags: Any) -> None:
    with pytest.raises(ConstraintError, match=r"tags are \{tag: constraint\} or pairs"):
        compile_tag_dispatch(tags, BYTES)


@pytest.mark.parametrize(
    "options",
    [
        {"min_uses": -1},
        {"max_uses": 10**6},
        {"min_uses": 2, "max_uses": 1},
        {"min_uses": 1.5},
        {"free_text": "some"},
        {"free_text": "before"},
        {"free_text": "instead", "min_uses": 1},
        {"separator": ","},
        {"separator": ",", "free_text": "after"},
        {"excludes": ["x"], "free_text": "none"},
        {"triggers": ["a"], "free_text": "none"},
    ],
    ids=str,
)
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(OptionsError):
        compile_tag_dispatch({"a": PART}, BYTES, **options)


def test_strings_alone_stand_for_lists() -> None:
    matcher = compile_tag_dispatch({"<a>": PART}, BYTES, triggers="<", excludes="no").matcher()
    assert matcher.accept_bytes(b"n <a>x") and not matcher.accept_bytes(b"no") and not matcher.accept_bytes(b"<b")
