"""The reasoning tasks of the paper (arXiv 2501.10868, section 6): does the constraint cost accuracy?

The model is asked to reason and answer in JSON. *Last letters* and *shuffled objects* are made here, from a seed, after
the descriptions of the tasks (Wei et al. 2022; BIG-Bench Hard); *GSM8K* comes from the Hugging Face hub.
"""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from structgen.benchmarking.prompts import as_prompt
from structgen.benchmarking.schemas import Case, DataError
from structgen.benchmarking.summary import Record, engines_of, select
from structgen.generation.generator import Generator

REASONING_LENGTH = 240  # characters
NAMES = (
    "Ada", "Alan", "Barbara", "Bruno", "Carla", "Chen", "Diego", "Dora", "Emil", "Farah", "George", "Grace", "Hedy",
    "Ivan", "Jonas", "Kim", "Lina", "Marie", "Nora", "Omar", "Paula", "Quinn", "Rosa", "Sven", "Tariq", "Uma", "Victor",
    "Wendy", "Xavier", "Yusuf", "Zoe",
)  # fmt: skip
PLAYERS = ("Alice", "Bob", "Claire")
COLOURS = ("red", "blue", "green", "yellow", "purple", "orange", "white", "black")
GSM8K = "openai/gsm8k"


def last_letters(count: int, seed: int = 0) -> list[Case]:
    """Concatenate the last letters of four names."""
    rng, answer = random.Random(f"last letters {seed}"), {"type": "string", "pattern": "^[a-z]{4}$"}
    shot = _turns(
        'Take the last letters of the words in "Eva Max Otto Ruth" and concatenate them.',
        "The last letters are a, x, o and h.",
        "axoh",
    )
    cases = []
    for number in range(count):
        words = rng.sample(NAMES, 4)
        question = f'Take the last letters of the words in "{" ".join(words)}" and concatenate them.'
        cases.append(_case("last_letters", number, shot, question, answer, "".join(word[-1] for word in words)))
    return cases


def shuffled_objects(count: int, seed: int = 0) -> list[Case]:
    """Three players swap balls three times: which one does a player hold in the end?"""
    rng = random.Random(f"shuffled objects {seed}")
    shot = _turns(
        "Alice, Bob and Claire each hold a ball: Alice red, Bob blue, Claire green. First Alice and Bob swap balls. "
        "Then Bob and Claire swap balls. Which ball does Claire hold in the end?",
        "After the first swap Alice has blue and Bob red. After the second Bob has green and Claire red.",
        "red",
    )
    cases = []
    for number in range(count):
        colours = rng.sample(COLOURS, 3)
        holds = dict(zip(PLAYERS, colours, strict=True))
        holdings = ", ".join(f"{player} {colour}" for player, colour in holds.items())
        text = f"{', '.join(PLAYERS[:-1])} and {PLAYERS[-1]} each hold a ball: {holdings}."
        for word in ("First", "Then", "Finally"):
            one, other = rng.sample(PLAYERS, 2)
            holds[one], holds[other] = holds[other], holds[one]
            text += f" {word} {one} and {other} swap balls."
        asked = rng.choice(PLAYERS)
        text += f" Which ball does {asked} hold in the end?"
        cases.append(_case("shuffled_objects", number, shot, text, {"enum": sorted(colours)}, holds[asked]))
    return cases


def gsm8k(count: int, seed: int = 0) -> list[Case]:
    """Grade-school mathematics, the test split.

    Raises:
        DataError: the hub cannot be reached, or the package datasets is missing.
    """
    try:
        import datasets

        rows = list(datasets.load_dataset(GSM8K, "main", split="test"))
    except ImportError as error:
        raise DataError("Reading the hub needs the package datasets: pip install 'structgen-lm[bench]'") from error
    except Exception as error:  # datasets, its HTTP client and its file systems raise errors of many kinds
        raise DataError(f"Cannot read {GSM8K} from the hub: {error}. Leave gsm8k out of --tasks.") from error
    shot = _turns("Tom has 3 bags of 4 apples and eats 2. How many are left?", "3 * 4 = 12 and 12 - 2 = 10.", 10)
    chosen = random.Random(f"gsm8k {seed}").sample(rows, min(count, len(rows)))
    answers = [int(row["answer"].rpartition("####")[2].strip().replace(",", "")) for row in chosen]
    number = {"type": "integer"}
    return [
        _case("gsm8k", number_of_case, shot, row["question"], number, answer)
        for number_of_case, (row, answer) in enumerate(zip(chosen, answers, strict=True))
    ]


