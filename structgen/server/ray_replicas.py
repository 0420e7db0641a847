"""A model in several replicas of Ray Serve after one server: ``structgen serve --ray --replicas N``.

The server itself holds no model. It reads requests, compiles constraints, and has outputs written by replicas, which
stream tokens as they come. What was streamed is all that the remaining tokens depend on: a token's random number is a
function of seed and position. So if a replica is lost, another goes on where it was; readers of the stream see nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from structgen.core.constraints.base import Constraint
from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError
from structgen.generation.generator import Generator
from structgen.generation.models.defaults import ModelDefaults
from structgen.generation.models.threads import Asking, at_once
from structgen.generation.ray_cluster import connect, raised_by
from structgen.generation.sampling.uniforms import seed_or_entropy
from structgen.generation.scheduler.budget import SchedulerLimits
from structgen.server.engine import AsyncEngine
from structgen.server.sequences import SequenceEvent, SequenceRequest, WrittenSoFar
from structgen.server.settings import ServingSettings

LOG = logging.getLogger("structgen.server")
APPLICATION = "structgen"
MAX_LOSSES = 5  # replicas that one output may lose
STEP_SECONDS = 0.005  # in which requests wait that come while outputs are written


class ModelReplica:
    """What a replica runs.

    Args:
        load: makes the generator.
        settings: of the server; what may wait is counted there.
    """

    def __init__(self, load: Callable[[], Generator], settings: ServingSettings) -> None:
        generator = load()
        self._engine = AsyncEngine(generator, replace(settings, max_waiting=1 << 30))
        length = generator.model.context_length
        self._model = (generator.tokenizer, generator.vocabulary, length, generator.defaults)

    def describe(self) -> tuple[Any, Vocabulary, int | None, ModelDefaults]:
        """Tokenizer, vocabulary, context length, and what is done where a request does not say."""
        return self._model

    async def write(
        self, sequence: SequenceRequest, constraint: Constraint | None
    ) -> AsyncGenerator[tuple[int, SequenceEvent], None]:
        """This process, and what came of an output, event by event. Leaving it cancels the output."""
        grammar = None if constraint is None else await self._engine.compile(constraint)
        async with aclosing(self._engine.submit([replace(sequence, grammar=grammar)]).events()) as events:
            async for _, event in events:
                end = None if event.end is None else replace(event.end, captures={})
                yield os.getpid(), replace(event, end=end)

    def check_health(self) -> None:
        """Raise where the model's thread is lost: Ray then starts another replica."""
        if not self._engine.is_healthy:
            raise GenerationError("the model thread is gone")


class _SentGrammar:
    """A grammar that was compiled here, with the constraint that replicas compile."""

    def __init__(self, constraint: Constraint, grammar: Grammar) -> None:
        self.constraint, self._grammar = constraint, grammar

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grammar, name)


@dataclass(eq=False)
class _Sent:
    """An output that replicas write."""

    request: SequenceRequest
    constraint: Constraint | None
    written: WrittenSoFar = field(default_factory=WrittenSoFar)
    task: asyncio.Task[None] | None = None


