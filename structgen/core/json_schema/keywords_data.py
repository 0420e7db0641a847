"""The keyword ``x-structgen``: quotes of documents, names of a list, phrases, values that are taken away.

``"x-structgen": {"quoteOf": {"text": "..."}}`` says of strings that they are a part of the text, word for word;
``{"oneOf": ["...", ...]}`` that they are one of some names. Where a name stands in place of either, the documents come
with the request, and `with_sources` puts a name there that holds them. ``{"max_tokens": 60, "temperature": 1.0}`` says
how values are written, which decoding keeps (`structgen.core.json_schema.regions`). ``{"without": [...]}`` takes values
away, of any type. ``including``, ``avoiding`` and ``strings`` say which phrases strings hold
(`structgen.core.json_schema.phrases`). ``{"document": {...}}``, at the root, says as much of the whole value alone, and
not of what refers to its schema. The keyword holds beside ``$ref`` in all drafts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from structgen.core.json_schema import checks
from structgen.core.json_schema.formula.language import TRUE, Enum, Formula, Quoted, Type, and_, not_, or_
from structgen.core.json_schema.formula.values import ANY, STRING
from structgen.core.json_schema.keyword import DATA, MAPS, X_STRUCTGEN, Keyword, Schema
from structgen.core.json_schema.phrases import STRINGS, phrases, strings_within
from structgen.core.json_schema.pointers import ROOT
from structgen.core.regions import TERMS, region_of
from structgen.core.text_sets.encoding import encoded
from structgen.core.text_sets.phrases import AVOIDING, INCLUDING
from structgen.core.text_sets.references import Documents, SourceReference
from structgen.errors import ConstraintError, OptionsError, SchemaError

if TYPE_CHECKING:
    from structgen.core.json_schema.context import Context
    from structgen.core.json_schema.pointers import Pointer
    from structgen.core.text_sets.corpus import Corpus
    from structgen.core.text_sets.names import NameSet

    Source = str | Mapping[str, str] | Iterable[str] | Corpus | NameSet

QUOTE_OF, ONE_OF, BOUNDARY, FOLD, WITHOUT, DOCUMENT = "quoteOf", "oneOf", "boundary", "fold", "without", "document"
_SPEAKING = (QUOTE_OF, ONE_OF, WITHOUT, INCLUDING, AVOIDING, STRINGS, DOCUMENT, *TERMS)
WORDS = frozenset({BOUNDARY, FOLD, *_SPEAKING})
_HIDDEN = WORDS - {INCLUDING, AVOIDING, STRINGS, DOCUMENT}  # what a prompt does not show
_NOT_STRING = Type(ANY & ~STRING)
_FORMS = 'the name of a source, {"text": "..."} or {"documents": {"name": "...", ...}}'


@Keyword(X_STRUCTGEN, "")
def x_structgen(value: Any, schema: Schema, pointer: Pointer, context: Context) -> Formula:
    """Parts of documents, names, phrases, values that are taken away; how values are written says nothing of them."""
    given = checks.mapping(value, pointer)
    unknown = sorted(given.keys() - WORDS)
    if unknown or given.keys().isdisjoint(_SPEAKING):
        checks.refuse(pointer, f"an object with one of {', '.join(_SPEAKING)}", value)
    if QUOTE_OF not in given and (unread := next((word for word in (BOUNDARY, FOLD) if word in given), None)):
        checks.refuse((pointer, unread), f'"{unread}" next to "{QUOTE_OF}" alone', given[unread], within=1)
    if DOCUMENT in given and pointer[0] != ROOT:
        checks.refuse(pointer, f'"{DOCUMENT}" at the root of the schema alone', value)
    try:
        region_of({name: given[name] for name in TERMS if name in given})
    except OptionsError as error:
        raise SchemaError(str(error), pointer=_text(pointer), keyword=X_STRUCTGEN) from error
    parts: list[Formula] = []
    if ONE_OF in given:
        parts.append(Enum(_names(given[ONE_OF], (pointer, ONE_OF))))
    if QUOTE_OF in given:
        parts.append(Quoted(_corpus(given, (pointer, QUOTE_OF))))
    formula = and_(*parts)
    if parts and schema.get("type") != "string":
        formula = or_(_NOT_STRING, formula)
    formula = and_(formula, *phrases(given, pointer))
    if STRINGS in given:
        formula = and_(formula, strings_within(given[STRINGS], (pointer, STRINGS), context))
    if WITHOUT in given:
        where = (pointer, WITHOUT)
        formula = and_(
            formula, not_(Enum([checks.json_value(each, where) for each in checks.array(given[WITHOUT], where)]))
        )
    return formula


def document(schema: Any, context: Context) -> Formula:
    """What the keyword at the root says of the document as a whole, and not of what refers to the root's schema."""
    given = schema.get(X_STRUCTGEN) if isinstance(schema, dict) else None
    if not isinstance(given, dict) or DOCUMENT not in given:
        return TRUE
    pointer = (ROOT, X_STRUCTGEN)
    whole = x_structgen(checks.mapping(given[DOCUMENT], (pointer, DOCUMENT)), {}, (pointer, DOCUMENT), context)
    formula = and_(x_structgen(given, schema, pointer, context), whole)
    if context.trace is not None:
        context.trace.visit(schema, ROOT, context)
        context.trace.record(formula, pointer)
    return formula


