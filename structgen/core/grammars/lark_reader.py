"""Lark grammars in normal form.

Lark's own loader reads the text: templates, imports, ``%extend`` and ``%override``, repetitions and priorities mean
what they mean there. Terminals become automata over bytes (`structgen.core.grammars.python_regex`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from structgen.core.grammars.captured import Captured, capture_symbols
from structgen.core.grammars.embedded_schema import EmbeddedSchema, place_at, read_schema
from structgen.core.grammars.lark_internals import MissingImport, load_grammar, set_apart
from structgen.core.grammars.lark_options import CALLBACKS, about_indentation
from structgen.core.grammars.lark_size import check_depth, check_size, check_terminals
from structgen.core.grammars.limits import MAX_STATES, check_text, grammar_refusal, limited, load_text
from structgen.core.grammars.normal_form import ContextFreeGrammar, Place, Rule, Terminal
from structgen.core.grammars.python_regex import terminal_dfa
from structgen.core.grammars.regular import word_dfa
from structgen.core.grammars.token_terminals import TokenPattern, token_pattern
from structgen.core.regex.dfa import Dfa, empty, from_strings
from structgen.core.regex.steps import check_time
from structgen.core.regions import Region
from structgen.errors import (
    ConstraintError,
    GrammarError,
    PatternError,
    PatternTooComplexError,
    TooComplexError,
)
from structgen.options import JsonOptions, checked_options, near_name

if TYPE_CHECKING:
    from lark.grammar import Rule as LarkRule
    from lark.lexer import TerminalDef

_EMBEDDED = "STRUCTGEN_JSON_"
_SPECIAL = "STRUCTGEN_TOKEN_"
MANY_WORDS = 16
"""So many options of a rule that are single words become one terminal."""


@dataclass(frozen=True)
class LarkGrammar:
    """A Lark grammar as read.

    Attributes:
        grammar: the normal form.
        embedded: JSON Schemas of ``%json {...}``, and how their JSON may be spelled, by terminal number.
        warnings: rules that the start rule does not reach, and terminals that are not quite what they are to Lark.
        text: the grammar's text.
        references: names of grammars that are given for declared terminals, by terminal number.
    """

    # Terminals that are special tokens have `Terminal.tokens`; `core.grammars.token_terminals.resolved` reads them.
    grammar: ContextFreeGrammar
    embedded: dict[int, EmbeddedSchema] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    text: str = ""
    references: dict[int, str] = field(default_factory=dict)


def read_lark(
    source: str | Path,
    start: str = "start",
    import_paths: Iterable[str | Path] = (),
    json_options: JsonOptions | None = None,
    captures: Captured = (),
    given: Collection[str] = (),
) -> LarkGrammar:
    """Read a grammar in Lark's language.

    Args:
        source: the grammar's text (any string), or the path of a file (``Path``).
        start: the rule that texts must match.
        import_paths: folders where ``%import`` looks, besides Lark's library and the folder of a file.
        json_options: how JSON of ``%json`` may be spelled; its key ``x-structgen`` changes single options.
        captures: rules and terminals that are captured, and the names of what they capture.
        given: declared terminals whose texts other grammars read.

    Raises:
        GrammarError: not a legal grammar, or one that needs a callback (line, column and a caret).
        ConstraintError: the package lark is missing, or the file cannot be read.
        OptionsError: ``captures`` names what is no rule or terminal, or none that is used.
    """
    text, file = load_text(source)
    check_text(text)
    with limited(grammar_refusal(text)):
        folders, options = list(map(str, import_paths)), checked_options(json_options)
        return _read(text, file, start, folders, options, captures, frozenset(given))


def _read(
    text: str,
    file: Path | None,
    start: str,
    folders: list[str],
    options: JsonOptions,
    captures: Captured,
    given: frozenset[str],
) -> LarkGrammar:
    plain, extras = _without_extras(text, options)
    declared = given | extras.schemas.keys() | extras.tokens.keys()
    terminals, rules, ignored, defined = load(plain, text, file, start, folders, "*", declared)
    places = Places(text)
    builder = _Builder(text, places, extras, captures)
    builder.given = given
    grammar = builder.build(terminals, rules, ignored, start)
    if captures:
        grammar = replace(grammar, captures=builder.captured(defined, terminals, ignored, start))
    reached = {rule.origin.name.partition("{")[0] for rule in rules}  # an instance of a template: name{...}
    warnings = tuple(
        f"rule {str(rule)!r} is never used (line {places.of(rule).line})"
        for rule in defined
        if rule not in reached and "__" not in rule  # of imported ones, which have "__", some are not asked for
    )
    return LarkGrammar(grammar, builder.embedded, (*warnings, *builder.warnings), text, builder.references)


@dataclass
class _Extras:
    """What a text holds beyond Lark's language, by the names of the declared terminals that took its place."""

    schemas: dict[str, EmbeddedSchema] = field(default_factory=dict)
    tokens: dict[str, tuple[TokenPattern, Place]] = field(default_factory=dict)