class ReplicaWriter:
    """An ``OutputWriter`` whose sequences are written by replicas.

    Args:
        handle: of the deployment.
        at_once: that all replicas write at once.
        lost: exceptions that a lost replica shows itself by.

    Attributes:
        processes: of replicas that have written something.
    """

    cache_bytes = 0

    def __init__(self, handle: Any, at_once: int, lost: tuple[type[BaseException], ...]) -> None:
        self._handle, self._at_once, self._lost = handle, at_once, lost
        self._open: set[_Sent] = set()
        self._arrived: queue.SimpleQueue[tuple[_Sent, SequenceEvent]] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="structgen-replicas", daemon=True).start()
        self.processes: set[int] = set()

    @property
    def running(self) -> int:
        """Outputs that replicas have room for."""
        return min(len(self._open), self._at_once)

    @property
    def waiting(self) -> int:
        """Outputs beyond that."""
        return max(0, len(self._open) - self._at_once)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being written."""
        return not self._open

    def prepare(self) -> None:
        """Replicas prepare themselves."""

    def output(self, request: SequenceRequest, asking: Asking = at_once) -> _Sent:
        """What is sent of a request."""
        grammar: Any = request.grammar
        # Another replica draws the same.
        params = replace(request.params, seed=seed_or_entropy(request.params.seed))
        # The clocks of other machines are not this one's.
        request = replace(request, grammar=None, params=params, arrived=None)
        return _Sent(request, None if grammar is None else grammar.constraint)

    def submit(self, _: SequenceRequest, output: _Sent) -> _Sent:
        """Have an output written."""
        self._open.add(output)
        self._loop.call_soon_threadsafe(self._begin, output)
        return output

    def cancel(self, handle: _Sent) -> None:
        """Forget an output."""
        self._open.discard(handle)
        self._loop.call_soon_threadsafe(lambda: handle.task and handle.task.cancel())

    def hurry(self) -> None:
        """Replicas close their outputs at their deadlines."""

    def close(self) -> None:
        """Forget all outputs."""
        for sent in list(self._open):
            self.cancel(sent)
        self._loop.call_soon_threadsafe(self._loop.stop)

    def step(self) -> list[tuple[_Sent, SequenceEvent]]:
        """What has come of all outputs lately."""
        arrived: list[tuple[_Sent, SequenceEvent]] = []
        try:
            arrived.append(self._arrived.get(timeout=STEP_SECONDS))
            while True:
                arrived.append(self._arrived.get_nowait())
        except queue.Empty:
            open_events = [(sent, event) for sent, event in arrived if sent in self._open]
            self._open -= {sent for sent, event in open_events if event.is_last}
            return open_events

    def _begin(self, sent: _Sent) -> None:
        sent.task = asyncio.ensure_future(self._write(sent))

    async def _write(self, sent: _Sent) -> None:
        """Have an output written, by one replica after the other if need be."""
        started = time.monotonic()
        for _ in range(MAX_LOSSES):
            request = replace(sent.request, written=sent.written)
            if request.seconds is not None:
                request = replace(request, seconds=max(0.001, request.seconds - (time.monotonic() - started)))
            try:
                async for process, event in self._handle.options(stream=True).write.remote(request, sent.constraint):
                    self.processes.add(process)
                    sent.written = sent.written.and_then(event)
                    self._arrived.put((sent, event))
                    if event.is_last:
                        return
                raise GenerationError("The replica ended an output before it was complete.")
            except self._lost as error:
                LOG.warning("a replica was lost after %d tokens of an output; another goes on: %s",
                            len(sent.written.token_ids), type(error).__name__)  # fmt: skip
            except Exception as error:
                raised = raised_by(error)
                self._arrived.put((sent, SequenceEvent("", error=raised if isinstance(raised, Exception) else error)))
                return
        lost = GenerationError(f"{MAX_LOSSES} replicas were lost while they wrote this output.")
        self._arrived.put((sent, SequenceEvent("", error=lost)))


class ReplicatedModel:
    """A ``ServedModel`` in replicas of Ray Serve, which begin here.

    Args:
        load: makes the generator, in each replica.
        settings: of the server; ``max_rows`` is of each replica.
        replicas: how many.
        gpus: of each replica.

    Raises:
        OptionsError: there is no ray. StructgenError: what ``load`` raised.
    """

    drafts = False

    def __init__(
        self, load: Callable[[], Generator], settings: ServingSettings, replicas: int, *, gpus: float = 0.0
    ) -> None:
        ray = connect()
        deployment = ray.serve.deployment(
            ModelReplica,
            num_replicas=replicas,
            # More than the server lets in, whatever the other replicas do: its own answers to too many requests stand.
            max_ongoing_requests=settings.max_waiting + settings.max_rows * (replicas + 1),
            ray_actor_options={"num_cpus": 1, "num_gpus": gpus},
            health_check_period_s=2,
        )
        self._ray, self._at_once = ray, settings.max_rows * replicas
        self._handle = ray.serve.run(deployment.bind(load, settings), name=APPLICATION, route_prefix=None)
        described = self._handle.describe.remote().result()
        self.tokenizer, self.vocabulary, self.context_length, self.defaults = described
        self.replica_writer: ReplicaWriter | None = None

    def writer(self, limits: SchedulerLimits) -> ReplicaWriter:
        """See ``ServedModel``."""
        lost = (self._ray.exceptions.RayActorError, self._ray.exceptions.ActorUnavailableError)
        self.replica_writer = ReplicaWriter(self._handle, self._at_once, lost)
        return self.replica_writer

    def placed(self, constraint: Constraint, grammar: Grammar) -> Any:
        """See ``ServedModel``."""
        return _SentGrammar(constraint, grammar)

    def close(self) -> None:
        """End the replicas."""
        self._ray.serve.delete(APPLICATION)