def with_conditions(schema: Any, word: str, conditions: Sequence[Any]) -> Any:
    """A schema with more under a word that holds a list (WITHOUT, STRINGS), which is said of the document alone."""
    if not conditions or schema is False:
        return schema
    root = {} if schema is True else schema
    given = root.get(X_STRUCTGEN, {})
    whole = given.get(DOCUMENT, {})
    return {**root, X_STRUCTGEN: {**given, DOCUMENT: {**whole, word: [*whole.get(word, ()), *conditions]}}}


def _names(given: Any, pointer: Pointer) -> list[str]:
    if isinstance(given, SourceReference) and isinstance(given.source, Iterable):
        return list(given.source)
    if isinstance(given, str):
        _refuse_name(given, pointer)
    names = checks.strings(given, pointer)
    if not names or "" in names:
        checks.refuse(pointer, "a non-empty array of names that are not empty", given)
    for number, name in enumerate(names):
        try:
            encoded(name, f"name {number}")
        except ConstraintError as error:
            raise SchemaError(str(error), pointer=_text((pointer, number)), keyword=X_STRUCTGEN) from error
    return names


def _corpus(given: dict[str, Any], pointer: Pointer) -> Corpus:
    """The index of the documents that a value names."""
    from structgen.core.text_sets.corpus import known_corpus  # deferred: only some schemas have documents

    boundary, fold = given.get(BOUNDARY, "char"), given.get(FOLD, False)
    documents = _documents(given[QUOTE_OF], pointer)
    if not isinstance(documents, Mapping):
        return documents
    if not isinstance(fold, bool):
        fold = checks.strings(fold, (pointer[0], FOLD))
    try:
        return known_corpus(documents, boundary, fold)
    except (ConstraintError, OptionsError) as error:
        raise SchemaError(str(error), pointer=_text(pointer), keyword=X_STRUCTGEN) from error


def _documents(source: Any, pointer: Pointer) -> Mapping[str, Any] | Corpus:
    """The texts by name that a value gives or refers to, or their index."""
    if isinstance(source, SourceReference) and not isinstance(source.source, Iterable):
        return source.source.texts if isinstance(source.source, Documents) else source.source
    if isinstance(source, str):
        _refuse_name(source, pointer)
    if not isinstance(source, Mapping):
        checks.refuse(pointer, _FORMS, source)
    form = checks.mapping(source, pointer)
    if form.keys() == {"text"}:
        return {"": form["text"]}
    if form.keys() != {"documents"}:
        checks.refuse(pointer, _FORMS, source)
    return checks.mapping(form["documents"], (pointer, "documents"))


def _text(pointer: Pointer) -> str:
    from structgen.core.json_schema.pointers import pointer_text

    return pointer_text(pointer)


def _refuse_name(name: str, pointer: Pointer) -> NoReturn:
    raise SchemaError(
        f"no source is called {name!r:.100}",
        pointer=_text(pointer),
        keyword=X_STRUCTGEN,
        hint='Give it with the schema (sources={"' + name[:100] + '": ...}), or write its text in place of the name.',
    )


def with_sources(schema: Any, sources: Mapping[str, Source], *, is_map: bool = False) -> Any:
    """A schema with references to sources in place of their names. Other names stay, and are refused later.

    Args:
        schema: parsed JSON; what has no such names is not copied.
        sources: texts, texts by name, lists of names, `Corpus`, `NameSet`.
        is_map: whether it is schemas by names, which may be those of keywords.

    Raises:
        ConstraintError: a source is none of these, or of the other kind than the schema asks for.
    """
    if isinstance(schema, Mapping):
        changed = {
            key: with_sources(value, sources)
            if is_map
            else _filled(value, sources)
            if key == X_STRUCTGEN
            else value
            if key in DATA
            else with_sources(value, sources, is_map=key in MAPS)
            for key, value in schema.items()
        }
        return changed if any(changed[key] is not schema[key] for key in changed) else schema
    if isinstance(schema, (list, tuple)):
        items = [with_sources(item, sources) for item in schema]
        return items if any(one is not other for one, other in zip(items, schema, strict=True)) else schema
    return schema


