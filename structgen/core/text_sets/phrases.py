"""Which phrases a text must hold, or must not. Their automata: `structgen.core.grammars.phrases`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal

from structgen.core.text_sets.encoding import encoded
from structgen.errors import ConstraintError, OptionsError
from structgen.options import check_count, refuse_name

PhraseMode = Literal["all", "any", "ordered", "none"]
MODES = ("all", "any", "ordered")
INCLUDING, AVOIDING = "including", "avoiding"
COUNTS, NOT_ASKED = ("at_most", "words", "ignore_case"), (None, False, False)
FIRST_MODE: dict[str, PhraseMode] = {INCLUDING: "all", AVOIDING: "none"}
FIELDS = {INCLUDING: ("phrases", "mode", *COUNTS), AVOIDING: ("phrases", "words", "ignore_case")}
"""What a schema may say of phrases, by word."""


@dataclass(frozen=True)
class PhraseSearch:
    """Which phrases are looked for, and what of them.

    Attributes:
        phrases: texts of one character at least.
        mode: what a text must hold: "all" of them, "any", all in the "ordered" sequence (each ends after the one
            before it has ended), or "none".
        at_most: so many occurrences in all; None: any number.
        words: only occurrences with no word character (``\\w``) right before and after them count.
        ignore_case: case is ignored as ``re.IGNORECASE`` does.
    """

    phrases: tuple[str, ...]
    mode: PhraseMode = "all"
    at_most: int | None = None
    words: bool = False
    ignore_case: bool = False

    def holds(self, text: str) -> bool:
        """Whether a text is as the search wants it. Linear in the text, for each phrase."""
        ends = self._ends(text)
        seen = {number for _, number in ends}
        if self.at_most is not None and len(ends) > self.at_most:
            return False
        if self.mode == "ordered":
            reached = 0
            for _, together in groupby(ends, itemgetter(0)):
                reached += reached in {number for _, number in together}
            return reached == len(self.phrases)
        return {"all": len(seen) == len(self.phrases), "any": bool(seen), "none": not seen}[self.mode]

    def _ends(self, text: str) -> list[tuple[int, int]]:
        """Where an occurrence ends, and of which phrase, ascending."""
        before, after = (r"(?<!\w)", r"(?!\w)") if self.words else ("", "")
        flags = re.IGNORECASE if self.ignore_case else 0
        return sorted(
            (match.start() + len(phrase), number)
            for number, phrase in enumerate(self.phrases)
            for match in re.finditer(f"{before}(?={re.escape(phrase)}{after})", text, flags)
        )

    def keyword(self) -> dict[str, Any]:
        """What a schema's ``x-structgen`` says of it; `search_of` reads it."""
        terms: dict[str, Any] = {"phrases": list(self.phrases)}
        if self.mode in ("any", "ordered"):
            terms["mode"] = self.mode
        terms |= {name: value for name in COUNTS if (value := getattr(self, name))}
        word = AVOIDING if self.mode == "none" else INCLUDING
        return {word: terms if len(terms) > 1 else terms["phrases"]}


def search_for(
    phrases: str | Iterable[str],
    mode: PhraseMode,
    at_most: int | None = None,
    words: bool = False,
    ignore_case: bool = False,
) -> PhraseSearch:
    """The search, whose fields are checked.

    Raises:
        ConstraintError: no phrases, an empty one, or something that is no text.
        OptionsError: another mode; ``at_most`` is no count; what is no truth value.
    """
    texts = [phrases] if isinstance(phrases, str) else list(phrases) if isinstance(phrases, Iterable) else [phrases]
    if not texts:
        raise ConstraintError("at least one phrase is needed")
    for text in texts:
        if not isinstance(text, str) or not text:
            raise ConstraintError(f"a phrase is a text of one character at least, not {text!r:.100}")
        encoded(text, f"the phrase {text!r:.100}")
    if mode != "none" and mode not in MODES:
        raise OptionsError(f"mode must be 'all', 'any' or 'ordered', not {mode!r}", option="mode", value=mode)
    check_count("at_most", at_most, optional=True)
    for name, value in (("words", words), ("ignore_case", ignore_case)):
        if not isinstance(value, bool):
            raise OptionsError(f"{name} must be True or False, not {value!r:.100}", option=name, value=value)
    distinct = tuple(texts) if mode == "ordered" else tuple(dict.fromkeys(texts))
    return PhraseSearch(distinct, mode, at_most, words, ignore_case)


def search_of(word: str, given: Any) -> PhraseSearch:
    """What `PhraseSearch.keyword` says: under INCLUDING or AVOIDING phrases, or a mapping of the fields.

    Raises:
        ConstraintError, OptionsError: as `search_for`; another field.
    """
    terms = given if isinstance(given, Mapping) else {"phrases": given}
    names = FIELDS[word]
    for name in terms:
        if name not in names:
            refuse_name(name, names)
    return search_for(terms.get("phrases", ()), terms.get("mode", FIRST_MODE[word]), *map(terms.get, COUNTS, NOT_ASKED))
