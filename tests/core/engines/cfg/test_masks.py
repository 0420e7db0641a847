"""Masks: equal to what `accept_token` does, for every token, from cold and warm caches and after eviction."""

from __future__ import annotations

import os
import random
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from structgen.core.engines.cfg.compiled import CfgGrammar, compile_grammar
from structgen.core.engines.laws import check_laws, check_state, mask_of
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.kernels.cfg import machine as k
from structgen.core.vocabulary.vocabulary import Vocabulary
from tests.core.engines.cfg.lark_grammars import GRAMMARS, JSON, SQL, normal_form

pytest.importorskip("lark")
DATA = Path(os.environ.get("STRUCTGEN_DATA", Path(__file__).parents[4] / ".." / "shared" / "data"))


def small_vocabulary(alphabet: str, seed: int = 0) -> Vocabulary:
    """All bytes, and random words over an alphabet and a few other characters; some twice."""
    rng = random.Random(seed)
    characters = alphabet * 3 + "x \n\"'é()"
    words = {"".join(rng.choices(characters, k=rng.randrange(2, 7))).encode() for _ in range(3000)}
    tokens = [bytes([b]) for b in range(256)] + sorted(words) + sorted(words)[:20]
    return Vocabulary([*tokens, b""], eos_token_ids=len(tokens))


@lru_cache(1)
def o200k() -> Vocabulary:
    if not (DATA / "tokenizers" / "o200k_base.tiktoken").exists():
        pytest.skip("set STRUCTGEN_DATA to a folder with tokenizers/o200k_base.tiktoken")
    from structgen.benchmarking.vocabularies import load_vocabulary

    read = load_vocabulary("o200k", DATA / "tokenizers")
    return Vocabulary([token or None for token in read.tokens], eos_token_ids=read.eos_token_id)


def check_walk(grammar: CfgGrammar, rng: random.Random, steps: int, prefix: bytes = b"") -> None:
    """A random walk by tokens; each mask against acceptance, by this matcher and by a grammar that knows nothing."""
    matcher, text = grammar.matcher(), prefix
    assert matcher.accept_bytes(text)
    for _ in range(steps):
        allowed = check_state(matcher, text=text)
        for _ in range(k.KEPT_AFTER + 2):  # after some uses a mask is kept as one row
            assert np.array_equal(mask_of(matcher), allowed)
        for token in rng.sample(range(grammar.vocabulary.size), 40):  # steps are remembered by token, not by text
            word = grammar.vocabulary.tokens[token]
            assert not word or matcher.copy().accept_bytes(word) == matcher.copy().accept_token(token) == allowed[token]
        following = np.setdiff1d(np.flatnonzero(allowed), grammar.vocabulary.eos_token_ids)
        if not len(following):
            return
        token = int(rng.choice(following.tolist()))
        assert matcher.accept_token(token)
        text += grammar.vocabulary.tokens[token]


@pytest.mark.first_case
@pytest.mark.parametrize("name", GRAMMARS)
def test_small_vocabulary(name: str) -> None:
    text, alphabet = GRAMMARS[name]
    grammar = compile_grammar(normal_form(text), small_vocabulary(alphabet))
    for seed in range(3):
        check_walk(grammar, random.Random(seed), 8)


@pytest.mark.parametrize("text", [JSON, SQL], ids=["json", "sql"])
def test_wide_terminals(text: str) -> None:
    """A vocabulary in which strings, names and what follows blanks are wide states."""
    rng = random.Random(3)
    letters = "abcdeß0_"
    words = {"".join(rng.choices(letters, k=rng.randrange(1, 8))) for _ in range(4000)}
    affixes = ["", " ", '"', "'", '":', '", ', "}}", "\\n", "(", ",", " or", "\n\n", ")) "]
    tokens = {(rng.choice(affixes) + word + rng.choice(affixes)).encode() for word in words}
    vocabulary = Vocabulary([*(bytes([b]) for b in range(256)), *sorted(tokens), b""], eos_token_ids=256 + len(tokens))
    grammar = compile_grammar(normal_form(text), vocabulary)
    for seed in range(4):
        check_walk(grammar, random.Random(seed), 8)


