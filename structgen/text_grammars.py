"""Text constraints compiled for a vocabulary: Lark grammars, GBNF, regular expressions, choices."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from structgen.automata.dfa import Dfa, difference, from_strings
from structgen.automata.pattern import full_match_dfa
from structgen.errors import ConstraintError, EmptyLanguageError, GrammarError
from structgen.grammar.gbnf import read_gbnf
from structgen.grammar.lark_reader import read_lark
from structgen.grammar.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.grammar.python_regex import python_regex_dfa
from structgen.grammar_machine.compiled import CfgGrammar, compile_grammar
from structgen.vocabulary.vocabulary import Vocabulary

Lexer = Literal["dynamic"]
Syntax = Literal["python", "ecma"]


def compile_lark(
    source: str | Path, vocabulary: Vocabulary, *, start: str = "start", lexer: Lexer = "dynamic"
) -> CfgGrammar:
    """Compile a Lark grammar.

    Args:
        source: the grammar's text, or a path to it.
        vocabulary: the model's tokens.
        start: the rule that texts must match.
        lexer: "dynamic": the whole context-free language, as Lark's Earley parser with ``lexer="dynamic_complete"``
            reads it: every split of the text into terminals counts.

    Raises:
        GrammarError: not a legal grammar, or one that cannot be enforced (line, column and a caret).
        EmptyLanguageError: no text matches.
    """
    if lexer != "dynamic":
        raise ConstraintError(f"lexer is {lexer!r}; expected 'dynamic'")
    found = read_lark(source, start)
    if found.embedded:
        raise GrammarError("%json inside a grammar is not supported yet")
    return compile_grammar(found.grammar, vocabulary)


def compile_gbnf(text: str, vocabulary: Vocabulary, *, start: str = "root") -> CfgGrammar:
    """Compile a grammar in GBNF, the notation of llama.cpp. Errors as `compile_lark`."""
    return compile_grammar(read_gbnf(text, start), vocabulary)


def compile_regex(pattern: str, vocabulary: Vocabulary, *, syntax: Syntax = "python") -> CfgGrammar:
    """Compile a regular expression that the whole text must match.

    Args:
        pattern: the expression.
        vocabulary: the model's tokens.
        syntax: "python": as ``re.fullmatch`` reads it; "ecma": ECMA-262 with Unicode semantics.

    Raises:
        PatternError: not legal, or not regular (backreferences).
        EmptyLanguageError: no text matches.
    """
    if syntax not in ("python", "ecma"):
        raise ConstraintError(f"syntax is {syntax!r}; expected 'python' or 'ecma'")
    dfa = python_regex_dfa(pattern) if syntax == "python" else full_match_dfa(pattern)
    return compile_grammar(regular(dfa, pattern), vocabulary)


def compile_choice(options: Sequence[str], vocabulary: Vocabulary) -> CfgGrammar:
    """Compile a choice: the text is one of ``options``.

    Raises:
        ConstraintError: no options, or a string given in place of a list of them.
    """
    if isinstance(options, str) or not options or not all(isinstance(option, str) for option in options):
        raise ConstraintError(f"a choice needs a list of strings, not {options!r:.100}")
    return compile_grammar(regular(from_strings(options, max_states=1 << 24), "choice"), vocabulary)


def regular(dfa: Dfa, source: str) -> ContextFreeGrammar:
    """The grammar of a regular language: one terminal, and the empty text if that is in it."""
    if dfa.is_empty:
        raise EmptyLanguageError(f"no text matches {source!r:.200}")
    rules = []
    if dfa.accepting[0]:
        rules.append(Rule(0, ()))
        dfa = difference(dfa, from_strings([""]))
    if not dfa.is_empty:
        rules.append(Rule(0, (~0,)))
        return ContextFreeGrammar((Terminal("TEXT", dfa, source),), ("start",), tuple(rules), 0)
    return ContextFreeGrammar((), ("start",), tuple(rules), 0)
