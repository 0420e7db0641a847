"""Whether text satisfies a constraint, byte by byte, whatever tokens it came in and however its JSON is spelled."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from structgen.core.constraints.base import Constraint, is_constraint
from structgen.core.constraints.json import JsonSchemaConstraint
from structgen.core.constraints.parts import BYTES
from structgen.core.engines.protocols import Grammar, Matcher
from structgen.options import JsonOptions

MAX_CANDIDATES = 64
"""Places in an answer at which a JSON value is looked for."""
_FENCE = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_SPELLING = ("key_order", "whitespace", "max_whitespace_run", "string_escapes", "number_spellings")


def loosened(constraint: Constraint) -> Constraint:
    """The constraint with JSON in any spelling: a server that is not ours writes valid JSON as it likes."""
    if isinstance(constraint, JsonSchemaConstraint):
        exact = JsonOptions.exact()
        options = replace(constraint.options, **{name: getattr(exact, name) for name in _SPELLING})
        if options.max_number_length == "auto":  # a default of what is written here, and no condition
            options = replace(options, max_number_length=None)
        return replace(constraint, options=options)
    if is_dataclass(constraint) and not isinstance(constraint, type):
        changes = {each.name: _loosened(getattr(constraint, each.name)) for each in fields(constraint) if each.init}
        changes = {name: new for name, new in changes.items() if new is not getattr(constraint, name)}
        changed: Any = replace(constraint, **changes) if changes else constraint
        return changed
    return constraint


def _loosened(value: Any) -> Any:
    if isinstance(value, tuple):
        inner = tuple(_loosened(item) for item in value)
        return inner if any(new is not old for new, old in zip(inner, value, strict=True)) else value
    return loosened(value) if is_constraint(value) else value


class TextCheck:
    """A text that grows, and how much of it fits.

    Attributes:
        fitting: the bytes that fit so far.
        wrong: the first byte that does not, with what came after it at once; empty while all fits.
    """

    def __init__(self, grammar: Grammar) -> None:
        self._matcher: Matcher = grammar.matcher()
        self.fitting = bytearray()
        self.wrong = b""

    def feed(self, text: str) -> str:
        """Take more text, up to the first byte that does not fit; gives what fits, in whole characters. O(bytes)."""
        data = text.encode(errors="surrogatepass")
        if self.wrong or not data:
            return ""
        if self._matcher.accept_bytes(data):
            taken = len(data)
        else:
            taken = next(i for i in range(len(data)) if not self._matcher.accept_bytes(data[i : i + 1]))
            self.wrong = data[taken:]
            while taken and data[taken] & 0xC0 == 0x80:  # back to the beginning of the character
                taken -= 1
                self._matcher.rollback()
        self.fitting += data[:taken]
        return data[:taken].decode()

    @property
    def text(self) -> str:
        """The text that fits."""
        return self.fitting.decode()

    def is_whole(self) -> bool:
        """Whether what fits may end here."""
        return self._matcher.is_accepting()

    def expected(self) -> str:
        """What may follow what fits, for people and models."""
        forced = self._matcher.forced_bytes()
        if forced:
            return repr(forced[:60].decode(errors="replace"))
        following = [chr(byte) for byte, allowed in enumerate(self._matcher.next_bytes()[:128]) if allowed]
        shown = [character for character in following if character.isprintable() and character != " "]
        few = ", ".join(map(repr, shown[:12])) + (", ..." if len(shown) > 12 else "")
        end = "the end" if self.is_whole() else ""
        return " or ".join(filter(None, [f"one of {few}" if shown else "", end])) or "another character"


def check_of(constraint: Constraint) -> Grammar:
    """What answers are checked by: the grammar over bytes, JSON in any spelling. A few are kept for the process.

    Raises:
        ConstraintError: the constraint cannot be compiled.
    """
    return loosened(constraint).compile(BYTES)


def found_within(constraint: Constraint, grammar: Grammar, answer: str) -> str | None:
    """The only part of an answer that satisfies the constraint, where other text stands around it; else None.

    Looked at are the answer without white space around it, what stands in fences, and of JSON every object and array.
    Where several different parts fit, none is meant for certain.
    """
    candidates = [answer.strip(), *(match[1].strip() for match in _FENCE.finditer(answer))]
    if isinstance(constraint, JsonSchemaConstraint):
        candidates += _json_values(answer)
    fitting = {candidate for candidate in candidates if candidate and _fits(grammar, candidate)}
    return fitting.pop() if len(fitting) == 1 else None


def _fits(grammar: Grammar, text: str) -> bool:
    check = TextCheck(grammar)
    check.feed(text)
    return not check.wrong and check.is_whole()


def _json_values(answer: str) -> Iterator[str]:
    """Objects and arrays in a text, none of them within another."""
    decoder, offset = json.JSONDecoder(parse_int=str, parse_float=str), 0  # numbers of any size; only their end counts
    for _ in range(MAX_CANDIDATES):
        starts = [brace for brace in (answer.find("{", offset), answer.find("[", offset)) if brace >= 0]
        if not starts:
            return
        start = min(starts)
        try:
            _, offset = decoder.raw_decode(answer, start)
        except (ValueError, RecursionError):
            offset = start + 1
            continue
        yield answer[start:offset]
