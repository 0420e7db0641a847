"""Compilers: from what a user writes (a schema, a grammar, an expression, tags) to the engine that runs it.

The only place that knows all engines. Each compiler gives a `structgen.core.engines.protocols.Grammar`. What reads a
language is loaded when a text in it comes.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Never, Protocol, TypeAlias, runtime_checkable

import numpy as np

from structgen.core.engines.captures.capturing import CapturingGrammar, capturing, with_captures
from structgen.core.engines.cfg.compiled import CfgGrammar, compile_grammar
from structgen.core.engines.cfg.intersection import compile_intersection
from structgen.core.engines.composed.grammar import ComposedGrammar, embed
from structgen.core.engines.composed.monitored import MonitoredTerminal
from structgen.core.engines.composed.tag_dispatch import compile_tag_dispatch as _compile_tag_dispatch
from structgen.core.engines.composed.tags import check_lines, embed_lines
from structgen.core.engines.json.compiled import check_arguments, compile_json_schema
from structgen.core.engines.protocols import Grammar
from structgen.core.engines.sorted.grammar import SortedGrammar, compile_sorted
from structgen.core.grammars.captured import Captured, CapturesOption, checked_captures
from structgen.core.grammars.embedded_schema import EmbeddedSchema
from structgen.core.grammars.lark_options import refuse_lark_options, refuse_lexer
from structgen.core.grammars.limits import MAX_STATES, limited, load_text, named_file
from structgen.core.grammars.regular import regular_grammar
from structgen.core.grammars.token_terminals import resolved
from structgen.core.monitors.protocol import TerminalMonitor
from structgen.core.regex.dfa import Dfa, from_strings
from structgen.core.regex.pattern import full_match_dfa
from structgen.core.text_sets.corpus import Corpus
from structgen.core.text_sets.names import NameSet
from structgen.core.vocabulary.vocabulary import Vocabulary, check_vocabulary
from structgen.errors import (
    ConstraintError,
    EmptyLanguageError,
    GrammarWarning,
    OptionsError,
    PatternTooComplexError,
    SchemaError,
)
from structgen.options import JsonOptions, check_count
from structgen.progress import waiting

if TYPE_CHECKING:
    from referencing import Registry

    from structgen.core.engines.lalr.compiled import LalrGrammar
    from structgen.core.grammars.gbnf import GbnfDialect

__all__ = [
    "LarkDialect",
    "Syntax",
    "check_arguments",
    "compile_choice",
    "compile_gbnf",
    "compile_intersection",
    "compile_json_lines",
    "compile_json_schema",
    "compile_lark",
    "compile_lark_source",
    "compile_names",
    "compile_naming",
    "compile_quotes",
    "compile_regex",
    "compile_tag_dispatch",
]

Syntax = Literal["python", "ecma"]
LarkDialect = Literal["lark", "llguidance"]
LEXERS = ("dynamic", "contextual")
SORTED_FROM = 1_000
"""Options of a choice from which they are a sorted table, and no automaton."""
WHOLE_TOKENS_TO = 100_000
"""Bytes of names up to which an automaton reads them where a vocabulary does not spell each by itself."""
LARK_OPTIONS = ("start", "lexer", "json_options", "captures", "dialect", "grammars", "terminals")
"""What `compile_lark`, and the constraint of Lark grammars, can be given beside the grammar."""


@runtime_checkable
class Compilable(Protocol):
    """A constraint, as the package ``constraints`` has them."""

    def compile(self, vocabulary: Vocabulary) -> Grammar:
        """The compiled form over a vocabulary."""
        ...


Terminals: TypeAlias = "Mapping[str, NameSet | Corpus | TerminalMonitor | Compilable | Grammar]"
"""Terminals of a grammar whose texts are given with it, by name."""


def compile_lark(
    source: str | Path,
    vocabulary: Vocabulary,
    start: str = "start",
    lexer: str = "dynamic",
    *,
    json_options: JsonOptions | None = None,
    captures: CapturesOption = (),
    dialect: LarkDialect = "lark",
    grammars: Mapping[str, str | Grammar | Compilable] | None = None,
    terminals: Terminals | None = None,
    **unknown: Never,
) -> CfgGrammar | LalrGrammar | ComposedGrammar | CapturingGrammar[Any]:
    """Compile a grammar in Lark's language, with ``%json {schema}`` for a JSON value of a schema, and special tokens
    as ``<name>``, ``<[7]>``, ``<[3,5-9]>`` or ``<[^3]>``.

    Args:
        source: the grammar's text, or a path to it (``Path``, or a string of one line that ends in ``.lark``).
        vocabulary: the model's tokens.
        start: the rule that outputs must match.
        lexer: "dynamic": the context-free language; every split of the text into terminals counts, as with Lark's
            Earley parser and its lexer ``dynamic_complete``. "contextual": exactly what Lark's LALR parser accepts
            with its contextual lexer, which takes the first match and no other; with an indenter if the grammar
            declares ``_INDENT`` and ``_DEDENT`` (as Lark's ``PythonIndenter``).
        json_options: how the JSON of ``%json`` may be spelled. The key ``x-structgen`` of a schema there changes single
            options: ``%json {"x-structgen": {"whitespace": "compact"}, ...}``.
        captures: rules and terminals whose texts `Matcher.captures` names, or these with the names.
        dialect: "lark", or "llguidance": as llguidance writes it (docs/grammars.md); the package lark is not needed.
        grammars: in the dialect "llguidance", what ``@name`` refers to: texts of grammars, compiled ones, constraints.
        terminals: in the dialect "lark", what terminals that the grammar declares (``%declare QUOTE``) stand for: a
            `NameSet`, a `Corpus`, a constraint, a compiled grammar, a `TerminalMonitor`.
        **unknown: none; of options that only Lark has, the error says what they are here.

    Raises:
        GrammarError: not a legal grammar, not LALR(1) where it must be, or one that needs a callback (line, column
            and a caret).
        EmptyLanguageError: no text is in the language.
        SchemaError: a schema after ``%json`` cannot be used.
        ConstraintError: the package lark is missing, or the file cannot be read.
        OptionsError: another option, ``lexer`` or ``dialect``; ``json_options`` for "contextual", which has no
            ``%json``, or ``captures``; ``grammars`` in the dialect "lark", ``captures`` in another; ``captures`` names
            what is no rule or terminal, or none that is used.

    Warns:
        GrammarWarning: rules that are never used.
    """
    if unknown:
        refuse_lark_options(unknown, LARK_OPTIONS)
    return compile_lark_source(
        named_file(source),
        vocabulary,
        start,
        lexer,
        json_options=json_options,
        captures=captures,
        dialect=dialect,
        grammars=grammars,
        terminals=terminals,
    )


@waiting("compiling the grammar")
def compile_lark_source(
    source: str | Path,
    vocabulary: Vocabulary,
    start: str = "start",
    lexer: str = "dynamic",
    *,
    json_options: JsonOptions | None = None,
    captures: CapturesOption = (),
    dialect: LarkDialect = "lark",
    grammars: Mapping[str, str | Grammar | Compilable] | None = None,
    terminals: Terminals | None = None,
) -> CfgGrammar | LalrGrammar | ComposedGrammar | CapturingGrammar[Any]:
    """As `compile_lark`, but a string is always text: it may be a stranger's, and names no file."""
    if lexer not in LEXERS:
        refuse_lexer(lexer)
    if terminals and (dialect != "lark" or lexer != "dynamic"):
        raise OptionsError("terminals are for the dialect 'lark' and lexer='dynamic'", option="terminals")
    if dialect == "llguidance":
        if lexer != "dynamic":
            raise OptionsError(f"the dialect 'llguidance' is for lexer='dynamic', not {lexer!r}")
        regions = checked_captures(captures)
        if any(isinstance(name, str) for _, name in regions):
            raise OptionsError("captures are named in the grammar in the dialect 'llguidance': name[capture]: ...")
        return with_captures(_compile_llguidance(source, vocabulary, start, json_options, grammars or {}, regions))
    if dialect != "lark" or grammars:
        wrong = "grammars are for the dialect 'llguidance'" if dialect == "lark" else f"not {dialect!r}"
        raise OptionsError(f"dialect must be 'lark' or 'llguidance'; {wrong}", option="dialect", value=dialect)
    if lexer == "contextual":
        from structgen.core.engines.lalr.compiled import compile_contextual  # its kernel is loaded where it is used

        if json_options is not None:
            raise OptionsError("json_options are for %json, which lexer='contextual' does not have")
        if checked_captures(captures):
            raise OptionsError(
                "captures need lexer='dynamic': what Lark's LALR parser takes does not show in the rules alone, "
                "but in its lexer; parse the output with Lark itself"
            )
        return compile_contextual(source, vocabulary, start)
    from structgen.core.grammars.lark_reader import read_lark

    captured, given = checked_captures(captures), terminals or {}
    read = read_lark(source, start, json_options=json_options, captures=captured, given=given)
    for warning in read.warnings:
        warnings.warn(warning, GrammarWarning, stacklevel=4)
    grammar, naming = resolved(read.grammar, vocabulary, read.text)
    contents = _schemas(read.embedded, vocabulary, naming) | _given(read.references, given, vocabulary, naming)
    return with_captures(embed(grammar, contents, naming))


def _given(
    references: Mapping[int, str], terminals: Terminals, vocabulary: Vocabulary, naming: Vocabulary
) -> dict[int, Grammar]:
    """What reads the terminals that are given, by number.

    Raises:
        OptionsError: one that the grammar does not use, or something that is no such thing.
    """
    unused = sorted(terminals.keys() - set(references.values()))
    if unused:
        raise OptionsError(
            f"the grammar does not use {unused[0]!r}: no rule has it, or the grammar defines it itself; use it in a "
            f"rule (a Lark grammar declares it: %declare {unused[0]})",
            option="terminals", value=unused[0],
        )  # fmt: skip
    compiled = {name: _content(name, given, vocabulary.within(naming)) for name, given in terminals.items()}
    return {number: compiled[name] for number, name in references.items()}


def _content(name: str, given: Any, vocabulary: Vocabulary) -> Grammar:
    if isinstance(given, NameSet):
        return compile_names(given, vocabulary)
    if isinstance(given, Corpus):
        return compile_quotes(given, vocabulary)
    if isinstance(given, Compilable):
        return given.compile(vocabulary)
    if isinstance(given, TerminalMonitor):
        if not isinstance(given.names, NameSet):
            raise OptionsError(
                f"the names of the monitor {name!r} are {given.names!r:.100}; expected a NameSet: NameSet.build(...)",
                option="terminals", value=given,
            )  # fmt: skip
        return MonitoredTerminal(given, vocabulary, compile_names)
    if hasattr(given, "matcher"):
        return given
    raise OptionsError(
        f"the terminal {name!r} is given as {given!r:.100}; expected a NameSet, a Corpus, a monitor of a terminal, "
        "a constraint or a grammar",
        option="terminals", value=given,
    )  # fmt: skip


def _compile_llguidance(
    source: str | Path,
    vocabulary: Vocabulary,
    start: str,
    json_options: JsonOptions | None,
    grammars: Mapping[str, str | Grammar | Compilable],
    regions: Captured,
) -> CfgGrammar | ComposedGrammar:
    """See `compile_lark`."""
    from structgen.core.grammars.dialects.llguidance.reader import read_llguidance

    texts = {name: given for name, given in grammars.items() if isinstance(given, str)}
    others = {name: given for name, given in grammars.items() if not isinstance(given, str)}
    read = read_llguidance(source, start, json_options, texts, others, regions)
    for warning in read.warnings:
        warnings.warn(warning, GrammarWarning, stacklevel=5)
    grammar, naming = resolved(read.grammar, vocabulary, read.text)
    contents = _schemas(read.embedded, vocabulary, naming)
    for terminal, name in read.references.items():
        other = others[name]
        contents[terminal] = other.compile(vocabulary.within(naming)) if isinstance(other, Compilable) else other
    return embed(grammar, contents, naming)


@waiting("compiling the grammar")
def compile_gbnf(
    source: str | Path,
    vocabulary: Vocabulary,
    start: str = "root",
    *,
    max_repetitions: int | None = None,
    captures: CapturesOption = (),
    dialect: GbnfDialect = "llama.cpp",
    terminals: Terminals | None = None,
) -> CfgGrammar | ComposedGrammar | CapturingGrammar[Any]:
    """Compile a grammar in GBNF, the notation of llama.cpp (text, or a ``Path`` to it), with special tokens as
    ``<name>``, ``<[7]>``, ``!<name>``, ``!<[7]>``; or in XGrammar's EBNF.

    Args:
        source: the grammar.
        vocabulary: the model's tokens.
        start: the rule that outputs must match.
        max_repetitions: the largest number that ``{n,m}`` may have; None: 2,000 in llama.cpp, as there, and as many as
            32 bits can say in XGrammar.
        captures: rules whose texts `Matcher.captures` names, or these with the names.
        dialect: "llama.cpp" or "xgrammar".
        terminals: what names that no rule defines stand for, see `compile_lark`.

    Raises:
        GrammarError: not a legal grammar (line, column and a caret).
        EmptyLanguageError: no text is in the language.
        ConstraintError: the file cannot be read.
        OptionsError: ``max_repetitions`` is no count; another ``dialect``; ``captures`` names what is no rule, or none
            that is used.
    """
    from structgen.core.grammars.gbnf import MAX_REPEAT, read_gbnf_with

    if dialect not in MAX_REPEAT:
        raise OptionsError(
            f"dialect must be 'llama.cpp' or 'xgrammar', not {dialect!r}", option="dialect", value=dialect
        )
    if max_repetitions is not None:
        check_count("max_repetitions", max_repetitions, 0)
    text = load_text(source)[0]
    captured, given = checked_captures(captures), terminals or {}
    read, references = read_gbnf_with(text, start, max_repetitions, dialect=dialect, captures=captured, given=given)
    grammar, naming = resolved(read, vocabulary, text)
    contents = _given(references, given, vocabulary, naming)
    return with_captures(embed(grammar, contents, naming))


@waiting("compiling the grammar")
def compile_naming(
    kind: Literal["text", "regex", "llama.cpp", "xgrammar"],
    source: str,
    names: frozenset[str],
    vocabulary: Vocabulary,
    captures: Captured = (),
) -> CfgGrammar | ComposedGrammar | CapturingGrammar[Any]:
    """Compile a text, an expression (of Python), or a grammar in GBNF or XGrammar's EBNF whose literals name special
    tokens: where one of ``names`` is spelled, the token is meant.

    Raises:
        ConstraintError: as `compile_regex` and `compile_gbnf`; or the vocabulary has no token of a name.
    """
    from structgen.core.grammars.gbnf import read_gbnf
    from structgen.core.grammars.named_tokens import regex_by_token, text_by_token

    if kind in ("llama.cpp", "xgrammar"):
        dialect: GbnfDialect = "xgrammar" if kind == "xgrammar" else "llama.cpp"
        read = read_gbnf(source, dialect=dialect, names=names, captures=captures)
        rules, naming = resolved(read, vocabulary, source)
        return with_captures(embed(rules, {}, naming))
    if kind == "text":
        return compile_grammar(*resolved(text_by_token(source, names), vocabulary))
    with limited(partial(_pattern_refusal, source)):
        grammar = regex_by_token(source, names)
    return compile_regex(source, vocabulary) if grammar is None else compile_grammar(*resolved(grammar, vocabulary))


@waiting("compiling the regular expression")
def compile_regex(pattern: str, vocabulary: Vocabulary, syntax: Syntax = "python") -> CfgGrammar:
    """Compile a regular expression that the whole output must match.

    Args:
        pattern: the expression.
        vocabulary: the model's tokens.
        syntax: "python" (module ``re``, flags inside: ``(?i)...``) or "ecma" (JavaScript, with the flag u; what is not
            legal there is read as without the flag, but characters are code points in both).

    Raises:
        PatternError: not a legal expression, or not a regular one (backreferences).
        PatternTooComplexError: its automaton is too large, takes too long to make, or groups are nested too deeply.
        EmptyLanguageError: it matches no text.
        OptionsError: another ``syntax``.
    """
    from structgen.core.grammars.python_regex import python_regex_dfa

    if syntax not in ("python", "ecma"):
        raise OptionsError(f"syntax must be 'python' or 'ecma', not {syntax!r}", option="syntax", value=syntax)
    if not isinstance(pattern, str):
        raise ConstraintError(f"a regular expression is text, not {type(pattern).__name__}")
    with limited(partial(_pattern_refusal, pattern)):
        dfa = python_regex_dfa(pattern) if syntax == "python" else full_match_dfa(pattern)
        grammar = regular_grammar(dfa, "regex", pattern)
    try:
        return compile_grammar(grammar, vocabulary)
    except EmptyLanguageError:
        if not dfa.is_empty:  # the vocabulary cannot spell it
            raise
        raise EmptyLanguageError(
            f"no text matches {pattern!r:.200} as a whole: two parts of it exclude each other",
            hint="No text stands before or after the output, so (?<=...), (?=...) and \\b see nothing there.",
        ) from None


@waiting("compiling the choice")
def compile_choice(options: Iterable[str], vocabulary: Vocabulary) -> CfgGrammar | SortedGrammar:
    """Compile a choice: the output is one of these texts. O(characters).

    Raises:
        ConstraintError: no options, or something that is no text.
        TooComplexError: the options have too many characters, beginnings that they share counted once.
    """
    words = choice_texts(options)
    names = NameSet.of_texts(words) if len(words) >= SORTED_FROM else None
    if names is not None:
        return compile_names(names, vocabulary)
    return _compile_words(words, vocabulary)


def choice_texts(options: Iterable[str]) -> list[str]:
    """The texts of a choice; a text by itself is the only one.

    Raises:
        ConstraintError: something is no text, or there is none.
    """
    words = [options] if isinstance(options, str) else list(options) if isinstance(options, Iterable) else [options]
    for word in words:
        if not isinstance(word, str):
            raise ConstraintError(f"a choice needs texts, not {word!r:.100}")
    if not words:
        raise ConstraintError("a choice needs at least one text")
    return words


def _compile_words(words: Sequence[str], vocabulary: Vocabulary) -> CfgGrammar:
    """As an automaton."""
    dfa = from_strings(words, MAX_STATES)
    return compile_dfa(dfa, "choice", f"{len(words)} options", vocabulary)


def compile_dfa(dfa: Dfa, name: str, source: str, vocabulary: Vocabulary) -> CfgGrammar:
    """Compile the texts that an automaton accepts.

    Args:
        name: of the language, for messages.
        source: what it was made of, for messages.

    Raises:
        EmptyLanguageError: it accepts no text, or none that the vocabulary can spell.
    """
    return compile_grammar(regular_grammar(dfa, name, source), vocabulary)


def compile_names(names: NameSet, vocabulary: Vocabulary) -> CfgGrammar | SortedGrammar:
    """Compile a set of names: the output is one of them. O(1), but that a vocabulary which lacks bytes is looked at.

    Raises:
        EmptyLanguageError: the vocabulary spells none of them.

    Warns:
        GrammarWarning: it does not spell some, byte by byte, and there are too many to be read by whole tokens.
    """
    check_vocabulary(vocabulary)
    missing = vocabulary.missing_bytes
    if missing and len(names.text) <= WHOLE_TOKENS_TO and np.isin(names.text, missing).any():
        return _compile_words(list(names), vocabulary)
    return compile_sorted(names, vocabulary)


def compile_quotes(
    corpus: Corpus, vocabulary: Vocabulary, min_chars: int = 1, max_chars: int | None = None
) -> SortedGrammar:
    """Compile quotes of documents: the output is a part of one, from a border to a border. O(1).

    Args:
        corpus: the documents.
        vocabulary: the model's tokens.
        min_chars, max_chars: code points that a quote has; None: no limit but that of all (`MAX_POINTS`).

    Raises:
        EmptyLanguageError: no quote has as many, or the vocabulary cannot spell any.
        OptionsError: the numbers are no counts, or exclude each other.
    """
    check_count("min_chars", min_chars, 0)
    if max_chars is not None:
        check_count("max_chars", max_chars, max(min_chars, 1))
    return compile_sorted(corpus, vocabulary, min_chars, max_chars)


def compile_json_lines(
    schema: Any,
    vocabulary: Vocabulary,
    *,
    min_lines: int = 0,
    max_lines: int | None = None,
    options: JsonOptions | None = None,
    registry: Registry[Any] | None = None,
) -> ComposedGrammar | CfgGrammar:
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
    return embed_lines(compile_json_schema(schema, vocabulary, options, registry), min_lines, max_lines)


compile_tag_dispatch = waiting("compiling tagged text")(capturing(_compile_tag_dispatch))


def _schemas(schemas: Mapping[int, EmbeddedSchema], vocabulary: Vocabulary, naming: Vocabulary) -> dict[int, Grammar]:
    """What reads the terminals, by number, of a grammar over ``naming`` that are JSON values of these schemas."""
    contents: dict[int, Grammar] = {}
    vocabulary = vocabulary.within(naming)
    for terminal, (schema, options) in schemas.items():
        try:
            contents[terminal] = compile_json_schema(schema, vocabulary, options)
        except SchemaError as error:
            error.add_note(f"The schema is that of %json {json.dumps(schema, default=str)[:100]} in the grammar.")
            raise
    return contents


def _pattern_refusal(pattern: str, message: str, budget: str, limit: int) -> Exception:
    return PatternTooComplexError(message, budget=budget, limit=limit, pattern=pattern)
