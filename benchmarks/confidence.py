"""How good field probabilities are: questions about people in seeded template texts, whose answers are known.

    python benchmarks/confidence.py --questions 200

Each text is about one or two people; one attribute of one of them is asked for, of six options, without examples and
without the schema in the prompt. One run gives all: the value that is written token by token, the option of the highest
masked sum (``choose="value"``), that of the model's own sum ("belief"), how well the probabilities tell right from
wrong, and how far they are from the shares that come true, before and after temperature scaling on the other half.

    python benchmarks/confidence.py --questions 200 --votes      # nine independent draws, three distinct ones
    python benchmarks/confidence.py --questions 20 --refine      # calls of the second pass over a draft in JSON
    python benchmarks/confidence.py --questions 10 --cost        # what reading three fields takes, beside writing them
    python benchmarks/confidence.py --record                     # the record of docs/images/draw.py
"""

from __future__ import annotations

import argparse
import random
import time

import structgen
from structgen.generation.calibration import CalibrationReport, report
from structgen.generation.fields.results import Belief, ValueOption
from structgen.generation.generator import Generator
from structgen.generation.refining import Refine, second_prompt

ATTRIBUTES = {
    "city": ["Lisbon", "Oslo", "Vienna", "Dublin", "Prague", "Athens"],
    "job": ["nurse", "baker", "pilot", "teacher", "plumber", "lawyer"],
    "instrument": ["violin", "piano", "guitar", "flute", "trumpet", "drums"],
    "pet": ["cat", "dog", "parrot", "rabbit", "turtle", "hamster"],
}
NAMES = ["Maria", "Tom", "Aisha", "Ivan", "Grace", "Kenji", "Lena", "Omar"]
TEMPLATES = [
    "{name} works as a {job} in {city}. At home {name} has a {pet} and plays the {instrument}.",
    "Meet {name}, who lives in {city}. By day a {job}, by night {name} plays the {instrument} for a {pet}.",
    "{name} has a {pet}. Born in {city}, {name} became a {job} and learned the {instrument}.",
]


def question(seed: int) -> tuple[str, str, str]:
    """A prompt, the attribute that it asks for, and the answer."""
    rng = random.Random(seed)
    people = [
        {"name": name, **{key: rng.choice(values) for key, values in ATTRIBUTES.items()}}
        for name in rng.sample(NAMES, rng.randint(1, 2))
    ]
    text = " ".join(rng.choice(TEMPLATES).format(**person) for person in people)
    asked, key = rng.choice(people), rng.choice(list(ATTRIBUTES))
    return f"{text}\n\nAnswer in JSON: what is the {key} of {asked['name']}?", key, asked[key]


def by_local(belief: Belief) -> Belief:
    """The same options with their masked probabilities in place of the model's own."""
    options = [ValueOption(each.value, each.local, 0.0, 1.0, each.local) for each in belief.options]
    return Belief(tuple(sorted(options, key=lambda each: -each.prob)), belief.kept, belief.slack)


def shown(name: str, judged: CalibrationReport) -> str:
    low, high = judged.intervals["accuracy"]
    return (
        f"{name:24} accuracy {judged.accuracy:.3f} ({low:.3f} to {high:.3f})  AUROC {judged.auroc:.3f}  "
        f"ECE {judged.ece:.3f}  Brier {judged.brier:.3f}  surest half {judged.at_coverage[50]:.3f}"
    )


def schema_of(*keys: str) -> dict[str, object]:
    members = {key: {"enum": ATTRIBUTES[key]} for key in keys}
    return {"type": "object", "properties": members, "required": list(keys), "additionalProperties": False}


def votes(generator: Generator, count: int) -> None:
    """How often each kind of vote is right, and what it costs."""
    right, split = {"one draw": 0, "nine independent": 0, "three distinct": 0}, 0
    for seed in range(count):
        prompt, key, truth = question(seed)
        nine = generator.vote(prompt, schema_of(key), n=9, seed=9 * seed, schema_in_prompt=False)
        three = generator.vote(prompt, schema_of(key), n=3, draw="distinct", seed=seed, schema_in_prompt=False)
        right["one draw"] += nine.results[0].value[key] == truth
        right["nine independent"] += nine.value[key] == truth
        right["three distinct"] += three.value[key] == truth
        split += nine.is_split
    print(f"{count} questions, right: " + ", ".join(f"{name} {each / count:.3f}" for name, each in right.items()))
    print(f"nine without a majority: {split / count:.3f}")


def refinements(generator: Generator, count: int) -> None:
    """The model's calls of the second pass over a draft in JSON, with and without the draft as the prediction."""
    schema, how, calls, equal = schema_of(*ATTRIBUTES), Refine("json"), {"with": 0, "without": 0}, 0
    kept = dict(calls)
    for seed in range(count):
        prompt, _, _ = question(seed)
        prompt = prompt.partition("\n\n")[0] + "\n\nWrite the first person's city, job, instrument and pet as JSON."
        refined = generator.refine(prompt, schema, how=how)
        shown = second_prompt(prompt, refined.draft, structgen.json_schema(schema), how)
        plain = generator.generate(shown, schema)
        calls["with"] += refined.stats.target_forwards
        calls["without"] += plain.stats.target_forwards
        equal += plain.text == refined.text
        if refined.draft == refined.text:
            kept["with"] += refined.stats.target_forwards
            kept["without"] += plain.stats.target_forwards
    print(
        f"{count} drafts in JSON: {calls['with'] / count:.1f} calls with the prediction, {calls['without'] / count:.1f}"
    )
    print(f"without, share {calls['with'] / calls['without']:.3f}; {equal} outputs equal")
    print(f"where the schema takes the draft: {kept['with']} calls in all, without {kept['without']}")


