"""Attributes that exist in Python code, by jedi: after a dot, what it knows of the object before it."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from structgen.core.monitors.tools import ToolMonitor
from structgen.core.workers import Watch
from structgen.errors import ConstraintError, OptionsError

KINDS = ("module", "class", "instance", "function")
"""Of objects, as jedi calls them."""
_QUOTES = "\"'"


class _Jedi:
    """What is in the process: a text to the names after its last dot."""

    greeting: Any = None

    def __init__(self, setting: tuple[str, str | None, str | None, frozenset[str]], watch: Watch) -> None:
        self._prefix, self._path, project, self._only = setting
        self._jedi: Any = importlib.import_module("jedi")
        self._parso: Any = importlib.import_module("parso")
        self._environment = self._jedi.InterpreterEnvironment()
        self._project = None if project is None else self._jedi.Project(project)
        self("import os\nos.")  # the first answer takes a second

    def __call__(self, text: str) -> Any:
        try:
            return self._names(self._prefix + text)
        except Exception as error:  # jedi's own faults come as errors of all kinds
            return RuntimeError(f"{type(error).__name__}: {error}")

    def _names(self, source: str) -> list[str] | None:
        line, column = source.count("\n") + 1, len(source) - source.rfind("\n") - 1
        if not self._is_attribute(source, line, column):
            return None
        script = self._jedi.Script(source, path=self._path, project=self._project, environment=self._environment)
        if self._only:
            kinds = {name.type for name in script.infer(line, column - 1)}
            if not kinds or not kinds <= self._only:
                return None
        return [name.name for name in script.complete(line, column) if name.type != "keyword"]

    def _is_attribute(self, source: str, line: int, column: int) -> bool:
        """Whether the dot before a position is that of an attribute: none of a number, of text or of a comment."""
        leaf = self._parso.parse(source).get_leaf_for_position((line, column), include_prefixes=True)
        if leaf is None or leaf.value != "." or leaf.start_pos != (line, column - 1):
            return False
        before = leaf.get_previous_leaf()
        if before is None or before.end_pos != leaf.start_pos:
            return False
        return before.type in ("name", "string", "fstring_end") or before.value in (")", "]", "}")


def _absolute(path: Any, option: str) -> str | None:
    try:
        return None if path is None else str(Path(path).absolute())
    except TypeError as error:
        raise OptionsError(f"{option} is a path, not {path!r:.100}", option=option, value=path) from error


class JediMonitor(ToolMonitor):
    """Names after a dot in Python code that exist, as far as jedi knows the object before it.

    Where it knows nothing of the object, in comments, texts and numbers, any name may come. It does not know names that
    objects make while they run (``__getattr__``): ``only`` leaves such objects out. jedi runs in a process of its own.

    Args:
        prefix: code before the text that is written, such as that of the file up to there.
        path: of the file.
        project: folder from which the code imports; None: what Python imports.
        timeout: seconds for an answer; then any name may come.
        only: kinds of objects whose names are asked for ("module", "class", "instance", "function"); none: all.

    Raises:
        ConstraintError: jedi is not installed.
        OptionsError: a kind that there is not, a folder that there is not, or a value that an option cannot have.
    """

    def __init__(
        self,
        prefix: str = "",
        *,
        path: str | os.PathLike[str] | None = None,
        project: str | os.PathLike[str] | None = None,
        timeout: float = 2.0,
        only: Collection[str] = (),
    ) -> None:
        if importlib.util.find_spec("jedi") is None:
            raise ConstraintError("names that exist in Python code need jedi: pip install 'structgen-lm[jedi]'")
        is_list = isinstance(only, Collection) and not isinstance(only, str)
        if not is_list or any(kind not in KINDS for kind in only):
            raise OptionsError(f"only names kinds of {', '.join(KINDS)}, not {only!r:.100}", option="only", value=only)
        if not isinstance(prefix, str):
            raise OptionsError(f"prefix is a text, not {prefix!r:.100}", option="prefix", value=prefix)
        paths = [_absolute(each, name) for each, name in ((path, "path"), (project, "project"))]
        if project is not None and not os.path.isdir(project):
            raise OptionsError(f"project is a folder, and there is none at {project!r:.200}", option="project")
        super().__init__(_Jedi, (prefix, *paths, frozenset(only)), timeout=timeout)
        self._before = prefix[-1:]

    def is_asked(self, text: str) -> bool:
        """Whether what stands before the dot may be an object."""
        before = (self._before + text)[-2:-1]
        return before.isidentifier() or before.isdigit() or before in (")", "]", "}", *_QUOTES)
