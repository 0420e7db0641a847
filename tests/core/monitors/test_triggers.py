"""Names after triggers, judged by all texts of small languages; and what is counted, refused and combined."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

import structgen
from structgen.core.constraints.parts import BYTES
from structgen.core.engines.laws import check_laws, mask_of
from structgen.core.monitors.protocol import ToolFailure
from structgen.errors import ConstraintError, GenerationError
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from tests.core.tokenization.small_tokenizers import PATTERNS, trained
from tests.generation.decoding.test_canonical_spelling import Tokenizer
from tests.many import MANY, cases

PIECES = ["a", "b", "ab", "ba", "é", ".", ".a", ".b.", "..", "->", "-", ">", " ", ";", "a.", "x.b", "x", "x."]
TOKENS: list[bytes | None] = [*(bytes([byte]) for byte in range(256))]
TOKENS += [*(piece.encode() for piece in PIECES if len(piece.encode()) > 1), b"a.ba", b".ab;", b"->a", b"->ab.", b">a"]
TOKENS += [b"b;", b"x.a.", b".b.a", "é.".encode(), b"\xc3", b"\xa9.", None]
VOCABULARY = structgen.Vocabulary(TOKENS, eos_token_ids=len(TOKENS) - 1)
NAME = re.compile(r"[A-Za-z0-9_\u0080-\U0010ffff]*")


class Chance:
    """Suggests some names, by the text."""

    def __init__(self, triggers: tuple[str, ...], seed: int) -> None:
        self.triggers, self.seed, self.asked = triggers, seed, set[str]()

    def suggest(self, text: str) -> list[str] | None:
        """By chance."""
        self.asked.add(text)
        rng = random.Random(f"{self.seed} {text}")
        names = ["a", "b", "ab", "ba", "x", "é", "aé", "", "a b", "bab"]
        return None if rng.random() < 0.1 else rng.sample(names, rng.randint(0, 5))


def judged(texts: list[str], monitor: Any) -> Callable[[bytes], tuple[bool, bool]]:
    """By the definition, on all texts of the language below."""

    @cache
    def kept(text: str) -> frozenset[str]:
        names = monitor.suggest(text)
        following = [other[len(text) :] for other in texts if other.startswith(text)]
        runs = {NAME.match(rest)[0] for rest in following}  # type: ignore[index]
        return frozenset(name for name in names or () if name and name in runs)

    def is_valid(text: str) -> bool:
        for place in range(len(text) + 1):
            if any(text[:place].endswith(trigger) for trigger in monitor.triggers):
                names = kept(text[:place])
                if names and NAME.match(text, place)[0] not in names:  # type: ignore[index]
                    return False
        return True

    valid = [text.encode() for text in texts if is_valid(text)]
    beginnings = {text[:end] for text in valid for end in range(len(text) + 1)}
    return lambda data: (data in beginnings, data in set(valid))


@pytest.mark.parametrize("triggers", [(".",), ("->", "."), ("x.", "..")], ids=" ".join)
@pytest.mark.parametrize("how", ["choice", "grammar"])
def test_it_is_the_language_of_its_definition(triggers: tuple[str, ...], how: str) -> None:
    for seed in cases(60, 1):
        rng = random.Random(seed)
        texts = sorted({"".join(rng.choices(PIECES, k=rng.randint(1, 6))) for _ in range(120)})
        base = structgen.choice(texts)
        if how == "grammar":
            base = structgen.lark("start: " + " | ".join(f'"{text}"' for text in texts))  # type: ignore[assignment]
        monitor = Chance(triggers, seed)
        grammar = structgen.monitored(base, monitor).compile(VOCABULARY)
        check_laws(grammar, judged(texts, Chance(triggers, seed)), walks=6, steps=6, seed=seed)


def test_free_text_over_a_large_vocabulary_allows_what_it_accepts() -> None:
    """With recursion below: masks against acceptance, and every output ends."""
    tokens: list[bytes | None] = [*TOKENS[:-1]]
    tokens += [
        f"{a}{b}{c}".encode() for a in (".", "a.", "->", "") for b in ("ab", "x", "bab") for c in (";", ".a", "")
    ]
    vocabulary = structgen.Vocabulary([*tokens, None], eos_token_ids=len(tokens))
    for base in (None, structgen.lark('start: e ";"\ne: /[abx]+/ | e "." /[abx]+/ | "(" e ")"')):
        grammar = structgen.monitored(base, Chance((".",), 1)).compile(vocabulary)
        check_laws(grammar, walks=8 if MANY else 2, steps=8, likely=b".a(b")


def test_names_that_exist_are_written_and_no_others() -> None:
    class Fields:
        triggers = ("user.",)

        def suggest(self, text: str) -> list[str]:
            return ["name", "age"]

    text = structgen.monitored(structgen.regex(r"(user\.\w+|\d| \+ |other\.\w+)+"), Fields())
    matcher = text.compile(VOCABULARY).matcher()
    assert matcher.accept_bytes(b"user.name + other.thing + user.ag") and not matcher.is_accepting()
    assert matcher.forced_bytes() == b"e"
    assert not matcher.accept_bytes(b"x") and matcher.accept_bytes(b"e") and matcher.is_accepting()
    assert not matcher.accept_bytes(b"s")
    assert text.parse("user.name") == "user.name" and text.compile(VOCABULARY) is text.compile(VOCABULARY)


def test_empty_late_and_failing_answers_leave_it_to_the_grammar() -> None:
    for answer, count in (
        ([], "empty_suggestions"),
        (TimeoutError(), "monitor_timeouts"),
        (ToolFailure("x"), "monitor_failures"),
    ):

        class Tool:
            triggers = (".",)

            def suggest(self, text: str, answer: Any = answer) -> Any:
                if isinstance(answer, Exception):
                    raise answer
                return answer

        constraint = structgen.monitored(structgen.regex(r"a\.(b|ab);"), Tool())
        matcher = constraint.compile(VOCABULARY).matcher()
        assert matcher.accept_bytes(b"a.") and mask_of(matcher)[[ord("a"), ord("b")]].all()
        twin = matcher.fork()
        assert twin.accept_bytes(b"b;") and twin.is_accepting()
        twin.reset()
        assert twin.accept_bytes(b"a.b;") and twin.stats == matcher.stats
        assert {name for name, number in matcher.stats.items() if number} == {count}
        tokenizer = Tokenizer(trained(PATTERNS["gpt2"]))
        vocabulary = structgen.Vocabulary.from_transformers(tokenizer.backend_tokenizer, eos_token_ids=0)
        made = Generator(TinyModel(vocabulary.size), tokenizer, vocabulary=vocabulary)
        result = made.generate("x", constraint, draft="ngram", max_new_tokens=9)
        assert result.text in ("a.b;", "a.ab;") and result.stats.monitors[count] >= 1


def test_an_error_of_a_monitor_leaves_the_matcher_where_it_was() -> None:
    class Broken:
        triggers = (".",)

        def suggest(self, text: str) -> list[str]:
            raise KeyError("no")

    matcher = structgen.monitored(None, Broken()).compile(VOCABULARY).matcher()
    assert matcher.accept_bytes(b"a")
    with pytest.raises(GenerationError, match=r"monitor Broken failed after the text 'a\.': KeyError"):
        matcher.accept_bytes(b".b")
    assert matcher.accept_bytes(b"b") and matcher.is_accepting()


def test_it_combines() -> None:
    class Names:
        triggers = (".",)

        def suggest(self, text: str) -> list[str]:
            return ["ab", "x"]

    inside = structgen.regex(r"[abx.]{1,9}") & structgen.avoiding(["x"])
    matcher = structgen.monitored(inside, Names()).compile(BYTES).matcher()
    assert matcher.accept_bytes(b"a.") and matcher.forced_bytes() == b"ab"
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"type": "string", "maxLength": 12}},
        "required": ["a"],
    }
    schema["additionalProperties"] = False
    matcher = structgen.monitored(schema, Names()).compile(BYTES).matcher()
    assert matcher.accept_bytes(b'{"a": "q.') and matcher.shortest_completion() == b'x"}'
    outside = structgen.monitored(structgen.regex(r"[ab.]{1,9}"), Names()) + ";"
    matcher = outside.compile(VOCABULARY).matcher()
    assert matcher.accept_bytes(b"b.ab;") and matcher.is_accepting()
    with pytest.raises(ConstraintError):
        (structgen.monitored(None, Names()) & structgen.avoiding(["x"])).compile(VOCABULARY)


def test_captures_are_those_of_the_grammar() -> None:
    class Names:
        triggers = (".",)

        def suggest(self, text: str) -> list[str]:
            return ["ab"]

    base = structgen.lark('start: "q." who\nwho: /[a-z]+/', captures=["who"])
    matcher = structgen.monitored(base, Names()).compile(VOCABULARY).matcher()
    assert not matcher.accept_bytes(b"q.x") and matcher.accept_bytes(b"q.ab")
    assert matcher.captures()["who"].text == "ab" and structgen.monitored(base, Names()).captures("q.ab")


def test_what_is_refused() -> None:
    class Wrong:
        def __init__(self, triggers: Any) -> None:
            self.triggers = triggers

        def suggest(self, text: str) -> None:
            return None

    for triggers in ((), ("",), ".", (".", "a"), ("é",)):
        with pytest.raises(ConstraintError, match="trigger"):
            structgen.monitored(None, Wrong(triggers))
    with pytest.raises(ConstraintError, match="method suggest"):
        structgen.monitored(None, object())  # type: ignore[arg-type]


class Slow(Chance):
    is_slow = True


def small_generator() -> Generator:
    vocabulary = structgen.Vocabulary(TOKENS, eos_token_ids=len(TOKENS) - 1)
    tokenizer = Tokenizer(trained(PATTERNS["none"]))
    return Generator(TinyModel(vocabulary.size, scale=1.0), tokenizer, vocabulary=vocabulary)


@pytest.mark.full
def test_slow_monitors_are_asked_about_what_was_drawn_and_change_no_distribution() -> None:
    rng, made = random.Random(5), small_generator()
    texts = sorted({"".join(rng.choices(PIECES, k=rng.randint(2, 5))) for _ in range(60)})
    quick, slow = Chance((".",), 1), Slow((".",), 1)
    counts: list[Counter[str]] = [Counter(), Counter()]
    number, refused = len(cases(6_000, 250)), 0
    for drawn, monitor in zip(counts, (quick, slow), strict=True):
        constraint = structgen.monitored(structgen.choice(texts), monitor)
        options: Any = {"max_new_tokens": 40, "schema_in_prompt": False}
        for seed in range(number):
            result = made.generate("t", constraint, temperature=1.0, seed=seed, **options)
            drawn[result.text] += 1
            refused += result.stats.refused_tokens
        greedy = made.generate("t", constraint, **options)
        assert greedy.text == made.generate("t", structgen.monitored(structgen.choice(texts), quick), **options).text
        for seed in range(20):
            alone, drafted = (
                made.generate("t", constraint, temperature=1.0, seed=seed, draft=draft, **options)
                for draft in (None, "ngram")
            )
            assert drafted.text in texts and drafted.text in counts[0]
            assert alone.text == drafted.text or monitor is slow
    assert refused
    for text in counts[0] | counts[1]:
        share = (counts[0][text] + counts[1][text]) / (2 * number)
        assert abs(counts[0][text] - counts[1][text]) / number < 5 * math.sqrt(2 * share / number), text
