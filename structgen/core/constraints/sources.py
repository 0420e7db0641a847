"""What may be given as a constraint, as type checkers see it: overloads of these say what the value of an output is.

Every function that takes a constraint has the same overloads, in this order, and takes anything else at run time, as
`structgen.core.constraints.json.as_constraint` reads it.

1. ``Texts``: the value is a string.
2. ``Source[T]``: constraints, classes and type adapters, whose values are instances of ``T``; schemas, whose values are
   of any type.
3. ``TypeForm[T]``: what is no class (``Literal["a"]``, ``int | None``, ``Annotated[...]``), for checkers that have
   PEP 747. To others the value is of any type.
4. ``Any``: whatever else is read; the value is of any type.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, TypeAlias

from structgen.core.constraints.base import Constraint, T

if TYPE_CHECKING:
    import pydantic
    from typing_extensions import TypeForm as TypeForm

Texts: TypeAlias = "re.Pattern[str] | list[str] | tuple[str, ...] | None"
Source: TypeAlias = "Constraint[T] | pydantic.TypeAdapter[T] | type[T]"