_EXTRA = re.compile(
    r'//[^\n]*|#[^\n]*|"(?:\\.|[^"\\\n])*"|/(?!/)(?:\\.|[^/\\])+/|%json\s*(?=[{tf])|(?P<token><[^<>\n]+>)'
)


_HEADER = re.compile(r"^[ \t]*[!?]*([A-Za-z_]\w*)(?:\{[^}\n]*\})?(?:\.-?\d+)?[ \t]*:", re.MULTILINE)


def special_tokens(text: str) -> Iterator[tuple[str, Place]]:
    """The special tokens that a grammar's text names, with their places."""
    for match in _EXTRA.finditer(text):
        if match["token"]:
            yield match.group(), place_at(text, match.start())


def _without_extras(text: str, options: JsonOptions) -> tuple[str, _Extras]:
    """The text with every ``%json {...}`` and special token replaced by a declared terminal, and what these are."""
    extras = _Extras()
    pieces, done = [], 0
    for match in _EXTRA.finditer(text):
        if match.start() < done or not (match["token"] or match.group().startswith("%json")):
            continue
        if match["token"]:
            name, end = _token_name(extras, text, match), match.end()
        else:
            name = f"{_EMBEDDED}{len(extras.schemas)}"
            extras.schemas[name], end = read_schema(text, match.end(), options)
        pieces += [text[done : match.start()], f" {name} "]  # apart from names before and after it
        done = end
    plain = "".join([*pieces, text[done:]])
    names = " ".join([*extras.schemas, *extras.tokens])
    return (plain + f"\n%declare {names}\n" if names else plain), extras


def _token_name(extras: _Extras, text: str, match: re.Match[str]) -> str:
    """The terminal that takes the place of a special token; equal ones share it."""
    position = place_at(text, match.start())
    try:
        pattern = token_pattern(match.group())
    except ConstraintError as error:
        raise GrammarError(str(error), line=position.line, column=position.column, source=text) from None
    *_, header = [None, *_HEADER.finditer(text, 0, match.start())]
    if header is not None and header[1].isupper():
        raise GrammarError(
            f"the terminal {header[1]} holds the special token {match.group()}, which is no text",
            line=position.line,
            column=position.column,
            source=text,
            hint="Special tokens stand in rules: write a rule (a lower-case name) in place of the terminal.",
        )
    for name, (other_pattern, _) in extras.tokens.items():
        if other_pattern == pattern:
            return name
    name = f"{_SPECIAL}{len(extras.tokens)}"
    extras.tokens[name] = pattern, position
    return name


