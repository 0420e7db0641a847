"""What inference engines (vLLM, SGLang) are asked for, as constraints, and the vocabularies that they are compiled for.

Engines hand over a kind (``json``, ``regex``, ...) and a text; both name the kinds as `structured_outputs` of our own
server does, so the same code reads them, with the same limits and the same errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from structgen.core.bounded_cache import Same
from structgen.core.constraints.base import Constraint
from structgen.core.constraints.limits import CompileLimits, check_size
from structgen.core.constraints.specs import DEFAULT_OPTIONS, ConstraintSpec, checked_source, texts_of
from structgen.core.json_schema.keywords_data import QUOTE_OF
from structgen.core.text_sets.opening import PROMPT
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import TokenizerError
from structgen.integrations.carriers import carried
from structgen.integrations.engine_settings import engine_sources
from structgen.options import JsonOptions

LIMITS = CompileLimits()
KEPT_VOCABULARIES = 4
"""One for the model, and a few for requests that end at tokens of text."""
_CUT, _REPLACED = b"\xff", "\ufffd"  # a byte that is no text, and what decoding puts in its place


class PromptedText(str):
    """What a request asks for, as text, with the prompt that it names: other prompts make it another request.

    Attributes:
        prompt_ids: tokens of the prompt; None: it is not known yet, and stands for some text.
    """

    __slots__ = ("prompt_ids",)
    prompt_ids: tuple[int, ...] | None

    def __new__(cls, text: str, prompt_ids: Sequence[int] | None) -> PromptedText:
        """The text with the prompt's tokens."""
        prompted = super().__new__(cls, text)
        prompted.prompt_ids = None if prompt_ids is None else tuple(prompt_ids)
        return prompted

    def __getnewargs__(self) -> tuple[str, Sequence[int] | None]:  # type: ignore[override]
        return str(self), self.prompt_ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PromptedText) and str(self) == str(other) and self.prompt_ids == other.prompt_ids

    def __hash__(self) -> int:
        return hash((str(self), self.prompt_ids))

    def texts(self, vocabulary: Vocabulary) -> dict[str, str]:
        """What the prompt says, cut at tokens that are no text and at bytes that are none."""
        if self.prompt_ids is None:
            return {"": "a"}
        data = b"".join(vocabulary.tokens[token] or _CUT for token in self.prompt_ids)
        parts = data.decode(errors="replace").split(_REPLACED)
        return {f"part {number}": part for number, part in enumerate(filter(None, parts))}


def with_prompt(kind: str, value: Any, prompt_ids: Sequence[int] | None) -> Any:
    """What a request asks for, together with its prompt, if it names that as a source; else as it is.

    Args:
        kind, value: as `engine_constraint` takes them.
        prompt_ids: see `PromptedText`.
    """
    if kind not in ("json", "structural_tag") or isinstance(value, (bool, PromptedText)):
        return value
    text = value if isinstance(value, str) else json.dumps(value)
    return PromptedText(text, prompt_ids) if QUOTE_OF in text and f'"{PROMPT}"' in text else value


def engine_constraint(kind: str, value: Any, vocabulary: Vocabulary, options: JsonOptions | None = None) -> Constraint:
    """The constraint that a request asks for.

    Args:
        kind: json, json_object, regex, choice, grammar or structural_tag.
        value: what belongs to it, as `structured_outputs` has it; that of ``choice`` may be a list or its JSON text. A
            `PromptedText` brings the source ``prompt``.
        vocabulary: the model's; names of its special tokens mean these in structural tags.
        options: how JSON may be spelled.

    Raises:
        SpecificationError: it says no constraint; with its place. ConstraintError: it is too large, or cannot be read.
    """
    brought = carried(kind, value, special_names(vocabulary))
    if brought is not None:
        check_size(brought, LIMITS)
        return brought
    value = texts_of(value) if kind == "choice" and isinstance(value, str) else value
    source, names = checked_source(kind, value), special_names(vocabulary)
    sources = engine_sources()
    if isinstance(value, PromptedText):
        sources, source = {**sources, PROMPT: value.texts(vocabulary)}, str(value)
    spec = ConstraintSpec(kind, source, options or DEFAULT_OPTIONS, names, sources)
    spec.check_size(LIMITS)
    return spec.constraint


def engine_vocabulary(tokenizer: Any, size: int, eos_token_ids: Iterable[int] = ()) -> Vocabulary:
    """The vocabulary of an engine's tokenizer; a few are kept.

    Args:
        tokenizer: of transformers.
        size: width of the logits.
        eos_token_ids: ids that end a sequence, besides the tokenizer's own.

    Raises:
        TokenizerError: the bytes of its tokens are not known (Mistral's own tokenizers, say).
    """
    tokenizer_end = getattr(tokenizer, "eos_token_id", None)
    ends = sorted({i for i in (*eos_token_ids, *([] if tokenizer_end is None else [tokenizer_end])) if 0 <= i < size})
    return _read(Same(tokenizer), size, tuple(ends))


@lru_cache(KEPT_VOCABULARIES)
def _read(tokenizer: Same, size: int, eos_token_ids: tuple[int, ...]) -> Vocabulary:
    try:
        return Vocabulary.from_transformers(tokenizer.value, size, eos_token_ids=eos_token_ids)
    except TokenizerError as error:
        error.add_note(
            f"The engine's tokenizer is a {type(tokenizer.value).__name__}; structgen reads those of transformers."
        )
        raise


@lru_cache(KEPT_VOCABULARIES)
def special_names(vocabulary: Vocabulary) -> dict[str, int]:
    """Ids of the tokens that are no text, by name."""
    ids = set(vocabulary.special_token_ids)
    return {name: token_id for name, token_id in vocabulary.special_tokens.items() if token_id in ids}


@lru_cache(KEPT_VOCABULARIES)
def ending_at(vocabulary: Vocabulary, token_ids: frozenset[int]) -> Vocabulary:
    """The vocabulary in which these tokens of text are ends of sequence, and spell nothing; a few are kept.

    An engine stops where a stop token is drawn, so in the output it is no text. Compiling for a vocabulary that does
    not have it shows beforehand whether everything can still be written.
    """
    return Vocabulary(
        vocabulary.tokens,
        eos_token_ids={*vocabulary.eos_token_ids, *token_ids},
        special_token_ids=vocabulary.special_token_ids,
        special_tokens=vocabulary.special_tokens,
    )
