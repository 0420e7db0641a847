"""Mask rows and remainder groups against brute force over a vocabulary."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structgen.core.engines.bitmask import unpacked
from structgen.core.engines.json.masks.bitmask_rows import MaskRows
from structgen.core.engines.json.masks.remainders import find_remainders
from structgen.core.engines.json.masks.token_index import build_lexicon
from structgen.core.engines.json.numbers.automaton import automaton
from structgen.core.engines.json.numbers.spec import NumberSpec
from structgen.core.kernels.json import layout
from structgen.core.regex.pattern import pattern_dfa
from structgen.core.vocabulary.vocabulary import Vocabulary

# Characters that the tokens below are made of; some need an escape, some are cut in two.
CHARACTERS = 'ab/"\\\n\x01é€😀 09-'


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRUCTGEN_CACHE_DIR", str(tmp_path))


def spellings(character: str, escapes: bool) -> list[bytes]:
    """All ways to write a character inside a JSON string (hexadecimal digits in one case); RFC 8259, section 7."""
    short = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
    must = character in '"\\' or ord(character) < 0x20
    found = [] if must else [character.encode()]
    if escapes or must:
        units = np.frombuffer(character.encode("utf-16-le"), np.uint16).tolist()
        for pattern in ("\\u{:04x}", "\\u{:04X}"):
            found.append("".join(pattern.format(unit) for unit in units).encode())
        if character in short:
            found.append(short[character].encode())
    return found


def stays(token: bytes, words: list[bytes]) -> bool:
    """Whether the token is a prefix of a concatenation of ``words``."""
    return not token or any(
        stays(token[len(word) :], words) if token.startswith(word) else word.startswith(token) for word in words
    )


def vocabulary() -> Vocabulary:
    random = np.random.default_rng(5)
    text = [s for ch in CHARACTERS for s in spellings(ch, True)]
    pieces = [*text, b'"', b",", b"}", b"]", b":", b"\\", b"\\u", b"00", b"\xe2\x82", b"\xf0\x9f", b"\xff", b"\\ud83d"]
    tokens: list[bytes] = list(dict.fromkeys([*pieces, *(bytes([b]) for b in range(256))]))
    while len(tokens) < 900:
        token = b"".join(pieces[i] for i in random.integers(0, len(pieces), random.integers(1, 5)))
        tokens.append(token[: random.integers(1, len(token) + 1)])  # duplicates are welcome
    return Vocabulary([*tokens, None], eos_token_ids=len(tokens), size=len(tokens) + 40)


VOCABULARY = vocabulary()


@pytest.fixture(scope="module", params=[False, True], ids=["minimal", "any"])
def rows(request: pytest.FixtureRequest) -> MaskRows:
    return MaskRows(build_lexicon(VOCABULARY, request.param))


def row(rows: MaskRows, state: int) -> set[int]:
    rows.compute(state, layout.BODY)
    bits = unpacked(rows.row(rows.pool.slots[2 * state + layout.BODY]))
    assert not bits[VOCABULARY.size :].any()
    return set(np.flatnonzero(bits).tolist())


KNOWN = [word for character in CHARACTERS for word in spellings(character, True)]


@pytest.mark.parametrize(
    ("pattern", "characters"),
    [("^[ab]*$", "ab"), ("^[é€😀]*$", "é€😀"), ('^["\\\\\\n]*$', '"\\\n'), ("^[^/]*$", None), ("", None)],
)
def test_rows_of_patterns(rows: MaskRows, pattern: str, characters: str | None) -> None:
    """None: the pattern allows more than the characters here, so only tokens made of these are compared."""
    state = rows.pool.add_dfa(pattern_dfa(pattern)) if pattern else rows.pool.universal
    chosen = [ch for ch in CHARACTERS if (ch in characters if characters else ch != "/" or not pattern)]
    words = [word for ch in chosen for word in spellings(ch, rows.lexicon.escapes)]
    found = row(rows, state)
    compared = [i for i, token in enumerate(VOCABULARY.tokens) if token and (characters or stays(token, KNOWN))]
    expected = {i for i in compared if stays(VOCABULARY.tokens[i], words)}
    assert [VOCABULARY.tokens[i] for i in (found & set(compared)) ^ expected] == []
    assert 0 < len(expected) < len(compared) or not pattern


def test_the_universal_row_is_json(rows: MaskRows) -> None:
    """The inside of a JSON string, by ``json.loads``, stays inside; under minimal escapes if it is spelled so."""
    found = row(rows, rows.pool.universal)
    whole = 0
    for token_id, token in enumerate(VOCABULARY.tokens):
        content = read(token) if token else None
        if content is not None:
            whole += 1
            words = [word for ch in content for word in spellings(ch, rows.lexicon.escapes)]
            assert (token_id in found) == stays(token, words), token
    assert whole > 250


def read(content: bytes) -> str | None:
    """What a string of this content says; None if it is none (lone surrogates are no text)."""
    try:
        value: Any = json.loads(b'"' + content + b'"')
        value.encode()
    except ValueError:
        return None
    return str(value)


def test_rows_of_numbers(rows: MaskRows) -> None:
    spec = NumberSpec(Fraction(0), maximum=Fraction(905), multiples=frozenset({Fraction(5)}), spelling="plain")
    state = rows.pool.add_number(automaton(spec))
    texts = [str(value).encode() for value in range(0, 910, 5)]
    found = row(rows, state)
    expected = {i for i, token in enumerate(VOCABULARY.tokens) if token and any(t.startswith(token) for t in texts)}
    assert found == expected


def test_length_rows(rows: MaskRows) -> None:
    """Row n: what stays in a free string and stands for at most n code points."""
    free = row(rows, rows.pool.universal)
    for limit in range(rows.lexicon.longest_text + 1):
        found = set(np.flatnonzero(unpacked(rows.row(layout.ROW_LENGTHS + limit))).tolist())
        assert found <= free
        for token_id in free:
            token = VOCABULARY.tokens[token_id]
            content = read(token)
            if content is not None:
                assert (token_id in found) == (len(content) <= limit), (token, limit)


def test_blank_row(rows: MaskRows) -> None:
    blank = {i for i, token in enumerate(VOCABULARY.tokens) if token and not token.strip(b" \n\r\t")}
    assert set(np.flatnonzero(unpacked(rows.row(layout.ROW_BLANK))).tolist()) == blank


# --- remainders -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("escapes", [False, True])
def test_remainders(escapes: bool) -> None:
    """Each token with a quote is in the group of what follows its first quote that closes, with its decoded text."""
    candidates = [i for i, token in enumerate(VOCABULARY.tokens) if b'"' in token and token[0] >= 0x20]
    found = find_remainders(VOCABULARY, candidates, escapes)
    places: dict[int, str] = {}
    for group in range(len(found.groups) - 1):
        for token, points, place, length in found.members[found.groups[group] : found.groups[group + 1]].tolist():
            decoded = found.decoded[place : place + length].tobytes().decode()
            assert points == len(decoded)
            places[token] = decoded
    for token_id in candidates:
        token = VOCABULARY.tokens[token_id]
        split = closing_quote(token)
        content = None if split is None else read(token[:split])
        if content is None or split is None:
            assert token_id not in places and token_id not in found.hard
        elif token_id in places:
            assert places[token_id] == content
        elif token_id not in found.hard:
            head = token[split + 1 :].split(b'"')[0]
            words = [s for ch in content for s in spellings(ch, escapes)]
            assert head.strip(b" \t\n\r,:{}[]0123456789+-.eEaflnrstu") or not stays(token[:split], words), token


def closing_quote(token: bytes) -> int | None:
    """The first quote with an even number of backslashes before it."""
    for place, byte in enumerate(token):
        before = token[:place]
        if byte == 0x22 and (len(before) - len(before.rstrip(b"\\"))) % 2 == 0:
            return place
    return None
