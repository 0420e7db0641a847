"""Options that several commands have: declared once, as the fields of a value that the command gets."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass, make_dataclass
from functools import cached_property
from typing import Annotated, Any

import typer
from typer.main import get_command_name
from typer.models import CommandInfo

from structgen.cli.common import BadInput, exit_codes
from structgen.generation.filters.table import FILTERS, Filter
from structgen.options import DEFAULT_MAX_NEW_TOKENS

AsJson = Annotated[
    bool, typer.Option("--json", help="For scripts: JSON on standard output and nothing else, errors as JSON too.")
]
Backend = Annotated[
    str | None,
    typer.Option(help="llamacpp or transformers; if not given, llamacpp for GGUF files where it is installed."),
]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, ...")]
Draft = Annotated[
    list[str] | None,
    typer.Option(help="Draft tokens to be faster: auto, ngram, ..., a datastore, a model. May be given several times."),
]
Deterministic = Annotated[
    bool,
    typer.Option(
        "--deterministic", help="Equal outputs, whatever is written along with them: a token a call; slower, no drafts."
    ),
]
Dtype = Annotated[str | None, typer.Option(help="float32 (default), bfloat16, float16 or auto.")]
ContextLength = Annotated[
    int | None, typer.Option(min=0, help="llama.cpp: most tokens of a text; 0, or not given: as the model was trained.")
]
GpuLayers = Annotated[
    int | None, typer.Option(min=-1, help="llama.cpp: layers on accelerators; -1 is as many as can be.")
]
Template = Annotated[str | None, typer.Option(help="File with a chat template, or its Jinja text.")]
LoraPath = Annotated[str | None, typer.Option(help="llama.cpp: a LoRA adapter, a GGUF file.")]
LoraScale = Annotated[float, typer.Option(help="What the adapter is multiplied by.")]
Temperature = Annotated[float, typer.Option(min=0.0, help="0 is greedy.")]
TopP = Annotated[float, typer.Option(min=0.0, max=1.0)]
TopK = Annotated[int | None, typer.Option(min=1)]
InPrompt = Annotated[bool, typer.Option(help="Show the model the constraint.")]
Form = Annotated[
    str,
    typer.Option(help="schema, skeleton, typescript or example; auto: by the size of the model."),
]
ModelTokens = Annotated[int | None, typer.Option(min=0, help="Budget: tokens read by the model, the prompt aside.")]
Seconds = Annotated[float | None, typer.Option(min=0.0, help="Budget: time.")]


@dataclass(frozen=True)
class ModelOptions:
    """Which model, and where it runs: the arguments of ``Generator``."""

    model: Annotated[
        str | None, typer.Option(help="GGUF file, Hugging Face id or folder; the built-in model if not given.")
    ] = None
    backend: Backend = None
    device: Device = None
    dtype: Dtype = None
    deterministic: Deterministic = False
    n_ctx: ContextLength = None
    n_gpu_layers: GpuLayers = None
    chat_template: Template = None
    lora_path: LoraPath = None
    lora_scale: LoraScale = 1.0


def _filter_option(one: Filter) -> Any:
    """The type of a filter's option."""
    if one.is_count:
        return Annotated[int | None, typer.Option(min=1, help=one.help)]
    return Annotated[float, typer.Option(min=0.0, max=one.high, help=one.help)]


_Filters: Any = make_dataclass(
    "_Filters", [(one.name, _filter_option(one), one.neutral) for one in FILTERS if one.help is not None], frozen=True
)


@dataclass(frozen=True)
class DecodingOptions(_Filters):
    """How outputs are written: fields of ``GenerationOptions``."""

    temperature: Temperature = 0.0
    repetition_penalty: Annotated[float, typer.Option(min=0.0, help="1 is none.")] = 1.0
    presence_penalty: Annotated[float, typer.Option(help="Taken off tokens that have come.")] = 0.0
    frequency_penalty: Annotated[float, typer.Option(help="The same for each time that they have come.")] = 0.0
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Token budget of an output.")] = DEFAULT_MAX_NEW_TOKENS
    stop: Annotated[list[str] | None, typer.Option(help="Ends an output; may be given several times.")] = None
    schema_in_prompt: InPrompt = True
    schema_form: Form = "auto"
    spelling: Annotated[str, typer.Option(help="canonical: the tokens that the tokenizer makes of the text.")] = "any"
    heal_prompt: Annotated[
        bool,
        typer.Option("--heal-prompt", help="The prompt may end within a token; of models without a chat template."),
    ] = False

    def as_arguments(self) -> dict[str, Any]:
        """As ``generate`` takes them."""
        return {**asdict(self), "stop": self.stop or []}


