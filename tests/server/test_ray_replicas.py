"""Outputs that replicas of Ray Serve write, on two nodes: the tokens of one process, also where a replica is killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import structgen
from structgen.errors import IncompleteOutputError
from structgen.generation.generator import Generator
from structgen.server.engine import AsyncEngine
from structgen.server.settings import ServingSettings
from tests.tiny_folder import make_folder

ray = pytest.importorskip("ray", reason="ray is not installed; make test-ray installs it")

pytestmark = pytest.mark.timeout(900)
SETTINGS = ServingSettings(max_rows=32, total_seconds=600, queue_seconds=600)
STREAMS = 64
CONSTRAINTS = [
    None,
    structgen.regex("[a-z]{40,70}"),
    structgen.json_schema({"type": "array", "items": {"type": "integer"}, "minItems": 9, "maxItems": 20}),
    structgen.lark('start: ("ab" | "cd" | /[0-9]{3}/)+'),
]
Outputs = list[tuple[tuple[int, ...], str, str, float]]


async def write_all(engine: AsyncEngine, seen: Callable[[int], None] = lambda _: None) -> Outputs:
    """All streams at once; ``seen`` is told of each event, by the number of them."""
    count = 0

    async def one(number: int) -> tuple[tuple[int, ...], str, str, float]:
        nonlocal count
        text, result = "", None
        options: dict[str, Any] = {"temperature": 1.0, "seed": number, "max_new_tokens": 80}
        options |= {"repetition_penalty": 1.3} if number % 5 == 0 else {}
        async for event in engine.astream(f"Prompt {number}", CONSTRAINTS[number % 4], **options):
            text, result = text + event.delta, event.result
            count += 1
            seen(count)
        assert result is not None and text == result.text
        return result.token_ids, result.text, result.finish_reason, round(result.logprob, 3)

    return list(await asyncio.gather(*map(one, range(STREAMS))))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def expected(folder: Path) -> Outputs:
    engine = AsyncEngine(Generator(folder), SETTINGS)
    try:
        return asyncio.run(write_all(engine))
    finally:
        engine.close()


@pytest.fixture(scope="module")
def model(folder: Path) -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    from structgen.server.ray_replicas import ReplicatedModel

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    cluster.add_node(num_cpus=2)
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, log_to_driver=False)
    found = ReplicatedModel(partial(Generator, folder), SETTINGS, 2)
    yield found
    found.close()
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def engine(model: Any) -> Iterator[AsyncEngine]:
    model.close = lambda: None  # the replicas outlive the engines of this file
    found = AsyncEngine(model, SETTINGS)
    yield found
    found.close()


def test_what_replicas_write_is_what_one_process_writes(engine: AsyncEngine, model: Any, expected: Outputs) -> None:
    assert asyncio.run(write_all(engine)) == expected
    assert len(model.replica_writer.processes) == 2 and os.getpid() not in model.replica_writer.processes


def test_a_killed_replica_loses_nothing(engine: AsyncEngine, model: Any, expected: Outputs) -> None:
    killed: list[int] = []

    def kill(count: int) -> None:
        processes = model.replica_writer.processes
        if count > STREAMS * 8 and len(processes) == 2 and not killed:
            killed.append(min(processes))
            os.kill(killed[0], signal.SIGKILL)

    assert asyncio.run(write_all(engine, kill)) == expected
    assert len(killed) == 1


def test_errors_and_cancellation(engine: AsyncEngine) -> None:
    async def run() -> None:
        with pytest.raises(IncompleteOutputError):
            await engine.agenerate("a", structgen.regex("[ab]{300}"), max_new_tokens=20)
        stream = engine.astream("a", None, max_new_tokens=1000, temperature=1.0)
        async for _ in stream:
            break
        await stream.aclose()
        async with asyncio.timeout(10):
            while not engine.is_idle:
                await asyncio.sleep(0.01)

    asyncio.run(run())
