"""Tagged text and JSON lines as constraint values: what they parse, and what a generator writes with them."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pydantic
import pytest

from structgen.core.constraints.composed import TagDispatch, TagPart, json_lines, tag_dispatch
from structgen.core.constraints.tagged_text import read_parts
from structgen.core.constraints.text import choice, regex
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, GenerationError, OptionsError
from structgen.generation.generator import Generator
from structgen.options import JsonOptions
from tests.core.engines.composed.oracle import vocabulary
from tests.fakes import CharTokenizer

CALL = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


class Weather(pydantic.BaseModel):
    """A type for a part."""

    city: str
    days: int = 1


def test_parts_of_a_text() -> None:
    constraint = tag_dispatch({("<tool>", "</tool>"): Weather, "Answer: ": regex("[0-9]+"), "[": choice(["a", "a]"])})
    text = 'Let me see.<tool>{"city": "Köln</tool>", "days": 2}</tool> So: [a] Answer: 12'
    assert constraint.parse(text) == [
        "Let me see.",
        TagPart("<tool>", Weather(city="Köln</tool>", days=2), '{"city": "Köln</tool>", "days": 2}'),
        " So: ",
        TagPart("[", "a]", "a]"),
        " ",
        TagPart("Answer: ", "12", "12"),
    ]
    assert constraint.parse("") == [] and constraint.parse("just text") == ["just text"]
    for wrong in ("<tool>", "<tool>{}</tool>", "Answer: ", 'x<tool>{"city": "a"}</tool', "[b"):
        with pytest.raises(GenerationError, match="no tagged text"):
            constraint.parse(wrong)


def test_parts_of_unfinished_text() -> None:
    constraint = tag_dispatch({("<tool>", "</tool>"): CALL, "=": regex("[0-9]+")})
    assert constraint.parse_partial("") == []
    assert constraint.parse_partial("ab <to") == ["ab <to"]
    assert constraint.parse_partial('ab <tool>{"n": 1') == ["ab ", TagPart("<tool>", {}, '{"n": 1')]
    whole = TagPart("<tool>", {"n": 1}, '{"n": 1}')
    for end in ("", "</to", "</tool>"):
        assert constraint.parse_partial('ab <tool>{"n": 1}' + end) == ["ab ", whole]
    assert constraint.parse_partial("=12") == [TagPart("=", "12", "12")]
    assert constraint.parse_partial("=12 =") == [TagPart("=", "12", "12"), " ", TagPart("=", "", "")]


def test_counts_and_stops_in_what_is_parsed() -> None:
    """Where a text has several readings, one that is allowed is taken."""
    twice = tag_dispatch({"a": regex("(ab?)*")}, min_uses=2, free_text="none")
    assert [part.text for part in twice.parse("aaba") if isinstance(part, TagPart)] == ["ab", ""]
    once = tag_dispatch({"a": regex("b*")}, max_uses=1, stop="$", free_text="before")
    assert once.parse("xabb$") == ["x", TagPart("a", "bb", "bb")] and once.parse("x$") == ["x"]
    for wrong in ("xabb", "xabbx$", "xab$$", "abab$"):
        with pytest.raises(GenerationError):
            once.parse(wrong)


def test_which_of_several_tags_a_part_is_of() -> None:
    """Tags that begin alike are tried in their order, where the rest of the text is read too."""
    small, large = {"type": "integer", "maximum": 9}, {"type": "integer"}
    numbers = tag_dispatch([(("<n>", "</n>"), small), (("<n>", "</n>"), large), (("<n>", ";"), large)])
    parts = numbers.parse("<n>7</n><n>12</n><n>3;")
    assert [part.tag for part in parts if isinstance(part, TagPart)] == [0, 1, 2]
    assert parts == [TagPart("<n>", 7, "7"), TagPart("<n>", 12, "12"), TagPart("<n>", 3, "3")]
    assert [part.tag for part in numbers.parse_partial("<n>12") if isinstance(part, TagPart)] == [1]
    functions = tag_dispatch({("<f=a>", ";"): small, ("<f=b>", ";"): large}, triggers=["<f="], excludes=["no"])
    assert functions.parse("so <f=b>12;") == ["so ", TagPart("<f=b>", 12, "12")]
    assert functions.parse_partial("so <f=") == ["so "] and functions.parse_partial("so <f") == ["so <f"]
    for wrong in ("<f=c>1;", "<f=a>12;", "so <f=", "oh no", "oh no <f=a>1;"):
        with pytest.raises(GenerationError):
            functions.parse(wrong)


def test_where_free_text_may_be() -> None:
    thought = regex(r"(?:(?!</think>)[\s\S])*")
    thinking = tag_dispatch({("<think>", "</think>"): thought}, min_uses=1, max_uses=1, free_text="after")
    assert thinking.parse("<think>so <b></think>Yes.") == [TagPart("<think>", "so <b>", "so <b>"), "Yes."]
    calls = tag_dispatch({"": CALL}, free_text="none", separator="; ", min_uses=1)
    assert [p.value["n"] for p in calls.parse('{"n": 1}; {"n": 2}') if isinstance(p, TagPart)] == [1, 2]
    either = tag_dispatch({("call ", "."): CALL}, free_text="instead", separator="; ")
    assert either.parse('call {"n": 1}.; call {"n": 2}.')[1:] == [TagPart("call ", {"n": 2}, '{"n": 2}')]
    assert either.parse("No.") == ["No."] and either.parse("") == []
    assert either.parse_partial('call {"n": 1}.; ca') == [TagPart("call ", {"n": 1}, '{"n": 1}')]
    for constraint, wrong in (
        (thinking, ["Yes.", "x<think></think>", "<think></think><think>"]),
        (calls, ["", '{"n": 1};', '{"n": 1}{"n": 2}', "No."]),
        (either, ['x call {"n": 1}.', 'call {"n": 1}. x', 'call {"n": 1}.call {"n": 1}.']),
    ):
        for text in wrong:
            with pytest.raises(GenerationError):
                constraint.parse(text)


@pytest.mark.parametrize(
    "constraint",
    [
        tag_dispatch({("<", ">"): regex("[ab]*"), "b": choice(["a", "ab", "aba"])}, min_uses=1, max_uses=3),
        tag_dispatch({"a": regex("(a|b<)*"), ("<", "a"): regex("b?")}, stop=">>"),
        tag_dispatch({"ab": regex("[<>]+"), "ba": regex("a*")}, min_uses=1, max_uses=2, free_text="before", stop="<>b"),
        tag_dispatch([(("<", ">"), regex("[ab]*")), (("<", ">"), regex("[ab<]*")), (("<", "b"), regex("a*"))]),
        tag_dispatch({("a<", ">"): regex("a*"), ("ab", ""): regex("b?")}, triggers=["a"], excludes=["bb", "<a"]),
        tag_dispatch({"a<": regex("[ab]*"), ("b", "<"): regex("[a<]*")}, free_text="after", stop=">>"),
        tag_dispatch({("<", ">"): regex("[ab]*")}, free_text="instead", separator="ab", max_uses=3),
        tag_dispatch({"": regex("[ab]*"), "<": regex("[ab>]*")}, free_text="none", separator=">"),
    ],
    ids=["closed", "stopped", "before", "alike", "triggers", "after", "instead", "none"],
)
def test_whatever_is_allowed_parses(constraint: TagDispatch) -> None:
    """The pieces of random outputs put the output together again."""
    rng = random.Random(3)
    words = vocabulary("ab<>", rng, longer=10)
    for _ in range(60):
        matcher = constraint.compile(words).matcher()
        text = b""
        for _ in range(rng.randint(0, 8)):
            bitmask = np.zeros((1, -(-words.size // 32)), np.int32)
            matcher.fill_next_token_bitmask(bitmask)
            ids: list[int] = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8), bitorder="little")).tolist()
            token = rng.choice([i for i in ids if words.tokens[i]] or [0])
            if not words.tokens[token] or not matcher.accept_token(token):
                break
            text += words.tokens[token]
            prefix = text.decode(errors="ignore")
            if prefix.encode() == text:  # no character is cut
                assert read_parts(constraint.rules, constraint.constraints, prefix, is_whole=False) is not None
            constraint.parse_partial(prefix)
        text += matcher.shortest_completion()
        pieces = constraint.parse(text.decode())
        written, rules, was_part = "", constraint.rules, False
        for piece in pieces:
            if isinstance(piece, str):
                written, was_part = written + piece, False
                continue
            begin, end = rules.tags[piece.tag]
            assert piece.trigger == begin
            written += f"{rules.separator if was_part and rules.separator else ''}{begin}{piece.text}{end}"
            was_part = True
        assert written + str(rules.stop or "") == text.decode()


def test_instructions() -> None:
    told = tag_dispatch({("<t>", "</t>"): CALL}, min_uses=1, max_uses=2, stop="END").instruction()
    for expected in ("<t>", "</t>", '"integer"', "at least 1 and at most 2", "END"):
        assert expected in told
    told = json_lines(CALL, min_lines=2, max_lines=5).instruction()
    assert "at least 2" in told and "at most 5" in told and '"integer"' in told


def test_bad_constraints() -> None:
    with pytest.raises(ConstraintError, match="no constraint"):
        tag_dispatch({"a": None})
    with pytest.raises(ConstraintError, match="at least one tag"):
        tag_dispatch({})
    with pytest.raises(OptionsError):
        tag_dispatch({"a": True}, max_uses=-1)
    with pytest.raises(OptionsError):
        json_lines(True, JsonOptions(whitespace="any"))


def test_json_lines_values() -> None:
    lines = json_lines(Weather)
    assert lines.parse('{"city": "a\\n"}\n{"city": "b", "days": 3}\n') == [
        Weather(city="a\n"),
        Weather(city="b", days=3),
    ]
    assert lines.parse("") == [] == lines.parse_partial("")
    assert json_lines(CALL).parse_partial('{"n": 1}\n{"n": 2') == [{"n": 1}, {}]


class Uniform:
    """A language model that likes all tokens alike, but for some noise."""

    context_length = None

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size, self.eos_token_ids = vocab_size, (0,)
        self._rng = np.random.default_rng(0)

    def prefill(self, prompts: list[list[int]]) -> tuple[Any, Any]:
        """Logits and a cache of nothing."""
        return self._rng.normal(size=(len(prompts), self.vocab_size)), self

    def forward(self, tokens: list[list[int]], cache: Any) -> Any:
        """More noise."""
        return self._rng.normal(size=(len(tokens), len(tokens[0]), self.vocab_size))

    def select(self, rows: list[int]) -> None:
        """Nothing is kept."""


def test_a_generator_writes_them() -> None:
    tokens = [None] + [bytes([byte]) for byte in range(128)]
    words = Vocabulary(tokens, eos_token_ids=0)
    tokenizer = CharTokenizer(eos=1)
    generator = Generator(Uniform(words.size), tokenizer, vocabulary=words)
    constraint = tag_dispatch({("<t>", "</t>"): CALL}, min_uses=2, max_uses=2)
    for seed in range(3):
        result = generator.generate("Go", constraint, max_new_tokens=80, temperature=1.0, seed=seed)
        assert sum(isinstance(piece, TagPart) for piece in result.value) == 2
        assert all(isinstance(piece.value["n"], int) for piece in result.value if isinstance(piece, TagPart))
        lines = generator.generate("Go", json_lines(CALL, min_lines=2), max_new_tokens=40, temperature=1.0, seed=seed)
        assert len(lines.value) >= 2
    events = list(generator.stream("Go", constraint, max_new_tokens=60))
    assert events[-1].result is not None and events[-1].partial == events[-1].result.value
