"""Internationalised host names (RFC 5890–5893) as an automaton.

The language is a subset of the legal names:

- no ``xn--`` labels, see `structgen.core.regex.formats`;
- of the characters those that Unicode 14 has, as the oldest supported Python judges by it, and none that normalisation
  form C may change or join to the one before it (U+0301, U+3099 and 60 other marks, some vowels and letters);
- no two combining marks in a row (form C would order them);
- in labels with other characters than ASCII's no ``--``, and no capital letters;
- zero width joiners only after a virama, non-joiners also right between two right-to-left letters that join; a katakana
  middle dot only beside a kana or Han character.

One rule is not enforced, because it counts what characters add to each other: that the Punycode form of a label has at
most 63 characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from structgen.core.regex.charset import CharSet, complement, intersection, partition, single, union
from structgen.core.regex.dfa import Dfa, from_class_table
from structgen.core.regex.unicode.properties import property_set

MAX_STATES = 100_000
MAX_LABEL = 63

_NEED = frozenset({"need l", "need Greek", "need kana", "need joining"})


class _Char(NamedTuple):
    """What the rules ask of a character: its part in them and its bidirectional class.

    ``joins_left`` and ``joins_right`` say of right-to-left letters which neighbour they join, the one that is written
    before or the one after.
    """

    role: str
    bidi: str
    joins_left: bool
    joins_right: bool
    is_greek: bool
    is_kana: bool


class _State(NamedTuple):
    """The rules that the text so far leaves to be kept.

    ``domain`` is "" while no label is right-to-left and all keep the Bidi rule, "broken" once one does not, "rtl" once
    one is. ``ascii_length`` is the length of an all-ASCII label, −1 in others. ``previous`` is the role of the
    character before, or what must follow. ``direction`` is "" before the first character, "L", "R", or "broken"
    for a label that breaks the Bidi rule; ``number`` the kind of digits in a right-to-left label; ``ends_well``
    whether the Bidi rule lets the label end here.
    """

    domain: str = ""
    ascii_length: int = 0
    upper: bool = False
    previous: str = "start"
    direction: str = ""
    number: str = ""
    ends_well: bool = False


def idn_hostname() -> Dfa:
    """Host names with Unicode labels, see the module's description."""
    roles = _roles()
    bidi = {name: _idn(f"Bidi_{name}") for name in ("L", "R", "AL", "AN", "EN", "NSM")}
    letters = union(bidi["R"], bidi["AL"])
    left, right = (intersection(letters, union(_idn("Joining_D"), _idn(f"Joining_{side}"))) for side in ("R", "L"))
    greek, kana = _scripts("Greek"), _scripts("Hiragana", "Katakana", "Han")
    segments, masks = partition([*roles.values(), *bidi.values(), left, right, greek, kana])
    chars = [_char(mask, list(roles), list(bidi)) for mask in masks]
    start = _State()
    index, order = {start: 0}, [start]
    rows = []
    for state in order:
        row = []
        for char in chars:
            target = _step(state, char) if char is not None else None
            if target is not None and target not in index:
                index[target] = len(order)
                order.append(target)
            row.append(-1 if target is None else index[target])
        rows.append(row)
    accepting = np.array([_end_label(state) is not None for state in order], np.uint8)
    return from_class_table(np.array(rows, np.int32), accepting, segments, MAX_STATES)


def _idn(name: str) -> CharSet:
    members = property_set("idn", name)
    assert members is not None, name
    return members


def _scripts(*names: str) -> CharSet:
    return union(*(property_set("sc", name) or () for name in names))


def _roles() -> dict[str, CharSet]:
    """Disjoint sets of the characters that may occur, by their part in the rules."""
    stable = intersection(_idn("PVALID"), _idn("NFC"))
    stable = intersection(stable, _idn("Known"))
    beyond = intersection(stable, complement(((0, 0x7F),)))
    virama = intersection(beyond, _idn("Virama"))
    marks = intersection(intersection(beyond, property_set("gc", "M") or ()), complement(virama))
    mark = intersection(marks, complement(_idn("Starter")))
    hebrew = intersection(beyond, _scripts("Hebrew"))
    digits: CharSet = ((0x660, 0x669), (0x6F0, 0x6F9))
    named = {
        "lower": ((0x61, 0x6B), (0x6D, 0x7A)),
        "l": single(0x6C),
        "upper": ((0x41, 0x5A),),
        "digit": ((0x30, 0x39),),
        "hyphen": single(0x2D),
        "dot": ((0x2E, 0x2E), (0x3002, 0x3002), (0xFF0E, 0xFF0E), (0xFF61, 0xFF61)),
        "virama": virama,
        "mark": mark,
        "starter mark": intersection(marks, _idn("Starter")),
        "joiner": single(0x200D),
        "non-joiner": single(0x200C),
        "middle dot": single(0xB7),
        "keraia": single(0x375),
        "geresh": ((0x5F3, 0x5F4),),
        "katakana dot": single(0x30FB),
        "hebrew": intersection(hebrew, complement(marks)),
    }
    return {**named, "other": union(intersection(beyond, complement(union(*named.values()))), digits)}


