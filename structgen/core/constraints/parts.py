"""Constraints of parts of one text, compiled so that they agree on special tokens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from structgen.core.constraints.base import Constraint
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import TextVocabulary, Vocabulary
from structgen.errors import ConstraintError

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


def without_regions(grammar: Grammar) -> Grammar:
    """A grammar whose rules have no temperature, and no budget, of their own.

    Raises:
        ConstraintError: some have.
    """
    if grammar.matcher().partial_parses() is not None:
        raise no_regions()
    return grammar


def no_regions() -> ConstraintError:
    """For who cannot keep the regions of a constraint."""
    return ConstraintError(
        "max_tokens or temperature of a part of the output (a rule, or x-structgen of a schema) cannot be kept here: "
        "structgen's generate, stream and server keep them. Leave them out, or count characters: max_chars of a rule, "
        "maxLength of a string"
    )
