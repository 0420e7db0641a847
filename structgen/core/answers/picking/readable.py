"""Words and numbers that read well."""

from __future__ import annotations

from functools import cache

from structgen.core.regex.dfa import Dfa, accepts

USUAL = [0, 1, 2, 3, 5, 7, 10, 12, 20, 25, 42, 50, 60, 99, 100, 120, 256, 500, 1000, 2024, -1, -10]
NAMED = {
    "city": ("Lisbon", "Oslo", "Nairobi", "Quito", "Kyoto"),
    "country": ("Portugal", "Norway", "Kenya", "Ecuador", "Japan"),
    "name": ("Ada Lovelace", "Alan Turing", "Grace Hopper", "Emmy Noether", "Niels Abel"),
    "email": ("ada@example.org", "alan@example.com", "grace@example.net"),
    "phone": ("+1 555 0100", "+44 20 7946 0958"),
    "street": ("12 Main Street", "5 Harbour Road"),
    "title": ("Notes on a journey", "A short report", "Minutes of the meeting"),
    "description": ("A short description of what this is about.", "Blue, about this large."),
    "language": ("en", "de", "pt", "sw"),
    "currency": ("EUR", "USD", "JPY"),
    "color": ("red", "green", "blue"),
    "path": ("/tmp/data.csv", "docs/index.md"),
    "query": ("weather in Oslo", "open tickets of this week"),
}
FORMATTED = (
    "2024-05-17", "1999-12-31", "2031-02-28", "2024-05-17T09:30:00Z", "1999-12-31T23:59:59+01:00", "09:30:00Z",
    "12:00:00+02:00", "P3DT4H", "ada@example.org", "example.org", "www.example.com", "192.0.2.17", "198.51.100.4",
    "2001:db8::17", "https://example.org/a/b?c=d", "https://example.com", "/items/0/name", "0/name",
    "2eb8aa08-aa98-41ea-b4aa-73b441d16380", "9f2d2a6e-6c3e-4b0a-9d57-0c6a1f0b7c11", "https://example.org/{id}",
    "1.2.3", "v1.0", "a1b2c3", "#1f77b4", "en-US", "application/json",
)  # fmt: skip
WORDS = (
    "alpha", "blue", "cedar", "delta", "east", "field", "garden", "harbour", "island", "juniper", "kite", "lantern",
    "maple", "north", "orchid", "paper", "quartz", "river", "stone", "tower", "umbra", "valley", "willow", "yellow",
    "zephyr", "report", "summary", "first", "second", "example", "value", "item", "note", "x", "y1",
)  # fmt: skip

_KNOWN_USUAL: dict[bytes, tuple[str, ...]] = {}
MAX_USUAL = 500


def usual_words(dfa: Dfa) -> tuple[str, ...]:
    """The usual texts in the language of an automaton."""
    usual = _KNOWN_USUAL.get(dfa.digest)
    if usual is None:
        if len(_KNOWN_USUAL) >= MAX_USUAL:
            _KNOWN_USUAL.clear()
        listed = [*FORMATTED, *WORDS, *(word for words in NAMED.values() for word in words), *map(str, USUAL)]
        usual = _KNOWN_USUAL[dfa.digest] = tuple([word for word in listed if accepts(dfa, word)])
    return usual


_ORDER = (*b"aeiou", *b"bcdfghjklmnpqrstvwxyz", *b"0123456789", *b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", *b" -_.,:/@")


@cache
def _rank(byte: int) -> int:
    return _ORDER.index(byte) if byte in _ORDER else len(_ORDER) + byte


def readable_steps(dfa: Dfa, state: int) -> list[tuple[int, int]]:
    """The transitions of a state by how well their bytes read; the readable ones only, where there are any."""
    transitions = dfa.transitions[state].tolist()
    bytes_there = sorted((byte for byte in range(256) if transitions[byte] >= 0), key=_rank)
    readable = [byte for byte in bytes_there if _rank(byte) < len(_ORDER)]
    return [(byte, transitions[byte]) for byte in (readable or bytes_there)[:64]]
