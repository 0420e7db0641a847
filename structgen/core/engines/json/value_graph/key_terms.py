"""Classes of keys, which are formulas over strings: their names, their other atoms, their truth."""

from __future__ import annotations

from collections.abc import Iterable

from structgen.core.json_schema.formula.language import And, Enum, Formula, Not, One, Or, Type
from structgen.core.json_schema.formula.leaves import leaves


def named(keys: Formula) -> Iterable[str]:
    """The strings that a key class names."""
    return [name for atom in leaves(keys) if isinstance(atom, Enum) for name in atom.values if isinstance(name, str)]


def string_atoms(keys: Formula) -> Iterable[Formula]:
    """The atoms of a key class other than enumerations."""
    return [atom for atom in leaves(keys) if not isinstance(atom, (Enum, Type))]


def truth(keys: Formula, facts: dict[Formula, bool]) -> bool:
    """Truth of a key class for a key that no enumeration names, given the truth of its other atoms.

    That of parts is added to ``facts``, so that those that are shared are looked at once.
    """
    known = facts.get(keys)
    if known is None:
        known = facts[keys] = _looked_at(keys, facts)
    return known


def _looked_at(keys: Formula, facts: dict[Formula, bool]) -> bool:
    if isinstance(keys, Type):
        return keys.mask != 0
    if isinstance(keys, Enum):
        return False
    if isinstance(keys, Not):
        return not truth(keys.arg, facts)
    if isinstance(keys, And):
        return all(truth(part, facts) for part in keys.args)
    if isinstance(keys, Or):
        return any(truth(part, facts) for part in keys.args)
    if isinstance(keys, One):
        return sum(truth(part, facts) for part in keys.args) == 1
    raise AssertionError(f"there is no fact about {keys!r}")


def encodable(text: str) -> bool:
    """Whether a string is Unicode text (lone surrogates are not: RFC 8259, section 8.2)."""
    return text.isascii() or not any(0xD800 <= ord(c) <= 0xDFFF for c in text)
