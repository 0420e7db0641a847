"""The commands of ``structgen``. Exit codes: 0 done, 1 invalid or not covered, 2 bad input or usage."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from structgen.cli.bench import bench
from structgen.cli.common import BadInput, err, exit_codes, print_json, read_schema, read_text, summary
from structgen.generator import DEFAULT_MAX_NEW_TOKENS, GenerationResult, Generator
from structgen.options import JsonOptions

app = typer.Typer(
    help="Language models that write exactly what a constraint allows.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(bench, name="bench")

SchemaArgument = Annotated[str, typer.Argument(help="JSON Schema: a file, JSON text, or - for standard input.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output, for scripts.")]
Exact = Annotated[bool, typer.Option("--exact", help="Every legal spelling: key order, whitespace, escapes, numbers.")]
Closed = Annotated[bool, typer.Option("--closed", help="Objects that declare members have no others.")]
Model = Annotated[str | None, typer.Option(help="Hugging Face id or folder; the built-in model if not given.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, ...")]
Draft = Annotated[
    list[str] | None,
    typer.Option(help="Draft tokens to be faster: auto, ngram, ..., a datastore, a model. May be given several times."),
]
Dtype = Annotated[str | None, typer.Option(help="float32 (default), bfloat16, float16 or auto.")]


@app.command()
def generate(
    prompt: Annotated[str | None, typer.Argument(help="The prompt; or use --prompt-file.")] = None,
    prompt_file: Annotated[str | None, typer.Option(help="File with the prompt (UTF-8); - is standard input.")] = None,
    schema: Annotated[str | None, typer.Option(help="JSON Schema: a file or JSON text. Without it: free text.")] = None,
    model: Model = None,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 is greedy.")] = 0.0,
    top_p: Annotated[float, typer.Option(min=0.0, max=1.0)] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1)] = None,
    min_p: Annotated[float, typer.Option(min=0.0, max=1.0, help="Least share of the likeliest token.")] = 0.0,
    repetition_penalty: Annotated[float, typer.Option(min=0.0, help="1 is none.")] = 1.0,
    presence_penalty: Annotated[float, typer.Option(help="Taken off tokens that have come.")] = 0.0,
    frequency_penalty: Annotated[float, typer.Option(help="The same for each time that they have come.")] = 0.0,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Token budget.")] = DEFAULT_MAX_NEW_TOKENS,
    stop: Annotated[list[str] | None, typer.Option(help="Ends the output; may be given several times.")] = None,
    indent: Annotated[int | None, typer.Option(min=0, help="Indented JSON, this many spaces a level.")] = None,
    closed: Closed = False,
    schema_in_prompt: Annotated[bool, typer.Option(help="Tell the model about the schema.")] = True,
    draft: Draft = None,
    device: Device = None,
    dtype: Dtype = None,
    as_json: AsJson = False,
) -> None:
    """Write an output that satisfies a schema."""
    with exit_codes(as_json):
        if (prompt is None) == (prompt_file is None):
            raise BadInput("Give either a prompt or --prompt-file.")
        text = read_text(prompt_file) if prompt_file is not None else str(prompt)
        options = _options(False, closed) if indent is None else _options(False, closed, whitespace=indent)
        constraint = None if schema is None else read_schema(schema, options)
        events = load(model, device, dtype).stream(
            text,
            constraint,
            temperature=temperature,
            top_p=top_p,
            top_k=top_k,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
            presence_penalty=presence_penalty,
            frequency_penalty=frequency_penalty,
            seed=seed,
            max_new_tokens=max_new_tokens,
            stop=stop or (),
            schema_in_prompt=schema_in_prompt,
            draft=draft or None,
        )
        result = None
        for event in events:
            result = event.result
            if not as_json:
                sys.stdout.write(event.delta)
                sys.stdout.flush()
        assert result is not None
        if as_json:
            print_json(result_dict(result))
        else:
            sys.stdout.write("\n")
            err.print(f"[dim]{summary(result)}[/]")


@app.command()
def check(schema: SchemaArgument, exact: Exact = False, closed: Closed = False, as_json: AsJson = False) -> None:
    """Report what of a schema, or of a grammar (a file .lark or .gbnf), is enforced. Exit code 1 if something is not,
    or nothing satisfies it."""
    from structgen.cli import check_grammar
    from structgen.cli.check import run

    with exit_codes(as_json):
        if schema.endswith(check_grammar.SUFFIXES):
            raise typer.Exit(check_grammar.run(schema, as_json))
        raise typer.Exit(run(read_schema(schema, _options(exact, closed)), as_json))


@app.command()
def validate(
    schema: SchemaArgument,
    file: Annotated[str, typer.Argument(help="The JSON document; - is standard input.")],
    as_json: AsJson = False,
) -> None:
    """Judge a JSON document by a schema. Exit code 1 if it is invalid."""
    from structgen.cli.validate import run

    with exit_codes(as_json):
        raise typer.Exit(run(read_schema(schema, JsonOptions.exact()), read_text(file), as_json))


@app.command("show-mask")
def show_mask(
    schema: SchemaArgument,
    text: Annotated[str, typer.Option(help="The output so far.")] = "",
    tokenizer: Annotated[
        str | None, typer.Option(help="Tokens of this model: Hugging Face id, folder or 'default'. Else: bytes.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Most tokens to list.")] = 60,
    exact: Exact = False,
    closed: Closed = False,
    as_json: AsJson = False,
) -> None:
    """Show what may come next after a text."""
    from structgen.cli.show_mask import run

    with exit_codes(as_json):
        constraint = read_schema(schema, _options(exact, closed))
        raise typer.Exit(run(constraint, text, tokenizer, limit, as_json))


@app.command()
def demo(
    schemas: Annotated[Path | None, typer.Option(help="Folder with the demo's schemas.")] = None,
    only: Annotated[list[str] | None, typer.Option(help="Run these examples only.")] = None,
    model: Model = None,
    temperature: Annotated[float, typer.Option(min=0.0)] = 0.0,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    device: Device = None,
    dtype: Dtype = None,
    as_json: AsJson = False,
) -> None:
    """Watch a model write JSON for a few schemas, each judged by jsonschema. Exit code 1 if one is invalid."""
    from structgen.cli.demo import run

    with exit_codes(as_json):
        generator = load(model, device, dtype)
        raise typer.Exit(run(generator, schemas, only or [], temperature, seed, as_json))


@app.command()
def datastore(
    files: Annotated[list[Path], typer.Argument(help="Texts to copy from (UTF-8).")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write, best named ....draft.npz.")],
    lines: Annotated[bool, typer.Option("--lines", help="Every line is a text of its own (JSON Lines).")] = False,
    model: Model = None,
    as_json: AsJson = False,
) -> None:
    """Index texts, such as earlier outputs for the same schema, so that --draft FILE copies from them."""
    from structgen.cli.datastore import run

    with exit_codes(as_json):
        raise typer.Exit(run(files, output, lines, model, as_json))


Grammar = Annotated[str | None, typer.Option(help="Grammar: a file .lark or .gbnf.")]
Regex = Annotated[str | None, typer.Option(help="Regular expression that the whole text matches.")]
Choices = Annotated[list[str] | None, typer.Option("--choice", help="A text; give several.")]
ModelTokens = Annotated[int | None, typer.Option(min=0, help="Budget: tokens read by the model, the prompt aside.")]
Seconds = Annotated[float | None, typer.Option(min=0.0, help="Budget: time.")]


@app.command()
def sample(
    prompt: Annotated[str, typer.Argument(help="The prompt.")],
    schema: Annotated[str | None, typer.Option(help="JSON Schema: a file or JSON text.")] = None,
    grammar: Grammar = None,
    regex: Regex = None,
    choice: Choices = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Samples.")] = 10,
    method: Annotated[str, typer.Option(help="exact, weighted, asap, local, smc, mh or rejection.")] = "exact",
    temperature: Annotated[float, typer.Option(min=0.0)] = 1.0,
    top_p: Annotated[float, typer.Option(min=0.0, max=1.0)] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1)] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Longest text: a condition, like the constraint.")] = 256,
    model_tokens: ModelTokens = None,
    seconds: Seconds = None,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    schema_in_prompt: Annotated[bool, typer.Option(help="Tell the model about the constraint.")] = True,
    model: Model = None,
    device: Device = None,
    dtype: Dtype = None,
    as_json: AsJson = False,
) -> None:
    """Draw texts from the model's own distribution given the constraint, which masks alone distort. Exit code 1 if a
    budget ran out first."""
    from structgen.cli import aligned
    from structgen.decoding.aligned import Budget

    with exit_codes(as_json):
        constraint = aligned.read_constraint(schema, grammar, regex, choice)
        code = aligned.run_sample(
            load(model, device, dtype), prompt, constraint, n, method, Budget(model_tokens, seconds), seed, as_json,
            temperature=temperature, top_p=top_p, top_k=top_k, max_new_tokens=max_new_tokens,
            schema_in_prompt=schema_in_prompt,
        )  # fmt: skip
        raise typer.Exit(code)


@app.command("compare-distributions")
def compare_distributions(
    prompt: Annotated[str, typer.Argument(help="The prompt.")],
    schema: Annotated[str | None, typer.Option(help="JSON Schema: a file or JSON text.")] = None,
    grammar: Grammar = None,
    regex: Regex = None,
    choice: Choices = None,
    n: Annotated[int, typer.Option("-n", min=1, help="Samples of each method.")] = 200,
    plot: Annotated[Path | None, typer.Option(help="Image to write (.png, .svg, ...).")] = None,
    temperature: Annotated[float, typer.Option(min=0.0)] = 1.0,
    max_new_tokens: Annotated[int, typer.Option(min=1)] = 256,
    model_tokens: ModelTokens = None,
    seconds: Seconds = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    schema_in_prompt: Annotated[bool, typer.Option(help="Tell the model about the constraint.")] = True,
    model: Model = None,
    device: Device = None,
    dtype: Dtype = None,
    as_json: AsJson = False,
) -> None:
    """Show side by side how often plain masking, ASAp and exact sampling write each text. Budgets are for each."""
    from structgen.cli import aligned
    from structgen.decoding.aligned import Budget

    with exit_codes(as_json):
        constraint = aligned.read_constraint(schema, grammar, regex, choice)
        code = aligned.run_compare(
            load(model, device, dtype), prompt, constraint, n, Budget(model_tokens, seconds), seed, plot, as_json,
            temperature=temperature, max_new_tokens=max_new_tokens, schema_in_prompt=schema_in_prompt,
        )  # fmt: skip
        raise typer.Exit(code)


@app.command()
def serve(
    model: Annotated[
        str | None, typer.Argument(help="Hugging Face id or folder; the built-in model if not given.")
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
    schema_in_prompt: Annotated[
        str, typer.Option(help="Tell the model about the schema: user, system or none.")
    ] = "user",
    default_max_tokens: Annotated[int, typer.Option(min=1, help="Budget of requests that name none.")] = 2048,
    max_rows: Annotated[int, typer.Option(min=1, help="Outputs written at once.")] = 32,
    max_waiting: Annotated[int, typer.Option(min=1, help="Outputs that may wait; more are told to come later.")] = 256,
    max_body: Annotated[int, typer.Option(min=1, help="Largest request, in bytes.")] = 4 << 20,
    requests_per_minute: Annotated[int | None, typer.Option(min=1, help="Of one key, or one address.")] = None,
    queue_seconds: Annotated[float, typer.Option(min=0.001, help="Longest wait for a turn.")] = 30.0,
    total_seconds: Annotated[
        float, typer.Option(min=0.001, help="Longest time for an output, which is then closed.")
    ] = 120.0,
    drain_seconds: Annotated[
        float, typer.Option(min=0.001, help="How long work goes on after a signal to stop.")
    ] = 30.0,
    max_cache_bytes: Annotated[int | None, typer.Option(min=1, help="What keys and values may take.")] = None,
    max_mask_seconds: Annotated[
        float,
        typer.Option(min=0.001, help="Longest time to find what a constraint allows next."),
    ] = 10.0,
    root_path: Annotated[str, typer.Option(help="Where a proxy has put the server, such as /llm.")] = "",
    draft: Draft = None,
    device: Device = None,
    dtype: Dtype = None,
) -> None:
    """Answer the clients of OpenAI's API over HTTP. See docs/serving.md."""
    from structgen.cli import serve as serving
    from structgen.models.store import DEFAULT_MODEL
    from structgen.serving.settings import ServingSettings

    with exit_codes():
        serving.check_installed()
        settings = ServingSettings(
            model_names=tuple(name or [model or DEFAULT_MODEL]), api_keys=serving.read_keys(api_keys),
            hosts=serving.hosts_of(host, allowed_host or ()),
            tool_format=tool_format, schema_in_prompt=schema_in_prompt,  # type: ignore[arg-type]
            default_max_tokens=default_max_tokens, max_rows=max_rows, max_waiting=max_waiting, max_body=max_body,
            requests_per_minute=requests_per_minute, queue_seconds=queue_seconds, total_seconds=total_seconds,
            drain_seconds=drain_seconds, max_cache_bytes=max_cache_bytes, max_mask_seconds=max_mask_seconds,
        )  # fmt: skip
        code = serving.run(lambda: load(model, device, dtype, draft or None), settings, host, port, root_path=root_path)
        raise typer.Exit(code)


def _options(exact: bool, closed: bool, **changes: object) -> JsonOptions:
    """The options that flags of the commands stand for."""
    options = {"additional_members": "closed" if closed else "schema", **changes}
    return JsonOptions.exact(**options) if exact else JsonOptions(**options)  # type: ignore[arg-type]


def load(model: str | None, device: str | None, dtype: str | None, draft: list[str] | None = None) -> Generator:
    """A generator, with a progress line on standard error."""
    start = time.perf_counter()
    err.print(f"[dim]loading {model or 'the built-in model'} ...[/]")
    generator = Generator(model, device=device, dtype=dtype, draft=draft)
    err.print(f"[dim]ready in {time.perf_counter() - start:.1f} s[/]")
    return generator


def result_dict(result: GenerationResult) -> dict[str, Any]:
    """A result as JSON values."""
    return {
        "value": result.value,
        "text": result.text,
        "finish_reason": result.finish_reason,
        "logprob": result.logprob,
        "stats": dataclasses.asdict(result.stats),
    }
