"""An engine that keeps the laws works everywhere: the list of texts against the same language by a shipped engine.

Generation, drafts, embedding and aligned sampling see the protocols only, so the two write the same, token by token.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

import pytest

import structgen
from structgen import Generator, Vocabulary, compile_choice, compile_tag_dispatch
from structgen.core.constraints.base import Constraint
from structgen.core.engines.composed.grammar import embed
from structgen.core.engines.laws import check_laws
from structgen.core.engines.protocols import Grammar
from structgen.generation.models.tiny import TinyModel
from structgen.generation.target import PrefixStore, Sampler
from tests.core.engines.composed.test_grammar import lines_of
from tests.core.engines.fixed_texts import FixedTexts
from tests.fakes import CharTokenizer, vocabulary
from tests.package_sources import PATHS, tree

TEXTS = ("yes", "yesterday", "no", "nothing at all", "perhaps")
WORDS = vocabulary(b"ye", b"yes", b"thing", b" a", b"perh", b"ap", b"<t>")


@dataclass(frozen=True)
class Fixed:
    """The texts as a constraint."""

    texts: tuple[str, ...]

    def compile(self, vocabulary: Vocabulary) -> Grammar:
        return FixedTexts(tuple(text.encode() for text in self.texts), vocabulary)

    def parse(self, text: str) -> str:
        return text

    def parse_partial(self, text: str) -> str:
        return text

    def instruction(self) -> str:
        return structgen.choice(self.texts).instruction()


BOTH: tuple[Constraint, Constraint] = (Fixed(TEXTS), structgen.choice(TEXTS))


def generator(**options: Any) -> Generator:
    return Generator(TinyModel(WORDS.size, scale=1.0), CharTokenizer(), vocabulary=WORDS, **options)


def same(results: list[Any]) -> Any:
    assert results[0] == results[1]
    return results[0]


DRAFTS = {"none": None, "n-gram": "ngram", "auto": "auto", "model": TinyModel(WORDS.size, seed=3)}


@pytest.mark.parametrize("draft", DRAFTS.values(), ids=DRAFTS)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_generation_with_and_without_drafts(draft: Any, temperature: float) -> None:
    gen, seen = generator(draft=draft), set()
    for seed in range(12):
        options: Any = {"temperature": temperature, "seed": seed}
        found = same([[r.token_ids, r.text] for c in BOTH for r in [gen.generate("Is it?", c, **options)]])
        seen.add(found[1])
    assert seen <= set(TEXTS) and (temperature == 0 or len(seen) > 1)


def test_batches_streams_and_budgets() -> None:
    gen = generator()
    for constraint in BOTH:
        results = gen.batch(["a", "b", "c"], constraint, temperature=1.0, seed=4)
        assert [result.text in TEXTS for result in results] == [True] * 3
        events = list(gen.stream("a", constraint, temperature=1.0, seed=4))
        assert "".join(event.delta for event in events) == results[0].text
    assert same([gen.generate("a", c, max_new_tokens=2, temperature=1.0, seed=1).text for c in BOTH]) in TEXTS


@pytest.mark.parametrize("method", ["exact", "weighted", "asap", "smc"])
def test_aligned_sampling(method: Any) -> None:
    gen = generator()
    texts = same([gen.sample("Is it?", c, 8, method, seed=2, max_new_tokens=16).texts for c in BOTH])
    assert len(texts) >= 8 and set(texts) <= set(TEXTS)


def test_aligned_sampling_knows_all_of_it() -> None:
    stores = [PrefixStore(generator().target("Is it?", c, max_new_tokens=16)) for c in BOTH]
    for store in stores:
        store.expand_best_first(1000)
    runs = [Sampler(store, "exact", seed=0).draw(20) for store in stores]
    assert same([run.texts for run in runs]) and runs[0].model_calls == 0 and runs[0].tv_bound < 1e-9


def compiled(words: Vocabulary) -> tuple[Grammar, Grammar]:
    data = tuple(text.encode() for text in TEXTS)
    return FixedTexts(data, words), compile_choice(TEXTS, words)


def test_embedded_in_a_grammar() -> None:
    own, shipped = (embed(lines_of(","), {0: part}) for part in compiled(WORDS))

    def judge(text: bytes) -> tuple[bool, bool]:
        matcher = shipped.matcher()
        viable = matcher.accept_bytes(text)
        return viable, viable and matcher.is_accepting()

    check_laws(own, judge, texts=[b"yesno", b"yesterdayyes", b"yes,"], steps=6)
    assert own.last_bytes() == shipped.last_bytes()


def test_a_part_of_tagged_text() -> None:
    own, shipped = (compile_tag_dispatch({("<t>", ">"): part}, WORDS) for part in compiled(WORDS))
    check_laws(own, texts=[b"a <t>yes> b", b"<t>perhaps>"], prefixes=[b"", b"so <t>ye"])
    for text in (b"x <t>no> y", b"<t>yes", b"<t>maybe>", b"<t>yes>"):
        taken = []
        for grammar in (own, shipped):
            matcher = grammar.matcher()
            taken.append((matcher.accept_bytes(text), matcher.is_accepting(), matcher.shortest_completion()))
        same(taken)


TYPE_QUESTIONS = ("isinstance", "issubclass", "type")


def test_nobody_asks_which_engine_it_is() -> None:
    """No ``isinstance`` with a class of grammars or matchers in the library (a constraint is not an engine)."""
    for path in PATHS:
        if path == "core/engines/laws.py":  # asks for the protocols themselves
            continue
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TYPE_QUESTIONS:
                asked = " ".join(ast.unparse(argument) for argument in node.args[1:])
                assert not re.search(r"(Grammar|Matcher)\b", asked), f"{path}: {ast.unparse(node)}"
