"""A prompt that ends within a token: which tokens its end is spelled in is drawn together with what follows it.

A tokenizer spells the end of a prompt as if nothing came after it: after a blank that is a token by itself, words that
begin with a blank are out of reach. So the tokens after the last border that is certain are taken back, and one of the
covers of their text is drawn by its probability (`Covers`), among those that the constraint allows. A cover's last
token may go beyond the prompt: then the output begins with what it has more. What is written has the distribution of
whole texts that begin with the prompt, as far as these are spelled as the tokenizer spells them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from structgen.core.engines.protocols import Matcher
from structgen.core.tokenization.canonical import CanonicalSpelling, SpelledSoFar
from structgen.core.tool_calls.templates import template_of
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError, OptionsError
from structgen.generation.decoding.covers import Covers, Read, SpelledBeginning
from structgen.generation.decoding.few_tokens import allow_all
from structgen.generation.sampling import allowed_token_ids
from structgen.generation.sampling.uniforms import generator, seed_or_entropy

MOST_BYTES = 4_096
"""Bytes of a prompt's end that are spelled anew."""
MOST_MEMORY = 1 << 29
"""Bytes that the probabilities after its beginnings may take: each of its bytes ends one."""
_OF_A_TOKEN = 12  # bytes of these, and of the logits
MOST_TRIED = 64
"""Covers that are tried where outputs after them cannot be closed in the budget."""
POSITION = 1 << 40
"""Of the draw, among those of an output's tokens."""
_WHOLE = -1  # in place of a token that goes beyond the prompt: none does

ResultT = TypeVar("ResultT")


@dataclass(frozen=True)
class HealedPrompt:
    """How a prompt's end was spelled in place of what the tokenizer makes of it.

    Attributes:
        dropped: tokens of the prompt that were taken back.
        token_ids: what was read in their place. The last of them may go beyond the prompt.
        data: what it goes beyond the prompt with. The output's text begins with it, its tokens do not.
        log_prob: of these tokens (nats), as the model has them after the prompt's others.
    """

    dropped: int
    token_ids: tuple[int, ...]
    data: bytes
    log_prob: float

    @property
    def text(self) -> str:
        """``data`` as text; a character that is cut becomes U+FFFD."""
        return self.data.decode(errors="replace")

    def as_fields(self) -> dict[str, Any]:
        """As answers and files have it."""
        return {
            "dropped": self.dropped,
            "token_ids": list(self.token_ids),
            "text": self.text,
            "logprob": self.log_prob,
        }


def check_has_no_template(tokenizer: Any) -> None:
    """Refuse to heal where no prompt could be.

    Raises:
        OptionsError: a chat template renders all prompts.
    """
    if template_of(tokenizer):
        raise OptionsError(
            "heal_prompt is of models without a chat template: this model's ends each prompt where training went on, "
            "so that there is nothing to be healed; leave it out",
            option="heal_prompt",
        )


@dataclass(frozen=True, slots=True)
class _Cover:
    """A beginning of the prompt's end, the token after it, the log-probability of both and what it is drawn by."""

    spelled: SpelledBeginning
    token: int
    log_prob: float
    weight: float


