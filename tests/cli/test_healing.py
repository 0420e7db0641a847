"""``--heal-prompt``: what the library writes, and no command that would ignore it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from structgen.cli import commands
from structgen.generation.batch_files import job
from structgen.generation.generator import Generator
from tests.cli.running import run
from tests.generation.decoding.test_healing import world

OPTIONS = ["--heal-prompt", "--no-schema-in-prompt", "--temperature", "1", "--max-new-tokens", "40", "--json"]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Generator:
    found, _ = world("none")
    monkeypatch.setattr(commands, "load", lambda *_: found)
    monkeypatch.setattr(job, "Generator", lambda *_, **__: found)
    return found


def test_generate_and_batch(made: Generator, tmp_path: Path) -> None:
    options: Any = {"temperature": 1.0, "max_new_tokens": 40, "heal_prompt": True}
    single = made.generate("t", seed=3, **options)
    assert single.healed is not None
    code, shown, _ = run("generate", "t", *OPTIONS, "--seed", "3")
    answer = json.loads(shown)
    assert code == 0 and (answer["text"], answer["healed"]) == (single.text, single.healed.as_fields())
    (tmp_path / "rows.jsonl").write_text('{"id": 1, "prompt": "t"}\n{"id": 2, "prompt": "ab<e>"}\n')
    code, shown, _ = run("batch", str(tmp_path / "rows.jsonl"), *(each for each in OPTIONS if each != "--json"))
    first, second = map(json.loads, shown.splitlines())
    seed = job.BatchJob().line_seed(1)
    single = made.generate("t", seed=seed, **options)
    assert single.healed is not None
    assert code == 0 and (first["text"], first["healed"]) == (single.text, single.healed.as_fields())
    assert second["healed"] is None


def test_models_with_a_chat_template_are_refused(
    made: Generator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": 1, "prompt": "t"}\n')
    monkeypatch.setattr(made.tokenizer, "chat_template", "{{ messages[0].content }}")
    for arguments in (["generate", "t"], ["batch", str(tmp_path / "rows.jsonl")]):
        code, shown, said = run(*arguments, "--heal-prompt")
        assert code == 2 and not shown and "chat template" in said and "leave it out" in said
