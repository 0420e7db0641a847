"""Matchers, a constraint and a tokenizer of a few lines each, to test decoders without the engine or weights."""

from __future__ import annotations

import copy
import json
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from structgen.core.engines.byte_sets import EVERY_BYTE
from structgen.core.engines.draft_trees import DraftTrees, walk_tree
from structgen.core.vocabulary.vocabulary import Vocabulary


def vocabulary(*longer: bytes, eos: int = 2) -> Vocabulary:
    """``eos`` end-of-sequence ids (0, 1, ...), then all ASCII bytes, then longer tokens."""
    tokens = [None] * eos + [bytes([byte]) for byte in range(128)] + list(longer)
    return Vocabulary(tokens, eos_token_ids=range(eos), size=len(tokens) + 3)


class FakeMatcher:
    """The laws of a matcher, by brute force over a language given by two functions of the text so far."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.history: list[bytes] = [b""]
        self.terminated = False

    def alive(self, text: bytes) -> bool:
        """Whether some output starts with ``text``."""
        return self.completion(text) is not None

    def completion(self, text: bytes) -> bytes | None:
        """The shortest completion of ``text``."""
        raise NotImplementedError

    @property
    def text(self) -> bytes:
        return self.history[-1]

    @property
    def grammar(self) -> FakeGrammar:
        return FakeGrammar(self)

    @property
    def state_is_shared(self) -> bool:
        return True

    def partial_parses(self) -> None:
        return None

    def bytes_to_stop(self) -> int:
        return EVERY_BYTE

    def captures(self) -> dict[str, Any]:
        return {}

    def fill_next_token_bitmask(self, bitmask: npt.NDArray[np.int32], index: int = 0) -> None:
        bits = np.zeros(bitmask.shape[1] * 32, dtype=np.uint8)
        for token_id, token in enumerate(self.vocabulary.tokens):
            if token_id in self.vocabulary.eos_token_ids:
                bits[token_id] = self.is_accepting()
            elif token:
                bits[token_id] = self.alive(self.text + token)
        bitmask[index] = np.packbits(bits, bitorder="little").view(np.int32)

    def accept_token(self, token_id: int) -> bool:
        if self.terminated:
            return False
        if token_id in self.vocabulary.eos_token_ids:
            self.terminated = self.is_accepting()
            return self.terminated
        return bool(self.vocabulary.tokens[token_id]) and self.accept_bytes(self.vocabulary.tokens[token_id])

    def advance_and_fill(self, token_id: int, bitmask: npt.NDArray[np.int32], index: int = 0) -> bool:
        if not self.accept_token(token_id):
            return False
        self.fill_next_token_bitmask(bitmask, index)
        return True

    @classmethod
    def fill_all(cls, matchers: Sequence[Self], bitmask: npt.NDArray[np.int32], rows: Sequence[int]) -> None:
        for matcher, row in zip(matchers, rows, strict=True):
            matcher.fill_next_token_bitmask(bitmask, row)

    @classmethod
    def fill_trees(
        cls, matchers: Sequence[Self], trees: DraftTrees, bitmask: npt.NDArray[np.int32], rows: Sequence[int]
    ) -> npt.NDArray[np.bool_]:
        walks = enumerate(zip(matchers, rows, strict=True))
        return np.array([walk_tree(matcher, trees, tree, bitmask, row) for tree, (matcher, row) in walks], np.bool_)

    @classmethod
    def advance_and_fill_all(
        cls, matchers: Sequence[Self], token_ids: Sequence[int], bitmask: npt.NDArray[np.int32], rows: Sequence[int]
    ) -> list[bool]:
        steps = zip(matchers, token_ids, rows, strict=True)
        return [matcher.advance_and_fill(token_id, bitmask, row) for matcher, token_id, row in steps]

    def accept_bytes(self, data: bytes) -> bool:
        if not self.alive(self.text + data):
            return False
        self.history.append(self.text + data)
        return True

    def rollback(self, steps: int = 1) -> None:
        if self.terminated:
            self.terminated, steps = False, steps - 1
        del self.history[len(self.history) - steps :]

    def fork(self) -> Self:
        twin = copy.copy(self)
        twin.history = self.history.copy()
        return twin

    def copy(self) -> Self:
        twin = self.fork()
        del twin.history[:-1]
        return twin

    def reset(self) -> None:
        self.history, self.terminated = [b""], False

    def is_accepting(self) -> bool:
        return self.completion(self.text) == b""

    def is_terminated(self) -> bool:
        return self.terminated

    def next_bytes(self) -> npt.NDArray[np.bool_]:
        return np.array([self.alive(self.text + bytes([byte])) for byte in range(256)])

    def likely_texts(self, written: bytes) -> list[bytes]:
        return []

    def forced_bytes(self) -> bytes:
        text = self.text
        while (
            self.completion(text) != b""
            and len(following := [b for b in range(256) if self.alive(text + bytes([b]))]) == 1
        ):
            text += bytes(following)
        return text[len(self.text) :]

    @property
    def stats(self) -> dict[str, int]:
        return {}

    def state_key(self, *, same_matcher: bool = False) -> Hashable:
        return self.text

    def shortest_completion(self) -> bytes:
        rest = self.completion(self.text)
        assert rest is not None
        return rest

    def completion_bound(self) -> int:
        return len(self.shortest_completion())

    def completion_is_spelled(self) -> bool:
        return not self.vocabulary.missing_bytes


@dataclass(frozen=True)
class FakeGrammar:
    """The grammar of a matcher: a factory of its like, at the start."""

    of: FakeMatcher
    memory_bytes: int = 0
    completions_are_shortest: bool = True
    is_outdated: bool = False

    @property
    def vocabulary(self) -> Vocabulary:
        return self.of.vocabulary

    def matcher(self) -> FakeMatcher:
        twin = self.of.fork()
        twin.reset()
        return twin

    def last_bytes(self) -> int:
        return EVERY_BYTE

    def normal_form(self) -> None:
        return None


class WordsMatcher(FakeMatcher):
    """A finite language."""

    def __init__(self, vocabulary: Vocabulary, words: list[bytes]) -> None:
        super().__init__(vocabulary)
        self.words = sorted(words, key=len)

    def completion(self, text: bytes) -> bytes | None:
        return next((word[len(text) :] for word in self.words if word.startswith(text)), None)


class NestedMatcher(FakeMatcher):
    """``S = "[" S "]" | "<" S "/longcloser>" | "x" S | ""``, ended by ``.``: infinite, with openers that cost."""

    CLOSER = b"/longcloser>"

    def completion(self, text: bytes) -> bytes | None:
        closers: list[bytes] = []
        rest = text
        while rest:
            if closers and closers[-1].startswith(rest):
                return closers.pop()[len(rest) :] + b"".join(reversed(closers)) + b"."
            if closers and rest.startswith(closers[-1]):
                rest = rest[len(closers.pop()) :]
            elif rest[:1] == b".":
                return b"" if rest == b"." and not closers else None
            elif rest[:1] in b"[<x":
                closers += {b"[": [b"]"], b"<": [self.CLOSER], b"x": []}[rest[:1]]
                rest = rest[1:]
            else:
                return None
        return b"".join(reversed(closers)) + b"."


@dataclass(frozen=True)
class FakeConstraint:
    """A constraint whose compiled form is a factory of fake matchers; values are parsed as JSON."""

    factory: Any

    def compile(self, vocabulary: Vocabulary) -> FakeGrammar:
        return FakeGrammar(self.factory(vocabulary))

    def parse(self, text: str) -> Any:
        return json.loads(text)

    def parse_partial(self, text: str) -> Any:
        import pydantic_core

        try:
            return pydantic_core.from_json(text, allow_partial="trailing-strings")
        except ValueError:
            return None

    def instruction(self) -> str | None:
        return "Answer in JSON."


def words(*texts: str) -> FakeConstraint:
    """One of these texts."""
    return FakeConstraint(lambda vocabulary: WordsMatcher(vocabulary, [text.encode() for text in texts]))


class CharTokenizer:
    """ASCII characters as tokens of ``vocabulary()``; with or without a chat template."""

    def __init__(self, eos: int = 2, chat_template: str | None = None) -> None:
        self.eos, self.chat_template = eos, chat_template
        self.eos_token_id = 0

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        return [byte + self.eos for byte in text.encode("ascii")]

    def apply_chat_template(self, messages: list[dict[str, str]], **_: Any) -> str:
        return "".join(f"<{message['role']}>{message['content']}\n" for message in messages) + "<assistant>"
