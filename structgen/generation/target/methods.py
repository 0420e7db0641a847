"""The methods of sampling as a table: what each does and what its samples are is written here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from structgen.generation.models.prefix_reader import MAX_BATCH
from structgen.generation.target.results import Method
from structgen.generation.target.walks import Policy


@dataclass(frozen=True, slots=True)
class Specification:
    """A method.

    Attributes:
        about: one line on it.
        policy: how a walk chooses; None where there are no walks.
        scheme: what becomes of the outcomes: each is a sample; chains of Metropolis-Hastings; populations of particles.
        samples: "exact": independent samples of the target; "weighted": with weights that are unbiased for Z;
            "approximate": neither.
        width: most attempts that wait for the model at once: many with the coin; few for walks that are never rejected,
            since these go their ways alone at first.
        as_published: the width is part of the method.
    """

    about: str
    policy: Policy | None
    samples: Literal["exact", "weighted", "approximate"]
    scheme: Literal["walks", "chains", "particles"] = "walks"
    width: int = 8
    as_published: bool = False

    @property
    def exact(self) -> bool:
        """Whether samples are independent samples of the target."""
        return self.samples == "exact"

    @property
    def weighted(self) -> bool:
        """Whether samples carry weights."""
        return self.samples == "weighted"


SPECIFICATIONS: dict[Method, Specification] = {
    "exact": Specification(
        "adaptive rejection with the survival coin: independent samples of the target from the first one",
        Policy(learned=True, coin=True),
        "exact",
        width=MAX_BATCH,
    ),
    "weighted": Specification(
        "the same walk without the coin: no rejection; weights that are unbiased for Z",
        Policy(learned=True, coin=False),
        "weighted",
    ),
    "asap": Specification(
        "as published (Park et al. 2024): one walk after the other, weights thrown away; the first sample is that of "
        "'local', later ones approach the target",
        Policy(learned=True, coin=False),
        "approximate",
        width=1,
        as_published=True,
    ),
    "local": Specification(
        "plain masking, with its importance weights",
        Policy(learned=False, coin=False),
        "weighted",
    ),
    "smc": Specification(
        "particles resampled when their weights degenerate",
        None,
        "weighted",
        scheme="particles",
    ),
    "mh": Specification(
        "Metropolis-Hastings (Anaya Gonzalez et al. 2025): proposals of 'local' from a restart a sample",
        Policy(learned=False, coin=False),
        "approximate",
        scheme="chains",
    ),
    "rejection": Specification(
        "the model's own samples, kept if they are in the language",
        Policy(learned=False, coin=True),
        "exact",
        width=MAX_BATCH,
    ),
}
METHODS: tuple[Method, ...] = tuple(SPECIFICATIONS)
