"""What do hostile grammars, expressions and schemas cost? Each in a process of its own: how it ended, seconds, memory.

    PYTHONPATH=. python benchmarks/hostile.py [--only NAME ...] [--kind lark gbnf regex json] [--seconds 60]

Prints a Markdown table. "compile" is CPU time of the compiler, "slowest mask" that of a walk of 30 bytes, "memory" what
the process grew by beyond one that has compiled a small grammar of the same kind. The vocabulary is that of the 256
single bytes. A case that takes more than ``--seconds`` of CPU time is killed and says so.
"""

from __future__ import annotations

import argparse
import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from hostile_schemas import JSON

Kind = Literal["lark", "contextual", "gbnf", "regex", "ecma", "choice", "json"]


@dataclass(frozen=True)
class Case:
    """A hostile input: ``make`` gives its text (or options, or schema)."""

    name: str
    kind: Kind
    make: Callable[[], Any]


@dataclass(frozen=True)
class Outcome:
    """How a case ended: seconds of CPU time, MiB beyond the baseline, the slowest mask in milliseconds."""

    result: str
    seconds: float
    memory: float
    mask: float


def _nested(opening: str, inner: str, closing: str, depth: int) -> str:
    return opening * depth + inner + closing * depth


def _doubling_rules(count: int, separator: str) -> str:
    """Rules each of which is the one before, twice."""
    lines = [f"r{i}{separator} r{i + 1} r{i + 1}" for i in range(count)]
    return "\n".join([*lines, f'r{count}{separator} "a"', ""])


def _exponential_lalr(count: int) -> str:
    """A grammar whose LR(0) automaton has 2**count states: the word names a set of rules."""
    lines = ["start: " + " | ".join(f"s{i}" for i in range(count))]
    for i in range(count):
        others = " | ".join(f'"{chr(97 + j)}" s{i}' for j in range(count) if j != i)
        lines.append(f's{i}: {others} | "Z{i}"')
    return "\n".join([*lines, ""])


