"""Judges of texts with special tokens: a special token is one private character in them, which no vocabulary has."""

from __future__ import annotations

from structgen.core.engines.laws import Judge
from structgen.core.vocabulary.special_tokens import LEAD, stand_in, stand_in_length
from structgen.core.vocabulary.vocabulary import Vocabulary


def private(token_id: int) -> str:
    """The character that is a special token to a judge."""
    return chr(0xE000 + token_id)


def with_stand_ins(judge: Judge, view: Vocabulary) -> Judge:
    """A judge of texts with stand-ins: whole ones are private characters; a cut one is viable if one of them is."""
    length = stand_in_length(view.size)
    tokens = {stand_in(token, view.size): private(token).encode() for token in view.named}

    def judged(text: bytes) -> tuple[bool, bool]:
        text = text.replace(b"\xee", b"\xed")  # begins private characters; any other three bytes will do
        found, at = b"", 0
        while (place := text.find(LEAD, at)) >= 0:
            piece = text[place : place + length]
            if len(piece) < length:
                begun = [private_ for word, private_ in tokens.items() if word.startswith(piece)]
                return any(judge(found + text[at:place] + one)[0] for one in begun), False
            if piece not in tokens:
                return False, False
            found += text[at:place] + tokens[piece]
            at = place + length
        return judge(found + text[at:])

    return judged
