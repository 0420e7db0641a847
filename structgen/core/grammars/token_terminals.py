"""Terminals that are special tokens: how grammars write them, which ids they are, and their automata.

``<think>`` and ``<|x|>`` are tokens by name, ``<[7]>`` and ``<[3,5-9]>`` by id, ``<[^3,5-9]>`` any but these, and
``<[*]>`` any. What is negated stands for one character of text, or one special token (without text, or named in the
same grammar; no end of sequence): other tokens are no unit of a grammar, whose texts may be spelled in any tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from structgen.core.regex.dfa import Dfa, from_strings, from_table, universal
from structgen.core.vocabulary.special_tokens import SpecialToken, stand_in, written
from structgen.core.vocabulary.vocabulary import TextVocabulary, Vocabulary
from structgen.errors import ConstraintError, GrammarError

if TYPE_CHECKING:
    from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule

MAX_TOKENS = 1 << 14
"""Tokens that one terminal may be."""
_IDS = re.compile(r"<\[\s*(\^?)\s*(\*|\d{1,9}\s*(?:-\s*\d{1,9}\s*)?(?:,\s*\d{1,9}\s*(?:-\s*\d{1,9}\s*)?)*)\]>")


@dataclass(frozen=True, slots=True)
class TokenPattern:
    """Special tokens as a grammar writes them.

    Attributes:
        source: as it stands there, ``<...>``.
        name: the token's name; None: by ids.
        ranges: first and last id of each range.
        negated: whether any other is meant.
    """

    source: str
    name: str | None = None
    ranges: tuple[tuple[int, int], ...] = ()
    negated: bool = False


def token_pattern(source: str) -> TokenPattern:
    """Read ``<...>``, or ``!<...>`` for any other.

    Raises:
        ConstraintError: a range that goes down, or any token but all.
    """
    body, negated = source.removeprefix("!"), source.startswith("!")
    match = _IDS.fullmatch(body)
    if match is None:
        return TokenPattern(source, name=body, negated=negated)
    if match[2] == "*":
        if negated or match[1]:
            raise ConstraintError(f"{source} is no token, as it leaves out all; leave it out")
        return TokenPattern(source, negated=True)
    ranges = []
    for part in match[2].split(","):
        first, _, last = part.partition("-")
        ranges.append((int(first), int(last or first)))
        if ranges[-1][0] > ranges[-1][1]:
            raise ConstraintError(f"the range {part.strip()} of token ids must go up")
    return TokenPattern(source, ranges=tuple(ranges), negated=negated != bool(match[1]))


def pattern_of(token: SpecialToken) -> TokenPattern:
    """The pattern of one token."""
    if isinstance(token.token, str):
        return TokenPattern(token.token, name=token.token)
    return TokenPattern(written(token.token), ranges=((token.token, token.token),))


def resolved(
    grammar: ContextFreeGrammar, vocabulary: Vocabulary, text: str | None = None
) -> tuple[ContextFreeGrammar, Vocabulary]:
    """A grammar whose special tokens are automata over their stand-ins, and the vocabulary that names them.

    Both as they are, where the grammar names none.

    Args:
        grammar: the normal form.
        vocabulary: the tokens.
        text: the grammar's text, for messages.

    Raises:
        GrammarError: the vocabulary has no such token (the nearest name is told), too many are meant, or all ends of
            sequence.
    """
    wanted = {t: terminal.tokens for t, terminal in enumerate(grammar.terminals) if terminal.tokens is not None}
    if not wanted:
        return grammar, vocabulary
    terminals, meant = list(grammar.terminals), dict[int, frozenset[int]]()
    for t, pattern in wanted.items():
        try:
            if isinstance(vocabulary, TextVocabulary):
                terminals[t] = replace(terminals[t], dfa=_as_text(pattern), tokens=None)
            else:
                meant[t] = ids_of(pattern, vocabulary)
                vocabulary.other_ends(_named_by(wanted, meant, vocabulary))
        except ConstraintError as error:
            position = terminals[t].position
            raise GrammarError(str(error), line=position.line, column=position.column, source=text) from None
    view = vocabulary.naming(_named_by(wanted, meant, vocabulary))
    units = view.named.union(view.special_token_ids).difference(view.eos_token_ids)
    for t, ids in meant.items():
        negated = wanted[t].negated
        dfa = token_dfa(units - ids if negated else ids, view.size, negated)
        terminals[t] = replace(terminals[t], dfa=dfa, tokens=None)
    captured = {symbol for symbol, _ in grammar.captures}
    repeated = {t for t in wanted if wanted[t].negated and ~t not in captured}
    return _with_runs(replace(grammar, terminals=tuple(terminals)), repeated), view


def _named_by(
    patterns: Mapping[int, TokenPattern], meant: Mapping[int, frozenset[int]], vocabulary: Vocabulary
) -> set[int]:
    """The ids that stand for themselves where some patterns mean these ids.

    Those that are left out by a negation do, too, where they would else be written as text.
    """
    named: set[int] = set()
    for t, ids in meant.items():
        if patterns[t].negated:
            named |= set(vocabulary.special_token_ids).difference(ids, vocabulary.eos_token_ids)
            named.update(i for i in ids if vocabulary.tokens[i])
    return named.union(*(ids for t, ids in meant.items() if not patterns[t].negated))


def ids_of(pattern: TokenPattern, vocabulary: Vocabulary) -> frozenset[int]:
    """The ids that a pattern lists. Ends of sequence are meant where one is named alone, not by ranges.

    Raises:
        ConstraintError: the vocabulary has no such token (the nearest name is told), or too many are meant.
    """
    if pattern.name is not None:
        named = {_named(pattern.name, vocabulary)}
    else:
        named = set()
        for first, last in pattern.ranges:
            vocabulary.id_of(SpecialToken(last))
            ends = () if first == last else vocabulary.eos_token_ids
            named |= set(range(first, last + 1)).difference(ends)
    if len(named) > MAX_TOKENS:
        raise ConstraintError(f"{pattern.source} is {len(named):,} tokens, more than {MAX_TOKENS:,}")
    if not (named or pattern.negated):
        raise ConstraintError(f"{pattern.source} is no token: ends of sequence are named one by one")
    return frozenset(named)


def _named(name: str, vocabulary: Vocabulary) -> int:
    """The id of a name; ``<[x]>`` is that of ``[x]`` too, so that grammars can write names without angle brackets."""
    if name not in vocabulary.special_tokens and _without_angles(name) in vocabulary.special_tokens:
        name = _without_angles(name)
    return vocabulary.id_of(SpecialToken(name))


def _without_angles(name: str) -> str:
    return name[1:-1] if name.startswith("<[") and name.endswith("]>") else name


def _as_text(pattern: TokenPattern) -> Dfa:
    """The automaton of a token's name, which stands for it in text.

    Raises:
        ConstraintError: a token by id, whose name is not known.
    """
    if pattern.negated:
        return token_dfa(frozenset(), 1, True)
    if pattern.name is None:
        raise ConstraintError(
            f"text shows special tokens by their names, and that of {pattern.source} is not known; write the name"
        )
    return from_strings([_without_angles(pattern.name)])


@lru_cache(64)
def token_dfa(token_ids: frozenset[int], size: int, with_text: bool = False) -> Dfa:
    """The automaton of the stand-ins of some ids, and (``with_text``) of all characters of text. O(ids)."""
    transitions = [np.full(256, -1, np.int32), np.full(256, -1, np.int32)]  # start, end
    for token_id in sorted(token_ids):
        state, (*inner, last) = 0, stand_in(token_id, size)
        for byte in inner:
            if transitions[state][byte] < 0:
                transitions[state][byte] = len(transitions)
                transitions.append(np.full(256, -1, np.int32))
            state = int(transitions[state][byte])
        transitions[state][last] = 1
    if with_text:
        text = universal().transitions  # its start, where characters end, is state 0
        base = len(transitions)
        moved = np.where(text > 0, text + base - 1, np.where(text == 0, 1, -1)).astype(np.int32)
        transitions[0] = np.maximum(transitions[0], moved[0])
        transitions += list(moved[1:])
    accepting = np.zeros(len(transitions), np.uint8)
    accepting[1] = 1
    return from_table(np.stack(transitions), accepting)


def texts_with_tokens(token_ids: frozenset[int], size: int) -> Dfa:
    """Texts in which stand-ins of some ids may stand between characters; the empty one, too."""
    runs = _plus(token_dfa(token_ids, size, with_text=True))
    accepting = runs.accepting.view(np.uint8).copy()
    accepting[0] = 1
    return from_table(runs.transitions.copy(), accepting)


def _with_runs(grammar: ContextFreeGrammar, repeated: set[int]) -> ContextFreeGrammar:
    """The grammar with runs of single characters, as rules that repeat a terminal write them, as terminals.

    ``(!<x>)*`` would be read character by character; its run is one terminal of the same texts.
    """
    if not repeated:
        return grammar
    by_lhs: dict[int, list[Rule]] = {}
    for rule in grammar.rules:
        by_lhs.setdefault(rule.lhs, []).append(rule)
    captured = {symbol for symbol, _ in grammar.captures}
    alias = {
        n: rules[0].rhs[0]
        for n, rules in by_lhs.items()
        if len(rules) == 1 and len(rules[0].rhs) == 1 and n not in captured
    }
    for _ in range(len(alias)):  # those of others
        if not any(s in alias for s in alias.values()):
            break
        alias = {n: alias.get(s, s) for n, s in alias.items()}
    terminals = list(grammar.terminals)
    runs: dict[int, int] = {}  # terminal of the runs of each
    replaced: dict[int, list[Rule]] = {}
    for n, rules in by_lhs.items():
        shapes = {tuple(s if s < 0 else alias.get(s, s) for s in rule.rhs) for rule in rules}
        t = next((~shape[0] for shape in shapes if len(shape) == 1 and ~shape[0] in repeated), None)
        if t is None:  # with the empty text, only the longer rule has the terminal
            t = next((~s for shape in shapes for s in shape if ~s in repeated), None)
        loops = {(n, ~t), (~t, n)} if t is not None else set()
        if t is None or n in captured or not shapes & loops or shapes - loops - {(), (~t,)} or not shapes & {(), (~t,)}:
            continue
        if t not in runs:
            runs[t] = len(terminals)
            terminals.append(replace(terminals[t], name=f"{terminals[t].name}+", dfa=_plus(terminals[t].dfa)))
        replaced[n] = [replace(rules[0], rhs=(~runs[t],)), *(replace(rule, rhs=()) for rule in rules if not rule.rhs)]
    if not replaced:
        return grammar
    rules = [rule for n, given in by_lhs.items() for rule in replaced.get(n, given)]
    return replace(grammar, terminals=tuple(terminals), rules=tuple(rules))


def _plus(dfa: Dfa) -> Dfa:
    """One or more texts of an automaton none of whose texts begins another."""
    table = dfa.transitions.copy()
    for state in np.flatnonzero(dfa.accepting).tolist():
        table[state] = table[0]
    return from_table(table, dfa.accepting.view(np.uint8).copy())
