"""Rules about keywords: those without effect, misspelt or ignored, annotations that the schema refuses, patterns."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

from structgen.core.answers.lint.findings import Finding, LintRule, SchemaView
from structgen.core.json_schema.explained import Subschema
from structgen.core.json_schema.formula.language import TRUE, All, Enum, Formula, Pat, Type, and_, not_
from structgen.core.json_schema.formula.values import STRING
from structgen.core.json_schema.pointers import escape

_WANTED = ("type", "minLength", "minItems", "minProperties", "uniqueItems")
"""Keywords that readers want even where they say nothing (``minLength: 0``, ``type`` beside ``enum``)."""


def without_effect(view: SchemaView) -> Iterator[Finding]:
    """Keywords that the others of the same schema imply; a warning where the type alone does."""
    for pointer, part in view.subschemas.items():
        for name, said in part.keywords.items():
            entry = view.dialect.keywords.get(name)
            if entry is None or entry.subschemas != "none" or entry.is_reference or name == "type":
                continue
            if said is TRUE:
                continue
            where = f"{pointer}/{name}"
            kind = part.keywords.get("type", TRUE)
            if kind is not TRUE and view.questions.simulation.implies(kind, said):
                message = f"{name} says nothing of values of the type that the schema asks for"
                yield Finding("wrong-type", "warning", where, message, {"question": f"type implies {name}"})
            elif name not in _WANTED and _implied(view, where, view.others(part, name), said):
                message = f"{name} has no effect: the other keywords of the schema imply it"
                yield Finding("no-effect", "info", where, message, {"question": f"the others imply {name}"})


def _implied(view: SchemaView, where: str, others: Formula, said: Formula) -> bool:
    return others is not TRUE and view.contained(where, others, said).contained is True


def refused_annotations(view: SchemaView) -> Iterator[Finding]:
    """``default`` and ``examples`` that their own schema refuses."""
    for pointer, part in view.subschemas.items():
        listed: list[tuple[str, Any]] = []
        if "default" in part.schema:
            listed.append((f"{pointer}/default", part.schema["default"]))
        examples = part.schema.get("examples")
        if isinstance(examples, list):
            listed += [(f"{pointer}/examples/{index}", value) for index, value in enumerate(examples)]
        for where, value in listed:
            if view.questions.simulation.holds(part.formula, value) is False:
                what = where.rpartition("/")[2]
                message = f"the schema refuses its own {'default' if what == 'default' else 'example'} {value!r:.60}"
                yield Finding("refused-annotation", "warning", where, message, {"document": value})


def misspelt(view: SchemaView) -> Iterator[Finding]:
    """Words that are most likely misspelt keywords, formats or names of members."""
    for where, entry in view.whole.misspelt.items():
        yield Finding("misspelt", "warning", where, entry.reason, {"question": "no draft has this word"})


def undeclared_required(view: SchemaView) -> Iterator[Finding]:
    """Required members that ``properties`` of the same schema does not declare."""
    for pointer, part in view.subschemas.items():
        declared, names = part.schema.get("properties"), part.schema.get("required")
        if not (isinstance(declared, dict) and declared and isinstance(names, list)):
            continue
        for index, name in enumerate(names):
            where = f"{pointer}/required/{index}"
            if isinstance(name, str) and name not in declared and where not in view.whole.misspelt:
                near = get_close_matches(name, list(declared), 1, 0.75)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                message = f"{name!r} is required and not declared: it may have any value{hint}"
                if not _is_spoken_of(part, name):
                    yield Finding("undeclared-required", "warning", where, message, {"question": "by look"})


def _is_spoken_of(part: Subschema, name: str) -> bool:
    """Whether another keyword of the schema speaks of the member (``patternProperties``, ``allOf``, ...)."""
    return any(key in part.schema for key in ("patternProperties", "allOf", "anyOf", "oneOf", "$ref", "if"))


def ignored(view: SchemaView) -> Iterator[Finding]:
    """Keywords that are there and not read: those next to ``$ref`` up to draft 7, ``then`` without ``if``."""
    for entry in view.whole.report.entries:
        if entry.status == "ignored" and entry.pointer.startswith("/"):
            yield Finding("ignored-keyword", "warning", entry.pointer, entry.reason, {"question": "by the draft"})


def patterns(view: SchemaView) -> Iterator[Finding]:
    """Anchors that bind one alternative of a pattern alone (``^dev|alpha|stable$``)."""
    for pointer, part in view.subschemas.items():
        regex = part.schema.get("pattern")
        if not isinstance(regex, str) or not isinstance(part.keywords.get("pattern"), (Pat, Type)):
            continue
        inner = regex.removeprefix("^").removesuffix("$")
        if len(regex) - len(inner) != 2 or regex.endswith("\\$") or not _has_outer_choice(inner):
            continue
        where = f"{pointer}/pattern"
        decision = view.contained(where, and_(Type(STRING), Pat(regex)), Pat(f"^(?:{inner})$"))
        if decision.contained is False:
            message = f"^ and $ bind the first and last alternative alone; for all of them write ^(?:{inner})$"
            yield Finding("split-anchors", "warning", where, message, {"text": decision.value})


def _has_outer_choice(regex: str) -> bool:
    """Whether a ``|`` stands outside groups and classes."""
    depth, in_class, skips = 0, False, False
    for char in regex:
        if skips:
            skips = False
        elif char == "\\":
            skips = True
        elif in_class:
            in_class = char != "]"
        elif char == "[":
            in_class = True
        elif char in "()":
            depth += 1 if char == "(" else -1
        elif char == "|" and depth == 0:
            return True
    return False


def impossible(view: SchemaView) -> Iterator[Finding]:
    """Schemas that nothing satisfies: the whole, and definitions."""
    for pointer, part in view.subschemas.items():
        parents = pointer.split("/")
        if pointer and not (len(parents) > 2 and parents[-2] in ("$defs", "definitions")):
            continue
        if view.contained(pointer, part.formula, _NOTHING).contained:
            message = "no value satisfies this schema"
            yield Finding("unsatisfiable", "error", pointer, message, {"question": "no value"})


_NOTHING = not_(TRUE)


def dead_members(view: SchemaView) -> Iterator[Finding]:
    """Declared members that can never be there, although the object can."""
    for pointer, part in view.subschemas.items():
        declared = part.schema.get("properties")
        if not isinstance(declared, dict) or "properties" not in part.keywords:
            continue
        node = view.node(pointer, part.formula)
        if node is None or not node.objects:
            continue
        for name, child in declared.items():
            if child is False or any(name in spec.keys and name not in spec.forbidden for spec in node.objects):
                continue
            where = f"{pointer}/properties/{escape(name)}"
            said = and_(part.formula, not_(All(Enum([name]), _NOTHING)))
            if view.contained(where, said, _NOTHING).contained:
                message = f"the member {name!r} can never be there; if that is meant, write false"
                yield Finding("dead-member", "warning", where, message, {"question": "object with the member: empty"})


RULES = [
    LintRule("unsatisfiable", "A schema or definition that no value satisfies.", impossible),
    LintRule("dead-member", "A declared member that can never be there.", dead_members),
    LintRule("no-effect", "A keyword that others of the same schema imply.", without_effect),
    LintRule("refused-annotation", "A default or example that its own schema refuses.", refused_annotations),
    LintRule("misspelt", "A word that is most likely a misspelt keyword.", misspelt),
    LintRule("undeclared-required", "A required member that is not declared.", undeclared_required),
    LintRule("ignored-keyword", "A keyword that the draft does not read where it stands.", ignored),
    LintRule("split-anchors", "Anchors that bind one alternative of a pattern alone.", patterns),
]
