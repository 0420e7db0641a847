"""structgen: language models that write exactly what a constraint allows.

What is exported is loaded when it is first asked for, with what it needs and nothing else.
"""

from importlib import import_module as _import_module
from sys import modules as _modules
from typing import TYPE_CHECKING

from structgen.errors import (
    BitmaskError,
    CapturesTooComplexError,
    CompletionTooLongError,
    ConstraintError,
    EmptyLanguageError,
    GenerationError,
    GrammarError,
    GrammarTooComplexError,
    GrammarWarning,
    IncompleteOutputError,
    InternalError,
    MatcherStateError,
    ModelError,
    OptionsError,
    PatternError,
    PatternTooComplexError,
    RefusedValueError,
    SchemaError,
    SchemaTooComplexError,
    StructgenError,
    TokenError,
    TokenizerError,
    TooComplexError,
    ToolCallError,
    UnknownKeywordError,
    UnresolvableReferenceError,
    UnsatisfiableSchemaError,
    UnsatisfiableTargetError,
    UnsupportedPatternError,
    UnsupportedSchemaError,
)

if TYPE_CHECKING:
    from structgen.api import generate_json
    from structgen.batch import BatchProgress
    from structgen.compilers import (
        compile_choice,
        compile_gbnf,
        compile_json_lines,
        compile_json_schema,
        compile_lark,
        compile_regex,
        compile_tag_dispatch,
    )
    from structgen.constraints.base import Constraint
    from structgen.constraints.combined import ConcatConstraint, UnionConstraint, concat, union
    from structgen.constraints.composed import TagDispatch, TagPart, json_lines, tag_dispatch
    from structgen.constraints.json import json_schema
    from structgen.constraints.text import TextConstraint, choice, gbnf, lark, regex
    from structgen.constraints.thinking import Thinking, think
    from structgen.constraints.tools import ToolCalls, tool_call
    from structgen.engines.batches import (
        batch_accept_bytes,
        batch_accept_token,
        batch_advance_and_fill,
        batch_rollback,
    )
    from structgen.engines.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace, fill_next_token_bitmasks
    from structgen.engines.capture import Capture
    from structgen.engines.captures.capturing import CapturingGrammar
    from structgen.engines.drafts import (
        fill_draft_token_bitmasks,
        find_jump_forward_string,
        traverse_draft_tree,
        validate_tokens,
    )
    from structgen.engines.json.compiled import JsonGrammar
    from structgen.engines.json.matcher import JsonMatcher
    from structgen.engines.protocols import Grammar as CompiledGrammar
    from structgen.engines.protocols import Matcher as GrammarMatcher
    from structgen.generation_options import GenerationOptions
    from structgen.generation_results import ChoiceResult, GenerationResult, StreamEvent
    from structgen.generator import Generator
    from structgen.json_schema.loading import load_schema
    from structgen.options import JsonOptions
    from structgen.progress import ProgressEvent, report_progress
    from structgen.tool_calls.calls import ToolCall
    from structgen.vocabulary.special_tokens import SpecialToken
    from structgen.vocabulary.vocabulary import Vocabulary

__version__ = "0.1.0"

