"""``Generator``: a model, its tokenizer and vocabulary, held once, writing constrained outputs."""

from __future__ import annotations

import math
import os
from collections import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import numpy as np

from structgen.batch import BatchProgress, BatchRow, BatchRows
from structgen.constraints.base import Constraint
from structgen.constraints.json import as_constraint
from structgen.constraints.thinking import THINK, THOUGHT, Thinking
from structgen.decoding.batching.budget import SchedulerLimits
from structgen.decoding.batching.inline import ROWS, steps, write
from structgen.decoding.batching.request import Event, Request
from structgen.decoding.batching.scheduler import Scheduler
from structgen.decoding.output import Output
from structgen.decoding.prompts import Place, Prompt, place_of_instruction, prompt_token_ids
from structgen.decoding.sampling import SamplingParams, masked_log_probs, to_numpy
from structgen.decoding.sections import SectionBudget
from structgen.decoding.speculative.cost import CostCurve
from structgen.decoding.speculative.drafts import make_speculator, prepare
from structgen.decoding.speculative.forced import CanonicalTokens
from structgen.decoding.speculative.speculator import Speculator
from structgen.engines.protocols import Grammar
from structgen.errors import GenerationError, ModelError, OptionsError, RefusedValueError, StructgenError
from structgen.generation_options import OWN_DRAFT, GenerationOptions, GenerationSettings, checked_settings
from structgen.generation_results import ChoiceResult, GenerationResult, StreamEvent, captures_so_far, result_of
from structgen.models.language_model import LanguageModel, check_reads_trees, reads_asynchronously
from structgen.models.readers import ragged_reader
from structgen.options import check_count, refuse_name
from structgen.progress import ProgressCallback, report_progress
from structgen.vocabulary.vocabulary import Vocabulary, check_vocabulary

if TYPE_CHECKING:
    from structgen.decoding.aligned import Budget, Method, SampleRun, Target

LAST_TOKENS = 16  # of a prompt, in which it may begin the thinking
KEPT_SPECULATORS = 8  # with what they have learned, for calls that ask for the same draft
_TARGET = ("temperature", "top_p", "top_k", "max_new_tokens", "schema_in_prompt")  # the options of ``target``


