"""Contrastive search against a loop that rereads everything, over a random model of two layers."""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import numpy as np
import pytest

from structgen.errors import GenerationError, OptionsError
from structgen.generation.models.transformers_model import TransformersModel
from structgen.generation.search.beam import Beam
from structgen.generation.search.contrastive import Contrastive
from tests.generation.search.small_worlds import PROMPT, Tokens, World, tokens_of, world
from tests.many import cases

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")


@cache
def llama(seed: int) -> Any:
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=6, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.8,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def read(model: Any, tokens: Tokens) -> tuple[Any, Any]:
    """Log-probabilities of the next token, and a state for each token, the prompt's included."""
    with torch.no_grad():
        output = model(torch.tensor([[*PROMPT, *tokens]]), output_hidden_states=True, use_cache=False)
    return torch.log_softmax(output.logits[0, -1].double(), -1).numpy(), output.hidden_states[-1][0].double().numpy()


def can_end(made: World, tokens: Tokens) -> bool:
    return any(tokens == output[: len(tokens)] for output in made.outputs)


def naive(made: World, model: Any, alpha: float, k: int) -> tuple[Tokens, float]:
    """The output, and by how much its closest choice was won."""
    tokens: Tokens = ()
    margin = np.inf
    while True:
        log_probs, states = read(model, tokens)
        # all that the constraint allows shares the mass; what cannot be closed in time is not compared
        free = World(made.grammar, made.model, 99).allowed(tokens)
        free = [token for token in free if token == 0 or len(tokens) < made.limit]
        ranked = sorted(free, key=lambda token: (-log_probs[token], (token - 1) % 99))
        closable = [t for t in ranked if (tokens in made.outputs if t == 0 else can_end(made, (*tokens, t)))]
        compared = closable[: k if len(free) > k else 1]
        p = np.exp([log_probs[token] - np.logaddexp.reduce(log_probs[free]) for token in compared])
        scores = list(p)
        if len(compared) > 1:
            unit = states / np.linalg.norm(states, axis=1, keepdims=True)
            for place, token in enumerate(compared):
                state = read(model, (*tokens, token))[1][-1]
                closest = float((unit @ state / np.linalg.norm(state)).max())
                scores[place] = (1 - alpha) * p[place] - alpha * closest
            margin = min(margin, float(np.diff(np.sort(scores)[-2:])[0]))
        margin = min([margin, *(a - b for a, b in itertools.pairwise(sorted(log_probs[free], reverse=True)))])
        chosen = compared[int(np.argmax(scores))]
        if chosen == 0:
            return tokens, margin
        tokens = (*tokens, chosen)


@pytest.mark.parametrize("seed", cases(200, 12))
def test_it_is_the_naive_loop(seed: int) -> None:
    model = llama(seed % 7)
    made = world(seed, limit=4 + seed % 3)
    made.model = TransformersModel(model)
    for alpha, k in ((0.6, 2), (0.9, 3), (0.3, 4)):
        expected, margin = naive(made, model, alpha, k)
        if margin > 1e-4:
            assert tokens_of(made.run(Contrastive(penalty_alpha=alpha, top_k=k))) == [expected]


@pytest.mark.parametrize("seed", cases(40, 5))
def test_without_the_penalty_it_is_greedy(seed: int) -> None:
    """And so it is with one token to compare."""
    made = world(seed)
    greedy = tokens_of(made.run(Beam(num_beams=1, early_stopping=True, score="local", length_penalty=0.0)))
    assert tokens_of(made.run(Contrastive(penalty_alpha=0.0))) == greedy
    assert tokens_of(made.run(Contrastive(penalty_alpha=0.9, top_k=1))) == greedy


def test_it_needs_hidden_states_and_one_prompt() -> None:
    from structgen import regex
    from structgen.generation.search import Guidance
    from tests.server.tiny import generator

    one = generator(template=None)
    assert one.search("A ", regex("[ab]{5}"), method="contrastive").stats.model_calls <= 12
    with pytest.raises(OptionsError, match="one prompt"):
        one.search("A ", regex("[ab]{5}"), method="contrastive", guidance=Guidance(without="x"))
    one.model.full_attention = False  # type: ignore[attr-defined]
    with pytest.raises(GenerationError, match="Hidden states"):
        one.search("A ", regex("[ab]{5}"), method="contrastive")
