"""``Generator``: a model, its tokenizer and vocabulary, held once, writing constrained outputs."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

from structgen.core.constraints.base import Constraint, T
from structgen.core.constraints.json import as_constraint
from structgen.core.constraints.sources import Source, Texts
from structgen.core.json_schema.prompt_forms import FormOption
from structgen.errors import GenerationError, RefusedValueError, StructgenError
from structgen.generation.async_generation import AsyncWriter
from structgen.generation.batch import BatchOptions, BatchOutcomes, BatchProgress, BatchTask, BatchTasks
from structgen.generation.consensus import By, Utility
from structgen.generation.decoding.option_probs import option_log_probs
from structgen.generation.decoding.prompts import Place, Prompt
from structgen.generation.fields.reading import MAX_OPEN
from structgen.generation.models.threads import turn_of
from structgen.generation.options import (
    GenerationOptions,
    GenerationSettings,
    check_written_once,
    checked_settings,
    streamed_settings,
)
from structgen.generation.refining import Refine, RefinedResult, refine
from structgen.generation.results import (
    ChoiceResult,
    GenerationResult,
    Option,
    StreamEvent,
    events_of,
    items_of,
)
from structgen.generation.scheduler.inline import SEQUENCES
from structgen.generation.scheduler.request import Request
from structgen.generation.searcher import RankingModel, Searcher
from structgen.generation.target_sampler import SampleOptions, TargetOptions, TargetSampler
from structgen.generation.voting import Draw, VoteResult, vote
from structgen.options import check_count

if TYPE_CHECKING:
    from structgen.core.constraints.sources import TypeForm
    from structgen.generation.search import SearchRun
    from structgen.generation.search.distortion import Distortion
    from structgen.generation.search.method import Method as SearchMethod
    from structgen.generation.target import Method, SampleRun, Target


class Generator(RankingModel):
    """Writes outputs that satisfy constraints, with any causal language model.

    Sampling targets the *local* distribution: at each step the model's, masked by the constraint and renormalised.
    A generator holds no state between calls but what its drafts have learned and the prompts that it has read last
    (keys and values, up to 256 MB), which changes their speed only. Calls from several threads take turns, step by
    step; ``batch`` writes many outputs in one step. A process that is forked after the model has read needs a model of
    its own (``ModelError`` says so).

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
        max_prompt_length: longest text of a prompt, in characters; None: as long as what the model reads could be
            at the most, so that no time goes into the tokens of what cannot fit.
        progress: told of what takes over a second beside the writing: loading, compiling, preparing drafts (see
            ``report_progress``); None: the log.
        deterministic: whether an output depends on its prompt, constraint, options and seed only, bit for bit, and not
            on what is written beside it or was before. Each token is then read in a call of its own, without drafts:
            by llama.cpp prompts take about three times as long, and many rows as long as one after the other.
        n_ctx: of llama.cpp: most tokens of a text, prompt and output, at most as many as the model was trained on;
            None or 0: those, as far as 1 GiB for keys and values goes.
        n_gpu_layers: of llama.cpp: layers on accelerators; -1: as many as can be; None: as its package was built.
        chat_template: of a model given by name: Jinja text, or the path of a file with it, in place of the model's own.
        lora_path: of llama.cpp: a LoRA adapter, a GGUF file; it is added to the weights in a copy of the model's file,
            which is kept in the cache folder. ``lora_scale`` multiplies it.

    Raises:
        ModelError: the model cannot be loaded, or cannot be read so.
        OptionsError: an option has a value that it cannot have, or that the model's backend does not take.
        TokenizerError: its tokenizer, or the chat template, cannot be read.
    """

    @overload
    def generate(
        self, prompt: Prompt, constraint: Texts = None, **options: Unpack[GenerationOptions]
    ) -> GenerationResult[str]: ...

    @overload
    def generate(
        self, prompt: Prompt, constraint: Source[T], **options: Unpack[GenerationOptions]
    ) -> GenerationResult[T]: ...

    @overload
    def generate(
        self, prompt: Prompt, constraint: TypeForm[T], **options: Unpack[GenerationOptions]
    ) -> GenerationResult[T]: ...

    @overload
    def generate(
        self, prompt: Prompt, constraint: Any, **options: Unpack[GenerationOptions]
    ) -> GenerationResult[Any]: ...

    def generate(
        self,
        prompt: Prompt,
        constraint: Any = None,
        **options: Unpack[GenerationOptions],
    ) -> GenerationResult[Any]:
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
        row = BatchTask(prompt, checked, settings.params.seed, settings.prediction)
        while True:
            request = self._request(row, checked, settings)
            for _ in self._write(request, settings.guidance):
                pass
            if settings.choose != "token":
                request = self._rechosen(request, row, checked, settings)
            try:
                return self._result(request, checked, settings, row.attempt + 1)
            except RefusedValueError as error:
                if row.attempt + 1 == settings.attempts:
                    raise
                row = row.again(error)

    def _rechosen(
        self, request: Request, attempt: BatchTask, constraint: Constraint | None, settings: GenerationSettings
    ) -> Request:
        """A finished request, or one in its place whose values with few options are the likeliest where they stand."""
        offset = -1
        while (better := self._restarted(request, attempt, constraint, settings, offset)) is not None:
            request, offset = better
            for _ in self._write(request):
                pass
        return request

    @overload
    def stream(
        self, prompt: Prompt, constraint: Texts = None, **options: Unpack[GenerationOptions]
    ) -> Iterator[StreamEvent[str]]: ...

    @overload
    def stream(
        self, prompt: Prompt, constraint: Source[T], **options: Unpack[GenerationOptions]
    ) -> Iterator[StreamEvent[T]]: ...

    @overload
    def stream(
        self, prompt: Prompt, constraint: TypeForm[T], **options: Unpack[GenerationOptions]
    ) -> Iterator[StreamEvent[T]]: ...

    @overload
    def stream(
        self, prompt: Prompt, constraint: Any, **options: Unpack[GenerationOptions]
    ) -> Iterator[StreamEvent[Any]]: ...

    def stream(
        self,
        prompt: Prompt,
        constraint: Any = None,
        **options: Unpack[GenerationOptions],
    ) -> Iterator[StreamEvent[Any]]:
        """Write one output, yielding text as it settles. Arguments and errors as ``generate``; the last event has
        the ``result``. Bad arguments raise at the call, before the first event. There is one attempt: what was shown
        cannot be taken back."""
        settings, checked = streamed_settings(**options), as_constraint(constraint)
        row = BatchTask(prompt, checked, settings.params.seed, settings.prediction)
        request = self._request(row, checked, settings, streams=True)
        return events_of(
            self._write(request, settings.guidance), checked, lambda: self._result(request, checked, settings)
        )

    @overload
    async def agenerate(
        self, prompt: Prompt, constraint: Texts = None, **options: Unpack[GenerationOptions]
    ) -> GenerationResult[str]: ...

    @overload
    async def agenerate(
        self, prompt: Prompt, constraint: Source[T], **options: Unpack[GenerationOptions]
    ) -> GenerationResult[T]: ...

    @overload
    async def agenerate(
        self, prompt: Prompt, constraint: TypeForm[T], **options: Unpack[GenerationOptions]
    ) -> GenerationResult[T]: ...

    @overload
    async def agenerate(
        self, prompt: Prompt, constraint: Any, **options: Unpack[GenerationOptions]
    ) -> GenerationResult[Any]: ...

    async def agenerate(
        self, prompt: Prompt, constraint: Any = None, **options: Unpack[GenerationOptions]
    ) -> GenerationResult[Any]:
        """Write one output while the loop goes on; arguments, result and errors as ``generate``.

        Calls that are under way at one time, of any loop, share the model's calls. Rows join at every step where the
        model reads them apart (llama.cpp, transformers on the processor); where rows are padded (transformers on
        accelerators), those that are asked for in one moment are written together. ``generate`` and the others may be
        used beside it. Cancelling the task stops the work within a step of the model.
        """
        return await AsyncWriter(self).generate(prompt, constraint, **options)

    @overload
    def astream(
        self, prompt: Prompt, constraint: Texts = None, **options: Unpack[GenerationOptions]
    ) -> AsyncGenerator[StreamEvent[str], None]: ...

    @overload
    def astream(
        self, prompt: Prompt, constraint: Source[T], **options: Unpack[GenerationOptions]
    ) -> AsyncGenerator[StreamEvent[T], None]: ...

    @overload
    def astream(
        self, prompt: Prompt, constraint: TypeForm[T], **options: Unpack[GenerationOptions]
    ) -> AsyncGenerator[StreamEvent[T], None]: ...

    @overload
    def astream(
        self, prompt: Prompt, constraint: Any, **options: Unpack[GenerationOptions]
    ) -> AsyncGenerator[StreamEvent[Any], None]: ...

    def astream(
        self, prompt: Prompt, constraint: Any = None, **options: Unpack[GenerationOptions]
    ) -> AsyncGenerator[StreamEvent[Any], None]:
        """Write one output while the loop goes on, yielding text as it settles: events and errors as ``stream``,
        beside others as ``agenerate``.

        Options that cannot be used raise at the call; what is wrong with prompt and constraint at the first event.
        Leaving the iterator (``aclose``, or the end of ``contextlib.aclosing``) stops the work within a step.
        """
        return AsyncWriter(self).stream(prompt, constraint, **options)

    @overload
    def stream_items(
        self, prompt: Prompt, constraint: Source[Sequence[T]], **options: Unpack[GenerationOptions]
    ) -> Iterator[T]: ...

    @overload
    def stream_items(
        self, prompt: Prompt, constraint: TypeForm[Sequence[T]], **options: Unpack[GenerationOptions]
    ) -> Iterator[T]: ...

    @overload
    def stream_items(self, prompt: Prompt, constraint: Any, **options: Unpack[GenerationOptions]) -> Iterator[Any]: ...

    def stream_items(self, prompt: Prompt, constraint: Any, **options: Unpack[GenerationOptions]) -> Iterator[Any]:
        """Write one list, yielding its items one by one: each when it is known to be whole, which is when the next one
        or the end has begun. Arguments and errors as ``stream``; the constraint is that of the list
        (``list[Ticket]``, ``json_lines(Ticket)``, the schema of an array).

        Raises:
            ConstraintError: what the constraint lets the model write is no list; at the first item.
        """
        return items_of(self.stream(prompt, constraint, **options))

    @overload
    def batch(
        self,
        prompts: Iterable[Prompt],
        constraints: re.Pattern[str] | None = None,
        *,
        return_exceptions: Literal[False] = False,
        **options: Unpack[BatchOptions],
    ) -> list[GenerationResult[str]]: ...

    @overload
    def batch(
        self,
        prompts: Iterable[Prompt],
        constraints: Source[T],
        *,
        return_exceptions: Literal[False] = False,
        **options: Unpack[BatchOptions],
    ) -> list[GenerationResult[T]]: ...

    @overload
    def batch(
        self,
        prompts: Iterable[Prompt],
        constraints: TypeForm[T],
        *,
        return_exceptions: Literal[False] = False,
        **options: Unpack[BatchOptions],
    ) -> list[GenerationResult[T]]: ...

    @overload
    def batch(
        self,
        prompts: Iterable[Prompt],
        constraints: Any,
        *,
        return_exceptions: Literal[False] = False,
        **options: Unpack[BatchOptions],
    ) -> list[GenerationResult[Any]]: ...

    @overload
    def batch(
        self,
        prompts: Iterable[Prompt],
        constraints: re.Pattern[str] | None = None,
        *,
        return_exceptions: bool,
        **options: Unpack[BatchOptions],
    ) -> list[GenerationResult[str] | StructgenError]: ...

    @overload
    def batch(
        self,
        prompts: Iterable[Prompt],
        constraints: Source[T],
        *,
        return_exceptions: bool,
        **options: Unpack[BatchOptions],
    ) -> list[GenerationResult[T] | StructgenError]: ...

    @overload
    def batch(
        self,
        prompts: Iterable[Prompt],
        constraints: TypeForm[T],
        *,
        return_exceptions: bool,
        **options: Unpack[BatchOptions],
    ) -> list[GenerationResult[T] | StructgenError]: ...

    @overload
    def batch(
        self, prompts: Iterable[Prompt], constraints: Any, *, return_exceptions: bool, **options: Unpack[BatchOptions]
    ) -> list[GenerationResult[Any] | StructgenError]: ...

    def batch(
        self,
        prompts: Iterable[Prompt],
        constraints: Any = None,
        *,
        seeds: Iterable[int] | None = None,
        batch_size: int = SEQUENCES,
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
            progress: called when the first row is begun, and whenever one is done.
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

    @overload
    def stream_batch(
        self, prompts: Iterable[Prompt], constraints: re.Pattern[str] | None = None, **options: Unpack[BatchOptions]
    ) -> BatchOutcomes[str]: ...

    @overload
    def stream_batch(
        self, prompts: Iterable[Prompt], constraints: Source[T], **options: Unpack[BatchOptions]
    ) -> BatchOutcomes[T]: ...

    @overload
    def stream_batch(
        self, prompts: Iterable[Prompt], constraints: TypeForm[T], **options: Unpack[BatchOptions]
    ) -> BatchOutcomes[T]: ...

    @overload
    def stream_batch(
        self, prompts: Iterable[Prompt], constraints: Any, **options: Unpack[BatchOptions]
    ) -> BatchOutcomes[Any]: ...

    def stream_batch(
        self,
        prompts: Iterable[Prompt],
        constraints: Any = None,
        *,
        seeds: Iterable[int] | None = None,
        batch_size: int = SEQUENCES,
        progress: Callable[[BatchProgress], object] | None = None,
        **options: Unpack[GenerationOptions],
    ) -> BatchOutcomes[Any]:
        """``batch``, row by row as they are done: index, and result or error. Endless prompts are fine."""
        settings = checked_settings(**options)
        check_written_once(settings)
        check_count("batch_size", batch_size)
        rows = BatchTasks(prompts, constraints, seeds, settings.params.seed, settings.prediction)
        if rows.common is not None:
            self._compiled(rows.common)  # what is wrong with it is wrong with the call
        if settings.fields is not None and self.reader.max_sequences is not None:
            batch_size = max(1, min(batch_size, self.reader.max_sequences - MAX_OPEN))
        return rows.written(
            lambda row, constraint: self._request(row, constraint, settings),
            lambda requests: self._steps(requests, settings.guidance, batch_size),
            self._waiting("writing a batch", rows.total, each=True),
            progress,
            settings.attempts,
            lambda request, constraint, attempts: self._result(request, constraint, settings, attempts),
        )

    @overload
    def target(
        self,
        prompt: Prompt,
        constraint: re.Pattern[str] | list[str] | tuple[str, ...],
        **options: Unpack[TargetOptions],
    ) -> Target[str]: ...

    @overload
    def target(self, prompt: Prompt, constraint: Source[T], **options: Unpack[TargetOptions]) -> Target[T]: ...

    @overload
    def target(self, prompt: Prompt, constraint: TypeForm[T], **options: Unpack[TargetOptions]) -> Target[T]: ...

    @overload
    def target(self, prompt: Prompt, constraint: Any, **options: Unpack[TargetOptions]) -> Target[Any]: ...

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
        schema_form: FormOption = "auto",
    ) -> Target[Any]:
        """The *global* target: the model's own distribution given that its text satisfies the constraint and has at
        most ``max_new_tokens`` tokens. Filters apply to the model, before the constraint. See docs/aligned.md.

        Raises:
            GenerationError: no constraint, or no room for the prompt. OptionsError, ConstraintError: bad arguments.
        """
        # Made anew: one that is kept would lead back here, and a circle keeps the model's weights for too long.
        return TargetSampler(self).target(
            prompt, constraint, temperature=temperature, top_p=top_p, top_k=top_k, max_new_tokens=max_new_tokens,
            schema_in_prompt=schema_in_prompt, schema_form=schema_form,
        )  # fmt: skip

    @overload
    def sample(
        self,
        prompt: Prompt,
        constraint: re.Pattern[str] | list[str] | tuple[str, ...],
        n: int,
        method: Method = "exact",
        **options: Unpack[SampleOptions],
    ) -> SampleRun[str]: ...

    @overload
    def sample(
        self,
        prompt: Prompt,
        constraint: Source[T],
        n: int,
        method: Method = "exact",
        **options: Unpack[SampleOptions],
    ) -> SampleRun[T]: ...

    @overload
    def sample(
        self,
        prompt: Prompt,
        constraint: TypeForm[T],
        n: int,
        method: Method = "exact",
        **options: Unpack[SampleOptions],
    ) -> SampleRun[T]: ...

    @overload
    def sample(
        self,
        prompt: Prompt,
        constraint: Any,
        n: int,
        method: Method = "exact",
        **options: Unpack[SampleOptions],
    ) -> SampleRun[Any]: ...

    def sample(
        self,
        prompt: Prompt,
        constraint: Any,
        n: int,
        method: Method = "exact",
        **options: Unpack[SampleOptions],
    ) -> SampleRun[Any]:
        """Draw ``n`` texts from the global target (see ``target``), not the local one.

        Args:
            method: "exact" (default), "weighted", "asap", "local", "smc", "mh" or "rejection"; see ``Sampler``.
            options: see ``SampleOptions``.

        Raises:
            UnsatisfiableTargetError: no text of the constraint can be written. Others as ``target``.
        """
        return TargetSampler(self).sample(prompt, constraint, n, method, **options)

    @overload
    def search(
        self,
        prompt: Prompt,
        constraint: re.Pattern[str] | list[str] | tuple[str, ...],
        *,
        method: str | SearchMethod = "beam",
        n: int = 1,
        **options: Any,
    ) -> SearchRun[str]: ...

    @overload
    def search(
        self, prompt: Prompt, constraint: Source[T], *, method: str | SearchMethod = "beam", n: int = 1, **options: Any
    ) -> SearchRun[T]: ...

    @overload
    def search(
        self,
        prompt: Prompt,
        constraint: TypeForm[T],
        *,
        method: str | SearchMethod = "beam",
        n: int = 1,
        **options: Any,
    ) -> SearchRun[T]: ...

    @overload
    def search(
        self, prompt: Prompt, constraint: Any, *, method: str | SearchMethod = "beam", n: int = 1, **options: Any
    ) -> SearchRun[Any]: ...

    def search(
        self, prompt: Prompt, constraint: Any, *, method: str | SearchMethod = "beam", n: int = 1, **options: Any
    ) -> SearchRun[Any]:
        """The ``n`` best outputs, or ``n`` that differ, as a method has it. See docs/decoding.md: which one when.

        Args:
            method: its name, or one that is made, with its options ("beam", "best_first", "exact", ...;
                ``structgen.generation.search.METHODS`` has them all).
            n: how many outputs; fewer come where there are no more.
            **options: the method's own, and ``max_new_tokens``, ``stop``, ``seed``, ``schema_in_prompt``,
                ``schema_form`` as ``GenerationOptions`` has them; ``guidance``: a ``Guidance``.

        Raises:
            IncompleteOutputError: no output fits in the budget.
            RefusedValueError: the type's own validators refuse the value of every output.
            GenerationError: no constraint, or no room for the prompt. OptionsError, ConstraintError: bad arguments.
        """
        return Searcher(self).search(prompt, constraint, method=method, n=n, **options)

    @overload
    def refine(
        self, prompt: Prompt, constraint: Source[T] | TypeForm[T], *, text: str | None = None,
        how: Refine | None = None, **options: Unpack[GenerationOptions],
    ) -> RefinedResult[T]: ...  # fmt: skip

    @overload
    def refine(
        self, prompt: Prompt, constraint: Any, *, text: str | None = None,
        how: Refine | None = None, **options: Unpack[GenerationOptions],
    ) -> RefinedResult[Any]: ...  # fmt: skip

    def refine(
        self, prompt: Prompt, constraint: Any, *, text: str | None = None,
        how: Refine | None = None, **options: Unpack[GenerationOptions],
    ) -> RefinedResult[Any]:  # fmt: skip
        """Write freely, then under the constraint with the draft in sight, which is the ``prediction`` too.

        Args:
            text: a draft from elsewhere; None: the model writes one.
            how: what is drafted, and how it is shown; None: ``Refine()``.
            **options: of the second pass, see ``GenerationOptions``; ``seed`` and ``stop`` are the draft's too.

        Raises:
            OptionsError: no constraint, or a value that an option cannot have. Others as ``generate``.
        """
        return refine(self, prompt, constraint, text, how, dict(options))

    @overload
    def vote(
        self, prompt: Prompt, constraint: Source[T] | TypeForm[T], *, n: int = 5, by: By = "fields", draw: Draw = "iid",
        utility: Utility | None = None, **options: Any,
    ) -> VoteResult[T]: ...  # fmt: skip

    @overload
    def vote(
        self, prompt: Prompt, constraint: Any, *, n: int = 5, by: By = "fields", draw: Draw = "iid",
        utility: Utility | None = None, **options: Any,
    ) -> VoteResult[Any]: ...  # fmt: skip

    def vote(
        self, prompt: Prompt, constraint: Any, *, n: int = 5, by: By = "fields", draw: Draw = "iid",
        utility: Utility | None = None, **options: Any,
    ) -> VoteResult[Any]:  # fmt: skip
        """Several samples, one answer.

        Args:
            n: samples.
            by: "fields": of each field the value that most samples have, if the constraint takes them together; else,
                and for "mbr", the sample that is most like the others; "value": the most frequent value.
            draw: "iid": independent, one batch at temperature 1; "distinct": different outputs, drawn without
                replacement from the model's own distribution given the constraint, weighted by their probabilities.
            utility: of "mbr", see ``consensus``.
            **options: see ``GenerationOptions``; of distinct draws those that ``search`` takes.

        Raises:
            OptionsError: no constraint, or a value that an option cannot have.
            GenerationError, RefusedValueError: what the samples failed with, if all did. Others as ``generate``.
        """
        return vote(self, prompt, constraint, n, by, draw, utility, options)

    def distortion(self, prompt: Prompt, constraint: Any, *, n: int = 100, **options: Any) -> Distortion:
        """How far masks and filters bend the distribution that ``generate`` draws from: by ``n`` draws, which cost as
        much as outputs. See docs/decoding.md.

        Args:
            **options: temperature (1) and filters as ``GenerationOptions`` has them, ``max_new_tokens``, ``seed``,
                ``schema_in_prompt``, ``schema_form``.

        Raises:
            IncompleteOutputError: no output fits in the budget.
            GenerationError: no constraint, or no room for the prompt. OptionsError, ConstraintError: bad arguments.
        """
        return Searcher(self).distortion(prompt, constraint, n=n, **options)

    def choice(self, prompt: Prompt, options: Sequence[Option]) -> ChoiceResult[Option]:
        """The probability of each option as the whole reply, given that the reply is one of them.

        Exact: the sum of the log-probabilities of the option's tokens, as the tokenizer spells it, and of the end of
        sequence after them, normalised over the options. The options are not put into the prompt.

        Raises:
            GenerationError: no options, an empty one, or one twice.
        """
        listed = isinstance(options, Iterable) and not isinstance(options, str)
        if not listed or not all(isinstance(option, str) for option in options):
            raise GenerationError(f"choice needs a list of strings, not {options!r:.200}.")
        if not options or len(set(options)) < len(options) or not all(options):
            raise GenerationError(f"choice needs different, non-empty options, not {list(options)!r:.200}.")
        ids = self._prompt_ids(prompt, None, None)
        with self._waiting(f"reading {len(options)} options"), turn_of(self.reader):
            logprobs = option_log_probs(self.model, self.tokenizer, self.vocabulary, ids, options)
        return ChoiceResult.of(logprobs)
