"""What a language model can do beyond ``LanguageModel``, as one value: all that others ask of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from structgen.errors import ModelError

if TYPE_CHECKING:
    from structgen.generation.models.model_runner import RaggedReader


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCapabilities:
    """What a model can do, and says of itself; what is left out it cannot do, or does not say.

    A model declares it as its attribute ``capabilities``. One without has the members that are named as the fields
    here: ``forward_tree``, ``parameter_count``, and so on.

    Attributes:
        forward_last: as ``forward``, with the logits [sequences, V] after the last token only.
        forward_tree: see ``TreeLanguageModel``: what drafts need. ``why_no_trees``: why it cannot be used now.
        forward_visible: see ``VisibleLanguageModel``. A model without a declaration says by ``full_attention`` whether
            it can be used.
        hidden_states: within, each call appends the last layer's states [rows, n, H] after the tokens that it reads to
            the list that this gives.
        ragged_reader: its own reader of sequences, one a model; without, sequences are packed or padded.
        deterministic: of its own reader, whether it reads one token a call; None: it cannot be made to.
        asynchronous: whether calls return before the model has read: logits are waited for when they are looked at,
            and the processor is free till then.
        prepare_for_trees: makes forwards of a few tokens cheap.
        reads_by: how it reads now; what is known of the time of its calls is forgotten where that changes.
        step_costs: what calls for so many tokens cost, in calls for one: what drafts go by until they have learned it.
        fingerprint: a digest that is the same in every process.
        parameter_count: how many numbers its weights are.
        sampling_settings: how its authors have tokens drawn (``defaults.SAMPLING``).
        eos_token_ids: all ids that end a reply.
    """

    forward_last: Callable[[Sequence[Sequence[int]], Any], Any] | None = None
    forward_tree: Callable[[Sequence[Sequence[int]], Sequence[Sequence[int]], Any], Any] | None = None
    why_no_trees: str | None = None
    forward_visible: Callable[[Sequence[Sequence[int]], Any, Any, Any], Any] | None = None
    hidden_states: Callable[[], AbstractContextManager[list[Any]]] | None = None
    ragged_reader: Callable[[], RaggedReader] | None = None
    deterministic: bool | None = None
    asynchronous: bool = False
    prepare_for_trees: Callable[[], object] | None = None
    reads_by: Callable[[], Hashable] | None = None
    step_costs: Sequence[tuple[int, float]] | None = None
    fingerprint: Callable[[], str] | None = None
    parameter_count: Any = None
    sampling_settings: Mapping[str, Any] | None = None
    eos_token_ids: Iterable[int] = ()

    @property
    def reads_trees(self) -> bool:
        """Whether drafts, and predictions, can be read."""
        return self.forward_tree is not None and self.why_no_trees is None


def capabilities_of(model: Any) -> ModelCapabilities:
    """What a ``LanguageModel`` declares; of one that declares nothing, the members that it has."""
    declared = getattr(model, "capabilities", None)
    if isinstance(declared, ModelCapabilities):
        return declared
    names = [field.name for field in fields(ModelCapabilities) if hasattr(model, field.name)]
    result: dict[str, Any] = {name: getattr(model, name) for name in names}
    if not getattr(model, "full_attention", True):
        result.pop("forward_visible", None)
    if "reads_by" in result:
        result["reads_by"] = lambda: model.reads_by
    return ModelCapabilities(**result)


class HiddenStates:
    """A model that keeps the states of its calls while somebody wants them: it appends to ``_states`` unless that is
    None."""

    _states: list[Any] | None = None

    @contextmanager
    def hidden_states(self) -> Iterator[list[Any]]:
        """See ``ModelCapabilities.hidden_states``."""
        states = self._states = []
        try:
            yield states
        finally:
            self._states = None


def prepare_for_trees(model: Any) -> None:
    """Let a model make forwards of a few tokens cheap, where it can."""
    prepare = capabilities_of(model).prepare_for_trees
    if prepare is not None:
        prepare()


def check_reads_trees(model: Any) -> None:
    """Raise where a model cannot read drafts.

    Raises:
        ModelError: it lacks ``forward_tree``, or what it says in ``why_no_trees``.
    """
    capabilities = capabilities_of(model)
    if capabilities.why_no_trees is not None:
        raise ModelError(capabilities.why_no_trees)
    if capabilities.forward_tree is None:
        raise ModelError(f"Drafts need a model with forward_tree, which {type(model).__name__} lacks; pass draft=None.")