__all__ = [
    "BatchProgress",
    "BitmaskError",
    "Capture",
    "CapturesTooComplexError",
    "CapturingGrammar",
    "ChoiceResult",
    "CompiledGrammar",
    "CompletionTooLongError",
    "ConcatConstraint",
    "Constraint",
    "ConstraintError",
    "EmptyLanguageError",
    "GenerationError",
    "GenerationOptions",
    "GenerationResult",
    "Generator",
    "GrammarError",
    "GrammarMatcher",
    "GrammarTooComplexError",
    "GrammarWarning",
    "IncompleteOutputError",
    "InternalError",
    "JsonGrammar",
    "JsonMatcher",
    "JsonOptions",
    "MatcherStateError",
    "ModelError",
    "OptionsError",
    "PatternError",
    "PatternTooComplexError",
    "ProgressEvent",
    "RefusedValueError",
    "SchemaError",
    "SchemaTooComplexError",
    "SpecialToken",
    "StreamEvent",
    "StructgenError",
    "TagDispatch",
    "TagPart",
    "TextConstraint",
    "Thinking",
    "TokenError",
    "TokenizerError",
    "TooComplexError",
    "ToolCall",
    "ToolCallError",
    "ToolCalls",
    "UnionConstraint",
    "UnknownKeywordError",
    "UnresolvableReferenceError",
    "UnsatisfiableSchemaError",
    "UnsatisfiableTargetError",
    "UnsupportedPatternError",
    "UnsupportedSchemaError",
    "Vocabulary",
    "__version__",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "batch_accept_bytes",
    "batch_accept_token",
    "batch_advance_and_fill",
    "batch_rollback",
    "choice",
    "compile_choice",
    "compile_gbnf",
    "compile_json_lines",
    "compile_json_schema",
    "compile_lark",
    "compile_regex",
    "compile_tag_dispatch",
    "concat",
    "fill_draft_token_bitmasks",
    "fill_next_token_bitmasks",
    "find_jump_forward_string",
    "gbnf",
    "generate_json",
    "json_lines",
    "json_schema",
    "lark",
    "load_schema",
    "regex",
    "report_progress",
    "tag_dispatch",
    "think",
    "tool_call",
    "traverse_draft_tree",
    "union",
    "validate_tokens",
]

_LOADED_WHEN_USED = {
    "api": "generate_json",
    "batch": "BatchProgress",
    "compilers": "compile_choice compile_gbnf compile_json_lines compile_json_schema compile_lark compile_regex "
    "compile_tag_dispatch",
    "constraints.base": "Constraint",
    "constraints.combined": "ConcatConstraint UnionConstraint concat union",
    "constraints.composed": "TagDispatch TagPart json_lines tag_dispatch",
    "constraints.json": "json_schema",
    "constraints.text": "TextConstraint choice gbnf lark regex",
    "constraints.thinking": "Thinking think",
    "constraints.tools": "ToolCalls tool_call",
    "engines.batches": "batch_accept_bytes batch_accept_token batch_advance_and_fill batch_rollback",
    "engines.bitmask": "allocate_token_bitmask apply_token_bitmask_inplace fill_next_token_bitmasks",
    "engines.capture": "Capture",
    "engines.captures.capturing": "CapturingGrammar",
    "engines.drafts": "fill_draft_token_bitmasks find_jump_forward_string traverse_draft_tree validate_tokens",
    "engines.json.compiled": "JsonGrammar",
    "engines.json.matcher": "JsonMatcher",
    "engines.protocols": "Grammar Matcher",
    "generation_options": "GenerationOptions",
    "generation_results": "ChoiceResult GenerationResult StreamEvent",
    "generator": "Generator",
    "json_schema.loading": "load_schema",
    "options": "JsonOptions",
    "progress": "ProgressEvent report_progress",
    "tool_calls.calls": "ToolCall",
    "vocabulary.special_tokens": "SpecialToken",
    "vocabulary.vocabulary": "Vocabulary",
}
_MODULE_OF = {name: module for module, names in _LOADED_WHEN_USED.items() for name in names.split()}
_NAME_THERE = {"CompiledGrammar": "Grammar", "GrammarMatcher": "Matcher"}

# The package of this name is bound here when it is first imported: now, so that it never hides the function.
_import_module("structgen.json_schema")
globals().pop("json_schema", None)

if not TYPE_CHECKING:  # a type checker reads the imports above, and refuses other names

    def __getattr__(name):
        there = _NAME_THERE.get(name, name)
        if name not in __all__ or there not in _MODULE_OF:
            module = _modules[__name__]  # which lets Python say what name was meant
            raise AttributeError(f"module 'structgen' has no attribute {name!r}", name=name, obj=module)
        value = getattr(_import_module(f"structgen.{_MODULE_OF[there]}"), there)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
