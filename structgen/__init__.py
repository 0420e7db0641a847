"""structgen: language models that write exactly what a constraint allows."""

from structgen import first_import as _first_import  # noqa: F401  (before anything that holds kernels)
from structgen.api import generate_json
from structgen.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace, fill_next_token_bitmasks
from structgen.compiled import CompiledGrammar, compile_json_schema
from structgen.constraints import Constraint, json_schema
from structgen.errors import (
    BitmaskError,
    ConstraintError,
    GenerationError,
    IncompleteOutputError,
    MatcherStateError,
    ModelError,
    OptionsError,
    PatternError,
    SchemaError,
    SchemaTooComplexError,
    StructgenError,
    TokenError,
    TokenizerError,
    UnresolvableReferenceError,
    UnsatisfiableSchemaError,
    UnsupportedSchemaError,
)
from structgen.generator import ChoiceResult, GenerationOptions, GenerationResult, Generator, StreamEvent
from structgen.json_schema.loading import load_schema
from structgen.matcher import GrammarMatcher
from structgen.options import JsonOptions
from structgen.vocabulary.vocabulary import Vocabulary

__version__ = "0.1.0"

__all__ = [
    "BitmaskError",
    "ChoiceResult",
    "CompiledGrammar",
    "Constraint",
    "ConstraintError",
    "GenerationError",
    "GenerationOptions",
    "GenerationResult",
    "Generator",
    "GrammarMatcher",
    "IncompleteOutputError",
    "JsonOptions",
    "MatcherStateError",
    "ModelError",
    "OptionsError",
    "PatternError",
    "SchemaError",
    "SchemaTooComplexError",
    "StreamEvent",
    "StructgenError",
    "TokenError",
    "TokenizerError",
    "UnresolvableReferenceError",
    "UnsatisfiableSchemaError",
    "UnsupportedSchemaError",
    "Vocabulary",
    "__version__",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "compile_json_schema",
    "fill_next_token_bitmasks",
    "generate_json",
    "json_schema",
    "load_schema",
]
