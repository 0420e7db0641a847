"""What files of rows may look like, what is said of those that do not, and files of outputs that are taken up."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from typer.testing import CliRunner

from structgen.cli import batch, commands
from structgen.cli.common import BadInput, read_bytes
from structgen.core.constraints.specs import ConstraintSpec
from structgen.errors import ConstraintError, GenerationError, InputFileError, OptionsError
from structgen.generation.batch_files.job import BatchJob, OutputLine
from structgen.generation.batch_files.lines import PromptFile
from structgen.generation.batch_files.output import OutputFile, encoded
from structgen.generation.generator import Generator
from structgen.options import JsonOptions
from tests.fakes import vocabulary
from tests.server.tiny import ByteTokenizer, generator

BYTES = vocabulary(eos=1)


def csv_file(data: bytes) -> PromptFile:
    return PromptFile("rows.csv", lambda: io.BytesIO(data), is_csv=True)


def test_json_lines() -> None:
    messages = [{"role": "user", "content": "hi"}]
    lines = [
        {"prompt": "a"},
        {"messages": messages, "id": "x", "other": 1, "schema": {"type": "integer"}},
        {"prompt": "", "regex": "a+", "schema": None, "id": 7},
        {"prompt": "b", "choice": ["ä", "b"], "schema": None},
        {"prompt": "c", "schema": '{"maximum": 1e400}'},
    ]
    data = b"\xef\xbb\xbf" + b"\n\r\n".join(json.dumps(line).encode() for line in lines)
    file = PromptFile.of("rows", data)
    assert file.check() == 5
    found = list(file)
    assert [row.line for row in found] == [1, 3, 5, 7, 9]
    assert [row.id for row in found] == [1, "x", 7, 4, 5]
    assert [row.prompt for row in found] == ["a", messages, "", "b", "c"]
    kinds = [row.specification and (row.specification.kind, row.specification.source) for row in found]
    choices = json.dumps(["ä", "b"])
    assert kinds == [
        None, ("schema", '{"type": "integer"}'), ("regex", "a+"), ("choice", choices), ("schema", '{"maximum": 1e400}'),
    ]  # fmt: skip


CELLS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=1, max_size=20)


@given(st.lists(st.tuples(CELLS, st.sampled_from(["", '{"type": "integer"}', "true"])), min_size=1, max_size=8))
def test_csv_as_python_writes_it(cells: list[tuple[str, str]]) -> None:
    """Quotes, commas and line ends in cells; a row begins in the line that csv's reader says it does."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerows([("id", "prompt", "schema"), *((n, prompt, schema) for n, (prompt, schema) in enumerate(cells))])
    found = list(csv_file(b"\xef\xbb\xbf" + text.getvalue().encode()))
    assert [(row.id, row.prompt) for row in found] == [(str(n), prompt) for n, (prompt, _) in enumerate(cells)]
    assert [row.specification.source if row.specification else "" for row in found] == [schema for _, schema in cells]
    lines, first = [], 2
    for prompt, _ in cells:
        lines.append(first)
        first += 1 + prompt.count("\n")
    assert [row.line for row in found] == lines


