"""Prometheus metrics, by the names that vLLM's dashboards know."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from structgen.serving.engine import StepReport
from structgen.serving.rows import RowEnd

SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)


class ServerMetrics:
    """The metrics of one server, in a registry of its own.

    Args:
        model: the label ``model_name``.
        prefix: of all names, such as ``structgen:`` or ``vllm:``.
    """

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, model: str, prefix: str = "structgen:") -> None:
        self.registry = CollectorRegistry()
        self._prefix = prefix
        self._model = model
        self.running = self._gauge("num_requests_running", "Outputs that are written.")
        self.waiting = self._gauge("num_requests_waiting", "Outputs that wait for their turn.")
        self.prompt_tokens = self._counter("prompt_tokens", "Tokens of prompts.")
        self.generation_tokens = self._counter("generation_tokens", "Tokens of outputs.")
        self.cached_tokens = self._counter("prompt_tokens_cached", "Tokens of prompts that were known and not read.")
        self.cache_bytes = self._gauge("kv_cache_usage_bytes", "What keys and values take.")
        self.preemptions = self._counter("num_preemptions", "Times that keys and values were given up for others.")
        self.draft_tokens = self._counter("spec_decode_num_draft_tokens", "Draft tokens that the model read.")
        self.accepted_tokens = self._counter("spec_decode_num_accepted_tokens", "Draft tokens that became output.")
        self.forced_tokens = self._counter("forced_tokens", "Tokens that were the only ones allowed.")
        self.steered_tokens = self._counter("steered_tokens", "Tokens turned down so that an output can be closed.")
        self.success = self._counter("request_success", "Outputs that were finished.", ["finished_reason"])
        self.rejections = self._counter("admission_rejections", "Requests that were turned away.", ["code"])
        self.cancelled = self._counter("cancelled_requests", "Requests whose client went away.")
        self.hurried = self._counter("hurried_requests", "Times that all outputs were closed at once.")
        self.step_tokens = self._histogram("iteration_tokens_total", "Tokens a step.", TOKENS)
        self.step_seconds = self._histogram("step_seconds", "Time of a step.", SECONDS)
        self.first_token = self._histogram(
            "time_to_first_token_seconds", "From the request to the first text.", SECONDS
        )
        self.between_tokens = self._histogram("inter_token_latency_seconds", "Between events of a stream.", SECONDS)
        self.whole = self._histogram("e2e_request_latency_seconds", "From the request to its end.", SECONDS)
        self.compile_seconds = self._histogram(
            "grammar_compile_seconds", "Time until a grammar was there.", SECONDS, ["kind", "outcome"]
        )
        self.mask_seconds = self._histogram("mask_seconds", "Time on masks, an output.", SECONDS)

    def step(self, report: StepReport) -> None:
        """Note a step of the model thread; called there."""
        self.running.set(report.running)
        self.waiting.set(report.waiting)
        self.cache_bytes.set(report.cache_bytes)
        self.step_tokens.observe(report.tokens)
        self.step_seconds.observe(report.seconds)

    def ended(self, end: RowEnd, finish_reason: str) -> None:
        """Note a finished output."""
        self.generation_tokens.inc(len(end.token_ids))
        self.forced_tokens.inc(end.stats.forced_tokens)
        self.steered_tokens.inc(end.stats.steered_tokens)
        self.cached_tokens.inc(end.cached_tokens)
        self.preemptions.inc(end.preemptions)
        self.draft_tokens.inc(sum(end.stats.drafted.values()))
        self.accepted_tokens.inc(sum(end.stats.accepted.values()))
        self.mask_seconds.observe(end.stats.mask_seconds)
        self.success.labels(self._model, finish_reason).inc()

    def rejected(self, code: str) -> None:
        """Note a request that was turned away."""
        self.rejections.labels(self._model, code).inc()

    def compiled(self, kind: str, outcome: str, seconds: float) -> None:
        """Note how long a request waited for its grammar."""
        self.compile_seconds.labels(self._model, kind, outcome).observe(seconds)

    def text(self) -> bytes:
        """What ``/metrics`` answers."""
        return generate_latest(self.registry)

    def _gauge(self, name: str, says: str) -> Any:
        return Gauge(self._prefix + name, says, ["model_name"], registry=self.registry).labels(self._model)

    def _counter(self, name: str, says: str, labels: list[str] | None = None) -> Any:
        counter = Counter(self._prefix + name, says, ["model_name", *(labels or ())], registry=self.registry)
        return counter if labels else counter.labels(self._model)

    def _histogram(self, name: str, says: str, buckets: tuple[float, ...], labels: list[str] | None = None) -> Any:
        made = Histogram(
            self._prefix + name, says, ["model_name", *(labels or ())], buckets=buckets, registry=self.registry
        )
        return made if labels else made.labels(self._model)
