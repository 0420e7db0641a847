"""Advice on schemas that let a model invent members: given when most of an output went into them."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from structgen.cli.common import byte_vocabulary
from structgen.cli.consoles import err
from structgen.cli.validate import first_refused_offset
from structgen.core.constraints.base import Constraint
from structgen.core.constraints.json import JsonSchemaConstraint
from structgen.core.json_text import loads_exact
from structgen.errors import StructgenError
from structgen.options import JsonOptions

MOST = 0.5  # of a text: beyond, what was asked for is the smaller part
MAX_MEMBERS = 200  # that are looked for


class SpelledMember(NamedTuple):
    """A member of an object, and where its key begins and its value ends in the text of the whole."""

    owner: dict[str, Any]
    name: str
    start: int
    end: int


def advise(constraint: Constraint | None, text: str, *, ran_out: bool) -> None:
    """Print the `advice` on an output, if there is any, on standard error."""
    remark = advice(constraint, text, ran_out)
    if remark is not None:
        err.print(remark, markup=False, soft_wrap=True)


def advice(constraint: Constraint | None, text: str, ran_out: bool) -> str | None:
    """What to say of an output, or of what there is of one that ``ran_out`` of tokens; None: nothing."""
    if not isinstance(constraint, JsonSchemaConstraint) or constraint.options.additional_members == "closed":
        return None
    try:
        if not constraint.compile(byte_vocabulary()).report.open:
            return None
        share = undeclared_share(constraint, text)
    except StructgenError:  # half a text, or a schema that closed is more than one can say
        share = 0.0
    if share > MOST:
        return f"{share:.0%} of the text is members that the schema does not declare; --closed allows none."
    if ran_out:
        return "The budget may have gone on members that the schema does not declare; --closed allows none."
    return None


def undeclared_share(constraint: JsonSchemaConstraint, text: str) -> float:
    """Which part of an output's text is members that ``additional_members="closed"`` would not allow, by taking out one
    after the other at which a matcher of the closed schema stops.

    Raises:
        StructgenError: the text is no JSON, or the closed schema cannot be used.
    """
    part = constraint.options
    options = JsonOptions.exact(
        additional_members="closed",
        dialect=part.dialect,
        assert_formats=part.assert_formats,
        unsupported=part.unsupported,
    )
    closed = replace(constraint, options=options)
    value = loads_exact(text)
    spelled, members = _spelled(value)
    whole = len(spelled)
    for _ in range(MAX_MEMBERS):
        offset = first_refused_offset(closed, spelled)
        around = [] if offset is None else [member for member in members if member.start <= offset < member.end]
        if not around or spelled[offset : (offset or 0) + 1] == b"}":  # all is declared, or too few members are left
            break
        innermost = max(around, key=lambda member: member.start)
        del innermost.owner[innermost.name]
        spelled, members = _spelled(value)
    return 1 - len(spelled) / whole


def _spelled(value: Any) -> tuple[bytes, list[SpelledMember]]:
    """A value as compact JSON, and its members, the comma before each included."""
    text, members = bytearray(), []

    def write(part: Any) -> None:
        if isinstance(part, dict):
            text.extend(b"{")
            for number, (name, inner) in enumerate(part.items()):
                start = len(text)
                text.extend((("," if number else "") + json.dumps(name) + ":").encode())
                write(inner)
                members.append(SpelledMember(part, name, start, len(text)))
            text.extend(b"}")
        elif isinstance(part, list):
            text.extend(b"[")
            for number, inner in enumerate(part):
                text.extend(b"," * bool(number))
                write(inner)
            text.extend(b"]")
        else:
            text.extend((str(part) if isinstance(part, Decimal) else json.dumps(part)).encode())

    write(value)
    return bytes(text), members
