"""The contract of `structgen.core.engines.protocols` as checks, for the tests of engines: ours, and those of others.

::

    from structgen.core.engines.laws import check_laws

    check_laws(MyGrammar(vocabulary), judge=lambda text: (is_viable(text), is_valid(text)))

A judge is an oracle that is not the engine. Without one, all is checked that a matcher says about itself: masks against
acceptance, completions, forks, rollbacks, forced bytes, keys of states, the end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from structgen.core.engines.bitmask import allocate_token_bitmask, fill_next_token_bitmasks
from structgen.core.engines.byte_sets import byte_set
from structgen.core.engines.protocols import MAX_FORCED_BYTES, TOO_LONG, Grammar, Matcher
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import BitmaskError, CompletionTooLongError, MatcherStateError, TokenError

Judge = Callable[[bytes], tuple[bool, bool]]
"""Whether some completion of a text (perhaps itself) is in the language, and whether the text is.

Special tokens that the grammar names are in the text by their stand-ins (`structgen.core.vocabulary.special_tokens`).
"""

Mask = npt.NDArray[np.bool_]
STEPPED = 2  # tokens of a state, allowed and not, that are put to ``advance_and_fill``


class BrokenLawError(AssertionError):
    """An engine does not keep a promise.

    Attributes:
        law: which, in a word or two.
        text: the text at which it was broken.
    """

    def __init__(self, law: str, detail: str, text: bytes) -> None:
        self.law, self.text = law, text
        super().__init__(f"{law}: {detail}; after the text {text!r:.300}")


def mask_of(matcher: Matcher) -> Mask:
    """The mask of the next token, bool[V]. Bits after the vocabulary must be zero."""
    size = matcher.grammar.vocabulary.size
    bits = _padded(matcher)
    if bits[size:].any():
        raise BrokenLawError("mask", "bits after the end of the vocabulary are set", b"")
    return bits[:size]


def _padded(matcher: Matcher) -> Mask:
    """The mask of the next token with the bits after the vocabulary."""
    bitmask = allocate_token_bitmask(1, matcher.grammar.vocabulary.size)
    matcher.fill_next_token_bitmask(bitmask)
    return _bits(bitmask)


def _bits(bitmask: npt.NDArray[np.int32]) -> Mask:
    return np.unpackbits(bitmask.view(np.uint8), bitorder="little").astype(bool)


def check_laws(
    grammar: Grammar,
    judge: Judge | None = None,
    *,
    valid: Callable[[bytes], bool] | None = None,
    texts: Iterable[bytes] = (),
    prefixes: Sequence[bytes] = (b"",),
    walks: int = 3,
    steps: int = 12,
    max_bytes: int | None = None,
    tokens: Sequence[int] | None = None,
    likely: bytes = b"",
    exact: bool = False,
    seed: int = 0,
) -> None:
    """Random walks over a grammar; every promise is checked in every state.

    Args:
        grammar: the compiled grammar.
        judge: says of texts what is viable and valid: masks must be exactly that, or, where a budget was hit, no more.
            None: not compared.
        valid: where there is no judge, whether a whole text is in the language: all that is written must be.
        texts: texts in the language (without a judge), or that the judge decides on.
        prefixes: where walks begin, in turns.
        walks: how many.
        steps: tokens a walk.
        max_bytes: a walk ends with a text of more than these (where the judge is slow).
        tokens: ids to put to the matcher in each state, besides the ends of sequence; None: all.
        likely: tokens that begin with one of these bytes are taken more often.
        exact: whether no budget may be hit (`Matcher.stats`).
        seed: of the choices.

    Raises:
        BrokenLawError: the law, what was found, and the text at which it was.
    """
    _check_calls(grammar)
    laws = _Laws(grammar, judge, tokens, random.Random(seed), valid, frozenset(likely), exact)
    for number in range(walks):
        laws.walk(prefixes[number % len(prefixes)], steps, max_bytes)
    for text in texts:
        laws.take(text)


def check_state(
    matcher: Matcher, judge: Judge | None = None, text: bytes = b"", *, tokens: Sequence[int] | None = None
) -> Mask:
    """What must hold of a matcher where it stands, which is after ``text``; it stays as it is. Gives the mask.

    Raises:
        BrokenLawError: see `check_laws`.
    """
    return _Laws(matcher.grammar, judge, tokens, random.Random(0)).state(matcher, text)


@dataclass
class _Laws:
    grammar: Grammar
    judge: Judge | None
    tokens: Sequence[int] | None
    rng: random.Random
    valid: Callable[[bytes], bool] | None = None
    likely: frozenset[int] = frozenset()
    exact: bool = False
    seen: dict[Hashable, tuple[bytes, bool, bytes]] = field(default_factory=dict)

    @property
    def vocabulary(self) -> Vocabulary:
        return self.grammar.vocabulary

    def walk(self, prefix: bytes, steps: int, max_bytes: int | None) -> None:
        """A random text by tokens and bytes; then back, by steps and at once."""
        matcher, text = self.grammar.matcher(), prefix
        _hold(matcher.accept_bytes(prefix), "complete", "the text that a walk begins with is refused", b"")
        states_met: dict[Hashable, tuple[bytes, bool, bytes]] = {}
        masks: list[Mask] = []  # before each step
        for _ in range(steps):
            mask = self.state(matcher, text)
            self.key(matcher, text, mask, states_met)
            token = self.choice(matcher, mask)
            if token is None or (max_bytes is not None and len(text) > max_bytes):
                break
            twin, word = matcher.fork(), self.vocabulary.tokens[token]
            taken = matcher.accept_token(token) if self.rng.random() < 0.8 else matcher.accept_bytes(word)
            _hold(taken, "mask = accept", f"{word!r} is in the mask and refused", text)
            _same(twin, mask, "fork", "a step changed the matcher's fork", text)
            if self.rng.random() < 0.3:  # go on with the fork
                _hold(twin.accept_token(token), "fork", f"refuses {word!r}, which its origin took", text)
                _undo(matcher, 1, text)
                _same(matcher, mask, "rollback", "another mask than before the step", text)
                matcher, states_met = twin, {}
            elif masks:
                _undo(twin, 1, text)
                _same(twin, masks[-1], "fork", "undoes another step than its own last one", text)
            masks.append(mask)
            text += word
        self.back(matcher, masks, text)

    def back(self, matcher: Matcher, masks: list[Mask], text: bytes) -> None:
        """Undo the walk, some steps at a time; a copy has none to undo."""
        bare, last = matcher.copy(), mask_of(matcher)
        _raises(MatcherStateError, lambda: bare.rollback(1), "copy", "of a matcher with a history", text)
        _same(bare, last, "copy", "another mask than the matcher's", text)
        while masks:
            steps = self.rng.randint(1, len(masks))
            _undo(matcher, steps, text)
            _same(matcher, masks[-steps], "rollback", f"another mask {steps} steps back", text)
            del masks[-steps:]
        matcher.reset()
        _same(matcher, mask_of(self.grammar.matcher()), "reset", "another mask than at the start", b"")
        _raises(MatcherStateError, lambda: matcher.rollback(1), "reset", "keeps the history", b"")

    def take(self, text: bytes) -> None:
        """A text as a whole, byte by byte, and by random tokens: taken or not, alike."""
        valid = self.judge(text)[1] if self.judge else self.valid is None or self.valid(text)
        whole, single, spelled = (self.grammar.matcher() for _ in range(3))
        by_bytes = all(single.accept_bytes(text[i : i + 1]) for i in range(len(text))) and single.is_accepting()
        for name, taken_as in (
            ("at once", whole.accept_bytes(text) and whole.is_accepting()),
            ("by bytes", by_bytes),
            ("by tokens", self.spell(spelled, text)),
        ):
            law = "complete" if valid else "sound"
            _hold(taken_as in (valid, None), law, f"read {name} it is {'taken' if taken_as else 'refused'}", text)
        if valid and text:
            self.bounds(text, b"")

    def spell(self, matcher: Matcher, text: bytes) -> bool | None:
        """Read a text by random tokens; None: the vocabulary does not spell it that way."""
        offset = 0
        while offset < len(text):
            ids = self.starts.get(text[offset], ())
            fitting = [t for t in ids if text.startswith(self.vocabulary.tokens[t], offset)]
            if not fitting:
                return None
            token = self.rng.choice(fitting)
            if not matcher.accept_token(token):
                return False
            offset += len(self.vocabulary.tokens[token])
        return matcher.is_accepting()

    @cached_property
    def starts(self) -> dict[int, list[int]]:
        """Token ids by their first byte."""
        by_byte: dict[int, list[int]] = {}
        for token, word in enumerate(self.vocabulary.tokens):
            if word:
                by_byte.setdefault(word[0], []).append(token)
        return by_byte

    def choice(self, matcher: Matcher, mask: Mask) -> int | None:
        """A token to go on with: half of the time one that a completion begins with."""
        tokens = self.vocabulary.tokens
        allowed = [token for token in np.flatnonzero(mask).tolist() if tokens[token]]
        if not allowed:
            return None
        remaining = _completion(matcher) if self.rng.random() < 0.5 else None
        best = [token for token in allowed if remaining and remaining.startswith(tokens[token])]
        if not best and self.rng.random() < 0.4:
            best = [token for token in allowed if tokens[token][0] in self.likely]
        return self.rng.choice(best or allowed)

    # --- one state ---
    def state(self, matcher: Matcher, text: bytes) -> Mask:
        """All that must hold where a matcher stands. Gives the mask."""
        mask, accepting = mask_of(matcher), matcher.is_accepting()
        ends = list(self.vocabulary.eos_token_ids)
        _hold(bool(mask.any()), "no dead end", "no token is allowed", text)
        _hold(not matcher.is_terminated(), "end", "terminated without an end of sequence", text)
        _hold(bool((mask[ends] == accepting).all()), "mask = accept", "end of sequence and is_accepting differ", text)
        _hold(not self.exact or not any(matcher.stats.values()), "exact", f"budgets were hit: {matcher.stats}", text)
        probe = matcher.fork()
        self.acceptance(probe, mask, text)
        self.stepping(probe, mask, text)
        following = self.following(probe, text)
        _same(probe, mask, "rollback", "another mask after steps were tried and undone", text)
        if self.judge is not None:
            self.judged(matcher, mask, following, text)
        self.completion(matcher, following, text)
        if accepting:
            self.end(matcher.fork(), mask, text)
            self.bounds(text, b"")
        _same(matcher, mask, "fork", "the matcher changed with its forks, or as it was asked", text)
        return mask

    def acceptance(self, probe: Matcher, mask: Mask, text: bytes) -> None:
        """Mask = what ``accept_token`` does."""
        needed = probe.bytes_to_stop()
        chosen = range(self.vocabulary.size) if self.tokens is None else self.tokens
        for token in {*chosen, *self.vocabulary.eos_token_ids}:
            word, taken = self.vocabulary.tokens[token], probe.accept_token(token)
            says = "allows" if mask[token] else "forbids"
            _hold(taken == mask[token], "mask = accept", f"the mask {says} token {token} {word!r}", text)
            if taken and word and probe.is_accepting():
                _hold(bool(byte_set(word) & needed), "bytes to stop", f"{word!r} ends it without any of them", text)
            if taken:
                _undo(probe, 1, text)

    def stepping(self, probe: Matcher, mask: Mask, text: bytes) -> None:
        """``advance_and_fill`` is ``accept_token``, then the mask; where it refuses, the bitmask stays."""
        for chosen in (np.flatnonzero(mask), np.flatnonzero(~mask)):
            for token in self.rng.sample(chosen.tolist(), min(STEPPED, len(chosen))):
                bitmask = allocate_token_bitmask(2, self.vocabulary.size)
                taken, word = probe.advance_and_fill(token, bitmask, 1), self.vocabulary.tokens[token]
                _hold(taken == mask[token], "one step", f"{word!r} is {'taken' if taken else 'refused'}", text)
                _hold(bool((bitmask[0] == -1).all()), "one step", "another row was written", text)
                if taken:
                    _hold(bool((_bits(bitmask[1:]) == _padded(probe)).all()), "one step", f"mask after {word!r}", text)
                    _undo(probe, 1, text)
                else:
                    _hold(bool((bitmask[1] == -1).all()), "one step", f"{word!r} is refused and changes the row", text)

    def following(self, probe: Matcher, text: bytes) -> list[int]:
        """Next bytes = what ``accept_bytes`` does."""
        says = probe.next_bytes()
        for byte in range(256):
            taken = probe.accept_bytes(bytes([byte]))
            _hold(taken == says[byte], "next bytes", f"says {bool(says[byte])} of byte {byte:#x}", text)
            if taken:
                _undo(probe, 1, text)
        _hold(probe.accept_bytes(b""), "complete", "refuses no bytes", text)
        _undo(probe, 1, text)
        return np.flatnonzero(says).tolist()

    def completion(self, matcher: Matcher, following: list[int], text: bytes) -> None:
        """The completion completes, nothing known is shorter, and forced bytes are what all texts go on with."""
        accepting, forced, remaining = matcher.is_accepting(), matcher.forced_bytes(), _completion(matcher)
        _hold(bool(forced) == (len(following) == 1 and not accepting), "forced bytes", f"are {forced!r}", text)
        walker = matcher.copy()
        _hold(walker.accept_bytes(forced), "forced bytes", f"{forced!r} are refused", text)
        _hold(len(forced) <= MAX_FORCED_BYTES, "forced bytes", f"are {len(forced)} at once", text)
        more = walker.is_accepting() or int(walker.next_bytes().sum()) > 1
        _hold(more or len(forced) == MAX_FORCED_BYTES, "forced bytes", f"more than {forced!r} are forced", text)
        bound = matcher.completion_bound()
        _hold(remaining is not None or bound >= TOO_LONG, "completion bound", f"is {bound}, but none is written", text)
        if remaining is None:
            return
        _hold(bound >= len(remaining), "completion bound", f"is {bound}, but the completion is {remaining!r}", text)
        walker = matcher.copy()
        taken = walker.accept_bytes(remaining) and walker.is_accepting()
        _hold(taken, "shortest completion", f"{remaining!r} does not complete", text)
        _hold((remaining == b"") == accepting, "shortest completion", f"is {remaining!r}, accepting: {accepting}", text)
        _hold(remaining.startswith(forced), "forced bytes", f"{forced!r} are forced, but {remaining!r} completes", text)
        _hold(
            not remaining or byte_set(remaining) & matcher.bytes_to_stop() > 0,
            "bytes to stop",
            f"not in {remaining!r}",
            text,
        )
        self.bounds(text, remaining)
        if self.grammar.completions_are_shortest:
            for byte in self.rng.sample(following, min(8, len(following))):
                walker = matcher.copy()
                walker.accept_bytes(bytes([byte]))
                other = walker.shortest_completion()
                _hold(
                    len(remaining) <= 1 + len(other),
                    "shortest completion",
                    f"{bytes([byte]) + other!r} is shorter",
                    text,
                )

    def judged(self, matcher: Matcher, mask: Mask, following: list[int], text: bytes) -> None:
        """What the judge says of the text, of every token and of every byte; of what lacks, where no budget was hit."""
        assert self.judge is not None
        judge, tokens = self.judge, self.vocabulary.tokens
        accepting, valid, exact = matcher.is_accepting(), judge(text)[1], not any(matcher.stats.values())
        _hold(valid or not accepting, "sound", "the text may stop, but is not in the language", text)
        _hold(accepting or not (valid and exact), "complete", "the text is in the language, but may not stop", text)
        for token in range(self.vocabulary.size) if self.tokens is None else self.tokens:
            if tokens[token]:
                viable = judge(text + tokens[token])[0]
                _hold(viable or not mask[token], "sound", f"{tokens[token]!r} leads nowhere", text)
                _hold(bool(mask[token]) or not (viable and exact), "complete", f"{tokens[token]!r} is missing", text)
        expected = {byte for byte in range(256) if judge(text + bytes([byte]))[0]}
        _hold(expected.issuperset(following), "sound", f"next bytes are {bytes(following)!r}", text)
        missing = expected.difference(following) if exact else ()
        _hold(not missing, "complete", f"the next bytes {bytes(missing)!r} are missing", text)

    def end(self, probe: Matcher, mask: Mask, text: bytes) -> None:
        """After the end of sequence nothing comes; it is undone like any step."""
        for token in self.vocabulary.eos_token_ids:
            _hold(probe.accept_token(token), "end", f"end of sequence {token} is refused", text)
            ended = probe.is_terminated() and not probe.is_accepting() and not mask_of(probe).any()
            _hold(ended, "end", "goes on after the end of sequence", text)
            silent = not probe.next_bytes().any() and probe.forced_bytes() == b"" == probe.shortest_completion()
            silent = silent and probe.completion_bound() == 0
            _hold(silent, "end", "bytes follow the end of sequence", text)
            refused = not probe.accept_token(token) and not probe.accept_bytes(b" ") and probe.accept_bytes(b"")
            _hold(refused, "end", "takes something after the end of sequence", text)
            _hold(probe.fork().is_terminated() and probe.copy().is_terminated(), "fork", "forgets the end", text)
            _undo(probe, 1, text)
            _hold(probe.is_terminated(), "rollback", "of no bytes undoes the end of sequence", text)
            _undo(probe, 1, text)
            _hold(not probe.is_terminated(), "rollback", "does not undo the end of sequence", text)
            _same(probe, mask, "rollback", "another mask than before the end of sequence", text)

    def bounds(self, text: bytes, remaining: bytes) -> None:
        """A whole text is valid, and its last byte is one of those that texts can end with."""
        whole = text + remaining
        is_valid = self.judge(whole)[1] if self.judge else self.valid is None or self.valid(whole)
        _hold(is_valid, "sound", f"{whole!r} may stop, but is not in the language", text)
        is_known = not whole or self.grammar.last_bytes() >> whole[-1] & 1
        _hold(bool(is_known), "last bytes", f"{whole[-1:]!r} is none of them, but {whole!r} may stop", text)

    def key(
        self, matcher: Matcher, text: bytes, mask: Mask, states_met: dict[Hashable, tuple[bytes, bool, bytes]]
    ) -> None:
        """Equal keys, equal futures: of all matchers, and of this one."""
        future = mask.tobytes(), matcher.is_accepting(), matcher.next_bytes().tobytes()
        for futures, key in ((self.seen, matcher.state_key()), (states_met, matcher.state_key(same_matcher=True))):
            if key is not None:
                _hold(futures.setdefault(key, future) == future, "state key", "is that of another state", text)


def _check_calls(grammar: Grammar) -> None:
    """Bad calls raise what they should; a row of a batch is that row."""
    matcher, size = grammar.matcher(), grammar.vocabulary.size
    _hold(isinstance(grammar, Grammar) and isinstance(matcher, Matcher), "protocol", "something is missing", b"")
    for token in (-1, size):
        _raises(TokenError, partial(matcher.accept_token, token), "errors", f"token {token}", b"")
        step = partial(matcher.advance_and_fill, token, allocate_token_bitmask(1, size))
        _raises(TokenError, step, "errors", f"a step by token {token}", b"")
    others: list[Any] = [None, "", "1", 0, [], ()]  # some are as empty as no bytes
    for wrong in others:
        _raises(TypeError, partial(matcher.accept_bytes, wrong), "errors", f"{wrong!r} in place of bytes", b"")
    _raises(MatcherStateError, lambda: matcher.rollback(1), "errors", "a rollback before the start", b"")
    wide = allocate_token_bitmask(1, size + 32)
    _raises(BitmaskError, lambda: matcher.fill_next_token_bitmask(wide), "errors", "a bitmask that is too wide", b"")
    batch = allocate_token_bitmask(3, size)
    _raises(BitmaskError, lambda: matcher.fill_next_token_bitmask(batch, 3), "errors", "a row that is not there", b"")
    _raises(BitmaskError, lambda: matcher.advance_and_fill(0, batch, 3), "errors", "a step to such a row", b"")
    fill_next_token_bitmasks([None, matcher, matcher.fork()], batch)
    single = np.zeros(batch.shape[1], np.int32)
    matcher.fill_next_token_bitmask(single)
    rows_fit = (batch[0] == -1).all() and (batch[1] == batch[2]).all() and (batch[1] == single).all()
    _hold(bool(rows_fit), "mask", "rows of a batch are not the masks of their matchers", b"")


def _completion(matcher: Matcher) -> bytes | None:
    try:
        return matcher.shortest_completion()
    except CompletionTooLongError:
        return None


def _same(matcher: Matcher, mask: Mask, law: str, detail: str, text: bytes) -> None:
    _hold(np.array_equal(mask_of(matcher), mask), law, detail, text)


def _undo(matcher: Matcher, steps: int, text: bytes) -> None:
    try:
        matcher.rollback(steps)
    except MatcherStateError as error:
        raise BrokenLawError("rollback", f"{steps} steps that were taken are not undone: {error}", text) from error


def _hold(holds: bool, law: str, detail: str, text: bytes) -> None:
    if not holds:
        raise BrokenLawError(law, detail, text)


def _raises(error: type[Exception], call: Callable[[], object], law: str, detail: str, text: bytes) -> None:
    try:
        call()
    except error:
        return
    raise BrokenLawError(law, f"{detail} raises no {error.__name__}", text)
