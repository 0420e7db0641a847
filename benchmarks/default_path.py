"""The default path beside bare loops over the same wheel and file, and its server beside that wheel's own, in one run.

    python benchmarks/default_path.py [--only speed demo together turns] [--tokens 96] [--repeats 5] [--out FILE]

``speed``: tokens a second of ``Generator()`` (free text, and a schema) beside the better of two bare loops over
cyllama, one thread and all threads, without structgen; quiet, and with one other busy process. A bare loop takes the
likeliest token after a prompt as long as the one that ``Generator()`` reads. They take turns, each in a process of its
own; the figure is the median of the repeats, without the reading of the prompt.
``demo``: seconds from the start of ``structgen demo`` to the end of its first object, once all was loaded before.
``together``: 32 constrained requests to ``structgen serve`` at once, and one by one; and the same to the wheel's own
server and its own batches, which know of no constraints: the schema stands in the prompt. (The server of 0.2.18 takes
what ``decode`` returns for an error, and writes nothing.)
``turns``: of the tokens of a chat's first turn, prompt and answer, how many the second turn reads again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # what is measured

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "born": {"type": "integer"},
        "field": {"enum": ["maths", "physics", "chemistry"]},
        "works": {"type": "array", "items": {"type": "string", "maxLength": 60}, "maxItems": 4},
    },
    "required": ["name", "born", "field", "works"],
    "additionalProperties": False,
}
PERSONS = {"type": "array", "minItems": 6, "items": PERSON}
PROMPT = "Write about the scientists of the 19th century, one after the other, and what each is known for."
REQUESTS = 32
MAX_TOKENS = 64
LEAST = 110  # tokens that the shortest output of PERSONS takes
BEFORE = 26.0  # tokens a second of requests one by one, before 32 rows were worth their name


# Workers: each measures what its standard input asks for, a line each.


def bare_worker(threads: int) -> None:
    """A loop over cyllama, and nothing else."""
    import cyllama.llama.llama_cpp as library

    from structgen.generation.models.built_in import default_model_file

    class Sized(library.LlamaModel):
        """Contexts ask models for ``n_vocab``, which these lack in 0.2.18."""

        @property
        def n_vocab(self) -> int:
            return int(self.get_vocab().n_vocab)

    library.disable_logging()
    library.ggml_backend_load_all()
    model = Sized(str(default_model_file()), library.LlamaModelParams())
    params = library.LlamaContextParams()
    params.n_ctx, params.n_threads, params.n_threads_batch, params.no_perf = 2048, threads, threads, True
    context = library.LlamaContext(model, params)
    batch = library.LlamaBatch(n_tokens=512, embd=0, n_seq_max=1, verbose=False)
    sampler = library.LlamaSampler(library.LlamaSamplerChainParams())
    sampler.add_greedy()
    text = model.get_vocab().tokenize(PROMPT, True, True)

    def measure(what: str, tokens: int, prompt_tokens: int) -> float:
        prompt = (text * (prompt_tokens // len(text) + 1))[:prompt_tokens]
        tokens += LEAST if what == "schema" else 0
        context.kv_cache_clear()
        batch.clear()
        for place, token in enumerate(prompt):
            batch.add(token, place, [0], place == len(prompt) - 1)
        context.decode(batch)
        start = time.perf_counter()
        for place in range(len(prompt), len(prompt) + tokens):
            token = sampler.sample(context, -1)
            batch.clear()
            batch.add(token, place, [0], True)
            context.decode(batch)
        return tokens / (time.perf_counter() - start)

    answer(measure)


def structgen_worker() -> None:
    """``Generator()`` as it comes."""
    from structgen.generation.generator import Generator

    generator = Generator()

    def measure(what: str, tokens: int, prompt_tokens: int) -> float:
        constraint = PERSONS if what == "schema" else None
        if not tokens:
            return float(generator.generate(PROMPT, constraint, max_new_tokens=LEAST).stats.prompt_tokens)
        for _ in range(2):  # the first reads the prompt and makes the masks
            start = time.perf_counter()
            result = generator.generate(
                PROMPT, constraint, max_new_tokens=tokens + (0 if constraint is None else LEAST)
            )
            seconds = time.perf_counter() - start
        return len(result.token_ids) / seconds

    answer(measure)


def answer(measure: Callable[[str, int, int], float]) -> None:
    """Measure what is asked for."""
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        print(json.dumps(measure(*json.loads(line))), flush=True)


# What is asked of them.


def clean() -> dict[str, str]:
    """The environment of a newcomer: nothing is said about threads."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}


