"""Definitions that lead to themselves: at once, without a step into the value, which no target reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from structgen.core.answers.targets.written import Simple, union_of


def reached(edges: Mapping[str, Iterable[str]], name: str) -> dict[str, None]:
    """What edges lead to from a name, in one step or more."""
    names: dict[str, None] = {}
    todo = list(edges[name])
    while todo:
        other = todo.pop()
        if other not in names:
            names[other] = None
            todo += edges.get(other, ())
    return names


def open_loops(definitions: dict[str, Simple | None]) -> None:
    """Write anew, in place, the definitions that are alternatives of themselves: as all others of theirs.

    ``{"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]}}`` is a string.
    """
    branches = {name: [] if simple is None else list(_alternatives(simple)) for name, simple in definitions.items()}
    edges = {name: list(filter(None, map(_target, listed))) for name, listed in branches.items()}
    ahead = {name: reached(edges, name) for name in edges}
    for name in [name for name in definitions if name in ahead[name]]:
        circle = [name, *(other for other in ahead[name] if other != name and name in ahead.get(other, ()))]
        simple, listed = definitions[name] or {}, [one for other in circle for one in branches[other]]
        union = union_of([one for one in listed if _target(one) not in circle])
        texts: Simple = {word: simple[word] for word in ("title", "description") if word in simple}
        definitions[name] = None if union is None else {**union, **texts}


def _alternatives(simple: Simple) -> Iterator[Simple]:
    if "anyOf" in simple:
        for branch in simple["anyOf"]:
            yield from _alternatives(branch)
    else:
        yield simple


def _target(simple: Simple) -> str:
    """The definition that a schema is a reference to; "": it is none."""
    return str(simple.get("$ref", "")).rpartition("/")[2]
