"""Regions of constraints: those that are given to a grammar's rules where it is used, and who cannot keep any."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.parts import no_regions, without_regions
from structgen.core.constraints.thinking import Thinking
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.captured import Captured
from structgen.core.vocabulary.vocabulary import Vocabulary
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


def schemas_of(constraint: Any) -> Iterator[Any]:
    """What holds the schemas of a constraint: each ``JsonSchemaConstraint``, and each ``Tool`` of tool calls."""
    waiting = [constraint]
    while waiting:
        one = waiting.pop()
        if hasattr(one, "has_field_regions"):
            yield one
        elif is_dataclass(one) and not isinstance(one, type):
            waiting += [getattr(one, each.name) for each in fields(one)]
        elif isinstance(one, Mapping):
            waiting += one.values()
        elif isinstance(one, tuple) and one and not isinstance(one[0], int) and not isinstance(one[-1], str):
            waiting += one


def compile_masks(constraint: Any, vocabulary: Vocabulary) -> Grammar:
    """A constraint compiled for who fills masks, while others draw the tokens.

    Raises:
        ConstraintError: parts of it have a temperature, or a budget, of their own. Others as ``Constraint.compile``.
    """
    refuse_field_regions(constraint)
    return without_regions(constraint.compile(vocabulary))


def refuse_field_regions(constraint: Any) -> None:
    """Refuse schemas whose fields have a temperature, or a budget, of their own; of rules `without_regions` does.

    Raises:
        ConstraintError: some have.
    """
    if has_field_regions(constraint):
        raise no_regions()


def has_field_regions(constraint: Any) -> bool:
    """Whether some schema in a constraint says of fields how they are written."""
    return any(schema.has_field_regions for schema in schemas_of(constraint))
