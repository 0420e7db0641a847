"""The keyword arguments of generation, and how they are checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from structgen.core.json_schema.prompt_forms import FormOption
from structgen.core.regions import Region
from structgen.errors import OptionsError
from structgen.generation.decoding.loops import LoopGuard
from structgen.generation.decoding.prompts import Place, Telling, telling
from structgen.generation.decoding.regions import Regions, checked_regions
from structgen.generation.fields.asking import Fields, asked_fields
from structgen.generation.filters.table import FilterOptions
from structgen.generation.sampling import SamplingParams
from structgen.generation.search.guidance import Guidance
from structgen.options import DEFAULT_MAX_NEW_TOKENS, check_count, refuse_name

Choose: TypeAlias = Literal["token", "value", "belief"]
Spelling: TypeAlias = Literal["any", "canonical"]
SEEDS_OF_AN_ATTEMPT = 1 << 32  # rows of a batch have seeds in a row
OWN_DRAFT: Any = object()  # the default of the option ``draft``: what the generator was made with


class GenerationOptions(FilterOptions, total=False):
    """Keyword arguments of ``generate``, ``stream`` and ``batch``.

    Attributes:
        temperature: 0 (default) is greedy.
        top_p, top_k and the other filters (``FilterOptions`` lists them), order: applied after the constraint's mask;
            repetition_penalty, presence_penalty, frequency_penalty, logit_bias, dry_multiplier with dry_base,
            dry_allowed_length and dry_sequence_breakers: changes of logits before it.
            ``SamplingParams`` says what each does; by default none does anything.
        seed: of the random numbers; None (default) takes fresh entropy.
        max_new_tokens: the budget (default 512); before it runs out the output is steered to close.
        stop: strings that end the output and are cut off. Under a constraint the output must be whole by then.
        schema_in_prompt: tell the model about the schema: True (default) and "user" at the beginning of the user's last
            message, "system" in the system's; False: not at all. Prompts with one schema begin alike, and that is read
            once.
        schema_form: how: "schema" (the JSON Schema), "skeleton" (`{"name": string, "age": integer}`), "typescript" (a
            type), "example"; "auto" (default): the skeleton for models that are known to have fewer than a billion
            parameters, else the schema. Grammars, expressions and choices have one form.
        draft: in place of the generator's own ``draft``, for this call.
        prediction: a text that the output may be much like, such as a file that is to be edited: what agrees with it is
            read many tokens at once, which changes the speed only. For batches also one (or None) a prompt.
        attempts: how many outputs may be written for one that the type's own validators take (default 1: a value that
            they refuse raises). Each is drawn with another seed, after the first at temperature 1 if it is 0. JSON
            that was refused is not written again, in any spelling.
        refusal_in_prompt: whether an attempt is told, after the prompt, what was written before it and why it was
            refused (default False: it is drawn again as if nothing had been). Where the prompt is then too long for the
            model, or its chat template takes no answers, it is not told.
        log_mass: whether the result says what the mask left of the model's distribution, token by token
            (``token_log_mass``), and where the model wanted something else (``surprises``); default False.
        fields: whether the result says how likely the values of fields were (``result.fields``): True for all with 2 to
            64 options, JSON Pointers (``["/label", "/tags/*"]``), or ``Fields``; read after the output is written.
            Default False.
        choose: at temperature 0, how a value with few options is chosen: "token" (default), token by token; "value":
            the option of the highest masked probability, summed over its spellings; "belief": of the model's own. What
            follows is written again where another one is chosen. Of ``generate`` only.
        regions: temperature and budget of fields, by JSON Pointer, ``*`` for any index or name:
            ``{"/why": Region(temperature=1.0, max_tokens=60)}``; of a grammar's rules, by name: ``{"why": ...}``. A
            part is closed before it has more tokens than its ``max_tokens``; where nothing so short is allowed,
            ``stats.exceeded_regions`` counts it. Types and schemas may say the same (``Annotated[str, Region(...)]``),
            and rules (``why[max_tokens=60]: ...``).
        spelling: "canonical": the tokens are those that the tokenizer makes of the text, which models were trained on,
            and which caches and drafts have; of tokenizers with byte-level BPE. Default "any": all tokens that spell
            what is allowed. See docs/decoding.md.
        loop_guard: where the text has repeated itself and the token that was drawn would go on with that, the string,
            list or object that repeats is closed instead, if it may be; ``stats.closed_loops`` counts it, and the
            ``finish_reason`` is "length". ``LoopGuard()`` says what a repetition is; None (default): nothing does.
        heal_prompt: a prompt that no chat template renders may end within a token: its last tokens are spelled anew,
            together with what follows, by their probability (``result.healed``), at the call's temperature. Of
            tokenizers with byte-level BPE; not with ``fields``, ``choose`` and ``guidance``. Default False. See
            docs/decoding.md.
        guidance: the output is pushed away from what the model would say after another prompt (``Guidance``,
            ``context_aware``), at twice the cost; in batches the other prompt is one for all. Not of coroutines, nor
            with ``fields`` and ``choose``. See docs/decoding.md.
    """

    order: tuple[str, ...]
    repetition_penalty: float
    presence_penalty: float
    frequency_penalty: float
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_sequence_breakers: Sequence[str]
    logit_bias: Mapping[int, float]
    seed: int | None
    max_new_tokens: int
    stop: str | Sequence[str]
    schema_in_prompt: bool | Place
    schema_form: FormOption
    draft: Any
    prediction: str | Iterable[str | None] | None
    attempts: int
    refusal_in_prompt: bool
    log_mass: bool
    fields: bool | Sequence[str] | Fields
    choose: Choose
    regions: Mapping[str, Region] | None
    spelling: Spelling
    loop_guard: LoopGuard | None
    heal_prompt: bool
    guidance: Guidance | None


_ITS_CONSTRAINT = "the constraint is the second argument: generate(prompt, constraint)"
OTHER_NAMES = {
    **dict.fromkeys(
        (
            *("response_model", "response_format", "output_type", "schema", "json_schema", "grammar", "regex"),
            *(
                "format",
                "choice",
                "structured_outputs",
                "guided_json",
                "guided_regex",
                "guided_choice",
                "guided_grammar",
            ),
        ),
        _ITS_CONSTRAINT,
    ),
    **dict.fromkeys(
        ("max_tokens", "max_completion_tokens", "max_length", "n_predict", "num_predict"),
        "did you mean 'max_new_tokens'?",
    ),
    "do_sample": "give a temperature above 0 for draws; 0 is greedy",
    "num_return_sequences": "use batch([prompt] * n)",
    "n": "use batch([prompt] * n), or the method vote for one answer of several",
    "vote": "use the method vote",
    "refine": "use the method refine",
    "best_of": "use sample, or batch([prompt] * n) and the result with the highest logprob",
    "num_beams": "beams are for model.generate: docs/integrations/transformers.md",
    "messages": "messages are the first argument, as a prompt is",
    "prompt": "the prompt is the first argument",
    "system": "give messages as the prompt, the first with the role system",
    "model": "the model is the Generator's",
    **dict.fromkeys(
        ("tools", "tool_choice", "functions"), "use the constraint tool_call(format, tools), or structgen.tools.run"
    ),
    **dict.fromkeys(
        ("logprobs", "top_logprobs", "prompt_logprobs"),
        "a result has logprob and token_log_probs, with log_mass=True token_log_mass; for some answers use choice",
    ),
    **dict.fromkeys(("min_tokens", "min_new_tokens", "min_length"), "let the constraint say it: minLength, minItems"),
    **dict.fromkeys(("stop_token_ids", "eos_token_id"), "use stop, or a Vocabulary with eos_token_ids"),
    **dict.fromkeys(("whitespace_pattern", "strict"), "use json_schema(schema, JsonOptions(...)) as the constraint"),
    "sampling_params": "give its fields as options: temperature, top_p, max_new_tokens, ...",
    "verbose": "use the log: logging.getLogger('structgen')",
    "stop_sequences": "use stop",
    "stop_strings": "use stop",
    "repeat_penalty": "use repetition_penalty",
    "random_seed": "use seed",
    "max_retries": "use attempts, with refusal_in_prompt=True for the model to be told what was refused",
    "retries": "use attempts, with refusal_in_prompt=True for the model to be told what was refused",
    "max_attempts": "use attempts",
    "reask": "use attempts with refusal_in_prompt=True",
    "stream": "use the method stream",
    "deterministic": "it is an option of the Generator",
}
"""What to do, by names that other libraries have for options."""
OPTION_NAMES = tuple(GenerationOptions.__annotations__)


@dataclass(frozen=True)
class GenerationSettings:
    """One call's keyword arguments, checked."""

    params: SamplingParams
    max_new_tokens: int
    stop: tuple[str, ...]
    telling: Telling | None
    draft: Any
    prediction: Any
    attempts: int
    refusal_in_prompt: bool
    log_mass: bool = False
    fields: Fields | None = None
    choose: Choose = "token"
    regions: Regions = ()
    spelling: Spelling = "any"
    guidance: Guidance | None = None
    loop_guard: LoopGuard | None = None
    heal_prompt: bool = False

    def drawn(self, seed: int | None, attempt: int) -> SamplingParams:
        """How tokens are drawn in an attempt, counted from 0."""
        params = self.params if seed == self.params.seed else replace(self.params, seed=seed)
        if attempt and not params.temperature:
            params = replace(params, temperature=1.0)
        if attempt and params.seed is not None:
            params = replace(params, seed=params.seed + attempt * SEEDS_OF_AN_ATTEMPT)
        return params


