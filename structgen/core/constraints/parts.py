"""Constraints of parts of one text, compiled so that they agree on special tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from structgen.core.constraints.base import Constraint
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import TextVocabulary, Vocabulary

BYTES = TextVocabulary()
"""Outputs are taken apart by matchers over bytes."""


def compile_together(
    constraints: Sequence[Constraint], vocabulary: Vocabulary, named: Iterable[int] = ()
) -> list[Grammar]:
    """The grammars of parts of one text, each with what any of them names, named where it would be text in it.

    Args:
        constraints: of the parts.
        vocabulary: the model's tokens.
        named: special tokens that the text around the parts names.

    Raises:
        GrammarError: a part names a token by id, so that its text cannot be taken apart.
        ConstraintError: what compiling them raises.
    """
    names, within = set(named), vocabulary
    while True:
        parts = [constraint.compile(within) for constraint in constraints]
        wanted = vocabulary.within(vocabulary.naming(names.union(*(part.vocabulary.named for part in parts))))
        if wanted.named == within.named:
            break
        within = wanted
    for constraint, part in zip(constraints, parts, strict=True):
        if part.vocabulary.named - within.named:
            constraint.compile(BYTES)  # so will `parse`: what text cannot show is refused before it is written
    return parts
