"""``structgen names``: what is built is what is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from structgen import Corpus, NameSet
from structgen.cli.batch import schema_of_prompts
from structgen.cli.common import byte_vocabulary
from structgen.cli.sources import ConstraintSource
from structgen.errors import InputFileError
from structgen.generation.batch_files.job import BatchJob
from structgen.generation.batch_files.lines import PromptFile
from structgen.integrations.ray_data import row_columns
from tests.cli.running import run


def test_names(tmp_path: Path) -> None:
    (tmp_path / "cities.txt").write_text("Rome\nOslo\n\nRome\nOsnabrück\n", "utf-8")
    code, stdout, _ = run("names", "build", str(tmp_path / "cities.txt"), "-o", str(tmp_path / "x"), "--json")
    assert code == 0 and json.loads(stdout)["names"] == 3
    assert set(NameSet.open(tmp_path / "x")) == {"Rome", "Oslo", "Osnabrück"}
    code, stdout, _ = run("names", "show", str(tmp_path / "x"), "--begin", "Os", "--json")
    assert code == 0 and json.loads(stdout)["found"] == ["Oslo", "Osnabrück"]
    assert "Rome" in run("names", "show", str(tmp_path / "x"))[1]


def test_files_of_other_systems(tmp_path: Path) -> None:
    """A byte order mark is no part of the first name, and a line ends as in text files: not at other separators."""
    (tmp_path / "cities.txt").write_bytes("\ufeffOslo\r\nRo\u2028me\rRo\x85me\n".encode())
    assert run("names", "build", str(tmp_path / "cities.txt"), "-o", str(tmp_path / "x"))[0] == 0
    assert set(NameSet.open(tmp_path / "x")) == {"Oslo", "Ro\u2028me", "Ro\x85me"}
    assert run("names", "build", str(tmp_path / "cities.txt"), "-o", str(tmp_path / "x"), "--documents")[0] == 0
    assert not Corpus.open(tmp_path / "x").quote("\ufeff").places
    for option in (["--boundary", "word"], ["--fold"]):
        code, _, stderr = run("names", "build", str(tmp_path / "cities.txt"), "-o", str(tmp_path / "y"), *option)
        assert code == 2 and "--documents" in stderr and not (tmp_path / "y").exists()


def test_documents(tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("the land-\nlord", "utf-8")
    options = ("--documents", "--boundary", "word", "--fold")
    assert run("names", "build", str(letter), "-o", str(tmp_path / "x"), *options)[0] == 0
    assert Corpus.open(tmp_path / "x").quote("landlord").places[0].start == 4
    code, stdout, _ = run("names", "show", str(tmp_path / "x"), "--begin", "landlord", "--json")
    assert code == 0 and json.loads(stdout)["found"] == [[str(letter), 4, 14]]


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_damaged_files(damage: str, tmp_path: Path) -> None:
    NameSet.build(["abc", "abd"]).save(tmp_path / "x")
    data = bytearray((tmp_path / "x").read_bytes())
    if damage == "changed":
        data[data.rindex(b"abcabd")] ^= 1
    (tmp_path / "x").write_bytes(b"" if damage == "empty" else data[:-3] if damage == "cut" else data)
    code, _, stderr = run("names", "show", str(tmp_path / "x"))
    assert code == 2 and str(tmp_path / "x") in stderr.replace("\n", "")


def quoting(source: str) -> dict[str, object]:
    return {"type": "string", "x-structgen": {"quoteOf": source, "boundary": "word"}}


def test_sources_of_commands(tmp_path: Path) -> None:
    """What a schema names is a file that --source opens; the report says that it is enforced."""
    NameSet.build(["Rome", "Oslo"]).save(tmp_path / "x")
    (tmp_path / "letter.txt").write_text("the roof leaks", "utf-8")
    (tmp_path / "v.json").write_text('["Oslo", "roof leaks"]')
    items = [{"x-structgen": {"oneOf": "cities"}}, quoting("letter")]
    schema = json.dumps({"prefixItems": items, "items": False})
    sources = ("--source", f"cities={tmp_path / 'x'}", "--source", f"letter={tmp_path / 'letter.txt'}")
    code, stdout, _ = run("check", schema, "--json", *sources)
    assert code == 0 and json.loads(stdout)["keywords"]["/prefixItems/0/x-structgen"]["status"] == "enforced"
    assert run("validate", schema, str(tmp_path / "v.json"), *sources)[0] == 0
    (tmp_path / "letter.txt").write_text("the floor leaks", "utf-8")
    assert run("validate", schema, str(tmp_path / "v.json"), *sources)[0] == 1
    code, _, stderr = run("check", schema, *sources[:2])
    assert code == 2 and "no source is called 'letter'" in stderr
    code, _, stderr = run("check", schema, "--source", f"cities={tmp_path / 'absent'}")
    assert code == 2 and "cannot be read" in stderr


def test_sources_of_rows_are_those_of_the_schema_of_all(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("given", "utf-8")
    source = ConstraintSource(json.dumps(quoting("letter")), source=[f"letter={tmp_path / 'letter.txt'}"])
    data = b'{"prompt": "a", "sources": {"letter": "own"}}\n{"prompt": "b"}'
    rows = list(PromptFile("x", lambda: BytesIO(data), sources=source.sources(), schema=schema_of_prompts(source)))
    for row, text in zip(rows, (b'"own"', b'"given"'), strict=True):
        assert row.specification is not None
        matcher = row.specification.compile(byte_vocabulary()).matcher()
        assert matcher.accept_bytes(text) and matcher.is_accepting()
    with pytest.raises(InputFileError, match="sources are texts"):
        PromptFile("x", lambda: BytesIO(b'{"prompt": "a", "sources": [1]}')).check()


def test_rows_of_a_batch_quote_their_prompts(tmp_path: Path) -> None:
    """By the schema of all rows, too; what a source holds is a part of the row's key."""
    schema = json.dumps({"prefixItems": [quoting("prompt"), quoting("letter")], "items": False})
    data = b'{"prompt": "the roof"}\n{"prompt": "a floor", "sources": {"letter": "own"}, "schema": {"type": "string"}}'
    sources = {"letter": "given"}
    rows = list(
        PromptFile("x", lambda: BytesIO(data), sources=sources, schema=schema_of_prompts(ConstraintSource(schema)))
    )
    assert [row.specification.sources["letter"] for row in rows if row.specification] == ["given", "own"]
    assert rows[0].specification is not None
    matcher = rows[0].specification.compile(byte_vocabulary()).matcher()
    assert matcher.accept_bytes(b'["roof","given"]') and matcher.is_accepting()
    assert schema_of_prompts(ConstraintSource(json.dumps(quoting("letter")))) is None
    own = rows[1].specification
    assert own is not None
    keys = [
        BatchJob().key(replace(rows[1], specification=replace(own, sources={"letter": text})))
        for text in ("own", "other")
    ]
    assert keys[0] == BatchJob().key(rows[1]) != keys[1]
    anew = replace(rows[0], specification=replace(rows[0].specification, sources={"prompt": "another", **sources}))
    assert BatchJob().key(anew) != BatchJob().key(rows[0])  # a row may say what the prompt is to be
    columns = row_columns(rows[1], sources)
    assert json.loads(columns["sources"])["letter"] == "own" and columns["source"] == '{"type": "string"}'
