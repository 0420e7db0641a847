"""One schema for a provider: within what it reads, with what that costs, and answers mapped back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from structgen.core.answers.compare import SchemaComparison, Verdict, compare
from structgen.core.answers.sources import schema_of
from structgen.core.answers.targets.adapting import Adapting, Piece
from structgen.core.answers.targets.fitting import fits
from structgen.core.answers.targets.mapping import Shape
from structgen.core.answers.targets.simple import SimpleSchema
from structgen.core.answers.targets.table import SchemaTarget, target_of
from structgen.errors import UnsatisfiableSchemaError
from structgen.options import JsonOptions, checked_options

if TYPE_CHECKING:
    from referencing import Registry

DRAFT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True)
class LoweredSchema:
    """A schema written for a target.

    Attributes:
        original: as it was given. ``target``: see `SchemaTarget`.
        sent: what the target is given.
        meant: what answers mean once they are mapped back, as plain 2020-12.
        lost: (where, what) for all that the target does not enforce, or that no answer can say.
        beyond: the limits that ``sent`` still exceeds; empty: it is within all of them.
    """

    original: Any
    target: SchemaTarget
    sent: dict[str, Any]
    meant: dict[str, Any]
    lost: tuple[tuple[str, str], ...]
    beyond: tuple[str, ...]
    _shape: Shape = field(repr=False)
    _options: JsonOptions = field(repr=False)
    _registry: Any = field(repr=False)

    def back(self, value: Any) -> Any:
        """The value that an answer in the target's shape means."""
        return self._shape.back(value)

    def forth(self, value: Any) -> Any:
        """The answer that means a value (for examples in prompts): ``back(forth(value)) == value``."""
        return self._shape.forth(value)

    @property
    def is_mapped(self) -> bool:
        """Whether answers have another shape than the schema asks for."""
        return not self._shape.is_same

    @cached_property
    def comparison(self) -> SchemaComparison:
        """What answers may say that the schema refuses (``new_only``), and cannot say though it allows it."""
        return self._compared(self._options)

    @property
    def verdict(self) -> Verdict:
        """Of what answers mean, by the schema as it is written: "equal", "narrower", "wider", ..."""
        return self.comparison.verdict

    @cached_property
    def closed_verdict(self) -> Verdict:
        """The same by the schema read as if objects that declare members had no others."""
        return self._compared(replace(self._options, additional_members="closed")).verdict

    def _compared(self, options: JsonOptions) -> SchemaComparison:
        return compare(self.original, {"$schema": DRAFT, **self.meant}, options=options, registry=self._registry)


def lower(
    schema: Any,
    target: str | SchemaTarget,
    *,
    options: JsonOptions | None = None,
    registry: Registry[Any] | None = None,
) -> LoweredSchema:
    """A schema within what a provider or engine reads, and what that loses, exactly.

    Args:
        schema: a schema, JSON text, file, Python type or tool definition.
        target: "openai", "anthropic", "bedrock", "gemini", "llama.cpp", "xgrammar", "llguidance", ...
        options, registry: as of `structgen.compare`.

    Raises:
        SchemaError: the schema is malformed, or nothing satisfies it. OptionsError: no such target.
        ConstraintError: no schema.
    """
    options, target = checked_options(options), target_of(target)
    plain = schema_of(schema)
    simple = SimpleSchema(plain, options, registry)
    adapting, piece = _adapted(simple, target)
    lost = (*simple.lost, *adapting.lost)
    sent, beyond = _rounded(piece.sent), tuple(fits(piece.sent, target))
    return LoweredSchema(plain, target, sent, piece.meant, lost, beyond, piece.shape, options, registry)


def _adapted(simple: SimpleSchema, target: SchemaTarget) -> tuple[Adapting, Piece]:
    """Written for the target; where references lead deeper than they look, again with fewer levels."""
    depth = target.limits.get("depth")
    while True:
        adapting = Adapting(simple, target, depth)
        if adapting.root is None:
            raise UnsatisfiableSchemaError("no JSON value satisfies the schema, so no provider can be asked for one")
        if not depth or not any("levels" in one for one in fits(adapting.root.sent, target)):
            return adapting, adapting.root
        depth -= 1


def _rounded(part: Any) -> Any:
    """As JSON's own types: numbers that were read exactly as the nearest that requests can say."""
    if isinstance(part, Decimal):
        return float(part)
    if isinstance(part, dict):
        return {name: _rounded(value) for name, value in part.items()}
    return [_rounded(value) for value in part] if isinstance(part, list) else part
