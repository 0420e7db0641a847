"""What delimits the parts of tagged text and where they may be, checked; JSON lines, one value a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar

from structgen.core.engines.cfg.compiled import CfgGrammar
from structgen.core.engines.composed.grammar import ComposedGrammar, embed
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.grammars.regular import word_dfa
from structgen.core.regex.dfa import empty
from structgen.core.vocabulary.special_tokens import SpecialToken
from structgen.errors import ConstraintError, OptionsError
from structgen.options import JsonOptions

FreeText = Literal["anywhere", "before", "after", "instead", "none"]
Mark: TypeAlias = str | SpecialToken
"""What delimits parts: a string, or a special token."""
Tag: TypeAlias = Mark | tuple[Mark, Mark]
"""What begins a part, or that and what follows it."""
T = TypeVar("T")
Tags: TypeAlias = "Mapping[Any, T] | Iterable[tuple[Tag, T]]"
"""What is constrained, by tag; as pairs where tags repeat."""
MAX_LIMIT = 10_000
"""Largest ``min_uses`` and ``max_uses``: each use is a rule of its own."""


@dataclass(frozen=True)
class TagRules:
    """What delimits parts, and where they may be. Make it with `tag_rules`; see `compile_tag_dispatch`.

    Attributes:
        tags: what begins and what closes the parts of each tag ("" for nothing).
        triggers: of each tag, what begins it in free text.
        min_uses, max_uses, stop, free_text, excludes, separator: see `compile_tag_dispatch`.
    """

    tags: tuple[tuple[Mark, Mark], ...]
    triggers: tuple[Mark, ...]
    min_uses: int = 0
    max_uses: int | None = None
    stop: Mark | None = None
    free_text: FreeText = "anywhere"
    excludes: tuple[str, ...] = ()
    separator: Mark | None = None

    def text_before(self, used: int) -> bool:
        """Whether free text may stand before the part that follows ``used`` others."""
        return self.free_text in ("anywhere", "before") or (self.free_text == "after" and used > 0)

    def text_at_end(self, used: int) -> bool:
        """Whether free text may be the end of an output with ``used`` parts."""
        if not used:
            return self.free_text != "none"
        return self.free_text in ("anywhere", "after") or (self.free_text == "before" and used != self.max_uses)

    @property
    def forbidden(self) -> tuple[str, ...]:
        """What free text must not hold: triggers, ``stop``, ``excludes``, and the names of special tokens that delimit.

        Names are so forbidden that whoever reads the output by them finds the same parts. No string holds another.
        """
        searched = [mark for mark in self.searched if isinstance(mark, str) or isinstance(mark.token, str)]
        ends = [
            mark.token for mark in (*(end for _, end in self.tags), self.separator) if isinstance(mark, SpecialToken)
        ]
        words = [*map(str, searched)]
        for text in sorted([*self.excludes, *(name for name in ends if isinstance(name, str))], key=len):
            if not any(word in text for word in words) and not any(text in str(mark) for mark in searched):
                words.append(text)
        return tuple(words)

    @property
    def searched(self) -> list[Mark]:
        """What ends free text."""
        return [*dict.fromkeys(self.triggers), *([] if self.stop is None else [self.stop])]

    def __post_init__(self) -> None:
        if self.free_text != "none":
            _check_search(self.searched, self.excludes)

    def renamed(self, name: Callable[[Mark], Mark]) -> TagRules:
        """The same with other marks; raises as `tag_rules`."""
        tags = tuple((name(begin), name(end)) for begin, end in self.tags)
        stop, separator = (None if mark is None else name(mark) for mark in (self.stop, self.separator))
        return replace(self, tags=tags, triggers=tuple(map(name, self.triggers)), stop=stop, separator=separator)


def pairs_of(tags: Tags[T]) -> Iterator[tuple[Tag, T]]:
    """Tags and what they constrain.

    Raises:
        ConstraintError: neither a mapping nor pairs.
    """
    pairs: Any = tags.items() if isinstance(tags, Mapping) else tags
    for pair in pairs if isinstance(pairs, Iterable) and not isinstance(pairs, str) else [pairs]:
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise ConstraintError(f"tags are {{tag: constraint}} or pairs [(tag, constraint), ...], not {pair!r:.100}")
        yield pair


def tag_rules(
    tags: Iterable[Tag],
    *,
    min_uses: int = 0,
    max_uses: int | None = None,
    stop: Mark | None = None,
    free_text: FreeText = "anywhere",
    triggers: Iterable[Mark] | None = None,
    excludes: Iterable[str] = (),
    separator: Mark | None = None,
) -> TagRules:
    """The rules of tagged text; see `compile_tag_dispatch`.

    Raises:
        ConstraintError: no tags, an empty or malformed string, or one that could never be written.
        OptionsError: options that contradict each other.
    """
    given_triggers = (triggers,) if isinstance(triggers, Mark) else None if triggers is None else tuple(triggers)
    without = (excludes,) if isinstance(excludes, str) else tuple(excludes)
    _check_options(min_uses, max_uses, free_text, separator is not None, bool(without), given_triggers is not None)
    pairs = tuple(tag if isinstance(tag, tuple) else (tag, "") for tag in tags)
    _check_marks(pairs, [*(given_triggers or ()), *([] if stop is None else [stop])], without, separator)
    if not pairs:
        raise ConstraintError("tag dispatch needs at least one tag: {trigger: grammar}")
    if free_text != "none" and not all(str(begin) for begin, _ in pairs):
        raise ConstraintError(
            "the string that begins a part is empty, so it would match everywhere. For a part at the very start, "
            "use the part's own constraint, or free_text='none'"
        )
    each = tuple(begin if given_triggers is None else _trigger(begin, given_triggers) for begin, _ in pairs)
    unused = next((trigger for trigger in given_triggers or () if trigger not in each), None)
    if unused is not None:
        raise ConstraintError(f"no tag begins with the trigger {str(unused)!r}. Leave it out, or add its tags")
    return TagRules(pairs, each, min_uses, max_uses, stop, free_text, without, separator)


def _check_options(
    min_uses: int, max_uses: int | None, free_text: str, separates: bool, excludes: bool, triggers: bool
) -> None:
    """Raise OptionsError where these do not go together."""
    check_counts("uses", min_uses, max_uses)
    if free_text not in ("anywhere", "before", "after", "instead", "none"):
        raise OptionsError(
            f"free_text must be 'anywhere', 'before', 'after', 'instead' or 'none', not {free_text!r}",
            option="free_text",
            value=free_text,
        )
    if free_text == "before" and max_uses is None:
        raise OptionsError("free_text='before' forbids free text after the last part, so it needs max_uses")
    if free_text == "instead" and min_uses:
        raise OptionsError(
            f"free_text='instead' allows free text only where there are no parts, but min_uses is {min_uses}; "
            "use 'none'"
        )
    if separates and free_text not in ("instead", "none"):
        raise OptionsError(
            f"a separator stands between parts that no free text separates: with free_text 'none' or 'instead', not "
            f"{free_text!r}"
        )
    if free_text == "none" and (excludes or triggers):
        raise OptionsError(f"{'excludes' if excludes else 'triggers'} are about free text, and free_text is 'none'")


def _check_marks(pairs: tuple[Any, ...], others: list[Any], excludes: tuple[Any, ...], separator: Mark | None) -> None:
    """Raise ConstraintError where one is not a string, a special token or what it must be."""
    for pair in pairs:
        if not (len(pair) == 2 and all(isinstance(part, Mark) for part in pair)):
            raise ConstraintError(f"a tag is a trigger or (trigger, closing string), not {pair!r:.100}")
    for mark in (*others, *([] if separator is None else [separator])):
        if not isinstance(mark, Mark):
            raise ConstraintError(f"stop, triggers and separator are a string or a SpecialToken, not {mark!r:.100}")
        if not str(mark):
            raise ConstraintError("a trigger, stop or separator is empty, so it would match everywhere; leave it out")
    for text in excludes:
        if not (isinstance(text, str) and text):
            raise ConstraintError(
                f"excludes are strings of at least one character, not {text!r:.100}. Free text holds no special token "
                "anyway"
            )
    for text in (*map(str, (part for pair in pairs for part in pair)), *map(str, others), *excludes, str(separator)):
        if any(0xD800 <= ord(c) < 0xE000 for c in text):
            raise ConstraintError(
                f"{text!r} holds half of a surrogate pair, which is not a character; write a whole one"
            )


def _trigger(begin: Mark, triggers: tuple[Mark, ...]) -> Mark:
    """The one of some triggers that what begins a part begins with; a special token triggers itself."""
    if isinstance(begin, SpecialToken):
        return begin
    matching = [t for t in triggers if isinstance(t, str) and begin.startswith(t)]
    if not matching:
        raise ConstraintError(f"{begin!r} begins with none of the triggers {', '.join(map(repr, map(str, triggers)))}")
    return matching[0]


def _check_search(strings: list[Mark], excludes: tuple[str, ...]) -> None:
    """Raise ConstraintError where one of the strings that free text is searched for hides another."""
    for i, mark in enumerate(strings):
        text = str(mark)
        hidden = next((str(other) for j, other in enumerate(strings) if i != j and str(other) in text), None)
        if hidden is not None:
            raise ConstraintError(
                f"{hidden!r} is in {text!r}, which could therefore never be written as a whole. Make the strings "
                "differ, or use the shorter one as trigger of both (triggers=) or let its grammar distinguish "
                "what follows it"
            )
        hidden = next((other for other in excludes if other in text), None)
        if hidden is not None:
            raise ConstraintError(
                f"{hidden!r}, which free text must not hold (excludes), is in {text!r}, which could therefore never be "
                "written"
            )


def check_counts(what: str, least: int, most: int | None) -> None:
    """Raise OptionsError where a number of things cannot be from ``least`` to ``most`` (None: no limit)."""
    for name, count in ((f"min_{what}", least), (f"max_{what}", 0 if most is None else most)):
        if not (isinstance(count, int) and 0 <= count <= MAX_LIMIT):
            raise OptionsError(
                f"{name} must be an integer from 0 to {MAX_LIMIT:,}, not {count!r}", option=name, value=count
            )
    if most is not None and most < least:
        raise OptionsError(f"max_{what} is {most}, less than min_{what}, {least}")


def embed_lines(item: Grammar, min_lines: int, max_lines: int | None) -> ComposedGrammar | CfgGrammar:
    """Texts of a grammar that has no line feeds, with one between them, and perhaps after the last."""
    terminals = (Terminal("VALUE", empty()), Terminal("LINE FEED", word_dfa("\n")))
    # Nonterminal 2n: n values, at the start of a line; 2n + 1: n + 1 values, at the end of one.
    last = min_lines if max_lines is None else max_lines
    rules = [Rule(2 * n, ()) for n in range(min_lines, last + 1)]
    for n in range(last + (max_lines is None)):
        after = 2 * min(n + 1, last)
        rules += [Rule(2 * n, (~0, 2 * n + 1)), Rule(2 * n + 1, (~1, after))]
        if n + 1 >= min_lines:
            rules.append(Rule(2 * n + 1, ()))
    names = tuple(f"{kind}{n}" for n in range(last + 1) for kind in ("line", "end"))
    grammar = ContextFreeGrammar(terminals, names, tuple(rules), 0)
    return embed(grammar, {0: item})


def check_lines(min_lines: int, max_lines: int | None, options: JsonOptions) -> None:
    """Raise OptionsError where lines cannot be written so."""
    check_counts("lines", min_lines, max_lines)
    if options.whitespace not in ("single", "compact"):
        raise OptionsError(
            f"JSON lines need JsonOptions.whitespace 'single' or 'compact', not {options.whitespace!r}: a line feed "
            "inside a value would end its line"
        )