@pytest.mark.parametrize(
    ("data", "line", "what"),
    [
        (b'{"prompt": "a"}\n{"prompt": ', 2, "no JSON: Expecting value at column 12"),
        (b'"a"\n', 1, "expected an object"),
        (b"[1]\n", 1, "expected an object"),
        (b"{}\n", 1, "expected either prompt or messages, found nothing"),
        (b'{"promt": "a"}\n', 1, "expected either prompt or messages, found 'promt'"),
        (b'{"prompt": "a", "messages": []}\n', 1, "expected either prompt or messages, found prompt and messages"),
        (b'\n\n{"prompt": 7}\n', 3, "prompt is a text, not 7"),
        (b'{"messages": "a"}\n', 1, "messages is a list of messages, not 'a'"),
        (b'{"prompt": "a", "id": 1.5}\n', 1, "an id is a text or an integer, not 1.5"),
        (b'{"prompt": "a", "id": true}\n', 1, "an id is a text or an integer, not True"),
        (b'{"prompt": "a", "id": 2}\n{"prompt": "b"}\n', 2, "id 2 stands in line 1 already"),
        (b'{"prompt": "a", "regex": "a", "lark": "b"}\n', 1, "one constraint a line, found lark and regex"),
        (b'{"prompt": "a", "regex": 7}\n', 1, "regex is a text, not 7"),
        (b'{"prompt": "a", "schema": [1]}\n', 1, r"schema is a schema or its text, not \[1\]"),
        (b'{"prompt": "a", "choice": "a"}\n', 1, "choice is a list of texts, not 'a'"),
        (b'{"prompt": "a"}\n{"prompt": "\xff"}\n', 2, "no UTF-8: byte 0xff at offset 12"),
        (b"[" * 200_000 + b"\n", 1, "JSON that cannot be read"),
        (b'{"prompt": "a", "prompt": "b"}\n', 1, 'JSON that cannot be read: .* the name "prompt" twice'),
        (b'{"prompt": "a", "schema": {"const": 1, "x": {"y": 1, "\\u0079": 1}}}\n', 1, '.* the name "y" twice'),
        (b'{"prompt": "a", "schema": "{\\"a\\": 1, \\"a\\": 2}"}\n', 1, 'schema cannot be read: .* "a" twice'),
        (b'{"messages": [{"role": "user", "content": "a", "role": "x"}]}\n', 1, '.* the name "role" twice'),
        (b'{"prompt": "a", "id": ' + b"1" * 5000 + b"}\n", 1, "JSON that cannot be read"),
    ],
)
def test_bad_lines_are_named(data: bytes, line: int, what: str) -> None:
    with pytest.raises(InputFileError, match=rf"rows.jsonl, line {line}: {what}") as raised:
        PromptFile.of("rows.jsonl", data).check()
    assert raised.value.line == line


@pytest.mark.parametrize(
    ("data", "line", "what"),
    [
        (b"prompt,schema\na\n", 2, "1 cells, but the head line names 2 columns"),
        (b"prompt,prompt\na,b\n", 1, "the column 'prompt' is there twice"),
        (b'prompt\n"a\n', 2, "no CSV: unexpected end of data"),
        (b'prompt\na\n"b"c\n', 3, "no CSV"),
        (b"prompt,messages\n,{\n", 2, "messages is JSON text"),
        (b"prompt,choice\na,b\n", 2, "choice is JSON text"),
        (b'prompt,schema\na,"{""b"": 1, ""b"": 2}"\n', 2, 'schema cannot be read: .* "b" twice'),
        (b'prompt,messages\n,"[{""role"": 1, ""role"": 2}]"\n', 2, 'messages is JSON text.* "role" twice'),
        (b"text\na\n", 2, "expected either prompt or messages, found 'text'"),
        (b"prompt\na\xff\n", 2, "no UTF-8: byte 0xff at offset 1"),
    ],
)
def test_bad_records_are_named(data: bytes, line: int, what: str) -> None:
    with pytest.raises(InputFileError, match=rf"rows.csv, line {line}: {what}"):
        csv_file(data).check()


def test_many_bad_lines_are_counted() -> None:
    with pytest.raises(InputFileError) as raised:
        PromptFile.of("rows", b"7\n" * 30).check()
    assert len(str(raised.value).splitlines()) == 11 and str(raised.value).endswith("and 20 more lines")


def test_a_specification_is_what_it_says() -> None:
    for kind, source, good, bad in (
        ("schema", '{"properties": {"a": true}}', '{"b":1}', "[1"),
        ("lark", 'start: "a"+ ".lark"', "aa.lark", "b"),
        ("lark", "%llguidance {}\nstart: /a+/", "aa", "b"),
        ("gbnf", 'root ::= "a"+', "aa", "b"),
        ("ebnf", 'root ::= "a"{2}', "aa", "b"),
        ("regex", "a+", "aa", "b"),
        ("choice", '["aa", "bb"]', "bb", "b"),
    ):
        matcher = ConstraintSpec(kind, source).compile(BYTES).matcher()
        assert matcher.accept_bytes(good.encode()) and matcher.is_accepting()
        matcher.reset()
        assert not (matcher.accept_bytes(bad.encode()) and matcher.is_accepting())
    options = JsonOptions(additional_members="closed")
    closed = ConstraintSpec("schema", '{"properties": {"a": true}}', options).compile(BYTES).matcher()
    assert not closed.accept_bytes(b'{"b":1}')


