"""``structgen show-mask``: what a constraint allows after a text, drawn readably."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from rich.columns import Columns
from rich.panel import Panel
from rich.text import Text

from structgen.cli.common import INVALID, byte_vocabulary, print_json
from structgen.cli.consoles import err, out
from structgen.core.answers.refused_texts import reasons_of
from structgen.core.constraints.base import Constraint
from structgen.core.vocabulary.vocabulary import Vocabulary
from structgen.generation.sampling import allowed_token_ids


def run(
    constraint: Constraint, text: str, tokenizer: str | None, limit: int, as_json: bool, why: str | None = None
) -> int:
    """Show the mask after ``text``; exit code 1 if the text is refused. ``why``: a text whose reasons are named."""
    vocabulary = _vocabulary(tokenizer)
    matcher = constraint.compile(vocabulary).matcher()
    vocabulary = matcher.grammar.vocabulary
    data = text.encode()
    if not matcher.accept_bytes(data):
        offset = 0
        while matcher.accept_bytes(data[offset : offset + 1]):
            offset += 1
        if as_json:
            print_json({"text": text, "refused_at_byte": offset})
        else:
            err.print(f"The text is refused at byte {offset}: {data[:offset]!r} then {data[offset:]!r}", markup=False)
        return INVALID
    bitmask = np.zeros((1, (vocabulary.size + 31) // 32), dtype=np.int32)
    matcher.fill_next_token_bitmask(bitmask, 0)
    allowed = allowed_token_ids(bitmask[0], vocabulary.size).tolist()
    tokens = [vocabulary.tokens[token] for token in allowed if token not in vocabulary.eos_token_ids]
    facts = {
        "text": text,
        "may_stop": matcher.is_accepting(),
        "allowed_tokens": len(allowed),
        "vocabulary": vocabulary.size,
        "next_bytes": byte_ranges({token[0] for token in tokens if token}),
        "forced": show_bytes(vocabulary.rendered(matcher.forced_bytes())),
        "shortest_completion": show_bytes(vocabulary.rendered(matcher.shortest_completion())),
        "tokens": [show_bytes(vocabulary.rendered(token)) for token in tokens[:limit]],
    }
    named = () if why is None else reasons_of(constraint, text, why)
    if why is not None:
        facts["why"] = [one.to_dict() for one in named]
    if as_json:
        print_json(facts)
    else:
        _print(facts, len(tokens) - limit)
        for one in named:
            out.print(f"{why!r} is forbidden by {one}", markup=False, soft_wrap=True)
    return 0


def show_bytes(data: bytes | bytearray) -> str:
    """Bytes as one readable line: text where it is UTF-8, escapes elsewhere, spaces as ``␣``."""
    escaped = "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in data.decode("utf-8", errors="backslashreplace")
    )
    return escaped.replace(" ", "␣")


def byte_ranges(values: Iterable[int]) -> str:
    """A set of bytes as ranges, like ``0-9 A-Z " 80-bf`` (bytes from 80 on in hexadecimal)."""
    ordered, ranges = sorted(values), list[list[int]]()
    for value in ordered:
        # Ranges stay within digits, upper case, lower case and other bytes, so that they read well.
        if ranges and value == ranges[-1][1] + 1 and _kind(value) == _kind(ranges[-1][1]):
            ranges[-1][1] = value
        else:
            ranges.append([value, value])
    return " ".join(_name(first) if first == last else f"{_name(first)}-{_name(last)}" for first, last in ranges)


def _kind(value: int) -> str:
    character = chr(value)
    if value > 127 or not character.isalnum():
        return "high" if value > 127 else "punctuation"
    return "digit" if character.isdigit() else "lower" if character.islower() else "upper"


def _name(value: int) -> str:
    return "␣" if value == 32 else chr(value) if 32 < value < 127 else f"{value:02x}"


def _vocabulary(tokenizer: str | None) -> Vocabulary:
    if tokenizer is None:
        return byte_vocabulary()
    from structgen.generation.loading import load_tokenizer

    return Vocabulary.from_transformers(load_tokenizer(None if tokenizer == "default" else tokenizer))


def _print(facts: dict[str, Any], more: int) -> None:
    lines = Text()
    for label, value in [
        ("text", show_bytes(facts["text"].encode()) or "(nothing yet)"),
        ("may stop here", "yes" if facts["may_stop"] else "no"),
        ("allowed tokens", f"{facts['allowed_tokens']} of {facts['vocabulary']}"),
        ("next byte", facts["next_bytes"] or "none"),
        ("forced next", facts["forced"] or "nothing"),
        ("shortest way to end", facts["shortest_completion"] or "stop now"),
    ]:
        lines.append(f"{label:>20}  ", style="dim")
        lines.append(f"{value}\n")
    out.print(lines, end="")
    if facts["tokens"]:
        out.print(Panel(Columns([Text(token) for token in facts["tokens"]]), title="tokens", title_align="left"))
    if more > 0:
        out.print(f"[dim]and {more} more (--limit)[/]")
