"""What endpoints have in common: from a request to sequences, from their events to usage and log-probabilities."""

from __future__ import annotations

import codecs
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from structgen.core.constraints.tools import ToolCalls
from structgen.core.engines.protocols import Grammar
from structgen.core.regions import Region
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import OptionsError
from structgen.generation.decoding.output import FinishReason
from structgen.generation.decoding.regions import checked_regions
from structgen.generation.fields.asking import Fields
from structgen.generation.fields.layout import layout_of, placed_regions
from structgen.generation.fields.results import FieldBelief
from structgen.generation.filters.table import FILTERS
from structgen.generation.prepared_model import section_of
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.request import SequenceTerms
from structgen.server.errors import RequestError, as_request_error
from structgen.server.formats import PlacedConstraint
from structgen.server.openai_types import CommonFields, SamplingFields, StructgenExtension
from structgen.server.outputs import OutputForm
from structgen.server.sequences import SequenceEnd, SequenceEvent, SequenceRequest, TokenChoice
from structgen.server.settings import ServingSettings

SEEDS = 1 << 64
MAX_FIELDS = 32  # whose probabilities are read for an output


@dataclass(frozen=True)
class InferenceRequest:
    """What a request of an endpoint asks for.

    Attributes:
        asked: its fields, for what its answer says besides.
        sequence: what each output is; see ``sequences`` for what it lacks.
        prompts: token ids of each prompt.
        choices: outputs for each prompt. written: so many are written, of which the best are answered with; 0: these.
        constraint: what each must be; None: free text.
        logprobs: how many of the likeliest tokens to report with each; None: no log-probabilities at all.
        form: how the outputs are read.
    """

    asked: CommonFields = field(repr=False)
    sequence: SequenceRequest
    prompts: Sequence[Sequence[int]]
    choices: int = 1
    written: int = 0
    constraint: PlacedConstraint | None = None
    logprobs: int | None = None
    form: OutputForm = field(default_factory=OutputForm)

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all prompts."""
        return sum(map(len, self.prompts))

    @property
    def include_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        return bool(self.asked.stream_options and self.asked.stream_options.include_usage)

    def sequences(self, grammar: Grammar | None, budget: Any, key: str) -> list[SequenceRequest]:
        """One sequence for each output; the i-th of a prompt is drawn with ``seed + i``.

        Args:
            budget: from the prompt's tokens and the tokens wanted to how many an output may have.
            key: who asks. What was read for one key is not taken over for another, since timing would show it.
        """
        one, params = self.sequence, self.sequence.params
        section = section_of(None if self.constraint is None else self.constraint.constraint)
        one = replace(one, grammar=grammar, key=key, salt=f"{key} {one.salt}", section=section)
        if one.fields is not None and self.constraint is not None:
            one = replace(one, layout=layout_of(self.constraint.constraint, one.fields))
        count = 1 if one.beams is not None else self.written or self.choices
        seeds = [None if params.seed is None else (params.seed + number) % SEEDS for number in range(count)]
        return [
            replace(
                one,
                prompt_ids=ids,
                params=replace(params, seed=seed),
                max_new_tokens=budget(len(ids), one.max_new_tokens),
            )
            for ids in self.prompts
            for seed in seeds
        ]

    @property
    def is_chosen(self) -> bool:
        """Whether nothing can be said of any output before all are written."""
        return self.sequence.beams is not None or self.written > self.choices

    def chosen(self, events: Sequence[SequenceEvent]) -> list[SequenceEvent]:
        """What is answered with, of the last events of all that was written: the best of each prompt first."""
        if self.sequence.beams is not None:
            return [one for event in events for one in (event, *event.others)]
        if not self.is_chosen:
            return list(events)
        prompts = (events[start : start + self.written] for start in range(0, len(events), self.written))
        ranked = (sorted(prompt, key=lambda event: -end_of(event).logprob) for prompt in prompts)
        return [event for prompt in ranked for event in prompt[: self.choices]]

    def finish_reason(self, reason: FinishReason, has_calls: bool = False) -> str:
        """How an output ended, as an answer says it."""
        if reason == "length" and self.asked.structgen.on_budget != "close":
            return "length"
        return "tool_calls" if has_calls else "stop"


TERMS = {each.name for each in fields(SequenceTerms)}


def sequence_of(
    request: CommonFields, vocabulary: Vocabulary, settings: ServingSettings, **more: Any
) -> SequenceRequest:
    """What each output of a request is: ``more``, and the fields of the request that are named as ``SequenceTerms``.

    Raises:
        RequestError: a value out of range.
    """
    named = {name: value for name in TERMS if (value := getattr(request, name, None)) is not None}
    named_fields = {
        "params": sampling_of(request, vocabulary, settings),
        "stop": stops_of(request) if isinstance(request, SamplingFields) else (),
        "salt": request.cache_salt or "",
        "log_mass": request.structgen.log_mass,
        "spelling": request.structgen.spelling,
        "heal_prompt": request.structgen.heal_prompt,
        "fields": fields_of(request.structgen),
        "streams": bool(request.stream),
        "seconds": settings.total_seconds,
        "queue_seconds": settings.queue_seconds,
    }
    return SequenceRequest((), **named | named_fields | more)


def sampling_of(request: CommonFields, vocabulary: Vocabulary, settings: ServingSettings) -> SamplingParams:
    """How tokens are drawn; where the request says nothing, as the server is set, or as suits the model.

    Raises:
        RequestError: a value out of range.
    """
    bias = {int(token): value for token, value in (request.logit_bias or {}).items() if value}
    wrong = next((token for token in bias if token >= vocabulary.size), None)
    if wrong is not None:
        raise RequestError.at(
            ("logit_bias", str(wrong)),
            f"the vocabulary has {vocabulary.size} tokens, from 0 on; there is no token {wrong}",
        )
    drawn = {one.name: one.neutral for one in FILTERS if one.served} | settings.sampling_defaults
    drawn |= {name: value for name in drawn if (value := getattr(request, name)) is not None}
    drawn |= {one.name: None for one in FILTERS if one.served and one.is_count and (drawn[one.name] or 0) <= 0}
    try:
        return SamplingParams(
            **drawn,
            seed=None if request.seed is None else request.seed % SEEDS,
            frequency_penalty=float(request.frequency_penalty or 0.0),
            presence_penalty=float(request.presence_penalty or 0.0),
            logit_bias=bias,
        )
    except OptionsError as error:
        raise as_request_error(error) from None


def stops_of(request: SamplingFields) -> tuple[str, ...]:
    """The stop strings.

    Raises:
        RequestError: one is empty.
    """
    stop = request.stop
    stops = () if stop is None else (stop,) if isinstance(stop, str) else tuple(stop)
    if not all(stops):
        raise RequestError.at(("stop",), "a stop string is empty")
    return stops


def choices_of(request: SamplingFields, settings: ServingSettings) -> int:
    """``n``.

    Raises:
        RequestError: more than the server writes.
    """
    count = request.n or 1
    if count > settings.max_choices:
        raise RequestError.at(("n",), f"n is {count}, and at most {settings.max_choices} outputs are written")
    return count


def new_id(prefix: str) -> str:
    """An id that nobody else has."""
    return f"{prefix}{secrets.token_hex(12)}"


def call_id(calls: ToolCalls | None) -> str:
    """The id of a tool call; nine letters or digits where Mistral's templates read it."""
    if calls is not None and calls.calls.format.name.startswith("mistral"):
        return secrets.token_hex(5)[:9]
    return new_id("call_")


