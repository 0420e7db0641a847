"""The table of masks: rows that repeat are sent once, whatever else happens to them."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from structgen.errors import BitmaskError  # noqa: E402
from structgen.generation.sampling import SamplingParams  # noqa: E402
from structgen.generation.sampling.device_masks import MaskTable, SentMasks  # noqa: E402
from structgen.generation.sampling.torch_sampler import TorchSampler  # noqa: E402
from tests.generation.sampling.oracle import requests  # noqa: E402


def rows(*seeds: int, words: int = 7) -> np.ndarray:
    """A bitmask with a random row for each seed, the same for the same seed."""
    return np.array([np.random.default_rng(seed).integers(-(2**31), 2**31, words, np.int64) for seed in seeds]).astype(
        np.int32
    )


DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def table(capacity: int, words: int = 7) -> MaskTable:
    return MaskTable(words, DEVICE, max_bytes=capacity * 4 * 8)


def content(sent: SentMasks) -> np.ndarray:
    sent.wait()
    there = sent.rows.cpu().numpy()[sent.slots]
    assert not there[:, sent.words :].any()
    return there[:, : sent.words]


@pytest.mark.first_case
@pytest.mark.parametrize("words", [1, 4, 7, 8, 33])
def test_masks_arrive(words: int) -> None:
    made = MaskTable(words, DEVICE)
    bitmask = rows(1, 2, 1, 3, words=words)
    sent = made.send(bitmask)
    assert np.array_equal(content(sent), bitmask)
    assert sent.slots[0] == sent.slots[2] and len(made) == 3
    assert (made.hits, made.misses) == (1, 3)


def test_rows_that_are_there_are_not_sent_again() -> None:
    made = table(8)
    made.send(rows(1, 2, 3))
    before = made.transferred
    sent = made.send(rows(3, 1, 3, 2))
    assert made.transferred == before
    assert np.array_equal(content(sent), rows(3, 1, 3, 2))


def test_a_step_transfers_its_new_rows_and_little_more() -> None:
    made = table(50)
    rng = np.random.default_rng(0)
    known: set[int] = set()
    for _ in range(30):
        seeds = rng.integers(0, 40, 6).tolist()
        new = len({*seeds} - known)
        known |= {*seeds}
        before = made.transferred
        made.place(made.send(rows(*seeds)))
        assert made.transferred - before <= new * (4 * 7 + 20) + 4 * len(seeds)


def test_what_was_not_used_for_longest_gives_way() -> None:
    made = table(3)
    for seed in (1, 2, 3, 1, 4):
        made.send(rows(seed))
    gc.collect()
    before = made.misses
    for seed in (1, 3, 4):
        made.send(rows(seed))
    assert made.misses == before
    made.send(rows(2))
    assert made.misses == before + 1 and len(made) == 3


def test_masks_in_use_stay() -> None:
    made = table(3)
    held = made.send(rows(1, 2))
    for seed in range(3, 9):
        assert np.array_equal(content(made.send(rows(seed))), rows(seed))
    assert np.array_equal(content(held), rows(1, 2))


def test_more_rows_than_there_is_room_for() -> None:
    made = table(3)
    held = made.send(rows(1, 2))
    seeds = [1, 5, 6, 7, 5]
    bitmask = rows(*seeds)
    sent = made.send(bitmask)
    bitmask[:] = 0
    assert np.array_equal(content(sent), rows(*seeds)) and sent.rows is not made.rows
    assert np.array_equal(content(held), rows(1, 2))
    del held, sent
    assert np.array_equal(content(made.send(rows(5, 6, 7))), rows(5, 6, 7))
    with pytest.raises(BitmaskError, match="more room"):
        made.place(made.send(rows(*range(9))))


def test_a_collision_does_not_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MaskTable, "_keys", lambda self, rows: [(0, 0)] * len(rows))
    made = table(4)
    rng = np.random.default_rng(1)
    for _ in range(20):
        seeds = rng.integers(0, 6, 3).tolist()
        assert np.array_equal(content(made.send(rows(*seeds))), rows(*seeds))


def test_rows_that_differ_in_a_bit_differ() -> None:
    made = MaskTable(8, DEVICE)
    flipped = rows(*[1] * 257, words=8)
    bits = np.unpackbits(flipped.view(np.uint8), axis=1)
    bits[np.arange(256), np.arange(256)] ^= 1
    flipped = np.packbits(bits, axis=1).view(np.int32)
    assert len(set(made._keys(flipped))) == 257
    assert np.array_equal(content(made.send(flipped)), flipped)


def test_addresses_stay() -> None:
    made = table(4)
    addresses = made.rows.data_ptr(), made.numbers.data_ptr()
    for seed in range(9):
        numbers = made.place(made.send(rows(seed, seed + 1)))
        made.wait()
        there = made.rows.index_select(0, numbers.long()).cpu().numpy()[:, :7]
        assert np.array_equal(there, rows(seed, seed + 1))
        assert (made.rows.data_ptr(), numbers.data_ptr()) == addresses


def masked(made: MaskTable, logits: Any) -> Any:
    """Logits by the rows whose numbers are in the table, as a decoding step has them."""
    words = made.rows.index_select(0, made.numbers[:2].long())
    bits = (words[:, :, None] >> torch.arange(32, dtype=torch.int32, device=logits.device)) & 1
    return logits.masked_fill(bits.view(2, -1)[:, :100] == 0, -torch.inf)


def test_a_compiled_function_sees_new_rows() -> None:
    made, logits = table(4), torch.zeros(2, 100, device=DEVICE)
    compiled = torch.compile(lambda logits: masked(made, logits), backend="eager", fullgraph=True)
    for seed in range(3):
        made.place(made.send(rows(seed, seed + 1)))
        made.wait()
        assert torch.equal(compiled(logits), masked(made, logits))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_captured_graph_sees_new_rows() -> None:
    made, logits = table(4), torch.zeros(2, 100, device=DEVICE)
    made.place(made.send(rows(1, 2)))
    made.wait()
    masked(made, logits)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = masked(made, logits)
    for seed in range(9):
        made.place(made.send(rows(seed, seed + 1)))
        made.wait()
        graph.replay()
        made.used()
        assert torch.equal(captured, masked(made, logits))


def test_the_bound_holds() -> None:
    made = MaskTable(4000, DEVICE, max_bytes=100_000)
    assert made.rows.numel() * 4 <= 100_000
    for seed in range(20):
        made.send(rows(seed, words=4000))
    assert len(made) == len(made.rows) == 6


def test_another_width_is_named() -> None:
    with pytest.raises(BitmaskError, match="made for 7"):
        table(3).send(rows(1, words=8))


def test_a_sampler_draws_from_its_table() -> None:
    sampler = TorchSampler("cpu")
    sampler._table_bytes = 4 * 8 * 5  # a CPU has none of its own accord
    rng = np.random.default_rng(2)
    for _ in range(10):
        bitmask = rows(*rng.integers(0, 8, 4).tolist()) | 1
        logits = torch.from_numpy(rng.normal(0, 1, (4, 7 * 32)).astype(np.float32))
        asked = requests(4, [SamplingParams(), SamplingParams(temperature=1.0)])
        before = sampler.transferred
        drawn = sampler.draw(logits, sampler.send(bitmask), asked)
        assert sampler.transferred - before <= 4 * 40 + 2 * 5 * 16  # of each row its parameters, aligned by steps
        plain = TorchSampler("cpu")
        assert np.array_equal(drawn.token_ids, plain.draw(logits, plain.send(bitmask), asked).token_ids)
    made = sampler.table(7)
    assert made.hits > 0 and made.misses > 0
