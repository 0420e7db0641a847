"""structgen: language models that write exactly what a constraint allows."""

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
    UnresolvableReferenceError,
    UnsatisfiableSchemaError,
    UnsatisfiableTargetError,
    UnsupportedPatternError,
    UnsupportedSchemaError,
)
from structgen.generation_options import GenerationOptions
from structgen.generation_results import ChoiceResult, GenerationResult, StreamEvent
from structgen.generator import Generator
from structgen.json_schema.loading import load_schema
from structgen.options import JsonOptions
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
    "tag_dispatch",
    "think",
    "tool_call",
    "traverse_draft_tree",
    "union",
    "validate_tokens",
]
