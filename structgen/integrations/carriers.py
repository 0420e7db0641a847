"""Tool calls in a model's own format inside the structural tags of engines, which know no such thing.

Engines hand structural tags from front end to backend as JSON. A carrier is such a tag whose grammar is the text
``%structgen {"tool_call": {...}}``: any engine passes it on, and structgen's backends read it. It stands in a list of
tags, whose ``stop_after_first`` engines set where one call only is asked for (``parallel_tool_calls: false``). Beside a
response format it is one of the elements of an ``or``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from structgen.core.constraints.base import Constraint
from structgen.core.constraints.combined import union
from structgen.core.constraints.specs import ConstraintSpec
from structgen.core.constraints.tools import tool_call
from structgen.core.untrusted_json import read_object
from structgen.errors import SpecificationError

SIGN = "%structgen"
TextPlace = Literal["before", "instead"]
SINGLE = {"gigachat3", "gigachat3_0", "internlm2"}
"""Formats of which parsers of engines read one call."""
_KEYS = {"format", "tools", "tool_choice", "parallel_tool_calls", "text"}


def carrier(format: str, tools: Sequence[Any], *, required: bool, text: TextPlace, parallel: bool = True) -> Any:
    """The format of a structural tag that asks for tool calls.

    Args:
        format: how the model writes calls.
        tools: function definitions, of which those with ``strict: false`` are called with what can be enforced.
        required: whether there must be a call.
        text: where other text may be, if no call is required: before the first call, or instead of calls.
        parallel: whether there may be more than one call, where the format is not one of `SINGLE`.
    """
    asked = {"format": format, "tools": list(tools), "tool_choice": "required" if required else "auto", "text": text}
    grammar = f"{SIGN} {json.dumps({'tool_call': asked}, ensure_ascii=False)}"
    tag = {"type": "tag", "begin": "", "content": {"type": "grammar", "grammar": grammar}, "end": ""}
    return {
        "type": "tags_with_separator",
        "tags": [tag],
        "separator": "",
        "at_least_one": True,
        "stop_after_first": not parallel or format in SINGLE,
    }


def carried(kind: str, value: Any, special_tokens: Mapping[str, int]) -> Constraint | None:
    """The constraint that a carrier brings; None where there is none in what is asked for.

    Args:
        kind: of the request.
        value: what belongs to it, JSON or its text.
        special_tokens: names of special tokens, for formats beside the carrier.

    Raises:
        SpecificationError: what should be a carrier is none. ConstraintError: its tools cannot be used.
    """
    if kind not in ("structural_tag", "grammar") or SIGN not in (
        value if isinstance(value, str) else json.dumps(value)
    ):
        return None
    if kind == "grammar":
        return (
            _read(value, special_tokens, parallel=True)
            if isinstance(value, str) and value.lstrip().startswith(SIGN)
            else None
        )
    tag = read_object(value.encode(errors="surrogatepass"), "The structural tag") if isinstance(value, str) else value
    return _of_format(tag.get("format"), special_tokens)


def _of_format(form: Any, special_tokens: Mapping[str, int]) -> Constraint | None:
    if not isinstance(form, Mapping):
        return None
    elements = form.get("elements")
    if form.get("type") == "or" and isinstance(elements, list):
        read = [_of_format(element, special_tokens) for element in elements]
        if not any(read):
            return None
        return union(*(one or _other(element, special_tokens) for one, element in zip(read, elements, strict=True)))
    grammar = _grammar(form)
    return None if grammar is None else _read(grammar, special_tokens, parallel=not form.get("stop_after_first"))


def _grammar(form: Mapping[str, Any]) -> str | None:
    """The text of the carrier that a format is, if it is one."""
    tags = form.get("tags")
    content = (
        tags[0].get("content") if isinstance(tags, list) and len(tags) == 1 and isinstance(tags[0], dict) else form
    )
    grammar = content.get("grammar") if isinstance(content, Mapping) and content.get("type") == "grammar" else None
    return grammar if isinstance(grammar, str) and grammar.lstrip().startswith(SIGN) else None


def _other(form: Any, special_tokens: Mapping[str, int]) -> Constraint:
    tag = {"type": "structural_tag", "format": form}
    return ConstraintSpec("structural_tag", tag, special_tokens=special_tokens).constraint


def _of_checkpoint(form: Any, special_tokens: Mapping[str, int]) -> Any:
    """The format of a checkpoint whose parser reads two: GigaChat 3.0 has no token of its own for calls."""
    is_older = "<|function_call|>" not in special_tokens and "<|role_sep|>" in special_tokens
    return "gigachat3_0" if form == "gigachat3" and is_older else form


def _read(grammar: str, special_tokens: Mapping[str, int], *, parallel: bool) -> Constraint:
    said = read_object(grammar.lstrip()[len(SIGN) :].encode(errors="surrogatepass"), f"What follows {SIGN}")
    asked = said.get("tool_call")
    if set(said) != {"tool_call"} or not isinstance(asked, Mapping) or not set(asked) <= _KEYS:
        raise SpecificationError(
            f'{SIGN} is followed by {{"tool_call": {{"format": ..., "tools": [...], ...}}}}, not {str(said)[:200]}'
        )
    tools = asked.get("tools")
    parallel = parallel and asked.get("parallel_tool_calls", True) is True
    form, choice = _of_checkpoint(asked.get("format", ""), special_tokens), asked.get("tool_choice", "auto")
    if choice != "auto":
        return tool_call(form, tools, tool_choice=choice, parallel_tool_calls=parallel)
    if asked.get("text", "before") == "before":
        return tool_call(form, tools, free_text="before", parallel_tool_calls=parallel)
    return union(
        tool_call(form, tools, tool_choice="none"),
        tool_call(form, tools, tool_choice="required", parallel_tool_calls=parallel),
    )
