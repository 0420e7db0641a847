"""``Generator``: a model, its tokenizer and vocabulary, held once, writing constrained outputs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from structgen.constraints.base import Constraint
from structgen.constraints.json import as_constraint
from structgen.decoding.batching.budget import SchedulerLimits
from structgen.decoding.batching.inline import write
from structgen.decoding.batching.request import Event, Request
from structgen.decoding.batching.scheduler import Scheduler
from structgen.decoding.output import FinishReason, GenerationStats, Output
from structgen.decoding.prompts import Place, Prompt, place_of_instruction, prompt_token_ids
from structgen.decoding.sampling import SamplingParams, masked_log_probs, to_numpy
from structgen.decoding.speculative.cost import CostCurve
from structgen.decoding.speculative.drafts import make_speculator, prepare
from structgen.decoding.speculative.forced import CanonicalTokens
from structgen.decoding.speculative.speculator import Speculator
from structgen.engines.capture import Captures, LazyCaptures
from structgen.engines.captures.capturing import captures_of, names_captures
from structgen.errors import GenerationError, ModelError, OptionsError
from structgen.models.language_model import LanguageModel, check_reads_trees, reads_asynchronously
from structgen.models.readers import ragged_reader
from structgen.options import check_count, refuse_name
from structgen.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from structgen.decoding.aligned import Budget, Method, SampleRun, Target

DEFAULT_MAX_NEW_TOKENS = 512
KEPT_SPECULATORS = 8  # with what they have learned, for calls that ask for the same draft
_SAMPLING = tuple(field.name for field in fields(SamplingParams))
_TARGET = ("temperature", "top_p", "top_k", "max_new_tokens", "schema_in_prompt")  # the options of ``target``
_OWN_DRAFT: Any = object()  # the default of the option ``draft``: what the generator was made with


@dataclass(frozen=True)
class GenerationResult:
    """A finished output.

    Attributes:
        value: what the constraint makes of the text; without a constraint, the text.
        text: the output; special tokens that the constraint names are shown by their names.
        token_ids: its tokens, without end of sequence (a stop string that was cut off is still in them).
        finish_reason: "stop", or "length" where the token budget shaped the end.
        logprob: nats, under the model at temperature 1 masked by the constraint and renormalised at each step.
        stats: counts and times.
        captures: the named parts of the text, if the constraint names any; looked for when asked for.
    """

    value: Any
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    logprob: float
    stats: GenerationStats
    captures: Captures = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class StreamEvent:
    """A piece of an output. ``delta`` is new text, ``text`` all of it so far, ``result`` set on the last event only,
    ``captures`` the named parts of the text so far, looked for when asked for."""

    delta: str
    text: str
    result: GenerationResult | None = None
    _constraint: Constraint | None = None
    captures: Captures = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def partial(self) -> Any:
        """The value as far as it goes (plain JSON values; None before the first); computed when asked for."""
        return self.text if self._constraint is None else self._constraint.parse_partial(self.text)


@dataclass(frozen=True)
class ChoiceResult:
    """``value`` is the likeliest option; ``probs`` sum to 1 over the options, ``logprobs`` (nats) are the model's."""

    value: str
    probs: dict[str, float]
    logprobs: dict[str, float]


class GenerationOptions(TypedDict, total=False):
    """Keyword arguments of ``generate``, ``stream`` and ``batch``.

    Attributes:
        temperature: 0 (default) is greedy.
        top_p, top_k, min_p, typical_p, epsilon_cutoff, eta_cutoff, top_n_sigma, top_h, order: filters, applied after
            the constraint's mask; repetition_penalty, presence_penalty, frequency_penalty, logit_bias: changes of
            logits before it. ``SamplingParams`` says what each does; by default none does anything.
        seed: of the random numbers; None (default) takes fresh entropy.
        max_new_tokens: the budget (default 512); before it runs out the output is steered to close.
        stop: strings that end the output and are cut off. Under a constraint the output must be whole by then.
        schema_in_prompt: tell the model about the schema: True (default) and "user" in the last message of the user,
            "system" in the system's, which prompts with one schema share, so that it is read once; False: not at all.
        draft: in place of the generator's own ``draft``, for this call.
        prediction: a text that the output may be much like, such as a file that is to be edited: what agrees with it is
            read many tokens at once, which changes the speed only. For ``batch`` also one (or None) a prompt.
    """

    temperature: float
    top_p: float
    top_k: int | None
    min_p: float
    typical_p: float
    epsilon_cutoff: float
    eta_cutoff: float
    top_n_sigma: float | None
    top_h: float | None
    order: tuple[str, ...]
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    logit_bias: Mapping[int, float]
    seed: int | None
    max_new_tokens: int
    stop: str | Sequence[str]
    schema_in_prompt: bool | Place
    draft: Any
    prediction: str | Sequence[str | None] | None


