"""``structgen names``: sets of names and documents as files, for constraints that are made from data."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from structgen.cli.common import BadInput, print_json, read_text
from structgen.cli.consoles import out
from structgen.cli.options import AsJson, Commands

if TYPE_CHECKING:
    from structgen.core.text_sets.corpus import Corpus
    from structgen.core.text_sets.names import NameSet

names = Commands(help="Sets of names and documents, as files.", no_args_is_help=True, rich_markup_mode=None)
SHOWN = 20
_LINE_END = re.compile("\r\n?|\n")  # other separators that Unicode has may stand in names
Output = Annotated[Path, typer.Option("--output", "-o", help="The file to write.")]
Kind = Annotated[bool, typer.Option("--documents", help="Index the files as documents, of which parts are quoted.")]
Boundary = Annotated[str, typer.Option(help="Of documents: where quotes begin and end, char, word or line.")]
Fold = Annotated[bool, typer.Option("--fold", help="Of documents: fold line breaks, hyphens and typographic signs.")]


@names.command()
def build(
    files: Annotated[list[Path], typer.Argument(help="Names, a line each; or documents (UTF-8).")],
    output: Output,
    documents: Kind = False,
    boundary: Boundary = "char",
    fold: Fold = False,
    as_json: AsJson = False,
) -> None:
    """Write a set of names, or an index of documents. Files hold a name a line, or are a document each."""
    from structgen.core.text_sets.corpus import Corpus
    from structgen.core.text_sets.names import NameSet

    if not documents and (boundary != "char" or fold):
        raise BadInput("--boundary and --fold are of documents; add --documents, or leave them out.")
    texts = {str(path): read_text(str(path)).removeprefix("\ufeff") for path in files}  # a byte order mark is no text
    made: NameSet | Corpus
    if documents:
        made = Corpus.build(texts, boundary, fold)  # type: ignore[arg-type]
    else:
        made = NameSet.build(line for text in texts.values() for line in _LINE_END.split(text) if line)
    try:
        made.save(output)
    except OSError as error:
        raise BadInput(f"Cannot write {output}: {error.strerror or error}") from error
    _say(output, made, as_json)


@names.command()
def show(
    file: Annotated[Path, typer.Argument(help="A file that 'names build' wrote.")],
    begin: Annotated[str, typer.Option(help="Show names that begin so, or where documents say it.")] = "",
    limit: Annotated[int, typer.Option(min=0, help="So many, at most.")] = SHOWN,
    as_json: AsJson = False,
) -> None:
    """Say what a file holds. Its content is compared with its hash. Exit code 2 if it is damaged."""
    from structgen.core.text_sets.names import NameSet
    from structgen.core.text_sets.opening import open_texts

    opened = open_texts(file, verify=True)
    listed = _names(opened, begin, limit) if isinstance(opened, NameSet) else _places(opened, begin, limit)
    _say(file, opened, as_json, listed)


def _names(opened: NameSet, begin: str, limit: int) -> list[Any]:
    first, end = opened.interval(begin.encode(errors="surrogatepass"))
    return opened.listed(first, min(end, first + limit))


def _places(opened: Corpus, begin: str, limit: int) -> list[Any]:
    places = opened.quote(begin, limit).places if begin else ()
    return [[span.document, span.start, span.end] for span in places]


def _say(file: Path, made: NameSet | Corpus, as_json: bool, listed: list[Any] | None = None) -> None:
    """Print what a file holds."""
    size = {"documents": len(made.documents)} if hasattr(made, "documents") else {"names": len(made)}
    facts = {"file": str(file), **size, "bytes": made.memory_bytes, "digest": made.digest}
    if as_json:
        print_json(facts if listed is None else {**facts, "found": listed})
        return
    for name, value in facts.items():
        out.print(f"{name}: {value}", markup=False)
    for each in listed or ():
        out.print(each if isinstance(each, str) else "{}: {} to {}".format(*each), markup=False)
