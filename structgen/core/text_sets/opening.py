"""Sources that an operator opens, ``name=file`` or a folder, and that all processes of a server have."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from structgen.core.text_sets.corpus import DOCUMENTS, Corpus
from structgen.core.text_sets.files import MAGIC, read_kind
from structgen.core.text_sets.names import NameSet
from structgen.core.text_sets.sorted_texts import SHARED, SortedTexts
from structgen.errors import ConstraintError

PROMPT = "prompt"
"""The source that stands for what the prompt says."""
FORM = "expected name=FILE, or a folder whose files are sources by their names"


def open_texts(path: Path, *, verify: bool = False) -> NameSet | Corpus:
    """A set of names or an index of documents, from the file of either.

    Raises:
        ConstraintError: it is of neither, or damaged.
    """
    kind = Corpus if read_kind(path) == DOCUMENTS else NameSet
    return kind.open(path, verify=verify)


def open_source(path: Path) -> Any:
    """What a file holds: names or an index (`structgen names build`), JSON (``.json``: names, a text, or texts by
    name), else a text. Of a folder: its files' texts, by their names.

    Raises:
        ConstraintError: it cannot be read, or is none of these.
    """
    try:
        if path.is_dir():
            return {file.name: _text(file) for file in _files(path)}
        with path.open("rb") as file:
            begun = file.read(len(MAGIC))
        return open_texts(path) if begun == MAGIC else _text(path) if path.suffix != ".json" else _json(path)
    except OSError as error:
        raise ConstraintError(f"the source {str(path)!r} cannot be read: {error.strerror or error}") from error


def opened_sources(given: Iterable[str]) -> dict[str, Any]:
    """The sources that are given as ``name=file``, or as folders: of these each file is one, by its name without
    what follows the first dot.

    Raises:
        ConstraintError: one cannot be opened; a name comes twice, or is that of the prompt.
    """
    sources: dict[str, Any] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if equals and name:
            pairs = [(name, Path(path))]
        elif not equals and Path(text).is_dir():
            pairs = [(file.name.partition(".")[0], file) for file in _files(Path(text))]
        else:
            raise ConstraintError(f"the source {text!r:.200} cannot be opened: {FORM}")
        for each, file in pairs:
            if each in sources or each == PROMPT:
                why = "it stands for what the prompt says" if each == PROMPT else "there are two of this name"
                raise ConstraintError(f"no source {each!r:.100} can be opened from {str(file)!r:.200}: {why}")
            sources[each] = open_source(file)
    return sources


def _files(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if not files:
        raise ConstraintError(f"the folder {str(folder)!r} has no files")
    return files


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")  # a byte order mark is no text
    except UnicodeDecodeError as error:
        raise ConstraintError(f"the source {str(path)!r} is not UTF-8: {error.reason} at byte {error.start}") from error


def _json(path: Path) -> Any:
    try:
        value = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise ConstraintError(f"the source {str(path)!r} is no JSON: {error}") from error
    texts = [value] if isinstance(value, str) else value.values() if isinstance(value, dict) else value
    if not isinstance(value, (str, dict, list)) or not all(isinstance(text, str) for text in texts):
        raise ConstraintError(f"the source {str(path)!r} is JSON of {value!r:.60}; expected texts, or a list of names")
    return value


class SharedTexts:
    """Indexes that several processes have: between them they are sent by their hash, once this was sent."""

    def __init__(self, sources: Mapping[str, Any]) -> None:
        self._texts = tuple(each for each in sources.values() if isinstance(each, SortedTexts))
        SHARED.update((each.digest, each) for each in self._texts)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (tuple((type(each), each.__getstate__()) for each in self._texts),)


def _restored(states: tuple[tuple[type[SortedTexts], dict[str, Any]], ...]) -> SharedTexts:
    sources = {}
    for number, (kind, state) in enumerate(states):
        sources[str(number)] = each = kind.__new__(kind)
        vars(each).update(state)
    return SharedTexts(sources)