TASKS: dict[str, Callable[[int, int], list[Case]]] = {
    "last_letters": last_letters,
    "shuffled_objects": shuffled_objects,
    "gsm8k": gsm8k,
}


def correct(record: Record) -> bool:
    """Whether an output has the right answer: in its JSON, else in what looks like it (which helps "none" only)."""
    text = str(record.get("text", ""))
    try:
        answer_found = json.loads(text)["answer"]
    except (ValueError, TypeError, KeyError, RecursionError):
        match = re.search(r'"answer"\s*:\s*"?([^",}\n]+)', text)
        answer_found = match[1].strip() if match else None
    return answer_found is not None and str(answer_found).strip().lower() == str(record["answer"]).lower()


def accuracy_rows(records: Sequence[Record]) -> list[list[str]]:
    """Rows of a table: task, sampling, engine, questions, accuracy, share of valid outputs."""
    rows = []
    for task in dict.fromkeys(record["dataset"] for record in records):
        for sampling in dict.fromkeys(record["sampling"] for record in records):
            for engine in engines_of(records):
                chosen = select(records, dataset=task, sampling=sampling, engine=engine)
                if chosen:
                    right = sum(map(correct, chosen)) / len(chosen)
                    valid = sum(record.get("judgement") == "valid" for record in chosen) / len(chosen)
                    figures = (f"{100 * right:.1f} %", f"{100 * valid:.1f} %")
                    rows.append([task, sampling, engine, str(len(chosen)), *figures])
    return rows


def local_against_aligned(
    generator: Generator, cases: Sequence[Case], n: int, *, max_new_tokens: int, method: Any = "smc", seed: int = 0
) -> list[Record]:
    """Mean log-probability under the model (nats) of ``n`` samples of masking alone and of the aligned target.

    The local target masks and renormalises at each step; the aligned one is the model's own distribution given the
    constraint, which ``method`` approximates (see ``Generator.sample``). Model calls: about 2 · n outputs a case.
    """
    records = []
    for case in cases:
        constraint, means = json.loads(case.schema_text), {}
        prompt = as_prompt(generator.tokenizer, case.prompt)
        options: dict[str, Any] = {"max_new_tokens": max_new_tokens, "schema_in_prompt": False}
        for name in ("local", method):
            run = generator.sample(prompt, constraint, n, name, seed=seed, **options)
            means[name] = _mean(
                [s.log_prob for s in run.samples], [s.log_weight * (name != "local") for s in run.samples]
            )
        records.append({"case": case.name, "n": n, "local": means["local"], "aligned": means[method]})
    return records


def _mean(values: Sequence[float], log_weights: Sequence[float]) -> float:
    """Weighted mean; NaN of none."""
    weights = [math.exp(weight - max(log_weights)) for weight in log_weights]
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights) if weights else math.nan


def _turns(question: str, reasoning: str, answer: Any) -> tuple[tuple[str, str], ...]:
    """The task and a worked example, as (role, content)."""
    task = 'Reason in a few words, then answer. Write JSON on one line: {"reasoning": ..., "answer": ...}'
    return (
        ("system", task),
        ("user", question),
        ("assistant", json.dumps({"reasoning": reasoning, "answer": answer})),
    )


def _case(task: str, number: int, shot: Any, question: str, answer_schema: Any, answer: Any) -> Case:
    schema = {
        "type": "object",
        "properties": {"reasoning": {"type": "string", "maxLength": REASONING_LENGTH}, "answer": answer_schema},
        "required": ["reasoning", "answer"],
        "additionalProperties": False,
    }
    return Case(task, f"{task}---{number}", json.dumps(schema), (*shot, ("user", question)), str(answer))
