"""What hostile clients ask for: whole requests, each kind for one weakness that a server may have."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

CHAT, CHECK = "/v1/chat/completions", "/check"
MARK = "text-of-a-hostile-request"
"""Stands in all requests whose texts must not come to the log."""
WORD = "word "


@dataclass(frozen=True)
class Asked:
    """A request.

    Attributes:
        body: what is sent: fields, or bytes as they are.
        path: where.
        leaves_after: seconds after which the client hangs up; None: it reads the answer.
    """

    body: dict[str, Any] | bytes
    path: str = CHAT
    leaves_after: float | None = None

    def data(self) -> bytes:
        """As bytes."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


def chat(content: Any = "Hello", **fields: Any) -> dict[str, Any]:
    """A small chat with these fields."""
    return {"messages": [{"role": "user", "content": content}], "max_tokens": 3, **fields}


def constrained(leaves_after: float | None = None, **outputs: Any) -> Asked:
    """A chat under a constraint."""
    return Asked(chat(structured_outputs=outputs), leaves_after=leaves_after)


def _always(body: dict[str, Any] | bytes) -> Callable[[int], Asked]:
    """The same each time, made once."""
    asked = Asked(body if isinstance(body, bytes) else json.dumps(body).encode())
    return lambda _: asked


def _lazily(make: Callable[[], dict[str, Any] | bytes]) -> Callable[[int], Asked]:
    made = cache(lambda: _always(make()))
    return lambda number: made()(number)


# --- constraints ---
def _names_a_file(number: int) -> Asked:
    grammars = ("start: KEY\n%import .sub.private.KEY\n", "sub/private.lark", "./sub/private.lark", "start: /x/\n")
    return constrained(grammar=grammars[number % 3])


def _abandoned(number: int) -> Asked:
    """37 kB that take a while, and nobody waits for."""
    words = " | ".join(f'"{MARK} {number} {word} {"x" * 10}"' for word in range(700))
    return constrained(0.05, grammar=f"start: ({words}) start?\n")


def _slow_to_read(number: int) -> Asked:
    """650 bytes whose reading takes exponential time."""
    rules = "\n".join(f"A{n}: A{n + 1} A{n + 1}" for n in range(40))
    body = {"structured_outputs": {"grammar": f'start: A0\n{rules}\nA40: "{number}"\n'}}
    return Asked(body, CHECK) if number % 2 else Asked(chat(**body))


def _slow_to_compile(number: int) -> Asked:
    chain = "\n".join(f'T{n}: "{number}" T{n + 1} | "b"' for n in range(2000))
    return constrained(grammar=f'start: T0\n{chain}\nT2000: "c"\n')


def _large_tables(number: int) -> Asked:
    """Automata that take a hundred times the room of their texts."""
    return constrained(regex=f".{{1,{1000 + number % 900}}}{MARK[number % 20 :]}")


def _long_completions(number: int) -> Asked:
    return constrained(json={"type": "string", "minLength": 1_000_000 + number % 1000})


def _many_alternatives(number: int) -> Asked:
    parts = [{"oneOf": [{"const": f"{number} {n} {m}"} for m in range(12)]} for n in range(12)]
    return constrained(json={"allOf": parts})


def _bad_tool(_: int) -> Asked:
    """Five hundred tools, one of them bad."""
    tools = [
        {"type": "function", "function": {"name": f"f{n}", "parameters": {"type": "object", "properties": {}}}}
        for n in range(500)
    ]
    tools[-1]["function"]["parameters"] = {"type": MARK}  # type: ignore[index]
    return Asked(chat(tools=tools, tool_choice="required"))


def _many_tools() -> dict[str, Any]:
    return chat(tools=[{"type": "function", "function": {"name": f"f{n}"}} for n in range(27_000)])


def _structures() -> dict[str, Any]:
    tags = [{"begin": f"<f{n}>", "schema": {"type": "object"}, "end": "</f>"} for n in range(2_000)]
    tag = {"type": "structural_tag", "triggers": ["<f"], "structures": tags}
    return chat(structured_outputs={"structural_tag": tag}, structgen={"schema_in_prompt": "none"})


# --- prompts and outputs ---
def _long_prompt(number: int) -> Asked:
    """No two begin alike."""
    return Asked(chat(f"{number} " + WORD * 1_900))


def _too_long_with_schema(number: int) -> Asked:
    schema = {"type": "object", "properties": {f"{MARK}{number}{n}": {"type": "string"} for n in range(500)}}
    return Asked(chat(WORD * 12_000, structured_outputs={"json": schema}))


def _many_short_prompts(number: int) -> Asked:
    return Asked(chat(f"{number} " + WORD * 50, max_tokens=1))


def _long_outputs(number: int) -> Asked:
    return Asked(chat(f"Tell me {number}", max_tokens=2_000, logit_bias={"2": -100, "0": -100}))


def _broken_stream(number: int) -> Asked:
    return Asked(chat(f"Tell me {number}", max_tokens=500, stream=True), leaves_after=0.3)


def _deep_arguments() -> dict[str, Any]:
    deep = '{"a":' * 400 + "1" + "}" * 400
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": deep}}
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Hello"}]
    for _ in range(40):
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "1"},
        ]
    return {"messages": messages, "max_tokens": 3}


REQUESTS: dict[str, tuple[int, Callable[[int], Asked]]] = {
    "330,000 wrong logit_bias": (1, _lazily(lambda: chat(logit_bias={f"{n:x}": 9 for n in range(330_000)}))),
    "330,000 unknown fields": (1, _lazily(lambda: chat(**{f"{n:x}": 1 for n in range(330_000)}))),
    "110,000 wrong logit_bias": (1, _lazily(lambda: chat(logit_bias={f"x{n}": 200 for n in range(110_000)}))),
    "27,000 tools": (1, _lazily(_many_tools)),
    "a name of 4 MB": (1, _lazily(lambda: chat(**{"x" * 4_000_000: 1}))),
    "a value of 4 MB": (1, _lazily(lambda: chat(temperature="x" * 4_000_000))),
    "bad JSON of 4 MB": (1, _lazily(lambda: b'{"a": "' + b"\n" * 4_000_000)),
    "a name twice": (
        1,
        _always(b'{"messages": [{"role": "user", "content": "a", "content": "' + MARK.encode() + b'"}]}'),
    ),
    "300,000 emoji": (1, _lazily(lambda: chat("\N{PILE OF POO}" * 300_000))),
    "300,000 letters": (1, _lazily(lambda: chat("a" * 300_000))),
    "deep arguments of tools": (1, _lazily(_deep_arguments)),
    "grammars that name files": (1, _names_a_file),
    "abandoned constraints": (20, _abandoned),
    "slow to read": (6, _slow_to_read),
    "slow to compile": (6, _slow_to_compile),
    "many alternatives": (4, _many_alternatives),
    "large tables": (2, _large_tables),
    "completions of 1,000,000": (3, _long_completions),
    "a bad tool of 500": (2, _bad_tool),
    "2,000 structures": (1, _lazily(_structures)),
    "prompts of 1,900 tokens": (2, _long_prompt),
    "a long prompt and a schema": (2, _too_long_with_schema),
    "many short prompts": (16, _many_short_prompts),
    "32 long outputs": (32, _long_outputs),
    "broken streams": (8, _broken_stream),
}
"""By name: connections at a time, and the request of a number."""