# --- what answers say of tokens ---
def token_text(vocabulary: Vocabulary, token_id: int) -> bytes:
    """What shows of a token: its bytes, or the name of a special one."""
    data = vocabulary.tokens[token_id]
    return data or vocabulary.names_of(token_id).encode()


def token_fields(vocabulary: Vocabulary, token_id: int, logprob: float) -> dict[str, Any]:
    """A token with its log-probability."""
    data = token_text(vocabulary, token_id)
    return {"token": data.decode("utf-8", "replace"), "logprob": logprob, "bytes": list(data)}


def choice_fields(vocabulary: Vocabulary, choice: TokenChoice, top: int) -> dict[str, Any]:
    """A token of an output, with the likeliest there."""
    others = [token_fields(vocabulary, token, logprob) for token, logprob in choice.top[:top]]
    fields = token_fields(vocabulary, choice.token_id, choice.logprob)
    return {**fields, "top_logprobs": others, **_mass_fields(choice)}


def trace_fields(vocabulary: Vocabulary, choice: TokenChoice) -> dict[str, Any]:
    """How a token came about: the only one allowed, drafted and agreed to, or chosen; among how many."""
    kind = "forced" if choice.allowed == 1 else "drafted" if choice.drafted else "chosen"
    fields = token_fields(vocabulary, choice.token_id, choice.logprob)
    return {**fields, "kind": kind, "allowed": choice.allowed, **_mass_fields(choice)}


