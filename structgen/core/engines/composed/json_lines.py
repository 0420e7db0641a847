"""JSON lines: one JSON value a line."""

from __future__ import annotations

from structgen.core.engines.cfg.compiled import CfgGrammar
from structgen.core.engines.composed.grammar import ComposedGrammar, embed
from structgen.core.engines.composed.tags import check_counts
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.grammars.regular import word_dfa
from structgen.core.regex.dfa import empty
from structgen.errors import OptionsError
from structgen.options import JsonOptions


def embed_lines(item: Grammar, min_lines: int, max_lines: int | None) -> ComposedGrammar | CfgGrammar:
    """Texts of a grammar that has no line feeds, with one between them, and perhaps after the last."""
    terminals = (Terminal("VALUE", empty()), Terminal("LINE FEED", word_dfa("\n")))
    # Nonterminal 2n: n values, at the start of a line; 2n + 1: n + 1 values, at the end of one.
    last = min_lines if max_lines is None else max_lines
    rules = [Rule(2 * n, ()) for n in range(min_lines, last + 1)]
    for n in range(last + (max_lines is None)):
        after = 2 * min(n + 1, last)
        rules += [Rule(2 * n, (~0, 2 * n + 1)), Rule(2 * n + 1, (~1, after))]
        if n + 1 >= min_lines:
            rules.append(Rule(2 * n + 1, ()))
    names = tuple(f"{place}{n}" for n in range(last + 1) for place in ("line", "end"))
    grammar = ContextFreeGrammar(terminals, names, tuple(rules), 0)
    return embed(grammar, {0: item})


def check_lines(min_lines: int, max_lines: int | None, options: JsonOptions) -> None:
    """Raise OptionsError where lines cannot be written so."""
    check_counts("lines", min_lines, max_lines)
    if options.whitespace not in ("single", "compact"):
        raise OptionsError(
            f"JSON lines need JsonOptions.whitespace 'single' or 'compact', not {options.whitespace!r}: a line feed "
            "inside a value would end its line"
        )
