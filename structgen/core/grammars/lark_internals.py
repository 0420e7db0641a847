"""The door to what is private in Lark: its loader.

No other module touches these (``tests/test_fences.py``); the versions of Lark that are known to have them stand in
pyproject.toml. Imports Lark when used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path, PurePath
from typing import Any


class MissingImport(Exception):
    """What ``%import`` names is in none of the places where it is looked for. ``name``: of the grammar."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def load_grammar(
    text: str, file: Path | None, folders: list[str], check: Callable[[dict[str, Any]], None] = lambda _: None
) -> Any:
    """``lark.load_grammar.Grammar``: terminal and rule definitions after imports and ``%extend``.

    A grammar that is no file (None) imports from ``folders`` and Lark's library, and from nowhere else. ``check`` may
    raise, given the trees of its terminals by name (None of a declared one), before Lark puts them into each other.

    Raises:
        MissingImport: it imports from another grammar, which is in neither.
    """
    from lark.load_grammar import GrammarBuilder, PackageResource, stdlib_loader

    def library(base: Any, path: str) -> tuple[Any, str]:
        """The last place: Lark would go on to files below the working directory, if only to say that they are there."""
        if isinstance(base, str):  # a file imports what lies beside it, which is looked for next
            raise FileNotFoundError(path)
        try:
            source: tuple[Any, str] = stdlib_loader(base, path)
        except OSError:
            raise MissingImport(PurePath(path).stem) from None
        return source

    class Text(PackageResource):
        """To Lark, what a package imports is for loaders to find; what another name imports, are files."""

        def __str__(self) -> str:
            return "<grammar>"

    name = Text("", "") if file is None else str(file)
    builder: Any = GrammarBuilder(False, [*folders, library])
    builder._definitions = _Definitions(check)
    builder.load_grammar(text, name)
    return builder.build()


def set_apart(grammar: Any, names: Collection[str]) -> set[str]:
    """Set those of the named terminals that are declared without a pattern apart from literals; returns their names.

    Lark calls the literal ``"x"`` X unless a terminal with a pattern is called so, and would take a declared X for it.
    So each gets a pattern, which matches no text. Changes ``grammar``, a `load_grammar`.
    """
    from lark import Tree
    from lark.lexer import PatternRE

    declared = {name for name, (tree, _) in grammar.term_defs if tree is None and name in names}
    grammar.term_defs = [
        (name, (Tree("pattern", [PatternRE(f"(?!){name}")]), priority) if name in declared else (tree, priority))
        for name, (tree, priority) in grammar.term_defs
    ]
    return declared


class _Definitions(dict[str, Any]):
    """The definitions of a grammar, checked when Lark first asks for all of them: before it puts terminals into others.

    Lark has no bound there, and takes exponential time.
    """

    def __init__(self, check: Callable[[dict[str, Any]], None]) -> None:
        super().__init__()
        self._check = check

    def items(self) -> Any:
        """See ``dict.items``."""
        check, self._check = self._check, lambda _: None
        check({name: definition.tree for name, definition in super().items() if definition.is_term})
        return super().items()
