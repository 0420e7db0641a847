"""What a command's constraint is written as: the options that say so, and how they are read."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from structgen.cli.common import BadInput, byte_vocabulary, read_text
from structgen.options import JsonOptions, refuse_name

if TYPE_CHECKING:
    from structgen.core.constraints.base import Constraint
    from structgen.core.constraints.specs import ConstraintSpec

GRAMMARS = (".lark", ".gbnf", ".ebnf")
"""File endings of grammars: Lark's language (llguidance's if it begins with %llguidance), GBNF, XGrammar's EBNF."""

Argument = Annotated[
    str | None,
    typer.Argument(help="JSON Schema (file, JSON text, or - for standard input), or a grammar file (see --grammar)."),
]


@dataclass(frozen=True)
class ConstraintSource:
    """The options of a command that say its constraint. Field names are the options'; see `structgen.cli.options`."""

    schema: Annotated[str | None, typer.Option(help="JSON Schema: a file, JSON text, or - for standard input.")] = None
    grammar: Annotated[str | None, typer.Option(help="Grammar: a file .lark, .gbnf or .ebnf.")] = None
    regex: Annotated[str | None, typer.Option(help="Regular expression that the whole text matches.")] = None
    choice: Annotated[list[str] | None, typer.Option(help="A text; give several.")] = None
    exact: Annotated[
        bool, typer.Option("--exact", help="JSON in every legal spelling: key order, whitespace, escapes, numbers.")
    ] = False
    closed: Annotated[
        bool,
        typer.Option(
            "--closed",
            help="Objects that declare members have no others. Without it a schema that does not say "
            "additionalProperties: false lets a model invent members.",
        ),
    ] = False
    indent: Annotated[int | None, typer.Option(min=0, help="Indented JSON, this many spaces a level.")] = None
    json_option: Annotated[
        list[str] | None,
        typer.Option("--json-option", "-O", help="A field of JsonOptions: max_number_length=none, ...; give several."),
    ] = None

    source: Annotated[
        list[str] | None,
        typer.Option(
            help="What a schema's x-structgen names: name=FILE (a text, names or documents of 'names build', .json) "
            "or a folder of such files; give several."
        ),
    ] = None

    def read(self, argument: str | None = None, prompt: str = "") -> Constraint | None:
        """The constraint that was given, by an option or as the command's ``argument``; None: none was.

        ``prompt`` is what the source of this name stands for.

        Raises:
            BadInput: several were given, or options that it does not take. ConstraintError: it cannot be read.
        """
        kind, value = self.given(argument)
        if kind == "argument":
            kind = "grammar" if str(value).endswith(GRAMMARS) else "schema"
        options = self.json_options()
        if kind != "schema" and options != JsonOptions():
            raise BadInput("--exact, --closed, --indent and --json-option are about JSON, and no schema was given.")
        return replace(_spec(kind, value, options), sources=self.sources(prompt)).constraint if kind else None

    def sources(self, prompt: str = "") -> dict[str, Any]:
        """What names of sources stand for; ``prompt`` among them where it has text.

        Raises:
            ConstraintError: one cannot be opened.
        """
        from structgen.core.text_sets.opening import PROMPT, opened_sources

        return {**opened_sources(self.source or ()), **({PROMPT: prompt} if prompt else {})}

    def given(self, argument: str | None = None) -> tuple[str, Any]:
        """The option that says the constraint (or "argument") and its value; ("", None): none does.

        Raises:
            BadInput: several do.
        """
        options = {name: getattr(self, name) for name in ("schema", "grammar", "regex", "choice")}
        given = [(name, value) for name, value in ({"argument": argument} | options).items() if value not in (None, [])]
        if len(given) > 1:
            raise BadInput("Give one constraint: a schema or grammar file, --schema, --grammar, --regex, or --choice.")
        return given[0] if given else ("", None)

    def checked(self, argument: str | None = None, prompt: str = "") -> Constraint | None:
        """As ``read``, and compiled once over bytes: what is wrong with it is reported before a model is loaded."""
        constraint = self.read(argument, prompt)
        if constraint is not None:
            constraint.compile(byte_vocabulary())
        return constraint

    def required(self, argument: str | None = None, *, checked: bool = False, prompt: str = "") -> Constraint:
        """As ``read`` (or ``checked``), where the command needs one."""
        constraint = self.checked(argument, prompt) if checked else self.read(argument, prompt)
        if constraint is None:
            raise BadInput("Give a constraint: --schema, --grammar, --regex, or --choice several times.")
        return constraint

    def judges_json(self, argument: str | None = None) -> bool:
        """Whether the constraint is a schema."""
        return self.schema is not None or (argument is not None and not argument.endswith(GRAMMARS))

    def json_options(self) -> JsonOptions:
        """How JSON may be spelled.

        Raises:
            BadInput: no such option, or no value. OptionsError: a value that it cannot have.
        """
        changes: dict[str, Any] = {"additional_members": "closed"} if self.closed else {}
        if self.indent is not None:
            changes["whitespace"] = self.indent
        for text in self.json_option or ():
            name, equals, value = text.partition("=")
            name = name.strip().replace("-", "_")
            names = [field.name for field in fields(JsonOptions)]
            if name not in names:
                refuse_name(name, names)
            if not equals:
                raise BadInput(f"--json-option {text}: expected NAME=VALUE, such as {name}=...")
            changes[name] = _value(value.strip())
        return JsonOptions.exact(**changes) if self.exact else JsonOptions(**changes)


NO_CONSTRAINT = ConstraintSource()


def _value(text: str) -> bool | int | str | None:
    """The value that a word stands for."""
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    digits = text.replace("_", "")
    return int(digits) if digits.isdecimal() and len(digits) < 20 else text


def _spec(kind: str, value: Any, options: JsonOptions) -> ConstraintSpec:
    """What an option says: of a schema its text or a file, of a grammar a file."""
    from structgen.core.constraints.json import is_json
    from structgen.core.constraints.specs import GRAMMAR_FILES, ConstraintSpec

    if kind == "schema":
        text = read_text("-") if value == "-" else value
        return ConstraintSpec("schema", text if is_json(text) or value == "-" else Path(text), options)
    if kind == "regex":
        return ConstraintSpec("regex", str(value))
    if kind == "choice":
        return ConstraintSpec("choice", list(value))
    path = Path(str(value))
    if path.suffix not in GRAMMARS:
        raise BadInput(f"A grammar is a file .lark, .gbnf or .ebnf, not {value}.")
    if not path.is_file():
        raise BadInput(f"Cannot read {value}: no such file.")
    return ConstraintSpec(GRAMMAR_FILES[path.suffix], path)
