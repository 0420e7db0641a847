"""The commands of ``structgen``. Exit codes: 0 done, 1 judged invalid or not covered, 2 bad input or usage,
3 incomplete (a budget ran out, or a row failed)."""

from __future__ import annotations

import dataclasses
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from structgen import __version__
from structgen.cli import answer_commands
from structgen.cli.bench import bench
from structgen.cli.common import (
    BadInput,
    JsonErrors,
    print_json,
    read_text,
    result_dict,
    summary,
    write_any_text,
)
from structgen.cli.configuration import read_config
from structgen.cli.consoles import err, out
from structgen.cli.names import names
from structgen.cli.options import (
    DEFAULT_DECODING,
    DEFAULT_MODEL_OPTIONS,
    AsJson,
    Backend,
    Commands,
    ContextLength,
    DecodingOptions,
    Deterministic,
    Device,
    Draft,
    Dtype,
    Form,
    GpuLayers,
    InPrompt,
    LoraPath,
    LoraScale,
    ModelOptions,
    ModelTokens,
    Seconds,
    Temperature,
    Template,
    TopK,
    TopP,
    region_options,
)  # fmt: skip
from structgen.cli.sources import NO_CONSTRAINT, Argument, ConstraintSource
from structgen.errors import IncompleteOutputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from structgen.core.constraints.base import Constraint
    from structgen.generation.generator import Generator
    from structgen.generation.results import StreamEvent

app = Commands(
    cls=JsonErrors,
    help="Language models that write exactly what a constraint allows.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its tables cut the names of options off in a terminal of 80 columns
)
app.add_typer(bench, name="bench")
app.add_typer(names, name="names")


def _print_version(wanted: bool) -> None:
    if wanted:
        out.print(f"structgen {__version__}")
        raise typer.Exit()


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Language models that write exactly what a constraint allows.

    Exit codes: 0 done, 1 judged invalid or not covered, 2 bad input or usage, 3 incomplete.
    """
    write_any_text()


@app.command()
def generate(
    prompt: Annotated[str | None, typer.Argument(help="The prompt; or use --prompt-file.")] = None,
    prompt_file: Annotated[str | None, typer.Option(help="File with the prompt (UTF-8); - is standard input.")] = None,
    source: ConstraintSource = NO_CONSTRAINT,
    models: ModelOptions = DEFAULT_MODEL_OPTIONS,
    decoding: DecodingOptions = DEFAULT_DECODING,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    draft: Draft = None,
    fields: Annotated[bool, typer.Option("--fields", help="Show how likely the value of each field was.")] = False,
    refine: Annotated[
        bool, typer.Option("--refine", help="Write freely first, then by the constraint with the draft in sight.")
    ] = False,
    region: Annotated[
        list[str] | None,
        typer.Option(
            help="How a field or rule is written: '/why max_tokens=60 temperature=1'. May be given several times."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write an output that satisfies a constraint. Without one: free text.

    structgen generate "Ada, 36, from London" --schema person.json

    structgen generate "A date" --regex "[0-9]{4}-[0-9]{2}-[0-9]{2}"
    """
    from structgen.cli.fields import field_dicts, field_table
    from structgen.cli.open_objects import advise
    from structgen.generation.decoding.healing import check_has_no_template
    from structgen.generation.generator import Generator

    if (prompt is None) == (prompt_file is None):
        raise BadInput("Give either a prompt or --prompt-file.")
    text = read_text(prompt_file) if prompt_file is not None else str(prompt)
    constraint = source.checked(prompt=text)
    options = {**decoding.as_arguments(), "seed": seed, "draft": draft or None, "fields": fields}
    options["regions"] = region_options(region)
    generator = load(models)
    if decoding.heal_prompt:
        check_has_no_template(generator.tokenizer)
    events = (_refined if refine else Generator.stream)(generator, text, constraint, **options)
    result = None
    try:
        for event in events:
            result = event.result
            if not as_json:
                sys.stdout.write(event.delta)
                sys.stdout.flush()
    except IncompleteOutputError as error:
        if not as_json:
            sys.stdout.write("\n")
            advise(constraint, error.partial, ran_out=True)
        raise
    assert result is not None
    if as_json:
        drafted = {"draft": getattr(result, "draft", None)} if refine else {}
        print_json({**result_dict(result), **drafted, **({"fields": field_dicts(result.fields)} if fields else {})})
    else:
        sys.stdout.write("\n")
        if fields:
            out.print(field_table(result.fields))
        err.print(f"[dim]{summary(result)}[/]", soft_wrap=True)
        advise(constraint, result.text, ran_out=result.stats.steered_tokens > 0)