def _mass_fields(choice: TokenChoice) -> dict[str, Any]:
    """What the mask left where a token was chosen, where that was asked for."""
    return {} if choice.log_mass is None else {"log_mass": choice.log_mass}


def fields_of(asked: StructgenExtension) -> Fields | None:
    """The fields whose probabilities are asked for.

    Raises:
        RequestError: one is no JSON Pointer.
    """
    if not asked.fields:
        return None
    try:
        pointers = None if asked.fields is True else tuple(asked.fields)
        return Fields(pointers, fields=MAX_FIELDS)
    except OptionsError as error:
        raise RequestError.at(("structgen", "fields"), str(error)) from error


def check_fields(work: InferenceRequest, *, calls: bool = False) -> None:
    """Refuse fields of outputs that have none.

    Raises:
        RequestError: there is no constraint, tools may be called, or a pointer is asked for that no output has.
    """
    fields = work.sequence.fields
    if fields is None:
        return
    try:
        if calls:
            raise OptionsError("fields are of answers; leave the tools out, or fields", option="fields")
        layout_of(None if work.constraint is None else work.constraint.constraint, fields)
    except OptionsError as error:
        raise RequestError.at(("structgen", "fields"), str(error)) from error


def check_healing(asked: StructgenExtension, *, is_text: bool) -> None:
    """Refuse to heal prompts that are no texts, and along with what reads the model after a prompt as it is.

    Raises:
        RequestError: it is asked for, and cannot be done.
    """
    why = None
    if not is_text:
        why = (
            "it is of the prompts of /v1/completions that are texts: those of chats end as the model's template ends "
            "them, where its training went on, and lists of tokens have their spelling"
        )
    elif asked.fields:
        why = "fields are read after a prompt as it is; leave out one of them"
    if asked.heal_prompt and why is not None:
        raise RequestError.at(("structgen", "heal_prompt"), f"heal_prompt: {why}", "unsupported_value")


def with_regions(work: InferenceRequest, *, calls: bool = False) -> InferenceRequest:
    """With the regions that are asked for, and those that a schema has.

    Raises:
        RequestError: tools may be called, or there is no such field or rule.
    """
    placed = work.constraint
    try:
        asked = checked_regions({name: Region(**dict(each)) for name, each in work.asked.structgen.regions.items()})
        if calls and asked:
            raise OptionsError("regions are of answers; leave the tools out, or regions", option="regions")
        constraint, regions = placed_regions(None if placed is None else placed.constraint, asked)
    except OptionsError as error:
        raise RequestError.at(("structgen", "regions"), str(error)) from error
    if placed is not None and constraint is not None:
        placed = PlacedConstraint(constraint, placed.place, placed.kind)
    return replace(work, constraint=placed, sequence=replace(work.sequence, regions=regions))


def with_healed(choice: dict[str, Any], work: InferenceRequest, event: SequenceEvent) -> dict[str, Any]:
    """A choice that is whole, with how its prompt's end was spelled, where that was asked for; null where the prompt
    ends as the tokenizer cuts it whatever follows."""
    if not work.sequence.heal_prompt:
        return choice
    return {**choice, "structgen": {"healed": None if event.healed is None else event.healed.as_fields()}}


def with_fields(choice: dict[str, Any], work: InferenceRequest, end: SequenceEnd) -> dict[str, Any]:
    """A choice that is whole, with how likely the values of its fields were, where that was asked for: of each value,
    type or text its numbers, the likeliest options first; null where there was no room to read them. What was asked for
    and is not there is listed, what is more than are read is counted."""
    if work.sequence.fields is None:
        return choice
    most, fields = work.asked.structgen.field_options, end.fields
    shown = None if fields is None else {name: _field_fields(each, most) for name, each in fields.items()}
    said: dict[str, Any] = {"fields": shown, "field_tokens": 0 if fields is None else fields.tokens}
    if fields is not None and fields.absent:
        said["absent_fields"] = list(fields.absent)
    if fields is not None and fields.left_out:
        said["fields_left_out"] = fields.left_out
    return {**choice, "structgen": said}