LARK: list[tuple[str, Callable[[], str]]] = [
    ("empty rule, repeated", lambda: "start: r1*\nr1.2: \n"),
    ("template that grows", lambda: 'start: a{"x"}\na{x}: x a{b{x}}\nb{x}: x "y"\n'),
    ("template that refers to itself", lambda: 'start: a{"x"}\na{x}: a{x} x | x\n'),
    (
        "templates, 2^20 instances",
        lambda: (
            'start: t0{"x"}\n'
            + "".join(
                f't{i}{{x}}: t{i + 1}{{l{i}{{x}}}} t{i + 1}{{r{i}{{x}}}}\nl{i}{{x}}: x "a"\nr{i}{{x}}: x "b"\n'
                for i in range(20)
            )
            + "t20{x}: x\n"
        ),
    ),
    ("literal of 1 MB", lambda: f'start: "{"a" * 1_000_000}"\n'),
    ("expression of 1 MB", lambda: f"start: /{'a' * 1_000_000}/\n"),
    ("comment of 10 MB", lambda: f'start: "a"\n//{"a" * 10_000_000}\n'),
    ("3,000 nested groups", lambda: f"start: {_nested('(', chr(34) + 'a' + chr(34), ')', 3_000)}\n"),
    ("100,000 nested groups", lambda: f"start: {_nested('(', chr(34) + 'a' + chr(34), ')', 100_000)}\n"),
    ("300 nested options", lambda: f"start: {_nested('[', chr(34) + 'a' + chr(34) + ' ', ']', 300)}\n"),
    (
        "3,000 nested groups in a terminal",
        lambda: f"start: A\nA: {_nested('(', chr(34) + 'a' + chr(34), ')', 3_000)}\n",
    ),
    ("3,000 nested groups in an expression", lambda: f"start: A\nA: /{_nested('(', 'a', ')', 3_000)}/\n"),
    ("1,000,000 repetitions", lambda: 'start: "a"~1000000\n'),
    ("repetitions of repetitions, 49^6", lambda: f"start: {_nested('(', chr(34) + 'a' + chr(34), ')~0..49', 6)}\n"),
    ("1,000,000 repetitions in a terminal", lambda: 'start: A\nA: "a"~1000000\n'),
    ("repetitions in a terminal, 1000^4", lambda: 'start: A\nA: ((("a"~1000)~1000)~1000)~1000\n'),
    ("20 choices one after another, 3^20", lambda: f'start: {" ".join(["(a|b|c)"] * 20)}\na: "a"\nb: "b"\nc: "c"\n'),
    (
        "24 options one after another",
        lambda: f"start: {' '.join(f'[x{i}]' for i in range(24))}\n" + "".join(f'x{i}: "{i};"\n' for i in range(24)),
    ),
    ("rules doubling 100 times", lambda: _doubling_rules(100, ":").replace("r0:", "start:")),
    ("terminals doubling 40 times", lambda: "start: R0\n" + _doubling_rules(40, ":").upper().replace('"A"', '"a"')),
    (
        "a chain of 2,000 terminals",
        lambda: "start: T0\n" + "".join(f'T{i}: "a" T{i + 1}\n' for i in range(2_000)) + 'T2000: "b"\n',
    ),
    (
        "100,000 rules",
        lambda: "start: r0\n" + "".join(f'r{i}: "a" r{i + 1}\n' for i in range(100_000)) + 'r100000: "b"\n',
    ),
    ("100,000 words", lambda: "start: " + "|".join(f'"w{i}"' for i in range(100_000)) + "\n"),
    (
        "20,000 terminals",
        lambda: (
            "start: "
            + "|".join(f"T{i}" for i in range(20_000))
            + "\n"
            + "".join(f"T{i}: /w{i}[ab]/\n" for i in range(20_000))
        ),
    ),
    (
        "100,000 rules that are not used",
        lambda: 'start: "a"\n' + "".join(f'r{i}: "a" r{i + 1}\n' for i in range(100_000)) + 'r100000: "b"\n',
    ),
    ("terminal with 2^40 states", lambda: "start: A\nA: /(a|b)*a(a|b){40}/\n"),
    ("terminal with lookaheads", lambda: "start: A\nA: /((?=(a|b)*c)(a|b|c){3})*((?!a*b*c*d)[a-d])*/\n"),
    ("exponentially many LR states", lambda: _exponential_lalr(20)),
    (
        "expressions with 100 flags",
        lambda: "start: A\nA: " + " | ".join(f'"é{chr(0x400 + i)}"i' for i in range(100)) + "\n",
    ),
    (
        "a grammar that imports all of Lark's",
        lambda: (
            "start: NAME NUMBER STRING\n%import python.NAME\n%import common.NUMBER\n"
            "%import common.ESCAPED_STRING -> STRING\n"
        ),
    ),
]

GBNF: list[tuple[str, Callable[[], str]]] = [
    ("literal of 1 MB", lambda: f'root ::= "{"a" * 1_000_000}"\n'),
    ("class of 1 MB", lambda: f"root ::= [{'a' * 1_000_000}]\n"),
    ("comment of 10 MB", lambda: f'root ::= "a" #{"a" * 10_000_000}\n'),
    ("1 MB of small tokens", lambda: "root ::= " + '"a" ' * 250_000 + "\n"),
    ("3,000 nested groups", lambda: f"root ::= {_nested('(', chr(34) + 'a' + chr(34), ')', 3_000)}\n"),
    ("100,000 nested groups", lambda: f"root ::= {_nested('(', chr(34) + 'a' + chr(34), ')', 100_000)}\n"),
    ("100,000 quantifiers", lambda: f'root ::= "a"{"*" * 100_000}\n'),
    ("1,000,000 repetitions", lambda: 'root ::= ("a"{1000000})\n'),
    ("repetitions of repetitions, 2000^4", lambda: 'root ::= ((("a"{2000}){2000}){2000}){2000}\n'),
    ("the same of a recursive rule", lambda: 'root ::= ((("a" root? "b"){2000}){2000}){2000}\n'),
    ("rules doubling 100 times", lambda: _doubling_rules(100, " ::=").replace("r0 ", "root ")),
    (
        "recursive rules doubling 100 times",
        lambda: _doubling_rules(100, " ::=").replace("r0 ", "root ").replace('"a"', '"a" root? "b"'),
    ),
    (
        "a chain of 3,000 rules",
        lambda: "root ::= r0\n" + "".join(f'r{i} ::= "a" r{i + 1}\n' for i in range(3_000)) + 'r3000 ::= "b"\n',
    ),
    (
        "100,000 rules",
        lambda: "root ::= r0\n" + "".join(f'r{i} ::= "a" r{i + 1}\n' for i in range(100_000)) + 'r100000 ::= "b"\n',
    ),
    (
        "100,000 recursive rules",
        lambda: (
            "root ::= r0\n" + "".join(f'r{i} ::= "a" r{i + 1} "b"\n' for i in range(100_000)) + 'r100000 ::= "b" r0?\n'
        ),
    ),
    ("100,000 words", lambda: "root ::= " + "|".join(f'"w{i}"' for i in range(100_000)) + "\n"),
    ("rule with 2^40 states", lambda: 'root ::= [ab]* "a" [ab]{40}\n'),
    ("recursion without a text", lambda: 'root ::= root "a"\n'),
    ("a huge count", lambda: f'root ::= "a"{{{"9" * 10_000}}}\n'),
]

