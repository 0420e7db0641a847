"""Where references lead: documents, the schema resources in them, and their anchors.

A *document* is one parsed JSON text, a *resource* a schema in it with a URI of its own (``$id``), and what lies below
up to the next resource belongs to it (JSON Schema 2020-12 core, sections 4.3.5 and 8). Documents are indexed only when
a reference needs it: most schemas use nothing but JSON Pointers into themselves.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag, urljoin

from structgen.core.json_schema import dialects
from structgen.core.json_schema.checks import refuse
from structgen.core.json_schema.dialects import Dialect
from structgen.core.json_schema.plain import plain_json
from structgen.core.json_schema.pointers import Pointer, pointer_text, unescape
from structgen.errors import UnresolvableReferenceError, UnsupportedSchemaError

if TYPE_CHECKING:
    from referencing import Registry

_INDEX = re.compile("0|[1-9][0-9]{0,15}")  # RFC 6901
RECURSIVE_ANCHOR = "#recursive"  # no anchor can be spelled so; stands for 2019-09's "$recursiveAnchor": true


class Document:
    """One parsed JSON text; ``indexed`` once its identifiers are known."""

    __slots__ = ("indexed", "root")

    def __init__(self, contents: Any, uri: str, dialect: Dialect, pointer: Pointer) -> None:
        self.root = Resource(contents, uri, dialect, pointer, self)
        self.indexed = False


class Resource:
    """A schema with a URI: its contents, dialect and pointer, and its anchors once the document is indexed."""

    __slots__ = ("anchors", "contents", "dialect", "document", "dynamic_anchors", "pointer", "uri")

    def __init__(self, contents: Any, uri: str, dialect: Dialect, pointer: Pointer, document: Document) -> None:
        self.contents, self.uri, self.dialect, self.pointer, self.document = contents, uri, dialect, pointer, document
        self.anchors: dict[str, Target] = {}
        self.dynamic_anchors: dict[str, Target] = {}


Target = tuple[Any, Pointer, Resource]  # a schema, where it stands, and the resource around it


class Resources:
    """All that references of one schema can reach.

    Args:
        contents: the schema.
        dialect: its own.
        default: that of documents that name none.
        registry: further documents by URI (and, if it has a retrieve function, any other).
    """

    def __init__(self, contents: Any, dialect: Dialect, default: Dialect, registry: Registry[Any] | None) -> None:
        self.registry = registry
        self.default = default
        self._by_uri: dict[str, Resource] = {}
        self._by_identity: dict[tuple[int, str], Resource] = {}
        uri = identifier(contents, dialect, ("",)) or ""
        self.root = self._add(Document(contents, uri, dialect, ("",)).root)

    def _add(self, resource: Resource) -> Resource:
        self._by_identity[id(resource.contents), resource.uri] = resource
        return self._by_uri.setdefault(resource.uri, resource)

    def finish(self) -> None:
        """Drop what resources refer to each other by. Nothing can be resolved afterwards."""
        for resource in self._by_identity.values():
            resource.anchors.clear()
            resource.dynamic_anchors.clear()
            del resource.document

    def enter(self, schema: dict[str, Any], pointer: Pointer, around: Resource) -> Resource:
        """The resource of a schema that stands in ``around``: a new one if the schema has a URI of its own."""
        if schema is around.contents:
            return around
        uri = identifier(schema, around.dialect, pointer)
        if uri is None:
            return around
        uri = urldefrag(urljoin(around.uri, uri))[0]
        resource = self._by_identity.get((id(schema), uri))
        if resource is not None:
            return resource
        dialect = dialect_of(schema, around.dialect, self.registry)
        return self._add(Resource(schema, uri, dialect, pointer, around.document))

    def index(self, document: Document) -> None:
        """Find the resources and anchors of a document, once. Linear in its size."""
        if document.indexed:
            return
        document.indexed = True
        todo = [(document.root.contents, document.root.pointer, document.root)]
        while todo:
            schema, pointer, resource = todo.pop()
            if isinstance(schema, dict):
                if resource.dialect.identifier in schema:
                    resource = self.enter(schema, pointer, resource)
                _find_anchors(schema, pointer, resource)
                todo.extend((child, where, resource) for child, where in dialects.subschemas(schema, pointer))

    def resolve(self, reference: str, resource: Resource, pointer: Pointer) -> Target:
        """The schema that a reference in ``resource`` leads to.

        Raises:
            UnresolvableReferenceError: there is none; the hint says how to supply it.
        """
        if reference.startswith("#"):
            fragment = reference[1:]
        else:
            uri, fragment = urldefrag(urljoin(resource.uri, reference))
            resource = self._find(uri, resource, reference, pointer)
        if not fragment:
            return resource.contents, resource.pointer, resource
        if fragment.startswith("/"):
            return self._follow(fragment, resource, reference, pointer)
        self.index(resource.document)
        target = resource.anchors.get(fragment)
        if target is None:
            anchors = ", ".join(sorted(resource.anchors)) or "none"
            raise _unresolvable(reference, pointer, f"There is no such anchor; the anchors are: {anchors}")
        return target

    def _find(self, uri: str, near: Resource, reference: str, pointer: Pointer) -> Resource:
        if uri not in self._by_uri:
            self.index(self.root.document)
            self.index(near.document)
        if uri not in self._by_uri:
            contents = _retrieve(uri, self.registry)
            if contents is None:
                hint = f"Supply the document {uri!r} through the argument registry (a referencing.Registry)"
                raise _unresolvable(reference, pointer, hint)
            dialect = dialect_of(contents, self.default, self.registry)
            document = Document(contents, uri, dialect, (uri,))
            declared_uri = identifier(contents, dialect, (uri,))
            if declared_uri:
                document.root.uri = urldefrag(urljoin(uri, declared_uri))[0]
            self._by_uri[uri] = self._add(document.root)
        return self._by_uri[uri]

    def _follow(self, fragment: str, resource: Resource, reference: str, pointer: Pointer) -> Target:
        """Walk a JSON Pointer; it may pass into embedded resources, whose URIs then count."""
        node, where = resource.contents, resource.pointer
        for token in (unquote(fragment) if "%" in fragment else fragment).split("/")[1:]:
            if "~" in token:
                token = unescape(token)
            if node.__class__ is dict and resource.dialect.identifier in node:
                resource = self.enter(node, where, resource)
            if node.__class__ is dict and token in node:
                node = node[token]
            elif isinstance(node, list) and _INDEX.fullmatch(token) and int(token) < len(node):
                node = node[int(token)]
            else:
                present = sorted(node)[:8] if isinstance(node, dict) else f"a {type(node).__name__}"
                raise _unresolvable(
                    reference, pointer, f"There is no {token!r} at {pointer_text(where)!r}, only {present}"
                )
            where = (where, token)
        if node.__class__ is dict and resource.dialect.identifier in node:
            resource = self.enter(node, where, resource)
        return node, where, resource


def dialect_of(contents: Any, inherited: Dialect, registry: Registry[Any] | None) -> Dialect:
    """The dialect that ``$schema`` of a resource's root names; an unknown metaschema changes nothing.

    Raises:
        SchemaError: ``$schema`` is not a string.
    """
    if not isinstance(contents, dict) or "$schema" not in contents:
        return inherited
    uri = contents["$schema"]
    if not isinstance(uri, str):
        refuse((("",), "$schema"), "the URI of a metaschema", uri)
    dialect = dialects.by_metaschema(uri)
    if dialect is not None:
        return dialect
    metaschema = _retrieve(uri.rstrip("#"), registry)
    if not isinstance(metaschema, dict) or metaschema.get("$schema") == uri:
        return inherited
    dialect = dialect_of(metaschema, inherited, registry)
    vocabularies = metaschema.get("$vocabulary")
    if not isinstance(vocabularies, dict):
        return dialect
    unknown = [name for name, needed in vocabularies.items() if needed and not dialects.knows_vocabulary(name)]
    if unknown:
        message = f"the metaschema {uri} requires vocabularies that are not known: {', '.join(unknown)}"
        raise UnsupportedSchemaError(message, keyword="$vocabulary")
    return dialects.restricted(dialect, vocabularies)


def _retrieve(uri: str, given: Registry[Any] | None) -> Any:
    """A document from the registry or the metaschemas; None if there is none."""
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]
    from referencing.exceptions import NoSuchResource, Unretrievable

    for registry in (REGISTRY if "//json-schema.org/" in uri else None, given):
        if registry is not None:
            try:
                return plain_json(registry.get_or_retrieve(uri).value.contents, (uri,))
            except (NoSuchResource, Unretrievable):
                continue
    return None


def _unresolvable(reference: str, pointer: Pointer, hint: str) -> UnresolvableReferenceError:
    message = f"the reference {reference!r} leads nowhere"
    return UnresolvableReferenceError(message, pointer=pointer_text(pointer), keyword=str(pointer[-1]), hint=hint)


def identifier(schema: Any, dialect: Dialect, pointer: Pointer) -> str | None:
    """The URI reference that a schema gives itself, if any. A fragment alone is at most an anchor."""
    if not isinstance(schema, dict) or (dialect.overriding_ref and "$ref" in schema and len(pointer) == 2):
        return None
    uri = schema.get(dialect.identifier)
    return uri if isinstance(uri, str) and uri and not uri.startswith("#") else None


def _find_anchors(schema: dict[str, Any], pointer: Pointer, resource: Resource) -> None:
    target = (schema, pointer, resource)
    if resource.dialect.overriding_ref:
        name = schema.get(resource.dialect.identifier)
        if isinstance(name, str) and "#" in name[:-1] and "$ref" not in schema:
            resource.anchors[name.partition("#")[2]] = target
        return
    for keyword in ("$anchor", "$dynamicAnchor"):
        name = schema.get(keyword)
        if isinstance(name, str):
            resource.anchors[name] = target
    if isinstance(schema.get("$dynamicAnchor"), str) and resource.dialect.name == "draft2020-12":
        resource.dynamic_anchors[schema["$dynamicAnchor"]] = target
    if schema.get("$recursiveAnchor") is True and resource.dialect.name == "draft2019-09":
        resource.dynamic_anchors[RECURSIVE_ANCHOR] = target
