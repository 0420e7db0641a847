"""What a server is run with: limits on size, rate, queue and time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from structgen.core.constraints.limits import CompileLimits
from structgen.core.json_schema.prompt_forms import FormOption, checked_form
from structgen.core.tool_calls.formats import format_named
from structgen.errors import OptionsError
from structgen.generation.models.defaults import DRAWING, UNKNOWN_MODEL, ModelDefaults
from structgen.options import check_count

DEFAULT_LIMITS = CompileLimits()
_OPTIONAL = ("max_rows_a_key", "max_cache_bytes", "max_prompt_length", "max_prompt_tokens", "max_connections")
SchemaInPrompt = Literal["none", "user", "system"]


@dataclass(frozen=True)
class ServingSettings:
    """Limits and defaults of a server; sizes in bytes, times in seconds.

    Attributes:
        model_names: names that requests may call the model by; the first is reported.
        api_keys: who may ask; none: everybody who reaches the server.
        hosts: names that requests may ask for (the header Host, without port); none: any. Where the server is for its
            own machine, this keeps out pages whose name was made to lead there.
        tool_format: how the model writes tool calls, see ``tool_call``; None: known from its chat template.
        schema_in_prompt: whether the prompt speaks of the constraint, and in which message.
        schema_form: in which form, see ``GenerationOptions``.
        default_temperature: of requests that name none; None: the model's own, see ``model_defaults``.
        model_defaults: what suits the model; in an ``ApiServer``, what the model says of itself.
        generation_settings: in place of those that the model names (see ``ModelDefaults.with_settings``); {}: none;
            None: the model's own.
        max_think_tokens: the most tokens of thinking where a request says nothing; None: any number.
        default_max_tokens: the budget of requests that name none.
        max_body: largest request. compile_limits: what a schema or grammar in it may ask for.
        max_prompt_length: longest text of a prompt, in characters; None: in an ``ApiServer``, as long as what the
            model reads could be at the most, so that no time goes into the tokens of what cannot fit.
            max_prompt_tokens: of it; None: in an ``ApiServer``, as many as the model reads. A long text is refused
            as soon as its parts have twice as many.
        compile_workers: constraints that are compiled at once, each in a process of its own; and as many that have had
            little time yet. One caller (key, or address) has all but one of them. 0: in the server's process, for
            constraints that can be trusted.
        sources: what names in schemas stand for, by name, see ``json_schema``; for all requests.
        max_source_bytes: what the sources of one request may have, in UTF-8. max_source_names: names in its lists, and
            texts.
        max_choices: largest ``n``.
        max_rows: outputs written at once. max_rows_a_key: of them, of one key (without keys: of one
            address); None: all.
        max_cache_bytes: what their keys and values may take; None: any number.
        max_waiting: outputs that wait for a turn, beyond those that can begin; more are turned away (429).
        queue_seconds: longest wait for a turn, what compiles the constraint included (then 429). total_seconds: longest
            time for an output, which is then closed validly. body_seconds: longest time to send a request.
            write_seconds: longest time in which a client reads nothing. silence_seconds: longest time in which a stream
            says nothing; then it begins, if it has not, and a comment is sent. drain_seconds: how long work may go on
            after a signal to stop.
        max_connections: open at once; None: what the limit of open files leaves. Beyond it, the one that has waited
            longest for its client makes room. head_seconds: longest time to send a request's line and headers.
            idle_seconds: longest time between two requests on a connection.
        max_mask_seconds: longest time to find what a constraint allows next; an output that takes longer fails (400).
        requests_per_minute: of one key (without keys: of one address); None: any number.

    Raises:
        OptionsError: a value out of range.
    """

    model_names: tuple[str, ...] = ("default",)
    api_keys: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    tool_format: str | None = None
    schema_in_prompt: SchemaInPrompt = "user"
    schema_form: FormOption = "auto"
    default_temperature: float | None = None
    model_defaults: ModelDefaults = UNKNOWN_MODEL
    generation_settings: Mapping[str, Any] | None = None
    max_think_tokens: int | None = None
    default_max_tokens: int = 2048
    max_body: int = 4 << 20
    max_prompt_length: int | None = None
    max_prompt_tokens: int | None = None
    compile_limits: CompileLimits = DEFAULT_LIMITS
    compile_workers: int = 2
    sources: Mapping[str, Any] = field(default_factory=dict, hash=False)
    max_source_bytes: int = 4 << 20
    max_source_names: int = 100_000
    max_choices: int = 16
    max_rows: int = 32
    max_rows_a_key: int | None = None
    max_cache_bytes: int | None = None
    max_waiting: int = 256
    queue_seconds: float = 30.0
    total_seconds: float = 120.0
    body_seconds: float = 30.0
    write_seconds: float = 60.0
    silence_seconds: float = 2.0
    drain_seconds: float = 30.0
    max_connections: int | None = None
    head_seconds: float = 10.0
    idle_seconds: float = 30.0
    max_mask_seconds: float = 10.0
    requests_per_minute: int | None = None

    @property
    def sampling_defaults(self) -> dict[str, Any]:
        """How tokens are drawn where a request says nothing: those of ``DRAWING`` and ``repetition_penalty``."""
        defaults = {name: getattr(self.model_defaults, name) for name in (*DRAWING, "repetition_penalty")}
        return defaults if self.default_temperature is None else {**defaults, "temperature": self.default_temperature}

    def of_model(self, defaults: ModelDefaults) -> ServingSettings:
        """These for a model that says this of itself."""
        asked = self.generation_settings
        return replace(self, model_defaults=defaults if asked is None else defaults.with_settings(asked))

    def __post_init__(self) -> None:
        if not self.model_names or not all(self.model_names):
            raise OptionsError("model_names must name the model at least once")
        for name, value in vars(self).items():
            if name.startswith(("max_", "default_max")) and name not in ("max_think_tokens", "max_mask_seconds"):
                check_count(name, value, optional=name in _OPTIONAL)
            if name.endswith("_seconds") and not 0 < value < float("inf"):
                raise OptionsError(f"{name} must be a positive number of seconds, not {value!r}")
        check_count("max_think_tokens", self.max_think_tokens, 0, optional=True)
        check_count("compile_workers", self.compile_workers, 0)
        check_count("requests_per_minute", self.requests_per_minute, optional=True)
        if self.tool_format is not None:
            format_named(self.tool_format)
        if self.schema_in_prompt not in ("none", "user", "system"):
            raise OptionsError(f"schema_in_prompt must be none, user or system, not {self.schema_in_prompt!r}")
        checked_form(self.schema_form)
        if self.default_temperature is not None and not 0 <= self.default_temperature <= 2:
            raise OptionsError(f"default_temperature must be from 0 to 2, not {self.default_temperature!r:.100}")
