"""What all of some grammars allow, as one grammar: any number of regular ones, and one that need not be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, NoReturn

from structgen.core.engines.captures.capturing import names_captures, with_captures
from structgen.core.engines.cfg.compiled import compile_grammar
from structgen.core.engines.cfg.paired import PairedGrammar
from structgen.core.engines.cfg.relations import MAX_STATES
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.inlining import without_ignored
from structgen.core.grammars.limits import limited
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.grammars.region_rules import regions_of
from structgen.core.grammars.regular import automaton_of, regular_grammar
from structgen.core.grammars.regular_product import ByteAutomaton, ProductBounds, ProductTooLarge, product_grammar
from structgen.core.regex.dfa import Dfa, intersect
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, EmptyLanguageError, TooComplexError

BOUNDS = ProductBounds(1 << 18, 1 << 18, 1 << 23)


def compile_intersection(parts: Sequence[Grammar], vocabulary: Vocabulary, names: Sequence[str]) -> Any:
    """The grammar of the texts that all of some grammars have.

    Args:
        parts: the grammars.
        vocabulary: the model's tokens.
        names: of the parts, for messages.

    Raises:
        ConstraintError: a part that is no context-free grammar, or names special tokens; two that are not regular.
        EmptyLanguageError: no text is allowed by all parts.
        TooComplexError: the grammar of what all allow is too large.
    """
    with limited(_too_much):
        dfa, grammar = _divided([_flat(part, name) for part, name in zip(parts, names, strict=True)])
        if dfa.is_empty:
            _nothing()
        if grammar is None:
            return compile_grammar(regular_grammar(dfa, "intersection", f"{len(parts)} constraints"), vocabulary)
        compiled = compile_grammar(grammar, vocabulary)
        if compiled.mark < 0 and len(dfa) <= MAX_STATES:
            return with_captures(PairedGrammar(compiled, dfa))
        try:  # a large automaton may still have a small product
            product = product_grammar(grammar, ByteAutomaton(dfa.transitions, dfa.accepting), BOUNDS)
        except ProductTooLarge as error:
            raise _too_much(f"the grammar of the intersection has too many {error.name}", *error.args) from None
        if not product.rules:
            _nothing()
        return with_captures(compile_grammar(product, vocabulary))


def rules_of(part: Any) -> ContextFreeGrammar | None:
    """The rules of a compiled grammar; None where something in it is read by an engine without rules."""
    form = (part.grammar if names_captures(part) else part).normal_form()  # captures do not need to be embedded
    return None if form is None or form[1] else form[0]


def _flat(part: Any, name: str) -> ContextFreeGrammar:
    form = rules_of(part)
    if form is None:
        raise ConstraintError(
            f"{name} cannot be intersected: only expressions, choices, phrases and context-free grammars can "
            "(of strings in JSON, say it by json_schema(...).with_strings(avoiding(...)), or by `pattern`)"
        )
    if regions_of(form):
        raise ConstraintError(
            f"{name} says of rules how they are written (regions), which an intersection does not keep"
        )
    if part.vocabulary.named:
        raise ConstraintError(f"{name} names special tokens, and cannot be intersected")
    return form


def _divided(grammars: Sequence[ContextFreeGrammar]) -> tuple[Dfa, ContextFreeGrammar | None]:
    """The intersection of what is regular, and the one grammar that is not."""
    automata = [None if grammar.captures else automaton_of(without_ignored(grammar)) for grammar in grammars]
    others = [grammar for grammar, dfa in zip(grammars, automata, strict=True) if dfa is None]
    regular = [dfa for dfa in automata if dfa is not None]
    if len(others) > 1:
        raise ConstraintError(
            "two grammars with recursion or captures cannot be intersected: whether they have a text in common is "
            "undecidable; at most one part of an intersection may be such a grammar"
        )
    if not regular:
        raise ConstraintError("an intersection needs another constraint with the grammar")
    return reduce(intersect, regular), others[0] if others else None


def _too_much(message: str, budget: str, limit: int) -> Exception:
    return TooComplexError(message, budget=budget, limit=limit)


def _nothing() -> NoReturn:
    raise EmptyLanguageError("no text is allowed by all constraints of the intersection")
