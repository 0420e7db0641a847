"""Tagged text: free text in which certain strings begin a constrained part, such as tool calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from structgen.automata.dfa import Dfa, empty, from_table, universal
from structgen.engines.cfg.compiled import CfgGrammar
from structgen.engines.composed.grammar import ComposedGrammar, embed
from structgen.engines.protocols import Grammar
from structgen.errors import ConstraintError, OptionsError
from structgen.grammar.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.grammar.regular import word_dfa
from structgen.grammar.token_terminals import TokenPattern, pattern_of
from structgen.vocabulary.special_tokens import SpecialToken
from structgen.vocabulary.vocabulary import Vocabulary

FreeText = Literal["anywhere", "before", "none"]
Mark: TypeAlias = str | SpecialToken
"""What delimits parts: a string, or a special token."""
Tag: TypeAlias = Mark | tuple[Mark, Mark]
"""A trigger, or a trigger and what follows the constrained part."""
MAX_LIMIT = 10_000
"""Largest ``min_uses`` and ``max_uses``: each use is a rule of its own."""


def compile_tag_dispatch(
    tags: Mapping[Tag, Grammar],
    vocabulary: Vocabulary,
    *,
    min_uses: int = 0,
    max_uses: int | None = None,
    stop: Mark | None = None,
    free_text: FreeText = "anywhere",
) -> ComposedGrammar | CfgGrammar:
    """Compile tagged text: free text until a trigger, then what the trigger's grammar allows, then free text again.

    Free text is any text (valid UTF-8) that holds no trigger and not ``stop``, nor spells the name of a special token
    that delimits: the first trigger that is written begins its part. After ``max_uses`` parts no trigger can be
    written. Where a part can end in several places (a number), all of them count.

    Args:
        tags: compiled grammars, of any kind, by trigger, or by trigger and what follows the part
            (``("<tool>", "</tool>")``): strings, or special tokens (``SpecialToken("<|call|>")``).
        vocabulary: the model's tokens.
        min_uses: parts that must be there before the text may end.
        max_uses: parts that may be there; None: any number.
        stop: what ends the text, and without which it does not end; None: it may end in free text.
        free_text: where free text may be: "anywhere"; "before": not after the part that is the ``max_uses``-th;
            "none": only parts (and ``stop``).

    Raises:
        ConstraintError: no tags, an empty or malformed string, one that holds another, a special token that the
            vocabulary does not have, or another vocabulary.
        OptionsError: counts that cannot be met, or another ``free_text``.
    """
    check_tags(tags, stop)
    check_options(min_uses, max_uses, free_text)
    stop = None if stop is None else _with_name(stop, vocabulary)
    pairs = check_tags([_with_names(tag, vocabulary) for tag in tags], stop)
    builder = _Builder(pairs, stop, free_text != "none")
    contents = {}
    for (trigger, end), grammar in zip(pairs, tags.values(), strict=True):
        contents[builder.tag(trigger, end)] = grammar
    builder.count(min_uses, max_uses, text_after=free_text == "anywhere")
    return embed(builder.grammar(), contents, vocabulary)


def check_tags(tags: Iterable[Tag], stop: Mark | None) -> list[tuple[Mark, Mark]]:
    """Trigger and closing mark of each tag ("" for none).

    Raises:
        ConstraintError: see `compile_tag_dispatch`.
    """
    pairs = []
    for tag in tags:
        pair = tag if isinstance(tag, tuple) else (tag, "")
        if not (len(pair) == 2 and all(isinstance(part, str | SpecialToken) for part in pair)):
            raise ConstraintError(f"a tag is a trigger or (trigger, closing string), not {tag!r}")
        pairs.append(pair)
    if not pairs:
        raise ConstraintError("tag dispatch needs at least one tag: {trigger: grammar}")
    if not isinstance(stop, str | SpecialToken | None):
        raise ConstraintError(f"stop is a string or a SpecialToken, not {stop!r:.100}")
    strings = [str(trigger) for trigger, _ in pairs] + ([] if stop is None else [str(stop)])
    for text in (*strings, *(str(end) for _, end in pairs)):
        if any(0xD800 <= ord(c) < 0xE000 for c in text):
            raise ConstraintError(f"{text!r} holds half of a surrogate pair, which no text can; write the character")
    if not all(strings):
        raise ConstraintError(
            "a trigger or stop string is empty, so it would be everywhere. For a part at the very start, use the "
            "part's own constraint, or free_text='none' with a trigger"
        )
    for i, text in enumerate(strings):
        for j, other in enumerate(strings):
            if i != j and other in text:
                raise ConstraintError(
                    f"{other!r} is in {text!r}, which could therefore never be written as a whole. Make the strings "
                    "differ, or use the shorter one and let its grammar tell the rest apart"
                )
    return pairs


def _with_names(tag: Tag, vocabulary: Vocabulary) -> Tag:
    """A tag whose special tokens are named by their names, where they have one."""
    if isinstance(tag, tuple):
        return _with_name(tag[0], vocabulary), _with_name(tag[1], vocabulary)
    return _with_name(tag, vocabulary)


def _with_name(mark: Mark, vocabulary: Vocabulary) -> Mark:
    if isinstance(mark, SpecialToken) and isinstance(mark.token, int):
        name = vocabulary.names_of(vocabulary.id_of(mark))
        return SpecialToken(name) if name in vocabulary.special_tokens else mark
    return mark


def check_options(min_uses: int, max_uses: int | None, free_text: str) -> None:
    """Raise OptionsError where these do not go together; see `compile_tag_dispatch`."""
    check_counts("uses", min_uses, max_uses)
    if free_text not in ("anywhere", "before", "none"):
        raise OptionsError(f"free_text must be 'anywhere', 'before' or 'none', not {free_text!r}")
    if free_text == "before" and max_uses is None:
        raise OptionsError("free_text='before' means: not after the last part, so it needs max_uses")


def check_counts(what: str, least: int, most: int | None) -> None:
    """Raise OptionsError where a number of things cannot be from ``least`` to ``most`` (None: no limit)."""
    for name, count in ((f"min_{what}", least), (f"max_{what}", 0 if most is None else most)):
        if not (isinstance(count, int) and 0 <= count <= MAX_LIMIT):
            raise OptionsError(f"{name} must be an integer from 0 to {MAX_LIMIT:,}, not {count!r}")
    if most is not None and most < least:
        raise OptionsError(f"max_{what} is {most}, less than min_{what}, {least}")


class _Builder:
    """The grammar of tagged text. Nonterminals: 0 start, 1 one part, 2 the end in free text, then one a count."""

    def __init__(self, tags: Sequence[tuple[Mark, Mark]], stop: Mark | None, has_text: bool) -> None:
        self._stop = stop
        self._terminals: list[Terminal] = []
        self._rules: list[Rule] = []
        self._size = 3
        self._words = _forbidden(tags, stop)
        self._table = word_search(self._words) if has_text else None
        self._text = self._terminal("TEXT", free_text_dfa(self._table)) if self._table is not None else -1
        for ending in self._up_to(stop) if stop is not None else [(), (~self._text,)] if has_text else [()]:
            self._rules.append(Rule(2, ending))

    def tag(self, trigger: Mark, end: Mark) -> int:
        """Add a tag; gives the terminal of its part."""
        part = self._terminal(f"PART {trigger!r}", empty())
        closing = (~self._word(end),) if end else ()
        for beginning in self._up_to(trigger):
            self._rules.append(Rule(1, (*beginning, ~part, *closing)))
        return part

    def count(self, least: int, most: int | None, *, text_after: bool) -> None:
        """Add the rules that count parts."""
        here = 0
        for used in range(least if most is None else most):
            if used >= least:
                self._rules.append(Rule(here, (2,)))
            self._rules.append(Rule(here, (1, self._size)))
            here, self._size = self._size, self._size + 1
        if most is None:
            self._rules.append(Rule(here, (1, here)))
        if most is None or text_after:
            self._rules.append(Rule(here, (2,)))
        else:
            self._rules.append(Rule(here, () if self._stop is None else (~self._word(self._stop),)))

    def grammar(self) -> ContextFreeGrammar:
        """The normal form."""
        names = ("start", "part", "end", *(f"count{i}" for i in range(1, self._size - 2)))
        return ContextFreeGrammar(tuple(self._terminals), names, tuple(self._rules), 0)

    def _up_to(self, word: Mark) -> list[tuple[int, ...]]:
        """Free text, perhaps none, and the word, which it does not hold, nor any other."""
        if self._table is None:
            return [(~self._word(word),)]
        if isinstance(word, SpecialToken):  # which no text can begin
            return [(~self._word(word),), (~self._text, ~self._word(word))]
        data = word.encode()
        if any(data.startswith(other[-n:]) for other in self._words for n in range(1, len(other)) if n < len(data)):
            # Where free text and the first bytes of the word make another (or the same) word, that one came first.
            text = free_text_dfa(self._table, self._words.index(data))
            return [(~self._terminal(f"TEXT {word!r}", text),)]
        return [(~self._word(word),), (~self._text, ~self._word(word))]

    def _word(self, word: Mark) -> int:
        if isinstance(word, SpecialToken):
            return self._terminal(repr(word), empty(), pattern_of(word))
        return self._terminal(repr(word), word_dfa(word))

    def _terminal(self, name: str, dfa: Dfa, tokens: TokenPattern | None = None) -> int:
        known = next((i for i, terminal in enumerate(self._terminals) if terminal.name == name), None)
        if known is not None:
            return known
        self._terminals.append(Terminal(name, dfa, tokens=tokens))
        return len(self._terminals) - 1


def _forbidden(tags: Sequence[tuple[Mark, Mark]], stop: Mark | None) -> list[bytes]:
    """What free text must not hold: triggers and ``stop``, and the names of special tokens that delimit.

    Names are so forbidden that whoever reads the output by them finds the same parts.
    """
    begin = [trigger for trigger, _ in tags] + ([] if stop is None else [stop])
    words = [str(mark) for mark in begin if isinstance(mark, str) or isinstance(mark.token, str)]
    for _, end in tags:
        name = end.token if isinstance(end, SpecialToken) and isinstance(end.token, str) else ""
        if name and not any(word in name or name in word for word in words):
            words.append(name)
    return [word.encode() for word in words]


def word_search(words: Sequence[bytes]) -> npt.NDArray[np.int32]:
    """int32[n, 256]: the automaton that searches for the first of some words (Aho and Corasick, 1975), from state 0.

    An entry ~i says that word i is complete. No word may hold another. O(256 · bytes of the words).
    """
    children: list[dict[int, int]] = [{}]
    for i, word in enumerate(words):
        node = 0
        for byte in word[:-1]:
            if byte not in children[node]:
                children[node][byte] = len(children)
                children.append({})
            node = children[node][byte]
        children[node][word[-1]] = ~i
    table = np.zeros((len(children), 256), np.int32)
    queue = deque([(0, 0)])  # a state, and that of its longest proper suffix
    while queue:
        node, suffix = queue.popleft()
        if node:
            table[node] = table[suffix]
        for byte, child in children[node].items():
            if child > 0:
                queue.append((child, int(table[suffix, byte]) if node else 0))
            table[node, byte] = child
    return table


def free_text_dfa(search: npt.NDArray[np.int32], word: int | None = None) -> Dfa:
    """Valid UTF-8 without any of the words of a search: not empty, or (``word`` given) with that word behind it."""
    utf8 = universal()
    states: dict[tuple[int, int], int] = {(-1, 0): 0}  # states of both; the search's is -1 at the start of the text
    rows, accepting = [], []
    todo = [(-1, 0)]
    end = -2  # of the text that the word follows
    for node, place in todo:
        row = np.full(256, -1, np.int32)
        for byte in np.flatnonzero(utf8.transitions[place] >= 0).tolist():
            following = int(search[max(node, 0), byte])
            if following < 0:
                row[byte] = end if word == ~following else -1
                continue
            pair = following, int(utf8.transitions[place, byte])
            if pair not in states:
                states[pair] = len(states)
                todo.append(pair)
            row[byte] = states[pair]
        rows.append(row)
        accepting.append(word is None and node >= 0 and bool(utf8.accepting[place]))
    table = np.stack([*rows, np.full(256, -1, np.int32)])
    table[table == end] = len(rows)
    return from_table(table, np.array([*accepting, word is not None], np.uint8))
