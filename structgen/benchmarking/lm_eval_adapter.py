"""structgen as a model of EleutherAI's lm-evaluation-harness (0.4): ``--model structgen``.

    lm_eval --model structgen --model_args pretrained=HuggingFaceTB/SmolLM2-360M-Instruct,schema_field=json_schema \\
        --tasks jsonschema_bench_easy --include_path structgen/benchmarking/lm_eval_tasks

lm_eval finds the model once this module is imported: ``python -m structgen.benchmarking.lm_eval_adapter`` takes the
arguments of ``lm_eval`` and does so. A request is constrained by ``json_schema`` among its generation arguments, else
by the field of its document that ``schema_field`` names, else not at all. Log-likelihoods are the free model's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from structgen.core.constraints.json import JsonSchemaConstraint, json_schema
from structgen.errors import ConstraintError, GenerationError, IncompleteOutputError, ModelError
from structgen.generation.decoding.output import Output
from structgen.generation.generator import Generator
from structgen.generation.sampling import SamplingParams, masked_log_probs, to_numpy
from structgen.generation.scheduler.inline import write
from structgen.generation.scheduler.request import Request

try:
    from lm_eval.api.model import LM
    from lm_eval.api.registry import register_model
except ImportError as error:
    raise ModelError("The adapter needs lm-evaluation-harness: pip install lm-eval") from error


@register_model("structgen")
class StructgenLM(LM):
    """A ``Generator`` as a model of lm_eval.

    Args:
        pretrained: Hugging Face id or folder; empty: structgen's default model.
        dtype: of the weights. device: where to put them.
        schema_field: field of a task's documents that holds a JSON Schema (a dict, or its text).
        max_gen_toks: the budget of requests that name none.
        on_error: "empty": an output that cannot be had (schema not covered, budget too small) is ""; or "raise".
        generator: a ready one in place of all this.
    """

    def __init__(
        self,
        pretrained: str = "",
        dtype: str = "float32",
        device: str | None = None,
        schema_field: str = "json_schema",
        max_gen_toks: int = 256,
        on_error: str = "empty",
        generator: Generator | None = None,
        **_: Any,  # lm_eval adds batch_size and the like
    ) -> None:
        super().__init__()
        self.generator = generator or Generator(pretrained or None, dtype=dtype, device=device)
        self._schema_field, self._max_gen_toks, self._on_error = schema_field, int(max_gen_toks), on_error

    @property
    def tokenizer_name(self) -> str:
        """For lm_eval's cache of chat-formatted requests."""
        return str(getattr(self.generator.tokenizer, "name_or_path", "")).replace("/", "__")

    def apply_chat_template(self, chat_history: Sequence[dict[str, str]], add_generation_prompt: bool = True) -> str:
        """The conversation as one text."""
        return str(
            self.generator.tokenizer.apply_chat_template(
                list(chat_history), tokenize=False, add_generation_prompt=add_generation_prompt
            )
        )

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """An output for each request (context, generation arguments)."""
        return [self._generate(request.args[0], request.args[1], request) for request in requests]

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """(Log-probability in nats, whether greedy) of each request's continuation after its context."""
        encode = self.generator.tokenizer.encode
        pairs = []
        for request in requests:
            context, continuation = request.args
            whole, start = list(encode(context + continuation)), len(encode(context))
            pairs.append(self._score(whole, max(1, start)))
        return pairs

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        """Log-probability in nats of each request's text, from its second token on."""
        encode = self.generator.tokenizer.encode
        return [self._score(list(encode(request.args[0])), 1)[0] for request in requests]

    def _generate(self, context: str, arguments: dict[str, Any], request: Any) -> str:
        # The context is already formatted (by lm_eval's --apply_chat_template, if asked for): no template of ours.
        ids = list(self.generator.tokenizer.encode(context, add_special_tokens=False))
        heat = float(arguments.get("temperature") or (1.0 if arguments.get("do_sample") else 0.0))
        params = SamplingParams(heat, top_p=float(arguments.get("top_p") or 1.0))
        try:
            constraint = self._constraint(arguments, request)
            vocabulary = self.generator.vocabulary
            matcher = None if constraint is None else constraint.compile(vocabulary).matcher()
            stop = arguments.get("until") or ()
            output = Output(
                vocabulary,
                matcher,
                params,
                max_new_tokens=int(arguments.get("max_gen_toks") or self._max_gen_toks),
                # The end of constrained text is the constraint's to say; a stop string could stand inside a value.
                stop=() if constraint is not None else [stop] if isinstance(stop, str) else stop,
            )
            for _ in write(self.generator.reader, [Request(ids, output)]):
                pass
            return output.text
        except (ConstraintError, GenerationError) as error:
            if self._on_error == "raise":
                raise
            return error.partial if isinstance(error, IncompleteOutputError) else ""

    def _constraint(self, arguments: dict[str, Any], request: Any) -> JsonSchemaConstraint | None:
        document = getattr(request, "doc", None) or {}
        schema = arguments.get("json_schema", document.get(self._schema_field))
        return None if schema is None else json_schema(schema)

    def _score(self, ids: list[int], start: int) -> tuple[float, bool]:
        """Sum over the tokens from ``start`` on, and whether each is the likeliest."""
        if len(ids) <= start:
            return 0.0, True
        model, size = self.generator.model, self.generator.vocabulary.size
        first, cache = model.prefill([ids[:start]])
        rows = [to_numpy(first[0])]
        if len(ids) > start + 1:
            rows += list(to_numpy(model.forward([ids[start:-1]], cache)[0]))
        total, greedy = 0.0, True
        for row, token in zip(rows, ids[start:], strict=True):
            log_probs = masked_log_probs(row[:size], None)
            total += float(log_probs[token])
            greedy = greedy and int(np.argmax(log_probs)) == token
        return total, greedy


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