class Places:
    """Where names are defined in a grammar's text; of those that are not, where they first occur. O(text)."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._defined: dict[str, int] = {}
        self._used: dict[str, int] = {}
        for match in re.finditer(r"^[ \t]*[!?]*([A-Za-z_][A-Za-z_0-9]*)(?=[ \t]*[:{.])", text, re.MULTILINE):
            self._defined.setdefault(match.group(1), match.start(1))
        for match in re.finditer(r"\b[A-Za-z_]\w*", text):
            self._used.setdefault(match.group(), match.start())

    def of(self, name: str) -> Place:
        """Where a name stands; nowhere if the text does not hold it."""
        return self._at(self._defined.get(name, self._used.get(name, -1)))

    def of_text(self, piece: str) -> Place:
        """Where a piece of text first stands."""
        return self._at(self._text.find(piece) if piece else -1)

    def _at(self, offset: int) -> Place:
        if offset < 0:
            return Place()
        line = bisect_right(self._lines, offset)
        return Place(line, offset - self._lines[line - 1] + 1)


def load(
    plain: str,
    text: str,
    file: Path | None,
    start: str,
    folders: list[str],
    kept: set[str] | str,
    declared: Collection[str] = (),
) -> tuple[list[TerminalDef], list[LarkRule], list[str], list[str]]:
    """Terminals, rules, ignored terminals and names of all rules, by Lark's loader, whose work is bounded.

    Args:
        plain: the text that Lark is given.
        text: the text that errors are about.
        file: that it was read from; its imports are looked for beside it, too.
        start: the rule that texts must match.
        folders: where imports are looked for, besides Lark's library.
        kept: terminals that stay if no rule uses them; "*": all.
        declared: terminals that, declared without a pattern, are not to be taken for literals of the same letters.
    """

    def refuse(message: str, budget: str, limit: int, culprit: str) -> Exception:
        position = Places(text).of(culprit)
        return grammar_refusal(text, position.line, position.column)(message, budget, limit)

    check_depth(plain)
    with lark_errors(text):
        folders = folders if file is None else [str(file.parent), *folders]
        grammar = load_grammar(plain, file, folders, lambda terminals: check_terminals(terminals, refuse))
        check_time()
        defined = [definition[0] for definition in grammar.rule_defs]
        if start not in defined:
            near = f"; the rules are {', '.join(sorted(d for d in defined if '__' not in d)[:20])}" if defined else ""
            raise GrammarError(f"there is no rule {start!r} to start from{near}", hint="Name the first rule: start=...")
        check_size(grammar, start, refuse)
        patternless = set_apart(grammar, declared)
        terminals, rules, ignored = grammar.compile([start], kept)
    check_time()
    return [terminal for terminal in terminals if terminal.name not in patternless], rules, ignored, defined


@contextmanager
def lark_errors(text: str) -> Iterator[None]:
    """Where Lark reads a grammar: all that it raises becomes an error of ours."""
    try:
        from lark.exceptions import UnexpectedInput, VisitError
    except ImportError as error:
        raise ConstraintError("Lark grammars need the package lark: pip install 'structgen-lm[lark]'") from error
    try:
        yield
    except (ConstraintError, RecursionError, MemoryError):
        raise
    except MissingImport as error:
        raise _missing(error.name, text) from None
    except UnexpectedInput as error:
        message = f"cannot read the grammar: {str(error).splitlines()[0]}"
        raise GrammarError(
            message, line=error.line, column=error.column, source=text, hint=_advice(message, text)
        ) from None
    except VisitError as error:
        if isinstance(error.orig_exc, RecursionError | MemoryError):
            raise error.orig_exc from None
        raise translated(error, text) from error
    except Exception as error:  # Lark's loader lets errors of all kinds through
        raise translated(error, text) from error


def translated(error: Exception, text: str) -> GrammarError:
    """Lark's error as ours, with the place that its message names, or that of the name in quotes."""
    message = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if isinstance(error, OSError):
        return _missing(Path(error.filename or message).stem, text)
    line, column = 0, 0
    match = re.search(r"at line (\d+) column (\d+)", str(error))
    if match:
        line, column = int(match.group(1)), int(match.group(2))
    else:
        quoted = re.search(r"'([A-Za-z_][A-Za-z_0-9]*)'", message) or re.search(r": ([A-Za-z_]\w*)$", message)
        position = Places(text).of(quoted.group(1)) if quoted else Place()
        line, column = position.line, position.column
    return GrammarError(
        message,
        line=line,
        column=column,
        source=text,
        hint=about_indentation(message) or _advice(message, text, line, column),
    )


