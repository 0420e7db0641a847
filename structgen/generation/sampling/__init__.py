"""From logits to tokens: bias and penalties, the constraint's mask, temperature and filters, the draw.

`params` says how, `sampler` what is drawn; `logits_row`, `penalties`, `draws` and
`uniforms` are one row in float64: the definition of what every sampler does. `host` draws on the processor,
`torch_sampler` and `triton_sampler` where the logits are; `choose` says which.
"""

from structgen.generation.filters.rows import LogProbs
from structgen.generation.sampling.draws import FirstDraw, deviation, draw, filtered_probs, sample
from structgen.generation.sampling.logits_row import Ids, allowed_token_ids, masked_log_probs, to_numpy
from structgen.generation.sampling.params import SamplingParams
from structgen.generation.sampling.sampler import Choices, DrawRequest, TokenSampler

__all__ = [
    "Choices",
    "DrawRequest",
    "FirstDraw",
    "Ids",
    "LogProbs",
    "SamplingParams",
    "TokenSampler",
    "allowed_token_ids",
    "deviation",
    "draw",
    "filtered_probs",
    "masked_log_probs",
    "sample",
    "to_numpy",
]  # fmt: skip
