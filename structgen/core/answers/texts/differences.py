"""Which texts only one of two text constraints allows.

Two regular ones: exactly. A grammar within a regular one: exactly, too, by its product with the complement's automaton.
Else it is undecidable: texts are looked at by length, shortest first, and drawn ones; "no" is certain, and where
nothing was found it stays open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from structgen.core.answers.picking.picks import RandomPicks
from structgen.core.answers.texts.drawing import TextDrawing
from structgen.core.answers.texts.rules import GrammarRules, contextual_lexer, grammar_of, rules_for
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.inlining import without_ignored
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.grammars.regular import automaton_of
from structgen.core.grammars.regular_product import ByteAutomaton, ProductBounds, ProductTooLarge, product_grammar
from structgen.core.regex.dfa import Dfa, complement, difference, distinct_columns, shortest
from structgen.core.vocabulary.vocabulary import TextVocabulary
from structgen.errors import TooComplexError

MAX_TEXTS, MAX_BYTES = 20_000, 200
"""Beginnings of texts that are looked at, shortest first, and how long they are at most."""
SHORTER = 2_000
"""The same where a longer text is known that tells the two apart."""
DRAWN = 300
"""Texts that are drawn, so that longer ones are looked at, too."""
BOUNDS = ProductBounds(1 << 14, 1 << 16, 1 << 21)


@dataclass(frozen=True)
class TextDecision:
    """The answer to "is each text of this one of that?".

    Attributes:
        contained: yes, no, or not decided (None).
        method: what decided it.
        text: of a no, a text of the first alone; a shortest one but where it was drawn ("drawn").
        reason: of an open question, how far it was looked.
    """

    contained: bool | None
    method: str
    text: str | None = None
    reason: str = ""

    @property
    def value(self) -> str | None:
        """The text."""
        return self.text


class TextSide:
    """One of the two constraints."""

    def __init__(self, constraint: Any) -> None:
        self.constraint = constraint
        self.rules: ContextFreeGrammar = grammar_of(constraint)
        self.is_exact = not contextual_lexer(constraint)

    @cached_property
    def grammar(self) -> Grammar:
        """Over bytes."""
        compiled: Grammar = self.constraint.compile(TextVocabulary())
        return compiled

    @cached_property
    def automaton(self) -> Dfa | None:
        """Of a regular one without recursion; None: of others, and of those with the contextual lexer."""
        return automaton_of(without_ignored(self.rules)) if self.is_exact else None

    @cached_property
    def plain(self) -> GrammarRules:
        """Its rules that matter."""
        return rules_for(self.rules)

    def shortest(self) -> str:
        """A shortest text; of a contextual lexer, the one that its grammar knows to complete the empty text."""
        if not self.is_exact:
            return self.grammar.matcher().shortest_completion().decode(errors="replace")
        return b"".join(self.plain.words[t] for t in self.plain.cheapest([self.plain.start])).decode(errors="replace")

    def takes(self, data: bytes) -> bool:
        """Whether a text is allowed."""
        matcher = self.grammar.matcher()
        return matcher.accept_bytes(data) and matcher.is_accepting()


def is_text_subset(one: TextSide, other: TextSide, *, max_texts: int = MAX_TEXTS) -> TextDecision:
    """Whether each text of one constraint is one of another."""
    if one.constraint == other.constraint or (one.is_exact and other.is_exact and one.rules == other.rules):
        return TextDecision(True, "identical")
    if other.automaton is not None:
        exact = _within_regular(one, other.automaton)
        if exact is not None:
            return exact
    longer = next((data for data in _drawn(one) if not other.takes(data)), None)
    by_length = _by_length(one, other, max_texts if longer is None else min(SHORTER, max_texts))
    if longer is None or by_length.contained is not None:
        return by_length
    return TextDecision(False, "drawn", longer.decode(errors="replace"))


def _within_regular(one: TextSide, other: Dfa) -> TextDecision | None:
    """Exactly, where the second is regular; None: a budget is exceeded, or it cannot be said of a contextual lexer."""
    try:
        if one.automaton is not None:
            text = shortest(difference(one.automaton, other))
            return TextDecision(text is None, "automata", None if text is None else text.decode())
        outside = complement(other)
        product = product_grammar(one.rules, ByteAutomaton(outside.transitions, outside.accepting), BOUNDS)
    except (TooComplexError, ProductTooLarge):
        return None
    if not product.rules:
        return TextDecision(True, "product")  # of a contextual lexer: a superset of its texts is within
    if not one.is_exact:
        return None
    left = rules_for(product)
    return TextDecision(False, "product", b"".join(left.words[t] for t in left.cheapest([left.start])).decode())


def _drawn(side: TextSide) -> Iterator[bytes]:
    """Texts of a constraint that reach each of its rules, and others."""
    drawing = TextDrawing(side.plain, RandomPicks(0), 60)
    for _ in range(DRAWN):
        data = drawing.text().encode()
        if side.is_exact or side.takes(data):
            yield data


def _by_length(one: TextSide, other: TextSide, most: int) -> TextDecision:
    """All texts of the first up to a length, with one byte for all that both treat alike."""
    letters = _letters([*one.rules.terminals, *other.rules.terminals])
    layer, looked, length = [b""], 0, 0
    while layer:
        following = []
        for data in layer:
            matcher = one.grammar.matcher()
            assert matcher.accept_bytes(data)
            if matcher.is_accepting() and not other.takes(data):
                return TextDecision(False, "length", data.decode(errors="replace"))
            allowed = matcher.next_bytes()
            following += [data + bytes([byte]) for byte in letters if allowed[byte]]
        length += 1
        looked += len(following)
        if looked > most or length > MAX_BYTES:
            return TextDecision(None, "", reason=f"texts of more than {length - 1} bytes were drawn only")
        layer = following
    return TextDecision(True, "length")


def _letters(terminals: Any) -> list[int]:
    """A byte for each class of bytes that all terminals treat alike."""
    tables = [terminal.dfa.transitions for terminal in terminals if not terminal.dfa.is_empty]
    if not tables:
        return []
    columns, classes = distinct_columns(np.concatenate(tables))
    return [
        min(np.flatnonzero(classes == number).tolist(), key=lambda byte: (not chr(byte).isalnum(), byte))
        for number in range(columns.shape[1])
        if (columns[:, number] >= 0).any()
    ]
