"""What it is worth to tell a model of its schema: ``python benchmarks/prompt_forms.py RESULTS.json``.

Three tasks whose answers are known, since templates made the texts: *records* (a sentence about a person, four values),
*classification* (a topic of five, or a review good or bad) and *fields* (three facts and a question for one of them,
whose options the schema lists). Every output is constrained; what differs is what the prompt says beforehand. Greedy,
one thread. An item is right if all its values are; the case of letters is not looked at.

RESULTS.json keeps what was done: a run that was broken off goes on from there. Options: ``--model NAME`` (GGUF file,
folder or Hugging Face id; none: the built-in model), ``--backend transformers`` (the same weights in bfloat16, on some
processors twice as fast for batches as llama.cpp), ``--items 200`` of each task, ``--arms none,schema``, ``--seed 0``,
``--minutes 25`` at the most.
An arm is a form of ``core.json_schema.prompt_forms``, behind a colon where it stands: "user" (before the text, where
structgen puts it), "behind" (the text) or "system".
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from structgen import Generator, json_schema
from structgen.core.json_schema.prompt_forms import FORMS
from structgen.generation.models.built_in import default_model_file
from structgen.generation.models.llamacpp.model import load_gguf

ARMS = "none,skeleton,schema:behind,typescript,example,schema,skeleton:system,skeleton:behind"
CHUNK = 25  # items that are written at once, and saved
NAMES = (
    "Ada", "Alan", "Barbara", "Bruno", "Carla", "Chen", "Diego", "Dora", "Emil", "Farah", "George", "Grace", "Hedy",
    "Ivan", "Jonas", "Kim", "Lina", "Marie", "Nora", "Omar", "Paula", "Quinn", "Rosa", "Sven", "Tariq", "Uma", "Victor",
    "Wendy", "Xavier", "Yusuf", "Zoe",
)  # fmt: skip
SURNAMES = (
    "Abbot", "Baker", "Costa", "Dietrich", "Evans", "Fischer", "Garcia", "Hughes", "Ito", "Jensen", "Kowalski", "Lopez",
    "Martin", "Novak", "Okafor", "Petrov", "Quist", "Rossi", "Silva", "Tanaka",
)  # fmt: skip
CITIES = (
    "Berlin", "Lisbon", "Oslo", "Madrid", "Vienna", "Dublin", "Athens", "Prague", "Rome", "Paris", "London", "Helsinki",
    "Warsaw", "Zurich", "Toronto", "Chicago", "Sydney", "Tokyo", "Cairo", "Nairobi",
)  # fmt: skip
JOBS = (
    "teacher", "nurse", "baker", "pilot", "lawyer", "farmer", "chemist", "painter", "plumber", "carpenter", "dentist",
    "librarian", "chef", "journalist",
)  # fmt: skip
PETS = ("dog", "cat", "horse", "parrot", "rabbit", "hamster")
COLOURS = ("red", "blue", "green", "yellow", "black", "white")
RECORDS = (
    "{name} is {age} years old, works as a {job} and lives in {city}.",
    "{name}, {age}, is a {job} from {city}.",
    "Meet {name}, a {job} who lives in {city} and is {age} years old.",
    "In {city} lives {name}, who is {age} and earns a living as a {job}.",
    "At {age}, {name} still works as a {job} in {city}.",
)
TOPICS = {
    "sports": (
        "The goalkeeper saved a penalty in the last minute of the match.",
        "The {city} team won the cup final after extra time.",
        "{name} won the tennis tournament in {city} in straight sets.",
        "The coach praised his players after the third win in a row.",
    ),
    "weather": (
        "Heavy rain and strong winds are expected in {city} tonight.",
        "Tomorrow will be sunny with a high of {number} degrees.",
        "A snow storm closed the roads around {city}.",
        "It will be cloudy in {city} with showers in the afternoon.",
    ),
    "food": (
        "The soup is cooked with onions, carrots and a little garlic.",
        "{name} baked a chocolate cake with fresh cream.",
        "The restaurant in {city} serves grilled fish with lemon and rice.",
        "Add two spoons of sugar to the dough and bake it for {number} minutes.",
    ),
    "music": (
        "The band played {number} songs and the singer came back for an encore.",
        "{name} practises the violin for two hours a day.",
        "The orchestra opened the concert in {city} with a symphony.",
        "The choir sang two old melodies in the church of {city}.",
    ),
    "travel": (
        "Our flight to {city} was delayed and we missed the connecting train.",
        "{name} booked a hotel room near the beach for {number} days.",
        "The tourists visited the old town of {city} and took a boat trip.",
        "Do not forget your passport and your suitcase at the airport.",
    ),
}
REVIEWS = {
    "positive": (
        "The film was wonderful and we laughed a lot.",
        "I love this phone, the battery lasts for {number} hours.",
        "The staff of the hotel in {city} were friendly and our room was spotless.",
        "{name} did a great job, I would hire this painter again.",
    ),
    "negative": (
        "The film was boring and far too long.",
        "I hate this phone, it broke after {number} days.",
        "The staff of the hotel in {city} were rude and our room was dirty.",
        "{name} did a terrible job, I want my money back.",
    ),
}
FACTS = (
    "{name} lives in {city}, has a {pet} and drives a {colour} car.",
    "{name} drives a {colour} car, owns a {pet} and comes from {city}.",
    "In {city}, {name} takes the {pet} for a ride in the {colour} car.",
)
QUESTIONS = {
    "city": ("Which city does {name} live in?", CITIES[:8]),
    "pet": ("Which pet does {name} have?", PETS),
    "colour": ("What colour is the car of {name}?", COLOURS),
}


@dataclass(frozen=True)
class Item:
    """A prompt, its schema and the values that are right."""

    text: str
    schema: Mapping[str, Any]
    answer: Mapping[str, Any]


def closed(properties: Mapping[str, Any]) -> dict[str, Any]:
    """An object of exactly these members."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