@contextlib.contextmanager
def busy(is_busy: bool) -> Iterator[None]:
    """Another process that computes all the time."""
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if is_busy else None
    try:
        yield
    finally:
        if other is not None:
            other.kill()
            other.wait()


def speed(options: argparse.Namespace) -> dict[str, Any]:
    """Tokens a second, by turns."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    command = [sys.executable, str(Path(__file__).resolve()), "--worker"]
    names = {"one thread": "bare 1", "all threads": f"bare {cores}", "Generator()": "structgen"}
    workers = {
        name: subprocess.Popen(
            [*command, how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean()
        )
        for name, how in names.items()
    }  # fmt: skip
    for worker in workers.values():
        asked(worker, None)
    found: dict[str, Any] = {}
    prompts = {what: int(asked(workers["Generator()"], (what, 0, 0))) for what in ("text", "schema")}
    for place in ("quiet", "busy"):
        seen: dict[str, list[float]] = {}
        with busy(place == "busy"):
            for _ in range(options.repeats):
                for name, worker in workers.items():
                    for what in ("text", "schema"):  # the same number of tokens
                        tokens = options.tokens if place == "quiet" or name != "all threads" else options.tokens // 4
                        seen.setdefault(f"{name}, {what}", []).append(asked(worker, (what, tokens, prompts[what])))
        rates = {name: statistics.median(each) for name, each in seen.items()}
        best = {
            what: max(rate for name, rate in rates.items() if name.endswith(what) and not name.startswith("Generator"))
            for what in ("text", "schema")
        }
        ratios = {
            name: rate / best[name.rpartition(" ")[2]] for name, rate in rates.items() if name.startswith("Generator")
        }
        found[place] = {"tokens_a_second": rates, "of_the_better_bare_loop": ratios, "bar": 0.9}
        for name, rate in rates.items():
            ratio = f"  {ratios[name]:.2f} of the better bare loop (at least 0.9)" if name in ratios else ""
            print(f"{place:>5}  {name:<22} {rate:7.1f} tokens/s{ratio}", flush=True)
    for worker in workers.values():
        worker.communicate()
    return found


def asked(worker: Any, question: Any) -> Any:
    """Send a question (None: none, it is loading) and wait for the answer."""
    if question is not None:
        worker.stdin.write(json.dumps(question) + "\n")
        worker.stdin.flush()
    line = worker.stdout.readline()
    if not line:
        raise SystemExit(f"a worker has ended: {worker.args}")
    return json.loads(line)


def demo(options: argparse.Namespace) -> dict[str, Any]:
    """Seconds to the first object, the best of the starts but the first."""
    found = list[float]()
    for _ in range(options.repeats + 1):
        start = time.perf_counter()
        command = [sys.executable, "-u", "-m", "structgen.cli.main", "demo", "--only", "person"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=clean()) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if line.rstrip() == "}":
                    found.append(time.perf_counter() - start)
                    break
            else:
                raise SystemExit("the demo has written no object")
            process.stdout.read()
    seconds = min(found[1:])
    print(f"demo   first object after {seconds:.2f} s (at most 3)", flush=True)
    return {"seconds": seconds, "bar": 3.0}


# Servers.


@contextlib.contextmanager
def serving(arguments: list[str], port: int, path: str) -> Iterator[str]:
    """A server, once it answers: its address."""
    process = subprocess.Popen(
        [sys.executable, *arguments], cwd=ROOT, env=clean(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    address = f"http://127.0.0.1:{port}"
    try:
        until = time.monotonic() + 120
        while True:
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                urllib.request.urlopen(address + path, timeout=5).close()
                break
            if time.monotonic() > until or process.poll() is not None:
                raise SystemExit(f"the server does not come up: {arguments}")
            time.sleep(0.2)
        yield address
    finally:
        process.terminate()
        process.wait(30)


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        return int(own.getsockname()[1])


def tokens_of(address: str, body: dict[str, Any]) -> int:
    """Send a request: how many tokens its answer has."""
    request = urllib.request.Request(
        address + "/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=600) as response:
        return int(json.load(response)["usage"]["completion_tokens"])


def rate(address: str, bodies: list[dict[str, Any]], at_once: int) -> float:
    """Tokens a second of so many requests at once."""
    start = time.perf_counter()
    with ThreadPoolExecutor(at_once) as pool:
        tokens = sum(pool.map(lambda body: tokens_of(address, body), bodies))
    return tokens / (time.perf_counter() - start)


def bodies(count: int, constrained: bool, first: int = 0) -> list[dict[str, Any]]:
    """Requests for persons, each with another prompt."""
    made = []
    for number in range(first, first + count):
        text = f"Describe scientist number {number} of the 19th century."
        body: dict[str, Any] = {"model": "default", "temperature": 0, "max_tokens": MAX_TOKENS}
        if constrained:
            schema = {"name": "person", "schema": PERSON}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        else:
            text += f"\nAnswer with JSON of this schema: {json.dumps(PERSON)}"
        made.append({**body, "messages": [{"role": "user", "content": text}]})
    return made


def own_batches_worker() -> None:
    """The wheel's own batches, without constraints."""
    from cyllama.api import GenerationConfig
    from cyllama.batching import BatchGenerator

    from structgen.generation.models.built_in import default_model_file

    texts = [body["messages"][0]["content"] for body in bodies(REQUESTS, False)]
    generator = BatchGenerator(str(default_model_file()), batch_size=8192, n_ctx=8192, n_seq_max=REQUESTS)

    def measure(_: str, tokens: int, __: int) -> float:
        config = GenerationConfig(temperature=0.0, max_tokens=tokens)
        start = time.perf_counter()
        responses = generator.generate_batch(texts, config)
        written = sum(response.stats.generated_tokens for response in responses if response.stats is not None)
        return float(written / (time.perf_counter() - start))

    answer(measure)


