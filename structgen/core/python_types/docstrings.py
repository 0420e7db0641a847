"""What a docstring says of a function and its parameters, in the styles of Google, NumPy and Sphinx."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import NamedTuple

_SPHINX = re.compile(r":(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)")
_SPHINX_FIELD = re.compile(r":\w+[^:]*:")
_GOOGLE = re.compile(r"(?i:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):")
_GOOGLE_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(.*?\))?\s*:(?:\s+(.*))?$")
_GOOGLE_SECTION = re.compile(r"[A-Z][A-Za-z ]*:$")
_NUMPY = re.compile(r"(?:Other )?Parameters|Keyword Arguments")
_NUMPY_ENTRY = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_RULE = re.compile(r"-{3,}$")


class Docstring(NamedTuple):
    """What a docstring says.

    Attributes:
        description: the text before parameters and other sections.
        parameters: descriptions by parameter, each on one line.
    """

    description: str
    parameters: dict[str, str]


def read_docstring(text: str | None) -> Docstring:
    """Read a docstring; what is of no style is description."""
    lines = inspect.cleandoc(text or "").splitlines()
    entries: dict[str, list[str]] = {}
    for name, words in _entries(lines):
        entries.setdefault(name, []).extend(words)
    end = next((number for number in range(len(lines)) if _begins_section(lines, number)), len(lines))
    parameters = {name: " ".join(" ".join(words).split()) for name, words in entries.items()}
    return Docstring("\n".join(lines[:end]).strip(), {name: said for name, said in parameters.items() if said})


def _begins_section(lines: list[str], number: int) -> bool:
    line = lines[number].rstrip()
    if _SPHINX_FIELD.match(line):
        return True
    if number + 1 < len(lines) and line and _RULE.match(lines[number + 1].strip()):
        return True
    begins = _GOOGLE_SECTION.match(line) or _GOOGLE.fullmatch(line)
    return begins is not None and _is_indented(lines, number + 1)


def _is_indented(lines: list[str], number: int) -> bool:
    following = next((line for line in lines[number:] if line.strip()), "")
    return following.startswith((" ", "\t"))


def _entries(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Parameters with the lines that describe them."""
    for number, line in enumerate(lines):
        if match := _SPHINX.match(line):
            yield match[1], [match[2], *_indented(lines, number + 1, 0)]
        elif _GOOGLE.fullmatch(line.rstrip()):
            yield from _google(lines, number + 1)
        elif _NUMPY.fullmatch(line.rstrip()) and number + 1 < len(lines) and _RULE.match(lines[number + 1].strip()):
            yield from _numpy(lines, number + 2)


def _indented(lines: list[str], start: int, depth: int) -> list[str]:
    """The lines from a place on that are indented deeper, up to the first that is not; blank lines among them."""
    inner = []
    for line in lines[start:]:
        if line.strip() and _depth(line) <= depth:
            break
        inner.append(line.strip())
    return inner


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _google(lines: list[str], start: int) -> Iterator[tuple[str, list[str]]]:
    section = [line for line in lines[start : start + len(_indented(lines, start, 0))]]
    depth = min((_depth(line) for line in section if line.strip()), default=0)
    for number, line in enumerate(section):
        match = _GOOGLE_ENTRY.match(line.strip()) if line.strip() and _depth(line) == depth else None
        if match:
            yield match[1], [match[2] or "", *_indented(section, number + 1, depth)]


def _numpy(lines: list[str], start: int) -> Iterator[tuple[str, list[str]]]:
    for number in range(start, len(lines)):
        line = lines[number]
        if number + 1 < len(lines) and _RULE.match(lines[number + 1].strip()):
            return  # the next section
        match = _NUMPY_ENTRY.match(line) if line and not line[0].isspace() else None
        if match:
            words = _indented(lines, number + 1, 0)
            for name in match[1].split(","):
                yield name.strip().lstrip("*"), words