EXAMPLES = """Tom works as a pilot in Vienna. At home Tom has a cat and plays the piano.
{"city": "Vienna", "job": "pilot", "pet": "cat"}

Grace works as a baker in Athens. At home Grace has a dog and plays the flute.
{"city": "Athens", "job": "baker", "pet": "dog"}

"""


def costs(generator: Generator, count: int) -> None:
    """Calls, tokens and the share of the writing's processor time that three fields take, with examples and without."""
    schema = schema_of("city", "job", "pet")
    for is_shown in (True, False):
        calls, tokens, writing, both = list[int](), list[int](), 0.0, 0.0
        for seed in range(100, 100 + count):
            text = question(seed)[0].partition("\n\n")[0]
            asked = f"{text}\n\nWrite city, job and pet of the first person as JSON."
            prompt = f"{EXAMPLES}{text}\n" if is_shown else asked
            times = [time.process_time()]
            for fields in (False, False, True):  # the first reads the prompt
                result = generator.generate(prompt, schema, fields=fields, schema_in_prompt=False, max_new_tokens=60)
                times.append(time.process_time())
            writing, both = writing + times[2] - times[1], both + times[3] - times[2]
            calls.append(result.fields.calls)
            tokens.append(result.fields.tokens)
        print(
            f"{'two examples' if is_shown else 'no example'}: {sum(calls) / count:.2f} calls (most {max(calls)}), "
            f"{sum(tokens) / count:.1f} tokens (most {max(tokens)}), {both / writing - 1:.2f} of the writing's time"
        )


RECORD = "Maria flies to Rome twice a week. At home in Oslo a parrot and a dog wait for her."


def record(generator: Generator) -> None:
    """The numbers of the picture in docs/confidence.md."""
    members = {
        "profession": {"enum": ["teacher", "nurse", "pilot", "baker"]},
        "city": {"enum": ["Oslo", "Rome"]},
        "has_pet": {"type": "boolean"},
        "age_group": {"enum": ["child", "adult"]},
    }
    schema = {"type": "object", "properties": members, "required": list(members), "additionalProperties": False}
    fields = generator.generate(RECORD, schema, fields=True).fields
    for pointer, field in fields.items():
        assert field.value is not None
        options = ", ".join(f"{option.value!r} {option.prob:.2f}" for option in field.value.options)
        print(f"{pointer} {field.written!r} {field.prob:.2f}, kept {field.value.kept:.1g}: {options}")
    print(f"{fields.calls} calls, {fields.tokens} tokens")


def main() -> None:
    """Ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument(
        "--model", default=None, help="GGUF file, Hugging Face id or folder; default: the built-in model"
    )
    parser.add_argument("--votes", action="store_true", help="judge votes instead")
    parser.add_argument("--refine", action="store_true", help="count the calls of second passes instead")
    parser.add_argument("--cost", action="store_true", help="measure what reading fields takes instead")
    parser.add_argument("--record", action="store_true", help="read the fields of one record instead")
    parser.add_argument("--backend", choices=["llamacpp", "transformers"], help="what runs the model")
    arguments = parser.parse_args()
    generator = Generator(arguments.model, backend=arguments.backend)
    for name, measure in (("votes", votes), ("refine", refinements), ("cost", costs)):
        if getattr(arguments, name):
            measure(generator, arguments.questions)
            return
    if arguments.record:
        record(generator)
        return
    beliefs, truths, greedy, calls, tokens, started = list[Belief](), list[str](), 0, 0, 0, time.process_time()
    for seed in range(arguments.questions):
        prompt, key, truth = question(seed)
        result = generator.generate(prompt, schema_of(key), schema_in_prompt=False, fields=True)
        field = result.fields[f"/{key}"]
        assert field.value is not None
        beliefs.append(field.value)
        truths.append(truth)
        greedy += field.written == truth
        calls, tokens = calls + result.fields.calls, tokens + result.fields.tokens
    count = arguments.questions
    own, masked = report(beliefs, truths), report([by_local(each) for each in beliefs], truths)
    print(f"{count} questions, {time.process_time() - started:.0f} s of processor time, {calls / count:.1f} calls and")
    print(f"{tokens / count:.1f} tokens a field; token by token {greedy / count:.3f} right")
    print(shown("model's own", own.raw))
    print(shown(f"  T {own.temperatures[0]:.2f}, {own.temperatures[1]:.2f}", own.calibrated))
    print(shown("masked", masked.raw))
    print(shown(f"  T {masked.temperatures[0]:.2f}, {masked.temperatures[1]:.2f}", masked.calibrated))


if __name__ == "__main__":
    main()
