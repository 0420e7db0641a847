"""Triton's interpreter at half its time: each call of a helper looks through the whole language for what is to be
replaced by numpy, which the kernel's launch has done already."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(autouse=True, scope="session")
def replace_the_language_once() -> Iterator[None]:
    if os.environ.get("TRITON_INTERPRET") != "1":
        yield
        return
    interpreter = pytest.importorskip("triton.runtime.interpreter")
    replace, function = interpreter._patch_lang, interpreter.InterpretedFunction
    seen: set[int] = set()

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        core = interpreter.tl.core
        if any(value is core for value in self.fn.__globals__.values()) and id(core) not in seen:
            replace(self.fn)  # its standard library sees the language by this other name; never undone
            seen.add(id(core))
        return self.rewrite()(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(function, "__call__", call)
        yield
