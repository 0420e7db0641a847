"""llguidance itself over single bytes, and this library over the same vocabulary."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np

from structgen.core.vocabulary.vocabulary import Vocabulary

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)


class _Bytes:
    """What `llguidance.TokenizerWrapper` asks of a tokenizer."""

    eos_token_id, bos_token_id, special_token_ids = 256, None, (256,)
    tokens = (*(bytes([byte]) for byte in range(256)), b"<|end|>")

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text.encode() if isinstance(text, str) else text)


class Peer:
    """llguidance; to be made where it is installed."""

    def __init__(self) -> None:
        import llguidance

        self._matcher: Any = llguidance.LLMatcher
        self._tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Bytes()), n_vocab=257)

    def matcher(self, grammar: str, others: dict[str, str] | None = None) -> Any:
        """A matcher of a grammar, beside others that it refers to."""
        if others is None:
            return self._matcher(self._tokenizer, self._matcher.grammar_from_lark(grammar))
        listed = [{"lark_grammar": grammar}, *({"name": n, "lark_grammar": g} for n, g in others.items())]
        return self._matcher(self._tokenizer, json.dumps({"grammars": listed}))

    def error(self, grammar: str) -> str:
        """What is wrong with a grammar; nothing."""
        return str(self.matcher(grammar).get_error())

    def accepts(self, grammar: str, text: bytes, others: dict[str, str] | None = None) -> bool:
        """Whether a text is in the language."""
        matcher = self.matcher(grammar, others)
        for byte in text:
            if matcher.is_stopped() or not matcher.try_consume_tokens([byte]):
                return False
        return bool(matcher.is_accepting())


def mask(matcher: Any) -> np.ndarray:
    """The bytes that a matcher of llguidance allows, bool[256]."""
    bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), np.uint8), bitorder="little")
    found: np.ndarray = bits[:256].astype(bool)
    return found


def chosen(allowed: np.ndarray, rng: random.Random) -> int:
    """One of the allowed bytes, printable ones preferred."""
    choices = np.flatnonzero(allowed)
    plain = choices[(choices >= 32) & (choices < 127)]
    return int(rng.choice((plain if len(plain) and rng.random() < 0.9 else choices).tolist()))


def mutants(text: bytes, rng: random.Random) -> list[bytes]:
    """A text with a character left out, doubled, changed, or two of them exchanged."""
    characters = text.decode(errors="ignore")
    if not characters:
        return [b"a"]
    at, other = rng.randrange(len(characters)), rng.randrange(len(characters))
    changed = list(characters)
    changed[at], changed[other] = changed[other], changed[at]
    return [
        (characters[:at] + characters[at + 1 :]).encode(),
        (characters[:at] + characters[at] + characters[at:]).encode(),
        (characters[:at] + rng.choice(characters + "ab1 \n<>") + characters[at + 1 :]).encode(),
        "".join(changed).encode(),
    ]
