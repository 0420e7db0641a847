"""``structgen datastore``: index texts that drafts copy from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from structgen.cli.common import BadInput, print_json, read_text
from structgen.cli.consoles import out
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.loading import load_tokenizer
from structgen.generation.speculative.datastore import Datastore, is_datastore


def run(files: list[Path], output: Path, lines: bool, model: str | None, as_json: bool) -> int:
    """Write the datastore of some files; exit code 0.

    Raises:
        BadInput: a file cannot be read, or the output cannot be written, or is there and no datastore.
    """
    if output.exists() and not is_datastore(output):
        raise BadInput(f"{output} is no datastore, and would be overwritten. Name another file with -o, or remove it.")
    tokenizer = load_tokenizer(model)
    vocabulary = Vocabulary.from_transformers(tokenizer)
    ids = [tokenizer.encode(text, add_special_tokens=False) for text in _texts(files, lines)]
    store = Datastore.build(ids, vocabulary)
    try:
        store.save(output)
    except OSError as error:
        raise BadInput(f"Cannot write {output}: {error.strerror or error}") from error
    if as_json:
        print_json({"output": str(output), "texts": len(ids), "tokens": sum(map(len, ids))})
    else:
        out.print(f"{output}: {len(ids)} texts, {sum(map(len, ids))} tokens")
    return 0


def _texts(files: list[Path], lines: bool) -> Iterator[str]:
    for path in files:
        text = read_text(str(path))
        for part in text.splitlines() if lines else [text]:
            if part.strip():
                yield part