def stop_strings(stop: str | Sequence[str]) -> tuple[str, ...]:
    """The strings before which an output ends.

    Raises:
        OptionsError: something is no string, or empty.
    """
    strings = (stop,) if isinstance(stop, str) else tuple(stop) if isinstance(stop, Sequence) else (stop,)
    if not all(isinstance(string, str) and string for string in strings):
        raise OptionsError(
            f"stop must be a string or strings, none empty, not {stop!r:.100}", option="stop", value=stop
        )
    return strings


def checked_settings(
    *,
    max_new_tokens: int = DEFAULT_MAX_NEW_TOKENS,
    stop: str | Sequence[str] = (),
    schema_in_prompt: bool | Place = True,
    schema_form: FormOption = "auto",
    draft: Any = OWN_DRAFT,
    prediction: Any = None,
    attempts: int = 1,
    refusal_in_prompt: bool = False,
    log_mass: bool = False,
    fields: Any = False,
    choose: Choose = "token",
    regions: Any = None,
    spelling: Spelling = "any",
    guidance: Guidance | None = None,
    loop_guard: LoopGuard | None = None,
    heal_prompt: bool = False,
    **sampling: Any,
) -> GenerationSettings:
    """See ``GenerationOptions``.

    Raises:
        OptionsError: a name or value that an option cannot have.
    """
    unknown = next((name for name in sampling if name not in OPTION_NAMES), None)
    if unknown is not None:
        refuse_name(unknown, OPTION_NAMES, OTHER_NAMES)
    check_count("max_new_tokens", max_new_tokens)
    check_count("attempts", attempts)
    switches = ("refusal_in_prompt", refusal_in_prompt), ("log_mass", log_mass), ("heal_prompt", heal_prompt)
    for name, value in switches:
        if not isinstance(value, bool):
            raise OptionsError(f"{name} must be True or False, not {value!r:.100}", option=name, value=value)
    strings = stop_strings(stop)
    if not (loop_guard is None or isinstance(loop_guard, LoopGuard)):
        raise OptionsError(f"loop_guard is {loop_guard!r:.100}; expected LoopGuard() or None", option="loop_guard")
    if heal_prompt and (fields or choose != "token" or guidance is not None):
        raise OptionsError(
            "heal_prompt draws the prompt's last tokens with the output, whose fields, choices and guidance are of a "
            "prompt as it is; leave out one of them",
            option="heal_prompt",
        )
    shown = telling(schema_in_prompt, schema_form)
    params = SamplingParams(**sampling)
    return GenerationSettings(
        params,
        max_new_tokens,
        strings,
        shown,
        draft,
        prediction,
        attempts,
        refusal_in_prompt,
        log_mass,
        asked_fields(fields),
        _checked_choose(choose, params),
        checked_regions(regions),
        _checked_spelling(spelling, choose),
        _checked_guidance(guidance, fields, choose),
        loop_guard,
        heal_prompt,
    )


