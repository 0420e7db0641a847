"""One model with several engines in a worker's process: a job is a schema, the answer a record an engine and sampling.

The prompt is read once for all engines and samplings of a schema; the time counts for each of them.
"""

from __future__ import annotations

import gc
import importlib
import time
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from typing import Any

from structgen.benchmarking.engines import Refused, Session, load_engine
from structgen.benchmarking.loop import DecoderDraft, Draft, MaskedDraft, write_by_turns, write_together
from structgen.benchmarking.prompts import as_prompt, schema_prompt
from structgen.benchmarking.schemas import Case
from structgen.benchmarking.validity import judge_text
from structgen.benchmarking.vocabularies import BenchVocabulary
from structgen.core.workers import Watch
from structgen.errors import IncompleteOutputError
from structgen.generation.decoding.prompts import prompt_token_ids
from structgen.generation.generator import Generator
from structgen.generation.sampling import SamplingParams

# structgen's masks under structgen's own decoder: forced tokens without the model, closing within the budget.
DECODER = "structgen_decoder"
SAMPLINGS = ("greedy", "sampled")
PACES = {"turns": write_by_turns, "together": write_together}
Record = dict[str, Any]


@dataclass(frozen=True)
class ModelSetting:
    """What all records of a run have in common.

    Attributes:
        model: Hugging Face id or folder; None: the default model; "module:function": what it returns (a Generator).
        dtype: of the weights. threads: of torch; None: its own choice.
        engines: names of ENGINES, "module:class", or DECODER.
        pace: of PACES, see ``loop``.
        samplings: of SAMPLINGS. temperature, seed: of "sampled".
        max_new_tokens: the budget of an output. max_prompt_tokens: longer prompts have their schema cut.
        shots: worked examples in the prompt.
    """

    model: str | None
    engines: tuple[str, ...]
    dtype: str = "float32"
    threads: int | None = None
    pace: str = "turns"
    samplings: tuple[str, ...] = SAMPLINGS
    temperature: float = 0.8
    seed: int = 0
    max_new_tokens: int = 256
    max_prompt_tokens: int = 2048
    shots: int = 2

    def describe(self) -> dict[str, Any]:
        """What must agree between two runs for their records to stand in one file (not which engines took part)."""
        from structgen.generation.models.built_in import DEFAULT_MODEL

        names = ("dtype", "pace", "temperature", "seed", "max_new_tokens", "max_prompt_tokens", "shots")
        return {"model": self.model or DEFAULT_MODEL, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class Job:
    """One schema for these engines and samplings: (engine, sampling) pairs that are wanted."""

    case: Case
    wanted: tuple[tuple[str, str], ...]


class ModelServer:
    """See the module; ``greeting`` is the engines' versions."""

    def __init__(self, setting: ModelSetting, watch: Watch) -> None:
        self._setting, self._watch = setting, watch
        self._generator = load_generator(setting)
        self._common = bench_vocabulary(self._generator)
        names = {engine_of(name) for name in setting.engines}
        self._engines = {name: load_engine(name, self._common, "generation") for name in sorted(names)}
        for engine in self._engines.values():  # first calls load tables
            engine.compile('{"type": "object"}')().fill()
        self.greeting = {name: engine.version for name, engine in self._engines.items()}

    def __call__(self, job: Job) -> list[Record]:
        setting, generator = self._setting, self._generator
        base: Record = {"dataset": job.case.dataset, "schema": job.case.name}
        base |= {"answer": job.case.answer} if job.case.prompt else {}
        records: list[Record] = []
        drafts: list[tuple[Record, Draft]] = []
        prompt_ids, cut = self._prompt(job.case)
        base |= {"prompt_tokens": len(prompt_ids), "prompt_cut": cut}
        starts = self._compile_all(job, base, records)
        if starts:
            began = time.perf_counter()
            prompt = generator.model.prefill([prompt_ids])
            base["prefill_s"] = time.perf_counter() - began
            for record, start in starts:
                self._watch.mark(record["engine"])
                record["prefill_s"] = base["prefill_s"]
                draft = self._start(record, start)
                if draft is not None:
                    drafts.append((record, draft))
                records.append(record)
            gc.collect()
            gc.disable()
            PACES[setting.pace](generator.model, prompt, [draft for _, draft in drafts], self._watch.mark)
            gc.enable()
        for record, draft in drafts:
            self._watch.mark(record["engine"])
            self._finish(job.case, record, draft)
        _pair(drafts)
        return records

    def _prompt(self, case: Case) -> tuple[list[int], bool]:
        """Token ids, and whether something was cut."""
        tokenizer, setting = self._generator.tokenizer, self._setting
        if case.prompt:
            return prompt_token_ids(tokenizer, as_prompt(tokenizer, case.prompt)), False
        return schema_prompt(tokenizer, case.schema_text, setting.shots, setting.max_prompt_tokens)

    def _compile_all(self, job: Job, base: Record, failed: list[Record]) -> list[tuple[Record, Callable[[], Session]]]:
        """A record and a maker of sessions for each pair wanted that compiles; the others' records go to ``failed``."""
        ready = []
        for name in dict.fromkeys(engine for engine, _ in job.wanted):
            self._watch.mark(name)
            common = {**base, "engine": name}
            began = time.perf_counter()
            try:
                start = self._engines[engine_of(name)].compile(job.case.schema_text)
                common["compile_s"] = time.perf_counter() - began
                outcome = None
            except Refused as error:
                outcome = {"outcome": "refused", "error": str(error)}
            except Exception as error:  # an engine's defect must not end the run
                outcome = {"outcome": "error", "error": f"{type(error).__name__}: {error}"}
            for engine, sampling in job.wanted:
                if engine == name and outcome is None:
                    ready.append(({**common, "sampling": sampling}, start))
                elif engine == name:
                    failed.append({**common, "sampling": sampling, **(outcome or {})})
        self._watch.mark(None)
        return ready

    def _start(self, record: Record, start: Callable[[], Session]) -> Draft | None:
        """The draft of a record; None, with the reason in the record, where the engine fails."""
        setting, generator = self._setting, self._generator
        temperature = 0.0 if record["sampling"] == "greedy" else setting.temperature
        params = SamplingParams(temperature, seed=setting.seed)
        common = (generator.vocabulary, params, setting.max_new_tokens)
        name = record["engine"]
        try:
            if name == DECODER:
                return DecoderDraft(name, start(), *common)
            return MaskedDraft(name, start(), self._engines[engine_of(name)].row, *common)
        except IncompleteOutputError as error:  # nothing fits the budget, and the decoder knows before it begins
            record |= {"outcome": "written", "tokens": 0, "finish": None, "text": ""}
            record |= {"judgement": "unfinished", "reason": str(error)}
        except Exception as error:  # as above
            record |= {"outcome": "error", "error": f"{type(error).__name__}: {error}"}
        return None

    def _finish(self, case: Case, record: Record, draft: Draft) -> None:
        """Fill in what came of a draft. Times: µs in lists, else seconds."""
        text = self._generator.vocabulary.decode(draft.token_ids).decode("utf-8", errors="replace")
        ended = draft.finish == "stop" or (draft.label == DECODER and draft.finish == "length")
        record |= {
            "outcome": "error" if draft.error else "written",
            "tokens": len(draft.token_ids),
            "finish": draft.finish,
            "text": text,
            "ttft_s": record["compile_s"] + record["prefill_s"] + draft.first_ns / 1e9,
            "mask_us": [round(ns / 1e3) for ns in draft.mask_ns],
            "logprob": draft.logprob_masked,
        }
        if draft.label != DECODER:
            record["logprob_model"] = draft.logprob_model
        if draft.step_ns:
            record["steps"], record["tpot_s"] = (
                len(draft.step_ns),
                sum(draft.step_ns) / 1e9 / len(draft.token_ids or [0]),
            )
        if draft.error:
            record["error"] = draft.error
        else:
            record["judgement"], record["reason"] = judge_text(case.schema_text, text, ended)


def _pair(drafts: list[tuple[Record, Draft]]) -> None:
    """``paired``: [steps, seconds, seconds of "none"] over the steps that an output has in common with "none"'s.

    By turns only: then the i-th steps ran within a fraction of a second of each other.
    """
    free = {record["sampling"]: draft.step_ns for record, draft in drafts if record["engine"] == "none"}
    for record, draft in drafts:
        other = free.get(record["sampling"], [])
        if record["engine"] not in ("none", DECODER) and other:
            steps = min(len(other), len(draft.step_ns))
            record["paired"] = [steps, sum(draft.step_ns[:steps]) / 1e9, sum(other[:steps]) / 1e9]


def engine_of(name: str) -> str:
    """The engine after a name in a run."""
    return "structgen" if name == DECODER else name


def load_generator(setting: ModelSetting) -> Generator:
    """The model of a run; errors as ``Generator``."""
    if setting.model is not None and ":" in setting.model:
        module, _, function = setting.model.partition(":")
        made: Generator = getattr(importlib.import_module(module), function)()
        return made
    if setting.threads is not None:
        import torch

        torch.set_num_threads(setting.threads)
    return Generator(setting.model, dtype=setting.dtype)


def bench_vocabulary(generator: Generator) -> BenchVocabulary:
    """The model's vocabulary as the engines are given it."""
    vocabulary, tokenizer = generator.vocabulary, generator.tokenizer
    tokens = [token or b"" for token in vocabulary.tokens]

    def encode(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False))

    return BenchVocabulary("model", tokens, vocabulary.eos_token_ids[0], encode)


def without(job: Job, engines: Container[str]) -> Job:
    """The job for the other engines."""
    return replace(job, wanted=tuple(pair for pair in job.wanted if pair[0] not in engines))