def _advice(message: str, text: str, line: int = 0, column: int = 0) -> str | None:
    """What to do about an error of Lark's that newcomers meet; None: nothing is known."""
    if "::=" in text:
        return "With ::= it is GBNF, or XGrammar's EBNF: gbnf(...)."
    if text.startswith("\ufeff"):
        return "The text begins with a byte order mark (U+FEFF), which is not shown: save the file as UTF-8 without it."
    lines = text.split("\n")
    remaining = lines[line - 1][max(0, column - 1) :] if 0 < line <= len(lines) else ""
    undefined = re.search(r"'(\w+)' used but not defined", message)
    if undefined is not None:
        name = undefined[1]
        if re.match(rf"{name}[\"']", remaining):
            return "An expression stands between slashes: /[0-9]+/"
        defined = re.findall(r"^[?!_]*(\w+)[^:\n/\"]*:", text, re.MULTILINE)
        module = re.search(rf"%import\s+(\w+)\.{name}\b", text)
        if module is not None:
            return f"Lark's grammar {module[1]!r} has no {name}."
        near = near_name(name, [other for other in defined if other != name])
        return None if near is None else f"Did you mean {near!r}?"
    if "Expecting rule or terminal definition" in message:
        return "A definition is name: ...; names of rules are in small letters, those of terminals in capitals."
    return None


def _missing(name: str, text: str) -> GrammarError:
    position = Places(text).of(name)
    return GrammarError(
        f"there is no grammar {name!r} to import from",
        line=position.line,
        column=position.column,
        source=text,
        hint="A text imports from Lark's library (%import common.INT); a file, from those of its folder, too.",
    )