REGEX: list[tuple[str, Callable[[], str]]] = [
    ("literal of 1 MB", lambda: "a" * 1_000_000),
    ("class of 1 MB", lambda: f"[{'a' * 1_000_000}]"),
    ("3,000 nested groups", lambda: _nested("(", "a", ")", 3_000)),
    ("100,000 nested groups", lambda: _nested("(", "a", ")", 100_000)),
    ("100,000 options", lambda: "|".join(f"w{i}" for i in range(100_000))),
    ("100,000 words of a trie", lambda: "(" + "|".join(f"{i:x}" for i in range(100_000)) + ")*"),
    ("1,000,000 repetitions", lambda: "a{1000000}"),
    ("repetitions of repetitions", lambda: "(((a{1000}){1000}){1000}){1000}"),
    ("repetitions of nothing", lambda: "(((()){1000}){1000}){1000}"),
    ("an optional one 1,000 times", lambda: "(a?){1000}a{1000}"),
    ("nested quantifiers", lambda: _nested("(", "a", ")*", 50)),
    ("2^40 states", lambda: "(a|b)*a(a|b){40}"),
    ("2^14 states", lambda: "(a|b)*a(a|b){14}"),
    ("2^12 states in 100 ways", lambda: "|".join(f"([ab]*a[ab]{{11}}{chr(0x100 + i)})" for i in range(100))),
    ("60 lookaheads", lambda: "".join(f"(?=.*{chr(97 + i % 26)}{i})" for i in range(60)) + ".*"),
    ("lookarounds in a loop", lambda: "((?=(a|b)*c)(a|b|c){3})*((?!a*b*c*d)[a-d])*"),
    ("negative lookbehinds", lambda: "(" + "".join(f"(?<!a{{{i}}}b)" for i in range(1, 20)) + "[ab])*"),
    ("1,000 word boundaries", lambda: r"(\b\w+\b ?)" * 1_000),
    (
        "1,000 classes of categories",
        lambda: "".join(rf"[\w{chr(0x4E00 + i)}][^\W{chr(0x4E00 + i)}]" for i in range(1_000)),
    ),
    ("a set with every second character", lambda: "[" + "".join(chr(i) for i in range(0x4E00, 0x9FFF, 2)) + "]{1,50}"),
    (
        "500 disjoint sets, overlapping",
        lambda: "(" + "|".join(f"[{chr(0x4E00 + i)}-{chr(0x5E00 + 7 * i)}]{{2}}" for i in range(500)) + ")*",
    ),
]

CHOICE: list[tuple[str, Callable[[], list[str]]]] = [
    ("an option of 1 MB", lambda: ["a" * 1_000_000]),
    ("1,000,000 options", lambda: [f"{i:x}" for i in range(1_000_000)]),
]


def cases() -> list[Case]:
    """All cases."""
    found = [Case(name, kind, make) for kind in ("lark", "contextual") for name, make in LARK]
    found += [Case(name, "gbnf", make) for name, make in GBNF]
    found += [Case(name, kind, make) for kind in ("regex", "ecma") for name, make in REGEX]
    found += [Case(name, "choice", make) for name, make in CHOICE]
    return found + [Case(name, "json", make) for name, make in JSON]


_SMALL: dict[str, Any] = {
    "lark": 'start: A\nA: /[ab]*/ "c"\n',
    "contextual": 'start: A\nA: /[ab]*/ "c"\n',
    "gbnf": 'root ::= [ab]* "c"',
    "regex": "(?i)[ab]*c",
    "ecma": "[ab]*c",
    "choice": ["a", "b"],
    "json": {"type": "integer"},
}


