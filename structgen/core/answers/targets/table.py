"""What providers and engines read of JSON Schema: data, each entry with its date and its sources.

A target's ``keywords`` are those that it accepts *and* enforces, besides the structure that all of them read (type,
anyOf, enum, $ref, $defs, properties, required, additionalProperties, items). What is accepted and not enforced is not
among them: it would promise what nobody keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from structgen.errors import OptionsError

_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_LENGTHS = frozenset({"minLength", "maxLength"})
_COUNTS = frozenset({"minItems", "maxItems"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})


@dataclass(frozen=True)
class SchemaTarget:
    """What one provider or engine reads.

    Attributes:
        name: as `structgen.lower` takes it. ``title``: its full name.
        as_of: month that the facts are of. ``sources``: where they are from.
        is_measured: whether they were measured on the engine itself, not read.
        keywords: what it accepts and enforces besides structure.
        formats: names of formats that it enforces; ``min_items``: the greatest minItems, None: any.
        is_open: whether objects may have members that are not declared.
        has_optional: whether members may be absent.
        object_root: whether the whole must be an object, written as one.
        recursion: whether definitions may lead to themselves; "optional": through members that may be absent.
        anything: how a value of any kind is asked for: by the empty schema, by a list of types, by a definition
            that leads to itself, or as JSON text in a string.
        enum_types: what an enumeration may list.
        patterns: the expressions taken: "simple" (no lookaround, boundaries, references, properties), or "plain"
            (literals and classes that list characters, ``^`` at the beginning and ``$`` at the end).
        max_repeat: up to which length limits are written as a pattern, where lengths are not taken; 0: never.
        max_count: the greatest length or number of items that is taken; None: any.
        bounded_types: whose bounds are enforced.
        length_with_pattern: whether a pattern and lengths may stand together.
        tuples: items by position: "no", "closed" (only those), "yes".
        folds_enums: whether answers may have the strings of an enumeration in other capitals.
        limits: "properties", "depth", "enum_values", "characters" (of names and enumerated strings), "optional",
            "unions", "long_enum" (characters of an enumeration of more than 250 values), "tools".
        counted_together: the limits that hold for all tools of a request together.
    """

    name: str
    title: str
    as_of: str
    sources: tuple[str, ...]
    keywords: frozenset[str]
    formats: frozenset[str] = _FORMATS
    min_items: int | None = None
    is_measured: bool = False
    is_open: bool = True
    has_optional: bool = True
    object_root: bool = False
    recursion: Literal["yes", "optional", "no"] = "yes"
    anything: Literal["empty", "types", "definition", "text"] = "empty"
    enum_types: frozenset[str] = frozenset({"null", "boolean", "number", "string"})
    patterns: Literal["simple", "plain"] = "simple"
    max_repeat: int = 0
    max_count: int | None = None
    bounded_types: frozenset[str] = frozenset({"integer", "number"})
    length_with_pattern: bool = True
    tuples: Literal["no", "closed", "yes"] = "no"
    folds_enums: bool = False
    limits: Mapping[str, int] = field(default_factory=dict)
    counted_together: tuple[str, ...] = ()


_OPENAI = SchemaTarget(
    "openai",
    "OpenAI, strict structured outputs and functions",
    "2026-10",
    ("https://developers.openai.com/api/docs/guides/structured-outputs",),
    _BOUNDS | _COUNTS | {"pattern", "format"},
    is_open=False,
    has_optional=False,
    object_root=True,
    anything="definition",
    max_repeat=1_000,
    limits={
        "properties": 5_000,
        "depth": 10,
        "enum_values": 1_000,
        "characters": 120_000,
        "long_enum": 15_000,
    },
)
_ANTHROPIC = SchemaTarget(
    "anthropic",
    "Anthropic, structured outputs and strict tools",
    "2026-10",
    (
        "https://platform.claude.com/docs/en/build-with-claude/structured-outputs",
        "https://github.com/anthropics/anthropic-sdk-python (_transform.py)",
    ),
    frozenset({"pattern", "format", "minItems"}),
    formats=_FORMATS | {"uri"},
    min_items=1,
    is_open=False,
    object_root=True,
    recursion="no",
    anything="text",
    folds_enums=True,
    limits={"optional": 24, "unions": 16, "tools": 20},
    counted_together=("tools", "optional", "unions"),
)
_GEMINI = SchemaTarget(
    "gemini",
    "Gemini, responseJsonSchema",
    "2026-10",
    (
        "https://ai.google.dev/gemini-api/docs/structured-output",
        "https://github.com/googleapis/python-genai (types.py, response_json_schema)",
    ),
    _COUNTS | {"minimum", "maximum", "prefixItems"},
    formats=frozenset(),
    recursion="optional",
    anything="types",
    enum_types=frozenset({"number", "string"}),
    tuples="yes",
)
_LLAMA = SchemaTarget(
    "llama.cpp",
    "llama.cpp's converter, which Ollama uses too",
    "2026-10",
    ("the converter that cyllama 0.2.18 ships, run", "https://github.com/ggml-org/llama.cpp (grammars/README.md)"),
    _LENGTHS | _COUNTS | {"minimum", "maximum", "pattern", "format", "prefixItems"},
    bounded_types=frozenset({"integer"}),
    formats=frozenset({"date", "time", "date-time", "uuid"}),
    is_measured=True,
    anything="types",
    patterns="plain",
    max_count=2_000,
    length_with_pattern=False,
    tuples="closed",
)
_XGRAMMAR = SchemaTarget(
    "xgrammar",
    "XGrammar 0.2.8, which vLLM and SGLang use",
    "2026-10",
    ("run", "https://xgrammar.mlc.ai/docs/"),
    _LENGTHS | _COUNTS | (_BOUNDS - {"multipleOf"}) | {"pattern", "format", "prefixItems"},
    formats=frozenset({"date", "date-time", "uuid", "ipv4"}),
    is_measured=True,
    patterns="plain",
    length_with_pattern=False,
    tuples="yes",
)
_LLGUIDANCE = SchemaTarget(
    "llguidance",
    "llguidance 1.9, which vLLM and SGLang offer too",
    "2026-10",
    ("run", "https://github.com/guidance-ai/llguidance (docs/json_schema.md)"),
    _BOUNDS | _LENGTHS | _COUNTS | {"pattern", "format", "prefixItems", "patternProperties"},
    formats=_FORMATS - {"duration"} | {"uri"},
    is_measured=True,
    patterns="simple",
    tuples="yes",
)
_BEDROCK = replace(
    _ANTHROPIC,
    name="bedrock",
    title="Amazon Bedrock, structured outputs of all models",
    sources=("https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html",),
)

TARGETS: Mapping[str, SchemaTarget] = {
    one.name: one for one in (_OPENAI, _ANTHROPIC, _BEDROCK, _GEMINI, _LLAMA, _XGRAMMAR, _LLGUIDANCE)
}
OTHER_NAMES = {"ollama": "llama.cpp", "azure": "openai", "vllm": "xgrammar", "sglang": "xgrammar"}


def target_of(name: str | SchemaTarget) -> SchemaTarget:
    """The target of a name.

    Raises:
        OptionsError: there is none.
    """
    if isinstance(name, SchemaTarget):
        return name
    target = TARGETS.get(OTHER_NAMES.get(name, name)) if isinstance(name, str) else None
    if target is None:
        names = ", ".join([*TARGETS, *OTHER_NAMES])
        raise OptionsError(f"a target is one of {names}, not {name!r:.80}", option="target", value=name)
    return target
