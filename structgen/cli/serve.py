"""``structgen serve``: the server's process: settings, logs, signals."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from rich.markup import escape

from structgen.cli.common import BAD_INPUT, BadInput
from structgen.cli.consoles import err
from structgen.cli.options import ModelOptions
from structgen.generation.generator import Generator
from structgen.generation.models.defaults import read_sampling_settings
from structgen.progress import report_progress, waiting
from structgen.server.logs import LogWaits, log_event, log_to_stderr, tame_loop
from structgen.server.sequences import ServedModel
from structgen.server.settings import ServingSettings

KEYS_VARIABLE = "STRUCTGEN_API_KEYS"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_NEEDED = ("starlette", "uvicorn", "prometheus_client")


def check_installed() -> None:
    """Raise BadInput where a package of the server is missing."""
    import importlib.util

    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise BadInput(f"The server needs {', '.join(missing)}: pip install 'structgen-lm[serve]'")


def read_keys(path: Path | None) -> frozenset[str]:
    """API keys: a line each in a file, or between commas in the environment.

    Raises:
        BadInput: a file that cannot be read, or has none.
    """
    if path is None:
        return frozenset(filter(None, map(str.strip, os.environ.get(KEYS_VARIABLE, "").split(","))))
    try:
        keys = frozenset(filter(None, map(str.strip, path.read_text(encoding="utf-8").splitlines())))
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read the API keys from {str(path)!r}: {error}") from error
    if not keys:
        raise BadInput(f"there are no API keys in {str(path)!r}; write one a line")
    return keys


def generation_settings(named: str) -> dict[str, Any] | None:
    """What ``--generation-config`` asks for: "auto": the model's own (None); "none": none; else those of a file.

    Raises:
        ModelError: it cannot be read.
    """
    if named == "auto":
        return None
    return {} if named in ("none", "vllm") else read_sampling_settings(Path(named))  # "vllm": vLLM's word for it


def hosts_of(host: str, allowed: Sequence[str]) -> frozenset[str]:
    """Which hosts requests may ask for: on the own machine its names, elsewhere any, unless some are given."""
    return frozenset(map(str.lower, allowed)) | (LOOPBACK if host in LOOPBACK | {"::1"} else frozenset())


def replicated(
    options: ModelOptions, draft: Any, settings: ServingSettings, replicas: int
) -> Callable[[], ServedModel]:
    """Starts replicas of Ray Serve, and waits until they have loaded the model. Arguments as ``Generator``.

    Raises:
        OptionsError: there is no ray.
    """
    from structgen.generation.ray_cluster import connect
    from structgen.server.ray_replicas import ReplicatedModel

    connect()
    load = partial(Generator, **dataclasses.asdict(options), draft=draft)
    gpus = 1 if (options.device or "").startswith("cuda") else 0

    def start() -> ServedModel:
        with waiting(f"starting {replicas} replicas of {options.model or 'the built-in model'}"):
            return ReplicatedModel(load, settings, replicas, gpus=gpus)

    return start


def run(
    load: Callable[[], Generator | ServedModel], settings: ServingSettings, host: str, port: int, **uvicorn_options: Any
) -> int:
    """Serve until a signal; the exit code: 0, or 1 where the model thread was lost.

    Raises:
        StructgenError: the model, or its drafts, cannot be used.
    """
    import uvicorn

    from structgen.server.app import ApiServer
    from structgen.server.connections import server_config
    from structgen.server.memory import share_arenas

    share_arenas()
    log_to_stderr()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # until the server takes it over
    with report_progress(None if err.is_terminal else LogWaits()):
        server = ApiServer(load(), settings)
    gc.collect()
    gc.freeze()  # a full collection over a model and a vocabulary would hold up all outputs for the time of some steps

    class DrainingServer(uvicorn.Server):
        """Drains at the first signal, and stops at the second."""

        draining: asyncio.Task[None] | None = None
        loop: asyncio.AbstractEventLoop | None = None

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if self.loop is None or server.admission.is_draining or not server.is_warm:
                self.should_exit = True
            else:
                server.admission.is_draining = True
                self.loop.call_soon_threadsafe(self._drain)

        def _drain(self) -> None:
            async def drain_and_stop() -> None:
                _say("[dim]draining ...[/]", "draining")
                await server.drain()
                self.should_exit = True

            self.draining = asyncio.ensure_future(drain_and_stop())

        async def on_tick(self, counter: int) -> bool:
            self.loop = asyncio.get_running_loop()
            return await super().on_tick(counter) or (server.failure or server.engine.failure) is not None

        async def startup(self, sockets: Any = None) -> None:
            tame_loop(asyncio.get_running_loop())
            await super().startup(sockets)
            if self.started:
                names, url = settings.model_names, f"http://{host}:{port}/v1"
                shown = f"[dim]serving {escape(', '.join(names))} at {url} (Ctrl-C stops)[/]"
                _say(shown, "serving", models=names, url=url)

    config = server_config(server.app(), settings, host=host, port=port, timeout_graceful_shutdown=5, **uvicorn_options)
    serving = DrainingServer(config)
    code = 0
    try:
        serving.run()
    except SystemExit as error:
        code = int(error.code or 0)
    if server.failure is not None:
        raise server.failure
    if server.engine.is_preparing:
        _leave_at_once(code)
    if not serving.started:  # it cannot listen there; uvicorn has said why
        return BAD_INPUT
    return code or int(server.engine.failure is not None)


def _say(shown: str, event: str, **fields: Any) -> None:
    """Tell whoever sits at the terminal, else the log."""
    if err.is_terminal:
        err.print(shown)
    else:
        log_event(event, **fields)


def _leave_at_once(code: int) -> NoReturn:
    """End the process in the midst of the model's work: its thread cannot be stopped, and an interpreter that ends
    along with it may crash."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
