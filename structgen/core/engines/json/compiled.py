"""Compiled grammars: a constraint for a vocabulary, immutable, shared by all its matchers."""

from __future__ import annotations

import sys
import time
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from structgen.core.engines.byte_sets import EVERY_BYTE, byte_set
from structgen.core.engines.json.completion.completions import JsonCompletions
from structgen.core.engines.json.completion.lengths import Lengths
from structgen.core.engines.json.masks.bitmask_rows import mask_rows
from structgen.core.engines.json.matcher import JsonMatcher
from structgen.core.engines.json.tables.arrays import write_tables
from structgen.core.engines.json.tables.verify import verify_tables
from structgen.core.engines.json.value_graph import disk_cache
from structgen.core.engines.json.value_graph.context import schema_too_complex
from structgen.core.engines.json.value_graph.graph import ValueGraph
from structgen.core.engines.json.value_graph.liveness import live_nodes, reachable
from structgen.core.engines.json.value_graph.needed_bytes import NeededBytes
from structgen.core.engines.json.value_graph.node import ValueNode, node_bytes, pooled_bytes
from structgen.core.json_prefix import loads_partial
from structgen.core.json_schema.formula.language import Formula
from structgen.core.json_schema.lowering import Lowered, lower
from structgen.core.json_schema.plain import plain_bytes, plain_json
from structgen.core.json_schema.report import Entry, Report
from structgen.core.json_text import loads_exact
from structgen.core.kernels.objects import is_on
from structgen.core.vocabulary.vocabulary import Vocabulary, check_vocabulary
from structgen.errors import OptionsError, SchemaTooComplexError, TokenizerError, TooComplexError
from structgen.options import JsonOptions, checked_options
from structgen.progress import waiting

if TYPE_CHECKING:
    from referencing import Registry


KEEP = "STRUCTGEN_KEEP_GRAMMARS"  # the variable that asks for value nodes to be kept in the cache folder
KEPT_SECONDS = 0.005  # reading a file takes some tenths of a millisecond: what is compiled sooner is not kept
LEAST_BYTES = 6_144  # what a grammar takes besides its arrays, value nodes and schema; measured
_SPACE = byte_set(b" \t\r\n")
# The byte that ends a JSON value, by the byte that begins it (RFC 8259). 1e5 ends in a digit, too.
_ENDS = {
    **{byte: byte_set(b"0123456789") for byte in b"-0123456789"},
    ord("{"): byte_set(b"}"),
    ord("["): byte_set(b"]"),
    ord('"'): byte_set(b'"'),
    ord("t"): byte_set(b"e"),
    ord("f"): byte_set(b"e"),
    ord("n"): byte_set(b"l"),
}


class Unlowered:
    """A schema whose nodes were found in the cache folder, or in another process: its formula is made when its report
    is asked for.

    Attributes:
        schema, options, registry, misspelt: see `Lowered`; value nodes of schemas with misspelt words are not kept.
    """

    def __init__(
        self,
        schema: Any,
        options: JsonOptions,
        registry: Registry[Any] | None = None,
        misspelt: dict[str, Entry] | None = None,
    ) -> None:
        self.schema, self.options, self.registry, self.misspelt = schema, options, registry, misspelt or {}

    @property
    def schema_bytes(self) -> int:
        """See `Lowered.schema_bytes`."""
        return plain_bytes(self.schema)

    @cached_property
    def report(self) -> Report:
        """See `Lowered.report`."""
        return lower(self.schema, self.options, self.registry).report