def compiler(kind: Kind) -> Callable[[Any], Any]:
    """What compiles inputs of a kind, for single bytes."""
    import structgen
    from structgen.core import compilers as api

    vocabulary = structgen.Vocabulary([*(bytes([b]) for b in range(256)), None], eos_token_ids=256)
    compilers: dict[str, Callable[[Any], Any]] = {
        "lark": lambda text: api.compile_lark(text, vocabulary),
        "contextual": lambda text: api.compile_lark(text, vocabulary, lexer="contextual"),
        "gbnf": lambda text: api.compile_gbnf(text, vocabulary),
        "regex": lambda text: api.compile_regex(text, vocabulary),
        "ecma": lambda text: api.compile_regex(text, vocabulary, syntax="ecma"),
        "choice": lambda options: api.compile_choice(options, vocabulary),
        "json": lambda schema: structgen.compile_json_schema(schema, vocabulary),
    }
    return compilers[kind]


def slowest_mask(grammar: Any) -> float:
    """Seconds of the slowest mask of a walk that takes the lowest byte allowed, 30 bytes at most."""
    from structgen.core.engines.bitmask import allocate_token_bitmask

    matcher = grammar.matcher()
    bitmask = allocate_token_bitmask(1, 257)
    slowest = 0.0
    for _ in range(30):
        began = time.process_time()
        matcher.fill_next_token_bitmask(bitmask)
        slowest = max(slowest, time.process_time() - began)
        token = next((t for t in range(256) if bitmask[0, t >> 5] >> (t & 31) & 1), None)
        if token is None or not matcher.accept_token(token):
            break
    return slowest


def _peak() -> float:
    """MiB of this process at its largest."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 10 if sys.platform != "darwin" else 1 << 20)


def run_here(case: Case) -> Outcome:
    """Run a case in this process."""
    import warnings

    from structgen.errors import StructgenError

    warnings.simplefilter("ignore")
    compile_one = compiler(case.kind)
    slowest_mask(compile_one(_SMALL[case.kind]))
    source = case.make()
    before, began, mask = _peak(), time.process_time(), 0.0
    try:
        grammar = compile_one(source)
        result = "compiles"
    except StructgenError as error:
        grammar, result = None, f"{type(error).__name__}: {str(error).splitlines()[0][:90]}"
    except Exception as error:
        grammar, result = None, f"**untyped** {type(error).__name__}: {str(error)[:60]}"
    seconds = time.process_time() - began
    if grammar is not None:
        mask = slowest_mask(grammar)
    return Outcome(result, seconds, _peak() - before, 1e3 * mask)


def run_apart(case: Case, limit: float) -> Outcome:
    """Run a case in a process of its own."""
    command = [sys.executable, __file__, "--case", case.kind, case.name]
    try:
        done = subprocess.run([*command, str(limit)], capture_output=True, text=True, timeout=20 * limit)
    except subprocess.TimeoutExpired:
        return Outcome("**killed**: waits", float("nan"), float("nan"), float("nan"))
    if done.returncode == -signal.SIGXCPU:
        return Outcome("**killed**: out of time", limit, float("nan"), float("nan"))
    try:
        return Outcome(**json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError, TypeError):
        return Outcome(f"**lost** (exit {done.returncode})", float("nan"), float("nan"), float("nan"))


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--only", nargs="*", help="names of cases")
    parser.add_argument("--kind", nargs="*", help="kinds of cases")
    parser.add_argument("--seconds", type=float, default=60.0, help="a case is killed after this time")
    options = parser.parse_args()
    if options.case:
        kind, name, seconds = options.case
        resource.setrlimit(resource.RLIMIT_CPU, (round(float(seconds)), round(float(seconds)) + 5))
        resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
        print(json.dumps(asdict(run_here(next(c for c in cases() if (c.kind, c.name) == (kind, name))))))
        return
    print("| kind | case | outcome | compile, s | memory, MiB | slowest mask, ms |\n|---|---|---|---:|---:|---:|")
    for case in cases():
        if (options.only and case.name not in options.only) or (options.kind and case.kind not in options.kind):
            continue
        o = run_apart(case, options.seconds)
        result = o.result.replace("|", "\\|")
        print(f"| {case.kind} | {case.name} | {result} | {o.seconds:.2f} | {o.memory:.0f} | {o.mask:.1f} |", flush=True)


if __name__ == "__main__":
    main()
