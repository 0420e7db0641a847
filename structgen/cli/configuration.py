"""Options of a command from a file and from the environment, under those of the command line.

Click has the order (command line, environment, ``default_map``, default) and the types; here the file is read and what
is wrong in either is reported with its key and where it stands.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from structgen.cli.common import BadInput, read_bytes
from structgen.options import near_name

MOST = 1 << 20
"""Bytes of a file of options."""
X_STRUCTGEN = ("config", "help")  # what is not taken from files
_OF_KUBERNETES = re.compile(r"(SERVICE_(HOST|PORT)|PORT_[0-9]).*")  # of a service that has the name of the prefix
_LISTS = (list, tuple)


def read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Check the environment, and have the options that a file names be the command's defaults: a callback of the
    eager option ``--config``.

    Raises:
        typer.BadParameter: what cannot be used, with its key and the file or variable.
    """
    if context.resilient_parsing:  # completion
        return path
    where = "the environment"
    try:
        _check_environment(context)
        if path is not None:
            where = "--config"
            context.default_map = {**(context.default_map or {}), **_defaults(context, path)}
    except BadInput as error:
        raise typer.BadParameter(str(error), param_hint=where) from error
    return path


def _check_environment(context: typer.Context) -> None:
    prefix = f"{context.auto_envvar_prefix}_"
    parameters = _parameters(context)
    for variable in sorted(os.environ):
        name = variable.removeprefix(prefix).lower()
        if not variable.startswith(prefix) or _OF_KUBERNETES.fullmatch(variable.removeprefix(prefix)):
            continue
        if name not in (*parameters, "config"):
            raise BadInput(f"the variable {variable} is no option of this command; {_hint(name, parameters, prefix)}")
        if name in parameters and (value := parameters[name].value_from_envvar(context)) is not None:
            _check(context, parameters[name], value, f"the variable {variable}")


def _defaults(context: typer.Context, path: Path) -> dict[str, Any]:
    """What a file says, by the names of the command's parameters."""
    parameters, defaults = _parameters(context), dict[str, Any]()
    for key, value in _read(path).items():
        name = str(key).replace("-", "_")
        if name not in parameters:
            raise BadInput(f"{path}: {key!r} is no option of this command; {_hint(name, parameters)}")
        if name in defaults:
            raise BadInput(f"{path}: {key!r} stands there twice; leave one out")
        if value is None:
            continue
        defaults[name] = _as_written(value, parameters[name], f"{path}: {key!r}")
        _check(context, parameters[name], defaults[name], f"{path}: {key!r}")
    return defaults


def _parameters(context: typer.Context) -> dict[str, Any]:
    return {str(each.name): each for each in context.command.params if each.name not in X_STRUCTGEN}


def _hint(name: str, names: Mapping[str, Any], prefix: str = "") -> str:
    near = near_name(name, list(names))
    if near is None:
        return "--help lists the options"
    return f"did you mean {prefix + near.upper() if prefix else near}?"


def _as_written(value: Any, parameter: Any, where: str) -> Any:
    """A value as the command line would have it: text, or a list of texts."""
    takes_many = bool(getattr(parameter, "multiple", False))
    if isinstance(value, _LISTS) and takes_many:
        return [_text(each, where) for each in value]
    if isinstance(value, bool) and getattr(parameter, "is_flag", False):
        return value
    text = _text(value, where)
    return [text] if takes_many else text


def _text(value: Any, where: str) -> str:
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value)
    kind = {dict: "a table", list: "a list", bool: "true or false"}.get(type(value), type(value).__name__)
    raise BadInput(f"{where} is {kind}; expected what the option takes, such as text or a number")


def _check(context: typer.Context, parameter: Any, value: Any, where: str) -> None:
    try:
        parameter.process_value(context, value)
    except typer.BadParameter as error:
        shown = value if isinstance(value, str) else list(value) if isinstance(value, _LISTS) else str(value)
        raise BadInput(f"{where} is {shown!r}: {error.message}") from error


def _read(path: Path) -> dict[str, Any]:
    """The keys and values of a file.

    Raises:
        BadInput: it cannot be read, is not of its kind, or holds no table.
    """
    kind, data = path.suffix.lower(), read_bytes(str(path), MOST)
    try:
        text = data.decode("utf-8")
        if kind == ".toml":
            return tomllib.loads(text)
        if kind == ".json":
            value = json.loads(text)
        elif kind in (".yaml", ".yml"):
            value = _read_yaml(text)
        else:
            raise BadInput(f"{path} has the ending {kind!r}; expected .toml, .yaml, .yml or .json")
    except (ValueError, RecursionError) as error:  # of UTF-8, TOML, JSON and YAML
        raise BadInput(f"{path} cannot be read as {kind[1:].upper()}: {error}") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadInput(f"{path} holds no options: it is a {type(value).__name__}, expected names and values")
    return value


def _read_yaml(text: str) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise BadInput("YAML needs the package pyyaml: pip install pyyaml, or write TOML") from error

    class Loader(yaml.SafeLoader):
        """Refuses a name that stands twice, of which YAML's own would take the last."""

        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            mapping = super().construct_mapping(node, deep)
            if len(mapping) != len(node.value):
                raise ValueError(f"a name stands twice{node.start_mark}")
            return mapping

    try:
        return yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