def _checked_guidance(guidance: Any, fields: Any, choose: Choose) -> Guidance | None:
    """Refuse guidance that is none, and what would read the model without it."""
    if guidance is None:
        return None
    if not isinstance(guidance, Guidance):
        raise OptionsError(f"guidance is {guidance!r:.100}; expected Guidance(...)", option="guidance", value=guidance)
    if guidance.plausibility:
        raise OptionsError(
            "plausibility of guidance is judged among the tokens that the constraint allows, as search does; leave it "
            "out here",
            option="guidance",
        )
    if fields or choose != "token":
        raise OptionsError(
            "fields and choose read what the model itself believes, which guidance changes; leave out one of them",
            option="guidance",
        )
    return guidance


def check_spelling(spelling: Spelling) -> None:
    """Refuse spellings that there are not."""
    if spelling not in ("any", "canonical"):
        raise OptionsError(
            f"spelling must be any or canonical, not {spelling!r:.60}", option="spelling", value=spelling
        )


def _checked_spelling(spelling: Spelling, choose: Choose) -> Spelling:
    """Refuse spellings that there are not, and where values are written again in tokens that were measured."""
    check_spelling(spelling)
    if spelling == "canonical" and choose != "token":
        raise OptionsError(
            f"choose={choose!r} sums over all spellings of a value; leave out choose, or spelling", option="spelling"
        )
    return spelling