def _char(mask: int, roles: Sequence[str], bidi: Sequence[str]) -> _Char | None:
    """The description of a class of characters, None if they may not occur."""
    role = [name for i, name in enumerate(roles) if mask >> i & 1]
    kind = [name for i, name in enumerate(bidi) if mask >> (len(roles) + i) & 1]
    left, right, greek, kana = (bool(mask >> (len(roles) + len(bidi) + i) & 1) for i in range(4))
    return _Char(role[0], kind[0] if kind else "ON", left, right, greek, kana) if role else None


def _step(state: _State, char: _Char) -> _State | None:
    """The state after a character, None if a rule is broken for good."""
    if char.role == "dot":
        domain = _end_label(state)
        return None if domain is None else _State(domain)
    state = state._replace(ascii_length=_count(state, char), upper=state.upper or char.role == "upper")
    if state.ascii_length > MAX_LABEL or (state.upper and state.ascii_length < 0):
        return None
    previous = _context(state, char)
    return None if previous is None else _bidi(state._replace(previous=previous), char)


def _count(state: _State, char: _Char) -> int:
    return (
        state.ascii_length + 1
        if state.ascii_length >= 0 and char.role in ("lower", "l", "upper", "digit", "hyphen")
        else -1
    )


def _context(state: _State, char: _Char) -> str | None:
    """The new ``previous`` by RFC 5891 section 4.2.3 and the contextual rules of RFC 5892 appendix A."""
    before, role = state.previous, char.role
    first = before == "start"
    meets = {"need l": role == "l", "need Greek": char.is_greek, "need kana": char.is_kana}
    meets["need joining"] = char.joins_left
    if not meets.get(before, True):
        return None
    if role == "hyphen":
        # "--" as the third and fourth character is reserved; beyond ASCII it is left out everywhere.
        return (
            None if first or (before == "hyphen" and (state.ascii_length < 0 or state.ascii_length == 4)) else "hyphen"
        )
    if role in ("mark", "virama"):
        return None if first or before in ("mark", "virama") else role
    if role == "starter mark":
        return None if first else "other"
    if role == "joiner":
        return "other" if before == "virama" else None
    if role == "non-joiner":
        return {"virama": "other", "joins": "need joining"}.get(before)
    if role == "middle dot":
        return "need l" if before == "l" else None
    if role == "keraia":
        return "need Greek"
    if role == "geresh":
        return "hebrew" if before == "hebrew" else None
    if role == "katakana dot":
        return "kana" if before == "kana" else "need kana"
    if char.is_kana:
        return "kana"
    if char.joins_right:
        return "joins"
    return role if role in ("l", "hebrew") else "other"


def _bidi(state: _State, char: _Char) -> _State | None:
    """RFC 5893 section 2, rules 1 to 6, as far as one character goes."""
    kind = "R" if char.bidi == "AL" else char.bidi
    if char.role in ("digit", "hyphen"):
        kind = "EN" if char.role == "digit" else "ES"
    if not state.direction:
        state = state._replace(direction=kind if kind in ("L", "R") else "broken")
    if (state.direction == "R" and kind == "L") or (state.direction != "R" and kind in ("R", "AN")):
        return None
    if state.direction == "R":
        if kind in ("EN", "AN"):
            if state.number not in ("", kind):
                return None
            state = state._replace(number=kind)
        if state.domain == "broken":
            return None
    elif state.direction == "broken" and state.domain == "rtl":
        return None
    if kind != "NSM":
        state = state._replace(ends_well=kind in (("R", "EN", "AN") if state.direction == "R" else ("L", "EN")))
    return state


def _end_label(state: _State) -> str | None:
    """The ``domain`` after the label that ends here, None if it may not end."""
    if state.previous in ("start", "hyphen") or state.previous in _NEED:
        return None
    if state.direction == "R":
        return "rtl" if state.ends_well else None
    if state.direction == "L" and state.ends_well:
        return state.domain
    return None if state.domain == "rtl" else "broken"