def _filled(value: Any, sources: Mapping[str, Source]) -> Any:
    """The value of the keyword with sources in place of their names."""
    if not isinstance(value, Mapping):
        return value
    filled = dict(value)
    for word, refers in ((QUOTE_OF, documents_reference), (ONE_OF, names_reference)):
        name = value.get(word)
        if isinstance(name, str) and name in sources:
            filled[word] = refers(sources[name], f"source {name!r:.100}")
    if DOCUMENT in value:
        filled[DOCUMENT] = _filled(value[DOCUMENT], sources)
    return filled if filled != value else value


def written_out(schema: Any) -> Any:
    """A copy of plain JSON in which what sources hold stands in place of the references to them."""
    if isinstance(schema, dict):
        written = {key: written_out(value) for key, value in schema.items()}
        for word, content in ((QUOTE_OF, written_documents), (ONE_OF, written_names)):
            if isinstance(written.get(word), SourceReference):
                written |= content(written[word].source)
        return written
    return [written_out(item) for item in schema] if isinstance(schema, list) else schema


def documents_reference(source: Any, what: str = "the source") -> SourceReference:
    """What stands for documents. Errors as `written_documents`."""
    from structgen.core.text_sets.corpus import Corpus

    if isinstance(source, (Corpus, Documents)):
        return SourceReference(source)
    if not isinstance(source, (str, Mapping)):
        raise _no_documents(source, what)
    return SourceReference(Documents({"": source} if isinstance(source, str) else source))


def names_reference(source: Any, what: str = "the source") -> SourceReference:
    """What stands for names.

    Raises:
        ConstraintError: it is neither a list of texts nor a `NameSet`; as `NameSet.build`.
    """
    from structgen.core.text_sets.names import NameSet

    _check_names(source, what)
    return SourceReference(source if isinstance(source, NameSet) else NameSet.build(source))


def _check_names(source: Any, what: str) -> None:
    if isinstance(source, (str, Mapping)) or not isinstance(source, Iterable) or hasattr(source, "quote"):
        raise ConstraintError(f"{what} is {type(source).__name__}; names need a list of texts, or a NameSet")


def _no_documents(source: Any, what: str) -> ConstraintError:
    return ConstraintError(f"{what} is {type(source).__name__}; quotes need a text, texts by name, or a Corpus")


def written_documents(source: Any, what: str = "the source") -> dict[str, Any]:
    """What the keyword says of documents.

    Raises:
        ConstraintError: it is neither a text, nor texts by name, nor a `Corpus`.
    """
    from structgen.core.text_sets.corpus import Corpus, remember

    if isinstance(source, Corpus):
        remember(source)
        folds = {FOLD: list(source.folds)} if source.folds else {}
        return {QUOTE_OF: {"documents": source.texts()}, BOUNDARY: source.boundary_name, **folds}
    if isinstance(source, str):
        return {QUOTE_OF: {"text": source}}
    source = source.texts if isinstance(source, Documents) else source
    if isinstance(source, Mapping):
        return {QUOTE_OF: {"documents": dict(source)}}
    raise _no_documents(source, what)


def written_names(source: Any, what: str = "the source") -> dict[str, Any]:
    """What the keyword says of names.

    Raises:
        ConstraintError: it is neither a list of texts nor a `NameSet`.
    """
    _check_names(source, what)
    return {ONE_OF: list(source)}


def without_sources(schema: Any, *, is_map: bool = False) -> Any:
    """A schema as it is shown: documents stand in the prompt already, names may be millions; phrases are shown.
    ``is_map``: see `with_sources`."""
    if isinstance(schema, Mapping) and is_map:
        return {name: without_sources(value) for name, value in schema.items()}
    if isinstance(schema, Mapping):
        shown = {
            key: value if key in DATA else without_sources(value, is_map=key in MAPS) for key, value in schema.items()
        }
        words = shown.get(X_STRUCTGEN)
        if isinstance(words, Mapping) and words.keys() & WORDS:
            shown[X_STRUCTGEN] = _shown_words(words)
            if not shown[X_STRUCTGEN]:
                del shown[X_STRUCTGEN]
        return shown
    return [without_sources(item) for item in schema] if isinstance(schema, list) else schema


def _shown_words(words: Mapping[str, Any]) -> dict[str, Any]:
    shown = {word: _shown_words(said) if word == DOCUMENT else said for word, said in words.items()}
    return {word: said for word, said in shown.items() if word not in _HIDDEN and said != {}}
