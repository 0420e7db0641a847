"""Classes of keys, which are formulas over strings: their names, their other atoms, their truth."""

from __future__ import annotations

from collections.abc import Iterable

from structgen.formula.language import And, Enum, Formula, Not, One, Or, Type


def named(keys: Formula) -> Iterable[str]:
    """The strings that a key class names."""
    if isinstance(keys, Enum):
        return [value for value in keys.values if isinstance(value, str)]
    if isinstance(keys, Not):
        return named(keys.arg)
    if isinstance(keys, (And, Or, One)):
        return [name for part in keys.args for name in named(part)]
    return []


def string_atoms(keys: Formula) -> Iterable[Formula]:
    """The atoms of a key class other than enumerations."""
    if isinstance(keys, (Enum, Type)):
        return []
    if isinstance(keys, Not):
        return string_atoms(keys.arg)
    if isinstance(keys, (And, Or, One)):
        return [atom for part in keys.args for atom in string_atoms(part)]
    return [keys]


def truth(keys: Formula, facts: dict[Formula, bool]) -> bool:
    """Truth of a key class for a key that no enumeration names, given the truth of its other atoms."""
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
    return facts[keys]


def encodable(text: str) -> bool:
    """Whether a string is Unicode text (lone surrogates are not: RFC 8259, section 8.2)."""
    return text.isascii() or not any(0xD800 <= ord(c) <= 0xDFFF for c in text)
