"""What a vocabulary that lacks bytes can spell of a grammar: no text may lead where no token leads on."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.grammars.token_spelling import by_tokens, bytes_inside_tokens, bytes_of
from structgen.core.regex.charset import EMPTY, MAX_CODE_POINT, CharSet, complement, intersection, normalise
from structgen.core.regex.dfa import Dfa, Table, empty, from_table
from structgen.core.regex.dfa_cache import automata_cache
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import EmptyLanguageError, GrammarWarning

Flags = npt.NDArray[np.bool_]


class Spelled(NamedTuple):
    """What is left of a grammar.

    Attributes:
        grammar: the grammar.
        narrowed: bytes that are no tokens, but in tokens that spell texts which it lacks.
        mark: a byte that it has after each token; -1: none.
    """

    grammar: ContextFreeGrammar
    narrowed: tuple[int, ...] = ()
    mark: int = -1


def spellable(grammar: ContextFreeGrammar, vocabulary: Vocabulary, embedded: Collection[int] = ()) -> Spelled:
    """A grammar without what this vocabulary could begin and not finish. O(states of the terminals), nearly always.

    A terminal stays as it is where every state that tokens can end in is completed by characters that tokens spell,
    byte by byte or whole (always, for the vocabularies of most models). Where one does not, and longer tokens have
    bytes that are no tokens, the grammar is that of `core.grammars.token_spelling`: exactly what runs of tokens
    spell. If that is too large, or other grammars are embedded, terminals are left with the texts that keep to such
    states: text that only longer tokens could spell counts as none; so does a character, though it is a token, where
    another token ends inside it and the rest cannot be spelled byte by byte.

    Args:
        grammar: the normal form.
        vocabulary: the tokens.
        embedded: terminals whose automata are not looked at.
    """
    if not vocabulary.missing_bytes:
        return Spelled(grammar)
    dfas = [t.dfa if i in embedded else _spelled(t.dfa, vocabulary) for i, t in enumerate(grammar.terminals)]
    if all(dfa is t.dfa for dfa, t in zip(dfas, grammar.terminals, strict=True)):
        return Spelled(grammar)
    narrowed = bytes_inside_tokens(bytes_of(grammar), vocabulary)
    if narrowed and not embedded and (narrowed_grammar := by_tokens(grammar, vocabulary)) is not None:
        return Spelled(narrowed_grammar.grammar, (), narrowed_grammar.mark)
    gone = {i for i, t in enumerate(grammar.terminals) if dfas[i].is_empty and not t.dfa.is_empty}
    first = vocabulary.trie.byte[vocabulary.trie.depth == 0]
    never = {i for i in gone if not (grammar.terminals[i].dfa.transitions[0, first] >= 0).any()}
    kept = never if _can_stay(grammar, gone, never) else ()
    terminals = tuple(t if i in kept else replace(t, dfa=dfas[i]) for i, t in enumerate(grammar.terminals))
    return Spelled(replace(grammar, terminals=terminals), narrowed)


def _can_stay(grammar: ContextFreeGrammar, gone: set[int], never: set[int]) -> bool:
    """Whether terminals that no token begins lead nowhere: nothing stands before them, and all else has texts."""
    if not never:
        return False
    if any(~symbol in never for rule in grammar.rules for symbol in rule.rhs[1:]):
        return False
    productive: set[int] = set()
    waiting = [rule for rule in grammar.rules if not any(~symbol in gone for symbol in rule.rhs)]
    while True:
        ready = [rule for rule in waiting if all(s < 0 or s in productive for s in rule.rhs)]
        if not ready:
            return productive == {rule.lhs for rule in grammar.rules}
        productive.update(rule.lhs for rule in ready)
        waiting = [rule for rule in waiting if rule.lhs not in productive]


def unspellable(
    error: EmptyLanguageError, vocabulary: Vocabulary, grammar: ContextFreeGrammar | str
) -> EmptyLanguageError:
    """The error, with the bytes that the grammar (or its text) has and the vocabulary lacks, if there are any."""
    missing = _missing_in(grammar, vocabulary)
    if not missing:
        return error
    return EmptyLanguageError(
        f"the vocabulary cannot spell any text of the language: no token spells by itself {_shown(missing)}",
        line=error.line,
        column=error.column,
        source=error.source,
        hint="Use a tokenizer with a token for each byte, or a grammar that gets by without these.",
    )


def warn_narrowed(missing: Iterable[int]) -> None:
    """Say that texts of a grammar were left out that only tokens with these bytes could spell."""
    warnings.warn(
        "the grammar was narrowed to what the vocabulary spells by single bytes and characters, and no token spells "
        f"alone {_shown(_ordered(missing))}: texts that only longer tokens spell are left out",
        GrammarWarning,
        stacklevel=3,
    )


def _missing_in(grammar: ContextFreeGrammar | str, vocabulary: Vocabulary) -> list[int]:
    """The bytes of a grammar (or its text) that are no tokens."""
    needed = grammar.encode() if isinstance(grammar, str) else np.flatnonzero(bytes_of(grammar)).tolist()
    return _ordered(set(needed).intersection(vocabulary.missing_bytes))


def _ordered(missing: Iterable[int]) -> list[int]:
    """Printable ones first."""
    return sorted(missing, key=lambda byte: (not 32 < byte < 127, byte))


def _shown(missing: list[int]) -> str:
    shown = ", ".join(f"0x{byte:02X}" + (f" ({chr(byte)!r})" if 32 < byte < 127 else "") for byte in missing[:20])
    return shown + (f" and {len(missing) - 20} more" if len(missing) > 20 else "")


@lru_cache(8)
def missing_characters(vocabulary: Vocabulary) -> CharSet:
    """The characters that tokens spell neither byte by byte nor whole, or could begin and not finish."""
    missing, cuts = set(vocabulary.missing_bytes), set(_cuts(vocabulary))
    whole = normalise(
        (ord(data.decode()),) * 2
        for data in _whole_characters(vocabulary)
        if not any(data[:n] in cuts and not missing.isdisjoint(data[n:]) for n in range(1, len(data)))
    )
    return intersection(_characters_with(vocabulary.missing_bytes), complement(whole))


@lru_cache(8)
def held_characters(vocabulary: Vocabulary) -> CharSet:
    """Those of `missing_characters` that tokens hold beside others. O(bytes of all tokens)."""
    missing = missing_characters(vocabulary)
    if not missing:
        return EMPTY
    held = {c for token in vocabulary.tokens if len(token) > 1 for c in token.decode(errors="ignore")}
    return intersection(missing, normalise((ord(c), ord(c)) for c in held))


def bytes_apart(vocabulary: Vocabulary, characters: CharSet) -> tuple[int, ...]:
    """The bytes of some characters that are no tokens."""
    bytes_found = {byte for low, high in characters for c in range(low, high + 1) for byte in chr(c).encode()}
    return tuple(sorted(bytes_found.intersection(vocabulary.missing_bytes)))


@lru_cache(8)
def _characters_with(missing: tuple[int, ...]) -> CharSet:
    """The characters that have one of these bytes."""
    if not missing:
        return EMPTY
    lacks = np.zeros(256, np.bool_)
    lacks[list(missing)] = True
    point = np.arange(MAX_CODE_POINT + 1)
    tail, second, third = (lacks[0x80 | point >> shift & 63] for shift in (0, 6, 12))
    touched = tail | second | third | lacks[0xF0 | point >> 18 & 7]
    touched[:0x10000] = (tail | second | lacks[0xE0 | point >> 12 & 15])[:0x10000]
    touched[:0x800] = (tail | lacks[0xC0 | point >> 6 & 31])[:0x800]
    touched[:0x80] = lacks[:0x80]
    edges = np.flatnonzero(np.diff(np.concatenate(([False], touched, [False]))))
    return normalise((int(low), int(high) - 1) for low, high in zip(edges[::2], edges[1::2], strict=True))


@lru_cache(8)
def _whole_characters(vocabulary: Vocabulary) -> tuple[bytes, ...]:
    """Tokens that are one character each, of several bytes of which some is no token of its own."""
    missing = frozenset(vocabulary.missing_bytes)
    characters = {token for token in vocabulary.tokens if 1 < len(token) <= 4 and not missing.isdisjoint(token)}
    return tuple(sorted(token for token in characters if _is_character(token)))


def _is_character(token: bytes) -> bool:
    try:
        return len(token.decode()) == 1
    except UnicodeDecodeError:
        return False


@lru_cache(8)
def _cuts(vocabulary: Vocabulary) -> tuple[bytes, ...]:
    """The beginnings of characters that tokens can end in: cut at the end of one, and perhaps carried on by others."""
    inner = {token for token in vocabulary.tokens if 1 <= len(token) <= 2 and all(0x80 <= b < 0xC0 for b in token)}
    within = [[token for token in inner if len(token) <= room] for room in range(3)]
    cuts: set[bytes] = set()
    fresh = {tail for token in vocabulary.tokens if (tail := _cut_tail(token))}
    while fresh:
        cuts |= fresh
        fresh = {cut + token for cut in fresh for token in within[_character_bytes(cut[0]) - 1 - len(cut)]} - cuts
    return tuple(sorted(cuts))


def _cut_tail(token: bytes) -> bytes:
    """The unfinished character at the end of a token's text, with its first byte; empty where there is none."""
    for n in range(1, min(len(token), 3) + 1):
        if token[-n] >= 0xC0:
            return token[-n:] if n < _character_bytes(token[-n]) else b""
        if token[-n] < 0x80:
            break
    return b""


