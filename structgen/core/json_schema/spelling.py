"""Words that are no keywords, and no formats: which ones are most likely misspelt.

The specification lets a schema have any other words, so a misspelt keyword is enforced by nobody and seen by nobody. A
word is taken for a misspelt keyword if no draft has it and one slip makes it one that the schema's draft has: a letter
too many, too few, another one, two of them swapped, or upper case for lower. In published schemas such words are rare
and nearly all mistakes, once those are left out that other vocabularies define. Formats likewise, which may
differ in the signs between their letters, too (``datetime``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

ELSEWHERE = frozenset({"discriminator", "example", "externalDocs", "note", "readonly", "xml"})
"""Annotations of other vocabularies: OpenAPI's, and those of forms."""
OTHER_FORMATS = {"url": "uri", "guid": "uuid"}
"""What is often written for a format."""
OWN_FORMATS = frozenset(f"uuid{version}" for version in range(1, 9))
"""What others define, a slip away from a format: pydantic's."""
SHORTEST = 4  # letters of a keyword; of shorter ones nearly every short word is a slip away
MAX_DECLARED = 200  # members of a schema among which a misspelt one is looked for
AROUND = ("schema", "json_schema", "parameters", "input_schema", "inputSchema")
"""Members of requests and tools in which a schema lies."""
MAX_ORDINARY = 10_000  # words of a dialect that are remembered


def is_extension(word: str) -> bool:
    """Whether a word says by its spelling that it is nobody's keyword."""
    return word[:2].lower() == "x-"


def misspelt(word: str, keywords: Iterable[str]) -> str | None:
    """The keyword that ``word``, which is none, was most likely meant to be; None: it is another word."""
    if is_extension(word):  # others' extensions are none of ours, unless they nearly are
        keywords = filter(is_extension, keywords)
    near = [keyword for keyword in keywords if len(keyword) >= SHORTEST and _is_slip(word, keyword)]
    return min(near, key=lambda keyword: (keyword.lower() != word.lower(), keyword), default=None)


def misspelt_format(name: str, formats: Collection[str]) -> str | None:
    """The format that ``name``, which is none, was most likely meant to be; None: it is another, or an own one."""
    if name in OWN_FORMATS:
        return None
    long = [other for other in formats if len(other) >= SHORTEST]
    near = [other for other in long if _is_slip(name, other) or _letters(name) == _letters(other)]
    meant = min(near, default=OTHER_FORMATS.get(name.lower()))
    return meant if meant in formats else None


def doubt_required(name: str, required: Collection[str], declared: Collection[str]) -> str | None:
    """What to say of a required member that is not declared and most likely a misspelt one that is; None: it is not."""
    if len(declared) > MAX_DECLARED:
        return None
    meant = misspelt(name, (member for member in declared if member not in required))
    return None if meant is None else f"{name!r:.80} is required and not declared; did you mean {meant!r:.80}?"


def doubt_words(schema: Mapping[str, Any], words: Collection[str], dialect: str) -> str | None:
    """What to say of a schema of whose words none is known, so that it allows everything; None: some are, or there are
    none. Most often an example of a value was given for a schema, or what a schema lies in."""
    if not schema or all(is_extension(word) for word in schema) or any(word in words for word in schema):
        return None
    around = next((word for word in AROUND if isinstance(schema.get(word), Mapping)), None)
    hint = 'members are declared so: {"properties": {...}}'
    if around is not None:
        hint = f"the schema is perhaps its member {around!r}"
    return f"no word of it is a keyword of {dialect}, so that every JSON value is allowed; {hint}"


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def _is_slip(word: str, keyword: str) -> bool:
    """Whether one slip, or the case of letters, tells them apart.

    Not a sign put in front, which puts a keyword out of use (``_format``) or makes another word of it (``$default``),
    nor another first letter (``when`` is no ``then``).
    """
    if abs(len(word) - len(keyword)) > 1 or not word:
        return False
    if word.lower() == keyword.lower():
        return True
    if not word[0].isalnum() and word[0] != keyword[0]:
        return False
    if keyword[0] == "$" and word == keyword[1:]:
        return keyword in ("$defs", "$ref")
    if word[0].lower() != keyword[0] and word[1:] == keyword[1:]:
        return False
    return _is_one_edit(word, keyword)


def _is_one_edit(first: str, second: str) -> bool:
    """Whether a letter added, left out or replaced, or two neighbours swapped, make one of the other."""
    same = 0
    while same < min(len(first), len(second)) and first[same] == second[same]:
        same += 1
    one, other = first[same:], second[same:]
    if len(one) == len(other):
        return one[1:] == other[1:] or (one[:2] == other[:2][::-1] and one[2:] == other[2:])
    return one[1:] == other or one == other[1:]