def together(_: argparse.Namespace) -> dict[str, Any]:
    """32 requests at once, one by one, and of the wheel's own server."""
    from structgen.generation.models.built_in import default_model_file

    port = free_port()
    arguments = ["-m", "structgen.cli.main", "serve", "--name", "default", "--port", str(port)]
    with serving(arguments, port, "/ready") as address:
        rate(address, bodies(2, True, 1000), 1)  # the constraint is compiled
        at_once = rate(address, bodies(REQUESTS, True), REQUESTS)
        one_by_one = rate(address, bodies(REQUESTS // 4, True, 500), 1)
    port = free_port()
    arguments = ["-m", "cyllama.llama.server", "-m", str(default_model_file()), "--port", str(port)]
    with serving(arguments, port, "/v1/models") as address:
        rate(address, bodies(1, False, 1000), 1)
        own = rate(address, bodies(REQUESTS // 4, False), 4)  # it writes one after the other, and few may wait
    command = [sys.executable, str(Path(__file__).resolve()), "--worker", "batches"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=clean()) as worker:
        asked(worker, None)
        batches = asked(worker, ("text", MAX_TOKENS, 0))
        worker.communicate()
    found = {
        "at_once": at_once, "one_by_one": one_by_one, "own_server": own, "own_batches": batches,
        "times_before": at_once / BEFORE,
    }  # fmt: skip
    print(
        f"serve  {at_once:.1f} tokens/s with {REQUESTS} constrained requests at once: {at_once / BEFORE:.1f} times one "
        f"by one before (at least 4); now {one_by_one:.1f}; the wheel's own server, unconstrained {own:.1f}, "
        f"its own batches {batches:.1f}",
        flush=True,
    )
    return found


def turns(_: argparse.Namespace) -> dict[str, Any]:
    """Tokens that the second turn of a chat reads again."""
    from structgen.generation.generator import Generator

    generator = Generator()
    reader, found = generator.reader, {}
    read, tokens = reader.read, [0]

    def counted(parts: Any) -> Any:
        tokens[0] += sum(len(part.tokens) for part in parts)
        return read(parts)

    reader.read = counted  # type: ignore[method-assign]
    for what, constraint in (("text", None), ("schema", PERSON)):
        options: dict[str, Any] = {"max_new_tokens": 120, "schema_in_prompt": "system"}
        messages = [{"role": "user", "content": "Tell me of Ada Lovelace, and of what she wrote."}]
        first = generator.generate(messages, constraint, **options)
        whole = first.stats.prompt_tokens + len(first.token_ids)
        messages += [{"role": "assistant", "content": first.text}, {"role": "user", "content": "And Charles Babbage?"}]
        tokens[0] = 0
        second = generator.generate(messages, constraint, **options)
        new = second.stats.prompt_tokens - whole
        again = max(0, tokens[0] - len(second.token_ids) - new)
        found[what] = {"first_turn": whole, "read": tokens[0], "again": again, "share": again / whole, "bar": 0.05}
        print(f"turns  {what}: {again} of {whole} tokens read again, {again / whole:.1%} (at most 5 %)", flush=True)
    return found


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "speed": speed, "demo": demo, "together": together, "turns": turns,
}  # fmt: skip


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--tokens", type=int, default=96, help="of a loop")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        kind, _, threads = options.worker.partition(" ")
        if kind == "bare":
            bare_worker(int(threads))
        elif kind == "batches":
            own_batches_worker()
        else:
            structgen_worker()
        return
    found = {name: PARTS[name](options) for name in options.only}
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