PREFIXES = {
    "json": [b"", b'{"a', b'{"a\\', b'{"a\xc3', b'{"a": [1', b'[[[{"a": {"b": "c"', b'{"a": "b",', b"[[[[[[0"],
    "sql": [b"", b"select a", b"select (a", b"select a from b where c ", b"select ((((a.b", b"select 'it"],
}


@pytest.mark.parametrize("name", PREFIXES)
def test_real_vocabulary(name: str) -> None:
    """Against a full walk of the trie by bytes, by a grammar with cold caches at each place and one that learns."""
    vocabulary = o200k()
    form = normal_form({"json": JSON, "sql": SQL}[name])
    warm = compile_grammar(form, vocabulary)
    for prefix in PREFIXES[name] * 2:
        matcher = warm.matcher()
        assert matcher.accept_bytes(prefix)
        allowed = mask_of(matcher)
        cold = compile_grammar(form, vocabulary).matcher()
        assert cold.accept_bytes(prefix)
        assert np.array_equal(mask_of(cold), allowed)
        tokens = np.random.default_rng(1).permutation(vocabulary.size)[:20_000]
        for token in (*tokens.tolist(), *np.flatnonzero(allowed)[:2000].tolist()):
            if accepted := matcher.accept_token(token):
                matcher.rollback()
            assert accepted == allowed[token], vocabulary.tokens[token]


def test_eviction() -> None:
    """Masks are right and memory is bounded when they are forgotten all the time."""
    form = normal_form(JSON)
    vocabulary = small_vocabulary('{}[],:"ab1')
    bounded, free = compile_grammar(form, vocabulary, mask_bytes=1 << 13), compile_grammar(form, vocabulary)
    rng = random.Random(5)
    one, two = bounded.matcher(), free.matcher()
    for _ in range(300):
        allowed = mask_of(one)
        assert np.array_equal(allowed, mask_of(two))
        following = np.setdiff1d(np.flatnonzero(allowed), vocabulary.eos_token_ids)
        if not len(following) or rng.random() < 0.03:
            one.reset()
            two.reset()
            continue
        token = int(rng.choice(following.tolist()))
        assert one.accept_token(token) and two.accept_token(token)
    assert bounded.machine().evictions >= 2
    assert bounded.machine()._masks.nbytes <= 1 << 15  # a single mask may need more than the bound


def test_fresh_machine_when_rows_outgrow_their_bound() -> None:
    grammar = compile_grammar(normal_form(JSON), small_vocabulary("[]"), row_bytes=200_000)
    old = grammar.matcher()
    assert old.accept_bytes(b"[" * 3000)
    new = grammar.matcher()
    assert new._machine is not old._machine
    assert old.accept_bytes(b"]" * 3000) and old.is_accepting()
    assert new.accept_bytes(b"[[]]") and new.is_accepting()


def test_growth_in_the_middle_of_a_call() -> None:
    """Each kind of memory runs out and is replaced; the states stay what they were."""
    grammar = compile_grammar(normal_form(GRAMMARS["palindrome"][0]), small_vocabulary("ab"))
    matcher = grammar.matcher()
    text = b"ab" * 400
    assert matcher.accept_bytes(text)
    assert matcher.accept_bytes(text[::-1])
    assert matcher.is_accepting()
    check_walk(grammar, random.Random(0), 1, prefix=text)


def _forms() -> list[ContextFreeGrammar]:
    return [normal_form(GRAMMARS[name][0]) for name in ("expression", "list", "words")]


@pytest.mark.parametrize("form", _forms(), ids=["expression", "list", "words"])
def test_laws(form: ContextFreeGrammar) -> None:
    check_laws(compile_grammar(form, small_vocabulary("a+*([],1 bc")), steps=30, exact=True, seed=2)