@dataclass(frozen=True)
class _Settings:
    """One call's keyword arguments, checked."""

    params: SamplingParams
    max_new_tokens: int
    stop: tuple[str, ...]
    instruct: Place | None
    draft: Any
    prediction: str | Sequence[str | None] | None

    def predictions(self, count: int) -> Sequence[str | None]:
        """One a prompt."""
        given = self.prediction
        each = [given] * count if given is None or isinstance(given, str) else list(given)
        if len(each) != count:
            raise GenerationError(f"{count} prompts, but {len(each)} predictions; give one, or one a prompt.")
        return each


class Generator:
    """Writes outputs that satisfy constraints, with any causal language model.

    Sampling targets the *local* distribution: at each step the model's, masked by the constraint and renormalised.
    A generator holds no state between calls but what its drafts have learned and the prompts that it has read last
    (keys and values, up to 256 MB), which changes their speed only. It is not for concurrent calls from several
    threads; use ``batch``, or a ``Scheduler`` over its ``reader``.

    Args:
        model: a Hugging Face id or folder, a loaded transformers model, a ``LanguageModel``; None: the default model.
        tokenizer: with a loaded model, its tokenizer.
        device, dtype: where and how a model given by name is loaded (CPU, float32).
        vocabulary: in place of the tokenizer's own.
        draft: what drafts tokens that the model then reads several at a time, which changes the speed, not the
            outputs: "auto", "ngram", a smaller model, a datastore, a list of such (docs/speculative.md); None: nothing.

    Raises:
        ModelError: the model cannot be loaded. TokenizerError: its tokenizer cannot be read.
    """

    def __init__(
        self,
        model: Any = None,
        tokenizer: Any = None,
        *,
        device: Any = None,
        dtype: Any = None,
        vocabulary: Vocabulary | None = None,
        draft: Any = None,
    ) -> None:
        if model is None or isinstance(model, (str, os.PathLike)):
            from structgen.models.store import load_model

            model, loaded_tokenizer = load_model(model, device=device, dtype=dtype)
            tokenizer = tokenizer if tokenizer is not None else loaded_tokenizer
        elif not hasattr(model, "prefill"):
            from structgen.models.transformers_model import TransformersModel

            model = TransformersModel(model)
        if tokenizer is None:
            raise ModelError("A loaded model needs its tokenizer: Generator(model, tokenizer).")
        self.model: LanguageModel = model
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary or Vocabulary.from_transformers(
            tokenizer, size=model.vocab_size, eos_token_ids=_eos_token_ids(model, tokenizer)
        )
        self.reader = ragged_reader(model)
        self._draft = draft
        self._speculators: list[tuple[Any, Speculator]] = []  # with what each was made of

    def generate(
        self,
        prompt: Prompt,
        constraint: Any = None,
        **options: Unpack[GenerationOptions],
    ) -> GenerationResult:
        """Write one output.

        Args:
            prompt: a string, or chat messages (``{"role": ..., "content": ...}``).
            constraint: a constraint, or anything ``json_schema`` takes; None: free text.
            **options: see ``GenerationOptions``.

        Raises:
            IncompleteOutputError: the output cannot be closed within the budget (``partial`` holds the text).
            GenerationError: no room for the prompt, or the type's own validators refuse the value.
            ConstraintError: the constraint cannot be used.
        """
        settings = _settings(**options)
        checked = as_constraint(constraint)
        ids, output = self._start(prompt, checked, settings, row=0)
        for _ in self._write([ids], [output], settings):
            pass
        return _result(output, checked)

    def stream(
        self,
        prompt: Prompt,
        constraint: Any = None,
        **options: Unpack[GenerationOptions],
    ) -> Iterator[StreamEvent]:
        """Write one output, yielding text as it settles. Arguments and errors as ``generate``; the last event has
        the ``result``. Bad arguments raise at the call, before the first event."""
        settings = _settings(**options)
        checked = as_constraint(constraint)
        ids, output = self._start(prompt, checked, settings, row=0)
        return _stream(self._write([ids], [output], settings, streams=True), output, checked)

    def batch(
        self,
        prompts: Sequence[Prompt],
        constraints: Any = None,
        **options: Unpack[GenerationOptions],
    ) -> list[GenerationResult]:
        """Write one output a prompt, together: one model call a step for all that are being written.

        ``constraints`` is one for all, or a list with one (or None) a prompt. Row i is drawn with ``seed + i``, so it
        is what ``generate(prompts[i], ..., seed=seed + i)`` gives, up to the last bits of the model's batched logits.
        Other arguments and errors as ``generate``; an error in one row raises for the batch.
        """
        settings = _settings(**options)
        each = constraints if isinstance(constraints, (list, tuple)) else [constraints] * len(prompts)
        if len(each) != len(prompts):
            raise GenerationError(f"{len(prompts)} prompts, but {len(each)} constraints; give one, or one a prompt.")
        checked = [as_constraint(constraint) for constraint in each]
        pairs = zip(prompts, checked, strict=True)
        started = [self._start(prompt, constraint, settings, row) for row, (prompt, constraint) in enumerate(pairs)]
        outputs = [output for _, output in started]
        for _ in self._write([ids for ids, _ in started], outputs, settings):
            pass
        return [_result(output, constraint) for output, constraint in zip(outputs, checked, strict=True)]

    def choice(self, prompt: Prompt, options: Sequence[str]) -> ChoiceResult:
        """The probability of each option as the whole reply, given that the reply is one of them.

        Exact: the sum of the log-probabilities of the option's tokens, as the tokenizer spells it, and of the end of
        sequence after them, normalised over the options. The options are not put into the prompt.

        Raises:
            GenerationError: no options, an empty one, or one twice.
        """
        if isinstance(options, str) or not all(isinstance(option, str) for option in options):
            raise GenerationError(f"choice needs a list of strings, not {options!r:.200}.")
        if not options or len(set(options)) < len(options) or not all(options):
            raise GenerationError(f"choice needs different, non-empty options, not {list(options)!r:.200}.")
        logits, cache = self.model.prefill([prompt_token_ids(self.tokenizer, prompt)])
        first, length = masked_log_probs(to_numpy(logits[0]), None), cache.length
        logprobs: dict[str, float] = {}
        for option in options:
            tokens = list(self.tokenizer.encode(option, add_special_tokens=False))
            rows = to_numpy(self.model.forward([tokens], cache)[0])
            cache.crop(length)
            steps = [first, *(masked_log_probs(row, None) for row in rows)]
            end = np.logaddexp.reduce(steps[-1][list(self.vocabulary.eos_token_ids)])
            logprobs[option] = float(sum(step[token] for step, token in zip(steps, tokens, strict=False)) + end)
        highest = max(logprobs.values())
        weights = {option: math.exp(value - highest) for option, value in logprobs.items()}
        total = sum(weights.values())
        probs = {option: weight / total for option, weight in weights.items()}
        return ChoiceResult(max(probs, key=probs.__getitem__), probs, logprobs)

    def target(
        self,
        prompt: Prompt,
        constraint: Any,
        *,
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int | None = None,
        max_new_tokens: int = 256,
        schema_in_prompt: bool | Place = True,
    ) -> Target:
        """The *global* target: the model's own distribution given that its text satisfies the constraint and has at
        most ``max_new_tokens`` tokens. Filters apply to the model, before the constraint. See docs/aligned.md.

        Raises:
            GenerationError: no constraint, or no room for the prompt. OptionsError, ConstraintError: bad arguments.
        """
        from structgen.decoding.aligned import Target

        check_count("max_new_tokens", max_new_tokens)
        checked = as_constraint(constraint)
        if checked is None:
            raise GenerationError("sample needs a constraint; free text is sampled by generate(temperature=1.0).")
        ids = self._prompt_ids(prompt, checked, place_of_instruction(schema_in_prompt))
        if self.model.context_length is not None:
            max_new_tokens = min(max_new_tokens, self.model.context_length - len(ids))
        params = SamplingParams(temperature, top_k, top_p)
        return Target(self.model, ids, checked, self.vocabulary, params, max_new_tokens)

    def sample(
        self,
        prompt: Prompt,
        constraint: Any,
        n: int,
        method: Method = "exact",
        *,
        seed: int | None = None,
        budget: Budget | None = None,
        **options: Any,
    ) -> SampleRun:
        """Draw ``n`` texts from the global target (see ``target``, which takes the ``options``), not the local one.

        Args:
            method: "exact" (default), "weighted", "asap", "local", "smc", "mh" or "rejection"; see ``Sampler``.
            budget: limits in model tokens or seconds. Fewer samples are then given, and ``stopped_by`` says so.

        Raises:
            UnsatisfiableTargetError: no text of the constraint can be written. Others as ``target``.
        """
        from structgen.decoding.aligned import PrefixStore, Sampler

        for name in options:
            if name not in _TARGET:
                refuse_name(name, [*_TARGET, "seed", "budget"])
        return Sampler(PrefixStore(self.target(prompt, constraint, **options)), method, seed=seed).draw(n, budget)

    def scheduler(self, limits: SchedulerLimits) -> Scheduler:
        """A scheduler of this generator's model, for loops of one's own; not to be used beside the generator."""
        return Scheduler(self.reader, limits, overlapped=reads_asynchronously(self.model), spell=self._spell)

    @property
    def drafts(self) -> bool:
        """Whether tokens are drafted where a call does not say otherwise."""
        return self._draft is not None

    def speculator(self, *, predicts: bool = False) -> Speculator | None:
        """What drafts where a call does not say otherwise, with what it has learned; None: nothing. ``predicts``: for
        requests that bring a prediction, never None."""
        return self._speculator(self._draft, predicts)

    def _prompt_ids(self, prompt: Prompt, constraint: Constraint | None, instruct: Place | None) -> list[int]:
        """Token ids of a prompt, in which the model may be told of the constraint."""
        if constraint is None or instruct is None:
            return prompt_token_ids(self.tokenizer, prompt)
        return prompt_token_ids(self.tokenizer, prompt, constraint.instruction(), instruct)

    def _start(
        self, prompt: Prompt, constraint: Constraint | None, settings: _Settings, row: int
    ) -> tuple[list[int], Output]:
        """The prompt's token ids and the output to be written after them."""
        ids = self._prompt_ids(prompt, constraint, settings.instruct)
        budget = settings.max_new_tokens
        if self.model.context_length is not None:
            budget = min(budget, self.model.context_length - len(ids))
            if budget < 1:
                raise GenerationError(
                    f"The prompt has {len(ids)} tokens, the model reads {self.model.context_length}; shorten it"
                    + (" (or pass schema_in_prompt=False)." if constraint is not None and settings.instruct else ".")
                )
        params = settings.params
        if params.seed is not None and row:
            params = replace(params, seed=params.seed + row)
        matcher = None if constraint is None else constraint.compile(self.vocabulary).matcher()
        output = Output(
            self.vocabulary, matcher, params,
            max_new_tokens=budget, stop=settings.stop, prompt_ids=ids,
        )  # fmt: skip
        return ids, output

    @cached_property
    def _cost_curve(self) -> CostCurve:
        """What reading several tokens at once costs; measured when drafts are first asked for."""
        return prepare(self.model)

    def _write(
        self, prompts: Sequence[Sequence[int]], outputs: Sequence[Output], settings: _Settings, *, streams: bool = False
    ) -> Iterator[list[Event]]:
        """Write the outputs, step by step."""
        draft, predictions = settings.draft, settings.predictions(len(outputs))
        if draft is _OWN_DRAFT:
            draft = self._draft
        requests = [
            Request(prompt, output, self._speculator(draft, text is not None), streams=streams, prediction=text)
            for prompt, output, text in zip(prompts, outputs, predictions, strict=True)
        ]
        return write(self.reader, requests, overlapped=reads_asynchronously(self.model), spell=self._spell)

    def _spell(self, text: str) -> Sequence[int]:
        """The tokens of a text that may be written, as far as the tokenizer spells it."""
        return CanonicalTokens(self.tokenizer, self.vocabulary).spell(text.encode())

    def _speculator(self, draft: Any, predicts: bool) -> Speculator | None:
        """What drafts, with what it has learned."""
        if draft is None and not predicts:
            return None
        speculator = next((known for made_of, known in self._speculators if made_of is draft or made_of == draft), None)
        if speculator is None:
            speculator = make_speculator(draft, self.model, self.tokenizer, self.vocabulary, lambda: self._cost_curve)
            self._speculators = [*self._speculators[1 - KEPT_SPECULATORS :], (draft, speculator)]
        check_reads_trees(self.model)
        return speculator


