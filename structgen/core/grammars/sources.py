"""What a grammar is read from: text, or a file.

One rule, here and nowhere else: a string is text and a ``Path`` is a file. Strings of requests and of rows in a file
are a stranger's; whatever they look like, they name no file, and they import from Lark's library only. A program may
name a file by a string (`named_file`); that is decided where it calls the library, and never of a stranger's text.
"""

from __future__ import annotations

from pathlib import Path

from structgen.core.grammars.limits import MAX_TEXT
from structgen.errors import ConstraintError

SUFFIX = ".lark"


def load_text(source: str | Path) -> tuple[str, Path | None]:
    """The text of a source, and its file; None: it is none.

    Raises:
        ConstraintError: neither text nor path, or the file cannot be read.
    """
    if isinstance(source, str):
        return source, None
    if not isinstance(source, Path):
        raise ConstraintError(f"a grammar is text or a Path, not {type(source).__name__}")
    try:
        with source.open(encoding="utf-8") as file:
            return file.read(MAX_TEXT + 1), source  # what is longer is refused, and may have no end
    except UnicodeDecodeError as error:
        raise ConstraintError(
            f"the grammar {str(source)!r} is not UTF-8: {error.reason} at byte {error.start}. Convert: iconv -t UTF-8"
        ) from error
    except OSError as error:
        raise ConstraintError(f"cannot read the grammar {str(source)!r}: {error}") from error


def named_file(source: str | Path) -> str | Path:
    """What a program gives: a string of one line that ends in ``.lark`` names a file, and becomes a ``Path``.

    For the doors of the Python API alone (``lark``, ``compile_lark``).
    """
    if isinstance(source, str) and "\n" not in source.strip() and source.strip().endswith(SUFFIX):
        return Path(source.strip())
    return source
