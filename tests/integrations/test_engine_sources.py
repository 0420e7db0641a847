"""Sources that the operator of vLLM or SGLang opens: what both backends read requests by knows them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from structgen import ConstraintError, NameSet, SchemaError, Vocabulary
from structgen.integrations.engine_requests import engine_constraint
from structgen.integrations.engine_settings import SOURCES_SETTING, engine_sources

BYTES = Vocabulary([bytes([byte]) for byte in range(256)] + [None], eos_token_ids=256)


@pytest.fixture(autouse=True)
def opened_anew() -> Iterator[None]:
    engine_sources.cache_clear()
    yield
    engine_sources.cache_clear()


def takes(schema: Any, text: str) -> bool:
    matcher = engine_constraint("json", json.dumps(schema), BYTES).compile(BYTES).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting()


def test_requests_name_what_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "case").mkdir()
    (tmp_path / "case" / "letter.txt").write_text("the roof leaks")
    NameSet.build(["Rome", "Oslo"]).save(tmp_path / "x")
    monkeypatch.setenv(SOURCES_SETTING, f"cities={tmp_path / 'x'}{os.pathsep}{tmp_path / 'case'}")
    quote = {"type": "string", "x-structgen": {"quoteOf": "letter", "boundary": "word"}}
    city = {"type": "string", "x-structgen": {"oneOf": "cities"}}
    assert takes(quote, '"roof leaks"') and not takes(quote, '"roof leak"')
    assert takes(city, '"Oslo"') and not takes(city, '"Osl"')
    for name in ("prompt", "other"):
        with pytest.raises(SchemaError, match=f"no source is called '{name}'"):
            takes({"x-structgen": {"quoteOf": name}}, "")


def test_what_cannot_be_opened_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SOURCES_SETTING, f"cities={tmp_path / 'absent'}")
    with pytest.raises(ConstraintError, match="cannot be read"):
        takes({"type": "string"}, '"a"')
