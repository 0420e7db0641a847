"""What distortion says, against all outputs listed."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import structgen
from structgen.errors import GenerationError, OptionsError
from structgen.generation.generator import Generator
from structgen.generation.models.tiny import TinyModel
from structgen.generation.sampling import SamplingParams
from structgen.generation.search.beam import Beam
from structgen.generation.search.distortion import distortion
from tests.fakes import CharTokenizer, vocabulary
from tests.generation.search.small_worlds import VOCABULARY, World


def truth(made: World) -> tuple[float, float, float]:
    """log Z, KL and TV of the mask alone."""
    whole = np.array([pair[0] for pair in made.outputs.values()])
    local = np.array([pair[1] for pair in made.outputs.values()])
    log_z = float(np.logaddexp.reduce(whole))
    share = np.exp(whole - log_z)
    return log_z, float((np.exp(local) * (local - whole + log_z)).sum()), float(np.abs(np.exp(local) - share).sum() / 2)


@pytest.mark.parametrize("expression", ["aaa|b[abc]{2}", "a|bc|ca{1,3}", "(ab|c){2}"])
def test_the_mask_alone_is_what_all_outputs_say(expression: str) -> None:
    made = World(structgen.compile_regex(expression, VOCABULARY), TinyModel(6, seed=2, scale=1.0), 12)
    seen = distortion(made.space(Beam()), SamplingParams(1.0), 4000, np.random.default_rng(0))
    log_z, kl, tv = truth(made)
    assert seen.log_z == pytest.approx(log_z, abs=0.1)
    assert (seen.kl, seen.tv) == pytest.approx((kl, tv), abs=0.05)
    assert len(seen.log_weights) == 4000 and 1 <= seen.ess <= 4000 + 1e-6


def test_a_mask_that_takes_the_same_from_all_bends_nothing() -> None:
    made = World(structgen.compile_regex("[abc]{3}", VOCABULARY), TinyModel(6, scale=0.0), 3)
    single = World(structgen.compile_regex("a", VOCABULARY), TinyModel(6, scale=1.0), 3)
    seen = distortion(single.space(Beam()), SamplingParams(1.0), 50, np.random.default_rng(0))
    assert seen.kl == pytest.approx(0, abs=1e-9) and seen.tv == pytest.approx(0, abs=1e-9)
    assert seen.costly[0][1] > 0 and "nats after" in str(seen)
    assert distortion(made.space(Beam()), SamplingParams(1.0), 50, np.random.default_rng(0)).kl >= -1e-9


def test_filters_add_to_it() -> None:
    """Of a language that holds everything, a filter's share is all that is lost."""
    made = World(structgen.compile_regex("[abc]{1,3}", VOCABULARY), TinyModel(6, seed=3, scale=1.0), 12)
    for params in (SamplingParams(1.0, top_k=1), SamplingParams(0.5), SamplingParams(1.0, top_p=0.5)):
        seen = distortion(made.space(Beam()), params, 200, np.random.default_rng(0))
        assert max(seen.log_weights) <= 1e-9 and math.isfinite(seen.kl)
    greedy = distortion(made.space(Beam()), SamplingParams(1.0, top_k=1), 20, np.random.default_rng(0))
    assert greedy.variance == pytest.approx(0)  # one output, drawn again and again


def test_generators_say_it(tmp_path: Path) -> None:
    tokens = vocabulary()
    generator = Generator(TinyModel(tokens.size, scale=1.0), CharTokenizer(), vocabulary=tokens)
    seen = generator.distortion("p", structgen.regex("[ab]{2,4}"), n=30, seed=1, top_k=20)
    assert (
        seen.kl >= 0
        and seen.log_weights
        == generator.distortion("p", structgen.regex("[ab]{2,4}"), n=30, seed=1, top_k=20).log_weights
    )
    with pytest.raises(OptionsError, match="temperature"):
        generator.distortion("p", structgen.regex("a"), temperature=0)
    with pytest.raises(GenerationError, match="needs a constraint"):
        generator.distortion("p", None)
    pytest.importorskip("matplotlib")
    seen.plot(tmp_path / "seen.png")
    assert (tmp_path / "seen.png").stat().st_size > 1000