class Generator:
    """Writes outputs that satisfy constraints, with any causal language model.

    Sampling targets the *local* distribution: at each step the model's, masked by the constraint and renormalised.
    A generator holds no state between calls but what its drafts have learned and the prompts that it has read last
    (keys and values, up to 256 MB), which changes their speed only. It is not for concurrent calls from several
    threads; use ``batch``, or a ``Scheduler`` over its ``reader``.

    Args:
        model: a GGUF file, a Hugging Face id or folder, a loaded transformers model, a ``LanguageModel``; None: the
            built-in model.
        tokenizer: with a loaded model, its tokenizer.
        backend: what runs a model given by name: "llamacpp" or "transformers"; None: llama.cpp for GGUF files and the
            built-in model, where it is installed, else transformers.
        device, dtype: where and how transformers loads a model given by name (CPU, float32).
        vocabulary: in place of the tokenizer's own.
        draft: what drafts tokens that the model then reads several at a time, which changes the speed, not the
            outputs: "auto", "ngram", a smaller model, a datastore, a list of such (docs/speculative.md); None: nothing.
        progress: told of what takes over a second beside the writing: loading, compiling, preparing drafts (see
            ``report_progress``); None: the log.

    Raises:
        ModelError: the model cannot be loaded.
        TokenizerError: its tokenizer cannot be read.
    """

    def __init__(
        self,
        model: Any = None,
        tokenizer: Any = None,
        *,
        backend: str | None = None,
        device: Any = None,
        dtype: Any = None,
        vocabulary: Vocabulary | None = None,
        draft: Any = None,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.progress = progress
        if model is None or isinstance(model, (str, os.PathLike)):
            from structgen.loading import load_model

            with report_progress(progress):
                model, loaded_tokenizer = load_model(model, backend=backend, device=device, dtype=dtype)
            tokenizer = tokenizer if tokenizer is not None else loaded_tokenizer
        elif not hasattr(model, "prefill") and not hasattr(model, "get_output_embeddings"):
            raise ModelError(
                f"model is {model!r:.100} ({type(model).__name__}); expected a GGUF file, a Hugging Face id or folder, "
                "or a loaded model with its tokenizer."
            )
        elif not hasattr(model, "prefill"):
            from structgen.models.transformers_model import TransformersModel

            model = TransformersModel(model)
        if tokenizer is None:
            raise ModelError("A loaded model needs its tokenizer: Generator(model, tokenizer).")
        self.model: LanguageModel = model
        self.tokenizer = tokenizer
        if vocabulary is not None:
            check_vocabulary(vocabulary)
        with report_progress(progress):
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
            RefusedValueError: the type's own validators refuse the value, in each of the ``attempts``.
            GenerationError: no room for the prompt.
            ConstraintError: the constraint cannot be used.
        """
        settings = checked_settings(**options)
        checked = as_constraint(constraint)
        row = BatchRow(prompt, checked, settings.params.seed, settings.prediction)
        while True:
            request = self._request(row, checked, settings)
            for _ in self._write(request):
                pass
            row = replace(row, attempt=row.attempt + 1)
            try:
                return result_of(request.output, checked, row.attempt)
            except RefusedValueError:
                if row.attempt == settings.attempts:
                    raise

    def stream(
        self,
        prompt: Prompt,
        constraint: Any = None,
        **options: Unpack[GenerationOptions],
    ) -> Iterator[StreamEvent]:
        """Write one output, yielding text as it settles. Arguments and errors as ``generate``; the last event has
        the ``result``. Bad arguments raise at the call, before the first event. There is one attempt: what was shown
        cannot be taken back."""
        settings = checked_settings(**options)
        if settings.attempts != 1:
            raise OptionsError(f"a stream has one attempt, not attempts={settings.attempts}; use generate")
        checked = as_constraint(constraint)
        row = BatchRow(prompt, checked, settings.params.seed, settings.prediction)
        request = self._request(row, checked, settings, streams=True)
        return _stream(self._write(request), request.output, checked)

    @overload
    def batch(
        self,
        prompts: Iterable[Prompt],
        constraints: Any = None,
        *,
        seeds: Iterable[int] | None = None,
        batch_size: int = ROWS,
        return_exceptions: Literal[False] = False,
        progress: Callable[[BatchProgress], object] | None = None,
        **options: Unpack[GenerationOptions],
    ) -> list[GenerationResult]: ...

    @overload
    def batch(
        self,
        prompts: Iterable[Prompt],
        constraints: Any = None,
        *,
        seeds: Iterable[int] | None = None,
        batch_size: int = ROWS,
        return_exceptions: bool,
        progress: Callable[[BatchProgress], object] | None = None,
        **options: Unpack[GenerationOptions],
    ) -> list[GenerationResult | StructgenError]: ...

    def batch(
        self,
        prompts: Iterable[Prompt],
        constraints: Any = None,
        *,
        seeds: Iterable[int] | None = None,
        batch_size: int = ROWS,
        return_exceptions: bool = False,
        progress: Callable[[BatchProgress], object] | None = None,
        **options: Unpack[GenerationOptions],
    ) -> Any:
        """Write one output a prompt, together: one model call a step for all that are being written.

        Row i is drawn with ``seed + i``, so it is what ``generate(prompts[i], ..., seed=seed + i)`` gives, up to the
        last bits of the model's batched logits. An error in one row leaves the others alone.

        Args:
            prompts: as ``generate`` takes them; taken as rows come free, at most ``batch_size`` before their turn.
            constraints: one for all; or a list, tuple or iterator with one (or None) a prompt.
            seeds: one a row, in place of ``seed + i``.
            batch_size: rows that are written at once.
            return_exceptions: give the error of a row in its place, rather than raise.
            progress: called whenever a row is done.
            **options: see ``GenerationOptions``.

        Raises:
            StructgenError: a row failed, and ``return_exceptions`` is False: the error of the first that did, when all
                rows are done. ``row`` is its index, ``results`` has all results, and errors in their places.
                Otherwise what ``generate`` raises, for what is wrong with the call and not with a row.
        """
        outcomes = dict(self.stream_batch(
            prompts, constraints, seeds=seeds, batch_size=batch_size, progress=progress, **options
        ))  # fmt: skip
        results = [outcomes[row] for row in range(len(outcomes))]
        failed = next((outcome for outcome in results if isinstance(outcome, StructgenError)), None)
        if failed is not None and not return_exceptions:
            failed.results = results
            raise failed
        return results

    def stream_batch(
        self,
        prompts: Iterable[Prompt],
        constraints: Any = None,
        *,
        seeds: Iterable[int] | None = None,
        batch_size: int = ROWS,
        progress: Callable[[BatchProgress], object] | None = None,
        **options: Unpack[GenerationOptions],
    ) -> abc.Generator[tuple[int, GenerationResult | StructgenError], None, None]:
        """``batch``, row by row as they are done: index, and result or error. Endless prompts are fine."""
        settings = checked_settings(**options)
        check_count("batch_size", batch_size)
        rows = BatchRows(prompts, constraints, seeds, settings.params.seed, settings.prediction)
        if rows.common is not None:
            self._compiled(rows.common)  # what is wrong with it is wrong with the call
        overlapped = reads_asynchronously(self.model)
        return rows.written(
            lambda row, constraint: self._request(row, constraint, settings),
            lambda requests: steps(self.reader, requests, rows=batch_size, overlapped=overlapped, spell=self._spell),
            progress,
            settings.attempts,
        )

    def choice(self, prompt: Prompt, options: Sequence[str]) -> ChoiceResult:
        """The probability of each option as the whole reply, given that the reply is one of them.

        Exact: the sum of the log-probabilities of the option's tokens, as the tokenizer spells it, and of the end of
        sequence after them, normalised over the options. The options are not put into the prompt.

        Raises:
            GenerationError: no options, an empty one, or one twice.
        """
        if (
            isinstance(options, str)
            or not isinstance(options, Iterable)
            or not all(isinstance(option, str) for option in options)
        ):
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
        thinking = after_prompt(checked, ids, self.vocabulary)
        if self.model.context_length is not None:
            max_new_tokens = min(max_new_tokens, self.model.context_length - len(ids))
        params = SamplingParams(temperature, top_k, top_p)
        with report_progress(self.progress):
            return Target(self.model, ids, thinking, self.vocabulary, params, max_new_tokens)

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

    def _request(
        self, row: BatchRow, constraint: Constraint | None, settings: GenerationSettings, *, streams: bool = False
    ) -> Request:
        """What is asked of the scheduler: the prompt's token ids and the output to be written after them."""
        ids, prediction = self._prompt_ids(row.prompt, constraint, settings.instruct), row.prediction
        constraint = after_prompt(constraint, ids, self.vocabulary)
        budget = settings.max_new_tokens
        if self.model.context_length is not None:
            budget = min(budget, self.model.context_length - len(ids))
            if budget < 1:
                raise GenerationError(
                    f"The prompt has {len(ids)} tokens, the model reads {self.model.context_length}; shorten it"
                    + (" (or pass schema_in_prompt=False)." if constraint is not None and settings.instruct else ".")
                )
        params = settings.drawn(row.seed, row.attempt)
        matcher = None if constraint is None else self._compiled(constraint).matcher()
        output = Output(
            self.vocabulary, matcher, params,
            max_new_tokens=budget, stop=settings.stop, prompt_ids=ids, section=section_of(constraint),
        )  # fmt: skip
        if not (prediction is None or isinstance(prediction, str)):
            raise OptionsError(f"prediction must be a string, or for batches one a prompt, not {prediction!r:.100}")
        draft = self._draft if settings.draft is OWN_DRAFT else settings.draft
        speculator = self._speculator(draft, prediction is not None)
        return Request(ids, output, speculator, streams=streams, prediction=prediction)

    def _compiled(self, constraint: Constraint) -> Grammar:
        """What its outputs are masked by."""
        with report_progress(self.progress):
            return unbudgeted(constraint).compile(self.vocabulary)

    def _write(self, request: Request) -> Iterator[list[Event]]:
        """Write one output, step by step."""
        return write(self.reader, [request], overlapped=reads_asynchronously(self.model), spell=self._spell)

    @cached_property
    def _cost_curve(self) -> CostCurve:
        """What reading several tokens at once costs; measured when drafts are first asked for."""
        return prepare(self.model)

    def _spell(self, text: str) -> Sequence[int]:
        """The tokens of a text that may be written, as far as the tokenizer spells it."""
        return CanonicalTokens(self.tokenizer, self.vocabulary).spell(text.encode())

    def _speculator(self, draft: Any, predicts: bool) -> Speculator | None:
        """What drafts, with what it has learned."""
        if draft is None and not predicts:
            return None
        speculator = next((known for made_of, known in self._speculators if made_of is draft or made_of == draft), None)
        if speculator is None:
            with report_progress(self.progress):
                speculator = make_speculator(
                    draft, self.model, self.tokenizer, self.vocabulary, lambda: self._cost_curve
                )
            self._speculators = [*self._speculators[1 - KEPT_SPECULATORS :], (draft, speculator)]
        check_reads_trees(self.model)
        return speculator


def after_prompt(constraint: Constraint | None, prompt_ids: Sequence[int], vocabulary: Vocabulary) -> Constraint | None:
    """The constraint of what follows a prompt: thinking may have been begun in it."""
    if not isinstance(constraint, Thinking):
        return constraint
    last = prompt_ids[-LAST_TOKENS:]
    names = [vocabulary.names_of(token) if not vocabulary.tokens[token] else "" for token in last]
    shown = b"".join(name.encode() or vocabulary.tokens[token] for name, token in zip(names, last, strict=True))
    return constraint.after(shown.decode(errors="replace"))


def unbudgeted(constraint: Constraint) -> Constraint:
    """A constraint as it is compiled by whoever keeps its ``section_of``."""
    return constraint.unbudgeted() if isinstance(constraint, Thinking) else constraint


def section_of(constraint: Constraint | None) -> SectionBudget | None:
    """What its thinking may take; None where nothing says so."""
    if not isinstance(constraint, Thinking) or constraint.max_think_tokens is None:
        return None
    return SectionBudget("" if constraint.begin == "begun" else THINK, THOUGHT, constraint.max_think_tokens)


def _stream(steps: Iterator[list[Event]], output: Output, constraint: Constraint | None) -> Iterator[StreamEvent]:
    """The events of the only request."""
    shown = ""
    for step in steps:
        for event in step:
            shown += event.text
            if event.is_last:
                result = result_of(output, constraint)
                yield StreamEvent(event.text, shown, result, constraint, result.captures)
            elif event.text:
                yield StreamEvent(event.text, shown, None, constraint, captures_so_far(output))


def _eos_token_ids(model: Any, tokenizer: Any) -> tuple[int, ...] | None:
    """All ids that end a reply: the model's settings and the tokenizer's may name different ones (chat models do)."""
    ids = set(getattr(model, "eos_token_ids", ()))
    own = getattr(tokenizer, "eos_token_id", None)
    if own is not None:
        ids.add(own)
    return tuple(sorted(ids)) or None
