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


def _options(exact: bool, closed: bool, **changes: object) -> JsonOptions:
    """The options that flags of the commands stand for."""
    options = {"additional_members": "closed" if closed else "schema", **changes}
    return JsonOptions.exact(**options) if exact else JsonOptions(**options)  # type: ignore[arg-type]


def load(model: str | None, device: str | None, dtype: str | None) -> Generator:
    """A generator, with a progress line on standard error."""
    start = time.perf_counter()
    err.print(f"[dim]loading {model or 'the built-in model'} ...[/]")
    generator = Generator(model, device=device, dtype=dtype)
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
