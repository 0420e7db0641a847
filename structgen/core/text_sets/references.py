"""What names in schemas stand for: a reference holds its source, so that a schema stays short and is not copied."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structgen.core.text_sets.corpus import Corpus
    from structgen.core.text_sets.names import NameSet


BY_REFERENCE: ContextVar[bool] = ContextVar("structgen_by_reference", default=False)
"""Whether marks of types write references to their sources into schemas, rather than what these hold."""


class Documents:
    """Texts by name, of which there is no index yet.

    Attributes:
        texts: by name.
        digest: content hash.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = dict(texts)
        data = json.dumps(list(self.texts.items()), default=repr).encode()
        self.digest = hashlib.blake2b(data, digest_size=16).hexdigest()


class SourceReference(str):
    """A name of a source that holds it. As text it is the source's hash: equal for equal sources.

    Attributes:
        source: what the name stands for.
    """

    __slots__ = ("source",)
    source: Documents | Corpus | NameSet

    def __new__(cls, source: Documents | Corpus | NameSet) -> SourceReference:
        """The reference to a source."""
        reference = super().__new__(cls, f"source {source.digest}")
        reference.source = source
        return reference

    def __deepcopy__(self, memo: Any) -> SourceReference:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return SourceReference, (self.source,)
