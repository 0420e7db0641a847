"""Constraints in transformers' continuous batching, which has no door for processors: the one module that makes one.

Its manager builds its list of processors from the generation settings. Ours is put before them: a mask after top-k
could leave nothing. One integer a request says which constraint it has; its text so far is in the request's state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from structgen.core.engines.protocols import Grammar
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.errors import GenerationError, ModelError, OptionsError
from structgen.generation.models.transformers_model import TransformersModel
from structgen.integrations.transformers.checks import grammars_of, grammars_of_rows, vocabulary_of
from structgen.integrations.transformers.masking import Masker
from structgen.integrations.transformers.row import ConstrainedRow, check_budget

if TYPE_CHECKING:
    from torch import Tensor

VERSION = "5.23"  # of transformers; what is used here is not documented, and others may have it otherwise


def generate_batch(
    model: Any,
    inputs: Sequence[Sequence[int]],
    constraint: Any,
    tokenizer: Any,
    *,
    generation_config: Any = None,
    continuous_batching_config: Any = None,
    max_new_tokens: int | None = None,
) -> dict[str, Any]:
    """``model.generate_batch(inputs)`` with a constraint a request: transformers' continuous batching.

    Texts are closed within the budget, as ``GrammarLogitsProcessor`` does with ``max_new_tokens``.

    Args:
        model: a transformers model; on a CPU with the attention "sdpa" or "eager".
        inputs: token ids of each prompt.
        constraint: one for all, or a list with one (or None: free text) a prompt.
        tokenizer: the model's, or a ``Vocabulary``.
        generation_config: as there; None: the model's own.
        continuous_batching_config: as there, without CUDA graphs and asynchronous batches, which run ahead of the text.
        max_new_tokens: in place of that of the settings.

    Returns:
        transformers' ``GenerationOutput`` by request id, in the order of the prompts.

    Raises:
        ModelError: another version of transformers, or the model has a manager already.
        OptionsError: settings that do not go with constraints, by name. ConstraintError, TokenizerError: bad arguments.
        IncompleteOutputError: not even the shortest text fits in the budget.
        GenerationError: a request failed.
    """
    settings = generation_config if generation_config is not None else model.generation_config
    budget = max_new_tokens if max_new_tokens is not None else settings.max_new_tokens
    if budget is None:
        raise OptionsError("max_new_tokens is not set; pass it here or in generation_config")
    width = TransformersModel(model).vocab_size
    vocabulary = vocabulary_of(tokenizer, width, settings.eos_token_id)
    grammars = grammars_of(constraint, vocabulary)
    of_request = grammars_of_rows(grammars, len(inputs), 1)
    for grammar in grammars:
        if grammar is not None:
            check_budget(grammar, budget)
    processor = RequestConstraints(of_request, vocabulary)
    with _manager(model, settings, continuous_batching_config, processor) as manager:
        ids = [
            manager.add_request(
                list(prompt), max_new_tokens=budget, eos_token_id=list(vocabulary.eos_token_ids), constraint=number
            )
            for number, prompt in enumerate(inputs)
        ]
        outputs = _collected(manager, len(ids) * manager.num_return_sequences)
    if processor.error is not None:
        raise processor.error
    failed = next((output for output in outputs.values() if output.error is not None), None)
    if failed is not None or len(outputs) < len(ids):
        raise GenerationError(f"Continuous batching failed: {getattr(failed, 'error', 'its thread ended')}")
    order = {request_id: number for number, request_id in enumerate(ids)}
    return dict(sorted(outputs.items(), key=lambda item: order[item[0].split("__child#")[0]]))


class RequestConstraints:
    """What transformers calls a ``ContinuousBatchingLogitsProcessor``: before each step with the requests, then with
    their scores.

    Attributes:
        error: what went wrong in transformers' thread, which says no more than that something did.
    """

    supported_kwargs: ClassVar[dict[str, type]] = {"constraint": int}
    ignored_kwargs: ClassVar[tuple[str, ...]] = ()

    def __init__(self, grammars: Sequence[Grammar | None], vocabulary: Vocabulary) -> None:
        self.error: Exception | None = None
        self._grammars, self._masker = grammars, Masker(vocabulary)
        self._rows: dict[str, ConstrainedRow] = {}
        self._step: list[ConstrainedRow | None] = []

    def fill_defaults(self, int32_tensor: Tensor) -> None:
        """For requests that say nothing."""
        int32_tensor.fill_(-1)

    def prepare_tensor_args(self, requests_with_new_token: Sequence[Any]) -> Tensor:
        """Before a step: the rows of its requests, which will be in this order. int32 [requests], unused."""
        import torch

        try:
            self._step = [self._row(request.state) for request in requests_with_new_token]
        except Exception as error:
            self.error = error
            raise
        return torch.arange(len(requests_with_new_token), dtype=torch.int32)

    def __call__(self, scores: Tensor, tensor_arg: Tensor) -> Tensor:
        """Masked scores [requests, width]."""
        try:
            return self._masker.masked(scores, self._step)
        except Exception as error:
            self.error = error
            raise

    def _row(self, state: Any) -> ConstrainedRow | None:
        number = state.logit_processor_kwargs.get("constraint", -1)
        grammar = self._grammars[number] if 0 <= number < len(self._grammars) else None
        if grammar is None:
            return None
        written = state.to_generation_output().generated_tokens  # also what a preempted request has in its prompt
        row = self._rows.get(state.request_id)
        if row is None:
            budget = None if state.max_new_tokens is None else state.max_new_tokens + len(written)
            row = self._rows[state.request_id] = ConstrainedRow(grammar.matcher(), budget)
        row.follow(np.array(written, np.int64))
        return row


@contextmanager
def _manager(model: Any, settings: Any, config: Any, processor: RequestConstraints) -> Iterator[Any]:
    """A running manager whose first processor is ours."""
    import transformers
    from transformers import ContinuousBatchingConfig
    from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessor

    if not transformers.__version__.startswith(f"{VERSION}."):
        raise ModelError(
            f"Constraints in continuous batching need transformers {VERSION}, not {transformers.__version__}: install "
            "that, or use model.generate with GrammarLogitsProcessor"
        )
    config = config or ContinuousBatchingConfig(use_async_batching=False, use_cuda_graph=False)
    for name in ("use_async_batching", "use_cuda_graph"):
        value = getattr(config, name)
        if value is None:
            setattr(config, name, False)
        elif value is not False and value != (False, False):
            raise OptionsError(f"{name}={value} does not go with constraints; pass {name}=False")
    manager = model.init_continuous_batching(generation_config=settings, continuous_batching_config=config)
    if manager.is_running() or manager.batch_processor is not None:
        advice = "call model.destroy_cached_continuous_batching_manager() first"
        raise ModelError(f"The model has a manager already: {advice}")
    ContinuousBatchingLogitsProcessor.register(RequestConstraints)
    processors = manager.logit_processor
    processors.logits_processor.insert(0, processor)
    processors.tensors_required += 1
    processors.supported_keys |= processor.supported_kwargs
    processors.do_processing = True
    manager.start()
    try:
        yield manager
    finally:
        manager.stop(block=True)
        manager.destroy()


def _collected(manager: Any, count: int) -> dict[str, Any]:
    """The outputs of so many requests; fewer if the thread has ended before."""
    outputs = dict[str, Any]()
    while len(outputs) < count:
        output = manager.get_result(timeout=0.5)
        if output is not None and output.is_finished():
            outputs[output.request_id] = output
        elif output is None and not manager.is_running():
            break
    return outputs