def _refined(
    generator: Generator, prompt: str, constraint: Constraint | None, **options: Any
) -> Iterator[StreamEvent[Any]]:
    """The only event of an output that is written after a draft."""
    from structgen.generation.results import StreamEvent

    result = generator.refine(prompt, constraint, **options)
    yield StreamEvent(result.text, result.text, result)


@app.command()
def check(
    schema_or_grammar: Argument = None,
    source: ConstraintSource = NO_CONSTRAINT,
    as_json: AsJson = False,
) -> None:
    """Report what of a constraint is enforced. Exit code 1 if something is not, or nothing satisfies it."""
    from structgen.cli.check import run

    raise typer.Exit(run(source.required(schema_or_grammar), as_json))


@app.command()
def validate(
    schema_or_grammar: Argument = None,
    file: Annotated[str | None, typer.Argument(help="The document; - is standard input.")] = None,
    source: ConstraintSource = NO_CONSTRAINT,
    why: Annotated[bool, typer.Option("--why", help="Name the keywords of the schema that refuse it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Judge a document by a constraint. JSON may have every legal spelling. Exit code 1 if it is invalid.

    structgen validate schema.json value.json

    structgen validate value.txt --regex "[a-z]+"
    """
    from structgen.cli.validate import run

    if file is None:  # the constraint is an option then
        schema_or_grammar, file = None, schema_or_grammar
    if file is None:
        raise BadInput("Give a document: a file, or - for standard input.")
    constraint = dataclasses.replace(source, exact=source.judges_json(schema_or_grammar)).required(schema_or_grammar)
    raise typer.Exit(run(constraint, read_text(file), as_json, why=why))


@app.command()
def batch(
    file: Annotated[str, typer.Argument(help="Prompts: JSON lines or .csv; - is standard input (JSON lines).")],
    source: ConstraintSource = NO_CONSTRAINT,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to append to. Without it: standard output.")
    ] = None,
    models: ModelOptions = DEFAULT_MODEL_OPTIONS,
    decoding: DecodingOptions = DEFAULT_DECODING,
    seed: Annotated[int, typer.Option(min=0, help="Outputs draw with seeds made of it and their prompts' ids.")] = 0,
    batch_size: Annotated[int, typer.Option(min=1, help="Sequences that are written at once.")] = 64,
    max_prompt_length: Annotated[
        int | None,
        typer.Option(min=1, help="Characters of a prompt; longer ones fail. Default: what the model could read."),
    ] = None,
    ray: Annotated[bool, typer.Option("--ray", help="Write with actors of Ray Data; RAY_ADDRESS says where.")] = False,
    actors: Annotated[int, typer.Option(min=1, help="With --ray: how many, each with the model.")] = 1,
    draft: Draft = None,
    fields: Annotated[bool, typer.Option("--fields", help="Say how likely the value of each field was.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write an output for each row of a file. The constraint is that of rows which name none. A run that was broken off
    is taken up by the same command. Exit code 3 if rows failed: their errors stand in their lines.

    structgen batch people.jsonl --schema person.json -o answers.jsonl
    """
    from structgen.cli import batch as batches
    from structgen.generation.batch_files.job import BatchJob

    json_options = source.json_options()
    constraint, described = batches.constraint_of(source, json_options)
    options = {**decoding.as_arguments(), **({"fields": True} if fields else {})}
    job = BatchJob(
        **dataclasses.asdict(models), draft=draft or None, constraint=constraint, described=described,
        options=options, seed=seed, batch_size=batch_size, max_prompt_length=max_prompt_length,
    )  # fmt: skip
    rows = batches.input_file(file, json_options, source.sources(), batches.schema_of_prompts(source))
    raise typer.Exit(batches.run(rows, job, output, batches.writer(rows, ray, actors), as_json))


@app.command("show-mask")
def show_mask(
    schema_or_grammar: Argument = None,
    source: ConstraintSource = NO_CONSTRAINT,
    text: Annotated[str, typer.Option(help="The output so far.")] = "",
    tokenizer: Annotated[
        str | None, typer.Option(help="Tokens of this model: Hugging Face id, folder or 'default'. Else: bytes.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most tokens to list.")] = 60,
    why: Annotated[
        str | None, typer.Option(help="A text that may not come next: name the schema's keywords that forbid it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what may come next after a text. Exit code 1 if the text is refused."""
    from structgen.cli.show_mask import run

    raise typer.Exit(run(source.required(schema_or_grammar), text, tokenizer, limit, as_json, why))


@app.command()
def demo(
    schemas: Annotated[Path | None, typer.Option(help="Folder with the demo's schemas.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Run these examples only.")] = None,
    models: ModelOptions = DEFAULT_MODEL_OPTIONS,
    closed: Annotated[bool, typer.Option("--closed", help="Objects that declare members have no others.")] = False,
    temperature: Temperature = 0.0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Watch a model write JSON for a few schemas. jsonschema judges each. Exit code 1 if one is invalid."""
    from structgen.cli.demo import run

    generator = load(models)
    raise typer.Exit(run(generator, schemas, only or [], temperature, seed, closed, as_json))


@app.command()
def datastore(
    files: Annotated[list[Path], typer.Argument(help="Texts to copy from (UTF-8).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write, best named ....draft.npz.")],
    lines: Annotated[bool, typer.Option("--lines", help="Every line is a text of its own (JSON Lines).")] = False,
    model: Annotated[str | None, typer.Option(help="Whose tokens: GGUF file, Hugging Face id or folder.")] = None,
    as_json: AsJson = False,
) -> None:
    """Index texts, so that --draft FILE copies from them. Earlier outputs for the same schema are such texts."""
    from structgen.cli.datastore import run

    raise typer.Exit(run(files, output, lines, model, as_json))


@app.command("vllm-check")
def vllm_check(as_json: AsJson = False) -> None:
    """Say which parts fit the installed vLLM. Exit code 1 if its backend does not."""
    from structgen.cli.engine_check import run

    raise typer.Exit(run("vllm", as_json))


@app.command("sglang-check")
def sglang_check(as_json: AsJson = False) -> None:
    """Say which parts fit the installed SGLang. Exit code 1 if its backend does not."""
    from structgen.cli.engine_check import run

    raise typer.Exit(run("sglang", as_json))


@app.command()
def sample(
    prompt: Annotated[str, typer.Argument(help="The prompt.")],
    source: ConstraintSource = NO_CONSTRAINT,
    n: Annotated[int, typer.Option("-n", min=1, help="Samples.")] = 10,
    method: Annotated[str, typer.Option(help="exact, weighted, asap, local, smc, mh or rejection.")] = "exact",
    temperature: Temperature = 1.0,
    top_p: TopP = 1.0,
    top_k: TopK = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Longest text: a condition, like the constraint.")] = 256,
    model_tokens: ModelTokens = None,
    seconds: Seconds = None,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    schema_in_prompt: InPrompt = True,
    schema_form: Form = "auto",
    models: ModelOptions = DEFAULT_MODEL_OPTIONS,
    as_json: AsJson = False,
) -> None:
    """Draw texts from the model's own distribution. It is that given the constraint, which masks alone distort. Exit
    code 3 if a budget ran out first."""
    from structgen.cli import aligned
    from structgen.generation.target import Budget

    constraint = source.required(checked=True, prompt=prompt)
    code = aligned.run_sample(
        load(models), prompt, constraint, n, method, Budget(model_tokens, seconds), seed,
        as_json,
        temperature=temperature, top_p=top_p, top_k=top_k, max_new_tokens=max_new_tokens,
        schema_in_prompt=schema_in_prompt, schema_form=schema_form,
    )  # fmt: skip
    raise typer.Exit(code)


@app.command()
def search(
    prompt: Annotated[str, typer.Argument(help="The prompt.")],
    source: ConstraintSource = NO_CONSTRAINT,
    n: Annotated[int, typer.Option("-n", min=1, help="Outputs.")] = 1,
    method: Annotated[
        str, typer.Option(help="beam, exact, gumbel, cautious, quality, ...: see docs/decoding.md.")
    ] = "beam",
    option: Annotated[
        list[str] | None, typer.Option(help="Of the method: name=value, as in num_beams=8; may be given several times.")
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Token budget of an output.")] = 256,
    model_tokens: ModelTokens = None,
    seconds: Seconds = None,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    schema_in_prompt: InPrompt = True,
    schema_form: Form = "auto",
    models: ModelOptions = DEFAULT_MODEL_OPTIONS,
    as_json: AsJson = False,
) -> None:
    """Search for likely outputs. Budgets of the model are for the methods exact and
    gumbel. Exit code 3 if one ran out first."""
    from structgen.cli import searching
    from structgen.generation.target import Budget

    budget = None if model_tokens is None and seconds is None else Budget(model_tokens, seconds)
    code = searching.run_search(
        load(models), prompt, source.required(checked=True, prompt=prompt), n, method, option or [], budget, as_json,
        max_new_tokens=max_new_tokens, seed=seed, schema_in_prompt=schema_in_prompt, schema_form=schema_form,
    )  # fmt: skip
    raise typer.Exit(code)


@app.command()
def vote(
    prompt: Annotated[str, typer.Argument(help="The prompt.")],
    source: ConstraintSource = NO_CONSTRAINT,
    n: Annotated[int, typer.Option("-n", min=1, help="Samples.")] = 5,
    by: Annotated[str, typer.Option(help="fields, mbr or value: see docs/confidence.md.")] = "fields",
    draw: Annotated[str, typer.Option(help="iid, or distinct: without replacement, by probability.")] = "iid",
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Token budget of an output.")] = 256,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    schema_in_prompt: InPrompt = True,
    schema_form: Form = "auto",
    models: ModelOptions = DEFAULT_MODEL_OPTIONS,
    as_json: AsJson = False,
) -> None:
    """Give one answer of several outputs. Each field has its share."""
    from structgen.cli.fields import print_vote

    options = {"max_new_tokens": max_new_tokens, "seed": seed}
    shown = {"schema_in_prompt": schema_in_prompt, "schema_form": schema_form}
    constraint = source.required(checked=True)
    choice: dict[str, Any] = {"n": n, "by": by, "draw": draw, **options, **shown}
    print_vote(load(models).vote(prompt, constraint, **choice), as_json)


@app.command()
def calibrate(
    file: Annotated[str, typer.Argument(help="What batch --fields has written; - is standard input.")],
    truths: Annotated[
        str, typer.Argument(help="JSON lines with id and value: what is right, each as batch writes it.")
    ],
    field: Annotated[str, typer.Option(help="JSON Pointer of the field.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="File for the fitted temperature.")] = None,
    as_json: AsJson = False,
) -> None:
    """Judge the probabilities of a field by what was right. A temperature is fitted to them."""
    from structgen.cli.fields import run_calibrate

    run_calibrate(read_text(file), read_text(truths), field, output, as_json)


@app.command("compare-distributions")
def compare_distributions(
    prompt: Annotated[str, typer.Argument(help="The prompt.")],
    source: ConstraintSource = NO_CONSTRAINT,
    n: Annotated[int, typer.Option("-n", min=1, help="Samples of each method.")] = 200,
    plot: Annotated[Path | None, typer.Option(help="Image to write (.png, .svg, ...).")] = None,
    temperature: Temperature = 1.0,
    max_new_tokens: Annotated[int, typer.Option(min=1)] = 256,
    model_tokens: ModelTokens = None,
    seconds: Seconds = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    schema_in_prompt: InPrompt = True,
    schema_form: Form = "auto",
    models: ModelOptions = DEFAULT_MODEL_OPTIONS,
    as_json: AsJson = False,
) -> None:
    """Compare how often samplers write each text. Plain masking, ASAp and exact sampling stand side by side. Budgets
    are for each."""
    from structgen.cli import aligned
    from structgen.generation.target import Budget

    constraint = source.required(checked=True, prompt=prompt)
    code = aligned.run_compare(
        load(models), prompt, constraint, n, Budget(model_tokens, seconds), seed, plot,
        as_json,
        temperature=temperature, max_new_tokens=max_new_tokens,
        schema_in_prompt=schema_in_prompt, schema_form=schema_form,
    )  # fmt: skip
    raise typer.Exit(code)


@app.command(context_settings={"auto_envvar_prefix": "STRUCTGEN_SERVE"})
def serve(
    model: Annotated[
        str | None,
        typer.Argument(
            envvar="STRUCTGEN_SERVE_MODEL",
            help="GGUF file, Hugging Face id or folder; the built-in model if not given.",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            help="File with options (.toml, .yaml, .json), under those of the environment (STRUCTGEN_SERVE_PORT, ...).",
            callback=read_config,
            is_eager=True,
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 is all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8000,
    name: Annotated[
        list[str] | None, typer.Option(help="What requests may call the model. May be given several times.")
    ] = None,
    allowed_host: Annotated[
        list[str] | None, typer.Option(help="Name that requests may ask for. May be given several times.")
    ] = None,
    api_keys: Annotated[Path | None, typer.Option(help="File with a key a line; or set STRUCTGEN_API_KEYS.")] = None,
    tool_format: Annotated[
        str | None, typer.Option(help="How the model writes tool calls: hermes, llama3, ...")
    ] = None,
    schema_in_prompt: Annotated[str, typer.Option(help="Show the model the schema: user, system or none.")] = "user",
    schema_form: Form = "auto",
    default_temperature: Annotated[
        float | None, typer.Option(min=0.0, max=2.0, help="Of requests that name none; if not given, the model's own.")
    ] = None,
    generation_config: Annotated[
        str,
        typer.Option(help="How tokens are drawn where a request says nothing: auto (the model's), none, or a file."),
    ] = "auto",
    default_max_tokens: Annotated[int, typer.Option(min=1, help="Budget of requests that name none.")] = 2048,
    max_think_tokens: Annotated[
        int | None, typer.Option(min=0, help="Most tokens of thinking where a request says nothing.")
    ] = None,
    max_rows: Annotated[int, typer.Option(min=1, help="Outputs written at once.")] = 32,
    max_waiting: Annotated[int, typer.Option(min=1, help="Outputs that may wait; more are turned away (429).")] = 256,
    max_body: Annotated[int, typer.Option(min=1, help="Largest request, in bytes.")] = 4 << 20,
    max_connections: Annotated[
        int | None, typer.Option(min=1, help="Open at once; if not given, what the limit of open files leaves.")
    ] = None,
    requests_per_minute: Annotated[int | None, typer.Option(min=1, help="Of one key, or one address.")] = None,
    queue_seconds: Annotated[float, typer.Option(min=0.001, help="Longest wait for a turn.")] = 30.0,
    total_seconds: Annotated[
        float, typer.Option(min=0.001, help="Longest time for an output, which is then closed.")
    ] = 120.0,
    silence_seconds: Annotated[
        float, typer.Option(min=0.001, help="Longest time in which a stream says nothing; then a comment is sent.")
    ] = 2.0,
    drain_seconds: Annotated[
        float, typer.Option(min=0.001, help="How long work goes on after a signal to stop.")
    ] = 30.0,
    max_cache_bytes: Annotated[int | None, typer.Option(min=1, help="What keys and values may take.")] = None,
    ray: Annotated[bool, typer.Option("--ray", help="Run the model in replicas of Ray Serve.")] = False,
    replicas: Annotated[int, typer.Option(min=1, help="With --ray: how many, of --max-rows outputs each.")] = 2,
    max_mask_seconds: Annotated[
        float,
        typer.Option(min=0.001, help="Longest time to find what a constraint allows next."),
    ] = 10.0,
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="What a request's x-structgen may name: name=FILE (a text, names or documents of 'names build', "
            ".json), or a folder of such files. May be given several times."
        ),
    ] = None,
    max_source_bytes: Annotated[int, typer.Option(min=1, help="What the sources of a request may have.")] = 4 << 20,
    max_source_names: Annotated[int, typer.Option(min=1, help="Names and texts in them.")] = 100_000,
    root_path: Annotated[str, typer.Option(help="Where a proxy has put the server, such as /llm.")] = "",
    draft: Draft = None,
    backend: Backend = None,
    device: Device = None,
    dtype: Dtype = None,
    deterministic: Deterministic = False,
    n_ctx: ContextLength = None,
    n_gpu_layers: GpuLayers = None,
    chat_template: Template = None,
    lora_path: LoraPath = None,
    lora_scale: LoraScale = 1.0,
) -> None:
    """Answer the clients of OpenAI's API over HTTP. Its page, at the address, shows requests as code."""
    from structgen.cli import serve as serving
    from structgen.core.text_sets.opening import opened_sources
    from structgen.generation.models.built_in import DEFAULT_MODEL
    from structgen.server.settings import ServingSettings

    serving.check_installed()
    settings = ServingSettings(
        model_names=tuple(name or [model or DEFAULT_MODEL]), api_keys=serving.read_keys(api_keys),
        hosts=serving.hosts_of(host, allowed_host or ()),
        tool_format=tool_format, default_temperature=default_temperature,
        generation_settings=serving.generation_settings(generation_config),
        schema_in_prompt=schema_in_prompt, schema_form=schema_form,  # type: ignore[arg-type]
        default_max_tokens=default_max_tokens, max_think_tokens=max_think_tokens,
        max_rows=max_rows, max_waiting=max_waiting, max_body=max_body, max_connections=max_connections,
        requests_per_minute=requests_per_minute, queue_seconds=queue_seconds, total_seconds=total_seconds,
        silence_seconds=silence_seconds, drain_seconds=drain_seconds, max_cache_bytes=max_cache_bytes,
        max_mask_seconds=max_mask_seconds, sources=opened_sources(source or ()),
        max_source_bytes=max_source_bytes, max_source_names=max_source_names,
    )  # fmt: skip
    models = ModelOptions(
        model, backend, device, dtype, deterministic, n_ctx, n_gpu_layers, chat_template, lora_path, lora_scale
    )
    start = (
        serving.replicated(models, draft or None, settings, replicas) if ray else partial(load, models, draft or None)
    )
    code = serving.run(start, settings, host, port, root_path=root_path)
    raise typer.Exit(code)


answer_commands.register(app)


def load(options: ModelOptions, draft: list[str] | None = None) -> Generator:
    """The generator of a command."""
    from structgen.generation.generator import Generator

    return Generator(**dataclasses.asdict(options), draft=draft)
