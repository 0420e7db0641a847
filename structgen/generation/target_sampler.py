"""Samples of the model's own distribution given a constraint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from structgen.core.constraints.json import as_constraint
from structgen.core.json_schema.prompt_forms import FormOption
from structgen.errors import GenerationError
from structgen.generation.decoding.prompts import Place, Prompt, telling
from structgen.generation.models.threads import turn_of
from structgen.generation.prepared_model import PreparedModel, after_prompt
from structgen.generation.sampling import SamplingParams
from structgen.options import check_count, refuse_name
from structgen.progress import report_progress

if TYPE_CHECKING:
    from structgen.generation.decoding.critics import CriticLike
    from structgen.generation.target import Budget, Method, SampleRun, Target


class TargetOptions(TypedDict, total=False):
    """Keyword arguments of ``Generator.target``: see ``GenerationOptions``, but that the temperature is 1."""

    temperature: float
    top_p: float
    top_k: int | None
    max_new_tokens: int
    schema_in_prompt: bool | Place
    schema_form: FormOption


class SampleOptions(TargetOptions, total=False):
    """Keyword arguments of ``Generator.sample``: those of its target, and how texts are drawn.

    Attributes:
        budget: limits in model tokens or seconds. Fewer samples are then given, and ``stopped_by`` says so.
        critic: weighs texts by exp(critic(text)) besides, see docs/aligned.md. "smc" asks it after each token, if it
            judges beginnings; "exact" needs its upper bound, and "asap" takes none.
    """

    seed: int | None
    budget: Budget | None
    critic: CriticLike | None


class TargetSampler:
    """What draws from the *global* target for a generator: see docs/aligned.md, and `structgen.generation.target`."""

    def __init__(self, prepared: PreparedModel) -> None:
        self._prepared = prepared

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
        """See ``Generator.target``."""
        from structgen.generation.target import Target

        check_count("max_new_tokens", max_new_tokens)
        checked = as_constraint(constraint)
        if checked is None:
            raise GenerationError("sample needs a constraint; free text is sampled by generate(temperature=1.0).")
        prepared = self._prepared
        ids = prepared._prompt_ids(prompt, checked, telling(schema_in_prompt, schema_form))
        thinking = after_prompt(checked, ids, prepared.vocabulary)
        if prepared.model.context_length is not None:
            max_new_tokens = min(max_new_tokens, prepared.model.context_length - len(ids))
        params = SamplingParams(temperature, top_k, top_p)
        with report_progress(prepared.progress):
            return Target(prepared.model, ids, thinking, prepared.vocabulary, params, max_new_tokens)

    def sample(
        self,
        prompt: Prompt,
        constraint: Any,
        n: int,
        method: Method = "exact",
        *,
        seed: int | None = None,
        budget: Budget | None = None,
        critic: CriticLike | None = None,
        **options: Unpack[TargetOptions],
    ) -> SampleRun[Any]:
        """See ``Generator.sample``."""
        from structgen.generation.target import PrefixStore, Sampler

        for name in options:
            if name not in TargetOptions.__annotations__:
                refuse_name(name, [*SampleOptions.__annotations__])
        with turn_of(self._prepared.reader):
            store = PrefixStore(self.target(prompt, constraint, **options))
            return Sampler(store, method, seed=seed, critic=critic).draw(n, budget)