class _Builder:
    """Numbers terminals and rules."""

    def __init__(self, text: str, places: Places, extras: _Extras, captures: Captured) -> None:
        self._captures = captures
        self._captured = {symbol for symbol, _ in captures}
        self._text = text
        self._places = places
        self._extras = extras
        self._terminals: list[Terminal] = []
        self._numbers: dict[str, int] = {}
        self._states = 0
        self._rules: dict[str, int] = {}
        self._used: dict[str, int] = {}  # terminals that stand in rules
        self.embedded: dict[int, EmbeddedSchema] = {}
        self.given: frozenset[str] = frozenset()
        self.references: dict[int, str] = {}
        self.warnings: list[str] = []

    def build(
        self, terminals: list[TerminalDef], rules: list[LarkRule], ignored: list[str], start: str
    ) -> ContextFreeGrammar:
        """The normal form of Lark's compiled rules."""
        patterns = {terminal.name: terminal for terminal in terminals}
        names = {start: 0}
        for rule in rules:
            names.setdefault(rule.origin.name, len(names))
        words: dict[str, list[str]] = {}
        for rule in rules:
            if (word := _word(rule, patterns)) is not None:
                words.setdefault(rule.origin.name, []).append(word)
        words = {name: texts for name, texts in words.items() if len(texts) >= MANY_WORDS}
        if self._captures:  # the order of a rule's options then counts, and each captured terminal is one
            others = {rule.origin.name for rule in rules if self._option_counts(rule, patterns)}
            words = {name: texts for name, texts in words.items() if name not in others}
        converted = [self._words(names[name], name, texts) for name, texts in words.items()]
        for rule in rules:
            if rule.origin.name in words and _word(rule, patterns) is not None:
                continue
            symbols = [
                ~self._terminal(symbol.name, patterns) if symbol.is_term else names.setdefault(symbol.name, len(names))
                for symbol in rule.expansion
            ]
            converted.append(Rule(names[rule.origin.name], tuple(symbols), self._places.of(rule.origin.name)))
        self._used = dict(self._numbers)
        self._rules = names
        skipped = tuple(self._terminal(name, patterns) for name in ignored)
        return ContextFreeGrammar(tuple(self._terminals), tuple(names), tuple(converted), 0, skipped)

    def _option_counts(self, rule: LarkRule, patterns: dict[str, TerminalDef]) -> bool:
        """Whether an option of a rule is captured, or no single word."""
        return _word(rule, patterns) is None or rule.expansion[0].name in self._captured

    def captured(
        self, rules: list[str], terminals: list[TerminalDef], ignored: list[str], start: str
    ) -> tuple[tuple[int, str | Region], ...]:
        """The symbols that are captured, with names."""
        others = dict.fromkeys(rules, f"{start!r} never uses")
        others |= {
            t.name: "no rule uses; what is a part of another terminal is no part of the output" for t in terminals
        }
        others |= {name: "stands between all others (%ignore)" for name in ignored}
        return capture_symbols(self._captures, self._rules, self._used, others)

    def _words(self, number: int, name: str, texts: list[str]) -> Rule:
        """One terminal for many words."""
        position = self._places.of(name)
        try:
            dfa = from_strings(texts, MAX_STATES)
        except TooComplexError as error:
            raise grammar_refusal(self._text, position.line, position.column)(
                error.message, error.budget or "size", error.limit
            ) from None
        self._states += len(dfa)
        self._check_states(0, position)
        self._terminals.append(Terminal(f"{name}:words", dfa, f"{len(texts)} words", 0, position))
        return Rule(number, (~(len(self._terminals) - 1),), position)

    def _terminal(self, name: str, patterns: dict[str, TerminalDef]) -> int:
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self._terminals)
            self._terminals.append(self._make(name, patterns.get(name), number))
        return number

    def _make(self, name: str, definition: TerminalDef | None, number: int) -> Terminal:
        check_time()
        position = self._places.of(name)
        if position == Place() and definition is not None:
            position = self._places.of_text(definition.pattern.raw or "")
        if name in self._extras.schemas:
            self.embedded[number] = self._extras.schemas[name]
            return Terminal(name, empty(), "%json", 0, position)
        if name in self._extras.tokens:
            tokens, position = self._extras.tokens[name]
            return Terminal(tokens.source, empty(), tokens.source, 0, position, tokens)
        if definition is None and name in self.given:
            self.references[number] = name
            return Terminal(name, empty(), name, 0, position)
        if definition is None:
            self._refuse(
                f"the terminal {name} is declared, but has no pattern",
                position,
                about_indentation(name) or CALLBACKS,
            )
        assert definition is not None
        self._check_states(len(definition.pattern.value.encode()) if definition.pattern.type == "str" else 0, position)
        dfa = self._dfa(definition, position)
        self._states += len(dfa)
        self._check_states(0, position)
        if dfa.is_empty:
            self._refuse(f"the terminal {name} matches no text", position, "Remove it, or widen its pattern.")
        if dfa.accepting[0]:
            self._refuse(
                f"the terminal {name} matches the empty text",
                position,
                "Terminals have at least one character, as in Lark; make it optional in a rule instead.",
            )
        return Terminal(name, dfa, definition.pattern.value, definition.priority, position)

    def _check_states(self, more: int, position: Place) -> None:
        if self._states + more > MAX_STATES:
            refuse = grammar_refusal(self._text, position.line, position.column)
            raise refuse("the automata of all terminals are too large in sum", "states", MAX_STATES)

    def _dfa(self, definition: TerminalDef, position: Place) -> Dfa:
        pattern = definition.pattern
        if pattern.type == "str" and not pattern.flags:
            return word_dfa(pattern.value)
        try:
            dfa, remark = terminal_dfa(pattern.to_regexp())
        except PatternTooComplexError as error:
            refuse = grammar_refusal(self._text, position.line, position.column)
            what = f"the terminal {definition.name}: {error.message}"
            raise refuse(what, error.budget or "size", error.limit) from None
        except PatternError as error:
            expression = repr(error.pattern) + (f", offset {error.position}" if error.position else "")
            self._refuse(f"the terminal {definition.name}: {error.message} ({expression})", position, "")
        except TooComplexError as error:
            refuse = grammar_refusal(self._text, position.line, position.column)
            what = f"the terminal {definition.name}: {error.message}"
            raise refuse(what, error.budget or "size", error.limit) from None
        if remark:
            self.warnings.append(f"the terminal {definition.name} {remark} (line {position.line})")
        return dfa

    def _refuse(self, message: str, position: Place, hint: str) -> None:
        raise GrammarError(message, line=position.line, column=position.column, source=self._text, hint=hint or None)


def _word(rule: LarkRule, patterns: dict[str, TerminalDef]) -> str | None:
    """The text of a rule that is one word; None of others."""
    if len(rule.expansion) != 1 or not rule.expansion[0].is_term:
        return None
    definition = patterns.get(rule.expansion[0].name)
    if definition is None or definition.pattern.type != "str" or definition.pattern.flags:
        return None
    return str(definition.pattern.value)