def _character_bytes(first: int) -> int:
    """How many bytes a character has that begins with ``first``, which is 0xC0 at least."""
    return 2 + (first >= 0xE0) + (first >= 0xF0)


MOST_STEPS = 1 << 26
"""States times tokens that are characters, or end inside one; more are not looked at: as if no such tokens were there,
and as if all characters were cut."""


def _spelled(dfa: Dfa, vocabulary: Vocabulary) -> Dfa:
    """The automaton without the states that tokens can end in and from which none complete a text.

    Nothing is looked for where every missing byte is one that the automaton does not have, or does not tell from one
    that stands alone, which then leads wherever that does. What was found for the others is kept.
    """
    if dfa.is_empty or not _distinguishes(dfa, vocabulary):
        return dfa
    key = vocabulary.digest, dfa.digest
    restricted = _KEPT.get(key)
    if restricted is None:
        restricted = _KEPT.put(key, _restricted(dfa, vocabulary))
    return dfa if restricted.digest == dfa.digest else restricted


_KEPT = automata_cache()


def _distinguishes(dfa: Dfa, vocabulary: Vocabulary) -> bool:
    """Whether the automaton has missing bytes that it tells from all that stand alone."""
    classes, count = dfa.columns
    missing = np.array(vocabulary.missing_bytes)
    spelled = np.zeros(count, np.bool_)
    spelled[np.delete(classes, missing)] = True
    apart = missing[~spelled[classes[missing]]]
    return bool(len(apart) and (dfa.transitions[:, apart] >= 0).any())


