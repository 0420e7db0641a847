"""The scheduler of ``model.generate``: drafts, forced tokens and closing in time, in transformers' own call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from structgen.core.engines.protocols import Grammar
from structgen.errors import GenerationError, OptionsError
from structgen.generation.decoding.output import Output
from structgen.generation.filters.table import FILTERS
from structgen.generation.generator import Generator
from structgen.generation.models.transformers_model import TransformersModel
from structgen.generation.sampling import SamplingParams
from structgen.generation.scheduler.inline import write
from structgen.generation.scheduler.request import Event, Request
from structgen.integrations.transformers.checks import grammars_of, grammars_of_rows, vocabulary_of

if TYPE_CHECKING:
    from torch import Tensor

# What `generate` makes of its sampling parameters: (our name, the attribute that holds the value).
WARPERS = {
    "TemperatureLogitsWarper": ("temperature", "temperature"),
    **{one.warper[0]: (one.name, one.warper[1]) for one in FILTERS if one.warper is not None},
}
OWN_CRITERIA = ("MaxLengthCriteria", "EosTokenCriteria")  # what the budget and the constraint do here
OUTPUTS = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")
USE_PROCESSOR = "use logits_processor=[GrammarLogitsProcessor(...)] for that"


def generate(constraint: Any, tokenizer: Any, *, draft: Any = None, streamer: Any = None) -> Callable[..., Any]:
    """What runs structgen's scheduler in transformers: ``model.generate(**inputs, custom_generate=generate(...))``.

    Keep it for more calls with the same model: it holds the tokenizer's vocabulary and what drafts have learned.

    Honours temperature, top_k, top_p and the other filters where ``do_sample``, ``max_new_tokens`` and ``max_length``
    (texts are closed within them), all of ``eos_token_id``, ``num_return_sequences``, padding on the left,
    ``return_dict_in_generate`` (sequences alone). Random numbers follow ``torch.manual_seed``, though they are not
    those of ``_sample``. A stopping criterion has the text closed as soon as it can be, so ``max_time`` gives whole
    texts. All else (beams, penalties, assistants, scores, ...) is refused by name.

    Args:
        constraint: as ``GrammarLogitsProcessor`` takes it.
        tokenizer: the model's.
        draft: as ``Generator`` takes it (docs/speculative.md).
        streamer: given the prompt and then each token; `generate` hands its own ``streamer`` on to no function.

    Raises:
        ConstraintError, TokenizerError: at once, or when the model is known. OptionsError: what is not done, by name.
        IncompleteOutputError: not even the shortest text fits in the budget.
    """
    return _Generate(constraint, tokenizer, draft, streamer)


class _Generate:
    """See ``generate``."""

    def __init__(self, constraint: Any, tokenizer: Any, draft: Any, streamer: Any) -> None:
        vocabulary_of(tokenizer, None, None)  # first: a wrong one should not wait for the call
        self._constraint, self._tokenizer, self._draft, self._streamer = constraint, tokenizer, draft, streamer
        self._made: tuple[Any, tuple[int, ...], Generator] | None = None

    def __call__(
        self,
        model: Any,
        input_ids: Tensor,
        logits_processor: Sequence[Any] = (),
        stopping_criteria: Sequence[Any] = (),
        generation_config: Any = None,
        synced_gpus: bool = False,
        streamer: Any = None,
        **model_kwargs: Any,
    ) -> Any:
        """What `generate` calls, with what it has prepared; returns what `generate` returns."""
        config = generation_config
        _check(model, config, input_ids, synced_gpus, model_kwargs)
        params = _params(logits_processor, bool(config.do_sample))
        generator = self._generator(model, config)
        prompts = _prompts(input_ids, model_kwargs.get("attention_mask"))
        grammars = grammars_of(self._constraint, generator.vocabulary)
        outputs = [
            _output(generator, grammar, params, prompt, _budget(config, input_ids))
            for grammar, prompt in zip(
                grammars_of_rows(grammars, len(prompts), config.num_return_sequences or 1), prompts, strict=True
            )
        ]
        speculator = generator.speculator()
        requests = [Request(prompt, output, speculator) for prompt, output in zip(prompts, outputs, strict=True)]
        watch = _Watch(input_ids, outputs, stopping_criteria, streamer or self._streamer)
        try:
            for events in write(generator.reader, requests, overlapped=generator.capabilities.asynchronous):
                watch.see(events)
        finally:
            generator.reader.forget_prefixes()  # the weights may be others by the next call
        return _result(input_ids, outputs, config, watch)

    def _generator(self, model: Any, config: Any) -> Generator:
        """One for the model, made at the first call."""
        ends = _ids(config.eos_token_id)
        if self._made is None or self._made[0] is not model or self._made[1] != ends:
            wrapped = TransformersModel(model)
            vocabulary = vocabulary_of(self._tokenizer, wrapped.vocab_size, ends or None)
            made = Generator(wrapped, self._tokenizer, vocabulary=vocabulary, draft=self._draft)
            self._made = model, ends, made
        return self._made[2]


def _check(model: Any, config: Any, input_ids: Tensor, synced_gpus: bool, model_kwargs: dict[str, Any]) -> None:
    """Refuse what is not done."""
    wrong = "synced_gpus" if synced_gpus else next((name for name in OUTPUTS if getattr(config, name, None)), None)
    if config.num_beams and config.num_beams > 1:
        raise OptionsError(f"num_beams={config.num_beams} is not for custom_generate; {USE_PROCESSOR}")
    if config.prompt_lookup_num_tokens:
        raise OptionsError('prompt_lookup_num_tokens is not for custom_generate; say generate(..., draft="ngram")')
    if wrong is not None:
        raise OptionsError(f"{wrong}=True is not for custom_generate; {USE_PROCESSOR}")
    if model.config.is_encoder_decoder:
        name = type(model).__name__
        raise OptionsError(f"{name} has an encoder, which custom_generate does not run; {USE_PROCESSOR}")
    if not input_ids.shape[1]:
        raise OptionsError(f"inputs_embeds without input_ids are not for custom_generate; {USE_PROCESSOR}")
    supported = {"attention_mask", "position_ids", "past_key_values", "use_cache", "logits_to_keep", "cache_position"}
    given = next((name for name, value in model_kwargs.items() if name not in supported and value is not None), None)
    if given is not None:
        raise OptionsError(f"{given} is not for custom_generate, which reads token ids only; {USE_PROCESSOR}")


def _params(processors: Sequence[Any], do_sample: bool) -> SamplingParams:
    """What `generate`'s warpers do, in their order; for each row, a seed is drawn from torch's generator."""
    values, order = dict[str, Any](), list[str]()
    for processor in processors:
        name, attribute = WARPERS.get(type(processor).__name__, ("", ""))
        if not name:
            raise OptionsError(f"{type(processor).__name__} is not for custom_generate; {USE_PROCESSOR}")
        value = getattr(processor, attribute)
        values[name] = float(value) if name != "top_k" else int(value)
        order.append(name)
    if not do_sample:
        return SamplingParams()
    if "temperature" not in values:
        values["temperature"], order = 1.0, ["temperature", *order]
    return SamplingParams(**values, order=tuple(order))


def _prompts(input_ids: Tensor, attention_mask: Tensor | None) -> list[list[int]]:
    """The tokens of each row without its padding."""
    if attention_mask is None:
        return list(input_ids.tolist())
    masks = attention_mask[:, : input_ids.shape[1]].bool()
    return [ids[mask].tolist() for ids, mask in zip(input_ids, masks, strict=True)]


def _budget(config: Any, input_ids: Tensor) -> int:
    return int(config.max_length) - input_ids.shape[1]


def _output(
    generator: Generator, grammar: Grammar | None, params: SamplingParams, prompt: Sequence[int], budget: int
) -> Output:
    import torch

    context = generator.model.context_length
    if context is not None:
        budget = min(budget, context - len(prompt))
    if budget < 1:
        raise GenerationError(f"The prompt has {len(prompt)} tokens, which leaves none to write; shorten it.")
    matcher = None if grammar is None else grammar.matcher()
    seeded = replace(params, seed=int(torch.randint(2**62, ()).item()))
    return Output(generator.vocabulary, matcher, seeded, max_new_tokens=budget, prompt_ids=prompt)


class _Watch:
    """Shows what is written to a streamer and to stopping criteria.

    Attributes:
        texts: the tokens of each row so far, end of sequence included.
    """

    def __init__(self, input_ids: Tensor, outputs: Sequence[Output], criteria: Sequence[Any], streamer: Any) -> None:
        self._input_ids, self._outputs, self._streamer = input_ids, list(outputs), streamer
        self._criteria = [one for one in criteria if type(one).__name__ not in OWN_CRITERIA]
        if streamer is not None:
            streamer.put(input_ids.cpu())

    def see(self, events: Iterable[Event]) -> None:
        """What a step has written. A row that a criterion stops is closed as soon as it can be."""
        import torch

        for event in events:
            row = self._outputs.index(event.handle.output)
            if self._streamer is not None:
                for token in event.token_ids:
                    self._streamer.put(torch.tensor([token]))
            if self._criteria and event.token_ids and not event.is_last and self._stops(row, event):
                event.handle.output.hurry()

    def _stops(self, row: int, event: Event) -> bool:
        import torch

        prompt, written = self._input_ids[row], event.handle.output.token_ids
        for end in range(len(written) - len(event.token_ids) + 1, len(written) + 1):
            ids = torch.cat([prompt, torch.tensor(written[:end], dtype=prompt.dtype, device=prompt.device)])[None]
            if any(bool(torch.as_tensor(criterion(ids, None)).all()) for criterion in self._criteria):
                return True
        return False

    def end(self, last: Sequence[int]) -> None:
        """After all rows: the ends of sequence that came last, if any."""
        import torch

        if self._streamer is not None:
            for token in last:
                self._streamer.put(torch.tensor([token]))
            self._streamer.end()


def _result(input_ids: Tensor, outputs: Sequence[Output], config: Any, watch: _Watch) -> Any:
    """What `generate` returns: prompts and texts, each with its end if there is room, padded on the right."""
    import torch
    from transformers.generation.utils import GenerateDecoderOnlyOutput

    most = _budget(config, input_ids)
    rows = []
    for output in outputs:
        ends = output.matcher is not None and output.matcher.is_terminated()
        ends = ends or (output.matcher is None and output.finish_reason == "stop")
        end = [output.vocabulary.eos_token_ids[0]] if ends and len(output.token_ids) < most else []
        rows.append([*output.token_ids, *end])
    watch.end(rows[0][len(outputs[0].token_ids) :])
    width = max(map(len, rows))
    pads = _ids(config.pad_token_id) or outputs[0].vocabulary.eos_token_ids
    texts = torch.tensor(
        [[*row, *[pads[0]] * (width - len(row))] for row in rows], dtype=input_ids.dtype, device=input_ids.device
    ).reshape(len(rows), width)
    sequences = torch.cat([input_ids, texts], dim=1)
    if config.return_dict_in_generate:
        return GenerateDecoderOnlyOutput(sequences=sequences)
    return sequences


def _ids(ids: Any) -> tuple[int, ...]:
    """Of a setting that is an id, several, a tensor of them, or None."""
    if ids is None:
        return ()
    if hasattr(ids, "flatten"):
        return tuple(ids.flatten().tolist())
    return tuple(ids) if isinstance(ids, Iterable) else (ids,)
