"""Rules whose texts are regions of the output, cut out of their grammar: each becomes a grammar that it embeds.

What reads the text then stands either inside of a region or around it, so nobody has to look for where it begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from structgen.core.grammars.normal_form import ContextFreeGrammar, Rule, Terminal
from structgen.core.regex.dfa import empty
from structgen.core.regions import Region


@dataclass(frozen=True)
class CutGrammar:
    """A grammar without its regions.

    Attributes:
        around: the grammar, with a terminal in place of each region; its own symbols keep their numbers.
        parts: by terminal, the region and the grammar of its texts, which has the regions inside.
    """

    around: ContextFreeGrammar
    parts: Mapping[int, tuple[Region, ContextFreeGrammar]]


def regions_of(grammar: ContextFreeGrammar) -> dict[int, Region]:
    """The symbols whose texts are regions; of several terms of one, the last say what they say."""
    regions: dict[int, Region] = {}
    for symbol, name in grammar.captures:
        if isinstance(name, Region):
            regions[symbol] = name.within(regions.get(symbol))
    return regions


def cut_regions(grammar: ContextFreeGrammar) -> CutGrammar:
    """Cut the outermost regions out of a grammar. Linear in it, for each region.

    A region's uses of itself, inside, are part of it: what it says of the outer one holds for them.
    """
    regions = regions_of(grammar)
    first = len(grammar.terminals)
    numbers = {symbol: ~(first + index) for index, symbol in enumerate(regions)}
    rules = [replace(rule, rhs=tuple(numbers.get(s, s) for s in rule.rhs)) for rule in grammar.rules]
    names, start = grammar.nonterminals, grammar.start
    if start in numbers:
        names, start = (*names, "output"), len(names)
        rules.append(Rule(start, (numbers[grammar.start],)))
    terminals = tuple(Terminal(_name(grammar, symbol), empty()) for symbol in regions)
    around = ContextFreeGrammar(grammar.terminals + terminals, names, tuple(rules), start, grammar.ignored)
    used = used_terminals(around)
    parts = {
        ~number: (regions[symbol], _texts_of(grammar, symbol, regions))
        for symbol, number in numbers.items()
        if ~number in used
    }
    return CutGrammar(around, parts)


def without_terminals(grammar: ContextFreeGrammar, terminals: set[int]) -> ContextFreeGrammar:
    """A grammar without the rules that need some terminals, which have no text."""
    return replace(grammar, rules=tuple(r for r in grammar.rules if not any(~s in terminals for s in r.rhs)))


def _texts_of(grammar: ContextFreeGrammar, symbol: int, regions: Mapping[int, Region]) -> ContextFreeGrammar:
    """The grammar of a symbol's texts; of the regions those inside are left."""
    captures = tuple((other, region) for other, region in regions.items() if other != symbol)
    if symbol >= 0:
        return replace(grammar, start=symbol, captures=captures)
    start = len(grammar.nonterminals)
    names = (*grammar.nonterminals, _name(grammar, symbol))
    rules = (*grammar.rules, Rule(start, (symbol,)))
    return replace(grammar, nonterminals=names, rules=rules, start=start, captures=captures)


def used_terminals(grammar: ContextFreeGrammar) -> set[int]:
    """The terminals that the start rule reaches."""
    options: dict[int, list[tuple[int, ...]]] = {}
    for rule in grammar.rules:
        options.setdefault(rule.lhs, []).append(rule.rhs)
    reached, todo = {grammar.start}, [grammar.start]
    while todo:
        more = {s for rhs in options.get(todo.pop(), ()) for s in rhs} - reached
        reached |= more
        todo += [s for s in more if s >= 0]
    return {~symbol for symbol in reached if symbol < 0}


def _name(grammar: ContextFreeGrammar, symbol: int) -> str:
    return grammar.nonterminals[symbol] if symbol >= 0 else grammar.terminals[~symbol].name
