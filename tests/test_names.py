"""One name, one thing: no two public classes of the library share a name, so that a name says what is meant."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.package_sources import PATHS, text, tree

MAX_LINES = 700
MAX_KERNEL_LINES = 500


def test_no_class_name_stands_for_two_things() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in PATHS:
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_no_file_is_too_long() -> None:
    lengths = {path: text(path).count("\n") for path in PATHS}
    most = {name: MAX_KERNEL_LINES if name.startswith("core/kernels/") else MAX_LINES for name in lengths}
    assert {name: length for name, length in lengths.items() if length > most[name]} == {}