class JsonGrammar:
    """A JSON Schema as token-level automaton over a vocabulary. Make one with `compile_json_schema`.

    Attributes:
        vocabulary, options: as given to the compiler.
        tables: the grammar's arrays.
        rows: mask rows and automata, shared with other grammars of the vocabulary.
    """

    def __init__(
        self, lowered: Lowered | Unlowered, ignored: list[tuple[str, str]], root: ValueNode, vocabulary: Vocabulary
    ) -> None:
        self.vocabulary = vocabulary
        self.options = lowered.options
        self._lowered = lowered
        self._ignored = ignored
        self._root = root
        self.rows = mask_rows(vocabulary, self.options.string_escapes == "any")
        self.tables = write_tables(root, self.rows.pool, self.options)
        verify_tables(self.tables, self.rows.pool)

    def __reduce__(self) -> tuple[Any, ...]:
        """Its value nodes are sent, as plain arrays; rows and tables, which name places in them, are made anew.

        Raises:
            ValueError: an automaton has more states than are sent.
        """
        lowered = self._lowered
        about = (lowered.schema, lowered.options, lowered.registry, lowered.misspelt)
        return _received, (about, disk_cache.encode(self._root, self._ignored), self.vocabulary)

    def matcher(self) -> JsonMatcher:
        """See `Grammar.matcher`. O(1)."""
        return JsonMatcher(self)

    def last_bytes(self) -> int:
        """See `Grammar.last_bytes`. O(1)."""
        last = _SPACE if self.options.whitespace == "any" else 0
        for byte in np.flatnonzero(self.matcher().next_bytes()).tolist():
            last |= _ENDS.get(byte, EVERY_BYTE if byte not in b" \t\r\n" else byte_set(b'0123456789el}]"'))
        return last

    def normal_form(self) -> None:
        """See `Grammar.normal_form`: it has none."""

    @property
    def completions_are_shortest(self) -> bool:
        """See `Grammar.completions_are_shortest`: mostly they are."""
        return False

    @property
    def report(self) -> Report:
        """What is enforced, for every keyword of the schema, by JSON Pointer. Computed when asked for."""
        report = self._lowered.report.with_ignored(self._ignored)
        report.bounds_numbers = any(choice.has_ends for node in reachable(self._root) for choice in node.numbers)
        return report

    @property
    def misspelt(self) -> list[Entry]:
        """Words of the schema that are most likely misspelt keywords or formats: entries of the report. O(1)."""
        return list(self._lowered.misspelt.values())

    @property
    def memory_bytes(self) -> int:
        """About what this grammar takes: its arrays, its nodes with their automata, as they are and in the pool, the
        schema, and texts that complete outputs. Rows, which others share, are not counted."""
        written: JsonCompletions | None = self.__dict__.get("completions")
        return self._compiled_bytes + (0 if written is None else written.memory_bytes)

    @cached_property
    def _compiled_bytes(self) -> int:
        """What it takes from the start."""
        counted: set[int] = set()
        pooled: set[int] = set()
        nodes = sum([node_bytes(node, counted) + pooled_bytes(node, pooled) for node in live_nodes(self._root)])
        return LEAST_BYTES + self.tables.memory_bytes + nodes + self._lowered.schema_bytes

    @property
    def is_outdated(self) -> bool:
        """See `Grammar.is_outdated`."""
        return self.rows.is_outdated

    def parse(self, text: str) -> Any:
        """The value of a text of the language, with exact numbers. Raises GenerationError: see `loads_exact`."""
        return loads_exact(text)

    def parse_partial(self, text: str) -> Any:
        """The value of an unfinished text, as far as it goes; None where there is none yet."""
        return loads_partial(text)

    @cached_property
    def completions(self) -> JsonCompletions:
        """Shortest values per value node, for closing an output."""
        return JsonCompletions(self._root, self.options)

    @cached_property
    def lengths(self) -> Lengths:
        """How long such values are, for asking after every token."""
        return self.completions.lengths(self)


def check_arguments(vocabulary: Any, registry: Any) -> None:
    """Refuse what is no vocabulary and no registry.

    Raises:
        TokenizerError, OptionsError: what was found, and what was expected.
    """
    check_vocabulary(vocabulary)
    if registry is not None and not hasattr(registry, "get_or_retrieve"):
        raise OptionsError(
            f"registry is {registry!r:.100} ({type(registry).__name__}); expected a referencing.Registry or None"
        )