def _field_fields(one: FieldBelief, most: int) -> dict[str, Any]:
    shown: dict[str, Any] = {"written": one.written, "prob": one.prob}
    for name, belief in (("value", one.value), ("type", one.type)):
        if belief is not None:
            options = [{"value": each.value, "prob": each.prob, "local": each.local} for each in belief.options[:most]]
            shown[name] = {"prob": belief.prob, "kept": belief.kept, "slack": belief.slack, "options": options}
    if one.text is not None:
        shown["text"] = asdict(one.text)
    return shown


class TokenPlaces:
    """Where tokens begin in the text of an output, in characters.

    Attributes:
        offset: how many the text has so far that nothing can change.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.offset = 0

    def of(self, token_id: int) -> int:
        """Where the next token begins; of one that goes on with a character, where that does."""
        data = self._vocabulary.tokens[token_id]
        goes_on = bool(data) and 0x80 <= data[0] < 0xC0
        return self.offset + (self._is_cut and not goes_on)

    @property
    def _is_cut(self) -> bool:
        """Whether the text ends within a character, which is U+FFFD where it stays so."""
        return bool(self._decoder.getstate()[0])

    def add_bytes(self, data: bytes) -> None:
        """The text goes on with these."""
        self.offset += len(self._decoder.decode(data))

    def add(self, token_id: int, text: str) -> None:
        """It goes on with a token; ``text`` is all of it: a special token that was named stands there by its name."""
        data = self._vocabulary.tokens[token_id]
        name = "" if data else self._vocabulary.names_of(token_id)
        start = self.offset + self._is_cut
        if name and text.startswith(name, start):
            self._decoder.reset()
            self.offset = start + len(name)
        self.add_bytes(data)


class TokenStream:
    """Streams the tokens of one output along with its text: those that begin in what was streamed of it.

    So tokens of a stop string, which is cut off, are not streamed.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._places = TokenPlaces(vocabulary)
        self._waiting: list[TokenChoice] = []
        self._is_begun = False

    def add(self, event: SequenceEvent) -> None:
        """The tokens that came, after what a healed prompt has of the text."""
        if event.healed is not None and not self._is_begun:
            self._places.add_bytes(event.healed.data)
        self._is_begun = True
        self._waiting += event.tokens

    def with_text(self, text: str) -> list[tuple[int, TokenChoice]]:
        """Tokens to be streamed with a text, all that is known of the output, each with where it begins in it."""
        streamed = []
        for choice in self._waiting:
            offset = self._places.of(choice.token_id)
            if offset >= len(text):
                break
            streamed.append((offset, choice))
            self._places.add(choice.token_id, text)
        self._waiting = self._waiting[len(streamed) :]
        return streamed


# --- usage ---
def usage_of(work: InferenceRequest, ends: Sequence[SequenceEnd], thinking_tokens: int = 0) -> dict[str, Any]:
    """``usage`` of chat and completions."""
    completion = sum(len(end.token_ids) for end in ends)
    return {
        "prompt_tokens": work.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": work.prompt_tokens + completion,
        "prompt_tokens_details": {"cached_tokens": cached_tokens(work, ends)},
        "completion_tokens_details": {
            "reasoning_tokens": thinking_tokens,
            "accepted_prediction_tokens": sum(end.stats.accepted_prediction_tokens for end in ends),
            "rejected_prediction_tokens": sum(end.stats.rejected_prediction_tokens for end in ends),
        },
    }


def cached_tokens(work: InferenceRequest, ends: Sequence[SequenceEnd]) -> int:
    """Tokens of the prompts that were known and not read for the first output of each."""
    return sum(end.cached_tokens for end in ends[:: work.choices])


def end_of(event: SequenceEvent) -> SequenceEnd:
    """How an output ended, from its last event."""
    assert event.end is not None
    return event.end


def thinking_tokens(work: InferenceRequest, vocabulary: Vocabulary, event: SequenceEvent) -> int:
    """How many of an output's tokens begin in its thinking, the marks included; ``event`` is its last."""
    spans = work.form.thinking_spans(event.text)
    places, count = TokenPlaces(vocabulary), 0
    for token in end_of(event).token_ids if spans else ():
        offset = places.of(token)
        count += any(first <= offset < last for first, last in spans)
        places.add(token, event.text)
    return count
