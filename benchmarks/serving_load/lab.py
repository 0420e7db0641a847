"""What measurements work with: servers in processes of their own, and a model in this one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from serving_load.measurements import say

if TYPE_CHECKING:
    from structgen import Generator

ROOT = Path(__file__).resolve().parents[2]
PROBE = Path(__file__).with_name("probe.py")
START_SECONDS = 180.0


def processor_seconds(pid: int, *, over: bool = False) -> float:
    """What a process has used of the processor (Linux); 0 where there is none.

    Args:
        over: count the processes that it started and that are over.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11 : 15 if over else 13])) / os.sysconf("SC_CLK_TCK")


class Server:
    """``structgen serve`` with the built-in model, over loopback, in a process of its own.

    Args:
        options: of the command.
        environment: what is set besides.
        folder: in which it runs; None: this process's.

    Attributes:
        url: where it is.
    """

    def __init__(
        self, options: Sequence[str] = (), environment: dict[str, str] | None = None, folder: Path | None = None
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._folder = tempfile.TemporaryDirectory()
        self._told, self._log = Path(self._folder.name, "alive.json"), Path(self._folder.name, "log")
        command = [sys.executable, str(PROBE), str(self._told), "--port", str(port), *options]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
            **(environment or {}),
        }
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
        self._wait()

    def _wait(self) -> None:
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.url}/ready", timeout=1):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.1)
        self.process.kill()
        raise RuntimeError(f"the server did not come up:\n{self.log[-2000:]}")

    @property
    def log(self) -> str:
        """What it has written so far."""
        return self._log.read_text(errors="replace")

    def resident_bytes(self) -> int:
        """Its memory (Linux), without the processes that it started."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))

    def files(self) -> int:
        """How many it has open (Linux)."""
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def processor_seconds(self) -> float:
        """What it has used of the processor (Linux), without the processes that it started."""
        return processor_seconds(self.process.pid)

    def trial_seconds(self) -> float:
        """What the processes that it started have used (Linux), those that they started and that are over included."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        started = [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
        return sum(processor_seconds(pid, over=True) for pid in started)

    def alive(self) -> dict[str, int]:
        """How many objects of some classes it holds, after a garbage collection (see ``probe``)."""
        self._told.unlink(missing_ok=True)
        self.process.send_signal(signal.SIGUSR1)
        until = time.monotonic() + 60
        while not self._told.exists() and time.monotonic() < until:
            time.sleep(0.05)
        found: dict[str, int] = json.loads(self._told.read_text())
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End it."""
        for ask, seconds in ((self.process.terminate, 10), (self.process.terminate, 10), (self.process.kill, 10)):
            if self.process.poll() is None:
                ask()
            try:
                self.process.wait(seconds)
                break
            except subprocess.TimeoutExpired:
                continue
        self._folder.cleanup()


class Lab:
    """Servers and the model, made when they are first asked for.

    Args:
        draft: drafts of the servers and of the model, as of ``structgen serve --draft``.
        backend: what runs the model, as of ``structgen serve --backend``.
        scale: how much of each measurement is made; 1: all.
    """

    def __init__(self, draft: str | None = None, backend: str = "transformers", scale: float = 1.0) -> None:
        self.draft, self.backend, self.scale = draft, backend, scale
        self._server: Server | None = None
        self._generator: Generator | None = None

    def count(self, number: int, least: int = 2) -> int:
        """How many of what is made ``number`` times at scale 1."""
        return max(least, round(number * self.scale))

    def server(self) -> Server:
        """The server that measurements share, with its defaults."""
        if self._server is None or self._server.process.poll() is not None:
            self._server = self.own_server()
        return self._server

    def own_server(self, *options: str, draft: Any = ..., folder: Path | None = None, **environment: str) -> Server:
        """A server for one measurement alone.

        Args:
            draft: other than the lab's; None: none.
            folder: in which it runs; None: this process's.
        """
        draft = self.draft if draft is ... else draft
        say(f"starting a server {' '.join(options)}{f' --draft {draft}' if draft else ''}")
        options = (*options, "--backend", self.backend)
        return Server([*options, *(["--draft", draft] if draft else [])], environment, folder)

    def generator(self) -> Generator:
        """The model in this process."""
        from structgen import Generator

        if self._generator is None:
            say("loading the model")
            self._generator = Generator(draft=self.draft, backend=self.backend)
        return self._generator

    def close(self) -> None:
        """End the shared server."""
        if self._server is not None:
            self._server.stop()
