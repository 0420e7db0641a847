"""``structgen compare``: what a new schema allows that the old one does not, and the reverse."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from structgen import __version__
from structgen.cli.common import INVALID, BadInput, print_json, read_text
from structgen.cli.consoles import out
from structgen.cli.sources import GRAMMARS
from structgen.core.answers.compare import Difference, SchemaComparison
from structgen.core.answers.compare import compare as compare_schemas
from structgen.core.answers.sarif import SarifResult, sarif_log
from structgen.core.json_schema.loading import load_schema
from structgen.options import JsonOptions

UNDECIDED = 3
Direction = Literal["backward", "forward", "full"]
RULES = {
    "old-only": "The new schema refuses a document that the old one allows.",
    "new-only": "The new schema allows a document that the old one refuses.",
    "undecided": "It was not decided whether one schema is within the other.",
}
_MEANINGS = {
    "equal": "both allow the same documents",
    "narrower": "the new schema allows less",
    "wider": "the new schema allows more",
    "incomparable": "each allows documents that the other refuses",
    "unknown": "not decided",
}


@dataclass(frozen=True)
class ComparisonRequest:
    """What was asked for."""

    old: str
    new: str
    direction: Direction
    options: JsonOptions
    undecided_passes: bool
    form: Literal["text", "json", "sarif"]


def text_at_revision(path: str, revision: str) -> str:
    """A file as a revision of its git repository has it.

    Raises:
        BadInput: no git, no repository, no such file there, or one that is not UTF-8.
    """
    import subprocess  # of use with git only

    file = Path(path).resolve()
    try:
        command = ["git", "show", "--end-of-options", f"{revision}:./{file.name}"]
        done = subprocess.run(command, cwd=file.parent, capture_output=True, check=False)
    except OSError as error:
        raise BadInput(f"Cannot run git: {error}") from error
    if done.returncode:
        raise BadInput(f"Cannot read {path} at {revision}: {done.stderr.decode(errors='replace').strip()}")
    try:
        return done.stdout.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} at {revision} is not UTF-8: {error.reason} at offset {error.start}") from None


def schema_text(source: str) -> str:
    """The text of a schema: in a file, in standard input (-), or as it was given."""
    return source if source.lstrip().startswith("{") or source in ("true", "false") else read_text(source)


def constraint_in(source: str, text: str) -> Any:
    """What a text says: the schema in it; of a file with a grammar, by its name, its constraint.

    Raises:
        ConstraintError: neither.
    """
    suffix = "" if source.lstrip().startswith("{") else Path(source).suffix
    if suffix not in GRAMMARS:
        return load_schema(text)
    from structgen.core.constraints.specs import GRAMMAR_FILES, ConstraintSpec  # which compiles

    path = Path(source)  # which may import from files next to it
    return ConstraintSpec(GRAMMAR_FILES[suffix], path if path.is_file() else text).constraint


def run(request: ComparisonRequest, old_text: str | None = None) -> int:
    """Compare and report; the exit code: 0 compatible as asked, 1 breaking, 3 not decided.

    Raises:
        BadInput: a file cannot be read. SchemaError: no schema.
    """
    old_text = schema_text(request.old) if old_text is None else old_text
    new_text = schema_text(request.new)
    old, new = constraint_in(request.old, old_text), constraint_in(request.new, new_text)
    answer = compare_schemas(old, new, options=request.options)
    code = _code(answer, request)
    if request.form == "json":
        print_json({"exit_code": code, "direction": request.direction, **as_dict(answer)})
    elif request.form == "sarif":
        texts = {request.old: old_text, request.new: new_text}
        print_json(sarif_log(_results(answer, request), RULES, texts, __version__))
    else:
        _print(answer, request, code)
    return code


def _code(answer: SchemaComparison, request: ComparisonRequest) -> int:
    asked = {
        "backward": [answer.is_backward],
        "forward": [answer.is_forward],
        "full": [answer.is_backward, answer.is_forward],
    }[request.direction]
    if False in asked:
        return INVALID
    return UNDECIDED if None in asked and not request.undecided_passes else 0


def as_dict(answer: SchemaComparison) -> dict[str, Any]:
    """A comparison as JSON values."""
    return {
        "verdict": answer.verdict,
        "backward": answer.is_backward,
        "forward": answer.is_forward,
        "old_only": _difference_dict(answer.old_only),
        "new_only": _difference_dict(answer.new_only),
        "unknown": list(answer.unknown),
        "remarks": list(answer.remarks),
    }


def _difference_dict(difference: Difference | None) -> dict[str, Any] | None:
    if difference is None:
        return None
    keywords = [
        {"pointer": one.pointer, "keyword": one.keyword, "value": one.value, "other": one.other, "is_new": one.is_new}
        | ({"name": one.name} if one.name else {})
        for one in difference.keywords
    ]
    return {"document": difference.text, "keywords": keywords}


def _results(answer: SchemaComparison, request: ComparisonRequest) -> list[SarifResult]:
    """Breaking differences as errors, others as notes."""
    levels = {"old-only": request.direction != "forward", "new-only": request.direction != "backward"}
    results = []
    for rule, difference, file in (
        ("old-only", answer.old_only, request.new),
        ("new-only", answer.new_only, request.old),
    ):
        if difference is not None:
            pointers = [one.pointer for one in difference.keywords] or [""]
            evidence = {"document": difference.text}
            message = f"{RULES[rule]} It is {_shown(difference)}"
            level = "error" if levels[rule] else "info"
            results += [SarifResult(rule, level, message, file, pointer, evidence) for pointer in pointers]
    return results + [SarifResult("undecided", "warning", reason, request.new, "") for reason in answer.unknown]


def _shown(difference: Difference) -> str:
    return "too long to be written" if difference.text is None else difference.text


def _print(answer: SchemaComparison, request: ComparisonRequest, code: int) -> None:
    lines = [f"{answer.verdict}: {_MEANINGS[answer.verdict]}"]
    for what, difference, refuses in (("old", answer.old_only, "new"), ("new", answer.new_only, "old")):
        if difference is not None:
            lines.append(f"only the {what} schema allows: {_shown(difference)}")
            lines += [f"  the {refuses} one refuses it for {one}" for one in difference.keywords]
    lines += [f"not decided, {reason}" for reason in answer.unknown]
    lines += [f"remark: {remark}" for remark in answer.remarks]
    ends = {0: "compatible", INVALID: "breaking", UNDECIDED: "not decided"}
    lines.append(f"{request.direction}: {ends[code]}")
    for line in lines:
        out.print(line, markup=False, soft_wrap=True)
