"""A model with all that writing with it takes: tokenizer, vocabulary, what reads its rows, what drafts for it."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from structgen.core.constraints.base import Constraint, T
from structgen.core.constraints.text import regex
from structgen.core.constraints.thinking import THINK, THOUGHT, Thinking
from structgen.core.engines.protocols import Grammar, Matcher
from structgen.core.tokenization.canonical import AT_START, CanonicalSpelling, SpelledSoFar
from structgen.core.tokenization.reading import canonical_spelling
from structgen.core.vocabulary.vocabulary import Vocabulary, check_vocabulary
from structgen.errors import GenerationError, ModelError, OptionsError, RefusedValueError, UnsatisfiableSchemaError
from structgen.generation.batch import BatchTask
from structgen.generation.decoding.healing import HealedPrompt, PromptEnd
from structgen.generation.decoding.output import Output
from structgen.generation.decoding.prompts import Prompt, Telling, longest_prompt, prompt_token_ids
from structgen.generation.decoding.refusals import Refusal, compiled_without
from structgen.generation.decoding.respelling import respelled
from structgen.generation.decoding.sections import SectionBudget
from structgen.generation.fields.asking import Fields
from structgen.generation.fields.layout import Layout, layout_of, placed_regions
from structgen.generation.fields.measuring import FieldMeasure
from structgen.generation.fields.reading import PathReader, PrefixPaths, TreePaths
from structgen.generation.fields.results import FieldResults
from structgen.generation.fields.walk import Path
from structgen.generation.models.capabilities import ModelCapabilities, capabilities_of, check_reads_trees
from structgen.generation.models.defaults import defaults_of
from structgen.generation.models.guided_sequences import GuidedSequences
from structgen.generation.models.language_model import LanguageModel
from structgen.generation.models.model_runner import NO_DRAFTS, RaggedReader
from structgen.generation.models.prefix_reader import make_reader
from structgen.generation.models.runner_factory import ragged_reader
from structgen.generation.models.threads import Asking, at_once, turn_of
from structgen.generation.open_objects import report_open_objects
from structgen.generation.options import OPTION_NAMES, OWN_DRAFT, GenerationSettings
from structgen.generation.results import GenerationResult, result_of
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.generation.scheduler.inline import SEQUENCES, raising, steps
from structgen.generation.scheduler.request import Event, Request
from structgen.generation.scheduler.scheduler import Scheduler
from structgen.generation.speculative.cost import cost_of
from structgen.generation.speculative.draft_options import make_speculator
from structgen.generation.speculative.forced import CanonicalTokens
from structgen.generation.speculative.speculator import Speculator
from structgen.options import check_count, refuse_name
from structgen.progress import ProgressCallback, Wait, report_progress, waiting

if TYPE_CHECKING:
    from structgen.generation.scheduler.coroutines import CoroutineWriter
    from structgen.generation.search.guidance import Guidance

LAST_TOKENS = 16  # of a prompt, in which it may begin the thinking
_LOADED = (
    "load the file with it, and give what comes: Generator(*load_gguf(path, {}=...)) "
    "(structgen.generation.models.llamacpp.model)"
)
_OF_NAMES = "n_ctx", "n_gpu_layers", "chat_template", "lora_path"  # what only models that are loaded by name take
_OWN_LOADING = "load model and tokenizer with transformers, and give both: Generator(model, tokenizer)"
_DRAWN = "it is an option of generate, stream and batch"
OTHER_NAMES = {
    **{name: "use n_ctx" for name in ("context_length", "max_model_len", "num_ctx", "ctx_size", "max_seq_len")},
    **{name: _LOADED.format("threads") for name in ("n_threads", "threads", "num_threads")},
    **{name: _LOADED.format("cache_bytes") for name in ("cache_bytes", "cache_size")},
    **{name: _LOADED.format("package") for name in ("package",)},
    **{name: "use n_gpu_layers" for name in ("gpu_layers", "num_gpu_layers", "ngl")},
    **{name: "use lora_path, of a GGUF adapter" for name in ("lora", "lora_adapter", "adapter", "lora_request")},
    **{name: "use chat_template" for name in ("chat_format", "chat_handler", "template")},
    **{name: "use device" for name in ("device_map", "gpu")},
    **{name: "use dtype" for name in ("torch_dtype", "precision")},
    **{name: "the model is the first argument" for name in ("model_path", "model_name", "model_id", "path", "repo_id")},
    **{name: "use draft" for name in ("draft_model", "assistant_model", "speculative_model", "drafter")},
    **dict.fromkeys(("token", "use_auth_token", "revision", "trust_remote_code", "cache_dir"), _OWN_LOADING),
    **dict.fromkeys(("quantization", "load_in_4bit", "load_in_8bit", "quantization_config"), _OWN_LOADING),
    **dict.fromkeys(OPTION_NAMES, _DRAWN),
}
"""What to do, by names that other libraries have, and that other parts of this one have."""
ANY_TEXT = regex(r"[\s\S]*")
PROMPT_PIECE = 256  # tokens of a prompt that are read at once where others may want the model
KEPT_SPECULATORS = 8  # with what they have learned, for calls that ask for the same draft


class PreparedModel:
    """A model with all that writing with it takes; arguments and errors as ``Generator``, which says what is written.

    Attributes:
        model, tokenizer, vocabulary: what it writes with.
        capabilities: what the model can do.
        deterministic: whether outputs are the same whatever is written beside them.
        defaults: what is done with the model where a call does not say.
        reader: of the model's rows.
        max_prompt_length: longest text of a prompt, in characters; None: any.
        progress: what is told of waiting.
    """

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """Refuse names that are no options."""
        names = [name for name in inspect.signature(PreparedModel.__init__).parameters if name != "self"]
        for name in options:
            if name not in names and cls.__init__ is PreparedModel.__init__:
                refuse_name(name, names, OTHER_NAMES)
        return super().__new__(cls)

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
        max_prompt_length: int | None = None,
        progress: ProgressCallback | None = None,
        deterministic: bool = False,
        n_ctx: int | None = None,
        n_gpu_layers: int | None = None,
        chat_template: str | os.PathLike[str] | None = None,
        lora_path: str | os.PathLike[str] | None = None,
        lora_scale: float = 1.0,
    ) -> None:
        by_name: dict[str, Any] = dict(zip(_OF_NAMES, (n_ctx, n_gpu_layers, chat_template, lora_path), strict=True))
        check_count("max_prompt_length", max_prompt_length, optional=True)
        if tokenizer is not None and chat_template is not None:
            raise OptionsError(
                "chat_template is for the model's own tokenizer, and another one is given; set it on that one.",
                option="chat_template",
            )
        self.progress = progress
        if deterministic and draft is not None:
            raise OptionsError(NO_DRAFTS, option="draft", value=draft)
        if model is None or isinstance(model, (str, os.PathLike)):
            from structgen.generation.loading import load_model

            with report_progress(progress):
                model, loaded_tokenizer = load_model(
                    model, backend=backend, device=device, dtype=dtype, deterministic=deterministic,
                    lora_scale=lora_scale, **by_name,
                )  # fmt: skip
            tokenizer = tokenizer if tokenizer is not None else loaded_tokenizer
        elif (given := next((name for name in _OF_NAMES if by_name[name] is not None), None)) is not None:
            raise OptionsError(
                f"{given} is for models that are loaded by their name, and this one is loaded; load it with what you "
                "need, or (a chat template) set it on its tokenizer.",
                option=given,
            )
        elif not hasattr(model, "prefill") and not hasattr(model, "get_output_embeddings"):
            raise ModelError(
                f"model is {model!r:.100} ({type(model).__name__}); expected a GGUF file, a Hugging Face id or folder, "
                "or a loaded model with its tokenizer."
            )
        elif not hasattr(model, "prefill"):
            from structgen.generation.models.transformers_model import TransformersModel

            model = TransformersModel(model)
        if tokenizer is None:
            raise ModelError("A loaded model needs its tokenizer: Generator(model, tokenizer).")
        self.model: LanguageModel = model
        self.capabilities = capabilities_of(model)
        self.tokenizer = tokenizer
        if vocabulary is not None:
            check_vocabulary(vocabulary)
        with report_progress(progress):
            self.vocabulary = vocabulary or Vocabulary.from_transformers(
                tokenizer, size=model.vocab_size, eos_token_ids=_eos_token_ids(self.capabilities, tokenizer)
            )
        self.defaults = defaults_of(model)
        longest = longest_prompt(model.context_length, self.vocabulary)
        self.max_prompt_length = longest if max_prompt_length is None else max_prompt_length
        self.reader = ragged_reader(model, deterministic=deterministic)
        self.deterministic = deterministic
        self._draft = draft
        self._speculators: list[tuple[Any, Speculator]] = []  # with what each was made of
        # no method: schedulers that this keeps have it, and a model is given back as soon as nobody has it
        self._spell: Callable[[str], Sequence[int]] = partial(_spelled, tokenizer, self.vocabulary)
        self._writers: dict[int, CoroutineWriter] = {}  # by process
        self._cost = cost_of(model)  # of reading several tokens at once

    def scheduler(self, limits: SchedulerLimits) -> Scheduler:
        """A scheduler of this generator's model, for loops of one's own; not to be used beside the generator."""
        return Scheduler(self.reader, limits, overlapped=self.capabilities.asynchronous, spell=self._spell)

    @property
    def drafts(self) -> bool:
        """Whether tokens are drafted where a call does not say otherwise."""
        return self._draft is not None

    @property
    def reads_drafts(self) -> bool:
        """Whether drafts, and predictions, can be read."""
        return self.capabilities.reads_trees and not self.deterministic

    def speculator(self, *, predicts: bool = False) -> Speculator | None:
        """What drafts where a call does not say otherwise, with what it has learned; None: nothing. ``predicts``: for
        requests that bring a prediction, never None."""
        return self._speculator(self._draft, predicts)

    def spelling(self) -> CanonicalSpelling:
        """How the tokenizer spells texts; made once, in some seconds.

        Raises:
            TokenizerError: of this tokenizer that cannot be said.
        """
        with self._waiting("reading how the tokenizer spells"):
            return canonical_spelling(self.tokenizer, self.vocabulary)

    def any_text(self) -> Matcher:
        """Of all texts, without special tokens: free text that is spelled in a certain way."""
        return self._compiled(ANY_TEXT).matcher()

    def _prompt_ids(
        self, prompt: Prompt, constraint: Constraint | None, telling: Telling | None, refused: Refusal | None = None
    ) -> list[int]:
        """Token ids of a prompt, in which the model may be told of the constraint and of an answer that was refused."""
        most, instruction = self.max_prompt_length, None
        if constraint is not None and telling is not None:
            instruction = telling.of(constraint, self.defaults.schema_form)
        return prompt_token_ids(
            self.tokenizer, prompt, instruction, "user" if telling is None else telling.role, most, refused
        )

    def _attempt_ids(self, row: BatchTask, constraint: Constraint | None, settings: GenerationSettings) -> list[int]:
        """Token ids of a row's prompt; with what was refused before it, where that is wanted and there is room."""
        if row.refused is not None and settings.refusal_in_prompt:
            with suppress(GenerationError):  # it is too long, or the template takes no answers
                ids = self._prompt_ids(row.prompt, constraint, settings.telling, row.refused)
                longest = self.model.context_length
                if longest is None or len(ids) + settings.max_new_tokens <= longest:
                    return ids
        return self._prompt_ids(row.prompt, constraint, settings.telling)

    def in_written_tokens(self, ids: Sequence[int], budget: int, salt: str = "") -> list[int]:
        """A prompt in the tokens in which its beginning was read or written before (see ``respelled``), where that
        leaves room for the output, and where outputs may depend on what was written before."""
        if self.deterministic or not self.reader.shares_prefixes:
            return list(ids)
        spelled, limit = respelled(ids, self.reader.kept_texts(salt), self.vocabulary), self.model.context_length
        return spelled if limit is None or len(spelled) + budget <= limit else list(ids)

    def _request(
        self, row: BatchTask, constraint: Constraint | None, settings: GenerationSettings, *, streams: bool = False
    ) -> Request:
        """What is asked of the scheduler: the prompt's token ids and the output to be written after them."""
        if settings.fields is not None:
            layout_of(constraint, settings.fields)  # what is wrong is known before anything is written
        constraint, regions = placed_regions(constraint, settings.regions)
        with self._waiting("reading a prompt into tokens"):
            ids, prediction = self._attempt_ids(row, constraint, settings), row.prediction
        constraint = after_prompt(constraint, ids, self.vocabulary)
        without = None
        if settings.guidance is not None:
            without = self._prompt_ids(settings.guidance.without, constraint, settings.telling)
        params = settings.drawn(row.seed, row.attempt)
        spelling = self.spelling() if settings.spelling == "canonical" else None
        grammar = None if constraint is None else self._attempted(constraint, row)

        def begun(ids: Sequence[int], text: bytes = b"", position: SpelledSoFar = AT_START) -> Output:
            matcher = None if grammar is None else grammar.matcher()
            if matcher is None and spelling is not None:
                matcher = self.any_text()
            budget = self._budget(max(len(ids), len(without or ())), constraint, settings)
            return Output(
                self.vocabulary, matcher, params,
                max_new_tokens=budget, stop=settings.stop, prompt_ids=ids, section=section_of(constraint),
                keeps_mass=settings.log_mass, keeps_probs=settings.fields is not None or settings.choose != "token",
                regions=regions, spelling=spelling, loop_guard=settings.loop_guard, begun=text, position=position,
            )  # fmt: skip

        healed = None
        if settings.heal_prompt and not getattr(self.tokenizer, "chat_template", None):
            ids, output, healed = self.healed(ids, grammar, params, begun, is_canonical=spelling is not None)
        else:
            output = begun(ids)
        if not (prediction is None or isinstance(prediction, str)):
            raise OptionsError(
                f"prediction must be a string, or for batches one a prompt, not {prediction!r:.100}",
                option="prediction",
                value=prediction,
            )
        draft = self._draft if settings.draft is OWN_DRAFT else settings.draft
        if self.deterministic:
            if draft is not None:
                raise OptionsError(NO_DRAFTS, option="draft", value=draft)
            prediction = None  # it changes the speed only, and here not even that
        speculator = self._speculator(draft, prediction is not None)
        is_spelled = without is not None or healed is not None
        prompt = ids if is_spelled else self.in_written_tokens(ids, output.remaining)
        return Request(
            prompt, output, speculator, streams=streams, prediction=prediction, without=without, healed=healed
        )

    def _budget(self, longest: int, constraint: Constraint | None, settings: GenerationSettings) -> int:
        """How many tokens an output may have after a prompt of so many.

        Raises:
            GenerationError: there is no room.
        """
        budget = settings.max_new_tokens
        if self.model.context_length is not None:
            budget = min(budget, self.model.context_length - longest)
            if budget < 1:
                raise GenerationError(
                    f"The prompt has {longest} tokens, the model reads {self.model.context_length}; shorten it"
                    + (" (or pass schema_in_prompt=False)." if constraint is not None and settings.telling else ".")
                )
        return budget

    def healed(
        self,
        ids: list[int],
        grammar: Grammar | None,
        params: SamplingParams,
        begun: Callable[[Sequence[int], bytes, SpelledSoFar], Output],
        *,
        is_canonical: bool,
        salt: str = "",
        asking: Asking = at_once,
        before: HealedPrompt | None = None,
    ) -> tuple[list[int], Output, HealedPrompt | None]:
        """A prompt whose end is spelled anew, the output after it, and what was done.

        Args:
            begun: makes the output after these tokens, which begins with this text, from that position on.
            is_canonical: whether the output is in canonical spelling, too.
            salt: whom what is read of the prompt is shared with.
            asking: runs what reads the model, as many times as the prompt has pieces.
            before: what was drawn before, where the same output is made once more.

        Raises:
            TokenizerError: the tokenizer's canonical spelling is not known.
            GenerationError: too much would have to be spelled anew, or nothing goes on as the constraint allows.
        """
        end = PromptEnd(self.spelling(), ids)
        if not end.data:
            return ids, begun(ids, b"", end.position), None
        prompt = ids[: end.kept]

        def begin(healed: HealedPrompt, position: SpelledSoFar) -> tuple[list[int], Output, HealedPrompt]:
            tokens = [*prompt, *healed.token_ids]
            return tokens, begun(tokens, healed.data, position), healed

        if before is not None:
            return begin(before, end.after(before))

        def read_piece(length: int, prefixes: Sequence[Path]) -> dict[Path, npt.NDArray[np.floating[Any]]]:
            with turn_of(self.reader), self._paths(prompt[:length], (), salt) as paths:
                return paths.read({0: prefixes})[0]

        def read(prefixes: Sequence[Path]) -> list[npt.NDArray[np.floating[Any]]]:
            for length in range(PROMPT_PIECE, len(prompt), PROMPT_PIECE) if self._reads_trees else ():
                asking(partial(read_piece, length, ((),)))  # what is read is remembered
            answers = asking(partial(read_piece, len(prompt), prefixes))
            return [answers[prefix] for prefix in prefixes]

        matcher = grammar.matcher() if grammar is not None else self.any_text() if is_canonical else None
        vocabulary = self.vocabulary if grammar is None else grammar.vocabulary
        drawing = params.temperature, params.seed
        return end.drawn(read, vocabulary, matcher, *drawing, begin, is_canonical=is_canonical)

    def _steps(
        self, requests: Iterable[Request | None], guidance: Guidance | None = None, sequences: int = SEQUENCES
    ) -> Generator[list[Event], None, None]:
        """Write the requests of one call: see ``steps``."""
        reader: RaggedReader = self.reader
        if guidance is not None:
            reader = guided = GuidedSequences(self.reader, self.model, guidance.scale)
            requests = guided.expecting(requests)
        overlapped = self.capabilities.asynchronous and guidance is None
        return steps(reader, requests, sequences=sequences, overlapped=overlapped, spell=self._spell)

    def _result(
        self, request: Request, constraint: Constraint[T] | None, settings: GenerationSettings, attempts: int = 1
    ) -> GenerationResult[T]:
        """What a finished request gives, its fields included where they are asked for.

        Raises:
            RefusedValueError: the type's own validators refuse the value.
        """
        result = result_of(request.output, constraint, attempts)
        if request.healed is not None:
            result = replace(result, healed=request.healed)
        if settings.fields is None:
            return result
        layout = layout_of(constraint, settings.fields)
        return replace(result, _fields=self.read_fields(request, layout, settings.fields))

    def read_fields(self, request: Request, layout: Layout, asked: Fields) -> FieldResults:
        """How likely the fields of a finished output were; the model reads a few tokens for each."""
        measure = self._measure(request.output, layout, asked)
        with turn_of(self.reader):
            return measure.run(self._path_reader(request))

    def _measure(self, output: Output, layout: Layout, asked: Fields, after: int = -1) -> FieldMeasure:
        """What reads the fields of a finished output."""
        assert output.matcher is not None, "outputs without a constraint have no fields"

        def spell(data: bytes) -> Sequence[int]:
            return self._spell(data.decode(errors="ignore"))

        return FieldMeasure(output.matcher.grammar, layout, output.token_ids, asked, spell, after, output.allowed_probs)

    def _restarted(
        self,
        request: Request,
        attempt: BatchTask,
        constraint: Constraint | None,
        settings: GenerationSettings,
        after: int,
    ) -> tuple[Request, int] | None:
        """A request that goes on with a better value for the first field after a byte offset that could have one, and
        where that field begins; None: there is none."""
        asked = replace(settings.fields or Fields(), pointers=None)
        layout, output = layout_of(constraint, asked), request.output
        measure = self._measure(output, layout, asked, after)
        with turn_of(self.reader):
            measure.run(self._path_reader(request))
        restart = measure.restart("belief" if settings.choose == "belief" else "value")
        if restart is None:
            return None
        again = self._request(attempt, constraint, settings)
        tokens = [*output.token_ids[: restart.length], *restart.path]
        again.output.take_up(tokens, [*output.token_log_probs[: restart.length], *restart.log_probs])
        return again, restart.offset

    def _path_reader(self, request: Request) -> PathReader:
        """What reads token paths after parts of a finished output."""
        return self._paths(request.prompt, request.output.token_ids, request.salt)

    @property
    def _reads_trees(self) -> bool:
        """Whether paths are read in trees, after prompts that are remembered."""
        return self.reader.reads_apart and self.reader.shares_prefixes and self.reads_drafts

    def _paths(self, prompt: Sequence[int], tokens: Sequence[int], salt: str) -> PathReader:
        """What reads token paths after a prompt and parts of the tokens after it."""
        if self._reads_trees:
            return TreePaths(self.reader, prompt, tokens, salt)
        return PrefixPaths(make_reader(self.model, prompt, len(tokens)), tokens)

    def _attempted(self, constraint: Constraint, attempt: BatchTask) -> Grammar:
        """What an attempt is masked by: the constraint without what was refused before, where that can be taken out."""
        narrowed = None
        if attempt.refused_values:
            try:
                narrowed = compiled_without(unbudgeted(constraint), attempt.refused_values, self.vocabulary)
            except UnsatisfiableSchemaError as error:
                last = attempt.refused
                assert last is not None
                raise RefusedValueError(
                    f"The type's own validators refuse every value that there is; the last: {last.answer:.200}, "
                    f"since {last.reason:.200}",
                    text=last.answer,
                    value=attempt.refused_values[-1],
                ) from error
        return self._compiled(constraint) if narrowed is None else narrowed

    def _compiled(self, constraint: Constraint) -> Grammar:
        """What its outputs are masked by."""
        with report_progress(self.progress):
            grammar = unbudgeted(constraint).compile(self.vocabulary)
            report_open_objects(constraint)
        return grammar

    def _write(self, request: Request, guidance: Guidance | None = None) -> Iterator[list[Event]]:
        """Write one output, step by step. What takes long is told: reading the prompt, and writing what nobody sees
        before it is whole."""
        written = raising(self._steps([request], guidance))
        with self._waiting(f"reading a prompt of {len(request.prompt):,} tokens"):
            events = next(written, None)
        if request.streams:
            yield events or []
            yield from written
            return
        with self._waiting("writing an output", request.output.remaining) as wait:
            while events is not None:
                wait.advance(sum(len(event.token_ids) for event in events))
                yield events
                events = next(written, None)

    def _waiting(self, what: str, total: int | None = None, *, each: bool = False) -> Wait:
        """Work that is told of to whom the generator tells, if it takes over a second."""
        with report_progress(self.progress):
            return waiting(what, total, each=each)

    def _speculator(self, draft: Any, predicts: bool) -> Speculator | None:
        """What drafts, with what it has learned."""
        if draft is None and not predicts:
            return None
        speculator = next((kept for made_of, kept in self._speculators if made_of is draft or made_of == draft), None)
        if speculator is None:
            with report_progress(self.progress):
                speculator = make_speculator(draft, self.model, self.tokenizer, self.vocabulary, self._cost)
            self._speculators = [*self._speculators[1 - KEPT_SPECULATORS :], (draft, speculator)]
        check_reads_trees(self.model)
        return speculator


def _spelled(tokenizer: Any, vocabulary: Vocabulary, text: str) -> Sequence[int]:
    """The tokens of a text that may be written, as far as the tokenizer spells it."""
    return CanonicalTokens(tokenizer, vocabulary).spell(text.encode())


def _eos_token_ids(can: ModelCapabilities, tokenizer: Any) -> tuple[int, ...] | None:
    """All ids that end a reply: the model's settings and the tokenizer's may name different ones (chat models do)."""
    ids = set(can.eos_token_ids)
    ids_given = getattr(tokenizer, "eos_token_id", None)
    if ids_given is not None:
        ids.add(ids_given)
    return tuple(sorted(ids)) or None


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
