"""JSON lines: one JSON value a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from structgen.automata.dfa import empty
from structgen.engines.composed.grammar import ComposedGrammar, embed
from structgen.engines.composed.tag_dispatch import check_counts
from structgen.engines.json.compiled import compile_json_schema
from structgen.errors import OptionsError
from structgen.grammar.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.grammar.regular import word_dfa
from structgen.options import JsonOptions
from structgen.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from referencing import Registry


def compile_json_lines(
    schema: Any,
    vocabulary: Vocabulary,
    *,
    min_lines: int = 0,
    max_lines: int | None = None,
    options: JsonOptions | None = None,
    registry: Registry[Any] | None = None,
) -> ComposedGrammar:
    """Compile JSON lines (jsonlines.org): values of a schema with a line feed between them, and perhaps after the last.

    Args:
        schema: of each value, as `compile_json_schema` takes it.
        vocabulary: the model's tokens.
        min_lines: values that there must be.
        max_lines: values that there may be; None: any number.
        options: how the JSON may be spelled; ``whitespace`` must be "single" or "compact", which have no line feeds.
        registry: other documents that the schema refers to.

    Raises:
        SchemaError: the schema cannot be used.
        OptionsError: counts that cannot be met, or whitespace with line feeds.
    """
    options = options or JsonOptions()
    check_lines(min_lines, max_lines, options)
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
    return embed(grammar, {0: compile_json_schema(schema, vocabulary, options, registry)}, vocabulary)


def check_lines(min_lines: int, max_lines: int | None, options: JsonOptions) -> None:
    """Raise OptionsError where lines cannot be written so."""
    check_counts("lines", min_lines, max_lines)
    if options.whitespace not in ("single", "compact"):
        raise OptionsError(
            f"JSON lines need JsonOptions.whitespace 'single' or 'compact', not {options.whitespace!r}: a line feed "
            "inside a value would end its line"
        )
