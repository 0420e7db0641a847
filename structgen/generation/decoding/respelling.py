"""The next turn of a chat in the tokens that the model wrote.

A constraint, and a model by itself, may spell a text in other tokens than the tokenizer would: the prompt of the next
turn, which the tokenizer spells, then ends to agree with what was read where the answer begins. Whatever has the same
bytes is taken as it was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.models.prefix_cache import common

LEAST = 16  # tokens that a text and what was read must have in common at their start


def respelled(ids: Sequence[int], texts: Iterable[Sequence[int]], vocabulary: Vocabulary) -> list[int]:
    """A prompt that begins with as much as there is of one of the ``texts`` texts: the same bytes, and the same special
    tokens, in its tokens. The prompt itself where none of them helps. O(tokens of all)."""
    best, gained = list(ids), 0
    for text in texts:
        start = common(ids, text)
        if LEAST <= start < min(len(ids), len(text)):
            there, here = _meeting(text, ids, start, vocabulary)
            if there - start > gained:
                best, gained = [*text[:there], *ids[here:]], there - start
    return best


def _meeting(text: Sequence[int], ids: Sequence[int], start: int, vocabulary: Vocabulary) -> tuple[int, int]:
    """How many tokens of each spell the same, from ``start`` on, as far as they do."""
    there = here = start
    meeting = start, start
    text_extra, prompt_extra = b"", b""  # bytes that the other has not spelled yet
    while True:
        if not text_extra and not prompt_extra:
            meeting = there, here
        if len(text_extra) <= len(prompt_extra):
            if there == len(text):
                break
            text_extra += _spelled(text[there], vocabulary)
            there += 1
        else:
            if here == len(ids):
                break
            prompt_extra += _spelled(ids[here], vocabulary)
            here += 1
        agreed = min(len(text_extra), len(prompt_extra))
        if text_extra[:agreed] != prompt_extra[:agreed]:
            break
        text_extra, prompt_extra = text_extra[agreed:], prompt_extra[agreed:]
    return meeting


def _spelled(token: int, vocabulary: Vocabulary) -> bytes:
    """A token's bytes; of one that has none, such as no UTF-8 has."""
    return vocabulary.tokens[token] or b"\xff" + token.to_bytes(4, "big")
