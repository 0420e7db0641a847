"""XGrammar reads a part of the dialect: what it reads means the same there."""

from __future__ import annotations

import random
from typing import Any

import pytest

from structgen.core.compilers import compile_lark
from tests.core.grammars.dialects.llguidance.grammars import GRAMMARS
from tests.core.grammars.dialects.llguidance.peers import BYTES, chosen, mutants

xgrammar = pytest.importorskip("xgrammar")

REFUSED = {
    *("strings", "regex_unicode", "regex_flags", "regex_groups", "regex_dots", "lazy_terminals"),
    *("and_not", "and", "not_in_rule", "not_repeated", "substring_words", "substring_terminal", "header"),
    *("permutation", "at_least_once", "counted", "counted_fields", "chosen", "counted_down"),
}
DIFFERENT = {
    "regex_classes": "it reads [a&&b] as characters",
    "regex_anchors": "it reads \\A and \\z as letters",
    **dict.fromkeys(["ignore", "ignore_import", "ignore_group"], "it ignores text at the end, too"),
    **dict.fromkeys(["nested_ignore", "nested_same_ignore"], "it ignores text at the end, too"),
    "json_ignore": "it ignores text before %json",
}


@pytest.fixture(scope="module")
def compiler() -> Any:
    tokens = [*(bytes([byte]) for byte in range(256)), b"<|end|>"]
    info = xgrammar.TokenizerInfo(tokens, xgrammar.VocabType.RAW, vocab_size=257, stop_token_ids=[256])
    return xgrammar.GrammarCompiler(info)


def accepts(grammar: Any, text: bytes) -> bool:
    matcher = xgrammar.GrammarMatcher(grammar)
    return all(matcher.accept_token(byte) for byte in text) and bool(matcher.accept_token(256))


@pytest.mark.parametrize("name", [name for name in GRAMMARS if name not in REFUSED and name not in DIFFERENT])
def test_the_same_language(name: str, compiler: Any) -> None:
    theirs = compiler.compile_grammar(xgrammar.Grammar.from_lark(GRAMMARS[name]))
    ours, rng = compile_lark(GRAMMARS[name], BYTES, dialect="llguidance"), random.Random(name)
    for _ in range(8):
        matcher, text = ours.matcher(), b""
        for _ in range(25):
            allowed = matcher.next_bytes()
            if not allowed.any():
                break
            byte = chosen(allowed.astype(bool), rng)
            assert matcher.accept_token(byte)
            text += bytes([byte])
        text = text.decode(errors="ignore").encode()  # it ends texts inside of characters
        for other in [text, *mutants(text, rng)]:
            matcher = ours.matcher()
            accepted = matcher.accept_bytes(other) and matcher.is_accepting()
            assert accepted == accepts(theirs, other), other