def _stream(steps: Iterator[list[Event]], output: Output, constraint: Constraint | None) -> Iterator[StreamEvent]:
    """The events of the only request."""
    shown = ""
    for step in steps:
        for event in step:
            shown += event.text
            if event.is_last:
                result = _result(output, constraint)
                yield StreamEvent(event.text, shown, result, constraint, result.captures)
            elif event.text:
                yield StreamEvent(event.text, shown, None, constraint, _captures(output))


def _settings(
    *,
    max_new_tokens: int = DEFAULT_MAX_NEW_TOKENS,
    stop: str | Sequence[str] = (),
    schema_in_prompt: bool | Place = True,
    draft: Any = _OWN_DRAFT,
    prediction: Any = None,
    **sampling: Any,
) -> _Settings:
    unknown = next((name for name in sampling if name not in _SAMPLING), None)
    if unknown is not None:
        refuse_name(unknown, [*_SAMPLING, "max_new_tokens", "stop", "schema_in_prompt", "draft", "prediction"])
    check_count("max_new_tokens", max_new_tokens)
    strings = (stop,) if isinstance(stop, str) else tuple(stop) if isinstance(stop, Sequence) else (stop,)
    if not all(isinstance(string, str) and string for string in strings):
        raise OptionsError(f"stop must be a string or strings, none empty, not {stop!r:.100}")
    texts = prediction if isinstance(prediction, (list, tuple)) else [prediction]
    if not all(text is None or isinstance(text, str) for text in texts):
        raise OptionsError(f"prediction must be a string, or a list of them for batch, not {prediction!r:.100}")
    instruct = place_of_instruction(schema_in_prompt)
    return _Settings(SamplingParams(**sampling), max_new_tokens, strings, instruct, draft, prediction)


def _result(output: Output, constraint: Constraint | None) -> GenerationResult:
    assert output.finish_reason is not None
    return GenerationResult(
        value=output.text if constraint is None else constraint.parse(output.text),
        text=output.text,
        token_ids=tuple(output.token_ids),
        finish_reason=output.finish_reason,
        logprob=output.log_prob,
        stats=output.stats,
        captures=_captures(output),
    )


def _captures(output: Output) -> Captures:
    """Those of the text so far; nothing is copied for grammars that name nothing."""
    grammar = None if output.matcher is None else output.matcher.grammar
    if grammar is None or not names_captures(grammar):
        return {}
    is_finished = output.finish_reason is not None
    data = output.data if is_finished else output.settled_data()
    return LazyCaptures(lambda: captures_of(grammar, data, is_finished=is_finished))


def _eos_token_ids(model: Any, tokenizer: Any) -> tuple[int, ...] | None:
    """All ids that end a reply: the model's settings and the tokenizer's may name different ones (chat models do)."""
    ids = set(getattr(model, "eos_token_ids", ()))
    own = getattr(tokenizer, "eos_token_id", None)
    if own is not None:
        ids.add(own)
    return tuple(sorted(ids)) or None