def _checked_choose(choose: Choose, params: SamplingParams) -> Choose:
    """Refuse ways to choose that there are not, and draws with which they would say something else."""
    if choose not in ("token", "value", "belief"):
        raise OptionsError(f"choose must be token, value or belief, not {choose!r:.60}", option="choose", value=choose)
    if choose != "token" and (params.temperature or params.has_penalties or params.logit_bias):
        raise OptionsError(
            f"choose={choose!r} takes the likeliest value; leave temperature at 0, and penalties and logit_bias out",
            option="choose",
            value=choose,
        )
    return choose


def check_unguided(settings: GenerationSettings) -> None:
    """Refuse guidance where rows of others are read along.

    Raises:
        OptionsError: ``guidance`` is given.
    """
    if settings.guidance is not None:
        raise OptionsError("guidance is an option of generate, stream and batch, not of coroutines", option="guidance")


def check_written_once(settings: GenerationSettings) -> None:
    """Refuse ways to choose for which an output is written again.

    Raises:
        OptionsError: ``choose`` is given.
    """
    if settings.choose != "token":
        raise OptionsError(
            f"choose={settings.choose!r} is an option of generate only, which may write an output again",
            option="choose",
        )


def streamed_settings(**options: Any) -> GenerationSettings:
    """As `checked_settings`, of a stream.

    Raises:
        OptionsError: as there, and more than one attempt.
    """
    settings = checked_settings(**options)
    check_written_once(settings)
    if settings.attempts != 1:
        raise OptionsError(
            f"a stream has one attempt, not attempts={settings.attempts}; use generate",
            option="attempts",
            value=settings.attempts,
        )
    return settings
