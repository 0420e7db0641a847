"""Chat templates as Hugging Face defines them: Jinja programs of whoever made the model, run in a sandbox.

The dialect is that of transformers (``utils/chat_template_utils.py``): blocks are trimmed, ``break`` and ``continue``
work, ``tojson`` writes plain JSON, ``raise_exception`` and ``strftime_now`` are there, ``{% generation %}`` marks a
part and changes nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from structgen.errors import ModelError, TokenizerError
from structgen.generation.models.llamacpp.binding import INSTALL

MOST = 1 << 20  # bytes of a file with a template


def template_text(given: str | os.PathLike[str]) -> str:
    """The source of a template that was given as text or as the path of a file. A string with a brace or a line break
    is the text itself.

    Raises:
        ModelError: the file cannot be read, or jinja2 is not installed. TokenizerError: it is no template.
    """
    text = given if isinstance(given, str) and any(sign in given for sign in "{\n") else _file_text(Path(given))
    ChatTemplate(text, {})
    return text


def _file_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST + 1)
        if len(data) > MOST:
            raise ModelError(f"The chat template {path} has more than {MOST:,} bytes; give the file of a template.")
        return data.decode("utf-8")
    except OSError as error:
        raise ModelError(
            f"Cannot read the chat template {path}: {error.strerror or error}. Give the path of a file, or the Jinja "
            "text itself."
        ) from error
    except UnicodeDecodeError as error:
        raise ModelError(f"The chat template {path} is no UTF-8 (byte {error.start}).") from error


class ChatTemplate:
    """A template, compiled when it is first rendered.

    Args:
        source: the program.
        tokens: names of special tokens that it may speak of (``bos_token``, ``eos_token``).

    Raises:
        ModelError: jinja2 is not installed.
        TokenizerError: the source is no template.
    """

    def __init__(self, source: str, tokens: Mapping[str, str]) -> None:
        try:
            import jinja2
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError as error:
            raise ModelError(f"Chat templates need jinja2: {INSTALL}") from error

        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_generation(), "jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals["raise_exception"] = _raise
        environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
        self._tokens = dict(tokens)
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise TokenizerError(f"The chat template cannot be read (line {error.lineno}): {error}") from error

    def render(self, messages: Sequence[Mapping[str, Any]], **fields: Any) -> str:
        """The text of a conversation. Errors are those of the template."""
        names: dict[str, Any] = {"tools": None, "documents": None, **self._tokens}
        return str(self._template.render(messages=messages, **names | fields))


def _generation() -> type[Any]:
    from jinja2.ext import Extension

    class Generation(Extension):
        """``{% generation %} ... {% endgeneration %}``: what is between."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    return Generation


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    """Without the escapes for HTML that Jinja's own has."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise(message: str) -> NoReturn:
    from jinja2 import TemplateError

    raise TemplateError(message)
