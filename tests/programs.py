"""Programs as users run them: each in a process of its own, which ends by itself, with a small random GGUF file in the
place of every model that is named. What tests do in their own process says nothing about how programs end.

Run as a script, it imports what programs need once and forks for each: ``programs.py CODES FILE.gguf NAME...``.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.generation.models.llamacpp.gguf_files import byte_level, write_llama

ROOT = Path(__file__).parents[1]
SECONDS = 240
CONTEXT = 8192
TEMPLATE = (
    "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


def exit_codes(programs: Mapping[str, str], folder: Path, model: Path | None = None) -> dict[str, tuple[int, str]]:
    """The exit code of each program, by its name, and what it wrote on stderr. ``model``: a file in place of a small
    random one."""
    if model is None:
        model = folder / "tiny.gguf"
        write_llama(model, lambda writer: byte_level(writer, TEMPLATE), context=CONTEXT)
    files = [folder / f"{name}.py" for name in programs]
    for file, code in zip(files, programs.values(), strict=True):
        file.write_text(code, encoding="utf-8")
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, __file__, str(folder / "codes"), str(model), *map(str, files)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}, timeout=SECONDS,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    codes = (folder / "codes").read_text().split()
    return {
        name: (int(code), file.with_suffix(".err").read_text(errors="replace"))
        for name, code, file in zip(programs, codes, files, strict=True)
    }


def _use(model: Path) -> None:
    """Let every name of a model be that of a file."""
    from structgen.generation import loading
    from structgen.generation.models.llamacpp.model import load_gguf

    loading.load_model = lambda name=None, **options: load_gguf(model, threads=1)


def _main(written: Path, model: Path, files: list[Path]) -> None:
    """Fork for each file; a child goes on as if Python had been started with its file."""
    import pydantic  # noqa: F401

    import structgen.generation.batch_files.job
    import structgen.generation.generator
    import structgen.generation.models.llamacpp.with_cyllama
    import structgen.tools  # noqa: F401
    from structgen.core.kernels.loading import kernel

    for name in ("json", "cfg"):
        kernel(name)
    _use(model)
    codes = []
    for file in files:
        child = os.fork()
        if not child:
            with file.with_suffix(".err").open("w") as errors:
                os.dup2(errors.fileno(), 2)
                os.dup2(errors.fileno(), 1)
            sys.argv = [str(file)]
            runpy.run_path(str(file), run_name="__main__")
            return
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    written.write_text(" ".join(map(str, codes)))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]), list(map(Path, sys.argv[3:])))
