"""Puts the kernels' machine code into wheels, for one platform each (see structgen/core/kernels/build.py).

Of this machine's platform by default. ``STRUCTGEN_PLATFORM`` names another one (`TAGS`), or ``any``: a wheel without
machine code, whose kernels numba compiles when they are first used (the extra ``jit``).
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = Path("structgen") / "core" / "kernels"
TAGS = {
    # The libraries refer to nothing outside themselves, so any C library will do.
    "linux-x86_64": "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
    "linux-aarch64": "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
    "darwin-x86_64": "macosx_11_0_x86_64",
    "darwin-arm64": "macosx_11_0_arm64",
    "windows-x86_64": "win_amd64",
}
"""What wheels of a platform are called."""
ANY = "any"


class KernelLibraries(BuildHookInterface[Any]):
    """Compiles the kernels when a wheel is built. An editable install makes its own when first imported."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What compiles and links; nothing for a wheel without machine code."""
        target = self._target()
        if target == ANY:
            return []
        libraries = self._module("libraries")
        linker = [] if libraries.compiler(target, self._host()) else [libraries.ZIG]
        return [*self._compiler(), *linker]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the libraries beside the sources' hash, and have the wheel take them."""
        if version == "editable":
            build_data["dependencies"] += self._compiler()  # kernels that are edited are compiled anew
            return
        target = self._target()
        others = f"STRUCTGEN_PLATFORM={'|'.join([*TAGS, ANY])} builds for another"
        if target == ANY:
            self.app.display_info(f"structgen: a wheel without compiled kernels, which needs numba; {others}")
            return
        self.app.display_info(f"structgen: compiling the kernels for {target} only (about a minute); {others}")
        self._folder = tempfile.TemporaryDirectory()
        made = Path(self._folder.name) / "objects"
        builder = Path(self.root) / KERNELS / "build.py"
        environment = {name: value for name, value in os.environ.items() if name != "NUMBA_BOUNDSCHECK"}
        command = [sys.executable, str(builder), "--out", str(made), "--target", target, "--ship"]
        subprocess.run(command, check=True, env=environment)
        build_data["force_include"][str(made)] = str(KERNELS / "objects")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{TAGS[target]}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built: the wheel has it."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def _target(self) -> str:
        found = os.environ.get("STRUCTGEN_PLATFORM") or self._host() or ANY
        if found not in (*TAGS, ANY):
            raise ValueError(f"STRUCTGEN_PLATFORM is {found!r}, expected one of {', '.join([*TAGS, ANY])}")
        return found

    def _host(self) -> str | None:
        host: str | None = self._module("objects").host_target()
        return host

    def _compiler(self) -> list[str]:
        """The extra ``jit``: numba and what goes with it."""
        extras: dict[str, list[str]] = self.metadata.core.optional_dependencies
        return extras["jit"]

    def _module(self, name: str) -> Any:
        """A module of the kernels that imports nothing of structgen; which cannot be imported before it is built."""
        spec = importlib.util.spec_from_file_location(f"_structgen_{name}", Path(self.root) / KERNELS / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
