"""A prompt's end is healed: what follows has the distribution of whole texts that begin with the prompt."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import structgen as sg
from structgen.core.tokenization.canonical import SpelledSoFar
from structgen.core.tokenization.reading import canonical_spelling
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError, IncompleteOutputError, OptionsError
from structgen.generation.decoding import healing
from structgen.generation.decoding.healing import HealedPrompt, PromptEnd
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from structgen.generation.search.guidance import Guidance
from tests.core.tokenization.small_tokenizers import PATTERNS, PIECES, encode, trained
from tests.generation.decoding.test_canonical_spelling import Tokenizer
from tests.many import cases


class ModelOfTexts(TinyModel):
    """Writes texts of a list, each with its probability, in the tokens that its tokenizer makes of them."""

    def __init__(self, backend: Any, texts: dict[str, float]) -> None:
        super().__init__(backend.get_vocab_size())
        self.masses: defaultdict[tuple[int, ...], float] = defaultdict(float)
        self.end = backend.token_to_id("<e>")
        for text, probability in texts.items():
            tokens = [self.end, *encode(backend, text), self.end]
            for length in range(1, len(tokens) + 1):
                self.masses[tuple(tokens[:length])] += probability

    def _logits(self, history: Sequence[int]) -> Any:
        masses = np.array([self.masses[(*history, token)] for token in range(self.vocab_size)], np.float32)
        if not masses.any():
            masses[self.end] = 1.0
        with np.errstate(divide="ignore"):
            return np.log(masses)


class Beginning(Tokenizer):
    """One that begins each text with ``<e>``."""

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """Ids."""
        return [self.eos_token_id, *super().encode(text)]


@cache
def world(name: str, seed: int = 0) -> tuple[Generator, dict[str, float]]:
    """A generator of few texts, and the probability of each."""
    rng = random.Random(seed)
    pieces = [piece for piece in PIECES[:-3] if piece != '{"']
    texts = {"".join(rng.choices(pieces, k=rng.choice([1, 2, 3, 4]))): rng.expovariate(1.0) for _ in range(250)}
    total = sum(texts.values())
    texts = {text: weight / total for text, weight in texts.items()}
    tokenizer = Beginning(trained(PATTERNS[name]))
    vocabulary = Vocabulary.from_transformers(tokenizer.backend_tokenizer, eos_token_ids=tokenizer.eos_token_id)
    model = ModelOfTexts(tokenizer.backend_tokenizer, texts)
    return Generator(model, tokenizer, vocabulary=vocabulary), texts


def covers_of(made: Generator, prompt: str, monkeypatch: pytest.MonkeyPatch) -> list[HealedPrompt]:
    """All that may be drawn."""
    monkeypatch.setattr(healing, "MOST_TRIED", 10_000)
    ids = made.tokenizer.encode(prompt)
    end = PromptEnd(canonical_spelling(made.tokenizer, made.vocabulary), ids)
    found = list[HealedPrompt]()

    def begin(healed: HealedPrompt, position: SpelledSoFar) -> None:
        found.append(healed)
        raise GenerationError("the next one")

    def read(prefixes: Sequence[tuple[int, ...]]) -> Any:
        return [made.model.prefill([[*ids[: end.kept], *prefix]])[0][0] for prefix in prefixes]

    with pytest.raises(GenerationError, match="the next one"):
        end.drawn(read, made.vocabulary, None, 1.0, 0, begin, is_canonical=False)
    model: Any = made.model
    before = model.masses[tuple(ids[: end.kept])]
    return [HealedPrompt(each.dropped, each.token_ids, each.data, each.log_prob + math.log(before)) for each in found]


@pytest.mark.first_case
@pytest.mark.parametrize("name", ["none", "gpt2", "cl100k", "digits"])
def test_covers_have_the_whole_probability_of_texts_that_begin_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, texts = world(name)
    crossing = 0
    for seed in cases(400, 15):
        text = random.Random(seed).choice(list(texts))
        prompt = text[: random.Random(seed).randint(1, len(text))]
        expected: defaultdict[bytes, float] = defaultdict(float)
        for other, probability in texts.items():
            if other.startswith(prompt):
                expected[other.encode()] += probability
        covers = covers_of(made, prompt, monkeypatch)
        assert sum(math.exp(each.log_prob) for each in covers) == pytest.approx(sum(expected.values()), rel=1e-4)
        for cover in covers:  # and each has that of the texts that are spelled so
            those = [w for t, w in texts.items() if t.startswith(prompt) and _begins(made, t, prompt, cover)]
            assert math.exp(cover.log_prob) == pytest.approx(sum(those), rel=1e-4)
            crossing += bool(cover.data)
    assert crossing


def _begins(made: Generator, text: str, prompt: str, cover: HealedPrompt) -> bool:
    kept = len(made.tokenizer.encode(prompt)) - cover.dropped
    return tuple(made.tokenizer.encode(text)[kept : kept + len(cover.token_ids)]) == cover.token_ids


@pytest.mark.full
@pytest.mark.parametrize("spelling", ["any", "canonical"])
def test_what_is_written_is_distributed_as_whole_texts(spelling: Any) -> None:
    made, texts = world("gpt2")
    prompts = ["t", "a", " ", "x"][: len(cases(4, 1))]
    for prompt in prompts:
        those = {text[len(prompt) :]: weight for text, weight in texts.items() if text.startswith(prompt)}
        total, count = sum(those.values()), len(cases(4_000, 150))
        options: Any = {"temperature": 1.0, "spelling": spelling, "heal_prompt": True}
        drawn = Counter(made.generate(prompt, seed=seed, **options).text for seed in range(count))
        assert drawn.keys() <= those.keys()
        for text, weight in those.items():
            share = weight / total
            assert abs(drawn[text] / count - share) < 4.5 * math.sqrt(share * (1 - share) / count) + 1e-9, text


def test_without_it_texts_are_out_of_reach() -> None:
    made, texts = world("none")
    written = {made.generate("t", temperature=1.0, seed=seed).text for seed in range(20)}
    assert all("t" + text not in texts for text in written if text)
    healed = {made.generate("t", temperature=1.0, seed=seed, heal_prompt=True).text for seed in range(20)}
    assert healed and all("t" + text in texts for text in healed)


@pytest.mark.full
def test_results_streams_batches_and_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = world("digits")
    options: Any = {"temperature": 1.0, "seed": 5, "heal_prompt": True, "schema_in_prompt": False}
    monkeypatch.setattr(Generator, "reads_drafts", False)
    apart = made.generate("the t", **options)
    monkeypatch.undo()
    assert apart.healed == made.generate("the t", **options).healed
    for constraint in (None, sg.regex(r"[\s\S]{1,30}"), ["he the", "he ab", "e", "eab"]):
        alone = made.generate("the t", constraint, **options)
        healed = alone.healed
        assert healed is not None and alone.text.startswith(healed.text)
        ids = made.tokenizer.encode("the t")
        tokens = [*ids[: len(ids) - healed.dropped], *healed.token_ids, *alone.token_ids]
        assert made.vocabulary.decode(tokens[1:]).decode() == "the t" + alone.text
        *events, last = made.stream("the t", constraint, **options)
        assert last.result is not None and "".join(event.delta for event in [*events, last]) == alone.text
        (batched,) = made.batch(["the t"], [constraint], **options)
        drafted = made.generate("the t", constraint, draft="ngram", **options)
        for other in (last.result, batched, drafted):
            assert (other.text, other.healed, other.token_ids) == (alone.text, healed, alone.token_ids)


@pytest.mark.full
def test_budgets_greed_and_stops() -> None:
    made, _ = world("digits")
    likeliest = made.generate("th", heal_prompt=True)
    assert likeliest.healed == made.generate("th", heal_prompt=True, seed=8).healed
    cut = made.generate("th", sg.regex(r"e[\s\S]{0,30}"), heal_prompt=True, max_new_tokens=1, schema_in_prompt=False)
    assert cut.text.startswith("e") and len(cut.token_ids) <= 1
    stopped = made.generate("th", heal_prompt=True, stop="e")
    assert stopped.text == "" and stopped.finish_reason == "stop"
    with pytest.raises(IncompleteOutputError):
        made.generate("t", ["he!!!!!!!!!!!!1212"], heal_prompt=True, max_new_tokens=1, schema_in_prompt=False)


def test_nothing_to_heal(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = world("none")
    assert made.generate("ab<e>", heal_prompt=True, max_new_tokens=3).healed is None
    monkeypatch.setattr(made.tokenizer, "chat_template", "{{ messages[0].content }}")
    monkeypatch.setattr(type(made.tokenizer), "apply_chat_template", lambda _, m, **__: m[0]["content"], raising=False)
    assert made.generate("t", heal_prompt=True, max_new_tokens=3).healed is None


def test_what_was_drawn_is_read_whatever_was_written_before() -> None:
    made, prompt, constraint = world("digits")[0], "12 ab " * 9 + "t", sg.regex("he[a-z ]{12}")
    options: Any = {"temperature": 1.0, "max_new_tokens": 20, "schema_in_prompt": False}

    def fresh() -> Generator:
        return Generator(TinyModel(made.vocabulary.size, seed=3), made.tokenizer, vocabulary=made.vocabulary)

    used = fresh()
    for seed in range(20):  # spelled after the prompt's own tokens, some with the same text
        used.generate(prompt, constraint, seed=100 + seed, **options)
    crossing = 0
    for seed in range(10):
        alone = fresh().generate(prompt, constraint, seed=seed, heal_prompt=True, **options)
        again = used.generate(prompt, constraint, seed=seed, heal_prompt=True, **options)
        assert (again.text, again.healed) == (alone.text, alone.healed)
        crossing += bool(alone.healed and alone.healed.data)
    assert crossing


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = world("none")
    for options in ({"fields": True}, {"choose": "value"}, {"guidance": Guidance(without="x")}):
        with pytest.raises(OptionsError, match="heal_prompt"):
            made.generate("t", {"type": "integer"}, heal_prompt=True, **options)
    wrong: Any = {"heal_prompt": 1}
    with pytest.raises(OptionsError, match="True or False"):
        made.generate("t", **wrong)
    with pytest.raises(GenerationError, match="anywhere or nowhere"):
        made.generate("the ab" * 700, heal_prompt=True)
    monkeypatch.setattr(healing, "MOST_MEMORY", 1 << 16)  # of large vocabularies fewer: each byte takes their size
    with pytest.raises(GenerationError, match=r"at most \d\d anew"):
        made.generate("the ab" * 30, heal_prompt=True)