class PromptEnd:
    """The end of a prompt that is to be healed.

    Attributes:
        kept: tokens of the prompt that stay.
        data: the text of the others; empty: there is nothing to be healed.
        position: where the text stands after those that stay.

    Args:
        spelling: of the tokenizer.
        ids: what it makes of the prompt.

    Raises:
        GenerationError: too long an end would have to be spelled anew.
    """

    def __init__(self, spelling: CanonicalSpelling, ids: Sequence[int]) -> None:
        self._spelling = spelling
        self.kept, self.position = spelling.settled(ids)
        if not self.kept and ids:  # a model cannot be asked for a first token
            following = spelling.after(self.position, ids[0])
            if following is not None:
                self.kept, self.position = 1, following
        self._dropped = len(ids) - self.kept
        self.data = b"".join(spelling.texts[token] for token in ids[self.kept :])
        most = min(MOST_BYTES, MOST_MEMORY // (_OF_A_TOKEN * len(spelling.texts)))
        if len(self.data) > most:
            raise GenerationError(
                f"The prompt ends with {len(self.data):,} bytes in which the tokenizer may cut anywhere or nowhere, "
                f"{self.data[-20:].decode(errors='ignore')!r} the last; heal_prompt spells at most {most:,} anew"
            )

    def after(self, healed: HealedPrompt) -> SpelledSoFar:
        """Where the text stands after what was drawn before."""
        position = self.position
        for token in healed.token_ids:
            following = self._spelling.after(position, token)
            assert following is not None, "it was drawn so"
            position = following
        return position

    def drawn(
        self,
        read: Read,
        vocabulary: Vocabulary,
        matcher: Matcher | None,
        temperature: float,
        seed: int | None,
        begin: Callable[[HealedPrompt, SpelledSoFar], ResultT],
        *,
        is_canonical: bool,
    ) -> ResultT:
        """What ``begin`` makes of a cover, drawn among those after which it raises nothing.

        Args:
            read: what asks the model, after the prompt's tokens that are kept.
            matcher: of the output, at its start; None: any text.
            temperature: of the draw; 0: the likeliest.
            begin: is given the cover and where it leaves off.
            is_canonical: whether the output is in canonical spelling, too.

        Raises:
            GenerationError: no cover goes on as the constraint allows; or what ``begin`` raised first.
        """
        covers = Covers(self._spelling, read, self.position)
        covers.follow(self.data)
        candidates = list(self._beyond(covers, matcher, temperature or 1.0))
        for spelled in covers.spelled[len(self.data)].values():
            weight = self._weight(spelled, vocabulary, matcher, temperature, is_canonical)
            candidates.append(_Cover(spelled, _WHOLE, spelled.log_prob, weight))
        keys = np.array([cover.weight for cover in candidates], np.float64)
        if temperature:  # the largest of these keys is drawn by its weight, also among some of them (Gumbel's trick)
            keys += generator(seed_or_entropy(seed), POSITION).gumbel(size=len(keys))
        errors = list[GenerationError]()
        for number in np.argsort(-keys, kind="stable")[: int((keys > -np.inf).sum())].tolist():
            healed, position = self._healed(candidates[number])
            if matcher is not None and not matcher.copy().accept_bytes(healed.data):
                continue
            try:
                return begin(healed, position)
            except GenerationError as error:
                errors.append(error)
                if len(errors) == MOST_TRIED:
                    break
        if errors:
            raise errors[0]
        raise GenerationError(
            f"No token goes on from the end of the prompt, {self.data[-40:].decode(errors='ignore')!r}, as the "
            "constraint allows; leave out heal_prompt"
        )

    def _healed(self, cover: _Cover) -> tuple[HealedPrompt, SpelledSoFar]:
        """What a cover makes of the prompt, and where it leaves off."""
        spelled, tokens, texts = cover.spelled, cover.spelled.tokens, self._spelling.texts
        position: SpelledSoFar | None = spelled.position
        if cover.token != _WHOLE:
            tokens, position = (*tokens, cover.token), self._spelling.after(spelled.position, cover.token)
        assert position is not None
        data = b"".join(texts[token] for token in tokens)
        return HealedPrompt(self._dropped, tokens, data[len(self.data) :], cover.log_prob), position

    def _beyond(self, covers: Covers, matcher: Matcher | None, temperature: float) -> Iterator[_Cover]:
        """Those whose last token goes beyond the prompt, by a byte that may follow."""
        texts, data = self._spelling.texts, self.data
        allowed = None if matcher is None else matcher.next_bytes()
        for start in range(max(0, len(data) - self._spelling.longest + 1), len(data)):
            length = len(data) - start
            for spelled in covers.spelled[start].values():
                ids, log_probs = covers.following(spelled, data[start:])
                for token, log_prob in zip(ids.tolist(), log_probs.tolist(), strict=True):
                    text = texts[token]
                    if len(text) > length and (allowed is None or allowed[text[length]]):
                        yield _Cover(spelled, token, log_prob, log_prob / temperature)

    def _weight(
        self,
        spelled: SpelledBeginning,
        vocabulary: Vocabulary,
        matcher: Matcher | None,
        temperature: float,
        is_canonical: bool,
    ) -> float:
        """Of a beginning that spells the whole prompt: that of all tokens that may follow it, the log of the sum."""
        bitmask = allow_all(vocabulary)
        if matcher is not None:
            matcher.fill_next_token_bitmask(bitmask, 0)
        if is_canonical:
            bitmask[0] &= self._spelling.row(spelled.position)
        ids = allowed_token_ids(bitmask[0], vocabulary.size)
        if not len(ids):
            return -np.inf
        log_probs = (spelled.log_prob + spelled.log_probs[ids]) / (temperature or 1.0)
        return float(np.logaddexp.reduce(log_probs) if temperature else log_probs.max())
