"""Masks against taking each token, which asks of every byte anew."""

from __future__ import annotations

from structgen.core.engines.laws import Mask, mask_of
from structgen.core.engines.protocols import Matcher


def checked_mask(matcher: Matcher) -> Mask:
    """The mask of the next token, bool[V], of which each bit was found to be set exactly if the token is taken."""
    bits, tokens = mask_of(matcher), matcher.grammar.vocabulary.tokens
    for token, text in enumerate(tokens):
        taken = matcher.accept_token(token)
        if taken:
            matcher.rollback()
        assert taken == bits[token], (text, matcher.configurations()[0].tolist())  # type: ignore[attr-defined]
    return bits