@waiting("compiling the schema")
def compile_json_schema(
    schema: Any,
    vocabulary: Vocabulary,
    options: JsonOptions | None = None,
    registry: Registry[Any] | None = None,
) -> JsonGrammar:
    """Compile a parsed JSON Schema (an object, true or false) for a vocabulary.

    Args:
        schema: parsed JSON; numbers may be int, float or Decimal, objects any mapping, arrays lists or tuples.
            `structgen.load_schema` reads text and files.
        vocabulary: the model's tokens.
        options: how text may be spelled and what is refused; the default suits generation.
        registry: other documents that the schema refers to (`referencing.Registry`).

    Raises:
        SchemaError: the schema is malformed (pointer and keyword are named).
        UnresolvableReferenceError: a ``$ref`` leads nowhere.
        UnsupportedSchemaError: a keyword is legal but not enforced yet.
        UnsatisfiableSchemaError: no JSON value is valid.
        SchemaTooComplexError: a budget of ``options`` is exceeded, or it is nested too deeply.
        TokenizerError: ``vocabulary`` is no `Vocabulary`, or lacks tokens without which texts could come to a dead end.
        OptionsError: ``options`` or ``registry`` is of another type.
        InternalError: the result fails its own check (a bug of structgen).
    """
    check_arguments(vocabulary, registry)
    options = checked_options(options)
    try:
        if registry is None and keeps_graphs():
            return _kept(schema, options, vocabulary)
        lowered = lower(schema, options, registry)
        return grammar_of(lowered, lowered.root, vocabulary)
    except (TooComplexError, RecursionError) as error:
        raise restated(error, options) from None


@cache
def keeps_graphs() -> bool:
    """Whether the environment asked for value nodes to be kept when the first schema was compiled."""
    return is_on(KEEP)


def _kept(schema: Any, options: JsonOptions, vocabulary: Vocabulary) -> JsonGrammar:
    """The grammar from value nodes in the cache folder; they are put there if they are missing and took long."""
    schema = plain_json(schema)
    key = disk_cache.key_of(schema, options)
    stored = disk_cache.load(key)
    if stored is not None:
        root, ignored = stored
        return _grammar(Unlowered(schema, options), ignored, root, vocabulary)
    began = time.perf_counter()
    lowered = lower(schema, options)
    grammar = grammar_of(lowered, lowered.root, vocabulary)
    if time.perf_counter() - began > KEPT_SECONDS and not lowered.misspelt:
        disk_cache.save(key, (grammar._root, grammar._ignored))
    return grammar


def grammar_of(lowered: Lowered, formula: Formula, vocabulary: Vocabulary) -> JsonGrammar:
    """The JSON text of the values of a formula, which speaks of a lowered schema.

    Raises:
        SchemaError, TokenizerError: see `compile_json_schema`.
    """
    graph = ValueGraph(lowered, lowered.options)
    return _grammar(lowered, graph.ignored, graph.compile(formula), vocabulary)


def _grammar(
    lowered: Lowered | Unlowered, ignored: list[tuple[str, str]], root: ValueNode, vocabulary: Vocabulary
) -> JsonGrammar:
    if vocabulary.missing_bytes:
        _check_bytes(root, vocabulary, lowered.options)
    return JsonGrammar(lowered, ignored, root, vocabulary)


def _received(about: tuple[Any, ...], nodes: disk_cache.Arrays, vocabulary: Vocabulary) -> JsonGrammar:
    """See `JsonGrammar.__reduce__`. It was checked before it was sent."""
    root, ignored = disk_cache.decode(nodes)
    return JsonGrammar(Unlowered(*about), ignored, root, vocabulary)


def restated(error: TooComplexError | RecursionError, options: JsonOptions) -> SchemaTooComplexError:
    """What is too much where a schema is compiled, said of the schema."""
    if isinstance(error, TooComplexError):
        return schema_too_complex(error, options)
    return SchemaTooComplexError("the schema is nested too deeply", limit=sys.getrecursionlimit())


def _check_bytes(root: ValueNode, vocabulary: Vocabulary, options: JsonOptions) -> None:
    missing = sorted(NeededBytes(vocabulary, options).missing(root))
    if missing:
        shown = ", ".join(repr(chr(byte)) if 0x20 <= byte < 0x7F else f"0x{byte:02X}" for byte in missing)
        raise TokenizerError(
            f"no token spells the single bytes {shown}; without them texts of this schema could come to a point from "
            "which no token goes on. Use a vocabulary with a token for each byte, or a schema that does without them"
        )
