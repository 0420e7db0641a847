"""The contract of all engines: what a compiled grammar and its matchers promise, written here and nowhere else.

Decoders, samplers, constraints inside constraints and servers see nothing else of an engine, so whatever keeps these
promises works in all of them. `core.engines.laws.check_laws` checks them; `core.engines.matcher.BaseMatcher`
has what matchers have in common.

The *language* of a grammar is a set of texts: bytes of UTF-8, and a stand-in for each special token that the grammar
names (`core.vocabulary.special_tokens`), which is no UTF-8. A text is *viable* if some completion of it, perhaps
itself, is in the language; a matcher stands after a viable text, always.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from structgen.core.engines.capture import Captures
from structgen.core.engines.draft_trees import DraftTrees
from structgen.core.grammars.normal_form import ContextFreeGrammar
from structgen.core.regions import PartialParse
from structgen.core.vocabulary.vocabulary import Vocabulary

TOO_LONG = 1 << 40
"""The bound of a completion that is not written: more bytes than any budget has."""
MAX_FORCED_BYTES = 1024
"""So much of a forced text `Matcher.forced_bytes` gives at once: more than any decoder drafts, in bounded time."""


@runtime_checkable
class Matcher(Protocol):
    """One output in progress: the only mutable state of a constraint. Made by `Grammar.matcher`.

    Matchers of one grammar may be used in different threads at once, one matcher in one thread at a time.

    **Sound:** where `is_accepting`, the text is in the language. **Complete:** a viable text is taken; where a budget
    gives some up, `stats` counts it, and the language only gets narrower. **No dead end:** as long as the end of
    sequence was not accepted, some token is allowed. **One path:** a mask bit says what `accept_token` does.
    """

    @property
    def grammar(self) -> Grammar:
        """The grammar that it follows."""
        ...

    @property
    def stats(self) -> dict[str, int]:
        """Budget hits so far, by name; each may have narrowed what is allowed, none has widened it. All zero: exact."""
        ...

    @property
    def state_is_shared(self) -> bool:
        """Whether states recur, within a text and in other matchers: what is found of one is worth remembering by its
        `state_key`."""
        ...

    def fill_next_token_bitmask(self, bitmask: npt.NDArray[np.int32], index: int = 0) -> None:
        """Write the mask of the next token into row ``index`` of ``bitmask``; other rows stay.

        Bit t % 32 of word t // 32 is set exactly if `accept_token` would take token t. Bits of end of sequence are set
        exactly if `is_accepting`. After the end of sequence the row is all zero; so are, always, bits after V.

        Args:
            bitmask: int32[batch, ceil(V / 32)] or int32[ceil(V / 32)], C-contiguous; mutated.
            index: the row.

        Raises:
            BitmaskError: wrong dtype, shape or layout.
        """
        ...

    def accept_token(self, token_id: int) -> bool:
        """Advance by a token: by its bytes, or by the end of sequence.

        False, and nothing changes, if it is not allowed: the text with it is not viable, the text may not stop (end of
        sequence), the id has no bytes, or the end of sequence was accepted.

        Raises:
            TokenError: the id lies outside the vocabulary.
        """
        ...

    @classmethod
    def fill_all(cls, matchers: Sequence[Self], bitmask: npt.NDArray[np.int32], rows: Sequence[int]) -> None:
        """`fill_next_token_bitmask` of many matchers of this class, each into its row.

        Args:
            matchers: each once.
            bitmask, rows: see `fill_next_token_bitmask`; a row for each.

        Raises:
            BitmaskError: as of the one.
        """
        ...

    @classmethod
    def fill_trees(
        cls, matchers: Sequence[Self], trees: DraftTrees, bitmask: npt.NDArray[np.int32], rows: Sequence[int]
    ) -> npt.NDArray[np.bool_]:
        """The masks of the nodes of draft trees, one of each matcher of this class. States are the same afterwards.

        Args:
            matchers: each once.
            trees: as many; tokens of their vocabulary at nodes that links lead to.
            bitmask: see `fill_next_token_bitmask`.
            rows: of each tree the bitmask row of its root; those of the others follow by their numbers. Such a row is
                the mask after the tokens on the path to the node, and all zero if one of them is refused, after the
                end of sequence, and at nodes that no link leads to.

        Returns:
            Which nodes are taken, bool[trees, nodes].

        Raises:
            BitmaskError: as of the one.
        """
        ...

    def advance_and_fill(self, token_id: int, bitmask: npt.NDArray[np.int32], index: int = 0) -> bool:
        """`accept_token`, and if it is taken `fill_next_token_bitmask` after it: one step of decoding in one call.

        False, and neither the matcher nor the bitmask changes, if the token is not allowed.

        Args:
            token_id: the token.
            bitmask, index: see `fill_next_token_bitmask`.

        Raises:
            TokenError, BitmaskError: as of the two; then nothing changes.
        """
        ...

    @classmethod
    def advance_and_fill_all(
        cls, matchers: Sequence[Self], token_ids: Sequence[int], bitmask: npt.NDArray[np.int32], rows: Sequence[int]
    ) -> list[bool]:
        """`advance_and_fill` of many matchers of this class, each with its token and its row: whether each took it.

        Args:
            matchers: each once.
            token_ids, rows: of each; tokens of its vocabulary, rows of ``bitmask``.
            bitmask: see `fill_next_token_bitmask`.
        """
        ...

    def accept_bytes(self, data: bytes) -> bool:
        """Advance by text as one step for `rollback`. Characters may be cut anywhere.

        False, and nothing changes, if the text with it is not viable or the end of sequence was accepted. No bytes are
        always accepted, and count as a step.

        Raises:
            TypeError: ``data`` is not bytes-like.
        """
        ...

    def rollback(self, steps: int = 1) -> None:
        """Undo the last ``steps`` accepted tokens or texts, the end of sequence included: all is as it was.

        Raises:
            MatcherStateError: fewer were accepted.
        """
        ...

    def fork(self) -> Matcher:
        """An independent matcher in the same state, which can be rolled back as far."""
        ...

    def copy(self) -> Matcher:
        """An independent matcher in the same state, without the history: for looking ahead."""
        ...

    def reset(self) -> None:
        """Back to the start of the text; forgets the history."""
        ...

    def is_accepting(self) -> bool:
        """Whether the text may stop here: it is in the language, and the end of sequence was not accepted."""
        ...

    def is_terminated(self) -> bool:
        """Whether the end of sequence was accepted."""
        ...

    def next_bytes(self) -> npt.NDArray[np.bool_]:
        """Which bytes `accept_bytes` would take, bool[256]; none after the end of sequence."""
        ...

    def forced_bytes(self) -> bytes:
        """The longest text that every completion starts with, up to `MAX_FORCED_BYTES`; empty where the text may stop.

        Of a longer one these are the first bytes, which may end within a character; once they are accepted, this says
        how it goes on.
        """
        ...

    def likely_texts(self, written: bytes) -> list[bytes]:
        """A few texts that may come next, the likeliest first, for drafts: guesses, which may even be refused.

        Args:
            written: the end of the output so far, which shows in what habits it is spelled.
        """
        ...

    def shortest_completion(self) -> bytes:
        """A short text that completes the output; empty if it may stop, or the end of sequence was accepted.

        It is a shortest one in bytes if the grammar's `completions_are_shortest`. The matcher stays as it is.

        Raises:
            CompletionTooLongError: every known one needs more characters, items or members than are written.
        """
        ...

    def completion_bound(self) -> int:
        """Bytes of `shortest_completion`, or more: what "does it still fit" is asked of, after every token.

        Never less, so a text of at most so many bytes completes the output; `TOO_LONG` where none is written. Mostly
        exact, and cheap where the text is not: it is a number that tables hold, not a text. The matcher stays as it is.
        """
        ...

    def completion_is_spelled(self) -> bool:
        """Whether all bytes of the text that `completion_bound` has just counted are known to be tokens by themselves:
        then the text takes at most as many tokens as bytes. False where that is not known."""
        ...

    def state_key(self, *, same_matcher: bool = False) -> Hashable:
        """Equal for matchers of one grammar with the same future; None where that cannot be told.

        With ``same_matcher``, only states of this matcher are compared, between which it was not rolled back.
        """
        ...

    def captures(self) -> Captures:
        """The named parts of the text so far; of a text whose end was not accepted those in progress are not complete.

        A function of the grammar and the text alone, whatever was tried and rolled back. Empty where the grammar names
        nothing.

        Raises:
            CapturesTooComplexError: the text is too long, or its grammar leaves too much open.
        """
        ...

    def partial_parses(self) -> list[PartialParse] | None:
        """The partial parses of the text so far that are not given up, each with the regions in which the text ends.

        None: the grammar says of no text how it is written.
        """
        ...

    def bytes_to_stop(self) -> int:
        """Set of bytes (bit b for byte b): every completion that is not empty holds one of them.

        A bound from above: all bytes where nothing is known. A state whose text cannot stop before a certain byte (the
        quote that ends a string) says so, and is asked less often what may follow it.
        """
        ...


@runtime_checkable
class Grammar(Protocol):
    """A constraint compiled for a vocabulary: immutable, shared by all its matchers, in all threads.

    Its language has at least one text, and every viable text can be completed with tokens of the vocabulary.
    """

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens that masks are over. Where the grammar names special tokens, it is the one that names them: the
        same ids, with stand-ins for these in place of text (`Vocabulary.naming`)."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Bytes of its own arrays, as far as they are used; what it shares with other grammars is not counted."""
        ...

    @property
    def is_outdated(self) -> bool:
        """Whether what it shares is shared with old grammars only, and large: caches then forget it."""
        ...

    @property
    def completions_are_shortest(self) -> bool:
        """Whether `Matcher.shortest_completion` is a shortest completion in bytes, always."""
        ...

    def matcher(self) -> Matcher:
        """A matcher at the start of the text."""
        ...

    def last_bytes(self) -> int:
        """Set of bytes (bit b for byte b) that texts of the language can end with.

        A bound from above: all bytes where nothing is known. Where texts are embedded in others, what follows them is
        only looked for after these bytes, so a bound that is too wide costs time and nothing else.
        """
        ...

    def normal_form(self) -> tuple[ContextFreeGrammar, Mapping[int, Grammar]] | None:
        """Rules of the same language, and the grammars that read some of their terminals; None where it has none.

        A grammar around may put them in the place of this one, so that texts inside texts are read by one machine.
        """
        ...


# The names by which `structgen` exports them: a grammar is also what a user writes.
CompiledGrammar = Grammar
GrammarMatcher = Matcher
