"""Grammars inside a context-free grammar: some of its terminals are texts that other grammars read."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import count
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from structgen.core.engines.byte_sets import byte_set, flags
from structgen.core.engines.cfg.analysis import CfgTables
from structgen.core.engines.cfg.compiled import MASK_BYTES, STATE_BYTES, CfgGrammar, compile_grammar
from structgen.core.engines.cfg.completion import CfgCompletions
from structgen.core.engines.cfg.last_bytes import bytes_before, last_bytes_of
from structgen.core.engines.cfg.machine import CfgAutomata, CfgMachine
from structgen.core.engines.composed.configuration import Configuration
from structgen.core.engines.composed.crossings import crossing_index
from structgen.core.engines.composed.matcher import ComposedMatcher
from structgen.core.engines.composed.monitored import Answers, MonitoredTerminal
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.inlining import inlined
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule
from structgen.core.grammars.region_rules import cut_regions, regions_of, used_terminals, without_terminals
from structgen.core.grammars.token_terminals import resolved
from structgen.core.kernels.cfg.layout import FAR
from structgen.core.regions import Region
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, EmptyLanguageError, GrammarTooComplexError


class Content:
    """A grammar that reads a terminal of another.

    Attributes:
        grammar: the grammar.
        last: bytes that its texts can end with, as a set.
        ends: bytes[256], 1 for these bytes.
        first: bytes that its texts can begin with, as a set.
        is_nullable: whether the empty text is one of its texts; then the rules around may leave it out.
        shortest: a shortest text.
        region: how its texts are written, where that is said of them.
        key: equal for the same content.
        asked: the monitor that narrows it where it begins; None: nothing does.
    """

    def __init__(self, grammar: Grammar, key: Hashable = None, region: Region | None = None) -> None:
        start = grammar.matcher()
        self.grammar, self.region = grammar, region
        self.last = grammar.last_bytes()
        self.ends = flags(self.last)
        self.first = byte_set(np.flatnonzero(start.next_bytes()).tolist())
        self.is_nullable = start.is_accepting()
        self.shortest = start.shortest_completion()
        self.key = id(self) if key is None else key
        self.asked = cast(MonitoredTerminal, grammar) if hasattr(grammar, "suggested") else None

    def narrowed(self, grammar: Grammar, key: Hashable) -> Content:
        """This content with fewer texts. The bytes that texts end with stay as they are, which index crossings."""
        content = Content(grammar, key)
        content.last, content.ends = self.last, self.ends
        return content


class ComposedGrammar:
    """A context-free grammar some of whose terminals are read by other grammars. Make one with `embed`.

    Attributes:
        source: the normal form of the grammar around.
        vocabulary: the tokens that masks are over.
        outer: the grammar around.
        contents: what reads each embedded terminal.
        before: bytes that can stand right before an embedded text, as a set.
        ends: bytes[256], 1 for these bytes.
        first: bytes that embedded texts can begin with, as a set.
        crossings: the places inside the tokens.
        end_bits: word and bit of each end of sequence in a row.
        has_regions: whether it, or one inside, says of some texts how they are written.

    Args:
        regions: terminals whose texts are regions.
        form: what `normal_form` gives, where it is not the source with its contents.
    """

    def __init__(
        self,
        source: ContextFreeGrammar,
        contents: Mapping[int, Grammar],
        vocabulary: Vocabulary,
        regions: Mapping[int, Region] | None = None,
        form: tuple[ContextFreeGrammar, dict[int, Grammar]] | None = None,
    ) -> None:
        shared: dict[int, Content] = {}
        self._form = (source, dict(contents)) if form is None else form
        self.source = source
        self.vocabulary = vocabulary
        regions = regions or {}
        self.contents = {
            t: shared.setdefault(id(g), Content(g, region=regions.get(t))) for t, g in sorted(contents.items())
        }
        self.has_regions = bool(regions) or any(g.matcher().partial_parses() is not None for g in contents.values())
        monitored = {t for t, content in self.contents.items() if content.asked is not None}
        self.is_monitored = bool(monitored)
        source = _with_empty_texts(source, {t for t, content in self.contents.items() if content.is_nullable})
        words = {t: content.shortest for t, content in self.contents.items()}
        self.outer: _Outer = _Outer(source, vocabulary, words, monitored)
        self.before = bytes_before(source, contents)
        self._last = last_bytes_of(source, {t: content.last for t, content in self.contents.items()})
        self.ends: bytes = flags(self.before)
        self.first = 0
        for content in self.contents.values():
            self.first |= content.first
        bits = (np.uint32(1) << np.arange(32, dtype=np.uint32)).view(np.int32)
        self.end_bits = [(token >> 5, bits[token & 31]) for token in vocabulary.eos_token_ids]
        self._begin()

    def _begin(self) -> None:
        """What is found while texts are read, or of the vocabulary alone."""
        self.crossings = crossing_index(self.vocabulary.text_only)  # a special token is in one text only
        self._memo: dict[Hashable, Any] = {}
        self._machine: CfgMachine | None = None
        self._lock = threading.Lock()
        self._scratch = threading.local()

    def __getstate__(self) -> dict[str, Any]:
        """All but what is found while texts are read."""
        return {name: value for name, value in vars(self).items() if name not in _FOUND}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The same grammar, of which nothing was read."""
        vars(self).update(state)
        self._begin()

    def matcher(self) -> ComposedMatcher:
        """See `Grammar.matcher`."""
        machine = self.outer.machine()
        if machine is not self._machine:  # what is known of the old one's configurations says nothing of the new one's
            with self._lock:
                self._memo, self._machine = {}, machine
        return ComposedMatcher(self)

    def last_bytes(self) -> int:
        """See `Grammar.last_bytes`. O(1)."""
        return self._last

    def answers(self) -> Answers | None:
        """What monitors say of one text and its forks; None: there are none."""
        return Answers(self) if self.is_monitored else None

    def normal_form(self) -> tuple[ContextFreeGrammar, dict[int, Grammar]] | None:
        """See `Grammar.normal_form`. Monitors are asked of this grammar's text, so it stays by itself."""
        return None if self.is_monitored else self._form

    @property
    def completions_are_shortest(self) -> bool:
        """See `Grammar.completions_are_shortest`: embedded texts need not be, nor configurations that were given up."""
        return False

    @property
    def memory_bytes(self) -> int:
        """Bytes of the outer grammar and of the embedded ones."""
        grammars = {id(content.grammar): content.grammar for content in self.contents.values()}
        return self.outer.memory_bytes + sum(grammar.memory_bytes for grammar in grammars.values())

    @property
    def is_outdated(self) -> bool:
        """See `Grammar.is_outdated`: an embedded grammar is."""
        return any(content.grammar.is_outdated for content in self.contents.values())

    def is_wide(self, configuration: Configuration) -> bool:
        """Whether what a configuration reads can end nearly everywhere, such as a line of text."""
        return (self.before if configuration.content is None else configuration.content.last).bit_count() > WIDE

    def scratch(self, rows: int) -> npt.NDArray[np.int32]:
        """A bitmask of so many rows or more for the thread that asks, the same each time while it is large enough."""
        buffers: npt.NDArray[np.int32] | None = getattr(self._scratch, "rows", None)
        if buffers is None or len(buffers) < rows:
            buffers = self._scratch.rows = np.empty((2 * rows, -(-self.vocabulary.size // 32)), np.int32)
        return buffers

    def recall(self, key: Hashable) -> Any:
        """What was remembered under a key, or None."""
        return self._memo.get(key)

    def remember(self, key: Hashable, value: Any) -> None:
        """Keep a value until there are too many."""
        if len(self._memo) >= MOST_REMEMBERED:
            self._memo = {}
        self._memo[key] = value


_FOUND = ("crossings", "_memo", "_machine", "_lock", "_scratch")
MOST_REMEMBERED = 1 << 14
WIDE = 64
"""A text that can end with more bytes than this crosses in so many tokens that those allowed anyway are left out."""


def _with_empty_texts(source: ContextFreeGrammar, nullable: set[int]) -> ContextFreeGrammar:
    """The grammar with these embedded terminals made optional: their empty text is left to the rules."""
    if not nullable:
        return source
    optional = {~t: len(source.nonterminals) + i for i, t in enumerate(sorted(nullable))}
    names = tuple(f"{source.terminals[~symbol].name}?" for symbol in optional)
    rules = [Rule(r.lhs, tuple(optional.get(symbol, symbol) for symbol in r.rhs), r.position) for r in source.rules]
    for symbol, number in optional.items():
        rules += [Rule(number, (symbol,)), Rule(number, ())]
    return replace(source, nonterminals=source.nonterminals + names, rules=tuple(rules))


class _Outer(CfgGrammar):
    """A grammar with embedded terminals that knows their shortest texts, and which of them monitors may close."""

    def __init__(
        self, source: ContextFreeGrammar, vocabulary: Vocabulary, words: Mapping[int, bytes], monitored: set[int]
    ) -> None:
        super().__init__(source, vocabulary, frozenset(words), MASK_BYTES, STATE_BYTES)
        self._words = {self.tables.embedded[t]: word for t, word in words.items() if t in self.tables.embedded}
        self._monitored = {self.tables.embedded[t] for t in monitored if t in self.tables.embedded}

    @cached_property
    def completions(self) -> CfgCompletions:
        """Shortest texts, embedded ones included."""
        return _OuterCompletions(self.source, self.tables, self.automata, self._words)

    @cached_property
    def closed(self) -> CfgCompletions:
        """The same where no monitored terminal may begin."""
        words = dict.fromkeys(self._monitored)
        return _OuterCompletions(self.source, self.tables, self.automata, {**self._words, **words})


class _OuterCompletions(CfgCompletions):
    def __init__(
        self, grammar: ContextFreeGrammar, tables: CfgTables, automata: CfgAutomata, words: Mapping[int, bytes | None]
    ) -> None:
        super().__init__(grammar, tables, automata)
        self._of_embedded = words

    def class_word(self, kind: int) -> bytes:
        """A shortest text of a class of terminals."""
        word = self._of_embedded.get(kind)
        return super().class_word(kind) if word is None else word

    def class_length(self, kind: int) -> int:
        """Bytes of `class_word`."""
        if kind not in self._of_embedded:
            return super().class_length(kind)
        word = self._of_embedded[kind]
        return FAR if word is None else len(word)


def embed(
    grammar: ContextFreeGrammar, contents: Mapping[int, Grammar], vocabulary: Vocabulary | None = None
) -> ComposedGrammar | CfgGrammar:
    """Compile a context-free grammar some of whose terminals are read by other grammars.

    A text is in the language if it splits into texts of terminals as the rules say, where an embedded terminal's texts
    are those of its grammar. Every split counts, as everywhere in the context-free machine. Contents that are such
    grammars themselves are put in place of their terminals, so that however deep they nest, the machine reads one
    grammar: a `CfgGrammar`, where no content of another kind is left.

    Args:
        grammar: the normal form (`structgen.core.grammars.lark_reader.read_lark` and its like give it). The automata of
            embedded terminals are not looked at.
        contents: compiled grammars, of any kind, by terminal number.
        vocabulary: the model's tokens; None: that of the contents. The grammar's own names the special tokens that
            it and the contents name.

    Raises:
        ConstraintError: no such terminal, it is ignored between others, or the vocabularies differ.
        EmptyLanguageError: no text is in the language.
    """
    for terminal, content in contents.items():
        if not 0 <= terminal < len(grammar.terminals):
            raise ConstraintError(
                f"there is no terminal {terminal} to embed a grammar in; there are 0 to {len(grammar.terminals) - 1}"
            )
        if terminal in grammar.ignored:
            raise ConstraintError(
                f"the terminal {grammar.terminals[terminal].name} is ignored, so no grammar can be embedded in it. "
                "Ignore a terminal with a pattern."
            )
        vocabulary = vocabulary or content.vocabulary
    if vocabulary is None:
        raise ConstraintError("without embedded grammars a vocabulary is needed; or use compile_grammar")
    grammar, vocabulary = resolved(grammar, vocabulary)
    joint = vocabulary.naming(token for content in contents.values() for token in content.vocabulary.named)
    for terminal, content in contents.items():
        if not content.vocabulary.reads_within(joint):
            raise _other_vocabulary(grammar.terminals[terminal].name, content.vocabulary, joint)
    grammar, left = _in_place(grammar, contents)
    return _composed(grammar, left, joint, count())


def _composed(
    grammar: ContextFreeGrammar, contents: Mapping[int, Grammar], vocabulary: Vocabulary, made: Iterator[int]
) -> ComposedGrammar | CfgGrammar:
    """A grammar with its contents, and its regions as contents besides. ``made`` counts these."""
    if not regions_of(grammar):
        return ComposedGrammar(grammar, contents, vocabulary) if contents else compile_grammar(grammar, vocabulary)
    cut = cut_regions(grammar)
    texts, empty = dict[int, Grammar](), set[int]()
    for terminal, (_, part) in cut.parts.items():
        if any(hasattr(content, "suggested") for content in _used(part, contents).values()):
            raise ConstraintError(
                f"the region {cut.around.terminals[terminal].name} holds a terminal with a monitor, which is asked of "
                "the whole text; let the region begin after it, or end before it"
            )
        if next(made) >= MAX_REGIONS:
            raise GrammarTooComplexError("the regions, those in regions included", budget="regions", limit=MAX_REGIONS)
        try:
            texts[terminal] = _composed(part, _used(part, contents), vocabulary, made)
        except EmptyLanguageError:
            empty.add(terminal)
    around = without_terminals(cut.around, empty)
    regions = {terminal: cut.parts[terminal][0] for terminal in texts}
    inside = {**_used(around, contents), **texts}
    return ComposedGrammar(around, inside, vocabulary, regions, (grammar, dict(contents)))


def _used(grammar: ContextFreeGrammar, contents: Mapping[int, Grammar]) -> dict[int, Grammar]:
    """The contents that a grammar's start rule reaches."""
    used = used_terminals(grammar)
    return {terminal: content for terminal, content in contents.items() if terminal in used}


MAX_REGIONS = 64
"""Regions of one grammar; those in regions count once for each around them."""
MAX_INLINED = 1 << 18
"""What is put in place weighs at most so much, as the machine has bounds; other contents stay apart."""


def _in_place(
    grammar: ContextFreeGrammar, contents: Mapping[int, Grammar]
) -> tuple[ContextFreeGrammar, dict[int, Grammar]]:
    """A grammar with the rules of those contents that have some put in their place, and the contents that are left."""
    if grammar.captures and grammar.ignored:  # a capture could not tell what is ignored around it any more
        return grammar, dict(contents)
    left = dict[int, Grammar]()
    parts: dict[int, tuple[ContextFreeGrammar, Mapping[int, Grammar]]] = {}
    weights = {id(grammar): _weight(grammar)}
    for t, content in contents.items():
        form = content.normal_form()
        if form is not None and id(form[0]) not in weights:
            weight = _weight(form[0])
            if weight + sum(weights.values()) <= MAX_INLINED:
                weights[id(form[0])] = weight
        if form is None or id(form[0]) not in weights:
            left[t] = content
        else:
            parts[t] = form
    if parts:
        grammar, moved = inlined(grammar, parts, left)
        left |= {moved[t] + inner: below for t, (_, part_ids) in parts.items() for inner, below in part_ids.items()}
    return grammar, left


def _weight(grammar: ContextFreeGrammar) -> int:
    """Symbols in rules; terminals, of which the machine takes fewer, count as 16."""
    return sum(len(rule.rhs) + 1 for rule in grammar.rules) + 16 * len(grammar.terminals)


def _other_vocabulary(name: str, given: Vocabulary, wanted: Vocabulary) -> ConstraintError:
    taken = [i for i in wanted.named - given.named if i < given.size and (given.tokens[i] or i in given.eos_token_ids)]
    if given.size == wanted.size and taken:
        names = ", ".join(wanted.names_of(token) for token in sorted(taken)[:5])
        return ConstraintError(
            f"the grammar for {name} takes as text, or as the end, what stands for itself with it: {names}. Compile "
            f"it for vocabulary.naming({sorted(taken)[:5]})"
        )
    return ConstraintError(
        f"the grammar for {name} is compiled for another vocabulary ({given!r}, not {wanted!r}). Compile all for the "
        "same."
    )
