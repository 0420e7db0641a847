"""Commands run over a tiny model in place of the real one."""

from __future__ import annotations

import pytest

from structgen.cli import commands
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from tests.fakes import CharTokenizer, vocabulary


@pytest.fixture(autouse=True)
def tiny_model(monkeypatch: pytest.MonkeyPatch) -> None:
    words = vocabulary(eos=1)
    generator = Generator(TinyModel(words.size, scale=1.0), CharTokenizer(eos=1), vocabulary=words)
    monkeypatch.setattr(commands, "load", lambda *_: generator)
