"""Shared libraries of objects, as wheels carry them.

Objects refer to nothing outside themselves, so any linker makes a library of one without the libraries of its
platform: the C compiler of this machine for its own platform, Zig (the package ``ziglang``, which has linkers for all)
for others, or where there is no compiler. Run before there is a package, by the build; imports nothing of structgen.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ZIG = "ziglang>=0.13"
_ZIG_TARGETS = {
    "linux-x86_64": "x86_64-linux-gnu",
    "linux-aarch64": "aarch64-linux-gnu",
    "darwin-x86_64": "x86_64-macos",
    "darwin-arm64": "aarch64-macos",
    "windows-x86_64": "x86_64-windows-gnu",
}
_OPTIONS = {
    "linux": ["-Wl,-z,defs", "-Wl,--build-id=none", "-Wl,-s"],
    "darwin": ["-Wl,-undefined,error"],
    "windows": ["-Wl,--no-entry", "-Wl,-s"],
}


def compiler(target: str, host: str | None) -> str | None:
    """The C compiler of this machine, if it links for the target; None: Zig is needed."""
    return shutil.which("cc") if target == host and not target.startswith("windows") else None


def link(data: bytes, target: str, library: Path, host: str | None) -> None:
    """Make the shared library of an object.

    Raises:
        RuntimeError: the linker fails, or there is none.
    """
    library.parent.mkdir(parents=True, exist_ok=True)
    chosen = compiler(target, host)
    command = [chosen] if chosen else [sys.executable, "-m", "ziglang", "cc", "-target", _ZIG_TARGETS[target]]
    system = target.partition("-")[0]
    options = ["-shared", "-nostdlib", *_OPTIONS[system]]
    if system == "darwin":
        options.append(f"-Wl,-install_name,@rpath/{library.name}")  # else the name of the temporary folder
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / library.name
        source = made.with_suffix(".o")
        source.write_bytes(data)
        finished = subprocess.run(
            [*command, *options, "-o", str(made), str(source)], capture_output=True, text=True, check=False
        )
        if finished.returncode:
            raise RuntimeError(f"{command[0]} could not link {library.name}: {finished.stderr.strip()[-500:]}")
        shutil.copyfile(made, library)
    os.chmod(library, 0o755)
