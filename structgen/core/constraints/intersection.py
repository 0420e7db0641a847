"""What all of some constraints allow, as a constraint: ``a & b``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NoReturn

from structgen.core.compilers import compile_dfa
from structgen.core.constraints.base import Constraint, instruction_of
from structgen.core.constraints.combined import Combination, parts_of
from structgen.core.constraints.parts import compile_together
from structgen.core.engines.captures.capturing import with_captures
from structgen.core.engines.cfg.compiled import compile_grammar
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.flattening import automaton_of, flattened
from structgen.core.grammars.limits import limited
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.grammars.regular_product import Automaton, ProductBounds, ProductTooLarge, product_grammar
from structgen.core.json_schema.prompt_forms import SchemaForm
from structgen.core.regex.dfa import Dfa
from structgen.core.regex.dfa import intersect as both
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, EmptyLanguageError, TooComplexError

BOUNDS = ProductBounds(1 << 18, 1 << 18, 1 << 23)


@dataclass(frozen=True)
class IntersectionConstraint(Combination):
    """A text that all of some constraints allow. Make it with ``a & b`` or ``intersect``. Its value is the first's.

    It is compiled as one grammar: see ``intersect`` for what can be, and for the errors.
    """

    _name = "intersection"

    def _compiled(self, vocabulary: Vocabulary) -> Grammar:
        with limited(_too_much):
            dfa, grammar = _divided([_flat(part, vocabulary) for part in self.parts])
            if grammar is None:
                if dfa.is_empty:
                    _nothing()
                return compile_dfa(dfa, "intersection", f"{len(self.parts)} constraints", vocabulary)
            try:
                product = product_grammar(grammar, Automaton(dfa.transitions, dfa.accepting), BOUNDS)
            except ProductTooLarge as error:
                raise _too_much(f"the grammar of the intersection has too many {error.name}", *error.args) from None
            if not product.rules:
                _nothing()
            return with_captures(compile_grammar(product, vocabulary))

    def parse(self, text: str) -> Any:
        """The value of the first part."""
        return self.parts[0].parse(text)

    def parse_partial(self, text: str) -> Any:
        """The value of the first part, as far as it goes."""
        return self.parts[0].parse_partial(text)

    def instruction(self, form: SchemaForm = "schema") -> str:
        """Says what each part asks for."""
        asked = [text for part in self.parts if (text := instruction_of(part, form))]
        return "\n".join(
            ["Answer with one text that does all of this:", *(f"{i}. {t}" for i, t in enumerate(asked, 1))]
        )


def intersect(*constraints: Constraint | str) -> IntersectionConstraint:
    """What all of some constraints allow: ``a & b``. Strings stand for themselves. The value is the first's.

    One of the constraints may be a grammar with recursion (Lark with the dynamic lexer, GBNF, EBNF); the others are
    regular: expressions, choices, phrases, grammars without recursion, and what unites or joins these.

    Raises:
        ConstraintError: no constraints, or something that is none; when compiled: JSON, tools, contextual Lark and
            special tokens, which are not intersected, and two grammars with recursion, for which it is undecidable.
        EmptyLanguageError: when compiled: no text is allowed by all.
        TooComplexError: when compiled: the grammar of what all allow is too large.
    """
    return IntersectionConstraint(parts_of(IntersectionConstraint, constraints))


def _flat(part: Constraint, vocabulary: Vocabulary) -> ContextFreeGrammar:
    (compiled,) = compile_together([part], vocabulary)
    grammar = flattened(compiled)
    if grammar is None:
        raise ConstraintError(
            f"{type(part).__name__} cannot be intersected: only expressions, choices, phrases and context-free "
            "grammars can (in JSON, say it of a string by `pattern`)"
        )
    if compiled.vocabulary.named:
        raise ConstraintError(f"{type(part).__name__} names special tokens, and cannot be intersected")
    return grammar


def _divided(grammars: Sequence[ContextFreeGrammar]) -> tuple[Dfa, ContextFreeGrammar | None]:
    """The intersection of what is regular, and the one grammar that is not."""
    automata = [None if grammar.captures else automaton_of(grammar) for grammar in grammars]
    others = [grammar for grammar, dfa in zip(grammars, automata, strict=True) if dfa is None]
    regular = [dfa for dfa in automata if dfa is not None]
    if len(others) > 1:
        raise ConstraintError(
            "two grammars with recursion or captures cannot be intersected: whether they have a text in common is "
            "undecidable; at most one part of an intersection may be such a grammar"
        )
    if not regular:
        raise ConstraintError("an intersection needs another constraint beside the grammar")
    return reduce(both, regular), others[0] if others else None


def _too_much(message: str, budget: str, limit: int) -> Exception:
    return TooComplexError(message, budget=budget, limit=limit)


def _nothing() -> NoReturn:
    raise EmptyLanguageError("no text is allowed by all constraints of the intersection")