def test_no_column_names_a_file(tmp_path: Path) -> None:
    for suffix, text in ((".json", '{"type": "integer"}'), (".lark", 'start: "a"'), (".gbnf", 'root ::= "a"')):
        path = tmp_path / f"x{suffix}"
        path.write_text(text)
        kind: Any = {".json": "schema"}.get(suffix, suffix[1:])
        with pytest.raises(ConstraintError):
            ConstraintSpec(kind, str(path)).compile(BYTES)


HEADS = ['{"id": "\ud800", "key": "1"', '{"id": 2, "key": "2"']


def test_outputs_are_taken_up_behind_the_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with OutputFile(path) as file:
        file.add('{"id": "\ud800", "key": "1"}')
        file.add('{"id": 2, "key": "2", "error": {}}')
    whole = path.read_bytes()
    for cut in range(len(whole) + 1):
        path.write_bytes(whole[:cut])
        with OutputFile(path, HEADS) as file:
            assert len(file.written) == whole[:cut].count(b"\n") and file.failed == (cut == len(whole))
        assert path.read_bytes() == whole[: whole[:cut].rfind(b"\n") + 1]
    path.write_bytes(whole)
    assert list(OutputFile(path).written) == ["\ud800", 2]
    for bad in (b"\n", b"7\n", b'{"id": 1}\n', b'{"id": [], "key": ""}\n', b'{"id": 2, "key": ""}\n', b"\xff\n"):
        path.write_bytes(whole + bad)
        with pytest.raises(InputFileError, match="line 3 was not written by a batch"):
            OutputFile(path, HEADS)
        assert path.read_bytes() == whole + bad
    with pytest.raises(InputFileError, match="Cannot write"):
        OutputFile(tmp_path / "none" / "out.jsonl")


FOREIGN = [
    b'{"type":"object"}', b"x", b'{"id": 7', b'{"id": 1, "key": "0', b'{"id": 2, "key": "3', b"\xff", b" ", b"\0",
    b'{"id": 2, "key": "2 ', b'{"id":2,"key":"2"}', b'[{"id": 2}]', b'{"id": 2, "key": "22", "text": ""}', b'{"id": 22',
    b"# notes", b'{"prompt": "a"}', b"%PDF-1.7",
]  # fmt: skip


@pytest.mark.parametrize("tail", FOREIGN, ids=repr)
@pytest.mark.parametrize("before", [b"", b'{"id": 9, "key": "9"}\n'], ids=["alone", "behind a line"])
def test_nothing_is_cut_that_this_batch_did_not_write(tmp_path: Path, before: bytes, tail: bytes) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(before + tail)
    for heads in (HEADS, []):
        with pytest.raises(InputFileError, match=f"line {2 if before else 1} was not written"):
            OutputFile(path, heads)
        assert path.read_bytes() == before + tail


@pytest.mark.parametrize("name", ["/dev/full", "/dev/zero", "/dev/null", "pipe"])
@pytest.mark.skipif(sys.platform != "linux", reason="Linux's devices")
def test_outputs_and_rows_are_regular_files(tmp_path: Path, name: str, written: list[Any]) -> None:
    path, rows = Path(name), tmp_path / "rows.jsonl"
    rows.write_text('{"prompt": "a"}\n')
    if name == "pipe":
        path = tmp_path / "pipe"
        os.mkfifo(path)
    code, _, stderr = invoke(str(rows), "-o", str(path))
    assert code == 2 and "it is no regular file" in " ".join(stderr.split())
    code, _, stderr = invoke(str(path))
    assert code == 2 and "it is no regular file" in " ".join(stderr.split())
    assert written == []