_REGION = re.compile(r"(?P<name>.*?)\s+(?P<terms>\w+=[^\s=]+(?:\s+\w+=[^\s=]+)*)")


def region_options(given: list[str] | None) -> dict[str, Any] | None:
    """What ``--region`` says, by field or rule."""
    from structgen.core.regions import region_of  # loads numpy

    regions = dict[str, Any]()
    for text in given or ():
        match = _REGION.fullmatch(text)
        try:
            if match is None:
                raise ValueError("it does not say how a part is written")
            terms = [each.split("=") for each in match["terms"].split()]
            read = {term: json.loads(value) for term, value in terms}
            if len(read) < len(terms) or match["name"] in regions:
                raise ValueError("it says something twice, or of a part that has been named before")
            regions[match["name"]] = region_of(read)
        except ValueError as error:
            raise BadInput(
                f"--region {text!r}: {error}; expected a field or rule, then max_tokens=60, temperature=1.0 or both"
            ) from error
    return regions or None


DEFAULT_MODEL_OPTIONS, DEFAULT_DECODING = ModelOptions(), DecodingOptions()


@dataclass(frozen=True)
class CommonOptions:
    """Options of every command: one is a field here, and what it does in ``applied``."""

    @contextmanager
    def applied(self) -> Iterator[None]:
        """While a command runs."""
        yield


class Commands(typer.Typer):
    """Commands that take dataclasses of options, and those of ``CommonOptions``; their errors become exit codes, and
    JSON where they have ``--json``."""

    def command(self, *args: Any, **kwargs: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:  # type: ignore[override]
        """See typer."""
        register = super().command(*args, **kwargs)
        return lambda command: register(_WithOptions(command))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program: of its commands only the one that is asked for is built."""
        asked = [one for one in self.registered_commands if sys.argv[1:2] == [_name_of(one)]]
        if asked:
            self.registered_commands, self.registered_groups = asked, []
        return super().__call__(*args, **kwargs)


def _name_of(command: CommandInfo) -> str:
    return command.name or get_command_name(getattr(command.callback, "__name__", ""))


class _WithOptions:
    """A command with the fields of a dataclass as options in place of each parameter of such a type."""

    def __init__(self, command: Callable[..., None]) -> None:
        self._command = command
        self.__name__, self.__doc__ = command.__name__, command.__doc__

    @cached_property
    def _own(self) -> list[inspect.Parameter]:
        common = inspect.Parameter(_COMMON, inspect.Parameter.KEYWORD_ONLY, annotation=CommonOptions)
        return [*inspect.signature(self._command, eval_str=True).parameters.values(), common]

    @cached_property
    def _groups(self) -> dict[str, type[Any]]:
        return {
            one.name: one.annotation
            for one in self._own
            if isinstance(one.annotation, type) and is_dataclass(one.annotation)
        }

    @cached_property
    def _fields(self) -> dict[str, list[inspect.Parameter]]:
        """The options of each group."""
        return {
            name: list(inspect.signature(group, eval_str=True).parameters.values())
            for name, group in self._groups.items()
        }

    @cached_property
    def __signature__(self) -> inspect.Signature:
        """What typer reads, when it builds the command."""
        return inspect.Signature([
            parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for one in self._own
            for parameter in self._fields.get(one.name, [one])
        ])  # fmt: skip

    @property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]
        return {parameter.name: parameter.annotation for parameter in self.__signature__.parameters.values()}

    def __call__(self, **kwargs: Any) -> None:
        for name, group in self._groups.items():
            kwargs[name] = group(**{field.name: kwargs.pop(field.name) for field in self._fields[name]})
        with exit_codes(bool(kwargs.get("as_json"))), kwargs.pop(_COMMON).applied():
            self._command(**kwargs)


_COMMON = "common_options"
