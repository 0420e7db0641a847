"""Tagged text: free text in which certain strings begin a constrained part, such as tool calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from structgen.core.engines.cfg.compiled import CfgGrammar
from structgen.core.engines.composed.grammar import ComposedGrammar, embed
from structgen.core.engines.composed.tags import FreeText, Mark, Tag, TagRules, Tags, pairs_of, tag_rules
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.grammars.regular import word_dfa
from structgen.core.grammars.token_terminals import TokenPattern, pattern_of
from structgen.core.regex.dfa import Dfa, empty
from structgen.core.regex.free_text import can_join, free_text_dfa, word_search
from structgen.core.vocabulary.special_tokens import SpecialToken
from structgen.core.vocabulary.vocabulary import Vocabulary

__all__ = ["FreeText", "Mark", "Tag", "compile_tag_dispatch"]


def compile_tag_dispatch(
    tags: Tags[Grammar],
    vocabulary: Vocabulary,
    *,
    min_uses: int = 0,
    max_uses: int | None = None,
    stop: Mark | None = None,
    free_text: FreeText = "anywhere",
    triggers: Iterable[Mark] | None = None,
    excludes: Iterable[str] = (),
    separator: Mark | None = None,
) -> ComposedGrammar | CfgGrammar:
    """Compile tagged text: free text until a trigger, then what the trigger's grammar allows, then free text again.

    Free text is any text (valid UTF-8) that holds no trigger, not ``stop`` and none of ``excludes``, nor spells the
    name of a special token that delimits: the first trigger that is written begins its part. After ``max_uses`` parts
    no trigger can be written. Where a part can end in several places (a number), or tags that begin alike can both be
    read, all of them count.

    Args:
        tags: compiled grammars, of any kind, by what begins the part, or by that and what follows the part
            (``("<tool>", "</tool>")``): strings, or special tokens (``SpecialToken("<|call|>")``). As pairs
            ``[(tag, grammar), ...]`` where tags are the same. What begins a part is the trigger of its tag, if
            ``triggers`` are not given.
        vocabulary: the model's tokens.
        min_uses: parts that must be there before the text may end.
        max_uses: parts that may be there; None: any number.
        stop: what ends the text, and without which it does not end; None: it may end in free text.
        free_text: where free text may be: "anywhere"; "before": not after the part that is the ``max_uses``-th;
            "after": not before the first part, so that the text begins with a part, or has none; "instead": only where
            there is no part; "none": only parts (and ``stop``).
        triggers: strings that the tags begin with, each tag with one: where free text comes to one of them, one of its
            tags must follow.
        excludes: strings that free text must not hold.
        separator: what stands between two parts, where no free text can ("instead", "none").

    Raises:
        ConstraintError: no tags, an empty or malformed string, one that holds another, a special token that the
            vocabulary does not have, or another vocabulary.
        OptionsError: counts that cannot be met, another ``free_text``, or options that contradict each other.
    """
    pairs = list(pairs_of(tags))
    rules = tag_rules(
        [tag for tag, _ in pairs],
        min_uses=min_uses,
        max_uses=max_uses,
        stop=stop,
        free_text=free_text,
        triggers=triggers,
        excludes=excludes,
        separator=separator,
    )
    return compile_rules(rules, [grammar for _, grammar in pairs], vocabulary)


def compile_rules(rules: TagRules, parts: Sequence[Grammar], vocabulary: Vocabulary) -> ComposedGrammar | CfgGrammar:
    """Compile tagged text whose rules are checked, with a grammar for each tag; see `compile_tag_dispatch`."""
    builder = _Builder(rules.renamed(partial(_named, vocabulary=vocabulary)))
    return embed(builder.grammar(), dict(zip(builder.parts, parts, strict=True)), vocabulary)


def _named(mark: Mark, vocabulary: Vocabulary) -> Mark:
    """A special token by its name, if it has one."""
    if isinstance(mark, SpecialToken) and isinstance(mark.token, int):
        name = vocabulary.names_of(vocabulary.id_of(mark))
        return SpecialToken(name) if name in vocabulary.special_tokens else mark
    return mark


class _Builder:
    """The grammar of tagged text.

    Attributes:
        parts: the terminal of each tag's parts.
    """

    def __init__(self, rules: TagRules) -> None:
        self._given = rules
        self._terminals: list[Terminal] = []
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        self._rules: list[Rule] = []
        has_text = rules.free_text != "none"
        self._words = [word.encode() for word in rules.forbidden] if has_text else []
        self._search = word_search(self._words)
        self._text = self._terminal("TEXT", free_text_dfa(self._search)) if has_text else -1
        self.parts = [self._terminal(f"PART {i}", empty()) for i in range(len(rules.tags))]
        self._count()

    def grammar(self) -> ContextFreeGrammar:
        """The normal form."""
        return ContextFreeGrammar(tuple(self._terminals), tuple(self._names), tuple(self._rules), 0)

    def _count(self) -> None:
        """Rules that count parts; nonterminal n has n of them before it."""
        given = self._given
        last = max(given.min_uses, 1) if given.max_uses is None else given.max_uses
        self._names += [f"after {used} parts" for used in range(last + 1)]
        self._after = self._after_triggers()
        part = {with_text: self._part(with_text) for with_text in (True, False)}
        end = {with_text: self._end(with_text) for with_text in (True, False)}
        between = self._exactly(given.separator or "")
        for used in range(last + 1):
            if used >= given.min_uses:
                self._rules.append(Rule(used, (end[given.text_at_end(used)],)))
            if used < last or given.max_uses is None:
                symbols = (*(between if used else ()), part[given.text_before(used)], min(used + 1, last))
                self._rules.append(Rule(used, symbols))

    def _after_triggers(self) -> dict[Mark, int]:
        """For each trigger what follows it: the rest of what begins a part, the part, and what closes it."""
        terminals: dict[Mark, int] = {}
        for (begin, end), trigger, terminal in zip(self._given.tags, self._given.triggers, self.parts, strict=True):
            if trigger not in terminals:
                terminals[trigger] = self._new(f"after {trigger!r}")
            remaining = begin[len(trigger) :] if isinstance(begin, str) and isinstance(trigger, str) else ""
            self._rules.append(Rule(terminals[trigger], (*self._exactly(remaining), ~terminal, *self._exactly(end))))
        return terminals

    def _part(self, with_text: bool) -> int:
        """One part, perhaps with free text before it."""
        part = self._new("part")
        for trigger, after in self._after.items():
            self._rules += [Rule(part, (*beginning, after)) for beginning in self._up_to(trigger, with_text)]
        return part

    def _end(self, with_text: bool) -> int:
        """The end of the output, perhaps with free text before it."""
        end, stop = self._new("end"), self._given.stop
        if stop is not None:
            endings = self._up_to(stop, with_text)
        else:
            endings = [(), (~self._text,)] if with_text and self._text >= 0 else [()]
        self._rules += [Rule(end, ending) for ending in endings]
        return end

    def _up_to(self, word: Mark, with_text: bool) -> list[tuple[int, ...]]:
        """The word, and (``with_text``) free text before it, which does not hold it, nor any other."""
        alone = self._exactly(word)
        if not with_text or self._text < 0:
            return [alone]
        if isinstance(word, str):
            data = word.encode()
            if can_join(self._words, data):
                # Where free text and the first bytes of the word make another (or the same) word, that came first.
                text = free_text_dfa(self._search, self._words.index(data))
                return [(~self._terminal(f"TEXT {word!r}", text),)]
        return [alone, (~self._text, *alone)]

    def _exactly(self, word: Mark) -> tuple[int, ...]:
        """The word as symbols of a rule."""
        if isinstance(word, SpecialToken):
            return (~self._terminal(repr(word), empty(), pattern_of(word)),)
        return (~self._terminal(repr(word), word_dfa(word)),) if word else ()

    def _new(self, name: str) -> int:
        self._names.append(name)
        return len(self._names) - 1

    def _terminal(self, name: str, dfa: Dfa, tokens: TokenPattern | None = None) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self._terminals)
            self._terminals.append(Terminal(name, dfa, tokens=tokens))
        return self._numbers[name]