class Endless(io.RawIOBase):
    """A file without end; counts what is read of it."""

    def __init__(self, data: bytes) -> None:
        self.data, self.read_bytes = data, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        buffer[:] = (self.data * (len(buffer) // len(self.data) + 1))[: len(buffer)]
        self.read_bytes += len(buffer)
        return len(buffer)


@pytest.mark.parametrize("is_csv", [False, True])
def test_a_line_without_end_is_not_read_on(is_csv: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("structgen.generation.batch_files.lines.MAX_LINE", 1 << 20)
    file = Endless(b"x")
    with pytest.raises(InputFileError, match=r"line 1: .*a line of more than 1,048,576 bytes"):
        PromptFile("rows", lambda: io.BufferedReader(file), is_csv).check()
    assert file.read_bytes < 2 << 20


def test_a_huge_first_line_of_a_file_that_is_no_output_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.write(b'{"type": "object", ')
        file.truncate(4 << 30)  # no more on the disk than its beginning
    tracemalloc.start()
    with pytest.raises(InputFileError, match="line 1 was not written by a batch"):
        OutputFile(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert path.stat().st_size == 4 << 30


def test_standard_input_and_files_have_a_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "MAX_INPUT", 10)
    code, _, stderr = invoke("-", stdin=b'{"prompt": "a"}\n')
    assert code == 2 and "more than 10 bytes" in " ".join(stderr.split())
    with pytest.raises(BadInput, match="more than 5 bytes"):
        (tmp_path / "x").write_bytes(b"123456")
        read_bytes(str(tmp_path / "x"), 5)


def test_a_schema_is_not_an_output(tmp_path: Path, written: list[Any]) -> None:
    rows, schema = tmp_path / "r.jsonl", tmp_path / "s.json"
    rows.write_text('{"prompt": "a"}\n')
    for content in (b'{"type":"object"}', b'{"type":"object"}\n', b'{"id": {"type": "string"}}', b"\x89PNG\r\n"):
        schema.write_bytes(content)
        code, _, stderr = invoke(str(rows), "-o", str(schema))
        assert code == 2 and "was not written by a batch of these prompts" in " ".join(stderr.split())
        assert schema.read_bytes() == content
    assert invoke(str(rows), "-o", str(rows))[0] == 2 and rows.read_text() == '{"prompt": "a"}\n'
    assert written == []


@pytest.mark.full
def test_a_torn_line_is_dropped_only_where_it_is_this_batch(tmp_path: Path, written: list[Any]) -> None:
    rows, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows.write_text('{"prompt": "a"}\n{"prompt": "b"}\n')
    assert invoke(str(rows), "-o", str(out))[0] == 0
    whole = out.read_bytes()
    for cut in range(len(whole)):
        out.write_bytes(whole[:cut])
        assert invoke(str(rows), "-o", str(out))[0] == 0
        assert out.read_bytes() == whole
    first = whole.index(b"\n") + 1
    for arguments in (("--seed", "1"), ("--regex", "a")):  # another batch of the same rows
        for cut in (first - 1, len(whole) - 1):
            out.write_bytes(whole[:cut])
            assert invoke(str(rows), "-o", str(out), *arguments)[0] == 2
            assert out.read_bytes() == whole[:cut]


@pytest.mark.skipif(os.name != "posix", reason="locks of files are POSIX's here")
def test_one_run_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    program = f"import pathlib, structgen.generation.batch_files.output as o; o.OutputFile(pathlib.Path({str(path)!r}))"
    with OutputFile(path):
        other = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert other.returncode and "Another run is writing to" in other.stderr


def test_seeds_and_keys_depend_on_what_they_say() -> None:
    row, other = list(PromptFile.of("rows", b'{"prompt": "a", "id": "1"}\n{"prompt": "a"}'))
    job = BatchJob(seed=1, options={"temperature": 1.0, "stop": ["a"]})
    assert job.line_seed("1") != job.line_seed(1) != BatchJob(seed=2).line_seed(1)
    assert job.key(row) == job.key(other) == BatchJob(batch_size=1, seed=1, options=dict(job.options)).key(row)
    changed = [BatchJob(), BatchJob(model="m", seed=1, options=job.options), BatchJob(seed=1, options={"stop": ["b"]})]
    assert len({job.key(row), *(each.key(row) for each in changed)}) == 4


def invoke(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    result = CliRunner().invoke(commands.app, ["batch", *arguments], input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Ids of rows that are written, by a stand-in for the model."""
    ids: list[Any] = []

    def write(job: BatchJob, rows: Any) -> Any:
        for row in rows:
            ids.append(row.id)
            yield OutputLine(json.dumps({"id": row.id, "key": job.key(row)}), False, 1)

    monkeypatch.setattr(batch, "write_here", write)
    return ids


def test_the_command_says_what_is_wrong_before_a_model_is_loaded(tmp_path: Path, written: list[Any]) -> None:
    good = tmp_path / "good.jsonl"
    good.write_text('{"prompt": "a"}\n')
    for arguments, stdin, code, what in (
        (["missing.jsonl"], b"", 2, "Cannot read missing.jsonl: No such file"),
        (["-"], b'{"prompt": "a"}\nx\n', 2, "standard input, line 2: no JSON"),
        ([str(good), "--schema", '{"type": 7}'], b"", 2, "/type"),
        ([str(good), "--schema", "missing.json"], b"", 2, "missing.json"),
        ([str(good), "--regex", "("], b"", 2, "offset"),
        ([str(good), "--regex", "a", "--choice", "b"], b"", 2, "Give one constraint"),
        ([str(good), "--grammar", "x.txt"], b"", 2, ".lark, .gbnf or .ebnf"),
        (["-", "--schema", "-"], b"{}", 2, "Standard input may hold the prompts"),
        ([str(good), "--json"], b"", 2, "--output"),
        ([str(good), "-o", str(tmp_path)], b"", 2, "Cannot write"),
        ([str(good), "-o", str(tmp_path / "none" / "x")], b"", 2, "Cannot write"),
    ):
        found = invoke(*arguments, stdin=stdin)
        assert found[0] == code and what in found[1] + found[2], (arguments, found)
    assert written == []


def test_rows_that_are_there_are_skipped_by_their_ids(tmp_path: Path, written: list[Any]) -> None:
    rows, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows.write_text("".join(f'{{"id": {n}, "prompt": "a"}}\n' for n in (3, 1, 2)))
    assert invoke(str(rows), "-o", str(out), "--json")[0] == 0
    rows.write_text("".join(f'{{"id": {n}, "prompt": "a"}}\n' for n in (5, 1, 2, 3, 4)))
    code, stdout, _ = invoke(str(rows), "-o", str(out), "--json")
    counts = json.loads(stdout)
    assert code == 0 and (counts["rows"], counts["written"], counts["skipped"]) == (5, 2, 3)
    assert written == [3, 1, 2, 5, 4]
    rows.write_text('{"id": 1, "prompt": "b"}\n')
    code, _, stderr = invoke(str(rows), "-o", str(out))
    assert code == 2 and "The output has a line for 1 already, written from another prompt" in " ".join(stderr.split())


def test_without_an_output_rows_go_to_standard_output(written: list[Any]) -> None:
    code, stdout, stderr = invoke("-", stdin=b'{"prompt": "a"}\n')
    assert code == 0 and json.loads(stdout)["id"] == 1 and "1 of 1 rows written" in stderr


def test_a_line_is_bytes_of_json() -> None:
    assert json.loads(encoded(json.dumps({"a": "\udfff\ud800 ä"}, ensure_ascii=False))) == {"a": "\udfff\ud800 ä"}


@pytest.mark.full
def test_prompts_that_are_too_long_fail_and_are_not_taken_to_pieces() -> None:
    class Counting(ByteTokenizer):
        read = 0

        def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
            self.read += len(text)
            return super().encode(text, add_special_tokens)

    made = generator(context_length=50)
    assert made.max_prompt_length == 50  # all tokens have a byte
    assert generator().max_prompt_length is None
    tokenizer = Counting()
    for most, longest in ((None, 50), (20, 20)):
        own = Generator(made.model, tokenizer, vocabulary=made.vocabulary, max_prompt_length=most)
        long = "x" * (60 << 20)
        rows = PromptFile.of("rows", json.dumps({"prompt": long}).encode() + b'\n{"prompt": "ab"}')
        lines = [json.loads(line.text) for line in BatchJob(options={"max_new_tokens": 2}).lines(own, rows)]
        assert f"at most {longest} are read" in lines[0]["error"]["message"] and "text" in lines[1]
        assert tokenizer.read < 100
        tokenizer.read = 0
        with pytest.raises(GenerationError, match="max_prompt_length"):
            own.choice("x" * 51, ["a", "b"])
    with pytest.raises(OptionsError, match="max_prompt_length"):
        Generator(made.model, tokenizer, max_prompt_length=0)
