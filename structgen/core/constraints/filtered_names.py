"""Names that other constraints allow, too: one by one, which is exact whatever engines the others have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from structgen.core.compilers import compile_names
from structgen.core.constraints.parts import BYTES, compile_together, without_regions
from structgen.core.engines.protocols import Grammar
from structgen.core.text_sets.names import NameSet
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError


def compile_filtered_names(parts: Sequence[Any], grammars: Sequence[Grammar], vocabulary: Vocabulary) -> Grammar | None:
    """What all of some constraints allow, where one of them is a set of names; None: none is. O(bytes of the names).

    Args:
        parts: the constraints.
        grammars: what they are compiled to.
        vocabulary: for which.

    Raises:
        EmptyLanguageError: they allow none of the names.
        ConstraintError: one of the others says how its text is written, which is not kept.
    """
    names = {
        number: texts
        for number, one in enumerate(grammars)
        if isinstance(texts := getattr(one, "texts", None), NameSet)  # the engine of sorted texts has them
    }
    if not names:
        return None
    chosen = min(names, key=lambda number: len(names[number]))
    others = [
        without_regions(compile_together([part], BYTES)[0]).matcher()
        for number, part in enumerate(parts)
        if number != chosen
    ]
    kept = names[chosen].kept(lambda name: all(_takes(matcher, name) for matcher in others))
    if kept is None:
        raise EmptyLanguageError("no text is allowed by all constraints of the intersection")
    return compile_names(kept, vocabulary)


def _takes(matcher: Any, text: bytes) -> bool:
    """Whether a matcher at the start takes a whole text; it is there again afterwards."""
    if not matcher.accept_bytes(text):
        return False
    accepts: bool = matcher.is_accepting()
    matcher.rollback(1)
    return accepts
