"""What there is to say about a constraint that works: words of schemas that look misspelt, tools that were left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from structgen.core.constraints.tools import ToolCalls
from structgen.core.engines.protocols import Grammar
from structgen.core.json_schema.report import Entry, Report
from structgen.core.tool_calls.arguments import members_of


def remarks(constraint: Any, grammar: Grammar | None) -> list[str]:
    """Remarks on a constraint, its parts among them, a sentence each; ``grammar`` is its compiled form."""
    sentences, named = [], set()
    for calls in _calls(constraint):
        sentences += [f"the tool {tool.name!r} is left out: {tool.reason}" for tool in calls.skipped]
        for tool in calls.calls.tools:
            for entry in members_of(tool, calls.calls.options_of(tool)).lowered.misspelt.values():
                named.add(id(entry))
                sentences.append(f"the tool {tool.name!r}, at {tool.pointer}{entry.pointer}: {entry.reason}")
    schemas = [words for words in _misspelt(grammar) if not named.intersection(map(id, words))]
    words = [f"the schema, at {entry.pointer or 'its root'}: {entry.reason}" for schema in schemas for entry in schema]
    return list(dict.fromkeys([*sentences, *words]))


def _calls(constraint: Any) -> Iterator[ToolCalls]:
    if isinstance(constraint, ToolCalls):
        yield constraint
    elif is_dataclass(constraint):
        for field in fields(constraint):
            part = getattr(constraint, field.name)
            for inner in part if isinstance(part, tuple) else (part,):
                if hasattr(inner, "compile"):
                    yield from _calls(inner)


def _misspelt(grammar: Any) -> Iterator[Sequence[Entry]]:
    """Of each schema in a grammar, the words that look misspelt."""
    yield getattr(grammar, "misspelt", ())
    for content in getattr(grammar, "contents", {}).values():
        yield from _misspelt(content.grammar)


def reports_of(grammar: Any) -> Iterator[Report]:
    """Of each schema in a grammar, what of it is enforced."""
    report = getattr(grammar, "report", None)
    if report is not None:
        yield report
    for content in getattr(grammar, "contents", {}).values():
        yield from reports_of(content.grammar)
