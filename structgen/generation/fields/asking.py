"""Which fields are asked for, and how closely: the option ``fields`` of generation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, TypeAlias

from structgen.errors import OptionsError
from structgen.options import check_count


@dataclass(frozen=True)
class Fields:
    """What ``fields=`` of ``generate`` stands for.

    Attributes:
        pointers: JSON Pointers of the fields, ``*`` for any index or name; None: all
            values with 2 to ``most`` options that are neither objects nor arrays.
        most: options that are few.
        eps: how much of the mass may stay open; with models that are quantised, what is smaller than 0.02 says nothing.
        model_tokens: the most tokens that are read for a field.
        fields: the most fields that are read, the first ones.

    Raises:
        OptionsError: a value that it cannot have.
    """

    pointers: tuple[str, ...] | None = None
    most: int = 64
    eps: float = 0.02
    model_tokens: int = 256
    fields: int = 64

    def __post_init__(self) -> None:
        if self.pointers is not None:
            object.__setattr__(self, "pointers", tuple(_pointer(each) for each in _listed(self.pointers)))
        for name, low in (("most", 2), ("model_tokens", 1), ("fields", 1)):
            check_count(name, getattr(self, name), low)
        eps = self.eps
        if isinstance(eps, bool) or not isinstance(eps, Real) or not (math.isfinite(eps) and 0 <= eps < 1):
            raise OptionsError(f"eps is {eps!r:.60}; a number from 0 to below 1 is expected", option="eps", value=eps)


FieldsLike: TypeAlias = "bool | Sequence[str] | Fields"


def asked_fields(fields: Any) -> Fields | None:
    """What the option ``fields`` asks for; None: nothing.

    Raises:
        OptionsError: it is neither True, False, pointers nor ``Fields``.
    """
    if fields is None or fields is False:
        return None
    if isinstance(fields, Fields):
        return fields
    return Fields() if fields is True else Fields(tuple(_listed(fields)))


def _listed(pointers: Any) -> Sequence[Any]:
    if isinstance(pointers, (str, bytes)) or not isinstance(pointers, Sequence):
        raise OptionsError(
            f"fields must be True, or JSON Pointers such as ['/label', '/tags/*'], not {pointers!r:.100}",
            option="fields",
            value=pointers,
        )
    return pointers


def _pointer(pointer: Any) -> str:
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        hint = f"; did you mean {'/' + pointer!r}?" if isinstance(pointer, str) else ""
        raise OptionsError(
            f"{pointer!r:.100} is no JSON Pointer: that is '' or begins with '/'{hint}", option="fields", value=pointer
        )
    return pointer
