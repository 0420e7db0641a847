"""Prometheus metrics, by the names that vLLM's dashboards know."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from structgen.core.constraints.cache import COMPILED
from structgen.server.engine import StepReport
from structgen.server.sequences import SequenceEnd

SECONDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
TOKENS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)


class ServerMetrics:
    """The metrics of one server, in a registry of its own.

    Args:
        model: the label ``model_name``.
        prefix: of all names, such as ``structgen:`` or ``vllm:``.
        max_cache_bytes: what keys and values may take; None: any number.
    """

    content_type = CONTENT_TYPE_LATEST

    def __init__(self, model: str, prefix: str = "structgen:", max_cache_bytes: int | None = None) -> None:
        self.registry = CollectorRegistry()
        self._max_cache_bytes = max_cache_bytes
        self._prefix = prefix
        self._model = model
        self.running = self._gauge("num_requests_running", "Outputs that are written.")
        self.waiting = self._gauge("num_requests_waiting", "Outputs that wait for their turn.")
        self.prompt_tokens = self._counter("prompt_tokens", "Tokens of prompts.")
        self.generation_tokens = self._counter("generation_tokens", "Tokens of outputs.")
        self.cached_tokens = self._counter("prompt_tokens_cached", "Tokens of prompts that were known and not read.")
        self.cache_bytes = self._gauge("kv_cache_usage_bytes", "What keys and values take.")
        self.cache_share = self._gauge("kv_cache_usage_perc", "What keys and values take of the limit; 0 without one.")
        self.prefix_queries = self._counter("prefix_cache_queries", "Tokens of prompts that were looked for.")
        self.prefix_hits = self._counter("prefix_cache_hits", "Those of them that were known.")
        self.preemptions = self._counter("num_preemptions", "Times that keys and values were given up for others.")
        self.drafts = self._counter("spec_decode_num_drafts", "Calls of the model that read drafts.")
        self.draft_tokens = self._counter("spec_decode_num_draft_tokens", "Draft tokens that the model read.")
        self.accepted_tokens = self._counter("spec_decode_num_accepted_tokens", "Draft tokens that became output.")
        self.late_masks = self._counter("late_masks", "Masks that the other outputs did not wait for.")
        self.forced_tokens = self._counter("forced_tokens", "Tokens that were the only ones allowed.")
        self.steered_tokens = self._counter("steered_tokens", "Tokens turned down so that an output can be closed.")
        self.success = self._counter("request_success", "Outputs that were finished.", ["finished_reason"])
        self.rejections = self._counter("admission_rejections", "Requests that were turned away.", ["code"])
        self.cancelled = self._counter("cancelled_requests", "Requests whose client went away.")
        self.hurried = self._counter("hurried_requests", "Outputs that were closed early, for time or a shutdown.")
        self.step_tokens = self._histogram("iteration_tokens_total", "Tokens a step.", TOKENS)
        self.step_seconds = self._histogram("step_seconds", "Time of a step: write, or hand_out.", SECONDS, ["phase"])
        self.first_token = self._histogram(
            "time_to_first_token_seconds", "From the request to the first text.", SECONDS
        )
        self.between_tokens = self._histogram("inter_token_latency_seconds", "Between events of a stream.", SECONDS)
        self.queued = self._histogram("request_queue_time_seconds", "From the queue to the turn.", SECONDS)
        self.prefilled = self._histogram("request_prefill_time_seconds", "From the turn to the first token.", SECONDS)
        self.decoded = self._histogram("request_decode_time_seconds", "From the first token to the last.", SECONDS)
        self.whole = self._histogram("e2e_request_latency_seconds", "From the request to its end.", SECONDS)
        self.compile_seconds = self._histogram(
            "grammar_compile_seconds", "Time until a grammar was there.", SECONDS, ["kind", "outcome"]
        )
        self.grammar_hits = self._counter("grammar_cache_hits", "Grammars that were compiled before.")
        self._gauge("grammar_cache_bytes", "What compiled grammars take.").set_function(lambda: COMPILED.bytes)
        self.mask_seconds = self._histogram("mask_seconds", "Time on masks, an output.", SECONDS)

    def step(self, report: StepReport) -> None:
        """Note a step of the model thread; called there."""
        self.outputs(report.running, report.waiting)
        self.cache_bytes.set(report.cache_bytes)
        self.step_tokens.observe(report.tokens)
        self.step_seconds.labels(self._model, "write").observe(report.seconds)
        self.step_seconds.labels(self._model, "hand_out").observe(report.hand_out_seconds)
        if self._max_cache_bytes is not None:
            self.cache_share.set(report.cache_bytes / self._max_cache_bytes)

    def outputs(self, running: int, waiting: int) -> None:
        """Note how many outputs there are."""
        self.running.set(running)
        self.waiting.set(waiting)

    def asked(self, prompt_tokens: int) -> None:
        """Note a request that can be answered."""
        self.prompt_tokens.inc(prompt_tokens)

    def ended(self, end: SequenceEnd, finish_reason: str) -> None:
        """Note a finished output."""
        self.generation_tokens.inc(len(end.token_ids))
        self.forced_tokens.inc(end.stats.forced_tokens)
        self.steered_tokens.inc(end.stats.steered_tokens)
        self.cached_tokens.inc(end.cached_tokens)
        self.preemptions.inc(end.preemptions)
        self.prefix_queries.inc(end.stats.prompt_tokens)
        self.prefix_hits.inc(end.cached_tokens)
        self.drafts.inc(end.stats.draft_trees)
        self.draft_tokens.inc(end.stats.draft_tokens)
        self.accepted_tokens.inc(end.stats.accepted_draft_tokens)
        self.hurried.inc(end.is_hurried)
        self.late_masks.inc(end.late_masks)
        self.queued.observe(end.times.admitted - end.times.submitted)
        self.prefilled.observe(end.times.first - end.times.admitted)
        self.decoded.observe(end.times.ended - end.times.first)
        self.mask_seconds.observe(end.stats.mask_seconds)
        self.success.labels(self._model, finish_reason).inc()

    def rejected(self, code: str) -> None:
        """Note a request that was turned away."""
        self.rejections.labels(self._model, code).inc()

    def compiled(self, kind: str, outcome: str, seconds: float) -> None:
        """Note how long a request waited for its grammar."""
        self.compile_seconds.labels(self._model, kind, outcome).observe(seconds)
        self.grammar_hits.inc(outcome == "kept")

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
