"""Drafts what must follow: text that the constraint forces, in the tokens that the tokenizer would have produced.

Forced text can be spelled in several ways where all prefixes of tokens are legal, so even forced text is drafted and
judged by the target; a model trained on a tokenizer takes the canonical spelling nearly always. The last token of the
forced text could merge with what follows it, so it is a guess of its own kind (half of them are wrong). Of a very long
text a matcher gives a piece, whose last token is such a guess too; how it goes on is asked for after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from structgen.core.vocabulary.special_tokens import LEAD, pieces
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.speculative.drafter import Proposal, Source, Written
from structgen.generation.speculative.tree import Node

NAME = "forced"
INNER, LAST = (NAME, "inner"), (NAME, "last")
KNOWN_TEXTS = 4096  # spellings that are kept: key names and punctuation come again and again


class CanonicalTokens:
    """The tokens in which the tokenizer spells a text, as if nothing came before or after."""

    def __init__(self, tokenizer: object, vocabulary: Vocabulary) -> None:
        self._encode: Callable[..., Sequence[int]] = tokenizer.encode  # type: ignore[attr-defined]
        self._vocabulary = vocabulary
        self._known: dict[bytes, tuple[int, ...]] = {}

    def __call__(self, text: bytes) -> tuple[int, ...]:
        """Token ids whose bytes are ``text``, or start it; empty where the tokenizer spells something else."""
        ids = self._known.get(text)
        if ids is None:
            if len(self._known) >= KNOWN_TEXTS:
                self._known.clear()
            ids = self._known[text] = self.spell(text)
        return ids

    def spell(self, text: bytes) -> tuple[int, ...]:
        """The same, and not kept."""
        if LEAD not in text:
            return self._spell_text(text)
        spelled: list[int] = []  # special tokens are what they are; text between them is spelled apart
        for piece in pieces(text, self._vocabulary.size):
            ids = (piece,) if isinstance(piece, int) else self._spell_text(piece)
            spelled += ids
            if isinstance(piece, bytes) and sum(len(self._vocabulary.tokens[token]) for token in ids) < len(piece):
                break
        return tuple(spelled)

    def _spell_text(self, text: bytes) -> tuple[int, ...]:
        ids = self._encode(text.decode("utf-8", errors="ignore"), add_special_tokens=False)
        spelled, end = [], 0
        for token in ids:
            data = self._vocabulary.tokens[token]
            if not data or not text.startswith(data, end):
                break
            spelled.append(token)
            end += len(data)
        return tuple(spelled)


class ForcedDrafter:
    """Proposes the canonical tokens of forced text; nothing for free text. O(forced bytes at once) a node."""

    name = NAME

    def __init__(self, canonical: CanonicalTokens) -> None:
        self._canonical = canonical

    def start(self, prompt: Sequence[int], output: Written) -> Source:
        """See ``Drafter.start``."""
        return _ForcedSource(self._canonical)


class _ForcedSource(Source):
    name = NAME

    def __init__(self, canonical: CanonicalTokens) -> None:
        self._canonical = canonical

    def propose(self, node: Node) -> list[Proposal]:
        if node.matcher is None:
            return []
        above = node.parent.forced if node.parent is not None else None
        if above and above[0] == node.token:
            node.forced = above[1:]
        if not node.forced:
            node.forced = self._canonical(node.matcher.forced_bytes())
        if not node.forced:
            return []
        inner = len(node.forced) > 1
        return [Proposal(node.forced[0], INNER if inner else LAST, 0.97 if inner else 0.5)]