def _restricted(dfa: Dfa, vocabulary: Vocabulary) -> Dfa:
    """See `_spelled`."""
    alone, anywhere = np.ones(256, np.bool_), np.zeros(256, np.bool_)
    alone[list(vocabulary.missing_bytes)] = False
    anywhere[vocabulary.trie.byte] = True
    while not dfa.is_empty:
        reached = _reached(dfa.transitions, anywhere)
        lost = reached & ~_completed(dfa, alone, vocabulary)
        if lost.any():
            outside = dfa.transitions >= 0
            outside[:, 0x80:0xC0] = False
            between = outside.any(axis=1)  # a state inside a character goes on with 80 to BF only
            lost &= between | _cut_states(dfa, reached & between, vocabulary)
        if not lost.any():
            return dfa
        if lost[0]:
            return empty()
        left = dfa.transitions.copy()
        left[np.append(lost, False)[left]] = -1  # (-1, none, is the last)
        dfa = from_table(left, dfa.accepting.view(np.uint8).copy())  # without these, others may be lost
    return dfa


def _cut_states(dfa: Dfa, sources: Flags, vocabulary: Vocabulary) -> Flags:
    """The states inside characters that beginnings cut by tokens lead to from states between characters."""
    cut = np.zeros(len(dfa), np.bool_)
    layers = _cut_layers(vocabulary)
    if _width(layers) * len(dfa) > MOST_STEPS:
        return ~cut
    alike = {dfa.transitions[state, 0xC0:].tobytes(): state for state in np.flatnonzero(sources).tolist()}
    for _, targets in _steps(dfa, np.array(list(alike.values()), np.int32), layers):
        cut[targets] = True
    return cut


