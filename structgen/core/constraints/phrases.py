"""Text that must, or must not, hold phrases, as a constraint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from structgen.core.compilers import compile_dfa
from structgen.core.constraints.text import TextConstraint
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.phrases import phrase_dfa
from structgen.core.json_schema.keyword import X_STRUCTGEN
from structgen.core.json_schema.phrases import POINTERS, STRINGS
from structgen.core.text_sets.phrases import MODES, PhraseSearch, search_for
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import OptionsError, TooComplexError

_ASKED = {
    "all": "that has each of these phrases in it",
    "any": "that has one of these phrases in it",
    "ordered": "that has these phrases in it, in this order",
    "none": "that has none of these phrases in it",
}


@dataclass(frozen=True)
class PhraseConstraint(TextConstraint):
    """Text that must, or must not, hold phrases. Make one with ``including`` or ``avoiding``."""

    search: PhraseSearch

    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        try:
            dfa = phrase_dfa(self.search)
        except TooComplexError as error:
            if self.search.mode == "all":
                error.add_note('With mode="all" each set of phrases that were seen is a state; "any" needs fewer.')
            raise
        return compile_dfa(dfa, "phrases", f"{self.search.mode} of {len(self.search.phrases)} phrases", vocabulary)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Of a type that is annotated with it (pydantic): its strings are checked."""
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        described = dict(handler(schema))
        words = described.get(X_STRUCTGEN, {})
        condition = {**self.search.keyword(), POINTERS: [""]}
        return {**described, X_STRUCTGEN: {**words, STRINGS: [*words.get(STRINGS, ()), condition]}}

    def _checked(self, text: Any) -> Any:
        if isinstance(text, str) and not self.search.holds(text):
            raise ValueError(f"expected a text {_ASKED[self.search.mode]}: {', '.join(self.search.phrases):.100}")
        return text

    def instruction(self) -> str:
        """Asks for such a text and lists the phrases."""
        at_most = self.search.at_most
        counted = "" if at_most is None else f" (altogether {at_most} times at most)"
        return f"Write a text {_ASKED[self.search.mode]}{counted}:\n" + "\n".join(self.search.phrases)


def including(
    phrases: str | Iterable[str],
    mode: Literal["all", "any", "ordered"] = "all",
    at_most: int | None = None,
    *,
    words: bool = False,
    ignore_case: bool = False,
) -> PhraseConstraint:
    """Any text that holds phrases. Other constraints take it by ``intersect`` or ``&``, strings of JSON by
    ``json_schema(...).with_strings(...)`` or, in a type, ``Annotated[str, including(...)]``.

    The text counts, not how it is cut into tokens. Occurrences may overlap.

    Args:
        phrases: texts of one character at least.
        mode: "all": each occurs; "any": one of them does; "ordered": each occurs, and ends after the one before it
            has ended.
        at_most: so many occurrences of all phrases together may there be; None: any number.
        words: whether only occurrences count that no word character (``\\w``) touches.
        ignore_case: whether case is ignored, as ``re.IGNORECASE`` does.

    Raises:
        ConstraintError: no phrases, an empty one, or something that is no text.
        OptionsError: another mode; ``at_most`` is no count, or fewer than must occur.
    """
    if mode not in MODES:
        raise OptionsError(f"mode must be 'all', 'any' or 'ordered', not {mode!r}", option="mode", value=mode)
    return PhraseConstraint(search_for(phrases, mode, at_most, words, ignore_case))


def avoiding(phrases: str | Iterable[str], *, words: bool = False, ignore_case: bool = False) -> PhraseConstraint:
    """Any text that holds none of some phrases; see ``including``."""
    return PhraseConstraint(search_for(phrases, "none", None, words, ignore_case))
