"""Grammars inside a context-free grammar: some of its terminals are texts that other grammars read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from structgen.core.engines.cfg.compiled import CfgGrammar, compile_grammar
from structgen.core.engines.composed.composition import Composition
from structgen.core.engines.composed.matcher import ComposedMatcher
from structgen.core.engines.protocols import Grammar
from structgen.core.grammars.inlining import inlined
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.grammars.region_rules import cut_regions, regions_of, used_terminals, without_terminals
from structgen.core.grammars.token_terminals import resolved
from structgen.core.regions import Region
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import ConstraintError, EmptyLanguageError, GrammarTooComplexError


class ComposedGrammar(Composition):
    """A context-free grammar some of whose terminals are read by other grammars. Make one with `embed`.

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
        super().__init__(source, contents, vocabulary, regions)
        self._form = (source, dict(contents)) if form is None else form

    def matcher(self) -> ComposedMatcher:
        """See `Grammar.matcher`."""
        return ComposedMatcher(self)

    def last_bytes(self) -> int:
        """See `Grammar.last_bytes`. O(1)."""
        return self._last

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
