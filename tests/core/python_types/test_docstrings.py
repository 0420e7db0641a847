"""Docstrings in three styles; for Google's, transformers reads the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from structgen.core.python_types.docstrings import read_docstring

GOOGLE = """The weather of the next days.

It is read from a file.

Args:
    city: its name in English,
        or in German
    days (int, optional): how many days: one at least
    *more: nothing

Returns:
    str: the weather

Raises:
    ValueError: no such city
"""
NUMPY = """The weather of the next days.

It is read from a file.

Parameters
----------
city : str
    its name in English,
    or in German
days : int, optional
    how many days: one at least
*more
    nothing

Returns
-------
str
    the weather
"""
SPHINX = """The weather of the next days.

It is read from a file.

:param str city: its name in English,
    or in German
:param days: how many days: one at least
:type days: int
:param more: nothing
:returns: the weather
"""


@pytest.mark.parametrize("text", [GOOGLE, NUMPY, SPHINX], ids=["google", "numpy", "sphinx"])
def test_three_styles_say_the_same(text: str) -> None:
    found = read_docstring(text)
    assert found.description == "The weather of the next days.\n\nIt is read from a file."
    assert found.parameters == {
        "city": "its name in English, or in German",
        "days": "how many days: one at least",
        "more": "nothing",
    }


@pytest.mark.parametrize("text", [None, "", "Adds.", "Note: this adds.\nArgs are two.", "Adds.\n\nArgs:\n"])
def test_what_is_of_no_style_is_description(text: str | None) -> None:
    found = read_docstring(text)
    assert found.parameters == {} and found.description in (text or "")


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("Do.\nArgs:\n    a: first\n    b: second", {"a": "first", "b": "second"}),
        ("Do.\n\nargs:\n    a: first", {"a": "first"}),
        ("Do.\n\nArgs:\n    a (Literal['x', 'y:z']): first", {"a": "first"}),
        ("Do.\n\nArgs:\n    a: first\n\n:param b: second\n", {"a": "first", "b": "second"}),
        ("Do.\n\nArgs:\n    a: first\n\nKeyword args:\n    b: second\n", {"a": "first", "b": "second"}),
    ],
)
def test_what_people_write(text: str, parameters: dict[str, str]) -> None:
    """Griffe 2.4.1 reads the second and the last only, see docs/decisions/0017-own-docstring-reader.md."""
    found = read_docstring(text)
    assert found.parameters == parameters and found.description == "Do."


def plain(a: int, b: str) -> None:
    """Do it.

    Args:
        a: the first
        b: the second
    """


def typed(first: int, second_one: list[int]) -> list[int]:
    """Do it well.

    Args:
        first: a number, which may
            be large
        second_one: numbers: all of them

    Returns:
        the numbers
    """
    return second_one


@pytest.mark.parametrize("function", [plain, typed])
def test_google_style_is_read_as_transformers_does(function: Callable[..., Any]) -> None:
    utils = pytest.importorskip("transformers.utils.chat_template_utils", reason="transformers reads Google's style")
    schema = utils.get_json_schema(function)["function"]
    found = read_docstring(function.__doc__)
    assert found.description == schema["description"]
    described = {name: said["description"] for name, said in schema["parameters"]["properties"].items()}
    assert found.parameters == {name: " ".join(said.split()) for name, said in described.items()}