PERSON = closed(
    {"name": {"type": "string"}, "age": {"type": "integer"}, "job": {"type": "string"}, "city": {"type": "string"}}
)


def record(rng: random.Random) -> Item:
    """A sentence about a person."""
    answer = {
        "name": f"{rng.choice(NAMES)} {rng.choice(SURNAMES)}",
        "age": rng.randint(19, 79),
        "job": rng.choice(JOBS),
        "city": rng.choice(CITIES),
    }
    return Item(rng.choice(RECORDS).format(**answer), PERSON, answer)


def classification(rng: random.Random) -> Item:
    """A sentence whose topic is asked for, or a review."""
    member, labels, question = rng.choice(
        [
            ("topic", TOPICS, "What is the topic of this text: sports, weather, food, music or travel?"),
            ("sentiment", REVIEWS, "Is this review positive or negative?"),
        ]
    )
    label = rng.choice(list(labels))
    text = rng.choice(labels[label]).format(city=rng.choice(CITIES), name=rng.choice(NAMES), number=rng.randint(12, 30))
    return Item(f"{text}\n\n{question}", closed({member: {"enum": list(labels)}}), {member: label})


def field_of(rng: random.Random) -> Item:
    """Three facts, and a question for one of them."""
    name = rng.choice(NAMES)
    facts = {"city": rng.choice(CITIES[:8]), "pet": rng.choice(PETS), "colour": rng.choice(COLOURS)}
    asked = rng.choice(list(QUESTIONS))
    question, options = QUESTIONS[asked]
    text = f"{rng.choice(FACTS).format(name=name, **facts)} {question.format(name=name)}"
    return Item(text, closed({asked: {"enum": list(options)}}), {asked: facts[asked]})


TASKS: dict[str, Callable[[random.Random], Item]] = {
    "records": record,
    "classification": classification,
    "fields": field_of,
}


def items_of(task: str, count: int, seed: int) -> list[Item]:
    """The first ``count`` items of a task: the same for the same seed."""
    rng = random.Random(f"{task} {seed}")
    return [TASKS[task](rng) for _ in range(count)]


def prompt_of(item: Item, arm: str) -> Any:
    """The prompt of an item, with what an arm says of its schema."""
    form, _, place = arm.partition(":")
    if form == "none":
        return item.text
    told = FORMS[form](item.schema, None)  # type: ignore[index]
    if place == "system":
        return [{"role": "system", "content": told}, {"role": "user", "content": item.text}]
    return "\n\n".join([item.text, told] if place == "behind" else [told, item.text])


def right(found: Any, wanted: Any) -> bool:
    """Whether a value is right, whatever the case of its letters."""
    if isinstance(found, str) and isinstance(wanted, str):
        return found.strip().casefold() == wanted.casefold()
    return bool(found == wanted)


