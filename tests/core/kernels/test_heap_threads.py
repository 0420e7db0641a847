"""Matchers of one grammar in several threads: the kernel runs without the GIL, under the lock of its heap."""

from __future__ import annotations

import hashlib
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from structgen.core.engines.cfg.compiled import compile_grammar
from structgen.core.engines.lalr.compiled import compile_contextual
from structgen.core.kernels.heaps import Heap
from structgen.core.vocabulary.vocabulary import Vocabulary
from tests.core.engines.cfg.lark_grammars import JSON, normal_form

pytest.importorskip("lark")
THREADS = 4
TEXTS = [
    b'{"a": [1, 2, {"b": null}], "c": "\\u00e9"}', b"[[[[]]], -12.5e7, true]", b'"plain"', b'{"": {"": {"": []}}}',
    b'[0.5, "x\\n", {"k": false}, [], {}, [[1], [2, 3]]]', '["é€", {"ü": "😀"}]'.encode(),
]  # fmt: skip


def vocabulary(count: int) -> Vocabulary:
    rng = random.Random(7)
    parts = [b'"', b": ", b"{", b"}", b"[", b"]", b", ", b"12", b".5", b"true", b"nul", b"ab", b"\\n", "é".encode()]
    tokens = {b"".join(rng.choices(parts, k=rng.randrange(2, 7))) for _ in range(count)}
    return Vocabulary([bytes([byte]) for byte in range(256)] + sorted(tokens) + [b""], eos_token_ids=256 + len(tokens))


SMALL = vocabulary(3000)
ENGINES: dict[str, Callable[[Vocabulary], Any]] = {
    "cfg": lambda words: compile_grammar(normal_form(JSON), words),
    "lalr": lambda words: compile_contextual(JSON, words),
}


def read(grammar: Any, text: bytes) -> str:
    """Read a text and a little beside it; a digest of all that was seen."""
    seen, matcher = hashlib.sha256(), grammar.matcher()
    row = np.zeros(-(-SMALL.size // 32), np.int32)
    for byte in text:
        matcher.fill_next_token_bitmask(row)
        seen.update(row.tobytes())
        seen.update(matcher.next_bytes().tobytes())
        seen.update(bytes([matcher.is_accepting()]))
        beside = matcher.fork()
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        beside.accept_token(int(allowed[len(allowed) // 2]))
        seen.update(beside.shortest_completion())
        assert matcher.accept_token(byte)
    return seen.hexdigest()


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads that take turns as often as Python can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("engine", ENGINES)
def test_threads_see_what_one_sees(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All learn the same grammar at once, in different orders, while its memory grows under them."""
    begin = Heap.__init__

    def small(self: Heap, run: Any, rehash: int, header: int, sink: int, words: int, slots: int) -> None:
        begin(self, run, rehash, header, sink, header + sink + 64, 16)

    monkeypatch.setattr(Heap, "__init__", small)
    alone = ENGINES[engine](SMALL)
    expected = {text: read(alone, text) for text in TEXTS}
    shared, found, start = (
        ENGINES[engine](SMALL),
        [dict[bytes, str]() for _ in range(THREADS)],
        threading.Barrier(THREADS),
    )
    errors: list[BaseException] = []

    def work(number: int) -> None:
        order = random.Random(number).sample(TEXTS, len(TEXTS))
        start.wait()
        try:
            for text in order:
                found[number][text] = read(shared, text)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    assert not errors, errors
    assert found == [expected] * THREADS


@pytest.mark.parametrize("engine", ENGINES)
def test_a_long_mask_lets_other_threads_go_on(engine: str) -> None:
    """A thread that reads another grammar makes steps during a mask. Nothing but the mask can let it: turns are not
    taken by time here, and between the two counts nothing else lets go of the GIL."""
    words = vocabulary(40_000)
    other, events, done = ENGINES[engine](SMALL), 0, threading.Event()

    def go_on() -> None:
        nonlocal events
        while not done.is_set():
            matcher = other.matcher()
            for byte in TEXTS[0]:
                matcher.accept_token(byte)
                events += 1
                time.sleep(0)  # lets go of the GIL

    row = np.zeros(-(-words.size // 32), np.int32)
    before = sys.getswitchinterval()
    thread = threading.Thread(target=go_on)
    sys.setswitchinterval(1000)
    try:
        thread.start()
        for _ in range(20):  # more than once, as the machine may have no processor free for the other thread
            matcher = ENGINES[engine](words).matcher()
            matcher.accept_bytes(b"[")
            then = events
            matcher.fill_next_token_bitmask(row)
            if events > then:
                break
        else:
            pytest.fail("no step was made during a mask")
    finally:
        sys.setswitchinterval(before)
        done.set()
        thread.join(timeout=60)
    assert np.count_nonzero(row)


def test_a_heap_is_locked_while_it_is_used() -> None:
    """A thread that has the lock is waited for, by masks, steps and reads."""
    grammar = ENGINES["cfg"](SMALL)
    matcher, entered, left = grammar.matcher(), threading.Event(), threading.Event()
    assert matcher.accept_bytes(b"[1")

    def ask() -> None:
        entered.set()
        matcher.copy().accept_token(ord(","))
        matcher.shortest_completion()
        left.set()

    thread = threading.Thread(target=ask)
    with grammar.machine().lock:
        thread.start()
        assert entered.wait(60)
        assert not left.wait(0.05)
    assert left.wait(60)
    thread.join()
