"""structgen in transformers 5: a logits processor, the scheduler as ``custom_generate``, continuous batching.

Nothing here imports transformers before it is used.
"""

from structgen.integrations.transformers.continuous import generate_batch
from structgen.integrations.transformers.custom import generate
from structgen.integrations.transformers.processor import GrammarLogitsProcessor

__all__ = ["GrammarLogitsProcessor", "generate", "generate_batch"]
