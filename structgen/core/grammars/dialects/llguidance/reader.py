"""Grammars as llguidance writes them, in normal form."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from structgen.core.grammars.captured import Captured, capture_symbols
from structgen.core.grammars.dialects.llguidance.endings import with_endings
from structgen.core.grammars.dialects.llguidance.ignoring import with_ignored
from structgen.core.grammars.dialects.llguidance.laziness import with_laziness
from structgen.core.grammars.dialects.llguidance.parser import parse_grammar
from structgen.core.grammars.dialects.llguidance.rules import RuleWriter
from structgen.core.grammars.dialects.llguidance.syntax import Scope
from structgen.core.grammars.dialects.llguidance.tokens import GrammarText
from structgen.core.grammars.embedded_schema import EmbeddedSchema
from structgen.core.grammars.limits import check_text, limited, load_text
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.errors import ConstraintError, GrammarError
from structgen.options import JsonOptions, checked_options


@dataclass(frozen=True)
class LLGuidanceGrammar:
    """A grammar as read.

    Attributes:
        grammar: the normal form; its captures are those of ``capture`` and ``stop_capture``.
        embedded: JSON Schemas of ``%json {...}``, by terminal number.
        references: names of other grammars, ``@name``, by terminal number.
        warnings: rules that the start rule does not reach, and what says nothing.
        text: the grammar's text.
    """

    grammar: ContextFreeGrammar
    embedded: dict[int, EmbeddedSchema] = field(default_factory=dict)
    references: dict[int, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    text: str = ""


def read_llguidance(
    source: str | Path,
    start: str = "start",
    json_options: JsonOptions | None = None,
    grammars: Mapping[str, str] | None = None,
    outside: Collection[str] = (),
    regions: Captured = (),
) -> LLGuidanceGrammar:
    """Read a grammar in Lark's language as llguidance has it.

    Args:
        source: the grammar's text (any string), or the path of a file (``Path``).
        start: the rule that texts must match.
        json_options: how JSON of ``%json`` may be spelled; its key ``x-structgen`` changes single options.
        grammars: texts of other grammars that ``@name`` refers to, by name; each begins with its rule ``start``.
        outside: names of grammars that something else reads.
        regions: rules, and how their texts are written, besides what the grammar says.

    Raises:
        GrammarError: not a legal grammar, or not a supported one (line, column and a caret).
        ConstraintError: the file cannot be read.
        OptionsError: ``regions`` names what is no rule, or none that is used.
    """
    text = load_text(source)[0]
    root, options = GrammarText(text), checked_options(json_options)
    check_text(text)
    with limited(root.refusal(0)):
        others = {name: _other(name, given, options) for name, given in (grammars or {}).items()}
        scope = parse_grammar(root, options)
        writer = RuleWriter(others, outside)
        writer.write(scope, start)
        capture_symbols(
            regions, dict.fromkeys(writer.used(scope), 0), {}, dict.fromkeys(scope.rules, f"{start!r} never uses")
        )
        for name, region in regions:
            writer.note(scope, name, region)
        draft = writer.draft
        first = with_ignored(draft, with_laziness(draft, 0, text))
        with_endings(draft)
    used = writer.used(scope)
    unused = [
        f"rule {name!r} is never used (line {root.position(definition.offset).line})"
        for name, definition in scope.rules.items()
        if name not in used
    ]
    written = {rule.lhs for rule in draft.rules}
    captures = tuple(capture for capture in draft.captures if capture[0] in written)
    grammar = ContextFreeGrammar(
        tuple(draft.terminals), tuple(draft.nonterminals), tuple(draft.rules), first, captures=captures
    )
    return LLGuidanceGrammar(grammar, draft.embedded, draft.references, (*unused, *writer.warnings), text)


def _other(name: str, text: str, options: JsonOptions) -> Scope:
    if not isinstance(text, str):
        raise ConstraintError(f"the grammar {name!r} is text, not {type(text).__name__}")
    check_text(text)
    try:
        return parse_grammar(GrammarText(text), options)
    except GrammarError as error:
        error.add_note(f"The grammar is that of @{name}.")
        raise