def run_chunk(generator: Generator, items: list[Item], arm: str) -> dict[str, Any]:
    """What came of some items: items and values that are right, tokens, and processor seconds."""
    begun, done = time.process_time(), {"items": len(items), "right": 0, "values": 0, "values_right": 0}
    done |= {"prompt_tokens": 0, "output_tokens": 0}
    results: Any = generator.batch(
        [prompt_of(item, arm) for item in items],
        [json_schema(item.schema) for item in items],
        schema_in_prompt=False,
        max_new_tokens=80,
        batch_size=CHUNK,
    )
    for item, result in zip(items, results, strict=True):
        good = [right(result.value.get(name), value) for name, value in item.answer.items()]
        done["right"] += all(good)
        done["values"] += len(good)
        done["values_right"] += sum(good)
        done["prompt_tokens"] += result.stats.prompt_tokens
        done["output_tokens"] += result.stats.output_tokens
    return done | {"seconds": round(time.process_time() - begun, 2)}


def generator_of(model: str | None, backend: str) -> tuple[Generator, str]:
    """A generator that uses one thread, and what its results are kept under."""
    if backend == "llamacpp":
        file = Path(model) if model else default_model_file()
        return Generator(*load_gguf(file, threads=1, context_length=4096)), file.name
    import torch

    torch.set_num_threads(1)
    name = Path(model).name if model else default_model_file().name
    return Generator(model, backend=backend, dtype="bfloat16"), f"{name} bfloat16"


def load(path: Path) -> dict[str, Any]:
    """What earlier runs have saved, by chunk."""
    return json.loads(path.read_text()) if path.exists() else {}


def save(path: Path, chunks: Mapping[str, Any]) -> None:
    """In place of the file, as a whole."""
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(chunks, indent=0))
    draft.replace(path)


def run(options: argparse.Namespace) -> None:
    """Do what is not done yet, a chunk of every task and arm at a time, so that arms can be compared at any time."""
    chunks, until = load(options.results), time.monotonic() + 60 * options.minutes
    generator, name = generator_of(options.model, options.backend)
    items = {task: items_of(task, options.items, options.seed) for task in TASKS}
    for start in range(0, options.items, CHUNK):
        for task in TASKS:
            for arm in options.arms.split(","):
                key = f"{name} {options.seed} {task} {arm} {start}"
                part = items[task][start : start + CHUNK]
                if chunks.get(key, {}).get("items") == len(part):
                    continue
                if time.monotonic() > until:
                    return
                chunks[key] = run_chunk(generator, part, arm)
                save(options.results, chunks)


def share(done: Mapping[str, float], what: str) -> float:
    """The share of the items that are ``what``."""
    return done[what] / done["items"] if done["items"] else float("nan")


def report(chunks: Mapping[str, Mapping[str, Any]]) -> None:
    """A table: of each model and arm the items that are right by task and in all, values, tokens and milliseconds."""
    sums: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for key, done in chunks.items():
        name, seed, task, arm, _ = key.rsplit(" ", 4)
        of_task = sums.setdefault((f"{name} seed {seed}", arm), {}).setdefault(task, dict.fromkeys(done, 0))
        for what, number in done.items():
            of_task[what] += number
    for model in dict.fromkeys(model for model, _ in sums):
        heads = "".join(f"{task:>18}" for task in TASKS)
        print(f"{model}\n{'arm':<16}{heads}    all values prompt output     ms")
        for arm in (arm for name, arm in sums if name == model):
            tasks = sums[model, arm]
            total = {what: sum(each[what] for each in tasks.values()) for what in next(iter(tasks.values()))}
            known = [tasks.get(task) or dict.fromkeys(total, 0.0) for task in TASKS]
            shares = "".join(f"{share(each, 'right'):>8.3f} of {each['items']:<6.0f}" for each in known)
            means = [total[what] / total["items"] for what in ("prompt_tokens", "output_tokens", "seconds")]
            print(
                f"{arm:<16}{shares} {share(total, 'right'):6.3f} {total['values_right'] / total['values']:6.3f}"
                f" {means[0]:6.0f} {means[1]:6.1f} {1000 * means[2]:6.0f}"
            )


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--backend", choices=("llamacpp", "transformers"), default="llamacpp")
    parser.add_argument("--items", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arms", default=ARMS)
    parser.add_argument("--minutes", type=float, default=25.0)
    options = parser.parse_args()
    run(options)
    report(load(options.results))


if __name__ == "__main__":
    main()
