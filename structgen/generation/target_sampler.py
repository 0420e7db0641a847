"""Samples of the model's own distribution given a constraint, as methods of what has a model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from structgen.core.constraints.base import T
from structgen.core.constraints.json import as_constraint
from structgen.core.constraints.sources import Source
from structgen.core.json_schema.prompt_forms import FormOption
from structgen.errors import GenerationError
from structgen.generation.decoding.prompts import Place, Prompt, telling
from structgen.generation.models.threads import turn_of
from structgen.generation.prepared_model import PreparedModel, after_prompt
from structgen.generation.sampling import SamplingParams
from structgen.options import check_count, refuse_name
from structgen.progress import report_progress

if TYPE_CHECKING:
    from structgen.core.constraints.sources import TypeForm
    from structgen.generation.target import Budget, Method, SampleRun, Target


class TargetOptions(TypedDict, total=False):
    """Keyword arguments of ``target``, and of ``sample``: see ``GenerationOptions``, but that the temperature is 1."""

    temperature: float
    top_p: float
    top_k: int | None
    max_new_tokens: int
    schema_in_prompt: bool | Place
    schema_form: FormOption


class TargetSampler(PreparedModel):
    """The *global* target as methods: see docs/aligned.md, and `structgen.generation.target`."""

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
        from structgen.generation.target import Target

        check_count("max_new_tokens", max_new_tokens)
        checked = as_constraint(constraint)
        if checked is None:
            raise GenerationError("sample needs a constraint; free text is sampled by generate(temperature=1.0).")
        ids = self._prompt_ids(prompt, checked, telling(schema_in_prompt, schema_form))
        thinking = after_prompt(checked, ids, self.vocabulary)
        if self.model.context_length is not None:
            max_new_tokens = min(max_new_tokens, self.model.context_length - len(ids))
        params = SamplingParams(temperature, top_k, top_p)
        with report_progress(self.progress):
            return Target(self.model, ids, thinking, self.vocabulary, params, max_new_tokens)

    @overload
    def sample(
        self,
        prompt: Prompt,
        constraint: re.Pattern[str] | list[str] | tuple[str, ...],
        n: int,
        method: Method = "exact",
        *,
        seed: int | None = None,
        budget: Budget | None = None,
        **options: Unpack[TargetOptions],
    ) -> SampleRun[str]: ...

    @overload
    def sample(
        self,
        prompt: Prompt,
        constraint: Source[T],
        n: int,
        method: Method = "exact",
        *,
        seed: int | None = None,
        budget: Budget | None = None,
        **options: Unpack[TargetOptions],
    ) -> SampleRun[T]: ...

    @overload
    def sample(
        self,
        prompt: Prompt,
        constraint: TypeForm[T],
        n: int,
        method: Method = "exact",
        *,
        seed: int | None = None,
        budget: Budget | None = None,
        **options: Unpack[TargetOptions],
    ) -> SampleRun[T]: ...

    @overload
    def sample(
        self,
        prompt: Prompt,
        constraint: Any,
        n: int,
        method: Method = "exact",
        *,
        seed: int | None = None,
        budget: Budget | None = None,
        **options: Unpack[TargetOptions],
    ) -> SampleRun[Any]: ...

    def sample(
        self,
        prompt: Prompt,
        constraint: Any,
        n: int,
        method: Method = "exact",
        *,
        seed: int | None = None,
        budget: Budget | None = None,
        **options: Unpack[TargetOptions],
    ) -> SampleRun[Any]:
        """Draw ``n`` texts from the global target (see ``target``, which takes the ``options``), not the local one.

        Args:
            method: "exact" (default), "weighted", "asap", "local", "smc", "mh" or "rejection"; see ``Sampler``.
            budget: limits in model tokens or seconds. Fewer samples are then given, and ``stopped_by`` says so.

        Raises:
            UnsatisfiableTargetError: no text of the constraint can be written. Others as ``target``.
        """
        from structgen.generation.target import PrefixStore, Sampler

        known = TargetOptions.__annotations__
        for name in options:
            if name not in known:
                refuse_name(name, [*known, "seed", "budget"])
        with turn_of(self.reader):
            return Sampler(PrefixStore(self.target(prompt, constraint, **options)), method, seed=seed).draw(n, budget)
