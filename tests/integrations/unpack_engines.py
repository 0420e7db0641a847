"""Make the environment of ``make test-engines``: Python files of the wheels, behind what our own environment has.

Usage: python unpack_engines.py FOLDER, where FOLDER/wheels holds the wheels (which are deleted).
"""

from __future__ import annotations

import shutil
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path


def main(folder: Path) -> None:
    """Fill FOLDER/packages and make FOLDER/env."""
    for wheel in sorted((folder / "wheels").glob("*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(".py") or ".dist-info/" in name]
            archive.extractall(folder / "packages", names)
    shutil.rmtree(folder / "wheels")
    venv.create(folder / "env", with_pip=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    paths = [
        sysconfig.get_path("purelib"),
        str((folder / "packages").resolve()),
        str(Path(__file__).resolve().parents[2]),
    ]
    site = folder / "env" / "lib" / version / "site-packages"
    (site / "structgen_engines.pth").write_text("\n".join(paths) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
