"""The schemas of JSONSchemaBench, from wherever they are: the Hugging Face hub, its GitHub folders, MaskBench files.

Layouts of a folder, told apart by what is in it:

- MaskBench (``maskbench/data`` of github.com/guidance-ai/jsonschemabench): files ``DATASET---NAME.json`` with
  ``schema`` and ``tests``; without ``---`` the dataset is what stands before the first ``_``.
- GitHub (its ``data``): a folder a dataset, a schema a file.
- Any other folder is one dataset, by its name: a schema a file.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

HUB = "epfl-dlab/JSONSchemaBench"


class DataError(Exception):
    """The data cannot be used; the message says what was expected and what to do."""


@dataclass(frozen=True, order=True)
class Case:
    """One schema, or one question with the schema of its answer.

    Attributes:
        dataset: for example "Github_easy", or the task.
        name: unique in the run.
        schema_text: JSON.
        prompt: (role, content) of chat messages; empty: the benchmark's prompt for the schema.
        answer: what is right, where something is.
    """

    dataset: str
    name: str
    schema_text: str
    prompt: tuple[tuple[str, str], ...] = ()
    answer: str = ""


def read_cases(source: str, split: str | None = None) -> list[Case]:
    """All schemas of a source, sorted.

    Args:
        source: "hub", or a folder in one of the layouts above.
        split: of the hub ("train", "val", "test"; default "test"). Folders have none.

    Raises:
        DataError: no such folder, no schemas in it, a broken file, no such split, or the hub cannot be reached.
    """
    if source == "hub":
        return sorted(_from_hub(split or "test"))
    folder = Path(source)
    if split is not None:
        raise DataError(f"The folder {source} has no splits; leave --split out (it is for --data hub).")
    if not folder.is_dir():
        raise DataError(
            f"No folder {source}. Expected a folder with a schema a file, one with a folder a dataset, MaskBench files "
            "(git clone https://github.com/guidance-ai/jsonschemabench has both), or: hub"
        )
    if (folder / "data").is_dir() and not any(folder.glob("*.json")):
        folder /= "data"
    cases = [_from_file(path, None) for path in sorted(folder.glob("*.json"))]
    cases += [_from_file(path, path.parent.name) for path in sorted(folder.glob("*/*.json"))]
    if not cases:
        raise DataError(f"No .json files in {folder} or its folders; expected a schema a file, or MaskBench files.")
    return sorted(cases)


def choose_cases(
    cases: Iterable[Case], datasets: Sequence[str] = (), limit: int | None = None, seed: int = 0
) -> list[Case]:
    """A random but repeatable sample, the datasets by turns, so that a run that is cut short has seen all alike.

    Args:
        cases: all schemas.
        datasets: only these; empty: all.
        limit: so many schemas of each dataset; None: all.
        seed: of the sample. Each dataset is drawn by itself: adding one leaves the others' samples as they are.

    Raises:
        DataError: a dataset is not there.
    """
    by_dataset: dict[str, list[Case]] = {}
    for case in sorted(cases):
        by_dataset.setdefault(case.dataset, []).append(case)
    missing = [name for name in datasets if name not in by_dataset]
    if missing:
        raise DataError(f"No dataset {', '.join(missing)}; there are {', '.join(by_dataset)}.")
    drawn = []
    for name in datasets or by_dataset:
        members = by_dataset[name]
        count = len(members) if limit is None else min(limit, len(members))
        drawn.append(random.Random(f"{seed} {name}").sample(members, count))
    return [case for case in chain.from_iterable(zip_longest(*drawn)) if case is not None]


def _from_file(path: Path, dataset: str | None) -> Case:
    """A MaskBench file, or a schema by itself; ``dataset`` is that of the folder, None where files name their own."""
    try:
        text = path.read_text(encoding="utf-8")
        document = json.loads(text)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is no JSON document: {error}") from error
    is_mask_bench = isinstance(document, dict) and {"schema", "tests"} <= document.keys()
    if is_mask_bench:
        text = json.dumps(document["schema"], ensure_ascii=False)
    if dataset is None:
        return Case(_dataset_of(path, is_mask_bench), path.stem, text)
    return Case(dataset, f"{dataset}---{path.stem}", text)


def _dataset_of(path: Path, is_mask_bench: bool) -> str:
    """The dataset that a file of a folder belongs to, where folders are not the datasets."""
    head, dashes, _ = path.stem.partition("---")
    if dashes:
        return head
    head, mark, _ = path.stem.partition("_")
    return head if mark and is_mask_bench else path.resolve().parent.name


def _from_hub(split: str) -> list[Case]:
    """The dataset on the Hugging Face hub, one configuration a dataset."""
    try:
        import datasets
    except ImportError as error:
        raise DataError("Reading the hub needs the package datasets: pip install 'structgen-lm[bench]'") from error
    library: Any = datasets
    cases = []
    try:
        for name in library.get_dataset_config_names(HUB):
            if name == "default":  # all of the others together
                continue
            for row in library.load_dataset(HUB, name, split=split):
                cases.append(Case(name, f"{name}---{row['unique_id']}", row["json_schema"]))
    except (OSError, ValueError, KeyError, library.exceptions.DatasetsError) as error:
        raise DataError(
            f"Cannot read {HUB} (split {split!r}) from the Hugging Face hub: {error}. "
            "Without the network, clone https://github.com/guidance-ai/jsonschemabench and give its folder data."
        ) from error
    return cases
