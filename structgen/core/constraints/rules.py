"""What is said of a grammar's rules where it is used: how their texts are written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.thinking import Thinking
from structgen.core.grammars.captured import Captured
from structgen.errors import OptionsError


def with_rules(constraint: Any, regions: Captured) -> Constraint:
    """A grammar, perhaps after thinking, with regions by the names of its rules.

    Raises:
        OptionsError: it is no grammar. That it has no such rule is said when it is compiled.
    """
    if isinstance(constraint, Thinking):
        return replace(constraint, answer=with_rules(constraint.answer, regions))
    captured: Captured | None = getattr(constraint, "captured", None)
    if captured is not None:
        return cast(Constraint, replace(constraint, captured=(*captured, *regions)))
    raise OptionsError(
        f"regions names the rule {regions[0][0]!r:.100}, and the constraint is no grammar; a field of JSON is named by "
        "its JSON Pointer, which begins with '/'",
        option="regions",
        value=regions[0][0],
    )