class _Layer(NamedTuple):
    """Beginnings of texts of one length, in a trie of texts: where each goes on from in the layer before, its last
    byte, and whether it is one of the texts."""

    above: npt.NDArray[np.int64]
    bytes: npt.NDArray[np.uint8]
    is_whole: Flags


def _layers(texts: Collection[bytes]) -> list[_Layer]:
    whole, layers, index = set(texts), list[_Layer](), {b"": 0}
    for length in range(1, max(map(len, whole), default=0) + 1):
        here = sorted({text[:length] for text in whole if len(text) >= length})
        above = np.array([index[text[:-1]] for text in here], np.int64)
        last = np.array([text[-1] for text in here], np.uint8)
        layers.append(_Layer(above, last, np.array([text in whole for text in here], np.bool_)))
        index = {text: number for number, text in enumerate(here)}
    return layers


@lru_cache(8)
def _cut_layers(vocabulary: Vocabulary) -> list[_Layer]:
    return _layers(_cuts(vocabulary))


@lru_cache(8)
def _whole_layers(vocabulary: Vocabulary) -> list[_Layer]:
    return _layers(_whole_characters(vocabulary))


def _width(layers: list[_Layer]) -> int:
    return sum(len(layer.bytes) for layer in layers)


_AT_ONCE = 64
"""States from which texts are followed together."""


def _steps(dfa: Dfa, sources: Table, layers: list[_Layer]) -> Iterator[tuple[Table, Table]]:
    """Where texts lead from some states: pairs of these and the states after, some at a time."""
    table = np.append(dfa.transitions, np.full((1, 256), -1, np.int32), axis=0)  # the last: nowhere
    for first in range(0, len(sources), _AT_ONCE):
        some = sources[first : first + _AT_ONCE]
        states = some[:, None]
        for layer in layers:
            states = table[states[:, layer.above], layer.bytes]
            after = states[:, layer.is_whole]
            indices, places = np.nonzero(after >= 0)
            yield some[indices], after[indices, places]


def _reached(transitions: npt.NDArray[np.int32], usable: Flags) -> Flags:
    """The states that bytes of a set lead to from the start."""
    reached = np.zeros(len(transitions), np.bool_)
    layer = np.array([0])
    while len(layer):
        reached[layer] = True
        targets = transitions[layer][:, usable]
        targets = np.unique(targets[targets >= 0])
        layer = targets[~reached[targets]]
    return reached


def _completed(dfa: Dfa, alone: Flags, vocabulary: Vocabulary) -> Flags:
    """The states from which bytes that stand alone, and whole characters, lead to one that accepts."""
    sources, columns = np.nonzero((dfa.transitions >= 0) & alone)
    edges = [sources * len(dfa) + dfa.transitions[sources, columns]]
    layers = _whole_layers(vocabulary)
    if _width(layers) * len(dfa) <= MOST_STEPS:
        for before, after in _steps(dfa, np.arange(len(dfa), dtype=np.int32), layers):
            edges.append(np.unique(before.astype(np.int64) * len(dfa) + after))
    sources, targets = np.divmod(np.unique(np.concatenate(edges)), len(dfa))
    order = np.argsort(targets, kind="stable")
    sources = sources[order]
    starts = np.searchsorted(targets[order], np.arange(len(dfa) + 1))
    completed: Flags = dfa.accepting.copy()
    work = np.flatnonzero(completed).tolist()
    while work:
        state = work.pop()
        before = np.unique(sources[starts[state] : starts[state + 1]])
        fresh = before[~completed[before]]
        completed[fresh] = True
        work += fresh.tolist()
    return completed
